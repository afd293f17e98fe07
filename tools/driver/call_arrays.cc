#include "tools/driver/call_arrays.h"

#include <fmt/format.h>

namespace prunerc {
namespace {

uintptr_t address(const CallArray& array) { return reinterpret_cast<uintptr_t>(array.at); }

bool overlap(const CallArray& a, const CallArray& b) {
  return a.bytes > 0 && b.bytes > 0 && address(a) < address(b) + static_cast<uintptr_t>(b.bytes) &&
         address(b) < address(a) + static_cast<uintptr_t>(a.bytes);
}

}  // namespace

Result<void> check_arrays(std::span<const CallArray> arrays) {
  for (const CallArray& array : arrays) {
    if (array.at == nullptr)
      return error(Diag::kKernelArguments, fmt::format("'{}' is null", array.name));
    if (address(array) % static_cast<uintptr_t>(array.element_bytes) == 0) continue;
    return error(Diag::kKernelArguments,
                 fmt::format("'{}' is not aligned to {} bytes", array.name, array.element_bytes));
  }
  for (const CallArray& written : arrays) {
    if (!written.is_output) continue;
    for (const CallArray& other : arrays) {
      if (&other != &written && overlap(written, other))
        return error(Diag::kKernelArguments,
                     fmt::format("output '{}' overlaps '{}'", written.name, other.name));
    }
  }
  return {};
}

}  // namespace prunerc
