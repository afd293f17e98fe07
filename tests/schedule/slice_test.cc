// What is left out of a slice does not matter for its box, what is left in is little.
#include "schedule/twin/slice.h"

#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "ir/visit.h"
#include "schedule/twin/shrink.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"
#include "tests/support/gpu_programs.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc {
namespace {

using namespace ir;        // NOLINT: a test
using namespace schedule;  // NOLINT: a test
using namespace testing;   // NOLINT: a test

const Buffer& output_of(const Program& program, int which = 0) {
  for (const Buffer& buffer : program.buffers()) {
    if (buffer.role == BufferRole::kOutput && which-- == 0) return buffer;
  }
  FAIL("no such output");
  return program.buffers()[0];
}

FpvVerdict check_slice(const Program& spec, const Program& candidate, std::vector<Interval> box,
                       int output = 0, int64_t max_steps = int64_t{1} << 32) {
  FpvOptions options;
  options.max_steps = max_steps;
  options.window = FpvWindow{output, {}};
  for (const Interval& range : box) options.window->box.emplace_back(range.lo, range.hi);
  return check_equivalent(slice(spec, {output_of(spec, output).id, box}),
                          slice(candidate, {output_of(candidate, output).id, box}), options);
}

std::vector<Interval> random_box(const Buffer& buffer, Rng& rng) {
  std::vector<Interval> box;
  for (const int64_t extent : shape_of(buffer)) {
    const int64_t first = rng.between(0, extent - 1);
    box.push_back({first, rng.between(first, std::min(first + 3, extent - 1))});
  }
  return box;
}

TEST_CASE("a slice has the loops of its program, and conditions that hold around the box") {
  const Program program = parse_or_die(kMatmul);
  const Program part = slice(program, {output_of(program).id, {{3, 3}, {8, 9}}});
  CHECK(print(part) == R"(program matmul(A: f32[16, 32], B: f32[32, 16]) -> (C: f32[16, 16]) {
  for i in 16 @L0 {
    if 3 <= i && i <= 3 {
      for j in 16 @L1 {
        if 8 <= j && j <= 9 {
          for k in 32 @L2 {
            block "C" @B0 [vi: S(16) = i, vj: S(16) = j, vk: R(32) = k] {
              reads A[vi, vk], B[vk, vj]
              writes C[vi, vj]
              init {
                C[vi, vj] = 0f32
              }
              C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
            }
          }
        }
      }
    }
  }
}
)");
}

TEST_CASE("slices of tiled, staged and threaded programs are equal to those of the operator") {
  Rng rng(first_seed());
  for (const GpuProgram& one : gpu_programs()) {
    for (int i = 0; i < 3; ++i) {
      const std::vector<Interval> box = random_box(output_of(one.base), rng);
      const FpvVerdict verdict = check_slice(one.base, one.scheduled, box);
      INFO(one.name << ": " << to_string(verdict) << "\n"
                    << print(slice(one.scheduled, {output_of(one.scheduled).id, box})));
      CHECK(verdict.ok());
    }
  }
}

TEST_CASE("a slice of a random program gives its box, and nothing unwritten is read") {
  for (int n = 0; n < num_cases(150); ++n) {
    Rng rng(first_seed() + static_cast<uint64_t>(n), 21);
    const Program program = random_program(rng, random_policy(rng));
    int num_outputs = 0;
    for (const Buffer& b : program.buffers()) num_outputs += b.role == BufferRole::kOutput ? 1 : 0;
    for (int output = 0; output < num_outputs; ++output) {
      const std::vector<Interval> box = random_box(output_of(program, output), rng);
      FpvOptions options;
      options.window = FpvWindow{output, {}};
      for (const Interval& range : box) options.window->box.emplace_back(range.lo, range.hi);
      const Program part = slice(program, {output_of(program, output).id, box});
      // Against the whole.
      const FpvVerdict verdict = check_equivalent(program, part, options);
      INFO("case " << n << ": " << to_string(verdict) << "\n" << print(program) << print(part));
      CHECK(verdict.ok());
    }
  }
}

