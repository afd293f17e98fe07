// Programs too large to be run whole: what samples say, and what they do not.
#include "search/tune/sampled.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::search {
namespace {

using testing::parse_or_die;

const char* const kProduct = R"(
program p(A: f32[512, 256], B: f32[256, 500]) -> (C: f32[512, 500]) {
  for i in 512 { for j in 500 { for k in 256 {
    block "C" [vi: S(512) = i, vj: S(500) = j, vk: R(256) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj] } } } } })";

// Tiled; the value of an element may be changed.
std::string tiled(const std::string& value = "C[vi, vj] + A[vi, vk]*B[vk, vj]",
                  const std::string& guard = "j0*32 + j1 < 500") {
  return R"(program p(A: f32[512, 256], B: f32[256, 500]) -> (C: f32[512, 500]) {
    for i0 in 8 parallel { for j0 in 16 { for k0 in 32 { for i1 in 64 { for k1 in 8 { for j1 in 32 vectorized {
      block "C" [vi: S(512) = i0*64 + i1, vj: S(500) = j0*32 + j1, vk: R(256) = k0*8 + k1] where )" +
         guard + R"( { init { C[vi, vj] = 0f32 } C[vi, vj] = )" + value + " } } } } } } } }";
}

SampledVerdict check(const std::string& candidate, SampleOptions options = {}) {
  return check_programs(parse_or_die(kProduct), parse_or_die(candidate), options);
}

TEST_CASE("a large program is compared on sampled tiles, and the verdict says so") {
  const SampledVerdict found = check(tiled());
  INFO(to_string(found));
  CHECK(found.verdict.ok());
  CHECK(found.verdict.log2_error <= -40);
  CHECK_FALSE(found.is_whole);
  CHECK(found.num_corners == 4);
  CHECK(found.num_random == 8);
  CHECK(found.num_tiles == 64 * 63);
  const std::string text = to_string(found);
  CHECK(text.find("equal on 12 of 4032 tiles, 8 of them random (chance of error 2^-") == 0);
  CHECK(text.find("; a fault in 1 of 10 tiles is missed with chance 0.43") != std::string::npos);
}

TEST_CASE("random tiles of one output say nothing of another") {
  const ir::Program two = parse_or_die(R"(
program p(A: f32[512, 500]) -> (C: f32[512, 500], D: f32[512, 500]) {
  for i in 512 { for j in 500 { C[i, j] = A[i, j] D[i, j] = A[i, j]*2f32 } } })");
  SampleOptions options;
  options.max_whole_cost = 0;
  const SampledVerdict found = check_programs(two, two, options);
  INFO(to_string(found));
  CHECK(found.num_random == 16);
  CHECK(found.random_each == 8);
  CHECK(to_string(found).find("is missed with chance 0.43") != std::string::npos);
}

TEST_CASE("a tile without a bound does not end the search for one that differs") {
  const auto powers = [](const std::string& last) {
    return parse_or_die(R"(
program p(A: f32[512]) -> (C: f32[512]) {
  for i in 512 { block "start" [vi: S(512) = i] { C[vi] = A[vi] } }
  for j in 512 { for k in 16 { block "C" [vj: S(512) = j, vk: R(16) = k] { C[vj] = C[vj]*C[vj] } } }
  for l in 512 { block "end" [vl: S(512) = l] { C[vl] = select(vl < 511, C[vl], )" +
                        last + ") } } }");
  };
  SampleOptions options;
  options.max_whole_cost = 0;
  const SampledVerdict same = check_programs(powers("C[vl]"), powers("C[vl]"), options);
  CHECK(ir::to_string(same.verdict) == "unsupported: a degree without a bound");
  const SampledVerdict other = check_programs(powers("C[vl]"), powers("A[vl]"), options);
  CHECK(other.verdict.kind == ir::VerdictKind::kNotEqual);
}

TEST_CASE("tiles of elements of many roundings have a bound") {
  // Each of 64 x 64 outputs adds up 8192 roundings of what has no residue modulo q.
  const auto sums = [](const std::string& rounded) {
    return parse_or_die(R"(
program p(A: f32[64, 8192], V: f32[8192, 64]) -> (C: f32[64, 64]) {
  for i in 64 { for j in 64 { for k in 8192 { block "C" [vi: S(64) = i, vj: S(64) = j, vk: R(8192) = k] {
    init { C[vi, vj] = 0f32 }
    C[vi, vj] = C[vi, vj] + )" +
                        rounded + R"(*V[vk, vj] } } } } })");
  };
  const ir::Program program = sums("f32(f16(exp(A[vi, vk])))");
  const SampledVerdict found = check_programs(program, sums("f32(f16(exp(A[vi, vk])))"), {});
  INFO(to_string(found));
  CHECK(found.verdict.ok());
  CHECK(found.num_tiles == 64);
  CHECK(check_programs(program, sums("f32(f16(exp(A[vi, vk]*2f32)))"), {}).verdict.kind ==
        ir::VerdictKind::kNotEqual);
}

TEST_CASE("a small program is run whole") {
  const std::string small = "program p(A: f32[7]) -> (C: f32[7]) { for i in 7 { C[i] = A[i] } }";
  const SampledVerdict found = check_programs(parse_or_die(small), parse_or_die(small));
  CHECK(found.verdict.ok());
  CHECK(found.is_whole);
  CHECK(to_string(found) == ir::to_string(found.verdict));
}

TEST_CASE("an output of few tiles is compared tile by tile") {
  const std::string small =
      "program p(A: f32[33, 16]) -> (C: f32[33, 16]) { for i in 33 { for j in 16 { C[i, j] = A[i, "
      "j] } } }";
  SampleOptions options;
  options.max_whole_cost = 0;
  const SampledVerdict found = check_programs(parse_or_die(small), parse_or_die(small), options);
  CHECK(found.verdict.ok());
  CHECK(found.is_whole);
  CHECK(found.num_corners == 10);
  CHECK(found.num_random == 0);
  const std::string wrong =
      "program p(A: f32[33, 16]) -> (C: f32[33, 16]) { for i in 33 { for j in 16 { "
      "C[i, j] = select(i == 20 && j == 9, 0f32, A[i, j]) } } }";
  CHECK(check_programs(parse_or_die(small), parse_or_die(wrong), options).verdict.text ==
        "element C[20, 9]");
}

TEST_CASE("faults everywhere or at a border are found") {
  CHECK(check(tiled("C[vi, vj] - A[vi, vk]*B[vk, vj]")).verdict.kind == ir::VerdictKind::kNotEqual);
  // The last column is left out.
  CHECK(check(tiled("C[vi, vj] + A[vi, vk]*B[vk, vj]", "j0*32 + j1 < 499")).verdict.kind ==
        ir::VerdictKind::kInvalid);
  CHECK(check(tiled("C[vi, vj] + A[vi, vk]*B[vk, select(vi == 511, 0, vj)]")).verdict.kind ==
        ir::VerdictKind::kNotEqual);
}

TEST_CASE("a fault in a part of the tiles is missed as often as the verdict says") {
  const auto program = [](const std::string& value) {
    return parse_or_die(
        "program p(A: f32[128, 64]) -> (C: f32[128, 64]) { for i in 128 { for j in 64 { "
        "C[i, j] = " +
        value + " } } }");
  };
  const ir::Program right = program("A[i, j]*A[i, j]");
  // In a quarter of the rows of tiles, not in the first and last.
  const ir::Program wrong = program("select(i // 8 % 4 == 2, A[i, j], A[i, j]*A[i, j])");
  constexpr int kRuns = 200;
  int missed = 0;
  for (int run = 0; run < kRuns; ++run) {
    SampleOptions options;
    options.seed = static_cast<uint64_t>(run);
    options.num_random = 2;
    options.log2_error = -20;
    options.max_whole_cost = 0;
    missed += check_programs(right, wrong, options).verdict.ok() ? 1 : 0;
  }
  // (3/4)^2 of 200 is 112, with a deviation of 7.
  CHECK(missed >= 80);
  CHECK(missed <= 144);
}

TEST_CASE("nothing is said of what does not fit") {
  SampleOptions options;
  options.max_steps = 1000;
  CHECK(check(tiled(), options).verdict.kind == ir::VerdictKind::kUnsupported);
  // Every element needs everything.
  const std::string total = R"(program p(A: f32[4096, 4096]) -> (C: f32[1]) {
    for i in 4096 { for j in 4096 { block "C" [v: R(4096) = i, w: R(4096) = j] {
      init { C[0] = 0f32 } C[0] = C[0] + A[v, w] } } } })";
  options.max_steps = 1'000'000;
  const SampledVerdict found = check_programs(parse_or_die(total), parse_or_die(total), options);
  CHECK(found.verdict.kind == ir::VerdictKind::kUnsupported);
  CHECK(to_string(found) == ir::to_string(found.verdict));
}

TEST_CASE("programs of other parameters are no pair") {
  const SampledVerdict found = check(
      "program p(A: f32[512, 256], B: f32[256, 500]) -> (C: f32[500, 512]) { for i in 500 { for j "
      "in 512 { "
      "C[i, j] = A[0, 0] } } }");
  CHECK(found.verdict.kind == ir::VerdictKind::kInvalid);
}

}  // namespace
}  // namespace prunerc::search
