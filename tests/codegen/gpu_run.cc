#include "tests/codegen/gpu_run.h"

#include "codegen/codegen.h"
#include "codegen/cuda/host_object.h"
#include "ir/interp/interpreter.h"
#include "ir/support/check.h"
#include "runtime/cuda_host/run.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace prunerc::testing {

using namespace ir;

namespace {

/// Library functions on the host and in the interpreter differ by a few units in the last place.
constexpr double kTolerance = 2e-5;
/// Of f16 and bf16: half a unit in the last place of the result, and of what went into it.
constexpr double kNarrowTolerance = 1e-2;

std::string first_difference(const Tensor& expected, const Tensor& got, std::size_t output) {
  const bool narrow = expected.dtype == DType::kF16 || expected.dtype == DType::kBF16;
  const double tolerance = narrow ? kNarrowTolerance : kTolerance;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double want = expected.get(i), have = got.get(i);
    const bool equal = is_float(expected.dtype)
                           ? want == have || (std::isnan(want) && std::isnan(have)) ||
                                 std::abs(want - have) <= tolerance * std::max(1.0, std::abs(want))
                           : expected.get_int(i) == got.get_int(i);
    if (!equal) return fmt::format("output {}, element {}: {}, not {}", output, i, have, want);
  }
  return "";
}

std::vector<Tensor> whole_numbers(const Program& program, Rng& rng) {
  std::vector<Tensor> inputs;
  for (BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.role != BufferRole::kInput) continue;
    const int64_t low = buffer.dtype == DType::kU8 || buffer.dtype == DType::kBool ? 0 : -3;
    const int64_t high = buffer.dtype == DType::kBool ? 1 : 3;
    inputs.push_back(random_ints(buffer.dtype, shape_of(buffer), low, high, rng));
  }
  return inputs;
}

std::string compare_outputs(const codegen::Artifact& object, const std::vector<Tensor>& inputs,
                            const std::vector<Tensor>& expected,
                            const runtime::cuda_host::ExecutionOptions& order) {
  std::vector<std::string_view> bytes;
  for (const Tensor& t : inputs) {
    bytes.emplace_back(reinterpret_cast<const char*>(t.data.data()), t.data.size());
  }
  const auto outputs = runtime::cuda_host::run_on_host(object, bytes, order);
  if (!outputs.ok()) return "run: " + outputs.error().message();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    Tensor got = expected[i];
    if (got.data.size() != (*outputs)[i].size()) return "an output of another size";
    std::memcpy(got.data.data(), (*outputs)[i].data(), got.data.size());
    std::string difference = first_difference(expected[i], got, i);
    if (!difference.empty()) {
      return fmt::format("{} ({}, {})", difference, to_string(order.order), to_string(order.mode));
    }
  }
  return "";
}

}  // namespace

Target gpu_target(std::string_view name) {
  const Result<Target> target = target_from_string(name);
  PRUNERC_CHECK(target.ok(), "a target of the table");
  return *target;
}

std::string compare_on_host(const Program& reference, const Program& scheduled,
                            const Target& target, uint64_t seed,
                            std::span<const runtime::cuda_host::ExecutionOptions> orders) {
  const Result<Program> lowered = codegen::lower_gpu(scheduled, target);
  if (!lowered.ok()) return "lower: " + lowered.error().message();
  return compare_lowered_on_host(reference, *lowered, target, seed, orders);
}

std::string compare_lowered_on_host(const Program& reference, const Program& lowered,
                                    const Target& target, uint64_t seed,
                                    std::span<const runtime::cuda_host::ExecutionOptions> orders) {
  Rng rng(seed);
  const std::vector<Tensor> inputs = whole_numbers(reference, rng);
  const Result<std::vector<Tensor>> expected = interpret(reference, inputs);
  if (!expected.ok()) return "interpreter: " + expected.error().message();
  const Result<codegen::Artifact> source = codegen::print_lowered_cuda(lowered, target, "k");
  if (!source.ok()) return "print: " + source.error().message();
  if (const Result<void> valid = codegen::validate(*source); !valid.ok()) {
    return "artifact: " + valid.error().message();
  }
  const Result<codegen::Artifact> object = codegen::build_host_object(*source, {});
  if (!object.ok()) return "build: " + object.error().message() + "\n" + source->bytes;
  for (const runtime::cuda_host::ExecutionOptions& order : orders) {
    const std::string difference = compare_outputs(*object, inputs, *expected, order);
    if (!difference.empty()) return difference + "\n" + source->bytes;
  }
  return "";
}

}  // namespace prunerc::testing
