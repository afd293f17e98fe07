// Rules "rows" and "bind" for GPUs.
//
// rows: stages and reductions along the same rows (softmax, normalisation, sums).
//
//     for i { for k { A: reduction } }   for i { for j { B } }
//   ~>
//     for i bind(block.x) {
//       for k0 unrolled { for k1 bind(thread.x) { for v vectorized { A } } }   the threads combine
//       for j0 unrolled { for j1 bind(thread.x) { for v vectorized { B } } }   what they have
//     }
// with what a row's stages hand on in registers as long as its threads have enough of them; what is
// written out and read again then stays in registers, too (NVRTC sees that nobody writes inputs).
// (of sums over columns, neighbours are thread.x and parts of the sum thread.y);
// or, where rows are short, a row for each thread, or a vector of rows of one element (windows of a pool):
//     for i0 bind(block.x) { for i1 bind(thread.x) { for k { A }  for j { B } } }
//
// bind: a block by itself, its spatial loops fused: [blocks, vectors, threads, a vector].
#include "ir/arith/loop_index.h"
#include "ir/thread_axis.h"
#include "search/space/sketch_rule/gpu/gpu.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

const std::vector<int64_t> kThreads = {32, 64, 128, 256, 512};
const std::vector<int64_t> kRowsPerBlock = {32, 64, 128, 256};
const std::vector<int64_t> kBindThreads = {128, 256, 512};  // where there are many elements
const std::vector<int64_t> kStrided = {1, 2, 4};            // vectors of one thread
constexpr int64_t kManyThreads = 65536;
const std::vector<int64_t> kColumns = {32, 64};
const std::vector<int64_t> kRowThreads = {4, 8, 16};
constexpr int64_t kVectorBytes = 16;
/// Of a row, in one thread's registers: several stages may have that many.
constexpr int64_t kMostElements = 32;
/// Vectors that a thread asks for at once of longer rows.
constexpr int64_t kAtOnce = 8;
/// Of a window: so many are written out.
constexpr int64_t kMostTaps = 64;

int64_t extent_of(const schedule::Schedule& s, LoopId id) {
  const ir::Loop* loop = ir::LoopIndex(s.program()).loop(id);
  const auto* extent = loop == nullptr ? nullptr : loop->extent.as<ir::IntImm>();
  return extent == nullptr ? 1 : extent->value;
}

// The innermost loops of a sum, as many as make little code.
Result<void> unroll_window(schedule::Schedule& s, const std::vector<LoopId>& loops) {
  int64_t taps = 1;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    taps *= extent_of(s, *loop);
    if (taps > kMostTaps) break;
    PRUNERC_TRY_VOID(s.unroll(*loop));
  }
  return {};
}

/// Rows of a thread of its own: one, or neighbours as a vector.
enum class ThreadRows : uint8_t { kOne, kVector };

class GpuRows {
 public:
  GpuRows(SketchContext& context, const std::vector<BlockId>& blocks, const GpuVariant& variant)
      : context_(context),
        s_(context.schedule),
        blocks_(blocks),
        shares_(variant.threads_share_rows) {}

  Result<void> run(ThreadRows thread_rows) {
    if (shares_ && blocks_.size() == 1 && is_along_columns(facts_of(s_, blocks_[0]))) {
      return share_columns();
    }
    if (thread_rows == ThreadRows::kVector) {
      lanes_ = find_lanes();
      if (lanes_ == 1) return error(Diag::kUnsupported, std::string("vectors of rows"));
    }
    PRUNERC_TRY_VOID(find_rows());
    // A single long row is no thread's alone.
    shares_ = shares_ || (extent_of(s_, row_) == 1 && depth_ >= kThreads.front());
    if (!shares_) PRUNERC_TRY_VOID(cut_rows());
    for (std::size_t i = blocks_.size() - 1; i > 0; --i) {
      PRUNERC_TRY_VOID(s_.compute_at(blocks_[i - 1], row_));
    }
    find_longest();
    for (std::size_t i = 0; i + 1 < blocks_.size(); ++i) keep_near(blocks_[i]);
    PRUNERC_TRY_VOID(shares_ ? share_rows() : bind_rows());
    return s_.bind(shares_ ? row_ : rows_, "block.x");
  }

