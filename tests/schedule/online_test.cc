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
const std::string kTerm = "exp(m[ui, uc] - M[ui])/L[ui]*o[ui, uc, ue]";
const std::string kSum = "exp(m[wi, wc] - M[wi])*l[wi, wc]";
std::string combined(const std::string& term = kTerm, const std::string& sum = kSum,
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

std::string block_between(const std::string& store) {
  return "for i in 5 { block \"T\" [ti: S(5) = i] { " + store + " } }";
}

// m is read from Z, which kCopy writes.
const std::string kCopy =
    "for i in 5 { for c in 7 { block \"Z\" [zi: S(5) = i, zc: S(7) = c] { Z[zi, zc] = l[zi, zc] } "
    "} }";
std::string with_copy(const std::string& text) {
  const std::string read = std::regex_replace(text, std::regex(R"(\bm\[)"), "Z[");
  return replaced(read, "buffer T: f32[5] global\n",
                  "buffer T: f32[5] global buffer Z: f32[5, 7] global\n" + kCopy);
}

// L is a sum over two variables.
std::string two_axes(const std::string& text) {
  const std::string deep = replaced(text, "for c in 7 @L3 {", "for c in 7 @L3 { for d in 2 {");
  return replaced(replaced(deep, "wc: R(7) = c]", "wc: R(7) = c, wd: R(2) = d]"), kSum,
                  kSum + " }");
}

// O stands in front of L.
std::string moved_up(const std::string& text) {
  const std::size_t from = text.find("  for i in 5 @L2"), to = text.find("  for i in 5 @L4"),
                    end = text.find("  for i in 5 @L7");
  return text.substr(0, from) + text.substr(to, end - to) + text.substr(from, to - from) +
         text.substr(end);
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
      {std::regex_replace(
           exact(combined("exp(m[ui, uc] - M[ui])*o[ui, uc, ue]", "exp(m[wi, wc] - M[wi])")),
           std::regex("f32"), "f64"),
       kOnline, ""},
      {combined(), "online(@B9)", "BlockNotFound"},
      // A second writer of a result, or of what is read twice.
      {combined(kTerm, kSum, block_between("M[ti] = 0f32")), kOnline, "BufferManyWriters"},
      {combined(kTerm, kSum, block_between("L[ti] = 0f32")), kOnline, "BufferManyWriters"},
      {with_copy(combined(kTerm, kSum, kCopy)), kOnline, "SourceOverwritten"},
      // A divisor that is made behind.
      {moved_up(combined()), kOnline, "SourceOverwritten"},
  };
  for (const Case& c : cases) check(c);
}

// Refused with BlockNotSimple: "block .. must <message>".
struct Refusal {
  std::string program, message;
  std::string steps = kOnline;
};

void check_refused(const std::vector<Refusal>& refusals) {
  for (const Refusal& r : refusals) {
    check_rejected(r.program, r.steps, "BlockNotSimple");
    schedule::Schedule s(parse_or_die(r.program));
    const Result<void> done = apply_steps(s, r.steps);
    REQUIRE_FALSE(done.ok());
    INFO(r.program);
    CAPTURE(r.steps, r.message, done.error().message());
    CHECK(done.error().message().find(r.message) != std::string::npos);
  }
}

std::string edited(const std::string& from, const std::string& to) {
  const std::string text = combined();
  REQUIRE(text.find(from) != std::string::npos);
  return replaced(text, from, to);
}

TEST_CASE("online refuses what is no sum of weights under the maximum") {
  const std::string axis = "read the maximum of its own element along the same axis";
  const std::string once = "read the maximum in one exponent only";
  const std::string no_product = "add up products with exp(x - maximum)";
  const std::string other_x = "have in its exponents what the maximum is of";
  check_refused({
      {combined("exp(m[ui, uc] + M[ui])*o[ui, uc, ue]"), no_product},
      {combined("exp(M[ui] - m[ui, uc])*o[ui, uc, ue]"), no_product},
      {combined("(exp(m[ui, uc] - M[ui]) + o[ui, uc, ue])"), no_product},
      {combined("exp(l[ui, uc] - M[ui])*o[ui, uc, ue]"), other_x},
      {combined("exp(m[ui, 6 - uc] - M[ui])*o[ui, uc, ue]"), other_x},
      {combined("exp(m[ui, uc] - M[4 - ui])*o[ui, uc, ue]"), axis},
      {combined("exp(m[ui, uc] - M[0])*o[ui, uc, ue]"), axis},
      {combined("exp(m[ui, uc] - M[ui])*M[ui]"), once},
      {combined("exp(m[ui, uc] - M[ui])*exp(m[ui, uc] - M[ui])"), once},
      {combined("exp(m[ui, uc] - M[ui])/M[ui]"), once},
      {combined("exp(m[ui, uc] - M[ui])*L[ui]"), "be divided at most by what the pass makes"},
      {replaced(edited("for c in 7 @L3", "for c in 6 @L3"), "wc: R(7)", "wc: R(6)"), axis},
  });
}

