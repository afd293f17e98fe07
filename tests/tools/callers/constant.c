// Calls op_linear with two sets of constants, by arrays, DLPack and the low-level entry, from several
// threads, and wrongly. C11 and C++.
#include <dlpack/dlpack.h>
#include <library.h>  // what the test has compiled
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 16, COLUMNS = 36, INNER = 24, CALLS = 50 };

static void check(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s (%s)\n", what, op_linear_error());
  exit(1);
}

typedef struct {
  float x[ROWS * INNER], y[ROWS * COLUMNS];
} Call;

typedef struct {
  float w[INNER * COLUMNS], bias[COLUMNS];
} Weights;

static void* aligned(size_t bytes) { return aligned_alloc(PRUNERC_ALIGNMENT, (bytes + 63) / 64 * 64); }

static Weights* make_weights(int seed) {
  Weights* const made = (Weights*)malloc(sizeof(Weights));
  for (int i = 0; i < INNER * COLUMNS; ++i) made->w[i] = (float)((i * 5 + seed) % 7 - 3);
  for (int i = 0; i < COLUMNS; ++i) made->bias[i] = (float)(i % 5 + seed);
  return made;
}

static void fill(Call* c, int seed) {
  for (int i = 0; i < ROWS * INNER; ++i) c->x[i] = (float)((i + seed) % 5 - 2);
  memset(c->y, 0xff, sizeof c->y);
}

static int is_right(const Call* c, int seed) {
  Weights* const of = make_weights(seed);
  int right = 1;
  for (int i = 0; i < ROWS; ++i) {
    for (int j = 0; j < COLUMNS; ++j) {
      float sum = of->bias[j];
      for (int k = 0; k < INNER; ++k) sum += c->x[i * INNER + k] * of->w[k * COLUMNS + j];
      right = right && c->y[i * COLUMNS + j] == (sum > 0 ? sum : 0);
    }
  }
  free(of);
  return right;
}

// The weights are gone and overwritten when this returns.
static void* prepared(int seed) {
  void* const memory = aligned(OP_LINEAR_PREPARED_BYTES);
  Weights* const weights = make_weights(seed);
  check(op_linear_prepare(weights->w, weights->bias, memory) == 0, "preparing");
  memset(weights, 0xff, sizeof *weights);
  free(weights);
  return memory;
}

static void* two;

static void* many_calls(void* unused) {
  (void)unused;
  Call* const c = (Call*)malloc(sizeof(Call));
  for (int i = 0; i < CALLS; ++i) {
    fill(c, i);
    check(op_linear(c->x, c->y, two) == 0 && is_right(c, 2), "a call among others");
  }
  free(c);
  return NULL;
}

static int32_t in_turn(const PrunercLaunch* self, int64_t n, PrunercTask body, void* closure) {
  for (int64_t i = 0; i < n; ++i) body(i, (int32_t)(i % self->num_workers), closure);
  return 0;
}

static void by_hand(void* memory) {
  static Call c;
  fill(&c, 3);
  void* args[] = {c.x, c.y, memory};
  const PrunercLaunch launch = {in_turn, 3, NULL};
  void* const workspace = aligned((size_t)OP_LINEAR_WORKSPACE_BYTES(3) + 64);
  check(op_linear_kernel(args, workspace, &launch) == 0 && is_right(&c, 1), "the low-level call");
  args[2] = workspace;
  memset(workspace, 0, 64);
  check(op_linear_kernel(args, workspace, &launch) == PRUNERC_ERROR_ARGUMENT, "other memory");
  free(workspace);
}

