// Tiles that are read across their rows: columns come from shuffles, and are the right ones.
#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test
using schedule::Int;

// `unit`: of the shapes of X and Y, ", 1" for a last dimension of extent 1, whose subscript is `at`.
Program transposition(int64_t m, int64_t n, const std::string& type, const std::string& value,
                      const char* unit = "", const char* at = "") {
  return parse_or_die(fmt::format(R"(
program p(X: {t}[3, {m}, {n}{u}], Z: {t}[{n}, {m}]) -> (Y: {t}[3, {n}, {m}{u}]) {{
  for b in 3 @L0 {{ for j in {n} @L1 {{ for i in {m} @L2 {{
    block "Y" @B0 [vb: S(3) = b, vj: S({n}) = j, vi: S({m}) = i] {{ Y[vb, vj, vi{at}] = {value} }}
  }} }} }}
}})",
                                  fmt::arg("t", type), fmt::arg("m", m), fmt::arg("n", n),
                                  fmt::arg("value", value), fmt::arg("u", unit),
                                  fmt::arg("at", at)));
}

Program tiled(const Program& base, int64_t rows, int64_t lanes) {
  schedule::Schedule s(base);
  const std::vector<LoopId> loops = s.loops_of(s.blocks()[0]);
  const auto j = s.split(loops[1], {Int(-1), Int(rows)}).value();
  const auto i = s.split(loops[2], {Int(-1), Int(lanes)}).value();
  REQUIRE_OK(s.reorder({j[0], i[0], j[1], i[1]}));
  REQUIRE_OK(s.vectorize(i[1]));
  REQUIRE_OK(s.unroll(j[1]));
  return s.program();
}

std::string llvm_text(const Program& program) {
  Target target;
  target.name = "x86-64-v3";
  target.vector_bytes = 32;
  const Result<std::string> text = codegen::emit_cpu(program, target, codegen::EmitKind::kLlvmText);
  REQUIRE_OK(text);
  return *text;
}

// Lanes run along vi, which is not the result's last dimension.
Program crossing(int64_t m, int64_t n, const std::string& type, const std::string& value) {
  return parse_or_die(fmt::format(R"(
program p(X: {t}[3, {m}, {n}], Z: {t}[{n}, {m}]) -> (Y: {t}[3, {m}, {n}]) {{
  for b in 3 @L0 {{ for j in {n} @L1 {{ for i in {m} @L2 {{
    block "Y" @B0 [vb: S(3) = b, vj: S({n}) = j, vi: S({m}) = i] {{ Y[vb, vi, vj] = {value} }}
  }} }} }}
}})",
                                  fmt::arg("t", type), fmt::arg("m", m), fmt::arg("n", n),
                                  fmt::arg("value", value)));
}

bool scatters(const std::string& llvm) { return llvm.find("masked.scatter") != std::string::npos; }

bool gathers(const std::string& llvm) { return llvm.find("masked.gather") != std::string::npos; }

}  // namespace

TEST_CASE("transposed tiles of any size and type compute what the interpreter computes") {
  const std::vector<std::string> types = {"f32", "f64", "f16", "bf16", "i8", "i32", "i64"};
  for (int c = 0; c < num_cases(60); ++c) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(c);
    Rng rng(seed, 12);
    const std::string type = types[static_cast<std::size_t>(rng.between(0, 6))];
    const bool is_float = type[0] == 'f' || type[0] == 'b';
    const std::vector<std::string> values = {
        "X[vb, vi, vj]", "X[vb, vi, vj] + Z[vj, vi]", "max(X[vb, vi, vj], X[0, vi, vj])",
        // These run in some lanes or rows only, or read elements that are no neighbours.
        fmt::format("select(vj < 5, X[vb, vi, vj], 0{})", type),
        is_float ? "X[vb, vi, vj] * X[vb, vi, vj]"
                 : "X[vb, vi, vj] // (Z[vj, vi] * Z[vj, vi] + 1" + type + ")"};
    const std::string& value = values[static_cast<std::size_t>(rng.between(0, 4))];
    const int64_t lanes = int64_t{1} << rng.between(1, 5);
    const int64_t rows = rng.chance(0.7) ? lanes * rng.between(1, 2) : rng.between(2, 20);
    const bool is_whole = rng.chance(0.5);
    const int64_t m = is_whole ? lanes * rng.between(1, 3) : rng.between(1, 50);
    const int64_t n = is_whole ? rows * rng.between(1, 3) : rng.between(1, 50);
    const Program base = transposition(m, n, type, value);
    const Program scheduled = tiled(base, rows, lanes);
    INFO("seed " << seed << "\n" << print(scheduled));
    REQUIRE(compare_with_interpreter(base, scheduled, seed) == "");
  }
}

