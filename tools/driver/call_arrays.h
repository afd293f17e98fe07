// The arrays that a caller hands to a kernel or a network.
#ifndef PRUNERC_TOOLS_DRIVER_CALL_ARRAYS_H_
#define PRUNERC_TOOLS_DRIVER_CALL_ARRAYS_H_

#include "ir/support/result.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace prunerc {

struct CallArray {
  const void* at = nullptr;
  int64_t bytes = 0;
  int64_t element_bytes = 1;
  bool is_output = false;
  std::string_view name;
};

/// Whether kernels can work on these: aligned as their elements are, and no output overlaps another
/// array, since kernels read their inputs while they write. Errors: KernelArguments.
Result<void> check_arrays(std::span<const CallArray> arrays);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_CALL_ARRAYS_H_
