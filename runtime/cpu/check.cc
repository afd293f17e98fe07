#include "runtime/cpu/check.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace prunerc::runtime {
namespace {

template <typename F, typename T>
bool transfer(F&& call, int fd, T* data, int64_t bytes, int64_t offset) {
  while (bytes > 0) {
    const ssize_t moved = call(fd, data, static_cast<size_t>(bytes), offset);
    if (moved <= 0) return false;
    data += moved;
    bytes -= moved;
    offset += moved;
  }
  return true;
}

}  // namespace

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

bool read_all(int fd, unsigned char* to, int64_t bytes, int64_t offset) {
  return transfer(pread, fd, to, bytes, offset);
}

bool write_all_at(int fd, const unsigned char* from, int64_t bytes, int64_t offset) {
  return transfer(pwrite, fd, from, bytes, offset);
}

}  // namespace prunerc::runtime
