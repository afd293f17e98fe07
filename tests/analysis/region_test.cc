// Regions against enumeration of what a statement touches.
#include "ir/analysis/region.h"

#include "ir/arith/loop_index.h"
#include "ir/arith/simplify.h"
#include "ir/printer.h"
#include "tests/support/check.h"
#include "tests/support/random_expr.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

std::string show(const BufferRegion& region) {
  std::string out;
  for (const Range& r : region.box) out += "[" + show(r.min) + " +: " + show(r.extent) + "]";
  return out;
}

constexpr std::string_view kConv = R"(
program conv(X: f32[34], F: f32[3]) -> (Y: f32[32]) {
  for i in 8 @L0 {
    for j in 4 @L1 {
      for k in 3 @L2 {
        block "Y" @B0 [v: S(32) = i*4 + j, r: R(3) = k] {
          reads X[v + r], F[r]
          writes Y[v]
          init { Y[v] = 0f32 }
          Y[v] = Y[v] + X[v + r]*F[r]
  } } } }
})";

}  // namespace

TEST_CASE("a region under a loop is 1 + the sum of stride times extent - 1") {
  const Program p = parse_or_die(kConv);
  const LoopIndex index(p);
  IrBuilder b(p);
  const VarRanges ranges = ranges_inside(p, index, LoopId(0));
  const Regions found = touched_regions(b, index.loop(LoopId(0))->body, ranges);
  REQUIRE(found.reads.size() == 2);
  CHECK(show(found.reads[0]) == "[(i * 4) +: 6]");
  CHECK(show(found.reads[1]) == "[0 +: 3]");
  REQUIRE(found.writes.size() == 1);
  CHECK(show(found.writes[0]) == "[(i * 4) +: 4]");
  const auto extents = region_extents(b, found.reads[0], ranges);
  REQUIRE(extents[0].has_value());
  CHECK(show(*extents[0]) == "6");
}

TEST_CASE(
    "accesses of a block are points over its iterations; with an init its own output is not read") {
  const Program p = parse_or_die(kConv);
  const LoopIndex index(p);
  IrBuilder b(p);
  const Block& block = *index.block(BlockId(0));
  const Regions found = infer_block_accesses(b, block.iters, block.init, block.body);
  REQUIRE(found.reads.size() == 2);
  CHECK(show(found.reads[0]) == "[(v + r) +: 1]");
  const Regions update = infer_block_accesses(b, block.iters, {}, block.body);
  CHECK(update.reads.size() == 3);
  Block copy = block;
  rebuild_accesses(b, copy);
  CHECK(copy.reads.size() == 2);
  CHECK(copy.writes.size() == 1);
}

TEST_CASE("a data-dependent subscript touches the whole dimension, and its index is read too") {
  const Program p = parse_or_die(R"(
program embed(E: f32[10, 4], id: i64[6]) -> (Y: f32[6, 4]) {
  for t in 6 @L0 {
    for d in 4 @L1 {
      block "Y" @B0 [a: S(6) = t, c: S(4) = d] {
        reads E[0 +: 10, c], id[a]
        writes Y[a, c]
        Y[a, c] = E[id[a], c]
  } } }
})");
  const LoopIndex index(p);
  IrBuilder b(p);
  const Block& block = *index.block(BlockId(0));
  const Regions found = infer_block_accesses(b, block.iters, {}, block.body);
  REQUIRE(found.reads.size() == 2);
  CHECK(show(found.reads[0]) == "[a +: 1]");
  CHECK(show(found.reads[1]) == "[0 +: 10][c +: 1]");
}

TEST_CASE("guards narrow what is relaxed, and clipping cuts to the buffer") {
  const Program p = parse_or_die(R"(
program pad(X: f32[16]) -> (Y: f32[18]) {
  for i in 18 @L0 {
    block "Y" @B0 [v: S(18) = i] {
      reads X[v - 1]
      writes Y[v]
      Y[v] = select(1 <= v && v < 17, X[v - 1], 0f32)
  } }
})");
  const LoopIndex index(p);
  IrBuilder b(p);
  const Block& block = *index.block(BlockId(0));
  const std::vector<VarId> inner = {block.iters[0].var->id};
  VarRanges ranges;
  bind_iters(ranges, block);
  const Regions loose = touched_regions(b, p.root(), {}, {.use_guards = true, .clip = false});
  CHECK(show(loose.reads[0]) == "[-1 +: 18]");
  const Regions cut = touched_regions(b, p.root(), {}, {.use_guards = true, .clip = true});
  CHECK(show(cut.reads[0]) == "[0 +: 16]");
}

