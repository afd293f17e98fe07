#include "tests/property/random_step.h"

#include "ir/arith/loop_index.h"
#include "ir/tensor/intrinsic.h"
#include "ir/tile_space.h"
#include "ir/visit.h"
#include "tests/property/random_index_map.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace prunerc::testing {
namespace {

using namespace prunerc::ir;        // NOLINT: a source file of tests
using namespace prunerc::schedule;  // NOLINT: a source file of tests

struct LoopFacts {
  LoopId id;
  VarId var;
  int64_t extent = 1;
};

class Chooser {
 public:
  Chooser(const Schedule& s, Rng& rng) : schedule_(s), rng_(rng) {
    collect(s.program().root());
    blocks_ = s.blocks();
  }

  RandomStep step();

 private:
  void collect(Stmt s) {
    if (!s.defined()) return;
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr) {
      const IntImm* extent = loop->extent.as<IntImm>();
      loops_.push_back({loop->id, loop->var->id, extent != nullptr ? extent->value : 1});
    }
    if (const Block* block = s.as<Block>()) {
      for (const IterVar& iter : block->iters) {
        if (iter.kind != IterKind::kReduce) continue;
        walk(iter.binding, [&](Expr e) {
          const Var* var = e.as<Var>();
          for (const LoopFacts& l : loops_) {
            if (var != nullptr && l.var == var->id) feeding_.insert(l.id.value);
          }
          return true;
        });
      }
    }
    for_each_child(
        s, [&](Stmt child) { collect(child); }, [](Expr) {});
  }

  template <typename T>
  const T& pick(const std::vector<T>& options) {
    return options[static_cast<std::size_t>(rng_.below(options.size()))];
  }
  bool nonsense() { return rng_.chance(0.025); }
  LoopFacts any_loop() {
    if (loops_.empty() || nonsense())
      return {LoopId(static_cast<int32_t>(rng_.below(200))), VarId(), 8};
    return pick(loops_);
  }
  BlockId any_block() {
    if (blocks_.empty() || nonsense()) return BlockId(static_cast<int32_t>(rng_.below(40)));
    return pick(blocks_);
  }
  std::vector<LoopId> chain_of(BlockId block) { return schedule_.loops_of(block); }
  /// Rather the loop of a reduction variable.
  LoopId reduction_loop() {
    for (int attempt = 0; attempt < 6 && !loops_.empty(); ++attempt) {
      const LoopId id = pick(loops_).id;
      if (feeding_.count(id.value) > 0) return id;
    }
    return any_loop().id;
  }
  std::string scope() {
    return pick<std::string>({"global", "global", "shared", "local", "nowhere"});
  }
  Int small() { return Int(rng_.between(nonsense() ? -2 : 0, 2)); }

  RandomStep split();
  RandomStep fuse();
  RandomStep reorder();
  RandomStep move(PrimitiveKind kind);
  RandomStep sample();
  RandomStep partition();
  RandomStep merge();
  RandomStep pipeline();
  RandomStep epilogue();
  RandomStep unannotate();
  RandomStep inplace();
  RandomStep double_buffer();
  /// One of the blocks with the property; any block if there is none.
  template <typename F>
  BlockId block_such_that(const F& holds) {
    const LoopIndex index(schedule_.program());
    std::vector<BlockId> found;
    for (const BlockId id : blocks_) {
      const Block* block = index.block(id);
      if (block != nullptr && holds(*block)) found.push_back(id);
    }
    return found.empty() || nonsense() ? any_block() : pick(found);
  }
  RandomStep locate();
  RandomStep iter_order();
  std::string axis() {
    return pick<std::string>({"block.x", "block.y", "thread.x", "thread.x", "thread.y", "vthread.x",
                              nonsense() ? "thread.w" : "block.x"});
  }
  RandomStep layout();
  std::vector<int64_t> extents_of(BlockId id);
  BlockId padded_block();
  RandomStep tensorize();
  static RandomStep make(PrimitiveKind kind, std::vector<Operand> operands) {
    return {{kind, std::move(operands), {}}, {}};
  }

  const Schedule& schedule_;
  Rng& rng_;
  std::vector<LoopFacts> loops_;
  std::vector<BlockId> blocks_;
  std::set<int32_t> feeding_;  // loops whose variables reductions are bound to
};

