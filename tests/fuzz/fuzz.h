// What the fuzz targets share.
#ifndef PRUNERC_TESTS_FUZZ_FUZZ_H_
#define PRUNERC_TESTS_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace prunerc::fuzz {

/// Ends the run as a finding unless it holds.
inline void require(bool holds, const char* what, std::string_view shown = {}) {
  if (holds) return;
  std::fprintf(stderr, "%s\n%s\n", what, std::string(shown).c_str());
  std::abort();
}

/// A refusal says why.
template <typename Outcome>
void require_reason(const Outcome& outcome, std::string_view shown) {
  if (!outcome.ok()) require(!outcome.error().message().empty(), "no message", shown);
}

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Puts `value` into the little-endian bytes at `at`, if there are so many: a checksum that fits
/// lets mutations reach what lies behind it.
inline void put_number(std::string* bytes, size_t at, uint64_t value) {
  if (bytes->size() < at + sizeof value) return;
  for (size_t i = 0; i < sizeof value; ++i) (*bytes)[at + i] = static_cast<char>(value >> (8 * i));
}

}  // namespace prunerc::fuzz

#endif  // PRUNERC_TESTS_FUZZ_FUZZ_H_
