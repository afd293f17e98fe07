// Reference values of single elements against the interpreter, which computes all of them in
// another way.
#include "ir/interp/elements.h"

#include "ir/interp/bounded.h"
#include "ir/printer.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <set>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

// Compares every element that is worth it; returns how many had a bound of zero.
int compare(const Program& program, const std::vector<Tensor>& inputs, uint64_t seed) {
  INFO("seed " << seed << "\n" << print(program));
  const std::vector<Tensor> outputs = interpret_or_die(program, inputs);
  Result<ElementEvaluator> evaluator = ElementEvaluator::create(program, inputs);
  REQUIRE_OK(evaluator);
  Rng rng(seed);
  int num_exact = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    for (int64_t position : sample_positions(outputs[o].shape, 40, rng)) {
      const Result<Reference> reference = evaluator->element(static_cast<int>(o), position);
      REQUIRE_OK(reference);
      const double found = outputs[o].get(position);
      INFO("output " << o << " element " << position << ": interpreter " << found << ", reference "
                     << reference->value << " within " << reference->bound);
      REQUIRE(accepts(*reference, outputs[o].dtype, found));
      num_exact += reference->bound == 0 ? 1 : 0;
    }
  }
  return num_exact;
}

TEST_CASE("on whole numbers references are exact and equal to the interpreter's results") {
  GenPolicy policy;
  policy.transcendental = false;
  int num_exact = 0;
  for (int i = 0; i < num_cases(); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed, 2);
    const Program program = random_program(rng, policy);
    const std::vector<Tensor> inputs = random_inputs(program, rng);
    num_exact += compare(program, inputs, seed);
  }
  CHECK(num_exact > 1000);
}

TEST_CASE("on arbitrary numbers the interpreter's rounding stays within the bounds") {
  for (int i = 0; i < num_cases(); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    Rng rng(seed, 3);
    const Program program = random_program(rng);
    std::vector<Tensor> inputs = random_inputs(program, rng);
    for (Tensor& input : inputs) {
      if (is_float(input.dtype)) input = random_normal(input.dtype, input.shape, rng);
    }
    compare(program, inputs, seed);
  }
}

const char* const kMatmul = R"(
program matmul(A: f32[64, 128], B: f32[128, 64]) -> (C: f32[64, 64]) {
  for i in 64 { for j in 64 { for k in 128 {
    block "C" [vi: S(64) = i, vj: S(64) = j, vk: R(128) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
    }
  } } }
})";

TEST_CASE("a bound is tight enough to see one lost term in most sums") {
  const Program program = parse_or_die(kMatmul);
  Rng rng(4);
  const std::vector<Tensor> inputs = {random_normal(DType::kF32, {64, 128}, rng),
                                      random_normal(DType::kF32, {128, 64}, rng)};
  Result<ElementEvaluator> evaluator = ElementEvaluator::create(program, inputs);
  REQUIRE_OK(evaluator);
  int caught = 0;
  const int total = 200;
  for (int n = 0; n < total; ++n) {
    const int64_t position = rng.between(0, 64 * 64 - 1);
    const Result<Reference> reference = evaluator->element(0, position);
    REQUIRE_OK(reference);
    const int64_t k = rng.between(0, 127);
    const double lost =
        inputs[0].get(position / 64 * 128 + k) * inputs[1].get(k * 64 + position % 64);
    CHECK(accepts(*reference, DType::kF32, reference->value));
    caught += accepts(*reference, DType::kF32, reference->value - lost) ? 0 : 1;
  }
  CHECK(caught > total * 95 / 100);
}

TEST_CASE("decomposed reductions, concatenations and scans are followed to their producers") {
  const Program program = parse_or_die(R"(
program p(A: f32[4]) -> (S: f32[1], C: f32[8], P: f32[4]) {
  for i in 1 { block "zero" [v: S(1) = i] { S[v] = 0f32 } }
  for k in 4 { block "add" [v: S(1) = 0, r: R(4) = k] { S[v] = S[v] + A[r] } }
  for i in 4 { block "low" [v: S(4) = i] { C[v] = A[v] } }
  for i in 4 { block "high" [v: S(4) = i] { C[v + 4] = A[v]*2f32 } }
  for i in 4 { block "scan" [v: O(4) = i] { P[v] = A[v] + select(v > 0, P[v - 1], 0f32) } }
})");
  Rng rng(1);
  const std::vector<Tensor> inputs = {random_ints(DType::kF32, {4}, -9, 9, rng)};
  CHECK(compare(program, inputs, 1) == 1 + 8 + 4);
}

