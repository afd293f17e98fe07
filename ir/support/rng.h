// Counter-based random numbers: a value depends only on (seed, stream, index), never on the thread
// that asks.
#ifndef PRUNERC_IR_SUPPORT_RNG_H_
#define PRUNERC_IR_SUPPORT_RNG_H_

#include "ir/support/hash.h"

#include <cstdint>

namespace prunerc {

/// A small splittable generator. Two Rngs with equal (seed, stream, index) give equal sequences.
class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0, uint64_t index = 0)
      : key_(hash_combine(hash_combine(mix64(seed), stream), index)) {}

  uint64_t next() { return mix64(key_ + (++counter_) * 0x9E3779B97F4A7C15ULL); }
  /// Uniform in [0, bound); bound >= 1. Rejects, so there is no modulo bias.
  uint64_t below(uint64_t bound) {
    const uint64_t limit = bound == 0 ? 0 : (~uint64_t{0} - bound + 1) % bound;
    uint64_t x = next();
    while (x < limit) x = next();
    return bound == 0 ? 0 : x % bound;
  }
  /// Uniform in [low, high], both included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low) + 1));
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  bool chance(double probability) { return uniform() < probability; }
  /// An independent generator, for a sub-task.
  Rng split(uint64_t stream) const { return Rng(key_, stream, counter_); }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_RNG_H_
