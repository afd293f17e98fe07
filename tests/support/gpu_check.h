// What kernels for a GPU are given, and whether what they give is right.
#ifndef PRUNERC_TESTS_SUPPORT_GPU_CHECK_H_
#define PRUNERC_TESTS_SUPPORT_GPU_CHECK_H_

#include "ir/interp/tensor.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/support/rng.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::testing {

/// Inputs of whole numbers, and the interpreter's outputs for them.
struct Expected {
  std::vector<ir::Tensor> inputs, outputs;
  /// The inputs as bytes; borrowed from them.
  std::vector<std::string_view> input_bytes() const;
};
/// Numbers up to `largest`: small ones keep sums exact, large ones are seldom equal. Errors: those
/// of the interpreter.
Result<Expected> expected_outputs(const ir::Program& program, uint64_t seed, int64_t largest = 3);

/// "" if the outputs are right: floats within what library functions and orders of sums make of
/// them, everything else exactly. Else the first difference.
std::string difference(const Expected& expected, const std::vector<std::string>& outputs);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_GPU_CHECK_H_
