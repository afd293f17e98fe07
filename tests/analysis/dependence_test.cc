// Dependences, block properties and region cover on small programs.
#include "ir/analysis/dependence.h"

#include "ir/arith/simplify.h"
#include "ir/printer.h"
#include "tests/support/check.h"
#include "tests/support/random_expr.h"

#include <catch2/catch.hpp>

#include <set>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

// T = A + 1 (L0), C = 2 T (L1): two stages at the root.
constexpr const char* kTwoStages = R"(
program two(A: f32[32]) -> (C: f32[32]) {
  buffer T: f32[32] global
  for i in 32 @L0 {
    block "T" @B0 [v: S(32) = i] {
      reads A[v]
      writes T[v]
      T[v] = A[v] + 1f32
  } }
  for j in 32 @L1 {
    block "C" @B1 [v: S(32) = j] {
      reads T[v]
      writes C[v]
      C[v] = T[v]*2f32
  } }
})";

// The producer computes `count` elements of each tile of 8, from `first` on.
std::string tiled(const std::string& producer_loop, const std::string& binding,
                  const std::string& read, const std::string& guard = "") {
  return R"(
program tiled(A: f32[40]) -> (C: f32[32]) {
  buffer T: f32[40] global
  for i in 4 @L0 {
    for p in )" +
         producer_loop + R"( @L1 {
      block "T" @B0 [v: S(40) = )" +
         binding + "] " + guard + R"( {
        reads A[v]
        writes T[v]
        T[v] = A[v] + 1f32
    } }
    for j in 8 @L2 {
      block "C" @B1 [v: S(32) = i*8 + j] {
        reads )" +
         read + R"(
        writes C[v]
        C[v] = T[v]*2f32
    } }
  }
})";
}

