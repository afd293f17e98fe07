// What the callers of op_dense share: arrays for it, and what must come out. C11 and C++.
#ifndef PRUNERC_TESTS_TOOLS_CALLERS_DENSE_H_
#define PRUNERC_TESTS_TOOLS_CALLERS_DENSE_H_

#include <dirent.h>
#include <library.h>  // what the test has compiled
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 192, COLUMNS = 192, INNER = 96 };

typedef struct {
  // One float behind a boundary of 64 bytes: aligned as floats are, and not better.
  float *x, *w, *bias, *y;
  float* memory[4];
} Call;

static inline float* unaligned(float** memory, int count) {
  *memory = (float*)aligned_alloc(64, (size_t)(count * 4 + 128) / 64 * 64);
  return *memory + 1;
}

static inline Call make_call(int seed) {
  Call c;
  c.x = unaligned(&c.memory[0], ROWS * INNER);
  c.w = unaligned(&c.memory[1], INNER * COLUMNS);
  c.bias = unaligned(&c.memory[2], COLUMNS);
  c.y = unaligned(&c.memory[3], ROWS * COLUMNS);
  for (int i = 0; i < ROWS * INNER; ++i) c.x[i] = (float)((i + seed) % 5 - 2);
  for (int i = 0; i < INNER * COLUMNS; ++i) c.w[i] = (float)((i + seed) % 7 - 3);
  for (int i = 0; i < COLUMNS; ++i) c.bias[i] = (float)(i + seed % 3 - 32);
  memset(c.y, 0xff, ROWS * COLUMNS * sizeof(float));
  return c;
}

static inline void free_call(Call* c) {
  for (int i = 0; i < 4; ++i) free(c->memory[i]);
}

static inline int is_right(const Call* c) {
  for (int i = 0; i < ROWS; ++i) {
    for (int j = 0; j < COLUMNS; ++j) {
      float sum = c->bias[j];
      for (int k = 0; k < INNER; ++k) sum += c->x[i * INNER + k] * c->w[k * COLUMNS + j];
      if (c->y[i * COLUMNS + j] != (sum > 0 ? sum : 0)) return 0;
    }
  }
  return 1;
}

static inline int num_threads(void) {
  DIR* const folder = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent* e = readdir(folder); e != NULL; e = readdir(folder))
    count += e->d_name[0] != '.';
  closedir(folder);
  return count;
}

static inline void check(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s (%s)\n", what, op_dense_error());
  exit(1);
}

static inline void call_and_check(int seed) {
  Call c = make_call(seed);
  check(op_dense(c.x, c.w, c.bias, c.y) == 0, "the call");
  check(is_right(&c), "the result");
  free_call(&c);
}

#endif  // PRUNERC_TESTS_TOOLS_CALLERS_DENSE_H_