TEST_CASE("online refuses reductions that do not begin with nothing, or are no plain nests") {
  const std::string identity = "of floats from its identity on";
  const std::string wide = "of f32 or f64";
  const std::string place = "write at its variables";
  const std::string nest = "have its own loops alone";
  check_refused({
      {edited("M[vi] = f32.ninf", "M[vi] = 0f32"), "be a maximum " + identity},
      {edited("L[wi] = 0f32", "L[wi] = 1f32"), "be a sum " + identity},
      {std::regex_replace(combined(), std::regex("f32"), "f16"), "be a maximum " + wide},
      {std::regex_replace(combined(), std::regex("f32"), "bf16"), "be a maximum " + wide},
      {edited("M[vi] = f32.ninf } M[vi] = max(M[vi]",
              "M[4 - vi] = f32.ninf } M[4 - vi] = max(M[4 - vi]"),
       place},
      {edited("L[wi] = 0f32 } L[wi] = L[wi]", "L[0] = 0f32 } L[0] = L[0]"), place},
      {two_axes(combined()), "reduce along one variable"},
      {combined(), nest, "split(@L1, [-1, 7])\nonline(@B0)"},
      {combined(), nest, "parallel(@L4)\nonline(@B0)"},
      {combined(), "have no attributes", "annotate_block(@B0, \"note\", 3)\nonline(@B0)"},
      {combined(), "have no attributes", "annotate_block(@B1, \"note\", 3)\nonline(@B0)"},
      {edited("M[vi] = f32.ninf }", "M[vi] = f32.ninf } combine (a), (b) -> (max(a, b))"),
       "have no attributes, and no `combine`"},
      {combined(), "be a maximum " + identity, "online(@B1)"},
      {combined(), "be a maximum " + identity, "online(@B3)"},
      {std::string(kMatmul), "be a maximum " + identity},
  });
}

TEST_CASE("online refuses readers in front of the last sum") {
  const std::string behind = "read what is made in one pass behind it";
  check_refused({
      {combined(kTerm, kSum, block_between("T[ti] = L[ti]")), behind},
      {combined(kTerm, kSum, block_between("T[ti] = M[ti]")), behind},
  });
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
    // Whatever stands there.
    for (const double value : {3e38, kInfinity}) {
      for (int c = hidden.first; c < hidden.second; ++c) {
        masked[1].set(7 + c, value);
        for (int e = 0; e < 3; ++e) masked[2].set((7 + c) * 3 + e, value);
      }
      CHECK(difference_of(base, online, masked) == "");
    }
  }
  for (const double value : {-kInfinity, kInfinity, std::nan(""), 3e38, -3e38}) {
    std::vector<ir::Tensor> all = inputs, one = inputs;
    for (int c = 0; c < 7; ++c) all[0].set(c, value);
    one[0].set(2, value);
    CAPTURE(value);
    CHECK(difference_of(base, online, all) == "");
    CHECK(difference_of(base, online, one) == "");
  }
}

TEST_CASE("a pass multiplies and divides in the program's order, and keeps that of the maximum") {
  std::vector<ir::Tensor> inputs = random_rows();
  for (int c = 0; c < 7; ++c) inputs[0].set(c, c == 3 ? -200 : 0);
  for (int c = 0; c < 7; ++c) inputs[1].set(c, c == 3 ? 1e30 : 1);
  for (int c = 0; c < 7; ++c) inputs[1].set(7 + c, 1e-39);
  inputs[0].set(14, std::nan(""));
  for (const std::string_view sum : {"exp(m[wi, wc] - M[wi])*l[wi, wc]*l[wi, wc]",
                                     "exp(m[wi, wc] - M[wi])*l[wi, wc]/l[wi, 0]"}) {
    const std::string text = combined("exp(m[ui, uc] - M[ui])*o[ui, uc, ue]", std::string(sum));
    for (const std::string_view max : {"max(M[vi], m[vi, vc])", "max(m[vi, vc], M[vi])"}) {
      const std::string program = replaced(text, "max(M[vi], m[vi, vc])", max);
      const ir::Program online = applied(program);
      INFO(print(online));
      CHECK(difference_of(parse_or_die(program), online, inputs) == "");
    }
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
      {"select(m[vi, vc] == f32.ninf", "select(m[vi, vc] < 0f32"},
  };
  for (const auto& [from, to] : faults) {
    INFO(right);
    CAPTURE(from, to);
    REQUIRE(right.find(from) != std::string::npos);
    CHECK_FALSE(ir::check_equivalent(base, parse_or_die(replaced(right, from, to))).ok());
  }
}

TEST_CASE("what runs in one pass is a reduction like others") {
  for (const std::string& text :
       {combined(),
        combined("l[ui, uc]*exp(m[ui, uc] - M[ui])*o[ui, uc, ue]/(l[ui, uc]*l[ui, uc] + 1f32)"),
        combined("exp(m[ui, uc] - M[ui])/L[ui]*o[ui, uc, ue]", "exp(m[wi, wc] - M[wi])"),
        combined("exp(m[ui, uc] - M[ui])/(o[ui, uc, ue]*o[ui, uc, ue] + 1f32)")}) {
    const ir::Program base = parse_or_die(text);
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
}

}  // namespace
}  // namespace prunerc::testing
