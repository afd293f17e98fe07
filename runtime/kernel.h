/* The C ABI between compiled kernels and whoever runs them. Plain C, so that generated headers can
 * repeat it. */
#ifndef PRUNERC_RUNTIME_KERNEL_H_
#define PRUNERC_RUNTIME_KERNEL_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One task of a parallel loop. `worker` is in 0 .. num_workers-1 and never runs two tasks at once.
 */
typedef void (*PrunercTask)(int64_t task, int32_t worker, void* closure);

/* How a kernel starts parallel work. `parallel_for` returns 0 after all tasks 0 .. num_tasks-1 have
 * finished; their writes are then visible to the caller. Neither an exception nor a jump leaves it,
 * since kernels have nothing to unwind them by. A null PrunercLaunch pointer is not allowed. */
typedef struct PrunercLaunch {
  int32_t (*parallel_for)(const struct PrunercLaunch* self, int64_t num_tasks, PrunercTask body,
                          void* closure);
  int32_t num_workers;
  void* context;
} PrunercLaunch;

/* A kernel's entry point. `args` holds one pointer per parameter, inputs and outputs in declaration
 * order, each to a dense row-major array aligned as its elements are. A kernel with const inputs
 * has a second entry point, which is called once with the same array and reads them; behind the last
 * parameter stands the memory that it fills and the kernel reads, aligned to PRUNERC_ALIGNMENT; the
 * kernel reads no const input itself. `workspace` is one block of
 * workspace_bytes + num_workers * workspace_bytes_per_worker bytes aligned to PRUNERC_ALIGNMENT.
 * Returns 0 when done. */
typedef int32_t (*PrunercKernel)(void* const* args, void* workspace, const PrunercLaunch* launch);

#define PRUNERC_ALIGNMENT 64

#ifdef __cplusplus
}
#endif

#endif /* PRUNERC_RUNTIME_KERNEL_H_ */