 private:
  //     for j { for k { A } }  ~>  for j0 bind(block.x) { for k0 { for k1 unrolled {
  //                                  for k2 bind(thread.y) { for j1 bind(thread.x) { A } } } } }
  Result<void> share_columns() {
    const BlockFacts facts = facts_of(s_, blocks_[0]);
    std::vector<LoopId> columns, rows, order;
    int64_t depth = 1;
    for (const Axis& axis : facts.spatial) columns.push_back(axis.loop);
    for (const Axis& axis : facts.reduce) {
      rows.push_back(axis.loop);
      depth *= axis.extent;
    }
    order = columns;
    order.insert(order.end(), rows.begin(), rows.end());
    if (order.size() > 2) PRUNERC_TRY_VOID(s_.reorder(order));
    LoopId column = columns[0], row = rows[0];
    if (columns.size() > 1) {
      PRUNERC_TRY(column, s_.fuse(columns));
    }
    if (rows.size() > 1) {
      PRUNERC_TRY(row, s_.fuse(rows));
    }
    const Int width = context_.pick(up_to(kColumns, extent_of(s_, column)), 32);
    const Int threads = context_.pick(up_to(kRowThreads, depth), 16);
    PRUNERC_TRY(const std::vector<LoopId> j, s_.split(column, {Int(-1), width}));
    PRUNERC_TRY(const std::vector<LoopId> k, s_.split(row, {Int(-1), Int(kAtOnce), threads}));
    PRUNERC_TRY_VOID(s_.reorder({j[0], k[0], k[1], k[2], j[1]}));
    PRUNERC_TRY_VOID(s_.unroll(k[1]));
    PRUNERC_TRY_VOID(s_.bind(j[1], "thread.x"));
    PRUNERC_TRY_VOID(s_.bind(k[2], "thread.y"));
    return s_.bind(j[0], "block.x");
  }

  // Leading axes of the last block that every reduction of the chain keeps, as one loop.
  Result<void> find_rows() {
    const BlockFacts last = facts_of(s_, blocks_.back());
    if (last.block == nullptr || !last.trivial) {
      return error(Diag::kUnsupported, std::string("rows of this block"));
    }
    std::size_t num_rows = last.spatial.size();
    for (const BlockId id : blocks_) {
      const BlockFacts facts = facts_of(s_, id);
      if (facts.block == nullptr || !facts.trivial) {
        return error(Diag::kUnsupported, std::string("rows of this block"));
      }
      if (!facts.reduce.empty()) num_rows = std::min(num_rows, facts.spatial.size());
      for (const Axis& axis : facts.reduce) depth_ = std::max(depth_, axis.extent);
    }
    std::vector<LoopId> loops;
    for (std::size_t i = 0; i < num_rows; ++i) loops.push_back(last.spatial[i].loop);
    if (loops.size() > 1) {
      PRUNERC_TRY(row_, s_.fuse(loops));
    } else if (!loops.empty()) {
      row_ = loops[0];
    } else {
      // A total: one block of threads.
      const std::vector<LoopId> all = s_.loops_of(blocks_.back());
      PRUNERC_TRY(row_, all.empty() ? s_.add_unit_loop(blocks_.back()) : s_.add_unit_loop(all[0]));
    }
    return {};
  }

