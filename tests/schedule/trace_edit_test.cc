// Traces as data: JSON, simplification, postprocessing, other bases; partitioned tiles and places.
#include "ir/equal.h"
#include "ir/printer.h"
#include "schedule/primitive.h"
#include "schedule/trace/factor.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <string>

namespace prunerc::testing {
namespace {

using namespace schedule;  // NOLINT(google-build-using-namespace)
using ir::BlockId;
using ir::LoopId;

Schedule sampled(const ir::Program& base) {
  Rng rng(3);
  Schedule s(base, Verify::kEachStep);
  const auto dead = s.sample_categorical({1, 2}, {1, 1}, rng);
  REQUIRE_OK(dead);
  const auto tiles = s.sample_perfect_tile(LoopId(0), 2, 0, rng);
  REQUIRE_OK(tiles);
  const auto unused = s.sample_partitioned_tile(LoopId(1), 3, 1, 2, rng);
  REQUIRE_OK(unused);
  const auto loops = s.split(LoopId(0), *tiles);
  REQUIRE_OK(loops);
  const auto place = s.sample_compute_location(BlockId(0), rng);
  REQUIRE_OK(place);
  REQUIRE_OK(s.compute_at_location(BlockId(0), *place));
  REQUIRE_OK(s.set_scope(BlockId(0), 0, ir::Scope::kShared));
  REQUIRE_OK(s.enter_postproc());
  const auto late = s.sample_categorical({4, 8}, {1, 1}, rng);
  REQUIRE_OK(late);
  REQUIRE_OK(s.annotate(BlockId(1), "width", *late));
  return s;
}

TEST_CASE("a trace survives JSON") {
  const ir::Program base = parse_or_die(kDenseRelu);
  const Schedule s = sampled(base);
  const std::string json = to_json(s.trace());
  INFO(json);
  const Result<Trace> read = trace_from_json(json);
  REQUIRE_OK(read);
  CHECK(*read == s.trace());
  CHECK(to_json(*read) == json);
  const Result<Schedule> again = replay(base, *read);
  REQUIRE_OK(again);
  CHECK(structural_equal(again->program(), s.program()));
  CHECK(trace_from_json("{\"steps\": [], \"decisions\": []}")->instructions.empty());
  const Result<Trace> far = parse_trace("fuse([@L2147483647])\n");
  REQUIRE_OK(far);
  CHECK(*trace_from_json(to_json(*far)) == *far);
}

TEST_CASE("a trace holds printable texts alone") {
  CHECK_DIAG(parse_trace("cache_read(@B0, 0, \"shared|\x93\xe8\")\n"), ParseExpected);
  CHECK_DIAG(parse_trace("cache_read(@B0, 0, \"\x1b[2J\")\n"), ParseExpected);
  CHECK_DIAG(
      trace_from_json(
          R"({"steps": [{"do": "cache_read", "with": ["@B0", 0, "\u001b[2J"], "gives": []}]})"),
      TraceJson);
}

TEST_CASE("malformed JSON traces are errors") {
  const std::string texts[] = {
      "",
      "[]",
      "{\"steps\": 3}",
      "{\"steps\": [3]}",
      "{\"steps\": [{\"do\": 3}]}",
      R"({"steps": [{"do": "split", "with": 3}]})",
      R"({"steps": [{"do": "split", "with": ["@L0"]}]})",
      R"({"steps": [{"do": "split", "with": ["@B0", [1]]}]})",
      R"({"steps": [{"do": "split", "with": ["@L", [1]]}]})",
      R"({"steps": [{"do": "split", "with": ["@L9999999999", [1]]}]})",
      R"({"steps": [{"do": "split", "with": ["@L0", 4]}]})",
      R"({"steps": [{"do": "split", "with": ["@L0", [1.5]]}]})",
      R"({"steps": [{"do": "split", "with": ["@L0", [18446744073709551615]]}]})",
      R"({"steps": [{"do": "split", "with": ["@L-1", [1]]}]})",
      R"({"steps": [{"do": "split", "with": ["@L0", [1], 2]}]})",
      R"({"steps": [{"do": "split", "with": ["@L0", [1]], "gives": 4}]})",
      R"({"steps": [{"do": "split", "with": ["@L0", [1]], "gives": ["x"]}]})",
      R"({"steps": [{"do": "set_scope", "with": ["@B0", 0, 1]}]})",
      R"({"steps": [{"do": "fuse_reduction_epilogue", "with": ["@L0", "@B0"]}]})",
      R"({"steps": [{"do": "reorder", "with": [["@B0"]]}]})",
      R"({"steps": [{"do": "sample_perfect_tile", "with": ["@L0", 1, 0], "gives": ["v1"]}]})",
      R"({"steps": [{"do": "sample_perfect_tile", "with": ["@L0", 1, 0], "gives": ["v0"]}]})",
      R"({"steps": [{"do": "sample_perfect_tile", "with": ["@L0", 1, 0], "gives": ["v0"]}],
          "decisions": [[0, ["x"]]]})",
      R"({"steps": [], "decisions": 3})",
      R"({"steps": [], "decisions": [[0, [1]]]})",
  };
  for (const std::string& text : texts) {
    INFO(text);
    CHECK_DIAG(trace_from_json(text), TraceJson);
  }
  CHECK_DIAG(trace_from_json(R"({"steps": [{"do": "frobnicate"}]})"), ParseUnknownName);
  CHECK_DIAG(trace_from_json(R"({"steps": [{"do": "split", "with": ["@L0", ["v0"]]}]})"),
             ParseUnknownName);
}

TEST_CASE("simplify drops samples that nobody uses") {
  const ir::Program base = parse_or_die(kDenseRelu);
  const Schedule s = sampled(base);
  CHECK(s.trace().num_decisions() == 5);
  const Trace simple = simplify(s.trace());
  INFO(print(simple));
  CHECK(simple.num_decisions() == 3);
  CHECK(simplify(simple) == simple);
  const Result<Trace> read = parse_trace(print(simple));
  REQUIRE_OK(read);
  CHECK(*read == simple);
  const Result<Schedule> again = replay(base, simple);
  REQUIRE_OK(again);
  CHECK(structural_equal(again->program(), s.program()));
}

TEST_CASE("what follows enter_postproc is not replayed as space") {
  const ir::Program base = parse_or_die(kDenseRelu);
  const Schedule s = sampled(base);
  CHECK(s.trace().num_decisions() == 5);
  const Result<Schedule> part = replay(base, s.trace(), {.part = Part::kSpace});
  REQUIRE_OK(part);
  CHECK(part->trace().num_decisions() == 4);
  CHECK(print(part->program()).find("width") == std::string::npos);
}

// The same nests as kDenseRelu with other names, ids and extents.
constexpr std::string_view kOtherDense = R"(
program other(P: f32[6, 10], Q: f32[10, 24], R_: f32[24]) -> (Z: f32[6, 24]) {
  buffer U: f32[6, 24] global
  for a in 6 @L7 { for b in 24 @L4 { for c in 10 @L9 {
    block "sum" @B6 [vi: S(6) = a, vj: S(24) = b, vk: R(10) = c] {
      init { U[vi, vj] = 0f32 }
      U[vi, vj] = U[vi, vj] + P[vi, vk]*Q[vk, vj]
  } } } }
  for a in 6 @L2 { for b in 24 @L1 {
    block "relu" @B0 [vi: S(6) = a, vj: S(24) = b] {
      Z[vi, vj] = max(U[vi, vj] + R_[vj], 0f32)
  } } }
})";

