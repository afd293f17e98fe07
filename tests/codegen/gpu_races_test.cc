// Races are found by replaying addresses: none in what lowering makes, all of those planted.
#include "codegen/lower/analysis/kernel.h"
#include "codegen/pipeline.h"
#include "codegen/races.h"
#include "ir/printer.h"
#include "ir/visit.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/gpu_bugs.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using testing::GpuBug;

RaceReport races_of(const ir::Program& lowered) {
  const Result<RaceReport> report = find_races(lowered);
  if (!report.ok()) FAIL(report.error().message());
  return *report;
}

TEST_CASE("what hand-written GPU schedules become has no races; a lost barrier is one", "[gpu]") {
  int num_planted = 0;
  for (const testing::GpuProgram& program : testing::gpu_programs()) {
    CAPTURE(program.name);
    const Result<ir::Program> lowered = lower_gpu(program.scheduled, testing::gpu_target());
    REQUIRE_OK(lowered);
    const RaceReport report = races_of(*lowered);
    INFO((report.races.empty() ? "" : report.races[0] + "\n" + ir::print(*lowered)));
    CHECK(report.races.empty());
    CHECK(report.is_complete);
    CHECK(report.num_unknown == 0);
    for (const GpuBug bug : {GpuBug::kLostBarrier, GpuBug::kWeakWait}) {
      for (int site = 0; site < testing::count_sites(*lowered, bug); ++site) {
        ++num_planted;
        if (!races_of(testing::plant(*lowered, bug, site)).races.empty()) continue;
        CAPTURE(to_string(bug), site);
        // One thread reads there what it has written itself: a row is one warp's, or the first and
        // the last step of a tree is for one element of each thread.
        bool reads_own = false;
        for (const char* const name :
             {"layer_norm", "row_sum", "row_attention", "row_softmax_sum", "attention_mma"}) {
          reads_own = reads_own || program.name.rfind(name, 0) == 0;
        }
        // No element is in two tiles of a block, but the barrier is there as that is not proved.
        const bool is_unneeded = program.name == "matmul_wgmma_persistent";
        CHECK(((reads_own || is_unneeded) && bug == GpuBug::kLostBarrier));
      }
    }
  }
  CHECK(num_planted > 50);
}

// Of the passes insert_barriers alone.
ir::Program with_barriers(ir::Program now) {
  for (const Pass& pass : gpu_passes()) {
    if (std::string(pass.name) != "insert_barriers") continue;
    const Result<ir::Program> next = pass.run(now, testing::gpu_target());
    REQUIRE_OK(next);
    now = *next;
  }
  return now;
}

TEST_CASE("threads meet before a condition on what one of them wrote, and before it is overwritten",
          "[gpu]") {
  for (const char* const inside : {"Y[u] = X[u]", "Y[u] = S[3 - u]", "S[u] = X[u]"}) {
    CAPTURE(inside);
    ir::Program now = testing::parse_or_die(
        "program p(X: f32[4]) -> (Y: f32[4]) {\n  buffer S: f32[4] shared\n"
        "  for b in 1 @L0 bind(block.x) { alloc S {\n"
        "    for t in 4 @L1 bind(thread.x) { S[t] = X[t] }\n"
        "    if S[3] < 1f32 { for u in 4 @L2 bind(thread.x) { " +
        std::string(inside) + " } }\n  } }\n}\n");
    CHECK_FALSE(races_of(now).races.empty());
    now = with_barriers(now);
    INFO(ir::print(now));
    CHECK(races_of(now).races.empty());
  }
}

// Two phases of 4 threads around shared memory of 8 elements.
std::string first_race(const std::string& store, const std::string& load,
                       const std::string& first = "", const std::string& second = "") {
  const RaceReport report = races_of(testing::parse_or_die(
      "program p(X: f32[8], I: i64[8]) -> (Y: f32[8]) {\n  buffer S: f32[8] shared\n"
      "  for b in 1 @L0 bind(block.x) { alloc S {\n    for t in 4 @L1 bind(thread.x) " +
      first + " { " + store + " }\n    for u in 4 @L2 bind(thread.x) " + second + " { " + load +
      " }\n  } }\n}\n"));
  if (report.num_unknown > 0) return "unknown";
  return report.races.empty() ? "" : report.races[0];
}