  // Neighbours where a row is one element of the last stage and of each sum, all of them side by side in what is
  // read, and there are many; 1 elsewhere.
  int64_t find_lanes() const {
    const BlockFacts last = facts_of(s_, blocks_.back());
    if (last.block == nullptr || last.spatial.empty() || !last.reduce.empty()) return 1;
    const int64_t extent = last.spatial.back().extent;
    int64_t rows = 1, lanes = kVectorBytes;
    for (const Axis& axis : last.spatial) rows *= axis.extent;
    for (const BlockId id : blocks_) {
      const BlockFacts facts = facts_of(s_, id);
      if (facts.block == nullptr || !facts.trivial) return 1;
      const bool fits =
          facts.spatial.size() == last.spatial.size() && facts.spatial.back().extent == extent;
      const bool is_sum = !facts.reduce.empty();
      if (is_sum && (!fits || !reads_beside(*facts.block, facts.spatial.back().var))) return 1;
      if (fits) {
        lanes = std::min(lanes, access_width(s_, *facts.block, facts.spatial.back().var));
      }
    }
    return rows >= kManyThreads && extent % lanes == 0 ? lanes : 1;
  }

  // Whether something is read from neighbouring places, be it in strides, for neighbouring results.
  static bool reads_beside(const ir::Block& block, ir::VarId var) {
    return std::any_of(block.reads.begin(), block.reads.end(), [&](const ir::Access& access) {
      return access.buffer != block.writes[0].buffer && !access.region.empty() &&
             mentions(access.region.back().min, var);
    });
  }

  Result<void> cut_rows() {
    const int64_t rows = extent_of(s_, row_);
    const Int threads =
        context_.pick(rows >= kManyThreads ? kBindThreads : up_to(kRowsPerBlock, rows), 128);
    std::vector<Int> factors = {Int(-1), threads};
    if (lanes_ > 1) factors.emplace_back(lanes_);
    PRUNERC_TRY(const std::vector<LoopId> parts, s_.split(row_, factors));
    rows_ = parts[0];
    row_ = parts[1];
    return {};
  }

  Result<void> bind_rows() {
    for (const BlockId id : blocks_) {
      if (lanes_ > 1) {
        PRUNERC_TRY_VOID(vectorize_rows(id));
      } else if (is_reduction(*find_block(s_.program(), id))) {
        PRUNERC_TRY_VOID(unroll_window(s_, loops_in_row(id)));
      }
    }
    return s_.bind(row_, "thread.x");
  }

  // The block's vector innermost, inside of what it adds up.
  Result<void> vectorize_rows(BlockId id) {
    std::vector<LoopId> loops = loops_in_row(id);
    const LoopId lane = last_spatial(*find_block(s_.program(), id), loops);
    if (!lane.valid() || extent_of(s_, lane) != lanes_) {
      // What a window reads are more elements than results, or fewer.
      if (id != blocks_.back() && !is_reduction(*find_block(s_.program(), id))) return {};
      return error(Diag::kUnsupported, std::string("vectors of rows"));
    }
    std::erase(loops, lane);
    for (const LoopId loop : loops) {
      const int64_t extent = extent_of(s_, loop);
      if (extent > 1 && extent <= kAtOnce) PRUNERC_TRY_VOID(s_.unroll(loop));
    }
    loops.push_back(lane);
    if (loops.size() > 1) PRUNERC_TRY_VOID(s_.reorder(loops));
    return s_.vectorize(lane);
  }

  LoopId last_spatial(const ir::Block& block, const std::vector<LoopId>& loops) const {
    const ir::LoopIndex index(s_.program());
    LoopId found;
    for (const ir::IterVar& iter : block.iters) {
      for (const LoopId id : loops) {
        const bool moves = mentions(iter.binding, index.loop(id)->var->id);
        if (iter.kind == ir::IterKind::kSpatial && moves) found = id;
      }
    }
    return found;
  }

  // What a row's stages hand on stays with the block, or with the thread that has the row. Results
  // of the operator cannot, and need not.
  void keep_near(BlockId id) {
    const ir::Block* block = find_block(s_.program(), id);
    // A sum is what threads give each other.
    const bool is_local = !shares_ || (in_registers_ && !is_reduction(*block));
    const auto scope = is_local ? ir::Scope::kLocal : ir::Scope::kShared;
    for (std::size_t w = 0; w < block->writes.size(); ++w) {
      static_cast<void>(s_.set_scope(id, static_cast<int>(w), scope).ok());
    }
  }