TEST_CASE("a trace moves to another shape with other names and ids") {
  const ir::Program base = parse_or_die(kDenseRelu);
  const ir::Program other = parse_or_die(kOtherDense);
  Schedule s(base, Verify::kEachStep);
  const std::vector<Int> rows = *s.decide_perfect_tile(LoopId(0), 2, 0, {2, 4});
  const std::vector<LoopId> i = *s.split(LoopId(0), rows);
  const std::vector<Int> columns = *s.decide_perfect_tile(LoopId(1), 2, 8, {2, 8});
  const std::vector<LoopId> j = *s.split(LoopId(1), columns);
  REQUIRE_OK(s.split(LoopId(2), {-1, 5}));
  REQUIRE_OK(s.reorder({i[0], j[0], i[1], j[1]}));
  REQUIRE_OK(s.reverse_compute_at(BlockId(1), j[0]));
  REQUIRE_OK(s.parallel(i[0]));
  const Result<Trace> moved = transfer(s.trace(), base, other);
  REQUIRE_OK(moved);
  CHECK_DIAG(replay(other, *moved), DecisionMismatch);
  const Result<Schedule> there = replay(other, *moved, {{}, Misfit::kRepair, Verify::kEachStep});
  REQUIRE_OK(there);
  CHECK(there->trace().decisions[0] == Decision{2, 3});
  CHECK(there->trace().decisions[1] == Decision{3, 8});
  check_same_result(other, there->program(), 1);
  CHECK(*transfer(*transfer(s.trace(), base, other), other, base) == s.trace());
  CHECK_DIAG(transfer(s.trace(), base, parse_or_die(kMatmul)), TraceMalformed);
}

