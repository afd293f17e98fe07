// Reductions of tuples whose combination the block declares, or whose body gives it away.
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace prunerc::testing {
namespace {

// Count, mean and sum of squared differences of rows; the last target is stored first, since the
// others are needed.
std::string welford(const std::string& combine) {
  return R"(
program moments(X: f32[5, 24]) -> (N: f32[5], Mean: f32[5], M2: f32[5]) {
  for i in 5 @L0 { for k in 24 @L1 {
    block "moments" @B0 [vi: S(5) = i, vk: R(24) = k] {
      init { N[vi] = 0f32 Mean[vi] = 0f32 M2[vi] = 0f32 }
      )" +
         combine + R"(
      M2[vi] = M2[vi] + (X[vi, vk] - Mean[vi])*(X[vi, vk] - Mean[vi])*N[vi]/(N[vi] + 1f32)
      Mean[vi] = Mean[vi] + (X[vi, vk] - Mean[vi])/(N[vi] + 1f32)
      N[vi] = N[vi] + 1f32
  } } }
})";
}

const std::string kWelford = welford(
    "combine (n1, m1, s1), (n2, m2, s2) ->"
    " (n1 + n2, m1 + (m2 - m1)*n2/(n1 + n2), s1 + s2 + (m2 - m1)*(m2 - m1)*n1*n2/(n1 + n2))");

// One row of attention: largest score, sum of weights, weighted sum of value rows.
std::string attention(const std::string& combine, const std::string& row = "d") {
  return R"(
program attention(Q: f32[4, 24], V: f32[24, 3]) -> (M: f32[4], L: f32[4], O: f32[4, 3]) {
  for i in 4 @L0 { for k in 24 @L1 {
    block "row" @B0 [vi: S(4) = i, vk: R(24) = k] {
      reads Q[vi, vk], V[vk, 0 +: 3]
      writes M[vi], L[vi], O[vi, 0 +: 3]
      init { M[vi] = f32.ninf L[vi] = 0f32 for d in 3 @L2 { O[vi, d] = 0f32 } }
      )" +
         combine + R"(
      for d in 3 @L3 { O[vi, d] = O[vi, )" +
         row +
         R"(]*exp(M[vi] - max(M[vi], Q[vi, vk])) + exp(Q[vi, vk] - max(M[vi], Q[vi, vk]))*V[vk, d] }
      L[vi] = L[vi]*exp(M[vi] - max(M[vi], Q[vi, vk])) + exp(Q[vi, vk] - max(M[vi], Q[vi, vk]))
      M[vi] = max(M[vi], Q[vi, vk])
  } } }
})";
}

const std::string kAttention = attention(
    "combine (m1, l1, o1), (m2, l2, o2) -> (max(m1, m2),"
    " l1*exp(m1 - max(m1, m2)) + l2*exp(m2 - max(m1, m2)),"
    " o1*exp(m1 - max(m1, m2)) + o2*exp(m2 - max(m1, m2)))");

std::string pair(const std::string& body, const std::string& init = "S_[vi] = 0f32 Q[vi] = 0f32",
                 const std::string& type = "f32") {
  std::string text = R"(
program pair(X: TYPE[6, 24], Y: TYPE[6, 24]) -> (S_: TYPE[6], Q: TYPE[6]) {
  buffer T: TYPE[6] global
  for i in 6 @L0 { for k in 24 @L1 {
    block "pair" @B0 [vi: S(6) = i, vk: R(24) = k] {
      init { )" + init +
                     R"( }
      )" + body +
                     R"(
  } } }
})";
  for (std::size_t at; (at = text.find("TYPE")) != std::string::npos;) {
    text.replace(at, 4, type);
  }
  return text;
}

const std::string kSquares =
    pair("S_[vi] = S_[vi] + X[vi, vk] Q[vi] = Q[vi] + X[vi, vk]*X[vi, vk]");
// Neither part can be stored before the other is computed. Integers wrap, so products are exact.
const std::string kComplexBody =
    "T[vi] = S_[vi] S_[vi] = T[vi]*X[vi, vk] - Q[vi]*Y[vi, vk]"
    " Q[vi] = T[vi]*Y[vi, vk] + Q[vi]*X[vi, vk]";