  std::vector<LoopId> loops_in_row(BlockId id) const {
    const std::vector<LoopId> all = s_.loops_of(id);
    const auto row = std::find(all.begin(), all.end(), row_);
    return {row == all.end() ? row : row + 1, all.end()};
  }

  // Elements of a row in its longest stage, and whether all stages have the same ones: then a thread
  // finds in its registers what it left there.
  void find_longest() {
    bool same = true;
    for (const BlockId id : blocks_) {
      int64_t own = 1;
      for (const LoopId loop : loops_in_row(id)) {
        const int64_t extent = extent_of(s_, loop);
        same = same && (extent == 1 || own == 1);
        own = std::max(own, extent);
      }
      same = same && (own == 1 || longest_ == 1 || own == longest_);
      longest_ = std::max(longest_, own);
    }
    in_registers_ = same && longest_ <= kMostElements * kThreads.back() && reads_own_elements();
    width_ = kVectorBytes;
    for (const BlockId id : blocks_) {
      const std::vector<LoopId> loops = loops_in_row(id);
      if (loops.empty() || longest_ == 1) continue;
      const ir::Block* block = find_block(s_.program(), id);
      const LoopId cut = is_reduction(*block) ? longest_reduction(*block, loops) : loops.back();
      if (extent_of(s_, cut) > 1) width_ = std::min(width_, vector_width(*block, cut));
      int64_t extent = extent_of(s_, cut);
      for (const LoopId loop : loops) {
        if (loop != cut && !is_reduction(*block)) extent *= extent_of(s_, loop);
      }
      if (extent > 1) shortest_ = std::min(shortest_, extent);
    }
  }

  // Whether stages read what others of the row made at their own element: a pick from the row, or a
  // row read backwards, is another thread's.
  bool reads_own_elements() const {
    std::set<ir::BufferId> made;
    for (const BlockId id : blocks_) {
      for (const ir::Access& access : find_block(s_.program(), id)->writes)
        made.insert(access.buffer);
    }
    const auto is_own = [](const ir::Range& range) {
      return range.min.as<ir::Var>() != nullptr || range.min.as<ir::IntImm>() != nullptr;
    };
    return std::all_of(blocks_.begin(), blocks_.end(), [&](BlockId id) {
      const auto reads = find_block(s_.program(), id)->reads;
      return std::all_of(reads.begin(), reads.end(), [&](const ir::Access& access) {
        return made.count(access.buffer) == 0 ||
               std::all_of(access.region.begin(), access.region.end(), is_own);
      });
    });
  }

  Result<void> share_rows() {
    // Threads without an element of a short stage have nothing to do there.
    std::vector<int64_t> threads = up_to(kThreads, power_of_two(ceil_div(longest_, width_)));
    if (in_registers_) {
      std::erase_if(threads, [&](int64_t n) { return n * kMostElements < longest_; });
    } else {
      // Of stages that differ, the shortest has an element for each thread, too.
      threads = up_to(threads, std::max(shortest_, kThreads.front()));
    }
    const int64_t wanted = std::min<int64_t>(power_of_two(longest_) / 8, 256);
    const Int count = context_.pick(threads, wanted);
    for (const BlockId id : blocks_) PRUNERC_TRY_VOID(share_block(id, count));
    return {};
  }