// The same of three warps and 96 elements: thread (u, w) is in warp w.
std::string first_race_of_warps(const std::string& store, const std::string& load,
                                const std::string& sync) {
  const RaceReport report = races_of(testing::parse_or_die(
      "program p(X: f32[96]) -> (Y: f32[96]) {\n  buffer S: f32[96] shared\n"
      "  for b in 1 @L0 bind(block.x) { alloc S {\n"
      "    for v in 3 @L1 bind(thread.y) { for t in 32 @L2 bind(thread.x) { " +
      store + " } }\n    for w in 3 @L3 bind(thread.y) " + sync +
      " { for u in 32 @L4 bind(thread.x) { " + load + " } }\n  } }\n}\n"));
  CHECK(report.num_unknown == 0);
  return report.races.empty() ? "" : report.races[0];
}

TEST_CASE("a warp waits for its own threads alone", "[gpu]") {
  const std::string own = "S[v*32 + t] = X[v*32 + t]", of_warp = "Y[w*32 + u] = S[w*32 + 31 - u]";
  const std::string of_next = "Y[w*32 + u] = S[(w*32 + u + 32) % 96]", sync = "{sync = 2}";
  CHECK(first_race_of_warps(own, of_warp, "{sync = 0}") != "");
  CHECK(first_race_of_warps(own, of_warp, sync) == "");
  CHECK(first_race_of_warps(own, of_next, sync) != "");
  CHECK(first_race_of_warps(own, of_next, "{sync = 1}") == "");
  // What is read first and then overwritten.
  CHECK(first_race_of_warps("Y[v*32 + t] = S[v*32 + 31 - t]", "S[w*32 + u] = X[u]", sync) == "");
  CHECK(first_race_of_warps("Y[v*32 + t] = S[0]", "if w*32 + u == 0 { S[0] = X[u] }", sync) != "");
  CHECK(first_race_of_warps("if v == 0 { Y[t] = S[0] }", "if w*32 + u == 0 { S[0] = X[u] }",
                            sync) == "");
}

// What insert_barriers says of the loops over warps, in the order of the text.
std::vector<int64_t> syncs_of(const std::string& phases) {
  ir::Program now = testing::parse_or_die(
      "program p(X: f32[96]) -> (Y: f32[96], Z: f32[96]) {\n  buffer S: f32[96] shared\n"
      "  for b in 1 @L0 bind(block.x) { alloc S {\n" +
      phases + "  } }\n}\n");
  now = with_barriers(now);
  INFO(ir::print(now));
  CHECK(races_of(now).races.empty());
  CHECK(races_of(now).num_unknown == 0);
  std::vector<int64_t> out;
  ir::walk(
      now.root(),
      [&](ir::Stmt s) {
        const ir::Loop* loop = s.as<ir::Loop>();
        const std::optional<int64_t> sync =
            loop != nullptr ? attr_of(*loop, kSyncAttr) : std::nullopt;
        if (sync) out.push_back(*sync);
        return true;
      },
      [](ir::Expr) {});
  return out;
}

TEST_CASE("warps that share no element wait for nobody else", "[gpu]") {
  const auto phase = [](const std::string& number, const std::string& body) {
    return "for v in 3 @L" + number + "0 bind(thread.y) { for t in 32 @L" + number +
           "1 bind(thread.x) { " + body + " } }\n";
  };
  const std::string fill = phase("1", "S[v*32 + t] = X[v*32 + t]");
  const std::string turned = phase("2", "Y[v*32 + t] = S[v*32 + 31 - t]");
  CHECK(syncs_of(fill + turned) == std::vector<int64_t>{0, kWarpSync});
  CHECK(syncs_of(fill + phase("2", "Y[v*32 + t] = S[95 - v*32 - t]")) ==
        std::vector<int64_t>{0, kBlockSync});
  // One barrier of warps does for all that came before it, none for other warps.
  CHECK(syncs_of(fill + turned + phase("3", "Z[v*32 + t] = S[v*32 + 31 - t]")) ==
        std::vector<int64_t>{0, kWarpSync, 0});
  CHECK(syncs_of(fill + turned + phase("3", "Z[v*32 + t] = S[95 - v*32 - t]")) ==
        std::vector<int64_t>{0, kWarpSync, kBlockSync});
  // What one branch has the other has not.
  CHECK(syncs_of(fill + "if b == 0 {\n" + turned + "} else {\n" +
                 phase("3", "Z[v*32 + t] = S[v*32 + 31 - t]") + "}\n") ==
        std::vector<int64_t>{0, kWarpSync, kWarpSync});
  CHECK(syncs_of(fill + "if b == 0 {\n" + turned + "}\n" +
                 phase("3", "Z[v*32 + t] = S[v*32 + 31 - t]")) ==
        std::vector<int64_t>{0, kWarpSync, kWarpSync});
  // The block meets in front of a loop of which only the first iteration waits for others.
  const std::string rounds =
      "for r in 2 @L5 {\n" + phase("2", "Y[v*32 + t] = S[95 - v*32 - t] + f32(r)") + "}\n";
  CHECK(syncs_of(fill + rounds) == std::vector<int64_t>{0, kBlockSync, kWarpSync});
}