TEST_CASE("renamed and renumbered blocks keep their trace") {
  const std::string renamed = [] {
    std::string text(kMatmul);
    text.replace(text.find("\"C\" @B0"), 7, "\"X\" @B5");
    text.replace(text.find("@L2"), 3, "@L8");
    return text;
  }();
  const ir::Program base = parse_or_die(kMatmul);
  const ir::Program other = parse_or_die(renamed);
  CHECK(fingerprint(base) == fingerprint(other));
  Schedule s(base, Verify::kEachStep);
  REQUIRE_OK(apply_steps(s, "split(@L2, [4, 8])\nrfactor(@L4, 2)\nbind(@L0, \"block.x\")"));
  const Result<Trace> moved = transfer(s.trace(), base, other);
  REQUIRE_OK(moved);
  const Result<Schedule> there = replay(other, *moved, {{}, Misfit::kError, Verify::kEachStep});
  REQUIRE_OK(there);
  CHECK(fingerprint(there->program()) == fingerprint(s.program()));
}

TEST_CASE("partitioned tiles are counted and drawn uniformly") {
  Rng rng(5);
  for (const int64_t extent : {1, 7, 12, 36, 64}) {
    for (const int partition : {0, 1, 2}) {
      for (const int64_t factor : {1, 2, 4, 12}) {
        if (extent % factor != 0) continue;
        DecisionSpace space;
        space.primitive = PrimitiveKind::kSamplePartitionedTile;
        space.extent = extent;
        space.num_tiles = 3;
        space.partition = partition;
        space.inner_factor = factor;
        std::map<Decision, int> all;
        for (int64_t a = 1; a <= extent; ++a) {
          for (int64_t b = 1; a * b <= extent; ++b) {
            const Decision tiles = {a, b, extent / (a * b)};
            if (space.contains(tiles)) all[tiles] = 0;
          }
        }
        INFO("extent " << extent << " from " << partition << " by " << factor);
        CHECK(space.count() == static_cast<int64_t>(all.size()));
        const int draws = 200 * static_cast<int>(all.size());
        for (int i = 0; i < draws; ++i) {
          const Decision drawn = random_decision(space, rng);
          REQUIRE(all.count(drawn) == 1);
          ++all[drawn];
        }
        // 200 expected each; a share of 120 to 290 is five standard deviations.
        for (const auto& [tiles, count] : all) CHECK((count > 120 && count < 290));
        CHECK(space.contains(repair_decision(space, {5, 3, 2})));
        CHECK(space.contains(repair_decision(space, {})));
        CHECK(space.contains(mutate_decision(space, random_decision(space, rng), rng)));
      }
    }
  }
}

TEST_CASE("partitioned tiles say what is wrong") {
  check_rejected(kMatmul, "sample_partitioned_tile(@L0, 2, 2, 2) -> v0, v1 = [4, 4]",
                 "TilePartition");
  check_rejected(kMatmul, "sample_partitioned_tile(@L0, 2, -1, 2) -> v0, v1 = [4, 4]",
                 "TilePartition");
  check_rejected(kMatmul, "sample_partitioned_tile(@L0, 2, 1, 3) -> v0, v1 = [4, 4]",
                 "TilePartition");
  check_rejected(kMatmul, "sample_partitioned_tile(@L0, 2, 1, 0) -> v0, v1 = [4, 4]",
                 "TilePartition");
  check_rejected(kMatmul, "sample_partitioned_tile(@L0, 0, 0, 1) -> v0 = [16]", "TileCount");
  check_rejected(kMatmul, "sample_partitioned_tile(@L0, 2, 1, 4) -> v0, v1 = [8, 2]",
                 "DecisionMismatch");
  check_rejected(kMatmul, "sample_partitioned_tile(@L9, 2, 1, 4) -> v0, v1 = [8, 2]",
                 "LoopNotFound");
  check_steps(kMatmul,
              "sample_partitioned_tile(@L0, 2, 1, 4) -> v0, v1 = [2, 8]\nsplit(@L0, [v0, v1])");
}