TEST_CASE("cover and overlap of boxes are three-valued") {
  IrBuilder b("boxes");
  const Expr shape[] = {b.int_imm(100)};
  const BufferId a = b.add_buffer("A", DType::kF32, shape, Scope::kGlobal, BufferRole::kInput);
  const Var* i = b.fresh_var("i");
  const Var* j = b.fresh_var("j");
  VarRanges ranges;
  ranges.bind(i, b.int_imm(10));
  ranges.bind(j, b.int_imm(10));
  const auto box = [&](Expr min, int64_t extent) {
    return BufferRegion{a, {{min, b.int_imm(extent)}}};
  };
  const Expr tile = b.mul(i, b.int_imm(10));
  CHECK(covers(b, box(tile, 10), box(b.add(tile, b.int_imm(2)), 8), ranges) == Proof::kYes);
  CHECK(covers(b, box(tile, 10), box(b.add(tile, b.int_imm(2)), 9), ranges) == Proof::kNo);
  CHECK(covers(b, box(tile, 10), box(b.add(tile, j), 1), ranges) == Proof::kYes);
  CHECK(covers(b, box(b.int_imm(0), 100), box(tile, 10), ranges) == Proof::kYes);
  CHECK(disjoint(b, box(tile, 10), box(b.add(tile, b.int_imm(10)), 5), ranges) == Proof::kYes);
  CHECK(disjoint(b, box(tile, 10), box(b.add(tile, b.int_imm(9)), 5), ranges) == Proof::kNo);
  CHECK(disjoint(b, box(i, 1), box(j, 1), ranges) == Proof::kUnknown);
  const BufferRegion both = hull(b, box(tile, 3), box(b.add(tile, b.int_imm(5)), 2), ranges);
  CHECK(show(both) == "[(i * 10) +: 7]");
}

TEST_CASE("regions hold every element that random loop nests touch") {
  int num_exact = 0;
  int num_boxes = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    ExprMaker maker(seed + 9000);
    IrBuilder& b = maker.b;
    const Expr shape[] = {b.int_imm(100'000)};
    const BufferId out =
        b.add_buffer("out", DType::kI64, shape, Scope::kGlobal, BufferRole::kOutput);
    // vars[0] is outside, vars[1] and vars[2] are loops; the access may stand under a condition.
    const Expr subscript = maker.index(3);
    const Expr condition = maker.condition(2);
    const Expr at[] = {subscript};
    Stmt s = b.store(out, at, b.int_imm(1));
    const bool guarded = seed % 3 == 0;
    if (guarded) s = b.if_then(condition, s);
    if (!s.defined()) continue;
    for (std::size_t i = 5; i-- > 1;) {
      Loop loop{};
      loop.id = b.fresh_loop_id();
      loop.var = maker.vars[i];
      loop.extent = b.int_imm(maker.extents[i]);
      loop.body = s;
      s = b.loop(loop);
    }
    VarRanges ranges;
    ranges.bind(maker.vars[0], b.int_imm(maker.extents[0]));
    const Regions found =
        touched_regions(b, s, ranges, {.use_guards = seed % 2 == 0, .clip = false});
    REQUIRE(found.writes.size() == 1);
    const Range range = found.writes[0].box[0];
    const auto extents = region_extents(b, found.writes[0], ranges);
    Rng rng(seed, 5);
    for (int outer = 0; outer < 3; ++outer) {
      Env env = random_env(maker, rng);
      const std::optional<int64_t> lo = value_of(range.min, env);
      const std::optional<int64_t> size = value_of(range.extent, env);
      if (!lo.has_value() || !size.has_value()) continue;
      // A subscript that cannot be bounded gives the whole dimension; then only what lies inside
      // counts.
      const bool whole = *lo == 0 && *size == 100'000;
      if (!whole && extents[0].has_value())
        CHECK(std::min<int64_t>(*size, 100'000) <= value_of(*extents[0], env).value_or(-1));
      std::set<int64_t> touched;
      for (int k = 0; k < 200; ++k) {
        for (std::size_t i = 1; i < 5; ++i) {
          env.vars[maker.vars[i]->id.value] = rng.between(0, maker.extents[i] - 1);
        }
        if (guarded && value_of(condition, env).value_or(0) == 0) continue;
        const std::optional<int64_t> v = value_of(subscript, env);
        if (!v.has_value()) continue;
        touched.insert(*v);
        if (!whole && (*v < *lo || *v >= *lo + *size)) {
          FAIL_CHECK("seed " << seed << ": " << show(subscript) << " touches " << *v << " outside "
                             << show(found.writes[0]));
        }
      }
      if (!touched.empty()) ++num_boxes;
      if (!touched.empty() && *touched.begin() == *lo && *touched.rbegin() == *lo + *size - 1)
        ++num_exact;
    }
  }
  CHECK(num_boxes > 500);
  CHECK(num_exact > num_boxes / 2);  // the boxes are not merely large
}

}  // namespace prunerc::ir
