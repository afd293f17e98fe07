#include "tests/support/gpu_check.h"

#include "ir/interp/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace prunerc::testing {

using namespace ir;

namespace {

/// Library functions on the host and in the interpreter differ by a few units in the last place.
constexpr double kTolerance = 1e-4;
/// Of f16 and bf16: a unit in the last place of the result, and of what went into it.
constexpr double kNarrowTolerance = 2e-2;

constexpr int64_t kLargestByte = 100;

std::string first_difference(const Tensor& want, const Tensor& got, std::size_t output) {
  const bool narrow = want.dtype == DType::kF16 || want.dtype == DType::kBF16;
  const double tolerance = narrow ? kNarrowTolerance : kTolerance;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double a = want.get(i), b = got.get(i);
    const bool equal = is_float(want.dtype)
                           ? a == b || (std::isnan(a) && std::isnan(b)) ||
                                 std::abs(a - b) <= tolerance * std::max(1.0, std::abs(a))
                           : want.get_int(i) == got.get_int(i);
    if (!equal) return fmt::format("output {}, element {}: {}, not {}", output, i, b, a);
  }
  return "";
}

}  // namespace

std::vector<std::string_view> Expected::input_bytes() const {
  std::vector<std::string_view> out;
  for (const Tensor& t : inputs) {
    out.emplace_back(reinterpret_cast<const char*>(t.data.data()), t.data.size());
  }
  return out;
}

Result<Expected> expected_outputs(const Program& program, uint64_t seed, int64_t largest) {
  Expected out;
  Rng rng(seed);
  for (BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.role != BufferRole::kInput) continue;
    const bool is_unsigned = buffer.dtype == DType::kU8 || buffer.dtype == DType::kBool;
    const int64_t high = buffer.dtype == DType::kBool   ? 1
                         : byte_size(buffer.dtype) == 1 ? std::min(largest, kLargestByte)
                                                        : largest;
    out.inputs.push_back(
        random_ints(buffer.dtype, shape_of(buffer), is_unsigned ? 0 : -high, high, rng));
  }
  PRUNERC_TRY(out.outputs, interpret(program, out.inputs));
  return out;
}

std::string difference(const Expected& expected, const std::vector<std::string>& outputs) {
  if (outputs.size() != expected.outputs.size()) return "another number of outputs";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Tensor got = expected.outputs[i];
    if (got.data.size() != outputs[i].size()) return "an output of another size";
    std::memcpy(got.data.data(), outputs[i].data(), outputs[i].size());
    std::string what = first_difference(expected.outputs[i], got, i);
    if (!what.empty()) return what;
  }
  return "";
}

}  // namespace prunerc::testing
