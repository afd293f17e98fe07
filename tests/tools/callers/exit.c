// A fork after what the library does at exit: the child may call. To be linked statically: elsewhere
// the C library has forgotten by then what is to do about forks.
#include "dense.h"
#include <sys/wait.h>
#include <unistd.h>

// Blocks of all sizes that the library may have given back: the child writes to none of them.
enum { STEP = 8, NUM_STEPS = 512, NUM_EACH = 4, MARK = 0xa5 };
static unsigned char* blocks[NUM_STEPS][NUM_EACH];

static void take_blocks(void) {
  for (int i = 0; i < NUM_STEPS; ++i) {
    for (int j = 0; j < NUM_EACH; ++j) {
      blocks[i][j] = (unsigned char*)malloc((size_t)(i + 1) * STEP);
      check(blocks[i][j] != NULL, "memory");
      memset(blocks[i][j], MARK, (size_t)(i + 1) * STEP);
    }
  }
}

static int are_as_they_were(void) {
  int num_others = 0;
  for (int i = 0; i < NUM_STEPS; ++i)
    for (int j = 0; j < NUM_EACH; ++j)
      for (int k = 0; k < (i + 1) * STEP; ++k) num_others += blocks[i][j][k] != MARK;
  return num_others == 0;
}

__attribute__((destructor(101))) static void fork_late(void) {
  take_blocks();
  const pid_t child = fork();
  if (child == 0) {
    call_and_check(2);
    call_and_check(3);
    _exit(are_as_they_were() ? 0 : 1);
  }
  int status = -1;
  if (waitpid(child, &status, 0) == child && status == 0) puts("right");
  fflush(stdout);
}

int main(void) {
  call_and_check(1);
  return 0;
}
