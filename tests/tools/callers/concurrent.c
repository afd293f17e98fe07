// Many threads at once, then forks, then another thread after them.
#include "dense.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, CALLS = 40, FORKS = 4 };

static void* call_often(void* first_seed) {
  for (int i = 0; i < CALLS; ++i) call_and_check((int)(intptr_t)first_seed + i);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; ++i)
    check(pthread_create(&threads[i], NULL, call_often, (void*)(1000 * i)) == 0, "a thread");
  // While they call.
  for (int i = 0; i < FORKS; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      call_often(NULL);
      exit(0);
    }
    int status = -1;
    check(waitpid(child, &status, 0) == child && status == 0, "a child");
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  call_and_check(7);
  puts("right");
  return 0;
}