TEST_CASE("columns of a whole tile need no gather") {
  for (const char* type : {"f32", "f64", "i32", "f16", "i8"}) {
    for (const int64_t lanes : {4, 8, 16}) {
      INFO(type << ", " << lanes << " lanes");
      const Program base = transposition(2 * lanes, 3 * lanes, type, "X[vb, vi, vj]");
      CHECK_FALSE(gathers(llvm_text(tiled(base, lanes, lanes))));
      CHECK_FALSE(gathers(llvm_text(tiled(base, 3 * lanes, lanes))));
    }
  }
}

TEST_CASE("a dimension of extent 1 at the end keeps no tile from shuffles") {
  for (const char* type : {"f32", "f64", "i8"}) {
    const Program base = transposition(24, 32, type, "X[vb, vi, vj, 0]", ", 1", ", 0");
    const Program scheduled = tiled(base, 8, 8);
    INFO(print(scheduled));
    CHECK_FALSE(gathers(llvm_text(scheduled)));
    CHECK(compare_with_interpreter(base, scheduled, first_seed()) == "");
  }
}

TEST_CASE("what need not be a whole tile is gathered") {
  const Program plain = transposition(24, 24, "f32", "X[vb, vi, vj]");
  CHECK(gathers(llvm_text(tiled(plain, 2, 8))));
  // Rows that one copy decides about: the last ones of the tile may lie outside of X.
  const Program some = transposition(24, 24, "f32", "select(vj < 5, X[vb, vi, vj], 0f32)");
  CHECK(gathers(llvm_text(tiled(some, 8, 8))));
  // Every second element of a row.
  const Program apart = transposition(24, 24, "f32", "X[vb, vi, vj // 2 * 2]");
  CHECK(gathers(llvm_text(tiled(apart, 8, 8))));
}

TEST_CASE("tiles that are stored across their rows compute what the interpreter computes") {
  const std::vector<std::string> types = {"f32", "f64", "f16", "bf16", "i8", "i32", "i64"};
  for (int c = 0; c < num_cases(60); ++c) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(c);
    Rng rng(seed, 13);
    const std::string type = types[static_cast<std::size_t>(rng.between(0, 6))];
    const std::vector<std::string> values = {
        "Z[vj, vi]", "X[vb, vi, vj]", "max(X[vb, vi, vj], Z[vj, vi])", "X[vb, 0, vj]",
        fmt::format("select(vj < 5, X[vb, vi, vj], 0{})", type)};
    const int64_t lanes = int64_t{1} << rng.between(1, 5);
    const int64_t rows = rng.between(2, 20);
    const bool is_whole = rng.chance(0.7);
    const int64_t m = is_whole ? lanes * rng.between(1, 3) : rng.between(1, 50);
    const int64_t n = is_whole ? rows * rng.between(1, 3) : rng.between(1, 50);
    const Program base = crossing(m, n, type, values[static_cast<std::size_t>(rng.between(0, 4))]);
    const Program scheduled = tiled(base, rows, lanes);
    INFO("seed " << seed << "\n" << print(scheduled));
    REQUIRE(compare_with_interpreter(base, scheduled, seed) == "");
  }
}

TEST_CASE("a whole vector that crosses rows needs no scatter") {
  for (const int64_t rows : {4, 7, 8, 14}) {
    INFO(rows << " rows");
    CHECK_FALSE(scatters(llvm_text(tiled(crossing(24, 2 * rows, "f32", "Z[vj, vi]"), rows, 8))));
    CHECK_FALSE(scatters(llvm_text(tiled(crossing(24, 2 * rows, "f64", "Z[vj, vi]"), rows, 4))));
  }
  // Too few rows, and a vector that is cut.
  CHECK(scatters(llvm_text(tiled(crossing(24, 24, "f32", "Z[vj, vi]"), 2, 8))));
  CHECK(scatters(llvm_text(tiled(crossing(20, 24, "f32", "Z[vj, vi]"), 8, 8))));
}

}  // namespace prunerc
