/* Preloaded: from the FULL_DISK_AT-th write on, the disk that holds files whose name has FULL_DISK_NAME in it is full; with
   FULL_DISK_ONCE it is full for that write alone. Writes are counted in a file that FULL_DISK_COUNT names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_ours(int fd) {
  const char* const part = getenv("FULL_DISK_NAME");
  char link[64], path[4096];
  if (part == NULL) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, part) != NULL;
}

static int is_full(int fd) {
  static int count = 0;
  if (!is_ours(fd)) return 0;
  const int at = getenv("FULL_DISK_AT") != NULL ? atoi(getenv("FULL_DISK_AT")) : 0;
  const int n = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
  const char* const counts = getenv("FULL_DISK_COUNT");
  if (counts != NULL) {
    char text[16];
    const int out = open(counts, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    const int length = snprintf(text, sizeof text, "%d", n);
    ssize_t (*real)(int, const void*, size_t) = (ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
    if (out >= 0 && real(out, text, (size_t)length) >= 0) close(out);
  }
  if (at <= 0) return 0;
  return getenv("FULL_DISK_ONCE") != NULL ? n == at : n >= at;
}

#define FULL(fd)        \
  if (is_full(fd)) {    \
    errno = ENOSPC;     \
    return -1;          \
  }
#define REAL(name) static __typeof__(name)* real; if (real == NULL) real = (__typeof__(name)*)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void* from, size_t size) { REAL(write); FULL(fd) return real(fd, from, size); }
ssize_t pwrite(int fd, const void* from, size_t size, off_t at) { REAL(pwrite); FULL(fd) return real(fd, from, size, at); }
ssize_t pwrite64(int fd, const void* from, size_t size, off64_t at) { REAL(pwrite64); FULL(fd) return real(fd, from, size, at); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); FULL(fd) return real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); FULL(fd) return real(fd, size); }
int posix_fallocate(int fd, off_t at, off_t size) { REAL(posix_fallocate); if (is_full(fd)) return ENOSPC; return real(fd, at, size); }
int fallocate(int fd, int mode, off_t at, off_t size) { REAL(fallocate); FULL(fd) return real(fd, mode, at, size); }
