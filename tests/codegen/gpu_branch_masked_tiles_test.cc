// Pieces of tiles behind a mask: which ones ask it, what is left alone, and that values are the same.
#include "codegen/lower/passes.h"
#include "codegen/pipeline.h"
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "ir/query.h"
#include "ir/visit.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

using namespace ir;  // NOLINT: a test

// Rows of 256 elements in shared memory, one for each of two warps: what a mask lets through, and its maximum.
std::string rows_of(const std::string& condition, const std::string& source = "s[vt, vs]") {
  return R"(program p(A: f32[2, 256]) -> (P: f32[2, 256], M: f32[2], S: f32[2, 256]) {
    buffer s: f32[2, 256] shared
    for b in 1 @L0 bind(block.x) {
      for t in 2 @L1 bind(thread.y) { for x in 32 @L2 bind(thread.x) { for c in 2 @L3 { for v in 4 @L4 vectorized {
        block "s" @B0 [vt: S(2) = t, vs: S(256) = c*128 + x*4 + v] { s[vt, vs] = A[vt, vs] } } } } }
      for t in 2 @L5 bind(thread.y) { for x in 32 @L6 bind(thread.x) {
        for c in 2 @L7 unrolled { for v in 4 @L8 vectorized {
          block "P" @B1 [vt: S(2) = t, vs: S(256) = c*128 + x*4 + v] {
            P[vt, vs] = select()" +
         condition + ", " + source + R"(*2f32, 0f32) } } } } }
      for t in 2 @L9 bind(thread.y) { for x in 32 @L10 bind(thread.x) {
        for c in 2 @L11 unrolled { for v in 4 @L12 unrolled {
          block "M" @B2 [vt: S(2) = t, vs: R(256) = c*128 + x*4 + v] {
            init { M[vt] = f32.ninf }
            M[vt] = max(M[vt], select()" +
         condition + ", " + source + R"(, f32.ninf)) } } } } }
      for t in 2 @L13 bind(thread.y) { for x in 32 @L14 bind(thread.x) { for c in 2 @L15 { for v in 4 @L16 vectorized {
        block "S" @B3 [vt: S(2) = t, vs: S(256) = c*128 + x*4 + v] { S[vt, vs] = s[vt, vs] } } } } }
    }
  })";
}

int num_branches(const Program& program) {
  int found = 0;
  walk(
      program.root(),
      [&](Stmt s) {
        const If* branch = s.as<If>();
        found += branch != nullptr && !has_load(branch->condition) ? 1 : 0;
        return true;
      },
      [](Expr) {});
  return found;
}

// Conditions that the pass adds, and that nothing else changes.
int num_added(const std::string& text) {
  const Program program = parse_or_die(text);
  const Result<Program> lowered = codegen::lower_gpu(program, gpu_target());
  REQUIRE_OK(lowered);
  const std::string_view without[] = {"branch_masked_tiles"};
  codegen::PipelineOptions options;
  options.disabled = without;
  const Result<Program> plain = codegen::lower_gpu(program, gpu_target(), options);
  REQUIRE_OK(plain);
  INFO(print(*lowered));
  CHECK(check_equivalent(program, *lowered).ok());
  CHECK(compare_lowered_on_host(program, *lowered, gpu_target(), 1, kTwoOrders) == "");
  return num_branches(*lowered) - num_branches(*plain);
}

TEST_CASE("a piece of a row asks the mask once for all lanes", "[gpu]") {
  // Two conditions for what is let through, two for the maximum.
  CHECK(num_added(rows_of("vs <= vt*64 + 100")) == 4);
  // No piece is whole; none is hidden; none has both.
  CHECK(num_added(rows_of("vs <= vt + 100")) == 2);
  CHECK(num_added(rows_of("vt*64 + 3 <= vs")) == 2);
  CHECK(num_added(rows_of("vs < vt*128")) == 2);
}

TEST_CASE("masks over other memory, and of other forms, are left alone", "[gpu]") {
  CHECK(num_added(rows_of("vs <= vt + 100", "A[vt, vs]")) == 0);
  CHECK(num_added(rows_of("vs <= vt + 100 && vt + 7 <= vs")) == 0);
  // All pieces are alike.
  CHECK(num_added(rows_of("vs % 4 <= vt")) == 0);
}

}  // namespace
}  // namespace prunerc::testing
