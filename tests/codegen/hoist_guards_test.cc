// Clamped subscripts: whole tiles run without them.
#include "codegen/lower/passes.h"
#include "codegen/pipeline.h"
#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <utility>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test
using schedule::Int;

Program stencil(int64_t m, int64_t n, int64_t left, int64_t right) {
  return parse_or_die(fmt::format(R"(
program p(X: f32[{m}, {n}]) -> (Y: f32[{m}, {n}]) {{
  for i in {m} @L0 {{ for j in {n} @L1 {{
    block "Y" @B0 [vi: S({m}) = i, vj: S({n}) = j] {{
      Y[vi, vj] = X[max(vi - {left}, 0), vj] + X[vi, max(vj - {left}, 0)] + X[vi, min(vj + {right}, {n} - 1)]
    }}
  }} }}
}})",
                                  fmt::arg("m", m), fmt::arg("n", n), fmt::arg("left", left),
                                  fmt::arg("right", right)));
}

schedule::Schedule tiled(const Program& base, int64_t unroll, int64_t lanes) {
  schedule::Schedule s(base);
  const auto j = s.split(s.loops_of(s.blocks()[0])[1], {Int(-1), Int(unroll), Int(lanes)}).value();
  REQUIRE_OK(s.unroll(j[1]));
  REQUIRE_OK(s.vectorize(j[2]));
  return s;
}

std::string lowered(const schedule::Schedule& s) {
  const Result<Program> out = codegen::lower_cpu(s.program(), *target_from_string("cpu"));
  REQUIRE_OK(out);
  return print(*out);
}

}  // namespace

TEST_CASE("clamped stencils of any size and tile compute what the interpreter computes") {
  for (int c = 0; c < num_cases(40); ++c) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(c);
    Rng rng(seed, 13);
    const Program base =
        stencil(rng.between(1, 6), rng.between(1, 70), rng.between(0, 5), rng.between(0, 5));
    const schedule::Schedule s = tiled(base, rng.between(1, 3), int64_t{1} << rng.between(1, 4));
    INFO("seed " << seed << "\n" << print(s.program()));
    REQUIRE(compare_with_interpreter(base, s.program(), seed) == "");
  }
}

TEST_CASE("a tile inside of the ends runs without clamps along its lanes") {
  const std::string text = lowered(tiled(stencil(5, 64, 1, 1), 1, 16));
  INFO(text);
  // Of both versions the row's clamp stays; of the slow one the two of the lanes do, too.
  CHECK(num_times(text, "if ") == 1);
  CHECK(num_times(text, "max(") == 3);
  CHECK(num_times(text, "min(") == 1);
}

TEST_CASE("a clamp that every tile needs stays") {
  // One tile is the whole row.
  const std::string text = lowered(tiled(stencil(5, 16, 1, 1), 1, 16));
  INFO(text);
  CHECK(num_times(text, "if ") == 0);
  CHECK(num_times(text, "min(") == 1);
}

TEST_CASE("a clamp of data stays") {
  const Program base = parse_or_die(R"(
program p(X: f32[64], I: i64[64]) -> (Y: f32[64]) {
  for j in 64 @L0 { block "Y" @B0 [vj: S(64) = j] { Y[vj] = X[min(max(I[vj], 0), 63)] } }
})");
  schedule::Schedule s(base);
  const auto j = s.split(s.loops_of(s.blocks()[0])[0], {Int(-1), Int(16)}).value();
  REQUIRE_OK(s.vectorize(j[1]));
  const std::string text = lowered(s);
  INFO(text);
  CHECK(num_times(text, "if ") == 0);
  CHECK(num_times(text, "min(max(I[") == 1);
}

TEST_CASE("a function of what a mask hides is not computed where it hides a whole tile") {
  const Program base = parse_or_die(R"(program p(X: f32[12, 24]) -> (Y: f32[12, 24]) {
    for i in 12 @L0 { for j_0 in 6 @L1 { for j_1 in 4 @L2 vectorized {
      block "Y" @B0 [vi: S(12) = i, vj: S(24) = j_0*4 + j_1] {
        Y[vi, vj] = select(vj <= vi, exp(X[vi, vj]), 0f32) } } } } })");
  const Result<Program> out = codegen::lower_cpu(base, *target_from_string("cpu"));
  REQUIRE_OK(out);
  const std::string text = print(*out);
  INFO(text);
  CHECK(num_times(text, "exp(") == 2);    // whole tiles, and those that the diagonal crosses
  CHECK(num_times(text, "= 0f32") == 1);  // what is beyond it
  CHECK(num_times(text, "select(") == 1);
  check_same_result(base, *out, 1);
}