  Result<void> share_block(BlockId id, Int threads) {
    std::vector<LoopId> loops = loops_in_row(id);
    const ir::Block* block = find_block(s_.program(), id);
    const bool reduces = is_reduction(*block);
    LoopId cut;
    if (reduces) {
      cut = longest_reduction(*block, loops);
    } else if (loops.size() > 1) {
      PRUNERC_TRY(cut, s_.fuse(loops));
    } else if (!loops.empty()) {
      cut = loops[0];
    }
    // A value per row is every thread's to compute.
    if (!cut.valid() || extent_of(s_, cut) == 1) return {};
    const int64_t extent = extent_of(s_, cut);
    if (extent < threads.value) {
      return error(Diag::kUnsupported, std::string("a row shorter than its threads"));
    }
    if (in_registers_) {
      PRUNERC_TRY(const std::vector<LoopId> parts, s_.split(cut, {Int(-1), threads, Int(width_)}));
      PRUNERC_TRY_VOID(s_.unroll(parts[0]));
      return bind_part(reduces, parts);
    }
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(cut, {Int(-1), Int(kAtOnce), threads, Int(width_)}));
    PRUNERC_TRY_VOID(s_.unroll(parts[1]));
    return bind_part(reduces, {parts[1], parts[2], parts[3]});
  }

  Result<void> bind_part(bool reduces, const std::vector<LoopId>& parts) {
    // Sums are no lanes', but what they add up comes in vectors all the same.
    if (width_ > 1) PRUNERC_TRY_VOID(reduces ? s_.unroll(parts[2]) : s_.vectorize(parts[2]));
    return s_.bind(parts[1], "thread.x");
  }

  int64_t vector_width(const ir::Block& block, LoopId cut) const {
    const ir::Loop* loop = ir::LoopIndex(s_.program()).loop(cut);
    for (const ir::IterVar& iter : block.iters) {
      const auto* var = iter.binding.as<ir::Var>();
      if (var != nullptr && var->id == loop->var->id) return access_width(s_, block, iter.var->id);
    }
    return 1;
  }

  LoopId longest_reduction(const ir::Block& block, const std::vector<LoopId>& loops) const {
    const ir::LoopIndex index(s_.program());
    LoopId best;
    for (const LoopId id : loops) {
      const ir::Loop* loop = index.loop(id);
      const bool reduces =
          std::any_of(block.iters.begin(), block.iters.end(), [&](const ir::IterVar& iter) {
            return iter.kind == ir::IterKind::kReduce && mentions(iter.binding, loop->var->id);
          });
      if (reduces && (!best.valid() || extent_of(s_, id) > extent_of(s_, best))) best = id;
    }
    return best;
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  const std::vector<BlockId>& blocks_;
  bool shares_;        // the threads of a block share a row
  LoopId row_, rows_;  // one row; blocks of rows
  int64_t longest_ = 1, width_ = 1;
  int64_t shortest_ = kThreads.back();  // of what threads share, where that is less
  int64_t lanes_ = 1;                   // rows of a thread
  int64_t depth_ = 1;                   // the longest axis that is summed
  bool in_registers_ = false;
};

// A vector of rows for each thread; what the last block adds up leaves its registers as one.
Result<void> vector_rows(SketchContext& context, std::vector<BlockId> blocks,
                         const GpuVariant& variant) {
  const ir::Block* last = find_block(context.program(), blocks.back());
  if (last != nullptr && is_reduction(*last) && last->writes.size() == 1) {
    PRUNERC_TRY(const BlockId copy,
                context.schedule.cache_write(blocks.back(), 0, ir::Scope::kLocal));
    blocks.push_back(copy);
  }
  return GpuRows(context, blocks, variant).run(ThreadRows::kVector);
}

