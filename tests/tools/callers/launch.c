// A pool of the user's own, and what the library does with his settings of floating point.
#include "dense.h"
#include <pthread.h>
#include <xmmintrin.h>

static int num_loops, num_beyond;

static int32_t backwards(const PrunercLaunch* self, int64_t n, PrunercTask body, void* closure) {
  ++num_loops;
  for (int64_t i = n; i-- > 0;) body(i, (int32_t)(i % self->num_workers), closure);
  return 0;
}

static int32_t failing(const PrunercLaunch* self, int64_t n, PrunercTask body, void* closure) {
  (void)self, (void)n, (void)body, (void)closure;
  return 42;
}

// As if they were numbered from 1.
static int32_t beyond(const PrunercLaunch* self, int64_t n, PrunercTask body, void* closure) {
  ++num_beyond;
  for (int64_t i = 0; i < n; ++i) body(i, self->num_workers, closure);
  return 0;
}

// Threads that flush subnormal numbers to zero, as those of some libraries do.
enum { FLUSHING = 0x9fc0, FLAGS = 0x3f };
static int32_t flushing(const PrunercLaunch* self, int64_t n, PrunercTask body, void* closure) {
  (void)self;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(FLUSHING);
  for (int64_t i = 0; i < n; ++i) body(i, 0, closure);
  check((_mm_getcsr() & ~(unsigned)FLAGS) == FLUSHING, "the settings of a given thread");
  _mm_setcsr(before);
  ++num_loops;
  return 0;
}

static void* task_of_a_pool(void* seed) {
  call_and_check((int)(intptr_t)seed);
  return NULL;
}

// The user's parallel loop, whose tasks call the operator.
static void nested(void) {
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, task_of_a_pool, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}

int main(void) {
  const PrunercLaunch own = {backwards, 5, NULL}, broken = {failing, 1, NULL},
                      empty = {NULL, 1, NULL}, flushed = {flushing, 2, NULL},
                      other = {beyond, 2, NULL};
  op_dense_set_launch(&own);
  call_and_check(1);
  check(num_loops > 0, "the given launch is used");
  op_dense_set_launch(NULL);
  const int before = num_loops;
  call_and_check(2);
  check(num_loops == before, "the library's own launch is back");
  nested();
  Call c = make_call(3);
  op_dense_set_launch(&broken);
  check(op_dense(c.x, c.w, c.bias, c.y) == PRUNERC_ERROR_LAUNCH, "a launch that fails");
  check(strcmp(op_dense_error(), "the given parallel_for returned 42") == 0, "its message");
  op_dense_set_launch(&other);
  const int code = op_dense(c.x, c.w, c.bias, c.y);
  if (op_dense_info()->workspace_bytes_per_worker > 0) {
    check(code == PRUNERC_ERROR_LAUNCH && num_beyond == 1, "a worker that is none");
    check(strcmp(op_dense_error(), "the given parallel_for has other workers than 0 to 1") == 0,
          "what it says");
  } else {
    check(code == 0 && is_right(&c), "numbers that no memory is behind");
  }
  op_dense_set_launch(&empty);
  check(op_dense(c.x, c.w, c.bias, c.y) == PRUNERC_ERROR_ARGUMENT, "an empty launch");
  op_dense_set_launch(NULL);
  // Flush to zero, round down: neither counts in the kernel, and both are as before afterwards.
  const unsigned mine = 0xffc0u & ~0x4000u;
  _mm_setcsr(mine);
  for (int i = 0; i < ROWS * INNER; ++i) c.x[i] = 1e-30f;
  for (int i = 0; i < INNER * COLUMNS; ++i) c.w[i] = 1e-10f;
  memset(c.bias, 0, COLUMNS * sizeof(float));
  check(op_dense(c.x, c.w, c.bias, c.y) == 0, "the call");
  check((_mm_getcsr() & ~0x3fu) == (mine & ~0x3fu), "the settings");
  _mm_setcsr(0x1f80);
  for (int i = 0; i < ROWS * COLUMNS; ++i) check(c.y[i] > 0, "a subnormal sum");
  const int loops = num_loops;
  op_dense_set_launch(&flushed);
  check(op_dense(c.x, c.w, c.bias, c.y) == 0 && num_loops > loops, "a call on such threads");
  op_dense_set_launch(NULL);
  for (int i = 0; i < ROWS * COLUMNS; ++i) check(c.y[i] > 0, "a subnormal sum of theirs");
  free_call(&c);
  puts("right");
  return 0;
}
