// Memory as kernels want their arrays.
#ifndef PRUNERC_TOOLS_DRIVER_ALIGNED_H_
#define PRUNERC_TOOLS_DRIVER_ALIGNED_H_

#include "ir/support/result.h"
#include "runtime/kernel.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

namespace prunerc {

/// `size()` bytes, not initialised, at a multiple of PRUNERC_ALIGNMENT; large ones ask for huge pages, since a kernel that streams
/// through weights is held up by the TLB otherwise. Movable.
class AlignedArray {
 public:
  static constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
  AlignedArray() = default;
  /// Errors: KernelArguments (there is not so much memory).
  static Result<AlignedArray> make(int64_t bytes) {
    AlignedArray array;
    const bool is_large = static_cast<std::size_t>(bytes) >= 2 * kHugePageBytes;
    const std::size_t alignment = is_large ? kHugePageBytes : PRUNERC_ALIGNMENT;
    const std::size_t room = (static_cast<std::size_t>(bytes) / alignment + 1) * alignment;
    array.memory_.reset(std::aligned_alloc(alignment, room));
    if (is_large && array.memory_ != nullptr) madvise(array.memory_.get(), room, MADV_HUGEPAGE);
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
