// Memory as kernels want their arrays.
#ifndef PRUNERC_TOOLS_DRIVER_ALIGNED_H_
#define PRUNERC_TOOLS_DRIVER_ALIGNED_H_

#include "ir/support/result.h"
#include "runtime/kernel.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

namespace prunerc {

/// `size()` bytes, not initialised, at a multiple of PRUNERC_ALIGNMENT. Movable.
class AlignedArray {
 public:
  AlignedArray() = default;
  /// Errors: KernelArguments (there is not so much memory).
  static Result<AlignedArray> make(int64_t bytes) {
    AlignedArray array;
    const std::size_t lines = static_cast<std::size_t>(bytes) / PRUNERC_ALIGNMENT + 1;
    array.memory_.reset(std::aligned_alloc(PRUNERC_ALIGNMENT, lines * PRUNERC_ALIGNMENT));
    array.bytes_ = bytes;
    if (array.memory_ == nullptr)
      return error(Diag::kKernelArguments, "not enough memory for its arrays and workspace");
    return array;
  }
  void* data() const { return memory_.get(); }
  int64_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> memory_;
  int64_t bytes_ = 0;
};

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_ALIGNED_H_