TEST_CASE("a slice runs a small part where outputs do not need all") {
  const std::string text = R"(program p(A: f32[512, 64], B: f32[64, 512]) -> (C: f32[512, 512]) {
    buffer T: f32[512, 512] global
    for i0 in 8 parallel { for j0 in 16 { for k in 64 { for i1 in 64 { for j1 in 32 vectorized {
      block "T" [vi: S(512) = i0*64 + i1, vj: S(512) = j0*32 + j1, vk: R(64) = k] {
        init { T[vi, vj] = 0f32 }
        T[vi, vj] = T[vi, vj] + A[vi, vk]*B[vk, vj] } } } } } }
    for f in 262144 { block "C" [vf: S(262144) = f] {
      C[vf // 512, vf % 512] = max(T[vf // 512, vf % 512], 0f32) } } })";
  const Program program = parse_or_die(text);
  // 16,777,216 products as a whole.
  const FpvVerdict verdict = check_slice(program, program, {{100, 103}, {200, 203}}, 0, 1'000'000);
  INFO(to_string(verdict));
  CHECK(verdict.ok());
  // What every element needs is not left out.
  const Program total = parse_or_die(R"(program p(A: f32[4096]) -> (C: f32[4096]) {
    buffer S: f32[1] global
    for i in 4096 { block "S" [v: R(4096) = i] { init { S[0] = 0f32 } S[0] = S[0] + A[v] } }
    for i in 4096 { C[i] = A[i] / S[0] } })");
  CHECK(check_slice(total, total, {{7, 7}}).ok());
  CHECK(check_slice(total, total, {{7, 7}}, 0, 2000).kind == VerdictKind::kUnsupported);
}

// The program with one more nest, or with a changed one.
FpvVerdict against_sum(const std::string& nests, std::vector<Interval> box) {
  const std::string head =
      "program p(A: f32[16, 4], I: i64[16]) -> (C: f32[16]) { buffer T: f32[16] global ";
  const std::string sum = R"(for i in 16 { for k in 4 { block "C" [v: S(16) = i, w: R(4) = k] {
    init { C[v] = 0f32 } C[v] = C[v] + A[v, w] } } } )";
  return check_slice(parse_or_die(head + sum + "}"), parse_or_die(head + nests + "}"),
                     std::move(box));
}

TEST_CASE("a fault is found in the boxes that have it, and in no other") {
  const std::string wrong = R"(for i in 16 { for k in 4 { block "C" [v: S(16) = i, w: R(4) = k] {
    init { C[v] = 0f32 } C[v] = C[v] + select(v < 5, A[v, w], A[v, 0]) } } })";
  CHECK(against_sum(wrong, {{0, 4}}).ok());
  CHECK(against_sum(wrong, {{3, 5}}).kind == VerdictKind::kNotEqual);
  CHECK(against_sum(wrong, {{9, 9}}).kind == VerdictKind::kNotEqual);
}

TEST_CASE("what writes into the box is never left out, wherever it stands") {
  const std::string sum = R"(for i in 16 { for k in 4 { block "C" [v: S(16) = i, w: R(4) = k] {
    init { C[v] = 0f32 } C[v] = C[v] + A[v, w] } } } )";
  const std::string late = sum + "for i in 4 { C[i*3 + 1] = 0f32 } ";
  CHECK(against_sum(late, {{2, 3}}).ok());
  CHECK(against_sum(late, {{4, 4}}).kind == VerdictKind::kNotEqual);
  const std::string scattered = sum + "for i in 2 { C[I[i] % 4] = 0f32 } ";
  CHECK(against_sum(scattered, {{4, 15}}).ok());
  CHECK(against_sum(scattered, {{0, 3}}).kind == VerdictKind::kNotEqual);
  // An intermediate that is read before it is written, and elements that are left out.
  CHECK(against_sum("for i in 16 { C[i] = T[i] }", {{2, 3}}).kind == VerdictKind::kInvalid);
  CHECK(
      against_sum("for i in 9 { C[i] = A[i, 0] + A[i, 1] + (A[i, 2] + A[i, 3]) }", {{8, 8}}).ok());
  CHECK(
      against_sum("for i in 9 { C[i] = A[i, 0] + A[i, 1] + (A[i, 2] + A[i, 3]) }", {{8, 9}}).kind ==
      VerdictKind::kInvalid);
}

TEST_CASE("scans and gathers keep all that they may need") {
  const std::string scan = R"(program p(A: f32[64]) -> (C: f32[64]) {
    for i in 64 { C[i] = A[i] + select(0 < i, C[i - 1], 0f32) } })";
  const Program program = parse_or_die(scan);
  CHECK(check_slice(program, program, {{60, 61}}).ok());
  const Program gather = parse_or_die(R"(program p(A: f32[64], I: i64[8]) -> (C: f32[8]) {
    buffer T: f32[64] global
    for i in 64 { T[i] = A[i]*2f32 }
    for i in 8 { C[i] = T[(I[i] % 64 + 64) % 64] } })");
  CHECK(check_slice(gather, gather, {{3, 3}}).ok());
}

}  // namespace
}  // namespace prunerc
