// Reductions of tuples: argmax and online softmax are split, reordered, factored and combined by
// threads.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace prunerc::testing {
namespace {

std::string arg_best(const std::string& body, const std::string& init) {
  return R"(
program best(X: f32[6, 24]) -> (P: i64[6]) {
  buffer V: f32[6] global
  for i in 6 @L0 { for k in 24 @L1 {
    block "P" @B0 [vi: S(6) = i, vk: R(24) = k] {
      init { )" +
         init + R"( }
      )" +
         body + R"(
  } } }
})";
}

const std::string kNothing = "P[vi] = -1 V[vi] = f32.ninf";
const std::string kArgmax = arg_best(
    "P[vi] = select(P[vi] < 0 || (V[vi] < X[vi, vk] || X[vi, vk] == V[vi] && vk < P[vi]), vk, "
    "P[vi])"
    " V[vi] = max(V[vi], X[vi, vk])",
    kNothing);
const std::string kArgmin = arg_best(
    "P[vi] = select(P[vi] < 0 || (X[vi, vk] < V[vi] || X[vi, vk] == V[vi] && vk < P[vi]), vk, "
    "P[vi])"
    " V[vi] = min(V[vi], X[vi, vk])",
    "P[vi] = -1 V[vi] = f32.inf");
// Only some positions count.
const std::string kSome = arg_best(
    "P[vi] = select(X[vi, vk] < 2f32 && (P[vi] < 0 || (V[vi] < X[vi, vk] || X[vi, vk] == V[vi] && "
    "vk < P[vi])), vk, P[vi])"
    " V[vi] = select(X[vi, vk] < 2f32, max(V[vi], X[vi, vk]), V[vi])",
    kNothing);
// The last one of equal values: depends on the order.
const std::string kLast = arg_best(
    "P[vi] = select(P[vi] < 0 || V[vi] <= X[vi, vk], vk, P[vi]) V[vi] = max(V[vi], X[vi, vk])",
    kNothing);
// The value is updated before the position looks at it.
const std::string kSwapped = arg_best(
    "V[vi] = max(V[vi], X[vi, vk])"
    " P[vi] = select(P[vi] < 0 || (V[vi] < X[vi, vk] || X[vi, vk] == V[vi] && vk < P[vi]), vk, "
    "P[vi])",
    kNothing);
// Where all values are -inf the first position counts as taken: no known form, but it combines.
const std::string kFromZero = arg_best(
    "P[vi] = select(P[vi] < 0 || (V[vi] < X[vi, vk] || X[vi, vk] == V[vi] && vk < P[vi]), vk, "
    "P[vi])"
    " V[vi] = max(V[vi], X[vi, vk])",
    "P[vi] = 0 V[vi] = f32.ninf");

TEST_CASE("argmax and argmin are reductions like others") {
  for (const std::string& program : {kArgmax, kArgmin, kSome, kFromZero}) {
    for (const std::string_view steps : {
             "rfactor(@L1, 0)",
             "split(@L1, [4, 6])\nrfactor(@L3, 1)",
             "split(@L1, [4, 6])\nrfactor(@L2, -1)",
             "split(@L1, [-1, 7])\nrfactor(@L2, 0)",
             "split(@L1, [4, 6])\nreorder([@L3, @L0, @L2])",
             "split(@L1, [4, 6])\nrfactor(@L3, 1)\nparallel(@L0)",
             "split(@L1, [4, 6])\nrfactor(@L2, 0)\nparallel(@L2)",
             "decompose_reduction(@B0, @L1)",
             "bind(@L0, \"block.x\")\nsplit(@L1, [4, 6])\nbind(@L3, \"thread.x\")",
         }) {
      check_steps(program, steps);
    }
  }
}

TEST_CASE("rfactor of a tuple makes a partial buffer for each part") {
  const schedule::Schedule s = check_steps(kArgmax, "split(@L1, [4, 6])\nrfactor(@L3, 1)");
  const std::string text = print(s.program());
  INFO(text);
  CHECK(text.find("buffer P_rf: i64[6, 6]") != std::string::npos);
  CHECK(text.find("buffer V_rf: f32[6, 6]") != std::string::npos);
  CHECK(text.find("select(0 <= P_rf[") != std::string::npos);
}

