// Which loops keep sums in tile registers, and which register holds what: plans alone, on any machine.
#include "codegen/cpu/tile_region.h"

#include "codegen/cpu/tile_registers.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <string>

namespace prunerc {
namespace {

using namespace codegen;  // NOLINT: a test
using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// C[at] += A[..]*B[..] on tiles of `rows` rows; the places move by r, v and s (steps of the depth).
std::string product(int rows, const std::string& r, const std::string& v, const std::string& s) {
  const std::string text =
      "for i in R {tensor_x86_tdpbusd_Rx16x64 = 1} { for j in 16 { for g in 16 { for k in 4 { "
      "C[ROW*R + i, COL*16 + j] = C[ROW*R + i, COL*16 + j] + i32(A[ROW*R + i, STEP*64 + g*4 + k])*"
      "i32(B[COL, STEP*16 + g, j, k]) } } } } ";
  return replace_all(replace_all(replace_all(replace_all(text, "ROW", r), "COL", v), "STEP", s),
                     "R", std::to_string(rows));
}

Program program_of(const std::string& body) {
  return parse_or_die(
      "program p(A: u8[128, 512], B: i8[8, 128, 16, 4], X: i32[8]) -> (C: i32[128, 128], D: "
      "i32[8]) "
      "{ " +
      body + " }");
}

constexpr TileRegionOptions kMost{.most_copies = 512};

/// A region together with what owns its nodes.
struct Found {
  explicit Found(const std::string& body, const TileRegionOptions& options = kMost)
      : program(program_of(body)), b(program) {
    region = find_tile_region(b, *program.root().as<Loop>(), VarRanges{}, options);
  }
  Program program;
  IrBuilder b;
  std::optional<TileRegion> region;
};

int num_loads(const TilePlan& plan) {
  int loads = 0;
  for (const TileUse& use : plan.uses) loads += (use.loads_a ? 1 : 0) + (use.loads_b ? 1 : 0);
  return loads;
}

// Registers that a plan uses have the sizes that their instructions want, and sums are nobody else's.
void check_plan(const TileRegion& region, const TilePlan& plan) {
  std::set<int> sums(plan.sums.begin(), plan.sums.end());
  CHECK(sums.size() == region.sums.size());
  const auto has = [&](int reg, const TileShape& shape) {
    return plan.config[static_cast<std::size_t>(reg)] == shape;
  };
  for (const int reg : plan.sums) CHECK(has(reg, region.sum));
  for (const TileUse& use : plan.uses) {
    CHECK(has(use.a, region.a));
    CHECK(has(use.b, region.b));
    CHECK(use.a != use.b);
    CHECK(sums.count(use.a) == 0);
    CHECK(sums.count(use.b) == 0);
  }
}

TEST_CASE("a loop over the depth around unrolled tiles is a region of that many sums") {
  const Found found("for s in 8 { for r in 2 unrolled { for v in 2 unrolled { " +
                    product(16, "r", "v", "s") + "} } }");
  REQUIRE(found.region);
  const TileRegion& region = *found.region;
  CHECK(region.sum == TileShape{16, 64});
  CHECK(region.a == TileShape{16, 64});
  CHECK(region.b == TileShape{16, 64});
  CHECK(region.sums.size() == 4);
  CHECK(region.operands.size() == 4);
  REQUIRE(region.items.size() == 1);
  REQUIRE(region.items[0].loop != nullptr);
  CHECK(region.items[0].body.size() == 4);
  CHECK(region.sums[0].pitch_bytes == 512);
  CHECK(region.operands[0].pitch_bytes == 512);
  CHECK(region.operands[1].pitch_bytes == 64);
  const TilePlan plan = plan_tiles(region, nullptr);
  check_plan(region, plan);
  CHECK(plan.has_own_config);
  CHECK(num_loads(plan) == 4);  // of each matrix's two tiles one
}

TEST_CASE("loops of the depth inside of unrolled ones, and of one step, are regions as well") {
  const Found inside("for r in 2 unrolled { for v in 3 unrolled { for s in 8 { " +
                     product(12, "r", "v", "s") + "} } }");
  REQUIRE(inside.region);
  CHECK(inside.region->sums.size() == 6);
  CHECK(inside.region->items.size() == 6);
  const TilePlan plan = plan_tiles(*inside.region, nullptr);
  check_plan(*inside.region, plan);
  CHECK(num_loads(plan) == 12);  // a loop finds nothing of another one's
  const Found once("for s in 1 { for v in 2 unrolled { " + product(7, "0", "v", "s") + "} }");
  REQUIRE(once.region);
  CHECK(once.region->items.size() == 2);
  CHECK(num_loads(plan_tiles(*once.region, nullptr)) == 3);
  // Two products a step, on two sums.
  const Found both("for s in 8 { " + product(16, "0", "0", "s") + product(16, "1", "0", "s") + "}");
  REQUIRE(both.region);
  CHECK(both.region->sums.size() == 2);
  CHECK(num_loads(plan_tiles(*both.region, nullptr)) == 3);
}

TEST_CASE("an unrolled loop over the depth adds to one sum") {
  const Found found("for s in 8 unrolled { " + product(16, "0", "0", "s") + "}");
  REQUIRE(found.region);
  CHECK(found.region->sums.size() == 1);
  CHECK(found.region->items.size() == 8);
  // Unrolled too often, it stays a loop.
  const Found serial("for s in 8 unrolled { " + product(16, "0", "0", "s") + "}",
                     {.most_copies = 4});
  REQUIRE(serial.region);
  CHECK(serial.region->items.size() == 1);
}

TEST_CASE("loops whose sums cannot stay in registers are no regions") {
  const std::string step = product(16, "0", "0", "s");
  const std::string bodies[] = {
      // A loop moves the sums.
      "for r in 8 { for s in 8 { " + product(16, "r", "0", "s") + "} }",
      // More of them than registers.
      "for s in 8 { for v in 7 unrolled { " + product(16, "0", "v", "s") + "} }",
      // Other statements, conditions.
      "for s in 8 { " + step + " D[s] = 0i32 }",
      "for s in 8 { if X[s] < 3i32 { " + step + " } }",
      "for s in 8 { D[s] = 0i32 }",
      // Tiles of several sizes.
      "for s in 8 { " + step + product(12, "4", "0", "s") + "}",
      // Tiles that share rows, or whose distance is not known.
      "for s in 8 { " + step + replace_all(step, "0*16 + i", "8 + i") + "}",
      "for q in 8 { for s in 8 { " + step + product(16, "q", "0", "s") + "} }",
      // Another thread's work.
      "for q in 8 parallel { " + replace_all(step, "s*", "q*") + "}",
      // What may not run at all, or is said by memory.
      "for q in 8 { for s in q { " + step + "} }",
      "for q in 3 { for s in min(4, 8 - q*4) { " + step + "} }",
      "for s in min(4, i64(X[0])) { " + step + "}",
      "for s in max(1, min(4, i64(X[0]))) { " + step + "}",
  };
  for (const std::string& body : bodies) {
    INFO(body);
    CHECK_FALSE(Found(body).region);
  }
}

TEST_CASE("loops whose extent is not constant, but at least 1, are serial loops of a region") {
  const Found found("for q in 3 { for s in min(3, 8 - q*3) { for v in 2 unrolled { " +
                    product(16, "0", "v", "(q*3 + s)") + "} } }");
  REQUIRE(found.region);
  CHECK(found.region->sums.size() == 2);
  REQUIRE(found.region->items.size() == 1);
  REQUIRE(found.region->items[0].body.size() == 1);
  CHECK(found.region->items[0].body[0].loop != nullptr);
  CHECK(found.region->items[0].body[0].body.size() == 2);
  // Another thread's, as often as it runs.
  CHECK_FALSE(Found("for q in 3 { for s in min(3, 8 - q*3) parallel { " +
                    product(16, "0", "0", "(q*3 + s)") + "} }")
                  .region);
}

TEST_CASE("in a task parallel loops are serial") {
  const std::string body = "for q in 8 parallel { " + product(16, "0", "0", "q") + "}";
  CHECK(Found(body, {.most_copies = 512, .parallel = ParallelLoops::kItself}).region);
}

TEST_CASE("a region's subscripts read no memory, which its sums may be") {
  const std::string text =
      "program p(A: i8[80, 64], B: i8[16, 16, 4], T: i32[16]) -> (C: i32[16, 16]) { for s in 4 { "
      "for i in 16 {tensor_x86_tdpbssd_16x16x64 = 1} { for j in 16 { for g in 16 { for k in 4 { "
      "C[i, j] = C[i, j] + i32(A[i + s, g*4 + k])*i32(B[g, j, k]) } } } } } }";
  const Program plain = parse_or_die(text);
  IrBuilder b(plain);
  CHECK(find_tile_region(b, *plain.root().as<Loop>(), {}, kMost));
  const Program gathered = parse_or_die(replaced(text, "A[i + s, ", "A[i + i64(T[s]) % 64, "));
  IrBuilder other(gathered);
  CHECK_FALSE(find_tile_region(other, *gathered.root().as<Loop>(), {}, kMost));
}

TEST_CASE("what fills a region's sums with 0, and nothing else, is known") {
  // q is a variable outside of both.
  const auto fills = [](const std::string& fill) {
    const Program program =
        program_of("for q in 4 { " + fill + "for s in 8 { for v in 2 unrolled { " +
                   product(16, "q", "v", "s") + "} } }");
    const Loop& outside = *program.root().as<Loop>();
    const std::span<const Stmt> stmts = outside.body.as<Seq>()->stmts;
    IrBuilder b(program);
    VarRanges ranges;
    ranges.bind(outside.var, outside.extent);
    const auto region = find_tile_region(b, *stmts[1].as<Loop>(), ranges, kMost);
    REQUIRE(region);
    INFO(fill);
    return fills_sums_with_zero(b, stmts[0], *region, ranges);
  };
  CHECK(fills("for i in 16 { for j in 32 { C[q*16 + i, j] = 0i32 } } "));
  CHECK(
      fills("for v in 2 unrolled { for i in 16 { for j in 16 vectorized { C[q*16 + i, v*16 + j] = "
            "0i32 } } } "));
  const char* const others[] = {
      "for i in 16 { for j in 32 { C[q*16 + i, j] = 1i32 } } ",
      "for i in 16 { for j in 31 { C[q*16 + i, j] = 0i32 } } ",
      "for i in 17 { for j in 32 { C[q*16 + i, j] = 0i32 } } ",
      "for i in 16 { for j in 64 { C[q*16 + i, j] = 0i32 } } ",
      "for i in 16 { for j in 32 { C[i, j] = 0i32 } } ",
      "for i in 16 { for j in 32 { C[q*16 + i, j + 1] = 0i32 } } ",
      "for i in 16 { for j in 32 { C[q*16 + i, j // 2*2] = 0i32 } } ",
      "for i in 16 { for j in 32 { if j < 16 { C[q*16 + i, j] = 0i32 } } } ",
      "for i in 16 parallel { for j in 32 { C[q*16 + i, j] = 0i32 } } ",
      "for i in 8 { D[i] = 0i32 } ",
      "for i in 16 { for j in 32 { for l in 2 { C[q*16 + i, j] = 0i32 } } } ",
  };
  for (const char* fill : others) CHECK_FALSE(fills(fill));
}

TEST_CASE("one matrix by itself is in two registers") {
  const Program program = parse_or_die(
      "program p(X: i8[1024]) -> (C: i32[16, 16]) { for s in 1 { "
      "for i in 16 {tensor_x86_tdpbssd_16x16x64 = 1} { for j in 16 { for g in 16 { for k in 4 { "
      "C[i, j] = C[i, j] + i32(X[i*64 + g*4 + k])*i32(X[g*64 + j*4 + k]) } } } } } }");
  IrBuilder b(program);
  const auto region = find_tile_region(b, *program.root().as<Loop>(), {}, kMost);
  REQUIRE(region);
  const TilePlan plan = plan_tiles(*region, nullptr);
  check_plan(*region, plan);
  CHECK(num_loads(plan) == 2);
}

TEST_CASE("three rows of two sums leave two registers, which the next product needs are kept in") {
  const Found found("for s in 8 { for r in 3 unrolled { for v in 2 unrolled { " +
                    product(16, "r", "v", "s") + "} } }");
  REQUIRE(found.region);
  const TilePlan plan = plan_tiles(*found.region, nullptr);
  check_plan(*found.region, plan);
  // Each row's factor once, each column's for every row.
  CHECK(num_loads(plan) == 9);
}

TEST_CASE("regions of a function share its configuration as far as registers go") {
  TileConfig config{};
  const Found first("for s in 8 { for v in 2 unrolled { " + product(16, "0", "v", "s") + "} }");
  REQUIRE(first.region);
  const TilePlan one = plan_tiles(*first.region, &config);
  check_plan(*first.region, one);
  CHECK_FALSE(one.has_own_config);
  CHECK(std::count(one.config.begin(), one.config.end(), TileShape{}) == 4);
  // Of other rows: sums and A of 12, B of 16 as before.
  const Found second("for s in 8 { " + product(12, "0", "0", "s") + "}");
  REQUIRE(second.region);
  const TilePlan two = plan_tiles(*second.region, &one.config);
  check_plan(*second.region, two);
  CHECK_FALSE(two.has_own_config);
  CHECK(std::count(two.config.begin(), two.config.end(), TileShape{12, 64}) == 2);
  CHECK(std::count(two.config.begin(), two.config.end(), TileShape{16, 64}) == 4);
  // More than are left.
  const Found third("for s in 8 { for v in 2 unrolled { " + product(9, "0", "v", "s") + "} }");
  REQUIRE(third.region);
  const TilePlan three = plan_tiles(*third.region, &two.config);
  check_plan(*third.region, three);
  CHECK(three.has_own_config);
  CHECK(std::count(three.config.begin(), three.config.end(), TileShape{12, 64}) == 0);
}

TEST_CASE("a configuration has the form that the instruction reads") {
  TileConfig config{};
  config[0] = {16, 64};
  config[7] = {5, 32};
  const auto bytes = config_bytes(config);
  CHECK(bytes[0] == 1);
  CHECK(bytes[16] == 64);
  CHECK(bytes[17] == 0);
  CHECK(bytes[16 + 14] == 32);
  CHECK(bytes[48] == 16);
  CHECK(bytes[55] == 5);
  CHECK(std::count(bytes.begin(), bytes.end(), 0) == 64 - 5);
}

TEST_CASE("products outside of tasks are found") {
  constexpr ParallelLoops kTasks = ParallelLoops::kTasks, kItself = ParallelLoops::kItself;
  const std::string step = product(16, "0", "0", "q");
  CHECK(has_tile_products(program_of("for q in 8 { " + step + "}").root(), kTasks));
  CHECK_FALSE(has_tile_products(program_of("for q in 8 parallel { " + step + "}").root(), kTasks));
  CHECK(has_tile_products(program_of("for q in 8 parallel { " + step + "}").root(), kItself));
  CHECK(has_tile_products(program_of("for q in 1 parallel { " + step + "}").root(), kTasks));
  CHECK_FALSE(has_tile_products(program_of("for q in 8 { D[q] = 0i32 }").root(), kItself));
  CHECK_FALSE(has_tile_products(Stmt(), kItself));
}

}  // namespace
}  // namespace prunerc
