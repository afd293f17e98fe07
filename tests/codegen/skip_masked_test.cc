// Tiles behind masks: which are left out, what keeps them in, and that values are the same.
#include "codegen/lower/passes.h"
#include "codegen/pipeline.h"
#include "ir/printer.h"
#include "ir/visit.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <tuple>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

// Scores "a", weights "p" of rows, weighted sums "Y"; tiles of 4 by 4. `weight` makes p[vt, vs],
// `row` stands between a and p, `other` behind all.
std::string rows_of(const std::string& weight, const std::string& row = "",
                    const std::string& other = "") {
  return R"(program p(Q: f32[20, 3], K: f32[20, 3], V: f32[20, 8], Z: i64[20])
      -> (Y: f32[20, 8], X: f32[20, 20]) {
    buffer a: f32[20, 20] global
    buffer m: f32[20] global
    buffer p: f32[20, 20] global
    for t_0 in 5 @L0 { for s_0 in 5 @L1 { for e in 3 @L2 {
      for t_1 in 4 @L3 unrolled { for s_1 in 4 @L4 vectorized {
        block "a" @B0 [vt: S(20) = t_0*4 + t_1, vs: S(20) = s_0*4 + s_1, ve: R(3) = e] {
          init { a[vt, vs] = 0f32 }
          a[vt, vs] = a[vt, vs] + Q[vt, ve]*K[vs, ve] } } } } } }
    )" + row +
         R"(for u in 20 @L5 { for w_0 in 5 @L6 { for w_1 in 4 @L7 vectorized {
      block "p" @B1 [vt: S(20) = u, vs: S(20) = w_0*4 + w_1] { p[vt, vs] = )" +
         weight + R"( } } } }
    for y_0 in 5 @L8 { for k in 20 @L9 { for y_1 in 4 @L10 unrolled { for f in 8 @L11 vectorized {
      block "Y" @B2 [vt: S(20) = y_0*4 + y_1, vf: S(8) = f, vs: R(20) = k] {
        init { Y[vt, vf] = 0f32 }
        Y[vt, vf] = Y[vt, vf] + p[vt, vs]*V[vs, vf] } } } } }
    )" +
         (other.empty() ? R"(for x in 20 @L12 { for z in 20 @L13 {
      block "X" @B3 [vt: S(20) = x, vs: S(20) = z] { X[vt, vs] = Q[vt, 0] } } } )"
                        : other) +
         "}";
}

