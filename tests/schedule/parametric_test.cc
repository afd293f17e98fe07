// Traces with open decisions: what the program says of its parameters, and what is refused.
#include "schedule/parametric/parametric.h"

#include "ir/equal.h"
#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

using namespace schedule;  // NOLINT(google-build-using-namespace): a test

constexpr std::string_view kCopy = R"(
program copy(X: f32[24]) -> (Y: f32[24]) {
  for i in 24 @L0 { block "Y" @B0 [v: S(24) = i] { Y[v] = X[v] } }
})";

constexpr std::string_view kStages = R"(
program stages(X: f32[24]) -> (Y: f32[24]) {
  buffer T: f32[24] global
  for i in 24 @L0 { block "T" @B0 [v: S(24) = i] { T[v] = X[v] + 1f32 } }
  for i in 24 @L1 { block "Y" @B1 [v: S(24) = i] { Y[v] = T[v]*2f32 } }
})";

constexpr std::string_view kSum = R"(
program sum(X: f32[24]) -> (Y: f32[1]) {
  for k in 24 @L0 { block "Y" @B0 [v: S(1) = 0, vk: R(24) = k] {
    init { Y[v] = 0f32 }
    Y[v] = Y[v] + X[vk] } }
})";

constexpr std::string_view kTiles =
    "sample_perfect_tile(@L0, 2, 0) -> v0, v1 = [6, 4]\n"
    "split(@L0, [v0, v1]) -> @L1, @L2\n";
constexpr std::string_view kCovering =
    "sample_covering_tile(24, 2, 0) -> v0 = [5]\n"
    "split(@L0, [-1, v0]) -> @L1, @L2\n";
constexpr std::string_view kChoice =
    "sample_categorical([2, 4, 5], [1, 1, 1]) -> v0 = [1]\n"
    "split(@L0, [-1, v0]) -> @L1, @L2\n";
constexpr std::string_view kPartitioned =
    "sample_partitioned_tile(@L0, 2, 1, 4) -> v0, v1 = [6, 4]\n"
    "split(@L0, [v0, v1]) -> @L1, @L2\n";

Result<Parametric> open(std::string_view program, const std::string& trace) {
  const Result<Trace> parsed = parse_trace(trace);
  REQUIRE_OK(parsed);
  return parametrize(parse_or_die(program), *parsed);
}

Parametric open_or_die(std::string_view program, const std::string& trace) {
  Result<Parametric> made = open(program, trace);
  REQUIRE_OK(made);
  return *std::move(made);
}

bool holds(const Parametric& sketch, std::string_view text) {
  const std::string printed = ir::print(sketch.program);
  INFO(printed);
  return printed.find(text) != std::string::npos;
}

TEST_CASE("perfect tiles become loops without a guard") {
  const Parametric sketch = open_or_die(kCopy, std::string(kTiles));
  CHECK(sketch.space.count() == ir::count_perfect_tiles(24, 2));
  CHECK(holds(sketch, "for i_0 in $0 @L1"));
  CHECK_FALSE(holds(sketch, "where"));
}

TEST_CASE("a covering tiling has a parameter for its outermost level, and a guard") {
  const Parametric sketch = open_or_die(kCopy, std::string(kCovering));
  CHECK(holds(sketch, "for i_0 in $0 @L1"));
  CHECK(holds(sketch, "where"));
  CHECK(param_values(sketch, std::vector<Decision>{{7}}).value() == std::vector<int64_t>{4, 7});
  CHECK(decisions_of(sketch, std::vector<int64_t>{4, 7}) == std::vector<Decision>{{7}});
}

TEST_CASE("a choice is a parameter that holds the value") {
  const Parametric sketch = open_or_die(kCopy, std::string(kChoice));
  CHECK(param_values(sketch, std::vector<Decision>{{2}}).value() == std::vector<int64_t>{5});
  CHECK(decisions_of(sketch, std::vector<int64_t>{5}) == std::vector<Decision>{{2}});
  const ir::Program instance = instantiate(sketch, std::vector<int64_t>{4}).value();
  CHECK(instance.domain().empty());
  CHECK(ir::print(instance).find("where") == std::string::npos);
}

TEST_CASE("an instance computes what the program with these parameters does") {
  const std::string trace = std::string(kChoice) + "parallel(@L1)\nvectorize(@L2)\n";
  const Parametric sketch = open_or_die(kCopy, trace);
  Rng rng(3);
  const std::vector<ir::Tensor> inputs = random_inputs(sketch.program, rng);
  for (const int64_t value : {2, 4, 5}) {
    const std::vector<int64_t> values = {value};
    const Result<std::vector<ir::Tensor>> open_result =
        ir::interpret(sketch.program, inputs, {.params = values});
    REQUIRE_OK(open_result);
    const ir::Program instance = instantiate(sketch, values).value();
    CHECK(first_difference(*open_result, interpret_or_die(instance, inputs)).empty());
  }
}

TEST_CASE("an attribute may be a parameter") {
  const Parametric sketch = open_or_die(kCopy,
                                        "sample_categorical([0, 16], [1, 1]) -> v0 = [0]\n"
                                        "annotate_loop(@L0, \"unroll_max_step\", v0)\n");
  const ir::Program instance = instantiate(sketch, std::vector<int64_t>{16}).value();
  CHECK(ir::print(instance).find("unroll_max_step = 16") != std::string::npos);
}

