// Sums and comparisons of memory of the device, made there.
#ifndef PRUNERC_RUNTIME_CUDA_INSPECTOR_H_
#define PRUNERC_RUNTIME_CUDA_INSPECTOR_H_

#include "runtime/cuda/kernel.h"

#include <cstdint>

namespace prunerc::runtime::cuda {

/// What a check asks about large buffers, answered by kernels of the measuring process: a download
/// takes a hundred times as long as reading the memory where it lies.
class Inspector {
 public:
  /// Needs a context. Errors: CudaCall.
  static Result<Inspector> make(const Driver& api);

  /// 64-bit hash of a buffer, for noticing a change. Errors: CudaCall.
  Result<uint64_t> checksum(const DeviceBuffer& buffer) const;
  /// Whether two buffers of one size hold the same bits. Errors: CudaCall.
  Result<bool> are_equal(const DeviceBuffer& a, const DeviceBuffer& b) const;

 private:
  Inspector(const Driver& api, DeviceBuffer answer) : api_(&api), answer_(std::move(answer)) {}
  /// The word at the kernel's last argument, which is zero before.
  Result<uint64_t> ask(Function function, int64_t bytes, void** params) const;

  const Driver* api_;
  DeviceBuffer answer_;
  Function checksum_ = nullptr;
  Function compare_ = nullptr;
};

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_INSPECTOR_H_