const std::string kOne = "S_[vi] = 1f32 Q[vi] = 0f32";
const std::string kIntOne = "S_[vi] = 1i32 Q[vi] = 0i32";
const std::string kComplex = pair(kComplexBody, kIntOne, "i32");
const std::string kComplexDeclared =
    pair("combine (a, b), (c, d) -> (a*c - b*d, a*d + b*c)\n" + kComplexBody, kIntOne, "i32");

// Ways to cut the reduction; its parts are loops `first` and the next one.
std::vector<std::string> cuts(int first) {
  const std::string outer = "@L" + std::to_string(first);
  const std::string inner = "@L" + std::to_string(first + 1);
  return {
      "rfactor(@L1, 0)",
      "split(@L1, [4, 6])\nrfactor(" + inner + ", 1)",
      "split(@L1, [4, 6])\nrfactor(" + outer + ", -1)\nparallel(@L0)",
      "split(@L1, [-1, 7])\nrfactor(" + outer + ", -1)",
      "split(@L1, [4, 6])\nreorder([" + inner + ", @L0, " + outer + "])",
      "split(@L1, [4, 6])\nbind(@L0, \"block.x\")\nbind(" + inner + ", \"thread.x\")",
  };
}

// Applies the steps with each version verified; results are equal up to rounding for real inputs,
// and exactly in finite fields.
schedule::Schedule check_close(const std::string& program, std::string_view steps) {
  INFO(std::string(steps));
  const ir::Program base = parse_or_die(program);
  schedule::Schedule s(base, schedule::Verify::kEachStep);
  REQUIRE_OK(apply_steps(s, steps));
  INFO(print(s.program()));
  Rng rng(4);
  std::vector<ir::Tensor> inputs;
  for (const ir::BufferId id : base.params()) {
    const ir::Buffer& buffer = base.buffer(id);
    if (buffer.role != ir::BufferRole::kInput) continue;
    inputs.push_back(ir::random_normal(buffer.dtype, ir::shape_of(buffer), rng));
  }
  const std::vector<ir::Tensor> expected = interpret_or_die(base, inputs);
  const std::vector<ir::Tensor> found = interpret_or_die(s.program(), inputs);
  double furthest = 0;
  for (std::size_t output = 0; output < expected.size(); ++output) {
    for (int64_t i = 0; i < expected[output].num_elements(); ++i) {
      const double want = expected[output].get(i);
      const double apart = std::abs(want - found[output].get(i));
      furthest = std::max(furthest, apart / std::max(1.0, std::abs(want)));
    }
  }
  CHECK(furthest <= 1e-5);
  const ir::FpvVerdict verdict = ir::check_equivalent(base, s.program());
  INFO(to_string(verdict));
  CHECK(verdict.ok());
  return s;
}

TEST_CASE("declared combiners factor means and variances, and rows of attention") {
  for (const std::string& steps : cuts(2)) check_close(kWelford, steps);
  for (const std::string& steps : cuts(4)) check_close(kAttention, steps);
}

TEST_CASE("combiners are read off bodies that hold what one instance brings") {
  for (const std::string& program : {kSquares, kComplex, kComplexDeclared}) {
    for (const std::string& steps : cuts(2)) check_steps(program, steps);
  }
  // Squares by parts: the combination of results is a sum again, not a sum of squares.
  const std::string text =
      print(check_steps(kSquares, "split(@L1, [4, 6])\nrfactor(@L3, 1)").program());
  INFO(text);
  CHECK(text.find(" + Q_rf[") != std::string::npos);
  CHECK(text.find("*Q_rf[") == std::string::npos);
}

TEST_CASE("a result that is needed after it is stored is kept") {
  const std::string text = print(check_steps(kComplexDeclared, "rfactor(@L1, 0)").program());
  INFO(text);
  CHECK(text.find("buffer S__old: i32[6] local") != std::string::npos);
  CHECK(text.find("buffer T_rf: i32[24, 6]") != std::string::npos);
  // Both blocks say how they combine.
  CHECK(text.find("combine") != text.rfind("combine"));
}

TEST_CASE("the result of rfactor is a reduction that can be factored again") {
  check_close(kWelford, "split(@L1, [4, 6])\nrfactor(@L2, 0)\nrfactor(@L4, 0)");
  const std::string cut = "split(@L1, [4, 6])\nrfactor(@L4, 0)";
  const schedule::Schedule s = check_close(kAttention, cut);
  const auto parts = std::get<ir::LoopId>(s.trace().instructions.back().outputs.back());
  const std::string loop = "@L" + std::to_string(parts.value);
  check_close(kAttention, cut + "\nbind(" + loop + ", \"thread.x\")");
  check_steps(kSquares, "split(@L1, [4, 6])\nrfactor(@L2, 0)\nrfactor(@L4, 0)");
}