constexpr std::string_view kRows = R"(
program rows(X: f16[8, 64]) -> (Y: f16[8, 64]) {
  buffer T: f16[8, 64] shared
  for i in 8 @L0 { for j in 64 @L1 {
    block "T" @B0 [v: S(8) = i, w: S(64) = j] { T[v, w] = X[v, w] } } }
  for i in 8 @L2 { for j in 64 @L3 {
    block "Y" @B1 [v: S(8) = i, w: S(64) = j] { Y[v, w] = T[v, w] } } }
})";

TEST_CASE("the bytes of a swizzle may be a parameter, which buffer it is of may not") {
  const Parametric sketch = open_or_die(kRows,
                                        "sample_categorical([1, 4], [1, 1]) -> v0 = [0]\n"
                                        "product([v0, 32]) -> v1\n"
                                        "swizzle(@B0, 0, v1)\n");
  CHECK(holds(sketch, "swizzle_0 = 32"));
  const ir::Program instance = instantiate(sketch, std::vector<int64_t>{4}).value();
  CHECK(ir::print(instance).find("swizzle_0 = 128") != std::string::npos);
  CHECK_DIAG(open(kRows,
                  "sample_categorical([0, 1], [1, 1]) -> v0 = [0]\n"
                  "swizzle(@B0, v0, 32)\n"),
             ParamOperand);
}

TEST_CASE("a parameter that is taken back is in no instance") {
  const Parametric sketch = open_or_die(kRows,
                                        "sample_categorical([1, 4], [1, 1]) -> v0 = [0]\n"
                                        "product([v0, 32]) -> v1\n"
                                        "swizzle(@B0, 0, v1)\n"
                                        "unannotate_block(@B0, \"swizzle_0\")\n");
  const ir::Program instance = instantiate(sketch, std::vector<int64_t>{4}).value();
  CHECK(ir::print(instance).find("swizzle_0") == std::string::npos);
}

TEST_CASE("the same trace gives the same program") {
  const std::string trace = std::string(kTiles) + "parallel(@L1)\n";
  CHECK(ir::print(open_or_die(kCopy, trace).program) ==
        ir::print(open_or_die(kCopy, trace).program));
}

TEST_CASE("a sketch of what is a sketch already is refused") {
  const Parametric sketch = open_or_die(kCopy, std::string(kTiles));
  CHECK_DIAG(parametrize(sketch.program, Trace()), ParamBase);
}

TEST_CASE("primitives that need numbers refuse parameters") {
  CHECK_DIAG(open(kCopy,
                  "sample_categorical([2, 4], [1, 1]) -> v0 = [1]\n"
                  "loop_partition(@L0, [v0, -1]) -> @L1, @L2\n"),
             ParamOperand);
}

TEST_CASE("tiles of a loop whose extent is a parameter are refused") {
  CHECK_DIAG(
      open(kCopy, std::string(kTiles) + "sample_perfect_tile(@L1, 2, 0) -> v2, v3 = [3, 2]\n"),
      LoopExtentNotConstant);
}

TEST_CASE("what is illegal with the recorded decisions is refused") {
  CHECK_DIAG(open(kSum, std::string(kTiles) + "parallel(@L1)\n"), BlocksDepend);
}

TEST_CASE("a trace without its decisions, or with ids of another program, is refused") {
  Trace trace = *parse_trace(kTiles);
  trace.decisions.clear();
  CHECK_DIAG(parametrize(parse_or_die(kCopy), trace), TraceMalformed);
  CHECK_DIAG(open(kCopy, "split(@L0, [6, 4]) -> @L5, @L6\n"), TraceMalformed);
}

TEST_CASE("values outside the domain are refused") {
  const Parametric tiles = open_or_die(kCopy, std::string(kTiles));
  CHECK_DIAG(instantiate(tiles, std::vector<int64_t>{6}), ParamCount);
  CHECK_DIAG(instantiate(tiles, std::vector<int64_t>{5, 4}), ParamDomain);
  const Parametric choice = open_or_die(kCopy, std::string(kChoice));
  CHECK_DIAG(instantiate(choice, std::vector<int64_t>{3}), ParamDomain);
  CHECK_DIAG(param_values(choice, std::vector<Decision>{{3}}), ParamDomain);
  CHECK_DIAG(param_values(choice, std::vector<Decision>{}), ParamCount);
}

TEST_CASE("values that violate a constraint are refused") {
  const Parametric sketch = open_or_die(kCopy, std::string(kPartitioned));
  CHECK(sketch.program.domain().constraints.size() == 1);
  CHECK_DIAG(instantiate(sketch, std::vector<int64_t>{12, 2}), ParamConstraint);
  REQUIRE_OK(instantiate(sketch, std::vector<int64_t>{3, 8}));
}

TEST_CASE("another place than the recorded one is refused") {
  const Parametric sketch = open_or_die(kStages,
                                        "sample_compute_location(@B0, [-2, -1, 0]) -> v0 = [-1]\n"
                                        "compute_at_location(@B0, v0)\n");
  CHECK_DIAG(param_values(sketch, std::vector<Decision>{{-2}}), ParamStructure);
  REQUIRE_OK(param_values(sketch, std::vector<Decision>{{-1}}));
}

}  // namespace
}  // namespace prunerc::testing
