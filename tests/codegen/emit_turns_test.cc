// Lanes that take turns between rows: whole vectors and shuffles, and the right elements.
#include "ir/printer.h"
#include "ir/support/rng.h"
#include "schedule/schedule.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test
using schedule::Int;

Program copy(int64_t n, const std::string& type, const std::string& value) {
  return parse_or_die(fmt::format(R"(
program p(X: {t}[8, 3, {n}]) -> (Y: {t}[3, {n}]) {{
  for i in 3 @L0 {{ for j in {n} @L1 {{
    block "Y" @B0 [vi: S(3) = i, vj: S({n}) = j] {{ Y[vi, vj] = {value} }}
  }} }}
}})",
                                  fmt::arg("t", type), fmt::arg("n", n), fmt::arg("value", value)));
}

Program in_lanes(const Program& base, int64_t lanes) {
  schedule::Schedule s(base);
  const auto j = s.split(s.loops_of(s.blocks()[0])[1], {Int(-1), Int(lanes)}).value();
  REQUIRE_OK(s.vectorize(j[1]));
  return s.program();
}

bool gathers(const Program& program) {
  Target target;
  target.name = "x86-64-v3";
  target.vector_bytes = 32;
  const Result<std::string> text = codegen::emit_cpu(program, target, codegen::EmitKind::kLlvmText);
  REQUIRE_OK(text);
  return text->find("masked.gather") != std::string::npos;
}

}  // namespace

TEST_CASE("lanes in turns of any length and type compute what the interpreter computes") {
  const std::vector<std::string> types = {"f32", "f64", "f16", "bf16", "i8", "i32", "i64"};
  for (int c = 0; c < num_cases(60); ++c) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(c);
    Rng rng(seed, 14);
    const std::string type = types[static_cast<std::size_t>(rng.between(0, 6))];
    const std::string turns = std::to_string(int64_t{1} << rng.between(0, 3));
    const std::vector<std::string> values = {
        "X[vj % " + turns + ", vi, vj // " + turns + "]", "X[0, vi, vj // " + turns + "]",
        "X[vj % " + turns + ", vi, 0] + X[(vj + 1) % 2, vi, vj // 2]",
        "X[(vj + 3) % " + turns + ", vi, (vj + 3) // " + turns + " % 3]",
        // In some lanes only.
        "select(vj < 5, X[vj % " + turns + ", vi, vj // " + turns + "], 0" + type + ")"};
    const int64_t lanes = int64_t{1} << rng.between(1, 5);
    const int64_t n = rng.chance(0.5) ? lanes * rng.between(1, 4) : rng.between(3, 80);
    const Program base = copy(n, type, values[static_cast<std::size_t>(rng.between(0, 4))]);
    const Program scheduled = in_lanes(base, lanes);
    INFO("seed " << seed << "\n" << print(scheduled));
    REQUIRE(compare_with_interpreter(base, scheduled, seed) == "");
  }
}

TEST_CASE("lanes in two or four turns need no gather") {
  for (const char* type : {"f32", "f64", "i32", "f16", "i8"}) {
    for (const int64_t lanes : {8, 16}) {
      for (const char* value : {"X[vj % 2, vi, vj // 2]", "X[vj % 4, vi, vj // 4]",
                                "X[0, vi, vj // 2]", "X[vj % 4, vi, 0]"}) {
        INFO(type << ", " << lanes << " lanes: " << value);
        CHECK_FALSE(gathers(in_lanes(copy(96, type, value), lanes)));
      }
    }
  }
}

TEST_CASE("what takes more turns, or turns that move apart, is gathered") {
  CHECK(gathers(in_lanes(copy(96, "f32", "X[vj % 8, vi, vj // 8]"), 16)));
  CHECK(gathers(in_lanes(copy(96, "f32", "X[vj // 2 % 8, vi, vj % 2]"), 16)));
}

}  // namespace prunerc
