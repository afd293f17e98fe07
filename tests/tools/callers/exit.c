// A fork after what the library does at exit: the child may call. To be linked statically: elsewhere
// the C library has forgotten by then what is to do about forks.
#include "dense.h"
#include <sys/wait.h>
#include <unistd.h>

__attribute__((destructor(101))) static void fork_late(void) {
  const pid_t child = fork();
  if (child == 0) {
    call_and_check(2);
    call_and_check(3);
    _exit(0);
  }
  int status = -1;
  if (waitpid(child, &status, 0) == child && status == 0) puts("right");
  fflush(stdout);
}

int main(void) {
  call_and_check(1);
  return 0;
}