constexpr const char* kMatmul = R"(
program matmul(A: f32[8, 8], B: f32[8, 8]) -> (C: f32[8, 8]) {
  for i in 8 @L0 { for j in 8 @L1 { for k in 8 @L2 {
    block "C" @B0 [vi: S(8) = i, vj: S(8) = j, vk: R(8) = k] {
      reads A[vi, vk], B[vk, vj]
      writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
})";

// With random subscripts and guards:
//   for i in 4 {
//     for p { for q { T[write] = .. } }
//     for p { for q { .. = T[read] } }
//   }
struct TilePair {
  struct Side {
    Expr binding, guard;
    int64_t scale = 1;  // subscript: binding * scale + offset
    int64_t offset = 0;
    int64_t width = 1;
    int64_t p_extent = 1, q_extent = 1;
    const Var* p = nullptr;
    const Var* q = nullptr;
  };

  TilePair(Rng& rng, int64_t size) {
    IrBuilder b("pair");
    const Expr shape[] = {b.int_imm(size)};
    const BufferId out = b.add_buffer("C", DType::kF32, shape, Scope::kGlobal, BufferRole::kOutput);
    const BufferId t =
        b.add_buffer("T", DType::kF32, shape, Scope::kGlobal, BufferRole::kIntermediate);
    i = b.fresh_var("i");
    write = random_side(b, rng, true);
    read = random_side(b, rng, false);
    const Stmt parts[] = {nest(b, write, t, out, true), nest(b, read, t, out, false)};
    Loop loop{};
    loop.id = b.fresh_loop_id();
    loop.var = i;
    loop.extent = b.int_imm(4);
    loop.body = b.seq(parts);
    program = b.finish(b.loop(loop));
  }

  Side random_side(IrBuilder& b, Rng& rng, bool producer) {
    Side s;
    s.p = b.fresh_var("p");
    s.q = b.fresh_var("q");
    s.p_extent = rng.between(1, producer ? 6 : 3);
    s.q_extent = rng.between(1, producer ? 5 : 3);
    const Expr fused =
        b.add(b.mul(s.p, b.int_imm(rng.chance(0.7) ? s.q_extent : rng.between(1, 4))), s.q);
    const Expr inner = rng.chance(0.15)  ? b.floordiv(fused, b.int_imm(2))
                       : rng.chance(0.1) ? b.floormod(fused, b.int_imm(3))
                                         : fused;
    s.binding = b.add(b.mul(i, b.int_imm(rng.between(0, 9))), inner);
    if (rng.chance(0.3))
      s.guard = b.lt(rng.chance(0.5) ? s.binding : inner, b.int_imm(rng.between(1, 40)));
    if (rng.chance(0.2)) s.scale = rng.between(2, 3);
    if (rng.chance(0.5)) s.width = rng.chance(0.5) ? s.scale : rng.between(1, 4);
    if (rng.chance(0.3)) s.offset = rng.between(-2, 2);
    return s;
  }

  static Stmt nest(IrBuilder& b, const Side& s, BufferId t, BufferId out, bool producer) {
    Block block{};
    block.id = b.fresh_block_id();
    block.name = producer ? "T" : "C";
    const IterVar iters[] = {{b.fresh_var("v"), b.int_imm(1000), IterKind::kSpatial, s.binding}};
    block.iters = iters;
    const Expr at = b.add(b.mul(iters[0].var, b.int_imm(s.scale)), b.int_imm(s.offset));
    const Range box[] = {{at, b.int_imm(s.width)}};
    const Access access[] = {{t, box}};
    const Range first[] = {{b.int_imm(0), b.int_imm(1)}};
    const Access output[] = {{out, first}};
    block.reads = producer ? std::span<const Access>() : access;
    block.writes = producer ? access : output;
    block.guard = s.guard;
    const Expr zero[] = {b.int_imm(0)};
    block.body = b.store(producer ? t : out, zero, b.float_imm(0, DType::kF32));
    Stmt body = b.block(block);
    for (const auto& [var, extent] : {std::pair(s.q, s.q_extent), std::pair(s.p, s.p_extent)}) {
      Loop loop{};
      loop.id = b.fresh_loop_id();
      loop.var = var;
      loop.extent = b.int_imm(extent);
      loop.body = body;
      body = b.loop(loop);
    }
    return body;
  }

  std::set<int64_t> elements(int64_t at_i, const Side& s) const {
    std::set<int64_t> out;
    Env env;
    env.vars[i->id.value] = at_i;
    for (int64_t p = 0; p < s.p_extent; ++p) {
      for (int64_t q = 0; q < s.q_extent; ++q) {
        env.vars[s.p->id.value] = p;
        env.vars[s.q->id.value] = q;
        if (s.guard.defined() && value_of(s.guard, env).value() == 0) continue;
        const int64_t first = value_of(s.binding, env).value() * s.scale + s.offset;
        for (int64_t k = 0; k < s.width; ++k) out.insert(first + k);
      }
    }
    return out;
  }

  Program program;
  const Var* i = nullptr;
  Side write, read;
};

BlockFault cover_of(const std::string& text, int block) {
  const Program p = parse_or_die(text);
  return check_region_cover(p, LoopIndex(p), BlockId(block));
}

}  // namespace

TEST_CASE("blocks of a scope depend on each other through buffers in program order") {
  const Program p = parse_or_die(kTwoStages);
  const LoopIndex index(p);
  const ScopeDeps deps = scope_dependences(index, BlockId());
  REQUIRE(deps.edges.size() == 1);
  CHECK(deps.edges[0].from == BlockId(0));
  CHECK(deps.edges[0].to == BlockId(1));
  CHECK(deps.edges[0].kind == DepKind::kReadAfterWrite);
  CHECK(deps.producers(BlockId(1)) == std::vector<BlockId>{BlockId(0)});
  CHECK(deps.consumers(BlockId(0)) == std::vector<BlockId>{BlockId(1)});
  CHECK(deps.producers(BlockId(0)).empty());
  CHECK(deps.writers(p.buffers()[2].id).size() == 1);
  CHECK(check_complete(index, BlockId(0)) == BlockFault::kNone);
  CHECK(check_output(p, index, BlockId(0)) == BlockFault::kNotOutput);
  CHECK(check_output(p, index, BlockId(1)) == BlockFault::kNone);
  CHECK(check_stage_pipeline(p, index, BlockId()) == BlockFault::kNone);
}

TEST_CASE("writing a buffer that an earlier block reads or writes makes an edge") {
  const Program p = parse_or_die(R"(
program over(A: f32[8]) -> (C: f32[8]) {
  buffer T: f32[8] global
  for i in 8 { block "a" @B0 [v: S(8) = i] { reads A[v] writes T[v] T[v] = A[v] } }
  for i in 8 { block "b" @B1 [v: S(8) = i] { reads T[v] writes C[v] C[v] = T[v] } }
  for i in 8 { block "c" @B2 [v: S(8) = i] { reads A[v] writes T[v] T[v] = A[v] } }
})");
  const LoopIndex index(p);
  const ScopeDeps deps = scope_dependences(index, BlockId());
  const BufferId t = p.buffers()[2].id;
  const std::vector<DepEdge> expected = {{BlockId(0), BlockId(1), t, DepKind::kReadAfterWrite},
                                         {BlockId(0), BlockId(2), t, DepKind::kWriteAfterWrite},
                                         {BlockId(1), BlockId(2), t, DepKind::kWriteAfterRead}};
  CHECK(deps.edges == expected);
  CHECK(check_dominant(index, BlockId(0)) == BlockFault::kNotDominant);
  CHECK(check_complete(index, BlockId(2)) == BlockFault::kNotDominant);
  CHECK(check_dominant(index, BlockId(1)) == BlockFault::kNone);
  CHECK(check_stage_pipeline(p, index, BlockId()) == BlockFault::kWriteAfterRead);
}

TEST_CASE("a matrix product is a reduction block and not a complete one") {
  const Program p = parse_or_die(kMatmul);
  const LoopIndex index(p);
  CHECK(check_reduction(p, index, BlockId(0)) == BlockFault::kNone);
  CHECK(check_complete(index, BlockId(0)) == BlockFault::kNotSpatial);
  CHECK(check_affine(p, index, BlockId(0)) == BlockFault::kNone);
}

TEST_CASE("reduction blocks are refused with the reason") {
  const auto fault = [](const std::string& from, const std::string& to) {
    std::string text = kMatmul;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    const Program p = parse_or_die(text.replace(at, from.size(), to));
    return check_reduction(p, LoopIndex(p), BlockId(0));
  };
  CHECK(fault("init { C[vi, vj] = 0f32 }", "") == BlockFault::kNoInit);
  CHECK(fault("vi: S(8) = i", "vi: O(8) = i") == BlockFault::kOpaqueIter);
  CHECK(fault("vi: S(8) = i", "vi: S(8) = j") == BlockFault::kNotAffine);
  CHECK(fault("vj: S(8) = j", "vj: R(8) = j") == BlockFault::kReduceIndexesOutput);
  const Program p = parse_or_die(kMatmul);
  CHECK(check_reduction(p, LoopIndex(p), BlockId(7)) == BlockFault::kUnknownBlock);
  for (int i = 0; i <= static_cast<int>(BlockFault::kOpaqueStatement); ++i) {
    CHECK_FALSE(to_string(static_cast<BlockFault>(i)).empty());
  }
}

TEST_CASE("a tile that the producer fills covers its consumer") {
  CHECK(cover_of(tiled("8", "i*8 + p", "T[v]"), 1) == BlockFault::kNone);
  CHECK(cover_of(tiled("10", "i*8 + p", "T[v +: 3]"), 1) == BlockFault::kNone);
  // Several digits, and a tail that the guard cuts.
  CHECK(cover_of(tiled("8", "i*8 + p//4*4 + p%4", "T[v]"), 1) == BlockFault::kNone);
  CHECK(cover_of(tiled("16", "i*8 + p", "T[v]", "where p < 9"), 1) == BlockFault::kNone);
}

TEST_CASE("a tile that the producer leaves holes in does not cover") {
  CHECK(cover_of(tiled("7", "i*8 + p", "T[v]"), 1) == BlockFault::kNotCovered);
  CHECK(cover_of(tiled("8", "i*8 + p", "T[v +: 2]"), 1) == BlockFault::kNotCovered);
  CHECK(cover_of(tiled("8", "i*8 + p", "T[v]", "where p < 7"), 1) == BlockFault::kNotCovered);
  // Every second element: the hull covers, the elements do not.
  CHECK(cover_of(tiled("16", "p*2", "T[v]"), 1) != BlockFault::kNone);
  CHECK(cover_of(tiled("8", "i*8 + p//2", "T[v]"), 1) != BlockFault::kNone);
  CHECK(cover_of(tiled("8", "i*8 + p", "T[v]", "where i < 3"), 1) != BlockFault::kNone);
}

TEST_CASE("a guard that only keeps the buffer's bounds does not break the cover") {
  const std::string text = R"(
program ragged(A: f32[30]) -> (C: f32[30]) {
  buffer T: f32[30] global
  for i in 4 @L0 {
    for p in 8 @L1 {
      block "T" @B0 [v: S(30) = i*8 + p] where i*8 + p < 30 {
        reads A[v]
        writes T[v]
        T[v] = A[v] + 1f32
    } }
    for j in 8 @L2 {
      block "C" @B1 [v: S(30) = i*8 + j] where i*8 + j < 30 {
        reads T[v]
        writes C[v]
        C[v] = T[v]*2f32
    } }
  }
})";
  CHECK(cover_of(text, 1) == BlockFault::kNone);
}

TEST_CASE("several producers cover together only if they leave no gap") {
  const auto text = [](const std::string& first, const std::string& second) {
    return R"(
program concat(A: f32[4, 10], B: f32[4, 6]) -> (C: f32[4, 16]) {
  buffer T: f32[4, 16] global
  for i in 4 { for j in 6 { block "b" @B0 [vi: S(4) = i, vj: S(6) = j] {
    reads B[vi, vj]
    writes )" +
           second + R"(
    )" + second +
           R"( = B[vi, vj]
  } } }
  for i in 4 { for j in 10 { block "a" @B1 [vi: S(4) = i, vj: S(10) = j] {
    reads A[vi, vj]
    writes )" +
           first + R"(
    )" + first +
           R"( = A[vi, vj]
  } } }
  for i in 4 { for j in 16 { block "c" @B2 [vi: S(4) = i, vj: S(16) = j] {
    reads T[vi, vj]
    writes C[vi, vj]
    C[vi, vj] = T[vi, vj]
  } } }
})";
  };
  CHECK(cover_of(text("T[vi, vj]", "T[vi, vj + 10]"), 2) == BlockFault::kNone);
  CHECK(cover_of(text("T[vi, vj]", "T[vi, vj + 9]"), 2) == BlockFault::kCoverUnknown);
  CHECK(cover_of(text("T[vi, vj + 1]", "T[vi, vj + 10]"), 2) == BlockFault::kCoverUnknown);
}

