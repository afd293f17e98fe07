// rescale: weights of tiles that need nothing of other tiles.
#include "ir/equal.h"
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
#include <vector>

namespace prunerc::testing {
namespace {

const std::string kX = "X[vi, vc, vs]";
const std::string kWeight = "f16(exp(X[pi, pc, ps] - M[pi]))";
const std::string kSum = "f32(P[ti, tc, ts])";
const std::string kAll = "T[li, lc]";

// Rows i of 12 elements in tiles c: N the maximum of a tile, M of all, P weights; T = sum `sum` of a tile, L = sum `all`
// over tiles; U and O the same with Y.
std::string tiled(const std::string& x = kX, const std::string& weight = kWeight,
                  const std::string& sum = kSum, const std::string& all = kAll) {
  return R"(
program p(X: f32[5, 3, 4], Y: f32[5, 3, 4, 2]) -> (L: f32[5], O: f32[5, 2]) {
  buffer N: f32[5, 3] global
  buffer M: f32[5] global
  buffer P: f16[5, 3, 4] global
  buffer T: f32[5, 3] global
  buffer U: f32[5, 3, 2] global
  for i in 5 @L0 { for c in 3 @L1 { for s in 4 @L2 {
    block "N" @B0 [vi: S(5) = i, vc: S(3) = c, vs: R(4) = s] {
      init { N[vi, vc] = f32.ninf } N[vi, vc] = max(N[vi, vc], )" +
         x + R"() } } } }
  for i in 5 @L3 { for c in 3 @L4 {
    block "M" @B1 [mi: S(5) = i, mc: R(3) = c] {
      init { M[mi] = f32.ninf } M[mi] = max(M[mi], N[mi, mc]) } } }
  for i in 5 @L5 { for c in 3 @L6 { for s in 4 @L7 {
    block "P" @B2 [pi: S(5) = i, pc: S(3) = c, ps: S(4) = s] { P[pi, pc, ps] = )" +
         weight + R"( } } } }
  for i in 5 @L8 { for c in 3 @L9 { for s in 4 @L10 {
    block "T" @B3 [ti: S(5) = i, tc: S(3) = c, ts: R(4) = s] {
      init { T[ti, tc] = 0f32 } T[ti, tc] = T[ti, tc] + )" +
         sum + R"( } } } }
  for i in 5 @L11 { for c in 3 @L12 {
    block "L" @B4 [li: S(5) = i, lc: R(3) = c] {
      init { L[li] = 0f32 } L[li] = L[li] + )" +
         all + R"( } } }
  for i in 5 @L13 { for c in 3 @L14 { for e in 2 @L15 { for s in 4 @L16 {
    block "U" @B5 [ui: S(5) = i, uc: S(3) = c, ue: S(2) = e, us: R(4) = s] {
      init { U[ui, uc, ue] = 0f32 }
      U[ui, uc, ue] = U[ui, uc, ue] + f32(P[ui, uc, us])*Y[ui, uc, us, ue] } } } } }
  for i in 5 @L17 { for e in 2 @L18 { for c in 3 @L19 {
    block "O" @B6 [oi: S(5) = i, oe: S(2) = e, oc: R(3) = c] {
      init { O[oi, oe] = 0f32 } O[oi, oe] = O[oi, oe] + U[oi, oc, oe] } } } }
})";
}

// Weights are hidden where `shown` does not hold of i, c, s.
std::string masked(const std::string& shown) {
  const auto in = [&](const std::string& block) {
    return std::regex_replace(shown, std::regex(R"(\b([ics])\b)"), block + "$1");
  };
  return tiled("select(" + in("v") + ", " + kX + ", f32.ninf)",
               "select(" + in("p") + ", " + kWeight + ", 0f16)");
}

const std::string kRescale = "rescale(@B2)";

// With all maxima 0, so that every sum of whole numbers is exact.
std::string exact(const std::string& text) {
  return std::regex_replace(text, std::regex(R"((X\[\w+, \w+, \w+\]))"), "$1*0f32");
}

std::string unrounded(const std::string& text) {
  return std::regex_replace(text, std::regex("f16"), "f32");
}

std::string edited(const std::string& from, const std::string& to) {
  return replaced(tiled(), from, to);
}

// Tiles come first.
std::string turned() {
  const std::string text = edited("buffer N: f32[5, 3]", "buffer N: f32[3, 5]");
  return replaced(std::regex_replace(text, std::regex(R"(N\[vi, vc\])"), "N[vc, vi]"), "N[mi, mc]",
                  "N[mc, mi]");
}

TEST_CASE("rescale gives weights their tile's maximum, whatever sums have beside them") {
  const Case cases[] = {
      {exact(tiled()), kRescale, ""},
      {exact(unrounded(tiled())), kRescale, ""},
      {std::regex_replace(exact(tiled()), std::regex("f32"), "f64"), kRescale, ""},
      {exact(turned()), kRescale, ""},
      {exact(tiled(kX, kWeight, "3f32*f32(P[ti, tc, ts])/2f32",
                   "T[li, lc]*(Y[li, lc, 0, 1]*T[0, 0]*0f32 + 4f32)")),
       kRescale, "BlockNotSimple"},
      {exact(tiled(kX, kWeight, "3f32*f32(P[ti, tc, ts])/2f32", "4f32*T[li, lc]*Y[li, lc, 0, 1]")),
       kRescale, ""},
      {exact(masked("c*4 + s <= i*2")), kRescale, ""},
      {exact(masked("c*4 + s >= i")), kRescale, ""},
      {exact(masked("c*4 + s <= i && i < c*4 + s + 2")), kRescale, ""},
      {exact(tiled("select(vs <= vi, X[vi, vc, vs], f32.ninf)",
                   "f16(exp(select(ps <= pi, X[pi, pc, ps], f32.ninf) - M[pi]))")),
       kRescale, ""},
      {tiled(), "rescale(@B9)", "BlockNotFound"},
      {replaced(edited("buffer P: f16[5, 3, 4] global", ""), "O: f32[5, 2])",
                "O: f32[5, 2], P: f16[5, 3, 4])"),
       kRescale, "BufferNotIntermediate"},
      {replaced(edited("buffer T: f32[5, 3] global", ""), "O: f32[5, 2])",
                "O: f32[5, 2], T: f32[5, 3])"),
       kRescale, "BufferNotIntermediate"},
      {edited("  for i in 5 @L8",
              "  for i in 5 { block \"Q\" [qi: S(5) = i] { P[qi, 0, 0] = 0f16 } }\n"
              "  for i in 5 @L8"),
       kRescale, "BufferManyWriters"},
      {edited("  for i in 5 @L11",
              "  for i in 5 { block \"Q\" [qi: S(5) = i] { T[qi, 0] = 0f32 } }\n"
              "  for i in 5 @L11"),
       kRescale, "BufferManyWriters"},
  };
  for (const Case& c : cases) check(c);
}

// Refused with BlockNotSimple: "block .. must <message>".
struct Refusal {
  std::string program, message;
  std::string steps = kRescale;
};

void check_refused(const std::vector<Refusal>& refusals) {
  for (const Refusal& r : refusals) {
    INFO(r.program);
    check_rejected(r.program, r.steps, "BlockNotSimple");
    schedule::Schedule s(parse_or_die(r.program));
    const Result<void> done = apply_steps(s, r.steps);
    REQUIRE_FALSE(done.ok());
    CAPTURE(r.steps, r.message, done.error().message());
    CHECK(done.error().message().find(r.message) != std::string::npos);
  }
}

TEST_CASE("rescale refuses what is no weight under the maximum over tiles") {
  const auto weight = [](const std::string& text) { return tiled(kX, text); };
  const std::string other = "have in its exponents what its tile's maximum is of";
  const std::string form = "store exp(x - maximum), rounded at most";
  const std::string no_tiles = "subtract what one block makes of what one makes in each tile";
  check_refused({
      {weight("f16(exp(X[pi, pc, ps] + M[pi]))"), form},
      {weight("f16(exp(X[pi, pc, ps] - M[pi])*2f32)"), form},
      {weight("f16(f32(i8(exp(X[pi, pc, ps] - M[pi]))))"), form},
      {weight("f16(exp(M[pi] - X[pi, pc, ps]))"), no_tiles},
      {weight("f16(exp(X[pi, pc, ps] - M[4 - pi]))"), other},
      {weight("f16(exp(X[pi, pc, ps] - M[0]))"), other},
      {weight("f16(exp(X[pi, pc, 3 - ps] - M[pi]))"), other},
      {weight("f16(exp(X[pi, 2 - pc, ps] - M[pi]))"), other},
      {weight("f16(exp(X[pi, pc, ps]*2f32 - M[pi]))"), other},
      {weight("f16(exp(X[pi, pc, ps] - M[pi] - M[pi]))"), "read the maximum in one exponent only"},
      {weight("select(M[pi] < 1f32, " + kWeight + ", 0f16)"),
       "read the maximum in one exponent only"},
      {weight("select(ps < 2, " + kWeight + ", 1f16)"), "be 0 where weights are hidden"},
      {edited("max(M[mi], N[mi, mc])", "max(M[mi], N[mi, mc]*2f32)"),
       "be the maximum over tiles of what each of them has"},
      {edited("max(M[mi], N[mi, mc])", "max(M[mi], N[mi, 2 - mc])"),
       "be the maximum over tiles of what each of them has"},
      {edited("max(M[mi], N[mi, mc])", "max(M[mi], X[mi, mc, 0])"),
       "be the maximum over tiles of what each of them has"},
      {replaced(edited("@L3 { for c in 3", "@L3 { for c in 2"), "mc: R(3)", "mc: R(2)"), other},
      {edited("N[vi, vc] = f32.ninf", "N[vi, vc] = 0f32"), "of floats from its identity on"},
      {edited("M[mi] = f32.ninf", "M[mi] = 0f32"), "of floats from its identity on"},
      {tiled(), "have its own loops alone", "split(@L6, [-1, 3])\nrescale(@B2)"},
      {tiled(), "have its own loops alone", "parallel(@L0)\nrescale(@B2)"},
      {tiled(), "have no attributes", "annotate_block(@B2, \"note\", 3)\nrescale(@B2)"},
      {tiled(), "have spatial variables only", "rescale(@B3)"},
      {std::string(kMatmul), "have spatial variables only", "rescale(@B0)"},
  });
}

TEST_CASE("rescale refuses rows that may be hidden whole, and maxima of other elements") {
  const std::string other = "have in its exponents what its tile's maximum is of";
  const std::string hidden = "show some weight of each row";
  const std::string shown = "select(pc <= pi, " + kWeight + ", 0f16)";
  check_refused({
      {masked("c*4 + s < i"), hidden},
      {masked("c*4 + s > i + 8"), hidden},
      {masked("Y[i, c, s, 0] < 0f32"), hidden},
      {tiled("select(Y[vi, vc, vs, 1] < 0f32, " + kX + ", f32.ninf)",
             "select(Y[pi, pc, ps, 1] < 0f32, " + kWeight + ", 0f16)"),
       hidden},
      {tiled(kX, "select(Y[pi, pc, ps, 1] < 0f32, " + kWeight + ", 0f16)"), other},
      // The maximum is of what is hidden, too.
      {tiled(kX, shown), other},
      // The maximum knows less than is shown.
      {tiled("select(vc <= vi, " + kX + ", f32.ninf)"), other},
      {tiled("select(vc < vi, " + kX + ", f32.ninf)", shown), other},
      {tiled("select(vc <= vi, " + kX + ", 0f32)", shown), other},
  });
}

TEST_CASE("rescale refuses weights and sums of tiles that are read in another way") {
  const std::string one_weight = "add up products with one weight";
  const std::string one_sum = "add up products with one sum of a tile";
  const std::string tiles = "add up all tiles of a row";
  const std::string no_sum = "be a sum of floats from its identity on";
  const auto sum = [](const std::string& text) { return tiled(kX, kWeight, text); };
  const auto all = [](const std::string& text) { return tiled(kX, kWeight, kSum, text); };
  const std::string across = std::regex_replace(
      replaced(edited("tc: S(3) = c, ts: R(4) = s", "tc: R(3) = c, ts: S(4) = s"),
               "L11 { for c in 3", "L11 { for c in 4"),
      std::regex(R"(T\[ti, tc\])"), "T[ti, ts]");
  check_refused({
      {sum("f32(P[ti, tc, ts])*f32(P[ti, tc, ts])"), one_weight},
      {sum("(f32(P[ti, tc, ts]) + 1f32)"), one_weight},
      {sum("1f32/(f32(P[ti, tc, ts]) + 1f32)"), one_weight},
      {sum("select(ts < 2, f32(P[ti, tc, ts]), 0f32)"), one_weight},
      {sum("f32(P[ti, tc, 3 - ts])"), "add up all weights of a row in one tile"},
      {sum("f32(P[ti, 0, ts])"), "add up all weights of a row in one tile"},
      {replaced(replaced(across, "lc: R(3)", "lc: R(4)"), "buffer T: f32[5, 3]",
                "buffer T: f32[5, 4]"),
       "add up all weights of a row in one tile"},
      {all("T[li, lc]*T[li, lc]"), one_sum},
      {all("exp(T[li, lc])"), one_sum},
      {all("2f32/T[li, lc]"), one_sum},
      {edited("O[oi, oe] + U[oi, oc, oe]",
              "O[oi, oe] + U[oi, oc, max(0, min(1, i64(U[oi, oc, 0])))]"),
       one_sum},
      {all("T[li, 2 - lc]"), tiles},
      {all("T[li, 0]"), tiles},
      {replaced(edited("@L11 { for c in 3", "@L11 { for c in 2"), "lc: R(3)", "lc: R(2)"), tiles},
      {edited(
           "  for i in 5 @L11",
           "  for i in 5 { block \"Q\" [qi: S(5) = i] { L[qi] = T[qi, 0] } }\n  for i in 5 @L11"),
       no_sum},
      {replaced(edited("  for i in 5 @L11",
                       "  for i in 5 { block \"Q\" [qi: S(5) = i] { "
                       "R[qi] = f32(P[qi, 0, 0]) } }\n  for i in 5 @L11"),
                "O: f32[5, 2])", "O: f32[5, 2], R: f32[5])"),
       no_sum},
      {edited("T[ti, tc] = 0f32", "T[ti, tc] = 1f32"), no_sum},
      {edited("L[li] = 0f32", "L[li] = 1f32"), no_sum},
      {tiled(), "have its own loops alone", "split(@L10, [-1, 2])\nrescale(@B2)"},
      {tiled(), "have its own loops alone", "split(@L12, [-1, 3])\nrescale(@B2)"},
  });
}

ir::Program applied(const std::string& text, const std::string& steps = kRescale) {
  schedule::Schedule s(parse_or_die(text), schedule::Verify::kEachStep);
  REQUIRE_OK(apply_steps(s, steps));
  return s.program();
}

std::vector<ir::Tensor> random_rows() {
  Rng rng(3);
  return {ir::random_normal(ir::DType::kF32, {5, 3, 4}, rng),
          ir::random_normal(ir::DType::kF32, {5, 3, 4, 2}, rng)};
}

// "" if the outputs agree but for so much of them; where one is no number the other is none.
std::string difference_of(const ir::Program& base, const ir::Program& other,
                          const std::vector<ir::Tensor>& inputs, double part = 1e-5) {
  const std::vector<ir::Tensor> want = interpret_or_die(base, inputs);
  const std::vector<ir::Tensor> have = interpret_or_die(other, inputs);
  for (std::size_t t = 0; t < want.size(); ++t) {
    for (int64_t i = 0; i < want[t].num_elements(); ++i) {
      const double x = want[t].get(i), y = have[t].get(i);
      const bool same = std::isfinite(x)
                            ? std::abs(x - y) <= part * std::max(1.0, std::abs(x))
                            : std::isnan(x) == std::isnan(y) && (std::isnan(x) || x == y);
      if (!same) return std::to_string(i) + ": " + std::to_string(x) + ", " + std::to_string(y);
    }
  }
  return "";
}

TEST_CASE(
    "rescaled weights have the sums of before, where tiles are hidden, large or no numbers, too") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const std::string& text : {tiled(), masked("c*4 + s <= i*2"), masked("c*4 + s >= i")}) {
    const ir::Program base = parse_or_die(unrounded(text));
    const ir::Program rescaled = applied(unrounded(text));
    INFO(print(rescaled));
    std::vector<ir::Tensor> inputs = random_rows();
    CHECK(difference_of(base, rescaled, inputs) == "");
    // Tiles of two rows, the first, the last, and all of them.
    for (const std::pair<int, int>& part : {std::pair(0, 4), std::pair(8, 12), std::pair(0, 12)}) {
      for (const double value : {-kInfinity, -3e38, 3e38, kInfinity, std::nan("")}) {
        std::vector<ir::Tensor> other = inputs;
        for (const int row : {1, 4}) {
          for (int s = part.first; s < part.second; ++s) other[0].set(row * 12 + s, value);
        }
        CAPTURE(part.first, part.second, value);
        CHECK(difference_of(base, rescaled, other) == "");
      }
    }
  }
}

TEST_CASE("weights that are rounded under their tile's maximum are no further off") {
  const ir::Program rescaled = applied(tiled());
  const ir::Program base = parse_or_die(tiled()), exact_base = parse_or_die(unrounded(tiled()));
  const std::vector<ir::Tensor> inputs = random_rows();
  // Each weight is off by 2^-11 of itself at most, in either program.
  CHECK(difference_of(base, rescaled, inputs, 0x1p-8) == "");
  CHECK(difference_of(exact_base, rescaled, inputs, 0x1p-9) == "");
}

TEST_CASE("rescaled weights with a fault are another program in finite fields") {
  const ir::Program base = parse_or_die(tiled());
  const std::string right = print(applied(tiled()));
  ir::FpvOptions ignoring;
  ignoring.roundings = ir::Roundings::kIgnored;
  // Others are rounded.
  CHECK(ir::check_equivalent(base, parse_or_die(right)).kind == ir::VerdictKind::kNotEqual);
  const ir::FpvVerdict verdict = ir::check_equivalent(base, parse_or_die(right), ignoring);
  INFO(to_string(verdict));
  CHECK(verdict.ok());
  CHECK(verdict.assumes.roundings);
  const std::string plain = print(applied(unrounded(tiled())));
  CHECK(ir::check_equivalent(parse_or_die(unrounded(tiled())), parse_or_die(plain)).ok());
  const std::pair<const char*, const char*> faults[] = {
      {"exp(N[li, lc] - M[li])*T[li, lc]", "T[li, lc] + N[li, lc]*M[li]*0f32"},
      {"exp(N[oi, oc] - M[oi])", "exp(M[oi] - N[oi, oc])"},
      {"exp(N[oi, oc] - M[oi])", "exp(N[oi, 0] - M[oi])"},
      {"0f32, N[pi, pc])", "0f32, N[pi, 0])"},
      {"f32.ninf, 0f32, N[pi, pc])", "f32.ninf, N[pi, pc], 0f32)"},
  };
  for (const auto& [from, to] : faults) {
    INFO(right);
    CAPTURE(from, to);
    const ir::Program wrong = parse_or_die(replaced(right, from, to));
    CHECK(ir::check_equivalent(base, wrong, ignoring).kind == ir::VerdictKind::kNotEqual);
  }
}

TEST_CASE("rescaled tiles make one pass") {
  for (const std::string& text : {tiled(), masked("c*4 + s <= i*2")}) {
    const ir::Program base = parse_or_die(unrounded(text));
    const ir::Program online = applied(unrounded(text), kRescale + "\nonline(@B1)");
    INFO(print(online));
    CHECK(difference_of(base, online, random_rows()) == "");
  }
}

TEST_CASE("a trace says whether it rounds elsewhere") {
  schedule::Schedule s(parse_or_die(tiled()));
  REQUIRE_OK(apply_steps(s, "parallel(@L0)"));
  CHECK_FALSE(schedule::rounds_elsewhere(s.trace()));
  schedule::Schedule other(parse_or_die(tiled()));
  REQUIRE_OK(apply_steps(other, kRescale));
  CHECK(schedule::rounds_elsewhere(other.trace()));
}

TEST_CASE("a replay notes what is before and after a step that rounds elsewhere") {
  schedule::Schedule s(parse_or_die(tiled()));
  REQUIRE_OK(apply_steps(s, "parallel(@L8)"));
  std::vector<ir::Program> around;
  schedule::ReplayOptions options;
  options.around = &around;
  REQUIRE_OK(schedule::replay(parse_or_die(tiled()), s.trace(), options));
  CHECK(around.empty());
  schedule::Schedule other(parse_or_die(tiled()));
  REQUIRE_OK(apply_steps(other, "transform_layout(@B2, 0, \"(i, c, s) -> (c, i, s)\", [])"));
  const ir::Program before = other.program();
  REQUIRE_OK(apply_steps(other, kRescale));
  const ir::Program after = other.program();
  REQUIRE_OK(apply_steps(other, "parallel(@L8)"));
  REQUIRE_OK(schedule::replay(parse_or_die(tiled()), other.trace(), options));
  REQUIRE(around.size() == 2);
  CHECK(ir::structural_equal(around[0], before));
  CHECK(ir::structural_equal(around[1], after));
}

}  // namespace
}  // namespace prunerc::testing
