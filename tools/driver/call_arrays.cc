#include "tools/driver/call_arrays.h"

#include "runtime/kernel.h"

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
    if (array.at == nullptr || address(array) % PRUNERC_ALIGNMENT != 0)
      return error(Diag::kKernelArguments, "an array is not aligned to 64 bytes");
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