// Spatial loops outside, reduction loops inside; the spatial ones fused and cut for threads.
Result<void> bind_spatial(SketchContext& context, BlockId id) {
  schedule::Schedule& s = context.schedule;
  const BlockFacts facts = facts_of(s, id);
  if (facts.block == nullptr || !facts.trivial || facts.spatial.empty()) {
    return error(Diag::kUnsupported, std::string("threads for this block"));
  }
  std::vector<LoopId> spatial, window, order;
  int64_t extent = 1;
  for (const Axis& axis : facts.spatial) {
    spatial.push_back(axis.loop);
    extent *= axis.extent;
  }
  for (const Axis& axis : facts.reduce) window.push_back(axis.loop);
  order = spatial;
  order.insert(order.end(), window.begin(), window.end());
  if (order.size() > 1) PRUNERC_TRY_VOID(s.reorder(order));
  LoopId fused = spatial[0];
  if (spatial.size() > 1) {
    PRUNERC_TRY(fused, s.fuse(spatial));
  }
  const bool vectors = facts.reduce.empty() && extent >= kStrided.back();
  // Many blocks of few threads would wait for their turn.
  const int64_t width = vectors ? access_width(s, *facts.block, facts.spatial.back().var) : 1;
  const int64_t wide = ceil_div(extent, width);
  const Int threads =
      context.pick(wide >= kManyThreads ? kBindThreads : up_to(kThreads, wide), 256);
  std::vector<Int> factors = {Int(-1), threads};
  if (vectors) {
    factors = {Int(-1), context.pick(up_to(kStrided, ceil_div(wide, kManyThreads)), 2), threads,
               Int(width)};
  }
  PRUNERC_TRY(const std::vector<LoopId> parts, s.split(fused, factors));
  if (vectors) {
    PRUNERC_TRY_VOID(s.unroll(parts[1]));
    PRUNERC_TRY_VOID(s.vectorize(parts[3]));
  }
  PRUNERC_TRY_VOID(unroll_window(s, window));
  PRUNERC_TRY_VOID(s.bind(parts[vectors ? 2 : 1], "thread.x"));
  return s.bind(parts[0], "block.x");
}

// A kernel of one thread around the block's outermost loop.
Result<void> bind_single(SketchContext& context, BlockId id) {
  schedule::Schedule& s = context.schedule;
  const std::vector<LoopId> loops = s.loops_of(id);
  LoopId unit;
  if (loops.empty()) {
    PRUNERC_TRY(unit, s.add_unit_loop(id));
  } else {
    PRUNERC_TRY(unit, s.add_unit_loop(loops[0]));
  }
  return s.bind(unit, "block.x");
}

}  // namespace

int64_t access_width(const schedule::Schedule& schedule, const ir::Block& block, ir::VarId var) {
  int64_t width = 1;
  const auto note = [&](const ir::Access& access) {
    const ir::Buffer& buffer = schedule.program().buffer(access.buffer);
    if (buffer.shape.empty() || !is_contiguous(access, var)) return;
    const auto* row = buffer.shape.back().as<ir::IntImm>();
    if (row == nullptr) return;
    width = std::max(width, std::gcd(row->value, kVectorBytes / ir::byte_size(buffer.dtype)));
  };
  for (const ir::Access& access : block.reads) note(access);
  for (const ir::Access& access : block.writes) note(access);
  return width;
}

bool is_along_columns(const BlockFacts& facts) {
  if (facts.block == nullptr || !facts.trivial || facts.reduce.empty() || facts.spatial.empty()) {
    return false;
  }
  const Axis& column = facts.spatial.back();
  // A vector that all results read says nothing.
  const auto is_shared = [&](const ir::Access& access) {
    return std::none_of(facts.spatial.begin(), facts.spatial.end(),
                        [&](const Axis& axis) { return mentions(access, axis.var); });
  };
  const auto reads_along = [&](ir::VarId var) {
    const std::span<const ir::Access> reads = facts.block->reads;
    return std::any_of(reads.begin(), reads.end(), [&](const ir::Access& access) {
      return is_contiguous(access, var) && !is_shared(access);
    });
  };
  return column.extent >= kColumns.front() && reads_along(column.var) &&
         !reads_along(facts.reduce.back().var);
}

Result<void> gpu_rows(SketchContext& context, const std::vector<BlockId>& blocks,
                      const GpuVariant& variant) {
  const schedule::Schedule before = context.schedule.fork();
  if (!variant.threads_share_rows && vector_rows(context, blocks, variant).ok()) return {};
  context.schedule = before;
  const Result<void> done = GpuRows(context, blocks, variant).run(ThreadRows::kOne);
  if (!done) context.schedule = before;
  return done;
}

Result<void> gpu_bind(SketchContext& context, BlockId block) {
  const schedule::Schedule before = context.schedule.fork();
  if (bind_spatial(context, block)) return {};
  context.schedule = before;
  return bind_single(context, block);
}

}  // namespace prunerc::search
