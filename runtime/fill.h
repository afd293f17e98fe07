// Named ways to fill a tensor, the same bytes in every process: inputs need not travel to a worker.
#ifndef PRUNERC_RUNTIME_FILL_H_
#define PRUNERC_RUNTIME_FILL_H_

#include "ir/dtype.h"

#include <cstdint>

namespace prunerc::runtime {

enum class Fill : uint8_t {
  kUniform,   ///< floats in [-1, 1); integers in their small range [-8, 8]; bools fair
  kPositive,  ///< floats in [0, 1): sums without cancellation
  kSmallInt,  ///< integers in [-8, 8] ([0, 8] if unsigned), exact in every type
  kZero,
  kOne,
  kIota,   ///< element i is i modulo 251
  kBytes,  ///< given by the caller
};
inline constexpr int kNumFills = 7;

/// Writes `num_elems` elements of type `dtype`. An element depends on (fill, seed, its index) only.
/// kBytes writes zeros. Cost: about 3 ns an element.
void fill_tensor(Fill fill, uint64_t seed, ir::DType dtype, int64_t num_elems, void* data);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_FILL_H_
