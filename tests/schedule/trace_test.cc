// Traces, sampling, replay, queries.
#include "ir/arith/loop_index.h"
#include "ir/equal.h"
#include "ir/printer.h"
#include "schedule/trace/factor.h"
#include "schedule/trace/tokens.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <set>

namespace prunerc::testing {
namespace {

using namespace schedule;  // NOLINT(google-build-using-namespace)
using ir::BlockId;
using ir::LoopId;

Schedule tiled(const ir::Program& base, Rng& rng) {
  Schedule s(base, Verify::kEachStep);
  const Result<std::vector<Int>> tiles = s.sample_perfect_tile(LoopId(0), 3, 8, rng);
  REQUIRE_OK(tiles);
  const Result<std::vector<LoopId>> loops = s.split(LoopId(0), *tiles);
  REQUIRE_OK(loops);
  REQUIRE_OK(s.parallel(loops->front()));
  const Result<Int> depth = s.sample_categorical({0, 16, 64}, {1, 2, 1}, rng);
  REQUIRE_OK(depth);
  REQUIRE_OK(s.annotate(loops->front(), "unroll", *depth));
  return s;
}

TEST_CASE("a trace with samples prints, parses and replays") {
  const ir::Program base = parse_or_die(kMatmul);
  Rng rng(7);
  const Schedule s = tiled(base, rng);
  const std::string text = print(s.trace());
  INFO(text);
  CHECK(text.find("sample_perfect_tile(@L0, 3, 8) -> v0, v1, v2 = [") == 0);
  CHECK(text.find("split(@L0, [v0, v1, v2]) -> @L3, @L4, @L5\n") != std::string::npos);
  CHECK(text.find("annotate_loop(@L3, \"unroll\", v3)\n") != std::string::npos);
  const Result<Trace> parsed = parse_trace(text);
  REQUIRE_OK(parsed);
  CHECK(*parsed == s.trace());
  const Result<Schedule> again = replay(base, *parsed, {{}, Misfit::kError, Verify::kEachStep});
  REQUIRE_OK(again);
  CHECK(structural_equal(again->program(), s.program()));
}

TEST_CASE("tokens are the steps with the values that were decided") {
  const ir::Program base = parse_or_die(kMatmul);
  Schedule s(base, Verify::kEachStep);
  const Result<std::vector<Int>> tiles = s.decide_perfect_tile(LoopId(0), 2, 0, {4, 4});
  REQUIRE_OK(tiles);
  REQUIRE_OK(s.split(LoopId(0), *tiles));
  const Result<Int> depth = s.decide_categorical({0, 15, 63}, {1, 2, 1}, 2);
  REQUIRE_OK(depth);
  REQUIRE_OK(s.annotate(LoopId(1), "unroll", *depth));
  const TraceTokens tokens = trace_tokens(s.trace());
  REQUIRE(tokens.num_rows == 2);  // the samples are where their values are used
  REQUIRE(tokens.values.size() == 2 * kTokenWidth);
  const auto at = [&](int row, int column) {
    return tokens.values[static_cast<std::size_t>(row * kTokenWidth + column)];
  };
  for (const int row : {0, 1}) {
    float kinds = 0;
    for (int k = 0; k < kNumTokenKinds; ++k) kinds += at(row, k);
    CHECK(kinds == 1);
  }
  CHECK(at(0, 0) == 1);               // a split
  CHECK(at(0, kNumTokenKinds) == 0);  // of @L0
  CHECK(at(0, kNumTokenKinds + 1) == Approx(std::log2(5)));
  CHECK(at(1, 0) == 0);
  CHECK(at(1, kNumTokenKinds) == 1);      // @L1
  CHECK(at(1, kNumTokenKinds + 2) == 6);  // log2(1 + 63)
  // Another decision changes numbers and nothing else; a trace without decisions does not crash.
  const TraceTokens other = trace_tokens(s.trace().with_decision(1, {0}));
  CHECK(other.num_rows == 2);
  CHECK(other.values != tokens.values);
  Trace bare = s.trace();
  bare.decisions.clear();
  CHECK(trace_tokens(bare).num_rows == 2);
  CHECK(trace_tokens(Trace{}).num_rows == 0);
}

TEST_CASE("a product follows the decisions that it is made of") {
  const ir::Program base = parse_or_die(kMatmul);
  Schedule s(base, Verify::kEachStep);
  const Result<Int> warps = s.decide_categorical({1, 2, 4}, {1, 1, 1}, 1);
  REQUIRE_OK(warps);
  const Result<Int> rows = s.product({*warps, Int(4)});
  REQUIRE_OK(rows);
  CHECK(rows->value == 8);
  REQUIRE_OK(s.split(LoopId(0), {Int(-1), *rows}));
  CHECK(s.trace().num_decisions() == 1);
  INFO(print(s.trace()));
  CHECK(*parse_trace(print(s.trace())) == s.trace());
  CHECK(*trace_from_json(to_json(s.trace())) == s.trace());
  const Result<Schedule> other = replay(base, s.trace().with_decision(0, {2}));
  REQUIRE_OK(other);
  const ir::LoopIndex index(other->program());
  CHECK(index.loop(other->loops_of(BlockId(0))[1])->extent.as<ir::IntImm>()->value == 16);
}

TEST_CASE("every decision of a trace can be replaced before replay") {
  const ir::Program base = parse_or_die(kMatmul);
  Rng rng(3);
  const Schedule s = tiled(base, rng);
  REQUIRE(s.trace().num_decisions() == 2);
  const DecisionSpace tiles = s.trace().decision_space(0);
  CHECK(tiles.extent == 16);
  CHECK(tiles.num_tiles == 3);
  CHECK(tiles.count() == 14);  // of the 15 factorisations of 2^4 into three, one has 16 innermost
  CHECK(s.trace().decision_space(1).values == std::vector<int64_t>{0, 16, 64});
  CHECK(s.trace().decision_space(1).count() == 3);
  for (int i = 0; i < 50; ++i) {
    Trace changed = s.trace();
    for (int d = 0; d < changed.num_decisions(); ++d) {
      changed = changed.with_decision(d, random_decision(changed.decision_space(d), rng));
    }
    const Result<Schedule> other = replay(base, changed, {{}, Misfit::kError, Verify::kEachStep});
    REQUIRE_OK(other);
    CHECK(other->trace() == changed);
    check_same_result(base, other->program(), 1);
    const Result<Schedule> overridden = replay(base, s.trace(), {changed.decisions});
    REQUIRE_OK(overridden);
    CHECK(structural_equal(overridden->program(), other->program()));
  }
}

TEST_CASE("mutation gives another decision of the same space") {
  Rng rng(11);
  DecisionSpace space;
  space.primitive = PrimitiveKind::kSamplePerfectTile;
  space.extent = 360;
  space.num_tiles = 4;
  space.max_innermost = 12;
  Decision decision = random_decision(space, rng);
  for (int i = 0; i < 200; ++i) {
    REQUIRE(space.contains(decision));
    const Decision next = mutate_decision(space, decision, rng);
    CHECK(next != decision);
    decision = next;
  }
}

TEST_CASE("perfect tiles are counted and drawn uniformly") {
  Rng rng(5);
  for (const int64_t extent : {1, 7, 12, 36, 64}) {
    for (const int64_t cap : {0, 1, 3, 4}) {
      std::set<Decision> all;
      DecisionSpace space;
      space.primitive = PrimitiveKind::kSamplePerfectTile;
      space.extent = extent;
      space.num_tiles = 3;
      space.max_innermost = cap;
      for (int64_t a = 1; a <= extent; ++a) {
        for (int64_t b = 1; a * b <= extent; ++b) {
          const Decision tiles = {a, b, extent / (a * b)};
          if (space.contains(tiles)) all.insert(tiles);
        }
      }
      INFO("extent " << extent << " cap " << cap);
      CHECK(space.count() == static_cast<int64_t>(all.size()));
      std::set<Decision> seen;
      const int draws = 60 * static_cast<int>(all.size());
      for (int i = 0; i < draws; ++i) seen.insert(random_decision(space, rng));
      CHECK(seen == all);
    }
  }
}

TEST_CASE("a decision for another extent is an error or repaired") {
  const ir::Program base = parse_or_die(kMatmul);
  Rng rng(1);
  const Schedule s = tiled(base, rng);
  const Trace changed = s.trace().with_decision(0, {5, 3, 2}).with_decision(1, {9});
  CHECK_DIAG(replay(base, changed), DecisionMismatch);
  const Result<Schedule> repaired = replay(base, changed, {{}, Misfit::kRepair});
  REQUIRE_OK(repaired);
  CHECK(repaired->trace().decisions[0] == Decision{4, 2, 2});
  CHECK(repaired->trace().decisions[1] == Decision{2});
}

TEST_CASE("ids do not depend on decisions") {
  const ir::Program base = parse_or_die(kDenseRelu);
  const auto build = [&](Decision tiles) {
    Schedule s(base, Verify::kEachStep);
    const std::vector<Int> outer = *s.decide_perfect_tile(LoopId(0), 2, 0, std::move(tiles));
    const std::vector<LoopId> loops = *s.split(LoopId(0), outer);
    const Result<std::vector<LoopId>> moved = s.reverse_compute_at(BlockId(1), loops[0]);
    REQUIRE_OK(moved);
    return *moved;
  };
  const std::vector<LoopId> ids = build({2, 4});
  CHECK(build({1, 8}) == ids);
  CHECK(build({8, 1}) == ids);
}

TEST_CASE("sampling says what is wrong") {
  Schedule s(parse_or_die(kMatmul));
  Rng rng(1);
  CHECK_DIAG(s.sample_perfect_tile(LoopId(9), 2, 0, rng), LoopNotFound);
  CHECK_DIAG(s.sample_perfect_tile(LoopId(0), 0, 0, rng), TileCount);
  CHECK_DIAG(s.sample_perfect_tile(LoopId(0), 99, 0, rng), TileCount);
  CHECK_DIAG(s.sample_perfect_tile(LoopId(0), 2, -1, rng), TileCap);
  CHECK_DIAG(s.sample_perfect_tile(LoopId(0), 1, 8, rng), TileCap);
  CHECK_DIAG(s.sample_categorical({1, 2}, {1}, rng), CategoricalWeights);
  CHECK_DIAG(s.sample_categorical({1, 2}, {0, 0}, rng), CategoricalWeights);
  CHECK_DIAG(s.sample_categorical({1, 2}, {-1, 3}, rng), CategoricalWeights);
  CHECK_DIAG(s.sample_categorical({}, {}, rng), CategoricalWeights);
  CHECK_DIAG(s.decide_categorical({1, 2}, {1, 1}, 2), DecisionMismatch);
  CHECK_DIAG(s.decide_perfect_tile(LoopId(0), 2, 0, {3, 5}), DecisionMismatch);
  CHECK(s.trace() == Trace{});
}

TEST_CASE("malformed traces are errors") {
  const ir::Program base = parse_or_die(kMatmul);
  CHECK_DIAG(parse_trace("frobnicate(@L0)"), ParseUnknownName);
  CHECK_DIAG(parse_trace("split(@B0, [1])"), ParseExpected);
  CHECK_DIAG(parse_trace("split(@L0 [1])"), ParseExpected);
  CHECK_DIAG(parse_trace("split(@L0, [v0])"), ParseUnknownName);
  CHECK_DIAG(parse_trace("split(@L99999999999, [1])"), ParseNumber);
  CHECK_DIAG(parse_trace("split(@L0, [99999999999999999999])"), ParseNumber);
  CHECK_DIAG(parse_trace("annotate_loop(@L0, \"x, 1)"), ParseExpected);
  CHECK_DIAG(parse_trace("sample_perfect_tile(@L0, 2, 0) -> v1, v2 = [4, 4]"), ParseExpected);
  CHECK_DIAG(parse_trace("sample_perfect_tile(@L0, 2, 0) -> v0, v1"), ParseExpected);
  CHECK_DIAG(parse_trace("split("), ParseExpected);
  CHECK_DIAG(parse_trace("@"), ParseExpected);
  Trace bad;
  bad.instructions.push_back({PrimitiveKind::kSplit, {LoopId(0)}, {}});
  CHECK_DIAG(replay(base, bad), TraceMalformed);
  bad.instructions[0].operands.push_back(std::vector<Int>{Int(0, ValueId(4))});
  CHECK_DIAG(replay(base, bad), TraceMalformed);
  bad.instructions[0] = {PrimitiveKind::kSamplePerfectTile, {LoopId(0), Int(2), Int(0)}, {}};
  CHECK_DIAG(replay(base, bad), TraceMalformed);
}

TEST_CASE("absurd decisions neither overflow nor hang") {
  const std::string_view texts[] = {
      "sample_perfect_tile(@L0, 2, 0) -> v0, v1 = [9223372036854775807, 9223372036854775807]",
      "sample_perfect_tile(@L0, 2, 5) -> v0, v1 = [9223372036854775783, 1]",
      "sample_perfect_tile(@L0, 2, 0) -> v0, v1 = [-4, 0]",
      "sample_perfect_tile(@L0, 2, 0) -> v0, v1 = []",
  };
  for (const std::string_view text : texts) {
    INFO(std::string(text));
    const Result<Trace> trace = parse_trace(text);
    REQUIRE_OK(trace);
    CHECK(trace->decision_space(0).count() >= 0);
    CHECK_DIAG(replay(parse_or_die(kMatmul), *trace), DecisionMismatch);
    const Result<Schedule> repaired = replay(parse_or_die(kMatmul), *trace, {{}, Misfit::kRepair});
    REQUIRE_OK(repaired);
    CHECK(repaired->trace().decision_space(0).extent == 16);
  }
}

TEST_CASE("queries answer from the current program") {
  Schedule s(parse_or_die(kDenseRelu));
  CHECK(s.blocks() == std::vector<BlockId>{BlockId(0), BlockId(1)});
  CHECK(s.loops_of(BlockId(0)) == std::vector<LoopId>{LoopId(0), LoopId(1), LoopId(2)});
  CHECK(s.loops_of(BlockId(5)).empty());
  CHECK(s.consumers(BlockId(0)) == std::vector<BlockId>{BlockId(1)});
  CHECK(s.producers(BlockId(1)) == std::vector<BlockId>{BlockId(0)});
  CHECK(s.producers(BlockId(0)).empty());
  REQUIRE_OK(s.block_by_name("Y"));
  CHECK(*s.block_by_name("Y") == BlockId(1));
  CHECK_DIAG(s.block_by_name("Q"), BlockNameNotFound);
  const ir::Program twice = parse_or_die(R"(
    program twice(X: f32[2]) -> (Y: f32[2], Z: f32[2]) {
      for i in 2 { block "B" [v: S(2) = i] { Y[v] = X[v] } }
      for i in 2 { block "B" [v: S(2) = i] { Z[v] = X[v] } }
    })");
  CHECK_DIAG(Schedule(twice).block_by_name("B"), BlockNameAmbiguous);
}

TEST_CASE("a fork is independent") {
  Schedule s(parse_or_die(kMatmul));
  REQUIRE_OK(s.split(LoopId(0), {4, 4}));
  Schedule fork = s.fork();
  REQUIRE_OK(fork.parallel(LoopId(3)));
  CHECK(s.trace().instructions.size() == 1);
  CHECK(fork.trace().instructions.size() == 2);
  CHECK_FALSE(structural_equal(s.program(), fork.program()));
}

TEST_CASE("the trace in the README replays as printed") {
  const std::string readme = read_test_file("schedule/README.md");
  const std::string indent = "\n      ";
  std::string text;
  for (std::size_t at = readme.find(indent); at != std::string::npos;
       at = readme.find(indent, at)) {
    at += indent.size();
    text += readme.substr(at, readme.find('\n', at) - at) + "\n";
    at = readme.find('\n', at);
  }
  const Result<Trace> trace = parse_trace(text);
  REQUIRE_OK(trace);
  const ir::Program base = parse_or_die(R"(
program matmul(A: f32[512, 8], B: f32[8, 16]) -> (C: f32[512, 16]) {
  for i in 512 @L0 { for j in 16 @L1 { for k in 8 @L2 {
    block "C" @B0 [vi: S(512) = i, vj: S(16) = j, vk: R(8) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
})");
  const Result<Schedule> replayed = replay(base, *trace);
  REQUIRE_OK(replayed);
  CHECK(print(replayed->trace()) == text);
}

}  // namespace
}  // namespace prunerc::testing
