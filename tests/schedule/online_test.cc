// online: a maximum and the sums under it in one pass.
#include "ir/fpv/fpv.h"
#include "ir/interp/interpreter.h"
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <regex>
#include <string>

namespace prunerc::testing {
namespace {

// Tiles c of rows i: M = max m, L = sum exp(m - M)*l, O = sum `term`, then `last`.
std::string combined(const std::string& term = "exp(m[ui, uc] - M[ui])/L[ui]*o[ui, uc, ue]",
                     const std::string& sum = "exp(m[wi, wc] - M[wi])*l[wi, wc]",
                     const std::string& between = "") {
  return R"(
program p(m: f32[5, 7], l: f32[5, 7], o: f32[5, 7, 3]) -> (O: f32[5, 3], R: f32[5]) {
  buffer M: f32[5] global
  buffer L: f32[5] global
  buffer T: f32[5] global
  for i in 5 @L0 { for c in 7 @L1 {
    block "M" @B0 [vi: S(5) = i, vc: R(7) = c] {
      init { M[vi] = f32.ninf } M[vi] = max(M[vi], m[vi, vc]) } } }
  for i in 5 @L2 { for c in 7 @L3 {
    block "L" @B1 [wi: S(5) = i, wc: R(7) = c] {
      init { L[wi] = 0f32 } L[wi] = L[wi] + )" +
         sum + R"( } } }
)" + between +
         R"(
  for i in 5 @L4 { for e in 3 @L5 { for c in 7 @L6 {
    block "O" @B2 [ui: S(5) = i, ue: S(3) = e, uc: R(7) = c] {
      init { O[ui, ue] = 0f32 } O[ui, ue] = O[ui, ue] + )" +
         term + R"( } } } }
  for i in 5 @L7 { block "R" @B3 [ri: S(5) = i] { R[ri] = M[ri] + L[ri] } }
})";
}

const std::string kOnline = "online(@B0)";

// With all maxima 0, so that every sum of whole numbers is exact.
std::string exact(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\b(m\[\w+, \w+\]))"), "$1*0f32");
}

TEST_CASE("online makes one pass of a maximum and of sums under it") {
  const Case cases[] = {
      {exact(combined("exp(m[ui, uc] - M[ui])/T[ui]*o[ui, uc, ue]", "exp(m[wi, wc] - M[wi])",
                      "for i in 5 { block \"T\" [ti: S(5) = i] { T[ti] = 4f32 } }")),
       kOnline, ""},
      {exact(combined("o[ui, uc, ue]*exp(m[ui, uc] - M[ui])")), kOnline, ""},
      {exact(combined("exp(m[ui, uc] - M[ui])")), kOnline, ""},
      {exact(combined("l[ui, uc]*(exp(m[ui, uc] - M[ui])*o[ui, uc, ue])/(l[ui, uc]*0f32 + 2f32)")),
       kOnline, ""},
      {exact(combined("exp(m[ui, uc] - M[ui])*o[ui, uc, ue]/2f32/(4f32/o[ui, uc, ue])",
                      "exp(m[wi, wc] - M[wi])", "")),
       kOnline, ""},
      // Another distance, another maximum, another axis; what is read twice.
      {combined("exp(m[ui, uc] + M[ui])*o[ui, uc, ue]"), kOnline, "BlockNotSimple"},
      {combined("exp(M[ui] - m[ui, uc])*o[ui, uc, ue]"), kOnline, "BlockNotSimple"},
      {combined("exp(l[ui, uc] - M[ui])*o[ui, uc, ue]"), kOnline, "BlockNotSimple"},
      {combined("exp(m[ui, 6 - uc] - M[ui])*o[ui, uc, ue]"), kOnline, "BlockNotSimple"},
      {combined("exp(m[ui, uc] - M[4 - ui])*o[ui, uc, ue]"), kOnline, "BlockNotSimple"},
      {combined("exp(m[ui, uc] - M[0])*o[ui, uc, ue]"), kOnline, "BlockNotSimple"},
      {combined("exp(m[ui, uc] - M[ui])*M[ui]"), kOnline, "BlockNotSimple"},
      {combined("exp(m[ui, uc] - M[ui])*exp(m[ui, uc] - M[ui])"), kOnline, "BlockNotSimple"},
      {combined("exp(m[ui, uc] - M[ui]) + o[ui, uc, ue]"), kOnline, "BlockNotSimple"},
      {combined("exp(m[ui, uc] - M[ui])*L[ui]"), kOnline, "BlockNotSimple"},
      // What is made in the pass is read in front of its last sum.
      {combined("exp(m[ui, uc] - M[ui])/T[ui]", "exp(m[wi, wc] - M[wi])",
                "for i in 5 { block \"T\" [ti: S(5) = i] { T[ti] = L[ti] } }"),
       kOnline, "BlockNotSimple"},
      {combined(), "split(@L1, [-1, 2])\nonline(@B0)", "BlockNotSimple"},
      {combined(), "parallel(@L4)\nonline(@B0)", "BlockNotSimple"},
      {combined(), "online(@B1)", "BlockNotSimple"},
      {combined(), "online(@B3)", "BlockNotSimple"},
      {combined(), "online(@B9)", "BlockNotFound"},
      {std::string(kMatmul), kOnline, "BlockNotSimple"},
  };
  for (const Case& c : cases) check(c);
}

ir::Program applied(const std::string& text, const std::string& steps = kOnline) {
  schedule::Schedule s(parse_or_die(text), schedule::Verify::kEachStep);
  REQUIRE_OK(apply_steps(s, steps));
  return s.program();
}

std::vector<ir::Tensor> random_rows() {
  Rng rng(3);
  return {ir::random_normal(ir::DType::kF32, {5, 7}, rng),
          ir::random_normal(ir::DType::kF32, {5, 7}, rng),
          ir::random_normal(ir::DType::kF32, {5, 7, 3}, rng)};
}

// "" if the outputs agree but for roundings; where one is no number the other is none.
std::string difference_of(const ir::Program& base, const ir::Program& other,
                          const std::vector<ir::Tensor>& inputs) {
  const std::vector<ir::Tensor> want = interpret_or_die(base, inputs);
  const std::vector<ir::Tensor> have = interpret_or_die(other, inputs);
  for (std::size_t t = 0; t < want.size(); ++t) {
    for (int64_t i = 0; i < want[t].num_elements(); ++i) {
      const double x = want[t].get(i), y = have[t].get(i);
      const bool same = std::isfinite(x)
                            ? std::abs(x - y) <= 1e-5 * std::max(1.0, std::abs(x))
                            : std::isnan(x) == std::isnan(y) && (std::isnan(x) || x == y);
      if (!same) return std::to_string(i) + ": " + std::to_string(x) + ", " + std::to_string(y);
    }
  }
  return "";
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("a pass begins with tiles that are masked, large or no numbers as the program did") {
  const ir::Program base = parse_or_die(combined());
  const ir::Program online = applied(combined());
  INFO(print(online));
  std::vector<ir::Tensor> inputs = random_rows();
  CHECK(difference_of(base, online, inputs) == "");
  // The first tiles of a row are hidden, all but the last, the last.
  for (const std::pair<int, int>& hidden : {std::pair(0, 3), std::pair(0, 6), std::pair(6, 7)}) {
    std::vector<ir::Tensor> masked = inputs;
    for (int c = hidden.first; c < hidden.second; ++c) masked[0].set(7 + c, -kInfinity);
    CHECK(difference_of(base, online, masked) == "");
  }
  for (const double value : {-kInfinity, kInfinity, std::nan(""), 3e38, -3e38}) {
    std::vector<ir::Tensor> all = inputs, one = inputs;
    for (int c = 0; c < 7; ++c) all[0].set(c, value);
    one[0].set(2, value);
    CAPTURE(value);
    CHECK(difference_of(base, online, all) == "");
    if (!std::isnan(value)) CHECK(difference_of(base, online, one) == "");
  }
}

TEST_CASE("a pass with a fault in its rescaling is another program in finite fields") {
  const ir::Program base = parse_or_die(combined());
  const std::string right = print(applied(combined()));
  CHECK(ir::check_equivalent(base, parse_or_die(right)).ok());
  const std::pair<const char*, const char*> faults[] = {
      {"*M_kept[", "*M_added["},
      {"exp(M[vi] - max(", "exp(m[vi, vc] - max("},
      {"exp(M[vi] - max(M[vi], m[vi, vc]))", "1f32"},
      {"L_online[vi] = L_online[vi]*M_kept[vi] + ", "L_online[vi] = L_online[vi] + "},
      {"M[vi] = max(M[vi], m[vi, vc])", "M[vi] = m[vi, vc]"},
  };
  for (const auto& [from, to] : faults) {
    INFO(right);
    CAPTURE(from, to);
    REQUIRE(right.find(from) != std::string::npos);
    CHECK_FALSE(ir::check_equivalent(base, parse_or_die(replaced(right, from, to))).ok());
  }
}

TEST_CASE("what runs in one pass is a reduction like others") {
  const ir::Program base = parse_or_die(combined());
  for (const char* steps :
       {"online(@B0)\nsplit(@L9, [-1, 3])\nrfactor(@L15, 0)", "online(@B0)\nparallel(@L8)",
        "online(@B0)\ndecompose_reduction(@B4, @L9)", "online(@B0)\ncompute_inline(@B5)"}) {
    CAPTURE(steps);
    schedule::Schedule s(base, schedule::Verify::kEachStep);
    const Result<void> done = apply_steps(s, steps);
    INFO(print(s.program()));
    REQUIRE_OK(done);
    CHECK(difference_of(base, s.program(), random_rows()) == "");
  }
}

}  // namespace
}  // namespace prunerc::testing
