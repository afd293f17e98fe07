// Whole schedules as a search makes them.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

using namespace schedule;  // NOLINT(google-build-using-namespace)
using ir::BlockId;
using ir::LoopId;
using ir::Scope;

void check_schedule(const ir::Program& base, const Schedule& s) {
  INFO(print(s.trace()));
  INFO(print(s.program()));
  check_same_result(base, s.program(), 1);
  const Result<Schedule> again = replay(base, s.trace(), {{}, Misfit::kError, Verify::kEachStep});
  REQUIRE_OK(again);
  CHECK(again->trace() == s.trace());
}

// Splits the block's loops as S S R S R S does: four levels for spatial loops, two for reduction
// loops. Returns the loops in the new order.
std::vector<LoopId> multi_level_tile(Schedule& s, BlockId block, int num_spatial, Rng& rng) {
  const std::vector<LoopId> loops = s.loops_of(block);
  std::vector<std::vector<LoopId>> levels(6);
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const bool spatial = static_cast<int>(i) < num_spatial;
    const Result<std::vector<Int>> tiles =
        s.sample_perfect_tile(loops[i], spatial ? 4 : 2, spatial ? 8 : 0, rng);
    REQUIRE_OK(tiles);
    const Result<std::vector<LoopId>> split = s.split(loops[i], *tiles);
    REQUIRE_OK(split);
    const std::vector<std::size_t> places =
        spatial ? std::vector<std::size_t>{0, 1, 3, 5} : std::vector<std::size_t>{2, 4};
    for (std::size_t k = 0; k < places.size(); ++k) levels[places[k]].push_back((*split)[k]);
  }
  std::vector<LoopId> order;
  for (const std::vector<LoopId>& level : levels) {
    order.insert(order.end(), level.begin(), level.end());
  }
  REQUIRE_OK(s.reorder(order));
  return order;
}

TEST_CASE("a matrix product tiled in six levels with a local accumulator") {
  const ir::Program base = parse_or_die(kMatmul);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Schedule s(base, Verify::kEachStep);
    const Result<BlockId> write_back = s.cache_write(BlockId(0), 0, Scope::kLocal);
    REQUIRE_OK(write_back);
    const std::vector<LoopId> order = multi_level_tile(s, BlockId(0), 2, rng);
    const Result<std::vector<LoopId>> copy = s.reverse_compute_at(*write_back, order[3]);
    REQUIRE_OK(copy);
    const Result<LoopId> outer = s.fuse({order[0], order[1]});
    REQUIRE_OK(outer);
    REQUIRE_OK(s.parallel(*outer));
    REQUIRE_OK(s.vectorize(order.back()));
    REQUIRE_OK(s.vectorize(copy->back()));
    REQUIRE_OK(s.unroll(order[order.size() - 2]));
    REQUIRE_OK(s.decompose_reduction(BlockId(0), order[4]));
    check_schedule(base, s);
  }
}

TEST_CASE("a dense layer with its activation in the tile") {
  const ir::Program base = parse_or_die(kDenseRelu);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng(seed);
    Schedule s(base, Verify::kEachStep);
    const std::vector<LoopId> order = multi_level_tile(s, BlockId(0), 2, rng);
    const Result<std::vector<LoopId>> relu = s.reverse_compute_at(BlockId(1), order[3]);
    REQUIRE_OK(relu);
    REQUIRE_OK(s.set_scope(BlockId(0), 0, Scope::kLocal));
    const Result<LoopId> outer = s.fuse({order[0], order[1], order[2], order[3]});
    REQUIRE_OK(outer);
    REQUIRE_OK(s.parallel(*outer));
    REQUIRE_OK(s.vectorize(order.back()));
    REQUIRE_OK(s.vectorize(relu->back()));
    check_schedule(base, s);
  }
}

TEST_CASE("a padded convolution tiled, padding inlined or computed in the tile") {
  const ir::Program base = parse_or_die(kConv);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Rng rng(seed);
    Schedule s(base, Verify::kEachStep);
    if (seed % 2 == 0) REQUIRE_OK(s.compute_inline(BlockId(0)));
    const Result<BlockId> write_back = s.cache_write(BlockId(1), 0, Scope::kLocal);
    REQUIRE_OK(write_back);
    const std::vector<LoopId> order = multi_level_tile(s, BlockId(1), 3, rng);
    const Result<std::vector<LoopId>> copy = s.reverse_compute_at(*write_back, order[5]);
    REQUIRE_OK(copy);
    if (seed % 2 == 1) REQUIRE_OK(s.compute_at(BlockId(0), order[8]));
    const Result<LoopId> outer = s.fuse({order[0], order[1], order[2]});
    REQUIRE_OK(outer);
    REQUIRE_OK(s.parallel(*outer));
    REQUIRE_OK(s.vectorize(order.back()));
    REQUIRE_OK(s.vectorize(copy->back()));
    check_schedule(base, s);
  }
}

TEST_CASE("a softmax with every stage under the row loop") {
  const ir::Program base = parse_or_die(kSoftmax);
  Schedule s(base, Verify::kEachStep);
  const LoopId row = s.loops_of(BlockId(3))[0];
  for (const int stage : {2, 1, 0}) REQUIRE_OK(s.compute_at(BlockId(stage), row));
  REQUIRE_OK(s.parallel(row));
  REQUIRE_OK(s.vectorize(s.loops_of(BlockId(3))[1]));
  REQUIRE_OK(s.vectorize(s.loops_of(BlockId(1)).back()));
  check_schedule(base, s);
  CHECK(print(s.program()).find("where") == std::string::npos);
}

TEST_CASE("a row reduction factored for vector lanes") {
  const ir::Program base = parse_or_die(kRowSum);
  Schedule s(base, Verify::kEachStep);
  const Result<std::vector<LoopId>> lanes = s.split(LoopId(1), {-1, 16});
  REQUIRE_OK(lanes);
  const Result<BlockId> partial = s.rfactor((*lanes)[1], 1);
  REQUIRE_OK(partial);
  REQUIRE_OK(s.vectorize((*lanes)[1]));
  REQUIRE_OK(s.parallel(LoopId(0)));
  REQUIRE_OK(s.decompose_reduction(*partial, (*lanes)[0]));
  check_schedule(base, s);
}

TEST_CASE("a row reduction factored into a buffer of one row") {
  const ir::Program base = parse_or_die(kRowSum);
  Schedule s(base, Verify::kEachStep);
  const Result<std::vector<LoopId>> lanes = s.split(LoopId(1), {-1, 24});
  REQUIRE_OK(lanes);
  REQUIRE_OK(s.rfactor((*lanes)[1], 0));
  REQUIRE_OK(s.parallel(LoopId(0)));
  check_schedule(base, s);
}

}  // namespace
}  // namespace prunerc::testing
