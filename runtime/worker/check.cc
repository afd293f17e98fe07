#include "runtime/worker/check.h"

#include <algorithm>
#include <cstring>

namespace prunerc::runtime {
std::optional<std::string> find_difference(const codegen::ArtifactParam& param,
                                           const unsigned char* first,
                                           const unsigned char* second) {
  const auto elem_bytes = static_cast<size_t>(ir::byte_size(param.dtype));
  const auto size = static_cast<size_t>(codegen::size_bytes(param));
  if (size == 0 || std::memcmp(first, second, size) == 0) return std::nullopt;
  size_t at = 0;
  while (first[at] == second[at]) ++at;
  at = at / elem_bytes * elem_bytes;
  const auto holds = [&](const unsigned char* data, unsigned char value) {
    return std::all_of(data + at, data + at + elem_bytes,
                       [value](unsigned char byte) { return byte == value; });
  };
  const std::string element =
      "element " + std::to_string(at / elem_bytes) + " of output '" + param.name + "' ";
  if (holds(first, kPoisonA) && holds(second, kPoisonB)) return element + "is never written";
  return element +
         "differs between two runs on the same inputs: a race, or a read of unwritten memory";
}

}  // namespace prunerc::runtime