TEST_CASE("tuples that depend on the order are refused") {
  for (const std::string& program : {kLast, kSwapped}) {
    check_rejected(program, "rfactor(@L1, 0)", "ReducerUnknown");
    check_rejected(program, "bind(@L1, \"thread.x\")", "BlockOrderFixed");
    check_rejected(program, "reorder([@L1, @L0])", "BlockOrderFixed");
  }
  check_rejected(kArgmax, "rfactor(@L0, 0)", "LoopNotReduction");
  check_rejected(kArgmax, "rfactor(@L1, 3)", "AxisRange");
  check_rejected(kArgmax, "decompose_reduction(@B0, @L1)\nrfactor(@L1, 0)", "BlockNoInit");
  check_rejected(kArgmax, "parallel(@L1)", "BlocksDepend");
}

// Rows of sum of exp(x - max) under the maximum so far.
constexpr std::string_view kOnlineSoftmax = R"(
program online(X: f32[5, 24], W: f32[24]) -> (S_: f32[5], M: f32[5]) {
  for i in 5 @L0 { for k in 24 @L1 {
    block "S" @B0 [vi: S(5) = i, vk: R(24) = k] {
      init { S_[vi] = 0f32 M[vi] = f32.ninf }
      S_[vi] = S_[vi]*exp(M[vi] - max(M[vi], X[vi, vk])) + W[vk]*exp(X[vi, vk] - max(M[vi], X[vi, vk]))
      M[vi] = max(M[vi], X[vi, vk])
  } } }
})";

TEST_CASE("online softmax is factored up to rounding") {
  const ir::Program base = parse_or_die(kOnlineSoftmax);
  for (const std::string_view steps :
       {"rfactor(@L1, 0)", "split(@L1, [4, 6])\nrfactor(@L3, 1)",
        "split(@L1, [-1, 7])\nrfactor(@L2, 0)",
        "split(@L1, [4, 6])\nrfactor(@L3, 1)\nbind(@L0, \"block.x\")"}) {
    schedule::Schedule s(base, schedule::Verify::kEachStep);
    REQUIRE_OK(apply_steps(s, steps));
    INFO(print(s.program()));
    Rng rng(4);
    const std::vector<ir::Tensor> inputs = {ir::random_normal(ir::DType::kF32, {5, 24}, rng),
                                            ir::random_normal(ir::DType::kF32, {24}, rng)};
    const std::vector<ir::Tensor> expected = interpret_or_die(base, inputs);
    const std::vector<ir::Tensor> found = interpret_or_die(s.program(), inputs);
    for (int64_t i = 0; i < 5; ++i) {
      for (const std::size_t output : {0u, 1u}) {
        const double want = expected[output].get(i);
        const double have = found[output].get(i);
        CHECK(std::abs(want - have) <= 1e-5 * std::max(1.0, std::abs(want)));
      }
    }
  }
}

// The same with the factor of the rescaling in a buffer, which another block may read.
std::string with_scratch(const std::string& results, const std::string& last) {
  return "program online(X: f32[5, 24], W: f32[24]) -> (S_: f32[5], M: f32[5], " + results + R"(
  for i in 5 @L0 { for k in 24 @L1 {
    block "S" @B0 [vi: S(5) = i, vk: R(24) = k] {
      init { S_[vi] = 0f32 M[vi] = f32.ninf }
      F[vi] = exp(M[vi] - max(M[vi], X[vi, vk]))
      S_[vi] = S_[vi]*F[vi] + W[vk]*exp(X[vi, vk] - max(M[vi], X[vi, vk]))
      M[vi] = max(M[vi], X[vi, vk])
  } } }
  )" + last +
         "\n}";
}

TEST_CASE("what a tuple stores on its way is its own where instances run in another order") {
  const std::string results = "R: f32[5]) { buffer F: f32[5] global";
  const auto copied = [&](const std::string& value) {
    return with_scratch(
        results, "for i in 5 @L2 { block \"R\" @B1 [ri: S(5) = i] { R[ri] = " + value + " } }");
  };
  const std::string own = copied("M[ri]"), read = copied("F[ri]");
  const std::string output = with_scratch("F: f32[5]) {", "");
  for (const char* steps : {"rfactor(@L1, 0)", "reorder([@L1, @L0])", "bind(@L1, \"thread.x\")",
                            "split(@L1, [4, 6])\nreorder([@L4, @L3])"}) {
    CAPTURE(steps);
    schedule::Schedule s(parse_or_die(own), schedule::Verify::kEachStep);
    REQUIRE_OK(apply_steps(s, steps));
    check_rejected(read, steps, "BlockOrderFixed");
  }
  check_rejected(output, "rfactor(@L1, 0)", "BlockOrderFixed");
  check_rejected(output, "bind(@L1, \"thread.x\")", "BlockOrderFixed");
  // The last instance's value stays.
  check_steps(read, "decompose_reduction(@B0, @L1)");
  check_steps(read, "bind(@L0, \"block.x\")");
}

}  // namespace
}  // namespace prunerc::testing
