// Tails of rows that several tasks write beside each other: each touches its own elements only.
#include "schedule/schedule.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test
using schedule::Int;

// The rows of T have 13 elements, all of them few enough for a caller's stack.
constexpr const char* kRows = R"(
program p(X: f32[8, 13]) -> (Y: f32[8]) {
  buffer T: f32[8, 13] global
  for i in 8 @L0 { for j in 13 @L1 {
    block "T" @B0 [vi: S(8) = i, vj: S(13) = j] { T[vi, vj] = X[vi, vj] * 2f32 }
  } }
  for i in 8 @L2 { for j in 13 @L3 {
    block "Y" @B1 [vi: S(8) = i, vj: R(13) = j] { init { Y[vi] = 0f32 } Y[vi] = Y[vi] + T[vi, vj] }
  } }
})";

Program vectors_of(const Program& base, bool in_reader) {
  schedule::Schedule s(base);
  REQUIRE_OK(s.parallel(LoopId(in_reader ? 2 : 0)));
  if (in_reader) REQUIRE_OK(s.compute_at(BlockId(0), LoopId(2)));
  const auto parts = s.split(s.loops_of(BlockId(0)).back(), {Int(-1), Int(8)}).value();
  REQUIRE_OK(s.vectorize(parts[1]));
  return s.program();
}

int num_masked_stores(const Program& program) {
  Target target;
  target.name = "x86-64-v3";
  target.vector_bytes = 32;
  target.num_threads = 2;
  const Result<std::string> text = codegen::emit_cpu(program, target, codegen::EmitKind::kLlvmText);
  REQUIRE_OK(text);
  int found = 0;
  for (std::size_t at = text->find("call void @llvm.masked.store"); at != std::string::npos;
       at = text->find("call void @llvm.masked.store", at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("a task writes no element of its neighbour back") {
  const Program base = parse_or_die(kRows);
  const Program rows = vectors_of(base, false);
  CHECK(num_masked_stores(rows) > 0);
  CHECK(compare_with_interpreter(base, rows, 1) == "");
}

TEST_CASE("a row of a task's own needs no masks") {
  const Program base = parse_or_die(kRows);
  const Program row = vectors_of(base, true);
  CHECK(num_masked_stores(row) == 0);
  CHECK(compare_with_interpreter(base, row, 1) == "");
}

}  // namespace prunerc