TEST_CASE("a copy from several sources decides between them once a row") {
  const Program base = parse_or_die(R"(
program p(A: f32[3, 24], B: f32[4, 24], C: f32[2, 24]) -> (Y: f32[9, 24]) {
  for c in 9 @L0 { for j_0 in 3 @L1 { for j_1 in 8 @L2 vectorized {
    block "Y" @B0 [vc: S(9) = c, vj: S(24) = j_0*8 + j_1] {
      Y[vc, vj] = select(vc < 3, A[vc, vj], select(vc < 7, B[vc - 3, vj], C[vc - 7, vj])) } } } } })");
  const Result<Program> out = codegen::lower_cpu(base, *target_from_string("cpu"));
  REQUIRE_OK(out);
  const std::string text = print(*out);
  INFO(text);
  CHECK(num_times(text, "select(") == 0);
  CHECK(num_times(text, "if c <") == 2);
  check_same_result(base, *out, 1);
  CHECK(compare_with_interpreter(base, base, 2) == "");
}

TEST_CASE("a copy of many reads has few versions") {
  std::string sum;
  for (int t = 0; t < 10; ++t) {
    sum += fmt::format("{}select(vi // {} % 2 < 1, X[{}, vj] * W[{}, vj] * X[{}, vj], 0f32)",
                       t == 0 ? "" : " + ", 1 << t, t, t, 9 - t);
  }
  const Program base = parse_or_die(
      "program p(X: f32[10, 16], W: f32[10, 16]) -> (Y: f32[1024, 16]) { for i in 1024 @L0 { for "
      "j_0 "
      "in 2 @L1 { for j_1 in 8 @L2 vectorized { block \"Y\" @B0 [vi: S(1024) = i, vj: S(16) = "
      "j_0*8 + "
      "j_1] { Y[vi, vj] = " +
      sum + " } } } } }");
  const Result<Program> out = codegen::lower_cpu(base, *target_from_string("cpu"));
  REQUIRE_OK(out);
  const std::string text = print(*out);
  INFO(text);
  CHECK(num_times(text, "Y[") > 1);
  CHECK(num_times(text, "Y[") <= 32);
  check_same_result(base, *out, 1);
}

TEST_CASE("a sum's loop is cut where its last tile begins") {
  const auto sums = [](int64_t n, int64_t steps) {
    return parse_or_die(fmt::format(R"(program p(X: f32[5, {0}]) -> (Y: f32[5, 16]) {{
      for i in 5 @L0 {{ for k in {1} @L1 {{ for j in 16 @L2 vectorized {{
        block "Y" @B0 [vi: S(5) = i, vk: R({1}) = k, vj: S(16) = j] where k*16 + j < {0} {{
          init {{ Y[vi, vj] = 0f32 }} Y[vi, vj] = Y[vi, vj] + X[vi, vk*16 + vj] }} }} }} }} }})",
                                    n, steps));
  };
  const Result<Program> out = codegen::lower_cpu(sums(40, 3), *target_from_string("cpu"));
  REQUIRE_OK(out);
  const std::string text = print(*out);
  INFO(text);
  CHECK(num_times(text, "for k in 2 ") == 1);
  CHECK(num_times(text, "else") == 0);
  // The lanes of the last vector.
  CHECK(num_times(text, "if ") == 1);
  for (const auto& [n, steps] : {std::pair(17, 2), {40, 3}, {48, 3}, {113, 8}}) {
    INFO(n);
    check_same_result(sums(n, steps),
                      *codegen::lower_cpu(sums(n, steps), *target_from_string("cpu")), 1);
    CHECK(compare_with_interpreter(sums(n, steps), sums(n, steps), 2) == "");
  }
}

}  // namespace prunerc