// The largest of each row of a.
std::string maximum(const std::string& condition) {
  return R"(for h in 20 @L20 { for g in 20 @L21 { block "m" @B9 [vt: S(20) = h, vs: R(20) = g] {
      init { m[vt] = f32.ninf }
      m[vt] = max(m[vt], select()" +
         condition + ", a[vt, vs], f32.ninf)) } } }\n";
}

Program skipped(const Program& program) {
  const Target target = *target_from_string("cpu");
  const Result<Program> initialised = codegen::lower_init(program, target);
  REQUIRE_OK(initialised);
  const Result<Program> out = codegen::skip_masked(*initialised, target);
  REQUIRE_OK(out);
  return *out;
}

// By block: what it got as a guard.
std::map<std::string, std::string> guards(const std::string& text) {
  const Program program = skipped(parse_or_die(text));
  std::map<std::string, std::string> out;
  walk(
      program.root(),
      [&](Stmt s) {
        const Block* block = s.as<Block>();
        if (block != nullptr && block->guard.defined()) {
          out[std::string(block->name)] = print(program, block->guard);
        }
        return true;
      },
      [](Expr) {});
  return out;
}

using Guards = std::map<std::string, std::string>;

TEST_CASE("tiles of a causal mask that hold nothing do not run, nor do those that nobody reads") {
  const std::string text = rows_of("select(vs <= vt, a[vt, vs]*2f32, 0f32)");
  CHECK(guards(text) ==
        Guards{{"a", "s_0 <= t_0"}, {"a_init", "s_0 <= t_0"}, {"Y", "k <= y_0*4 + 3"}});
  const Result<Program> lowered =
      codegen::lower_cpu(parse_or_die(text), *target_from_string("cpu"));
  REQUIRE_OK(lowered);
  INFO(print(*lowered));
  CHECK(print(*lowered).find("for k in y_0*4 + 4 ") != std::string::npos);
}

TEST_CASE("what softmax makes of minus infinity is nothing, if every row has an element") {
  const std::string softmax = "exp(select(vs <= vt, a[vt, vs], f32.ninf) - m[vt])";
  const Guards causal = guards(rows_of(softmax, maximum("vs <= vt")));
  CHECK(causal.count("Y") == 1);
  CHECK(causal.count("a") == 1);
  CHECK(causal.count("m") == 1);
  // The first row is empty: its weights are no zeros, but what infinity less infinity is.
  const Guards strict =
      guards(rows_of("exp(select(vs < vt, a[vt, vs], f32.ninf) - m[vt])", maximum("vs < vt")));
  CHECK(strict.count("Y") == 0);
  CHECK(strict.count("a") == 1);
}

TEST_CASE("zeros stay zeros only over a sum of their own row") {
  // An input may be 0 or infinite: what comes of that is no zero.
  for (const char* weight : {"select(vs <= vt, a[vt, vs], 0f32) / Q[vt, 0]",
                             "exp(select(vs <= vt, a[vt, vs], f32.ninf) - Q[vt, 0])"}) {
    const Guards found = guards(rows_of(weight));
    INFO(weight);
    CHECK(found.count("Y") == 0);
    CHECK(found.count("a") == 1);
  }
  // Nor is what the least of a row takes away from infinity.
  std::string least = maximum("vs <= vt");
  for (std::size_t at; (at = least.find("max(")) != std::string::npos;) least.replace(at, 3, "min");
  CHECK(guards(rows_of("exp(select(vs <= vt, a[vt, vs], f32.ninf) - m[vt])", least)).count("Y") ==
        0);
  // A sum of both signs may be 0, one of exponentials is not.
  const auto divided = [](const std::string& value) {
    return rows_of(
        "select(vs <= vt, " + value + ", 0f32) / m[vt]",
        "for h in 20 @L20 { for g in 20 @L21 { block \"m\" @B9 [vt: S(20) = h, vs: R(20) = g] {"
        " init { m[vt] = 0f32 } m[vt] = m[vt] + select(vs <= vt, " +
            value + ", 0f32) } } }\n");
  };
  CHECK(guards(divided("a[vt, vs]")).count("Y") == 0);
  CHECK(guards(divided("exp(a[vt, vs])")).count("Y") == 1);
}

TEST_CASE("a window has two ends") {
  const std::string window = "vs <= vt && vt <= vs + 5";
  const Guards found =
      guards(rows_of("exp(select(" + window + ", a[vt, vs], f32.ninf) - m[vt])", maximum(window)));
  CHECK(found.at("Y") == "k <= y_0*4 + 3 && y_0*4 <= k + 5");
  CHECK(found.at("a") == "s_0 <= t_0 && t_0 <= s_0 + 2");
  // Two conditions that never hold together.
  const std::string none = "vs + 6 <= vt && vt <= vs + 5";
  CHECK(guards(rows_of("exp(select(" + none + ", a[vt, vs], f32.ninf) - m[vt])", maximum(none)))
            .count("Y") == 0);
}

TEST_CASE("what is needed without the mask, or masked by data, is computed") {
  const std::string causal = "select(vs <= vt, a[vt, vs], 0f32)";
  const auto reader = [](const std::string& value) {
    return "for x in 20 @L12 { for z in 20 @L13 { block \"X\" @B3 [vt: S(20) = x, vs: S(20) = z] { "
           "X[vt, vs] = " +
           value + " } } }";
  };
  CHECK(guards(rows_of(causal, "", reader("a[vt, vs]"))).count("a") == 0);
  CHECK(guards(rows_of(causal, "", reader("a[vs, vt]"))).count("a") == 0);
  CHECK(guards(rows_of(causal, "", reader("select(vs <= vt + 1, a[vt, vs], 0f32)"))).count("a") ==
        0);
  CHECK(guards(rows_of(causal, "", reader("select(vs <= vt, a[vt, vs], 1f32)"))).count("a") == 1);
  CHECK(guards(rows_of("select(vs < Z[vt], a[vt, vs], 0f32)")).empty());
  CHECK(guards(rows_of("select(vs <= vt || vs < 2, a[vt, vs], 0f32)")).empty());
  // Where it is no zero that the mask puts there, sums go on; the scores are not needed even so.
  const Guards ones = guards(rows_of("select(vs <= vt, a[vt, vs], 1f32)"));
  CHECK(ones.count("Y") == 0);
  CHECK(ones.count("a") == 1);
  // A mask that leaves out less than a tenth.
  CHECK(guards(rows_of("select(vs <= vt + 15, a[vt, vs], 0f32)")).empty());
}

TEST_CASE("what says where to read is needed, whatever is read there") {
  const std::string text = R"(program p(A: f32[16], I: i64[16]) -> (Y: f32[16, 16]) {
    buffer j: i64[16, 16] global
    for i in 16 @L0 { for k in 16 @L1 {
      block "j" @B0 [vi: S(16) = i, vk: S(16) = k] { j[vi, vk] = I[vk] } } }
    for i in 16 @L2 { for k in 16 @L3 { block "Y" @B1 [vi: S(16) = i, vk: S(16) = k] {
      Y[vi, vk] = select(vk <= vi, A[j[vi, vk]], 0f32) } } } })";
  CHECK(guards(text).empty());
}

