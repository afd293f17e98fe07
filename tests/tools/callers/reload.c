// The library's threads end with it, and the next load starts anew.
#include "dense.h"
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  for (int i = 0; i < 5; ++i) {
    void* const library = dlopen("./library.so", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return puts(dlerror()), 1;
    if (num_threads() != 1) return puts("loading starts threads"), 1;
    int (*call)(const float*, const float*, const float*, float*);
    *(void**)&call = dlsym(library, "op_dense");
    Call c = make_call(i);
    if (call(c.x, c.w, c.bias, c.y) != 0 || !is_right(&c)) return puts("wrong"), 1;
    free_call(&c);
    if (num_threads() < 2) return puts("no threads were started"), 1;
    usleep(10000);  // parked by now
    dlclose(library);
    if (dlopen("./library.so", RTLD_NOW | RTLD_NOLOAD) != NULL) return puts("not unloaded"), 1;
    if (num_threads() != 1) return puts("threads are left"), 1;
  }
  // What the library did about forks is undone, too.
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = -1;
  if (waitpid(child, &status, 0) != child || status != 0) return puts("fork"), 1;
  puts("right");
  return 0;
}