RandomStep Chooser::split() {
  const LoopFacts loop = any_loop();
  std::vector<Int> factors;
  if (rng_.chance(0.33)) {
    for (int64_t t :
         TileSpace(loop.extent, 2 + static_cast<int>(rng_.below(2)), TileKind::kPerfect, 0)
             .sample(rng_)) {
      factors.emplace_back(t);
    }
  } else {
    factors = {Int(-1), Int(rng_.between(nonsense() ? -3 : 1, 9))};
    if (rng_.chance(0.3)) factors.emplace_back(rng_.between(1, 4));
    if (rng_.chance(0.3)) std::swap(factors[0], factors[1]);
  }
  if (!factors.empty() && rng_.chance(0.2)) factors[0] = Int(-1);
  return make(PrimitiveKind::kSplit, {loop.id, factors});
}

RandomStep Chooser::fuse() {
  const std::vector<LoopId> chain = chain_of(any_block());
  std::vector<LoopId> chosen;
  if (chain.size() >= 2 && !nonsense()) {
    const auto first = static_cast<std::size_t>(rng_.below(chain.size() - 1));
    const auto last = static_cast<std::size_t>(
        rng_.between(static_cast<int64_t>(first) + 1, static_cast<int64_t>(chain.size()) - 1));
    chosen.assign(chain.begin() + static_cast<std::ptrdiff_t>(first),
                  chain.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  } else {
    chosen = {any_loop().id, any_loop().id};
  }
  return make(PrimitiveKind::kFuse, {chosen});
}

RandomStep Chooser::reorder() {
  std::vector<LoopId> chosen = chain_of(any_block());
  for (std::size_t i = chosen.size(); i > 1; --i) {
    std::swap(chosen[i - 1], chosen[static_cast<std::size_t>(rng_.below(i))]);
  }
  if (chosen.size() > 2)
    chosen.resize(static_cast<std::size_t>(rng_.between(2, static_cast<int64_t>(chosen.size()))));
  if (nonsense()) chosen.push_back(any_loop().id);
  return make(PrimitiveKind::kReorder, {chosen});
}

RandomStep Chooser::move(PrimitiveKind kind) {
  const BlockId block = any_block();
  const std::vector<BlockId> targets =
      kind == PrimitiveKind::kComputeAt ? schedule_.consumers(block) : schedule_.producers(block);
  LoopId loop = any_loop().id;
  if (!targets.empty() && !nonsense()) {
    const std::vector<LoopId> chain = chain_of(pick(targets));
    if (!chain.empty()) loop = pick(chain);
  }
  return make(kind, {block, loop});
}

RandomStep Chooser::partition() {
  const LoopFacts loop = any_loop();
  std::vector<Int> sizes = {
      Int(rng_.between(nonsense() ? -1 : 1, std::max<int64_t>(loop.extent, 1)))};
  if (rng_.chance(0.3)) sizes.emplace_back(rng_.between(1, 3));
  if (rng_.chance(0.9)) sizes.emplace_back(-1);
  return make(PrimitiveKind::kLoopPartition, {loop.id, sizes});
}

// Rather two loops that follow each other.
RandomStep Chooser::merge() {
  std::vector<std::vector<LoopId>> pairs;
  walk(
      schedule_.program().root(),
      [&](Stmt s) {
        const Seq* seq = s.as<Seq>();
        for (std::size_t i = 0; seq != nullptr && i + 1 < seq->stmts.size(); ++i) {
          const Loop* first = seq->stmts[i].as<Loop>();
          const Loop* second = seq->stmts[i + 1].as<Loop>();
          if (first != nullptr && second != nullptr) pairs.push_back({first->id, second->id});
        }
        return true;
      },
      [](Expr) {});
  if (pairs.empty() || nonsense()) pairs.push_back({any_loop().id, any_loop().id});
  return make(PrimitiveKind::kMerge, {pick(pairs)});
}

RandomStep Chooser::pipeline() {
  std::vector<std::pair<LoopId, int64_t>> loops;
  walk(
      schedule_.program().root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        const Seq* seq = loop == nullptr ? nullptr : loop->body.as<Seq>();
        if (seq != nullptr) loops.emplace_back(loop->id, static_cast<int64_t>(seq->stmts.size()));
        return true;
      },
      [](Expr) {});
  if (loops.empty() || nonsense()) loops.emplace_back(any_loop().id, 1);
  const auto [loop, count] = pick(loops);
  std::vector<Int> stages;
  std::vector<Int> orders;
  for (int64_t i = 0; i < count; ++i) {
    stages.emplace_back(rng_.chance(0.7) ? (i == 0 ? 0 : 1) : rng_.between(0, 2));
    orders.emplace_back(i);
  }
  if (rng_.chance(0.2)) std::swap(orders.front(), orders.back());
  return make(PrimitiveKind::kSoftwarePipeline, {loop, stages, orders});
}