TEST_CASE("a running sum needs what lies before what is read of it") {
  const auto sum = [](const std::string& condition) {
    return R"(program p(A: f32[64]) -> (Y: f32[64]) {
      buffer X: f32[64] global
      buffer T: f32[64] global
      for i in 64 @L0 { block "X" @B0 [vi: S(64) = i] { X[vi] = A[vi]*2f32 } }
      for j in 64 @L1 { block "T" @B1 [vj: O(64) = j] {
        T[vj] = select(1 <= vj, T[vj - 1], 0f32) + X[vj] } }
      for y in 64 @L2 { block "Y" @B2 [vy: S(64) = y] {
        Y[vy] = select()" +
           condition + ", T[vy], 0f32) } } }";
  };
  for (const char* condition : {"32 <= vy", "vy <= 31"}) {
    const std::string text = sum(condition);
    CHECK(guards(text).empty());
    const Program program = parse_or_die(text);
    check_same_result(program, skipped(program), 1);
  }
}

TEST_CASE("what is stored outside of blocks is no constant") {
  const std::string text = R"(program p(A: f32[16, 16], V: f32[16]) -> (Y: f32[16]) {
    buffer T: f32[16, 16] global
    for i in 16 @L0 { for k in 16 @L1 { block "T" @B0 [vi: S(16) = i, vk: S(16) = k] {
      T[vi, vk] = select(vk <= vi, A[vi, vk], 0f32) } } }
    for a in 16 @L2 { for b in 16 @L3 { T[a, b] = T[a, b] + 1f32 } }
    for y in 16 @L4 { for s in 16 @L5 { block "Y" @B1 [vy: S(16) = y, vs: R(16) = s] {
      init { Y[vy] = 0f32 } Y[vy] = Y[vy] + T[vy, vs]*V[vs] } } } })";
  CHECK(guards(text).empty());
}

