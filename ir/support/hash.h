// 64-bit mixing and the 128-bit fingerprint used for program identity.
#ifndef PRUNERC_IR_SUPPORT_HASH_H_
#define PRUNERC_IR_SUPPORT_HASH_H_

#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace prunerc {

/// Finaliser with full avalanche (constants of SplitMix64).
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBULL;
  x ^= x >> 31;
  return x;
}

/// Order-dependent combination.
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  return mix64(seed * 0x9E3779B97F4A7C15ULL + value + 0x632BE59BD9B4E019ULL);
}

constexpr uint64_t hash_bytes(std::string_view text, uint64_t seed = 0x51ED270B0F3A5C17ULL) {
  uint64_t h = hash_combine(seed, text.size());
  uint64_t word = 0;
  int filled = 0;
  for (char c : text) {
    word = (word << 8) | static_cast<unsigned char>(c);
    if (++filled == 8) {
      h = hash_combine(h, word);
      word = 0;
      filled = 0;
    }
  }
  return filled == 0 ? h : hash_combine(h, word);
}

inline uint64_t hash_double(double value) { return std::bit_cast<uint64_t>(value); }

/// 128 bits; equal for programs that differ only in names and id numbering.
struct Fingerprint {
  uint64_t high = 0;
  uint64_t low = 0;
  constexpr auto operator<=>(const Fingerprint&) const = default;
  /// 32 lower-case hex digits.
  std::string to_string() const {
    static const char* const digits = "0123456789abcdef";
    std::string out(32, '0');
    for (int i = 0; i < 16; ++i) {
      out[static_cast<std::size_t>(15 - i)] = digits[(high >> (4 * i)) & 15];
      out[static_cast<std::size_t>(31 - i)] = digits[(low >> (4 * i)) & 15];
    }
    return out;
  }
};

/// Accumulates words into two independently seeded lanes.
class FingerprintBuilder {
 public:
  void add(uint64_t word) {
    high_ = hash_combine(high_, word);
    low_ = hash_combine(low_ ^ 0xA5A5A5A5A5A5A5A5ULL, word + 0x2545F4914F6CDD1DULL);
  }
  void add(std::string_view text) { add(hash_bytes(text)); }
  Fingerprint finish() const { return {mix64(high_), mix64(low_)}; }

 private:
  uint64_t high_ = 0x243F6A8885A308D3ULL;
  uint64_t low_ = 0x13198A2E03707344ULL;
};

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_HASH_H_