TEST_CASE("covering tiles are counted and drawn from their space") {
  Rng rng(5);
  for (const int64_t extent : {1, 7, 12, 37}) {
    for (const int64_t cap : {0, 1, 5}) {
      DecisionSpace space;
      space.primitive = PrimitiveKind::kSampleCoveringTile;
      space.extent = extent;
      space.num_tiles = 3;
      space.max_innermost = cap;
      std::set<Decision> all;
      for (int64_t a = 1; a <= 2 * extent; ++a) {
        for (int64_t b = 1; b <= 2 * extent; ++b) {
          const int64_t covered = (extent + a * b - 1) / (a * b) * a * b;
          const bool fits = covered * 4 <= extent * 5 && (cap == 0 || b <= cap);
          CHECK(space.contains({a, b}) == fits);
          if (fits) all.insert({a, b});
        }
      }
      INFO("extent " << extent << " cap " << cap);
      CHECK(space.count() == static_cast<int64_t>(all.size()));
      std::set<Decision> seen;
      const int draws = 60 * static_cast<int>(all.size());
      for (int i = 0; i < draws; ++i) seen.insert(random_decision(space, rng));
      CHECK(seen == all);
      CHECK(space.contains(repair_decision(space, {5, 3})));
      CHECK(space.contains(repair_decision(space, {})));
      CHECK(space.contains(repair_decision(space, {1 << 20, 1 << 20})));
      CHECK(space.contains(mutate_decision(space, random_decision(space, rng), rng)));
    }
  }
}

TEST_CASE("covering tiles cut loops that they do not divide") {
  check_steps(kMatmul,
              "sample_covering_tile(16, 3, 4) -> v0, v1 = [2, 3]\nsplit(@L0, [-1, v0, v1])");
  check_rejected(kMatmul, "sample_covering_tile(0, 3, 4) -> v0, v1 = [2, 3]", "TileExtent");
  check_rejected(kMatmul, "sample_covering_tile(16, 0, 4) -> v0 = [1]", "TileCount");
  check_rejected(kMatmul, "sample_covering_tile(16, 3, -1) -> v0, v1 = [2, 3]", "TileCap");
  check_rejected(kMatmul, "sample_covering_tile(16, 3, 4) -> v0, v1 = [2, 5]", "DecisionMismatch");
  check_rejected(kMatmul, "sample_covering_tile(16, 2, 0) -> v0 = [11]", "DecisionMismatch");
}