static DLTensor tensor(float* data, int ndim, int64_t* shape) {
  DLTensor t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = ndim;
  t.dtype.code = kDLFloat;
  t.dtype.bits = 32;
  t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

static void by_dlpack(void) {
  static Call c;
  fill(&c, 4);
  Weights* const weights = make_weights(9);
  int64_t x[] = {ROWS, INNER}, w[] = {INNER, COLUMNS}, bias[] = {COLUMNS}, y[] = {ROWS, COLUMNS};
  DLTensor constants[] = {tensor(weights->w, 2, w), tensor(weights->bias, 1, bias)};
  DLTensor call[] = {tensor(c.x, 2, x), tensor(c.y, 2, y)};
  const void* given[] = {&constants[0], &constants[1]};
  const void* pointers[] = {&call[0], &call[1]};
  void* const memory = aligned(OP_LINEAR_PREPARED_BYTES);
  check(op_linear_prepare_dlpack(given, 1, memory) == PRUNERC_ERROR_ARGUMENT, "too few constants");
  check(op_linear_prepare_dlpack(given, 2, memory) == 0, "preparing by DLPack");
  check(op_linear_dlpack(pointers, 2, memory) == 0 && is_right(&c, 9), "the call by DLPack");
  check(op_linear_dlpack(pointers, 2, NULL) == PRUNERC_ERROR_ARGUMENT, "no memory by DLPack");
  free(memory);
  free(weights);
}

static void refused(int code, const char* part, const char* what) {
  check(code == PRUNERC_ERROR_ARGUMENT, what);
  check(strstr(op_linear_error(), part) != NULL, what);
}

static void wrongly(void) {
  static Call c;
  fill(&c, 1);
  Weights* const weights = make_weights(1);
  char* const memory = (char*)aligned(OP_LINEAR_PREPARED_BYTES + 64);
  memset(memory, 0, OP_LINEAR_PREPARED_BYTES);
  refused(op_linear(c.x, c.y, memory), "not filled by this library's op_linear_prepare", "a call first");
  refused(op_linear(c.x, c.y, NULL), "NULL", "no memory");
  refused(op_linear(c.x, c.y, weights->w), "prepared memory", "weights instead of memory");
  refused(op_linear_prepare(weights->w, weights->bias, NULL), "NULL", "nowhere to prepare");
  refused(op_linear_prepare(weights->w, weights->bias, memory + 32), "aligned to 64", "misaligned");
  refused(op_linear_prepare(NULL, weights->bias, memory), "(W) is NULL", "no weights");
  refused(op_linear_prepare((float*)memory, weights->bias, memory), "overlaps", "onto the weights");
  check(op_linear_prepare(weights->w, weights->bias, memory) == 0, "preparing");
  refused(op_linear(c.x, (float*)(memory + 64), memory), "overlaps", "an output in the memory");
  check(op_linear(c.x, c.y, memory) == 0 && is_right(&c, 1), "a right call");
  // Copied elsewhere it is as good: it holds no address.
  char* const copy = (char*)aligned(OP_LINEAR_PREPARED_BYTES);
  memcpy(copy, memory, OP_LINEAR_PREPARED_BYTES);
  free(memory);
  fill(&c, 5);
  check(op_linear(c.x, c.y, copy) == 0 && is_right(&c, 1), "a call with a copy");
  free(copy);
  free(weights);
}

int main(void) {
  const PrunercInfo* const info = op_linear_info();
  check(info->num_params == 2 && strcmp(info->params[0].name, "X") == 0, "its arguments");
  check(info->num_constants == 2 && strcmp(info->constants[0].name, "W") == 0, "its constants");
  check(info->constants[1].ndim == 1 && info->constants[1].shape[0] == COLUMNS, "their shapes");
  check(info->prepared_bytes == OP_LINEAR_PREPARED_BYTES, "the size of what is prepared");
  void* const one = prepared(1);
  two = prepared(2);
  static Call c;
  for (int i = 0; i < 4; ++i) {
    fill(&c, i);
    check(op_linear(c.x, c.y, i % 2 == 0 ? one : two) == 0, "a call");
    check(is_right(&c, 1 + i % 2), "its result");
  }
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, many_calls, NULL);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  by_hand(one);
  by_dlpack();
  wrongly();
  free(one);
  free(two);
  puts("right");
  return 0;
}
