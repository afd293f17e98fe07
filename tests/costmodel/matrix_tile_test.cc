// What the analyzer thinks of instructions on matrix tiles.
#include "costmodel/latency/roofline.h"
#include "schedule/schedule.h"
#include "tests/support/check.h"

#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace costmodel;  // NOLINT: a test
using namespace testing;    // NOLINT: a test
using schedule::Int;
using schedule::Schedule;

ir::Target machine(const std::string& more = "") {
  return *ir::target_from_string("cpu:sapphirerapids num_threads=1" + more);
}

/// Of a product of bytes by packed panels, with the rows of an instruction and tiles of rows and columns.
struct Tiling {
  int64_t rows = 16, row_tiles = 2, column_tiles = 2;
  bool columns_first = true;
  int64_t part = 8;            // steps of k in a part; there are 8 in all
  bool fills_in_front = true;  // of each tile; else of all of them, before the first
};

// 480 rows, 192 columns, sums of 512.
Schedule tiled(const Tiling& t) {
  Schedule s(
      parse_or_die(R"(program p(A: u8[480, 512], P: i8[12, 128, 16, 4]) -> (C: i32[480, 192]) {
  for i in 480 { for j in 192 { for k in 512 {
    block "C" [vi: S(480) = i, vj: S(192) = j, vk: R(512) = k] {
      init { C[vi, vj] = 0i32 }
      C[vi, vj] = C[vi, vj] + i32(A[vi, vk])*i32(P[vj // 16, vk // 4, vj % 16, vk % 4])
  } } } } })"));
  const ir::BlockId block = s.blocks()[0];
  const auto loops = s.loops_of(block);
  const auto i = s.split(loops[0], {Int(-1), Int(t.row_tiles), Int(t.rows)}).value();
  const auto j = s.split(loops[1], {Int(-1), Int(t.column_tiles), Int(16)}).value();
  const auto k = s.split(loops[2], {Int(-1), Int(16), Int(4)}).value();
  const auto parts = s.split(k[0], {Int(-1), Int(t.part)}).value();
  const ir::LoopId outer = t.columns_first ? j[1] : i[1], inner = t.columns_first ? i[1] : j[1];
  REQUIRE_OK(s.reorder({i[0], j[0], parts[0], parts[1], outer, inner, i[2], j[2], k[1], k[2]}));
  REQUIRE_OK(s.unroll(i[1]));
  REQUIRE_OK(s.unroll(j[1]));
  const ir::BlockId init = s.decompose_reduction(block, t.fills_in_front ? parts[0] : i[0]).value();
  REQUIRE_OK(s.vectorize(s.loops_of(init).back()));
  const std::string name = "x86_tdpbusd_" + std::to_string(t.rows) + "x16x64";
  REQUIRE_OK(s.tensorize(i[2], name));
  return s;
}

double core_ns(const Tiling& t, const ir::Target& target = machine()) {
  return estimate_latency(tiled(t).program(), target).core_ns;
}

// The unit multiplies 16 rows, 64 elements each, by 16 columns in 16 cycles.
double unit_ns() { return 480.0 * 192 * 512 / 1024 / machine().platform.clock_ghz; }

TEST_CASE("an instruction on matrix tiles takes as many cycles as it has rows") {
  // Accumulators go once from tile registers to memory for eight products each.
  CHECK(core_ns({}) > unit_ns());
  CHECK(core_ns({}) < 1.5 * unit_ns());
  // Whatever ports there are for vectors.
  CHECK(core_ns({}, machine(" fma_ports=1")) == Approx(core_ns({})).epsilon(0.02));
}

TEST_CASE(
    "zeros right in front of the accumulators' loops cost nothing, others are stored and loaded") {
  CHECK(core_ns({.fills_in_front = false}) > 1.08 * core_ns({}));
  // In memory they are needed.
  const Tiling crowded = {.row_tiles = 3, .column_tiles = 3};
  CHECK(core_ns(crowded) > 1.5 * unit_ns());
}

TEST_CASE("few accumulators wait for themselves") {
  CHECK(core_ns({.row_tiles = 1, .column_tiles = 1}) > 2.5 * core_ns({}));
  CHECK(core_ns({.row_tiles = 2, .column_tiles = 1}) > 1.4 * core_ns({}));
  CHECK(core_ns({.row_tiles = 1, .column_tiles = 2}) > 1.4 * core_ns({}));
  CHECK(core_ns({.row_tiles = 1, .column_tiles = 4}) < 1.1 * core_ns({}));
}

TEST_CASE("accumulators of a ragged part of k stay in tile registers") {
  CHECK(core_ns({.part = 4}) < 1.05 * core_ns({}));
  CHECK(core_ns({.part = 3}) < 1.15 * core_ns({.part = 4}));
}

TEST_CASE("few rows take the unit as long as ten") {
  CHECK(core_ns({.rows = 5}) > 1.3 * core_ns({.rows = 15}));
  CHECK(core_ns({.rows = 10, .row_tiles = 3}) < 1.3 * core_ns({.rows = 15}));
}

TEST_CASE("more accumulators than tile registers go to memory with each product") {
  CHECK(core_ns({.row_tiles = 3, .column_tiles = 2}) < 1.1 * core_ns({}));
  CHECK(core_ns({.row_tiles = 3, .column_tiles = 3}) > 1.3 * core_ns({}));
}

TEST_CASE("another tile of B for each product of few rows takes the unit longer") {
  const Tiling kept = {.rows = 10, .row_tiles = 3},
               changed = {.rows = 10, .row_tiles = 3, .columns_first = false};
  CHECK(core_ns(changed) > 1.1 * core_ns(kept));
  // Whole tiles bring their next one in beside them.
  CHECK(core_ns({.columns_first = false}) < 1.01 * core_ns({}));
}

TEST_CASE("code on matrix tiles counts instructions, which fill no vector registers") {
  for (const Tiling& t : {Tiling{}, {.row_tiles = 3}, {.row_tiles = 3, .column_tiles = 3}}) {
    const LatencyEstimate e = estimate_latency(tiled(t).program(), machine());
    CHECK(e.code_size < 64);
    CHECK(e.max_tile_registers == 0);
  }
}

}  // namespace
}  // namespace prunerc