TEST_CASE("an accepted cover holds element by element in random tiles") {
  constexpr int64_t kSize = 40;
  int num_covered = 0;
  int num_refuted = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Rng rng(seed, 41);
    TilePair pair(rng, kSize);
    const LoopIndex index(pair.program);
    const BlockFault fault = check_region_cover(pair.program, index, BlockId(1));
    bool covered = true;
    for (int64_t i = 0; i < 4; ++i) {
      const std::set<int64_t> written = pair.elements(i, pair.write);
      for (int64_t at : pair.elements(i, pair.read)) {
        if (at >= 0 && at < kSize) covered = covered && written.count(at) != 0;
      }
    }
    INFO("seed " << seed << "\n" << print(pair.program));
    if (fault == BlockFault::kNone) CHECK(covered);
    if (fault == BlockFault::kNotCovered) CHECK(!covered);
    num_covered += fault == BlockFault::kNone ? 1 : 0;
    num_refuted += fault == BlockFault::kNotCovered ? 1 : 0;
  }
  CHECK(num_covered > 80);
  CHECK(num_refuted > 150);
}

TEST_CASE(
    "a position table finds parents, positions and common loops, and says when there is nothing") {
  const Program p = parse_or_die(tiled("8", "i*8 + p", "T[v]"));
  const LoopIndex index(p);
  REQUIRE(index.loop(LoopId(1)) != nullptr);
  CHECK(index.loop(LoopId(3)) == nullptr);
  CHECK(index.block(BlockId(5)) == nullptr);
  CHECK(index.block("C") == index.block(BlockId(1)));
  CHECK(index.block("nothing") == nullptr);
  CHECK(index.enclosing_loops(BlockId(1)).size() == 2);
  CHECK(index.parent(LoopId(2)).kind() == StmtKind::kSeq);
  CHECK_FALSE(index.parent(LoopId(0)).defined());
  CHECK(index.position(LoopId(2)) == 1);
  CHECK(index.position(BlockId(9)) == -1);
  CHECK(index.order(BlockId(0)) < index.order(BlockId(1)));
  CHECK(index.lowest_common_loop(BlockId(0), BlockId(1))->id == LoopId(0));
  CHECK(index.blocks_under(LoopId(0)).size() == 2);
  CHECK(index.child_blocks(BlockId()).size() == 2);
  CHECK(index.child_blocks(BlockId(0)).empty());
  CHECK(index.parent_block(BlockId(0)) == nullptr);
  CHECK(ranges_around(p, index, BlockId(1)).interval(index.loop(LoopId(2))->var->id) ==
        Interval{0, 7});
  CHECK_FALSE(ranges_around(p, index, BlockId(1)).knows(index.loop(LoopId(1))->var->id));
}

}  // namespace prunerc::ir
