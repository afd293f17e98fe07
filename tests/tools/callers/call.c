// Calls op_dense by arrays, by DLPack and by the low-level entry. C11 and C++.
#include "dense.h"
#include <dlpack/dlpack.h>

static int32_t in_turn(const PrunercLaunch* self, int64_t n, PrunercTask body, void* closure) {
  for (int64_t i = 0; i < n; ++i) body(i, (int32_t)(i % self->num_workers), closure);
  return 0;
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
  Call c = make_call(2);
  int64_t x[] = {ROWS, INNER}, w[] = {INNER, COLUMNS}, bias[] = {COLUMNS}, y[] = {ROWS, COLUMNS};
  DLTensor tensors[] = {tensor(c.x, 2, x), tensor(c.w - 1, 2, w), tensor(c.bias, 1, bias),
                        tensor(c.y, 2, y)};
  tensors[1].byte_offset = sizeof(float);
  const void* pointers[] = {&tensors[0], &tensors[1], &tensors[2], &tensors[3]};
  check(op_dense_dlpack(pointers, 4) == 0, "the call by DLPack");
  check(is_right(&c), "the result by DLPack");
  free_call(&c);
}

static void by_hand(void) {
  Call c = make_call(3);
  void* args[] = {c.x, c.w, c.bias, c.y};
  const PrunercLaunch launch = {in_turn, 3, NULL};
  void* const workspace =
      aligned_alloc(PRUNERC_ALIGNMENT, (size_t)(OP_DENSE_WORKSPACE_BYTES(3) / 64 + 1) * 64);
  check(op_dense_kernel(args, workspace, NULL) == PRUNERC_ERROR_ARGUMENT, "a missing launch");
  const int misaligned = op_dense_kernel(args, (char*)workspace + 32, &launch);
  if (OP_DENSE_WORKSPACE_BYTES(3) > 0) {
    check(misaligned == PRUNERC_ERROR_ARGUMENT, "a misaligned workspace");
    check(strcmp(op_dense_error(), "the workspace is not aligned to 64 bytes") == 0, "its message");
  }
  check(op_dense_kernel(args, workspace, &launch) == 0, "the low-level call");
  check(is_right(&c), "the result of the low-level call");
  free(workspace);
  free_call(&c);
}

int main(void) {
  const PrunercInfo* const info = op_dense_info();
  check(strcmp(info->name, "dense") == 0 && strcmp(info->symbol, "op_dense") == 0, "its names");
  check(info->num_params == 4 && strcmp(info->params[3].name, "Y") == 0, "its parameters");
  check(info->params[3].is_output && info->params[3].ndim == 2, "its output");
  check(info->params[3].shape[0] == ROWS && info->params[3].shape[1] == COLUMNS, "its shape");
  check(strcmp(op_dense_error(), "") == 0, "no message before the first failure");
  call_and_check(1);
  by_dlpack();
  by_hand();
  puts("right");
  return 0;
}