TEST_CASE("whole terms that are added to a fraction round") {
  const Program program = parse_or_die(R"(
program p(A: f32[64], b: f32[1]) -> (S: f32[1]) {
  for k in 64 { block "add" [v: S(1) = 0, r: R(64) = k] {
    init { S[v] = b[v] } S[v] = S[v] + A[r] } } })");
  Rng rng(5);
  const std::vector<Tensor> inputs = {random_ints(DType::kF32, {64}, 100, 999, rng),
                                      tensor_from(DType::kF32, {1}, [](int64_t) { return 0.1; })};
  CHECK(compare(program, inputs, 1) == 0);
}

TEST_CASE("a function that is not defined all around its argument may give anything") {
  for (const Intrinsic f : {Intrinsic::kRsqrt, Intrinsic::kLog}) {
    CHECK(std::isinf(call_bounded(f, DType::kF32, {1e-9, 0, 1e-8}, {}, {}).error));
    CHECK(std::isfinite(call_bounded(f, DType::kF32, {1e-9, 0, 1e-10}, {}, {}).error));
  }
}

TEST_CASE("what element evaluation cannot follow is refused") {
  const Tensor input = Tensor(DType::kF32, {8});
  const auto create = [&](const char* text) {
    return ElementEvaluator::create(parse_or_die(text), std::vector<Tensor>{input});
  };
  CHECK_DIAG(create("program p(A: f32[8]) -> (C: f32[8]) { for i in 8 { C[i] = A[i] } }"),
             Unsupported);
  CHECK_DIAG(create(R"(program p(A: f32[8]) -> (C: f32[8]) { for i in 2 { for j in 4 {
      block "c" [v: S(8) = i*4 + j] { C[v] = A[v] } } } })"),
             Unsupported);
  CHECK_DIAG(create(R"(program p(A: f32[8]) -> (C: f32[8]) { for i in 8 {
      block "c" [v: S(8) = i] { C[7 - v] = A[v] } } })"),
             Unsupported);
  CHECK_DIAG(create(R"(program p(A: f32[7]) -> (C: f32[7]) { for i in 7 {
      block "c" [v: S(7) = i] { C[v] = A[v] } } })"),
             InterpInput);
}

TEST_CASE("elements that are out of range, unwritten or undefined are refused") {
  const Program program = parse_or_die(R"(
program p(A: f32[8]) -> (C: f32[8]) {
  for i in 8 { block "c" [v: S(8) = i] where i < 6 { C[v] = A[v + 3] } }
})");
  const std::vector<Tensor> inputs = {Tensor(DType::kF32, {8})};
  Result<ElementEvaluator> evaluator = ElementEvaluator::create(program, inputs);
  REQUIRE_OK(evaluator);
  CHECK(evaluator->element(0, 4).ok());
  CHECK_DIAG(evaluator->element(0, 5), InterpOutOfBounds);
  CHECK_DIAG(evaluator->element(0, 6), InterpUninitialised);
  CHECK_DIAG(evaluator->element(0, 8), InterpOutOfBounds);
  CHECK_DIAG(evaluator->element(1, 0), InterpInput);
  CHECK(evaluator->element(0, 4).ok());  // a failure does not stick
  ElementOptions options;
  options.max_steps = 1;  // of all elements
  Result<ElementEvaluator> brief = ElementEvaluator::create(program, inputs, options);
  REQUIRE_OK(brief);
  CHECK(brief->element(0, 0).ok());
  CHECK_DIAG(brief->element(0, 1), InterpStepBudget);
}

TEST_CASE("sampled positions hold the corners and do not repeat") {
  Rng rng(9);
  const std::vector<int64_t> shape = {100, 70, 30};
  const std::vector<int64_t> positions = sample_positions(shape, 1000, rng);
  const std::set<int64_t> distinct(positions.begin(), positions.end());
  CHECK(positions.size() == 1000);
  CHECK(distinct.size() == 1000);
  CHECK(distinct.count(0) == 1);
  CHECK(distinct.count(100 * 70 * 30 - 1) == 1);
  CHECK(*distinct.rbegin() == 100 * 70 * 30 - 1);
  CHECK(sample_positions(std::vector<int64_t>{3}, 10, rng).size() == 3);
  CHECK(sample_positions({}, 10, rng).size() == 1);
}

TEST_CASE("non-finite references demand non-finite results") {
  CHECK(accepts({std::nan(""), 0, 1}, DType::kF32, std::nan("")));
  CHECK_FALSE(accepts({std::nan(""), 0, 1}, DType::kF32, 1.0));
  CHECK_FALSE(accepts({1.0, 0, 1}, DType::kF32, std::nan("")));
  CHECK_FALSE(accepts({1.0, 0, 1}, DType::kF32, HUGE_VAL));
  CHECK(accepts({HUGE_VAL, 0, 0}, DType::kF32, HUGE_VAL));
  CHECK_FALSE(accepts({HUGE_VAL, 0, 0}, DType::kF32, -HUGE_VAL));
}

}  // namespace
}  // namespace prunerc