TEST_CASE("what a race is, and what is none", "[gpu]") {
  const std::string sync = "{sync = 1}";
  // Everybody reads what he has written.
  CHECK(first_race("S[t] = X[t]", "Y[u] = S[u]") == "");
  CHECK(
      first_race("S[t] = X[t]", "Y[u] = S[3 - u]") ==
      "S[3] is read by thread (0, 0, 0) after thread (3, 0, 0) wrote it, with no barrier between");
  CHECK(first_race("S[t] = X[t]", "Y[u] = S[3 - u]", "", sync) == "");
  CHECK(first_race("Y[t] = S[3 - t]", "S[u] = X[u]") ==
        "S[0] is written by thread (0, 0, 0) after thread (3, 0, 0) read it, with no barrier "
        "between");
  CHECK(first_race("Y[t] = S[0]", "if u == 0 { S[0] = X[u] }") ==
        "S[0] is written by thread (0, 0, 0) after several threads read it, with no barrier "
        "between");
  CHECK(first_race("Y[t] = S[0]", "if u == 4 { S[0] = X[u] }") == "");
  CHECK(first_race("S[t // 2] = X[t]", "Y[u] = X[u]") ==
        "S[0] is written by thread (1, 0, 0) after thread (0, 0, 0) wrote it, with no barrier "
        "between");
  // Only one side of a choice is read.
  CHECK(first_race("S[t] = X[t]", "Y[u] = select(u < 4, S[u], S[0])") == "");
  // Global memory is shared too.
  CHECK(first_race("Y[t] = X[t]", "S[u] = Y[3 - u]").substr(0, 4) == "Y[3]");
  // Copies are there after a wait, for others after a barrier.
  const std::string fetch = "{async = 1, async_commit = 1}";
  CHECK(first_race("S[t] = X[t]", "Y[u] = S[u]", fetch) ==
        "S[0] is read by thread (0, 0, 0) while an asynchronous copy to it is under way");
  CHECK(first_race("S[t] = X[t]", "Y[u] = S[u]", fetch, "{async_wait = 0}") == "");
  CHECK(first_race("S[t] = X[t]", "Y[u] = S[u]", fetch, "{async_wait = 1, sync = 1}") ==
        "S[0] is read by thread (0, 0, 0) while an asynchronous copy to it is under way");
  CHECK(
      first_race("S[t] = X[t]", "Y[u] = S[3 - u]", fetch, "{async_wait = 0}") ==
      "S[3] is read by thread (0, 0, 0) after thread (3, 0, 0) wrote it, with no barrier between");
  CHECK(first_race("S[t] = X[t]", "Y[u] = S[3 - u]", fetch, "{async_wait = 0, sync = 1}") == "");
  // Data decides: said, not guessed.
  CHECK(first_race("S[t] = X[t]", "Y[u] = S[I[u]]") == "unknown");
  CHECK(first_race("S[t] = X[t]", "if I[u] < 3 { Y[u] = S[u] }") == "unknown");
}

TEST_CASE("buffers that share bytes share races, and a replay has an end", "[gpu]") {
  const ir::Program program = testing::parse_or_die(R"(
program p(X: f32[64]) -> (Y: f32[64]) {
  buffer S: f32[64] shared
  buffer T: i64[32] shared
  for b in 3 @L0 bind(block.x) {
    alloc S {
      for t in 32 @L1 bind(thread.x) { S[t] = X[t] }
      for u in 32 @L2 bind(thread.x) {sync = 1} { Y[u] = S[31 - u] }
    }
    alloc T {
      for v in 32 @L3 bind(thread.x) { T[v] = 1 }
      for w in 32 @L4 bind(thread.x) {sync = 1} { Y[w + 32] = f32(T[31 - w]) }
    }
  }
}
)");
  const RaceReport report = races_of(program);
  REQUIRE(report.races.size() == 10);
  CHECK(report.races[0] ==
        "T[0] is written by thread (0, 0, 0) after thread (31, 0, 0) read it, with no barrier "
        "between");
  CHECK(report.num_blocks == 2);
  CHECK(report.num_accesses == 2 * 6 * 32);
  const Result<RaceReport> one = find_races(program, {.max_blocks = 1, .max_races = 1});
  REQUIRE_OK(one);
  CHECK(one->races.size() == 1);
  CHECK(one->num_blocks == 1);
  const Result<RaceReport> cut = find_races(program, {.max_accesses = 40});
  REQUIRE_OK(cut);
  CHECK_FALSE(cut->is_complete);
}

}  // namespace
}  // namespace prunerc::codegen