TEST_CASE("lanes that are summed up get no guard of their own") {
  const std::string text = R"(program p(A: f32[16, 64]) -> (M: f32[16]) {
    for t in 16 @L0 { for s_0 in 4 @L1 { for s_1 in 16 @L2 vectorized {
      block "M" @B0 [vt: S(16) = t, vs: R(64) = s_0*16 + s_1] {
        init { M[vt] = f32.ninf }
        M[vt] = max(M[vt], select(vs <= vt, A[vt, vs], f32.ninf)) } } } } })";
  CHECK(guards(text).empty());
  const Result<Program> lowered =
      codegen::lower_cpu(parse_or_die(text), *target_from_string("cpu"));
  REQUIRE_OK(lowered);
  CHECK(print(*lowered).find("M_lanes") != std::string::npos);
}

TEST_CASE("a guard gets no division that another condition hides") {
  const auto text = [](const std::string& last) {
    return R"(program p(A: f32[16]) -> (Y: f32[8]) {
      for t in 8 @L0 { for k in 16 @L1 {
        block "Y" @B0 [a: S(8) = t, q: O(13) = )" +
           last + R"(, s: R(16) = k] where t != 0 {
          Y[a] = Y[a] + select(s <= q, A[s], 0f32) } } } })";
  };
  CHECK(guards(text("t // 2")).at("Y").find("&&") != std::string::npos);
  CHECK(guards(text("12 // t")).at("Y").find("&&") == std::string::npos);
}

TEST_CASE("lanes are not summed up apart where a guard's division would leave what hides it") {
  // Z keeps the outer loop out of the nest.
  const auto text = [](const std::string& guard, const std::string& element) {
    return R"(program p(X: f32[4, 8, 16]) -> (Y: f32[4], Z: f32[4]) {
      for z in 4 @L3 { block "I" @B1 [v: S(4) = z] { Y[v] = 1f32 } }
      for i in 4 @L0 {
        block "Z" @B2 [u: S(4) = i] { Z[u] = 2f32 }
        for k in 8 @L1 { for l in 16 @L2 vectorized {
          block "Y" @B0 [a: O(4) = i, b: R(8) = k, c: R(16) = l] where )" +
           guard + " { Y[" + element + "] = Y[" + element + "] + X[a, b, c] } } } } }";
  };
  const auto has_lanes = [](const Program& program) {
    const Result<Program> lowered = codegen::lower_cpu(program, *target_from_string("cpu"));
    REQUIRE_OK(lowered);
    return print(*lowered).find("Y_lanes") != std::string::npos;
  };
  for (const auto& [guard, element, expected] :
       {std::tuple("k < i", "0", true), std::tuple("i != 0", "a", true),
        std::tuple("k < i && 11 % i < 2", "0", false),
        std::tuple("i != 0 && 12 // i < 5", "a", false)}) {
    CAPTURE(guard);
    const Program program = parse_or_die(text(guard, element));
    CHECK(has_lanes(program) == expected);
    CHECK(compare_with_interpreter(program, program, 1) == "");
  }
}

TEST_CASE("values are the same with masked tiles left out") {
  const std::string softmax = "exp(select(vs <= vt, a[vt, vs], f32.ninf) - m[vt])";
  for (const std::string& text :
       {rows_of("select(vs <= vt, a[vt, vs]*2f32, 0f32)"),
        rows_of("select(vt <= vs, a[vt, vs]*2f32, 0f32)"),
        rows_of("select(vs == vt, a[vt, vs]*2f32, 0f32)"),
        rows_of("select(vs <= vt && vt < vs + 5, a[vt, vs], 0f32)"),
        rows_of("select(vs*2 <= vt && vt <= vs*3 + 1, a[vt, vs], 0f32)"),
        rows_of("select(vs < 3, a[vt, vs], 0f32)"), rows_of("select(vs <= vt, a[vt, vs], 1f32)")}) {
    const Program program = parse_or_die(text);
    INFO(print(skipped(program)));
    check_same_result(program, skipped(program), 1);
    CHECK(compare_with_interpreter(program, program, 2) == "");
  }
  const Program program = parse_or_die(rows_of(softmax, maximum("vs <= vt")));
  check_same_result(program, skipped(program), 3);
}

}  // namespace
}  // namespace prunerc