TEST_CASE("a combiner goes with the init that it starts from") {
  const std::string text = print(check_close(kWelford, "decompose_reduction(@B0, @L1)").program());
  INFO(text);
  CHECK(text.find("combine") == std::string::npos);
  check_rejected(kWelford, "decompose_reduction(@B0, @L1)\nrfactor(@L1, 0)", "BlockNoInit");
}

TEST_CASE("combiners that do not hold are refused, each with its reason") {
  const std::string other_mean = welford(
      "combine (n1, m1, s1), (n2, m2, s2) ->"
      " (n1 + n2, (m1 + m2)/2f32, s1 + s2 + (m2 - m1)*(m2 - m1)*n1*n2/(n1 + n2))");
  const std::string no_correction = welford(
      "combine (n1, m1, s1), (n2, m2, s2) ->"
      " (n1 + n2, m1 + (m2 - m1)*n2/(n1 + n2), s1 + s2)");
  const std::string no_rescaling = attention(
      "combine (m1, l1, o1), (m2, l2, o2) -> (max(m1, m2), l1 + l2,"
      " o1*exp(m1 - max(m1, m2)) + o2*exp(m2 - max(m1, m2)))");
  const std::string mixed = attention(
      "combine (m1, l1, o1), (m2, l2, o2) -> (max(m1, m2),"
      " l1*exp(m1 - max(m1, m2)) + l2*exp(m2 - max(m1, m2)) + o1 - o1, o1 + o2)");
  // Each element would need its neighbour.
  const std::string neighbours =
      attention(kAttention.substr(kAttention.find("combine"),
                                  kAttention.find("for d in 3 @L3") - kAttention.find("combine")),
                "2 - d");
  const std::string first = pair(
      "combine (a, b), (c, d) -> (a, b + d)\n"
      "S_[vi] = X[vi, vk] Q[vi] = Q[vi] + X[vi, vk]");
  const std::string from_one = pair(
      "combine (a, b), (c, d) -> (a + c, b + d)\n"
      "S_[vi] = S_[vi] + X[vi, vk] Q[vi] = Q[vi] + Y[vi, vk]",
      kOne);
  const std::string difference = pair(
      "combine (a, b), (c, d) -> (a - c, b + d)\n"
      "S_[vi] = S_[vi] - X[vi, vk] Q[vi] = Q[vi] + Y[vi, vk]");
  // A power of a power: each step is another's, so parts cannot be joined.
  const std::string horner = pair(
      "combine (a, b), (c, d) -> (a*d + c, b*d)\n"
      "S_[vi] = S_[vi]*Y[vi, vk] + X[vi, vk] Q[vi] = Q[vi]*Y[vi, vk]",
      "S_[vi] = 0f32 Q[vi] = 1f32");
  for (const std::string& program : {other_mean, no_correction, no_rescaling, mixed, neighbours,
                                     first, from_one, difference, horner}) {
    INFO(program);
    check_rejected(program, "rfactor(@L1, 0)", "ReducerForm");
    check_rejected(program, "reorder([@L1, @L0])", "BlockOrderFixed");
    check_rejected(program, "bind(@L1, \"thread.x\")", "BlockOrderFixed");
  }
}

TEST_CASE("bodies without a combiner that none can be read off are unknown") {
  const std::string no_step = kWelford.substr(0, kWelford.find("combine")) +
                              kWelford.substr(kWelford.find("M2[vi] = M2[vi] + (X"));
  const std::string horner = pair("S_[vi] = S_[vi]*Y[vi, vk] + X[vi, vk] Q[vi] = Q[vi]*Y[vi, vk]",
                                  "S_[vi] = 0f32 Q[vi] = 1f32");
  const std::string last = pair("S_[vi] = X[vi, vk] Q[vi] = Q[vi] + X[vi, vk]");
  for (const std::string& program : {no_step, horner, last}) {
    INFO(program);
    check_rejected(program, "rfactor(@L1, 0)", "ReducerUnknown");
    check_rejected(program, "reorder([@L1, @L0])", "BlockOrderFixed");
  }
}

}  // namespace
}  // namespace prunerc::testing