// Rather a reduction into an intermediate and a reader of its result.
RandomStep Chooser::epilogue() {
  const BlockId block = block_such_that([](const Block& b) { return b.init.defined(); });
  const std::vector<BlockId> consumers = schedule_.consumers(block);
  return make(PrimitiveKind::kFuseReductionEpilogue,
              {block, consumers.empty() || nonsense() ? any_block() : pick(consumers)});
}

// Rather an attribute that is there.
RandomStep Chooser::unannotate() {
  std::vector<std::pair<LoopId, std::string>> of_loops;
  std::vector<std::pair<BlockId, std::string>> of_blocks;
  walk(
      schedule_.program().root(),
      [&](Stmt s) {
        if (const Loop* loop = s.as<Loop>()) {
          for (const Attr& a : loop->attrs) of_loops.emplace_back(loop->id, std::string(a.key));
        }
        if (const Block* block = s.as<Block>()) {
          for (const Attr& a : block->attrs) of_blocks.emplace_back(block->id, std::string(a.key));
        }
        return true;
      },
      [](Expr) {});
  if (of_loops.empty() || nonsense()) of_loops.emplace_back(any_loop().id, "note");
  if (of_blocks.empty() || nonsense()) of_blocks.emplace_back(any_block(), "note");
  if (rng_.chance(0.5)) {
    const auto& [loop, key] = pick(of_loops);
    return make(PrimitiveKind::kUnannotateLoop, {loop, key});
  }
  const auto& [block, key] = pick(of_blocks);
  return make(PrimitiveKind::kUnannotateBlock, {block, key});
}

// Rather a block that reads what it writes.
RandomStep Chooser::inplace() {
  const auto own_read = [](const Block& block) {
    for (std::size_t i = 0; i < block.reads.size(); ++i) {
      for (const Access& write : block.writes) {
        if (write.buffer == block.reads[i].buffer) return static_cast<int64_t>(i);
      }
    }
    return int64_t{-1};
  };
  const BlockId id = block_such_that([&](const Block& b) { return own_read(b) >= 0; });
  const Block* block = LoopIndex(schedule_.program()).block(id);
  const int64_t index = block == nullptr ? -1 : own_read(*block);
  return make(PrimitiveKind::kCacheInplace,
              {id, index < 0 || nonsense() ? small() : Int(index), scope()});
}

// Rather a block that writes an intermediate.
RandomStep Chooser::double_buffer() {
  const BlockId block = block_such_that([&](const Block& b) {
    return !b.writes.empty() &&
           schedule_.program().buffer(b.writes[0].buffer).role == BufferRole::kIntermediate;
  });
  return make(PrimitiveKind::kDoubleBuffer, {block, nonsense() ? small() : Int(0)});
}

RandomStep Chooser::locate() {
  const BlockId block = any_block();
  const std::vector<int64_t> codes = schedule_.compute_locations(block);
  if (rng_.chance(0.5)) {
    return make(PrimitiveKind::kComputeAtLocation,
                {block, Int(nonsense() ? rng_.between(-3, 9) : pick(codes))});
  }
  const std::vector<Int> listed(codes.begin(), codes.end());
  RandomStep step = make(PrimitiveKind::kSampleComputeLocation, {block, listed});
  step.decision = {nonsense() ? int64_t{9} : pick(codes)};
  return step;
}

RandomStep Chooser::iter_order() {
  const BlockId block = any_block();
  const LoopIndex index(schedule_.program());
  const Block* found = index.block(block);
  std::vector<Int> order;
  for (std::size_t i = 0; found != nullptr && i < found->iters.size(); ++i) {
    order.emplace_back(static_cast<int64_t>(i));
  }
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(rng_.below(i))]);
  }
  if (nonsense()) order.emplace_back(0);
  return make(PrimitiveKind::kReorderBlockIterVar, {block, order});
}

