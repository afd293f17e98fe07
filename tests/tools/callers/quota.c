// Says how many threads there are after a call where the system's files are those below ./system.
#include "dense.h"
#include <fcntl.h>
#include <unistd.h>

// In the place of the C library's: what the library reads the files of control groups by.
FILE* fopen(const char* path, const char* mode) {
  char there[1000];
  snprintf(there, sizeof there, "./system%s", path);
  const int file = open(there, O_RDONLY);
  return file < 0 ? NULL : fdopen(file, mode);
}

int main(void) {
  call_and_check(1);
  printf("%d\n", num_threads());
  return 0;
}