TEST_CASE("tiles and choices are drawn from their spaces, or the reason is said") {
  const Case cases[] = {
      {kMatmul, "sample_perfect_tile(@L0, 2, 0) -> v0, v1 = [4, 4]", ""},
      {kMatmul, "sample_perfect_tile(@L2, 3, 8) -> v0, v1, v2 = [1, 4, 8]", ""},
      {kChain, "sample_perfect_tile(@L0, 1, 0) -> v0 = [10]", ""},
      {kMatmul, "sample_perfect_tile(@L0, 2, 4) -> v0, v1 = [2, 8]", "DecisionMismatch"},
      {kMatmul, "sample_perfect_tile(@L0, 2, 0) -> v0, v1 = [4, 5]", "DecisionMismatch"},
      {kMatmul, "sample_perfect_tile(@L0, 2, -1) -> v0, v1 = [4, 4]", "TileCap"},
      {kMatmul, "sample_categorical([2, 4, 8], [1, 1, 2]) -> v0 = [2]", ""},
      {kMatmul, "sample_categorical([3], [1]) -> v0 = [0]", ""},
      {kMatmul, "sample_categorical([2, 4], [1, 0]) -> v0 = [0]\nsplit(@L0, [-1, v0])", ""},
      {kMatmul, "sample_categorical([2, 4], [1, 1]) -> v0 = [2]", "DecisionMismatch"},
      {kMatmul, "sample_categorical([2, 4], [1, -1]) -> v0 = [0]", "CategoricalWeights"},
      {kMatmul, "sample_categorical([2, 4], [1]) -> v0 = [0]", "CategoricalWeights"},
      {kMatmul, "sample_categorical([2, 4], [0, 0]) -> v0 = [0]", "CategoricalWeights"},
      {kMatmul, "product([2, 8]) -> v0", ""},
      {kMatmul, "product([]) -> v0", ""},
      {kMatmul, "sample_categorical([2, 4], [1, 1]) -> v0 = [1]\nproduct([v0, 2]) -> v1", ""},
      {kMatmul, "product([2, 0]) -> v0", "ProductRange"},
      {kMatmul, "product([-1]) -> v0", "ProductRange"},
      {kMatmul, "product([1048576, 1048577]) -> v0", "ProductRange"},
      {kMatmul, "sample_partitioned_tile(@L0, 2, 1, 4) -> v0, v1 = [4, 4]", ""},
      {kMatmul, "sample_partitioned_tile(@L2, 3, 1, 8) -> v0, v1, v2 = [2, 8, 2]", ""},
      {kMatmul, "sample_partitioned_tile(@L1, 2, 0, 16) -> v0, v1 = [2, 8]", ""},
      {kMatmul, "sample_partitioned_tile(@L1, 1, 0, 1) -> v0 = [16]", ""},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("compute locations are the legal ones") {
  const ir::Program base = parse_or_die(kConv);
  const Schedule s(base);
  // Inlined, left, or at one of the six loops around the convolution.
  CHECK(s.compute_locations(BlockId(0)) == std::vector<int64_t>{-2, -1, 0, 1, 2, 3, 4, 5});
  CHECK(s.compute_locations(BlockId(1)) == std::vector<int64_t>{-1});
  CHECK(Schedule(parse_or_die(kDenseRelu)).compute_locations(BlockId(0)) ==
        std::vector<int64_t>{-1, 0, 1});
  for (const int64_t code : s.compute_locations(BlockId(0))) {
    check_steps(kConv, "compute_at_location(@B0, " + std::to_string(code) + ")");
    check_steps(kConv, "sample_compute_location(@B0, [-2, -1, 0, 1, 2, 3, 4, 5]) -> v0 = [" +
                           std::to_string(code) + "]\ncompute_at_location(@B0, v0)");
  }
  check_rejected(kConv, "compute_at_location(@B0, 6)", "DecisionMismatch");
  check_rejected(kConv, "compute_at_location(@B0, -3)", "DecisionMismatch");
  check_rejected(kConv, "compute_at_location(@B1, -2)", "BlockNotSimple");
  check_rejected(kConv, "compute_at_location(@B9, -1)", "BlockNotFound");
  check_rejected(kConv, "compute_at_location(@B1, 0)", "DecisionMismatch");
  check_rejected(kDenseRelu, "compute_at_location(@B0, -2)", "BlockNotSimple");
  check_rejected(kDenseRelu, "compute_at_location(@B0, 2)", "DecisionMismatch");
  check_rejected(kSoftmax, "compute_at_location(@B1, 0)", "BlockConsumerOutside");
  check_rejected(kSoftmax, "compute_at_location(@B0, -2)", "BlockNotSimple");
  for (const std::string_view code : {"-1", "5"}) {
    check_steps(kConv,
                "sample_compute_location(@B0, [-2, -1, 5]) -> v0 = [" + std::string(code) + "]");
  }
  check_rejected(kConv, "sample_compute_location(@B0, [-1, 2]) -> v0 = [3]", "DecisionMismatch");
  check_rejected(kConv, "sample_compute_location(@B0, [9]) -> v0 = [9]", "LocationStale");
  check_rejected(kConv, "sample_compute_location(@B9, [-1]) -> v0 = [-1]", "BlockNotFound");
}

TEST_CASE("a place that is no longer legal gives way to an outer one") {
  const ir::Program base = parse_or_die(kDenseRelu);
  Schedule s(base, Verify::kEachStep);
  REQUIRE_OK(apply_steps(s,
                         "sample_compute_location(@B0, [-1, 0, 1]) -> v0 = [1]\n"
                         "compute_at_location(@B0, v0)"));
  const Trace odd = s.trace().with_decision(0, {7});
  CHECK_DIAG(replay(base, odd), DecisionMismatch);
  const Result<Schedule> repaired = replay(base, odd, {{}, Misfit::kRepair});
  REQUIRE_OK(repaired);
  CHECK(repaired->trace().decisions[0] == Decision{1});
  CHECK(s.trace().decision_space(0).values == std::vector<int64_t>{-1, 0, 1});
  CHECK(s.trace().decision_space(0).count() == 3);
  Rng rng(1);
  CHECK(mutate_decision(s.trace().decision_space(0), {1}, rng) != Decision{1});
}

TEST_CASE("a script may leave out outputs and hold comments") {
  const std::string_view text = R"(# a tiled product
split(@L0, [4, 4])   # rows
bind(@L3, "block.x")

bind(@L2, "block.y")
)";
  const Result<TraceScript> script = parse_script(text);
  REQUIRE_OK(script);
  CHECK(script->lines == std::vector<int32_t>{2, 3, 5});
  const ir::Program base = parse_or_die(kMatmul);
  const Result<Schedule> failed = replay(base, script->trace, {.lines = script->lines});
  CHECK_DIAG(failed, CrossThreadReduction);
  CHECK(failed.error().message().rfind("5:1: ", 0) == 0);
}

}  // namespace
}  // namespace prunerc::testing