// Extents of a block's variables.
std::vector<int64_t> Chooser::extents_of(BlockId id) {
  std::vector<int64_t> out;
  walk(
      schedule_.program().root(),
      [&](Stmt s) {
        const Block* block = s.as<Block>();
        if (block == nullptr || block->id != id) return true;
        for (const IterVar& iter : block->iters) {
          const IntImm* extent = iter.extent.as<IntImm>();
          out.push_back(extent != nullptr ? extent->value : 1);
        }
        return false;
      },
      [](Expr) {});
  return out;
}

// Rather one that stores a select.
BlockId Chooser::padded_block() {
  std::vector<BlockId> found;
  walk(
      schedule_.program().root(),
      [&](Stmt s) {
        const Block* block = s.as<Block>();
        const Store* store = block == nullptr ? nullptr : block->body.as<Store>();
        if (store != nullptr && store->value.as<Select>() != nullptr) found.push_back(block->id);
        return true;
      },
      [](Expr) {});
  return found.empty() || nonsense() ? any_block() : pick(found);
}

RandomStep Chooser::layout() {
  const BlockId id = any_block();
  std::vector<int64_t> shape;
  walk(
      schedule_.program().root(),
      [&](Stmt s) {
        const Block* block = s.as<Block>();
        if (block == nullptr || block->id != id || block->writes.empty()) return true;
        for (Expr extent : schedule_.program().buffer(block->writes[0].buffer).shape) {
          shape.push_back(extent.as<IntImm>() != nullptr ? extent.as<IntImm>()->value : 1);
        }
        return false;
      },
      [](Expr) {});
  std::vector<Int> pad;
  if (rng_.chance(0.5)) pad = {Int(rng_.between(-1, 2))};
  const std::string map = nonsense() ? "(i) -> (i // 2" : random_index_map(shape, rng_);
  return make(PrimitiveKind::kTransformLayout, {id, Int(nonsense() ? 1 : 0), map, pad});
}

// Rather a loop whose nest has the extents of an intrinsic. Of tile registers, which have one for each
// number of rows, only those with the fewest: of all little else would be drawn.
RandomStep Chooser::tensorize() {
  std::vector<const TensorIntrinsic*> all;
  for (const TensorIntrinsic& one : tensor_intrinsics()) {
    if (!one.uses_tiles() || one.name.find("_4x16x") != one.name.npos) all.push_back(&one);
  }
  const TensorIntrinsic* chosen = all[static_cast<std::size_t>(rng_.below(all.size()))];
  LoopId id = any_loop().id;
  for (const TensorIntrinsic* one : all) {
    const int64_t first = one->block().iters[0].extent.as<IntImm>()->value;
    for (const LoopFacts& loop : loops_) {
      if (loop.extent != first || !rng_.chance(0.2)) continue;
      chosen = one;
      id = loop.id;
    }
  }
  return make(PrimitiveKind::kTensorize, {id, nonsense() ? "nothing" : chosen->name});
}

RandomStep Chooser::sample() {
  if (rng_.chance(0.3)) {
    const LoopFacts loop = any_loop();
    const int levels = static_cast<int>(rng_.between(1, 3));
    const int64_t factor = rng_.chance(0.5) ? 1 : 2;
    RandomStep step = make(PrimitiveKind::kSamplePartitionedTile,
                           {loop.id, Int(levels), Int(rng_.between(0, levels - 1)), Int(factor)});
    step.decision.assign(static_cast<std::size_t>(levels), 1);
    step.decision.back() = loop.extent;
    return step;
  }
  if (rng_.chance(0.2)) {
    RandomStep step = make(PrimitiveKind::kSampleCategorical,
                           {std::vector<Int>{1, 2, 4}, std::vector<Int>{1, 1, 2}});
    step.decision = {rng_.between(0, nonsense() ? 5 : 2)};
    return step;
  }
  if (rng_.chance(0.2)) {
    const int64_t extent = nonsense() ? 0 : any_loop().extent;
    const int levels = static_cast<int>(rng_.between(1, 3));
    RandomStep step =
        make(PrimitiveKind::kSampleCoveringTile, {Int(extent), Int(levels), Int(int64_t{0})});
    const std::vector<int64_t> tiles =
        TileSpace(std::max<int64_t>(extent, 1), levels, TileKind::kCovering, 0).sample(rng_);
    step.decision.assign(tiles.begin() + 1, tiles.end());
    return step;
  }
  const LoopFacts loop = any_loop();
  const int64_t cap = rng_.chance(0.5) ? 0 : rng_.between(1, 16);
  const int levels = static_cast<int>(rng_.between(1, 3));
  RandomStep step = make(PrimitiveKind::kSamplePerfectTile, {loop.id, Int(levels), Int(cap)});
  const TileSpace space(loop.extent, levels, TileKind::kPerfect, cap);
  step.decision = space.count() > 0 ? space.sample(rng_) : Decision{loop.extent};
  if (nonsense()) step.decision[0] += 1;
  return step;
}

