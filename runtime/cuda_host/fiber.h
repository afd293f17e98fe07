// Stacks that one host thread switches between: what the threads of a CUDA block run on.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_FIBER_H_
#define PRUNERC_RUNTIME_CUDA_HOST_FIBER_H_

#include "runtime/cuda_host/abi.h"

#include <cstddef>
#include <memory>

namespace prunerc::runtime::cuda_host {

/// Stacks of kPrHostStackBytes, each aligned to its size, with a guard page at the low end and a
/// PrHostThread at the high end. Pages that nobody touches take no memory.
class StackPool {
 public:
  explicit StackPool(int num_stacks);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  int size() const { return size_; }
  /// False if the machine has not enough address space.
  bool ok() const { return stacks_ != nullptr; }
  char* bottom(int idx) const { return stacks_ + static_cast<size_t>(idx) * kPrHostStackBytes; }
  PrHostThread* view(int idx) const {
    return reinterpret_cast<PrHostThread*>(bottom(idx) + kPrHostStackBytes) - 1;
  }
  /// A stack pointer which, switched to, calls `entry` on stack `idx`; it must not return.
  void* prepare(int idx, void (*entry)()) const;

 private:
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  int size_ = 0;
  char* stacks_ = nullptr;
};

/// At least `num_stacks`, new or given back before: making the pages of stacks anew would cost more
/// than running most kernels. Threads: any.
std::unique_ptr<StackPool> take_stacks(int num_stacks);
void give_back(std::unique_ptr<StackPool> stacks);

/// Leaves the current stack, whose pointer goes to *from, for another. Saves what the x86-64 ABI
/// makes a callee save, and nothing else: swapcontext would make two system calls.
extern "C" void prunerc_switch_stack(void** from, void* to);

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_FIBER_H_