RandomStep Chooser::step() {
  const std::vector<PrimitiveKind> kinds = {
      PrimitiveKind::kSplit,
      PrimitiveKind::kSplit,
      PrimitiveKind::kSplit,
      PrimitiveKind::kFuse,
      PrimitiveKind::kFuse,
      PrimitiveKind::kReorder,
      PrimitiveKind::kReorder,
      PrimitiveKind::kParallel,
      PrimitiveKind::kVectorize,
      PrimitiveKind::kUnroll,
      PrimitiveKind::kComputeAt,
      PrimitiveKind::kComputeAt,
      PrimitiveKind::kComputeAt,
      PrimitiveKind::kReverseComputeAt,
      PrimitiveKind::kReverseComputeAt,
      PrimitiveKind::kReverseComputeAt,
      PrimitiveKind::kComputeInline,
      PrimitiveKind::kReverseComputeInline,
      PrimitiveKind::kCacheRead,
      PrimitiveKind::kCacheWrite,
      PrimitiveKind::kDecomposeReduction,
      PrimitiveKind::kRfactor,
      PrimitiveKind::kRfactor,
      PrimitiveKind::kScan,
      PrimitiveKind::kOnline,
      PrimitiveKind::kRescale,
      PrimitiveKind::kAnnotateLoop,
      PrimitiveKind::kAnnotateBlock,
      PrimitiveKind::kSetScope,
      PrimitiveKind::kTransformLayout,
      PrimitiveKind::kTransformLayout,
      PrimitiveKind::kReindex,
      PrimitiveKind::kReindexCacheRead,
      PrimitiveKind::kReindexCacheWrite,
      PrimitiveKind::kTransformBlockLayout,
      PrimitiveKind::kTransformBlockLayout,
      PrimitiveKind::kPadEinsum,
      PrimitiveKind::kNarrowReduction,
      PrimitiveKind::kPadRead,
      PrimitiveKind::kDecomposePadding,
      PrimitiveKind::kBlockize,
      PrimitiveKind::kTensorize,
      PrimitiveKind::kSamplePerfectTile,
      PrimitiveKind::kBind,
      PrimitiveKind::kBind,
      PrimitiveKind::kBind,
      PrimitiveKind::kLoopPartition,
      PrimitiveKind::kMerge,
      PrimitiveKind::kMerge,
      PrimitiveKind::kAddUnitLoop,
      PrimitiveKind::kAddUnitLoopBlock,
      PrimitiveKind::kReorderBlockIterVar,
      PrimitiveKind::kCacheInplace,
      PrimitiveKind::kComputeAtLocation,
      PrimitiveKind::kFuseReductionEpilogue,
      PrimitiveKind::kFuseReductionEpilogue,
      PrimitiveKind::kUnannotateLoop,
      PrimitiveKind::kUnannotateBlock,
      PrimitiveKind::kSoftwarePipeline,
      PrimitiveKind::kDoubleBuffer,
      PrimitiveKind::kStorageAlign,
      PrimitiveKind::kSwizzle,
      PrimitiveKind::kBulkCopy,
      PrimitiveKind::kEnterPostproc,
      PrimitiveKind::kProduct,
  };
  const PrimitiveKind kind = pick(kinds);
  switch (kind) {
    case PrimitiveKind::kSplit: return split();
    case PrimitiveKind::kFuse: return fuse();
    case PrimitiveKind::kReorder: return reorder();
    case PrimitiveKind::kComputeAt:
    case PrimitiveKind::kReverseComputeAt: return move(kind);
    case PrimitiveKind::kParallel:
    case PrimitiveKind::kVectorize:
    case PrimitiveKind::kUnroll:
    case PrimitiveKind::kBulkCopy: return make(kind, {any_loop().id});
    case PrimitiveKind::kComputeInline:
    case PrimitiveKind::kReverseComputeInline: return make(kind, {any_block()});
    case PrimitiveKind::kNarrowReduction: return make(kind, {any_block(), small()});
    case PrimitiveKind::kPadRead:
    case PrimitiveKind::kCacheRead:
    case PrimitiveKind::kCacheWrite:
    case PrimitiveKind::kSetScope: return make(kind, {any_block(), small(), scope()});
    case PrimitiveKind::kDecomposeReduction: {
      const BlockId block = any_block();
      const std::vector<LoopId> chain = chain_of(block);
      return make(kind, {block, chain.empty() || nonsense() ? any_loop().id : pick(chain)});
    }
    case PrimitiveKind::kScan:
    case PrimitiveKind::kOnline:
    case PrimitiveKind::kRescale: return make(kind, {any_block()});
    case PrimitiveKind::kRfactor: return make(kind, {reduction_loop(), small()});
    case PrimitiveKind::kAnnotateLoop:
      return make(kind, {any_loop().id, pick<std::string>({"unroll", "note"}), small()});
    case PrimitiveKind::kAnnotateBlock:
      return make(kind, {any_block(), pick<std::string>({"note", "not a key", ""}), small()});
    case PrimitiveKind::kBind: return make(kind, {any_loop().id, axis()});
    case PrimitiveKind::kLoopPartition: return partition();
    case PrimitiveKind::kMerge: return merge();
    case PrimitiveKind::kAddUnitLoop: return make(kind, {any_loop().id});
    case PrimitiveKind::kAddUnitLoopBlock: return make(kind, {any_block()});
    case PrimitiveKind::kReorderBlockIterVar: return iter_order();
    case PrimitiveKind::kCacheInplace: return inplace();
    case PrimitiveKind::kComputeAtLocation:
    case PrimitiveKind::kSampleComputeLocation: return locate();
    case PrimitiveKind::kFuseReductionEpilogue: return epilogue();
    case PrimitiveKind::kUnannotateLoop:
    case PrimitiveKind::kUnannotateBlock: return unannotate();
    case PrimitiveKind::kSoftwarePipeline: return pipeline();
    case PrimitiveKind::kDoubleBuffer: return double_buffer();
    case PrimitiveKind::kStorageAlign:
      return make(kind, {any_block(), Int(0), small(), Int(rng_.between(0, 32)), small()});
    case PrimitiveKind::kSwizzle:
      return make(kind, {any_block(), Int(0), Int(nonsense() ? 48 : 32 << rng_.below(3))});
    case PrimitiveKind::kEnterPostproc: return make(kind, {});
    case PrimitiveKind::kTransformLayout: return layout();
    case PrimitiveKind::kReindex:
      return make(kind,
                  {any_block(), pick<std::string>({"read", "read", "write", "side"}), small()});
    case PrimitiveKind::kReindexCacheRead:
    case PrimitiveKind::kReindexCacheWrite: {
      const BlockId block = any_block();
      return make(kind, {block, small(), scope(), random_index_map(extents_of(block), rng_)});
    }
    case PrimitiveKind::kTransformBlockLayout: {
      const BlockId block = any_block();
      return make(kind, {block, random_index_map(extents_of(block), rng_)});
    }
    case PrimitiveKind::kProduct:
      return make(kind, {std::vector<Int>{Int(rng_.between(nonsense() ? 0 : 1, 8)), small()}});
    case PrimitiveKind::kPadEinsum: {
      const BlockId block = any_block();
      std::vector<Int> multiples;
      for (std::size_t i = 0; i < extents_of(block).size(); ++i) {
        multiples.emplace_back(rng_.between(nonsense() ? 0 : 1, 5));
      }
      return make(kind, {block, multiples});
    }
    case PrimitiveKind::kDecomposePadding: {
      const BlockId block = padded_block();
      const std::vector<LoopId> chain = chain_of(block);
      return make(kind, {block, chain.empty() || nonsense() ? any_loop().id : pick(chain)});
    }
    case PrimitiveKind::kBlockize: return make(kind, {any_loop().id});
    case PrimitiveKind::kTensorize: return tensorize();
    case PrimitiveKind::kSamplePerfectTile:
    case PrimitiveKind::kSamplePartitionedTile:
    case PrimitiveKind::kSampleCoveringTile:
    case PrimitiveKind::kSampleCategorical: return sample();
  }
  return split();
}

}  // namespace

RandomStep random_step(const Schedule& s, Rng& rng) { return Chooser(s, rng).step(); }

}  // namespace prunerc::testing
