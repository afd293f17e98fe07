// Rule "tile" for GPUs: reductions with operands that several outputs need.
//
//     for o, r, c { for k { C } }
//   ~>
//     for o bind(block.z), r_b bind(block.y), c_b bind(block.x) {
//       C_init, as the nest of C without k
//       for k0 {
//         for .. ty bind(thread.y) tx bind(thread.x) v vectorized { fetch A }   the same for B
//         for r_v c_v bind(vthread) r_t bind(thread.y) c_t bind(thread.x) {
//           for k1 { for r1 c1 { for k2 { for r2 c2 { C } } } }                 C in registers
//         }
//       }
//       for r_v c_v r_t c_t r1 c1 r2 c2 { copy-out or fused consumer }
//     }
//
// Threads of a block are loops beside each other under its loop and meet where one ends. All of
// them have the extents r_t and c_t, which are the same decisions everywhere: an element of C stays
// with one thread. Blocks are inferred, so any extent can be cut; tails are guarded. Source: the
// structure SSSRRSRS of Ansor (Zheng et al., OSDI 2020), section 4.1.
#include "search/space/sketch_rule/gpu.h"

#include <algorithm>
#include <array>
#include <optional>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

const std::vector<int64_t> kThreads = {2, 4, 8, 16, 32};
const std::vector<int64_t> kVthreads = {1, 2, 4};
const std::vector<int64_t> kOuterTile = {1, 2, 4};
const std::vector<int64_t> kInnerTile = {1, 2, 4};
const std::vector<int64_t> kReduceTile = {1, 2, 4, 8};
const std::vector<int64_t> kFetchWidths = {1, 2, 4};
const std::vector<int64_t> kUnrollSteps = {0, 16, 64, 512};
constexpr int64_t kPreferredUnroll = 64;

struct Axes {
  Axis column;
  std::optional<Axis> row;
  std::vector<Axis> outer, reduce;
  std::size_t longest = 0;  // of the reduction axes: the one that is cut
};

std::optional<Axes> find_axes(const BlockFacts& facts, bool outer_row = false) {
  if (facts.block == nullptr || !facts.trivial || facts.block->writes.size() != 1 ||
      facts.block->body.as<ir::Store>() == nullptr || facts.reduce.empty()) {
    return std::nullopt;
  }
  Axes axes;
  std::optional<Axis> column, row;
  for (const Axis& axis : facts.spatial) {
    if (axis.extent > 1 && is_contiguous(facts.block->writes[0], axis.var)) column = axis;
  }
  if (!column) return std::nullopt;
  for (const Axis& axis : facts.spatial) {
    if (axis.iter == column->iter || axis.extent == 1) continue;
    // The innermost axis along which some operand is reused, or the outermost: of a convolution
    // rows of pixels, which share the weights, or channels, which share the window.
    if (is_reused(*facts.block, axis.var) && !(outer_row && row)) row = axis;
  }
  if (!row && !is_reused(*facts.block, column->var)) return std::nullopt;
  axes.column = *column;
  axes.row = row;
  for (const Axis& axis : facts.spatial) {
    const bool taken = axis.iter == column->iter || (row && axis.iter == row->iter);
    if (!taken) axes.outer.push_back(axis);
  }
  axes.reduce = facts.reduce;
  for (std::size_t i = 0; i < axes.reduce.size(); ++i) {
    if (axes.reduce[i].extent > axes.reduce[axes.longest].extent) axes.longest = i;
  }
  return axes;
}

// One axis cut for blocks, virtual threads, threads and two levels of registers.
struct Cut {
  std::array<Int, 4> factors = {Int(1), Int(1), Int(1), Int(1)};
  std::vector<LoopId> loops;  // block, vthread, thread, outer tile, inner tile
};
constexpr const char* kBlockAxis[] = {"block.x", "block.y"};
constexpr const char* kVthreadAxis[] = {"vthread.x", "vthread.y"};
constexpr const char* kThreadAxis[] = {"thread.x", "thread.y"};

class GpuTile {
 public:
  GpuTile(SketchContext& context, BlockId block, BlockId consumer, const GpuVariant& variant)
      : context_(context),
        s_(context.schedule),
        block_(block),
        consumer_(consumer),
        variant_(variant) {}

  Result<void> run() {
    const BlockFacts facts = facts_of(s_, block_);
    const std::optional<Axes> axes = find_axes(facts, variant_.outer_row);
    if (!axes) return error(Diag::kUnsupported, std::string("tiling of this block"));
    const std::vector<int> fetched = shared_operands(*facts.block, *axes);
    const std::vector<std::size_t> places = places_of(*facts.block, *axes);
    PRUNERC_TRY_VOID(take_registers());
    PRUNERC_TRY_VOID(cut_axes(*axes));
    PRUNERC_TRY_VOID(order_loops(*axes));
    PRUNERC_TRY_VOID(copy_out(places));
    PRUNERC_TRY_VOID(fetch(fetched));
    PRUNERC_TRY_VOID(start());
    return bind_all(*axes);
  }

 private:
  // Reads that several threads of a block need: those that do not move along both tiled axes, and
  // windows, which overlap.
  std::vector<int> shared_operands(const ir::Block& block, const Axes& axes) const {
    std::vector<int> out;
    for (std::size_t i = 0; variant_.shared && i < block.reads.size(); ++i) {
      const ir::Access& access = block.reads[i];
      if (access.buffer == block.writes[0].buffer) continue;
      const bool column = mentions(access, axes.column.var);
      const bool row = axes.row && mentions(access, axes.row->var);
      const bool window =
          std::any_of(access.region.begin(), access.region.end(), [&](const ir::Range& range) {
            return range.min.as<ir::Var>() == nullptr &&
                   std::any_of(axes.reduce.begin(), axes.reduce.end(),
                               [&](const Axis& k) { return mentions(range.min, k.var); });
          });
      if (!column || (axes.row && !row) || window) out.push_back(static_cast<int>(i));
    }
    return out;
  }

  // The dimensions of the result along column and row.
  static std::vector<std::size_t> places_of(const ir::Block& block, const Axes& axes) {
    std::vector<std::size_t> out;
    const auto add = [&](ir::VarId var) {
      const std::span<const ir::Range> region = block.writes[0].region;
      for (std::size_t d = 0; d < region.size(); ++d) {
        const auto* at = region[d].min.as<ir::Var>();
        if (at != nullptr && at->id == var) out.push_back(d);
      }
    };
    add(axes.column.var);
    if (axes.row) add(axes.row->var);
    return out;
  }

  // The result stays in registers until a tile is complete.
  Result<void> take_registers() {
    result_ = find_block(s_.program(), block_)->writes[0].buffer;
    if (consumer_.valid()) return s_.set_scope(block_, 0, ir::Scope::kLocal);
    PRUNERC_TRY(consumer_, s_.cache_write(block_, 0, ir::Scope::kLocal));
    result_ = find_block(s_.program(), block_)->writes[0].buffer;
    return {};
  }

  Result<void> cut(const Axis& axis, int64_t threads, Cut* out) {
    const int64_t extent = axis.extent;
    out->factors = {
        context_.pick(up_to(kVthreads, extent), 1), context_.pick(up_to(kThreads, extent), threads),
        context_.pick(up_to(kOuterTile, extent), 1), context_.pick(up_to(kInnerTile, extent), 4)};
    std::vector<Int> factors = {Int(-1)};
    factors.insert(factors.end(), out->factors.begin(), out->factors.end());
    PRUNERC_TRY(out->loops, s_.split(axis.loop, factors));
    return {};
  }

  Result<void> cut_axes(const Axes& axes) {
    cuts_.resize(axes.row ? 2 : 1);
    PRUNERC_TRY_VOID(cut(axes.column, axes.row ? 16 : 32, &cuts_[0]));
    if (axes.row) PRUNERC_TRY_VOID(cut(*axes.row, 8, &cuts_[1]));
    const Axis& longest = axes.reduce[axes.longest];
    const Int outer = context_.pick(up_to(kReduceTile, longest.extent), 4);
    const Int inner = context_.pick(up_to(kReduceTile, longest.extent), 2);
    PRUNERC_TRY(reduce_, s_.split(longest.loop, {Int(-1), outer, inner}));
    return {};
  }

  // The loops of one level, the row's first.
  std::vector<LoopId> level(std::size_t which) const {
    std::vector<LoopId> out;
    for (std::size_t a = cuts_.size(); a-- > 0;) out.push_back(cuts_[a].loops[which]);
    return out;
  }

  Result<void> order_loops(const Axes& axes) {
    std::vector<LoopId> order;
    const auto add = [&](const std::vector<LoopId>& loops) {
      order.insert(order.end(), loops.begin(), loops.end());
    };
    for (const Axis& axis : axes.outer) order.push_back(axis.loop);
    add(level(0));
    order.push_back(reduce_[0]);
    add(level(1));
    add(level(2));
    for (std::size_t i = 0; i < axes.reduce.size(); ++i) {
      order.push_back(i == axes.longest ? reduce_[1] : axes.reduce[i].loop);
    }
    add(level(3));
    order.push_back(reduce_[2]);
    add(level(4));
    return s_.reorder(order);
  }

  // The consumer's variable along each dimension of the result that it reads.
  Result<std::vector<std::size_t>> consumer_places(const std::vector<std::size_t>& places) const {
    const ir::Block* consumer = find_block(s_.program(), consumer_);
    std::vector<std::size_t> out;
    for (const ir::Access& access : consumer->reads) {
      if (access.buffer != result_) continue;
      for (const std::size_t place : places) {
        const auto* var = access.region[place].min.as<ir::Var>();
        for (std::size_t i = 0; var != nullptr && i < consumer->iters.size(); ++i) {
          if (consumer->iters[i].var->id == var->id) out.push_back(i);
        }
      }
    }
    if (out.size() == places.size()) return out;
    return error(Diag::kUnsupported, std::string("a consumer that reads elsewhere"));
  }

  // What leaves the registers does so by the thread that computed it.
  Result<void> copy_out(const std::vector<std::size_t>& places) {
    PRUNERC_TRY(const std::vector<std::size_t> variables, consumer_places(places));
    PRUNERC_TRY(const std::vector<LoopId> loops,
                s_.reverse_compute_at(consumer_, cuts_[0].loops[0]));
    std::vector<std::vector<LoopId>> parts;
    for (std::size_t a = 0; a < cuts_.size(); ++a) {
      const std::array<Int, 4>& f = cuts_[a].factors;
      PRUNERC_TRY(std::vector<LoopId> part,
                  s_.split(loops[variables[a]], {f[0], f[1], f[2], f[3]}));
      parts.push_back(std::move(part));
    }
    std::vector<LoopId> order;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (std::find(variables.begin(), variables.end(), i) == variables.end()) {
        order.push_back(loops[i]);
      }
    }
    for (std::size_t which = 0; which < 4; ++which) {
      for (std::size_t a = parts.size(); a-- > 0;) order.push_back(parts[a][which]);
    }
    PRUNERC_TRY_VOID(s_.reorder(order));
    return bind_threads(parts);
  }

  // parts: by axis, its virtual threads and threads first.
  Result<void> bind_threads(const std::vector<std::vector<LoopId>>& parts) {
    for (std::size_t a = 0; a < parts.size(); ++a) {
      PRUNERC_TRY_VOID(s_.bind(parts[a][0], kVthreadAxis[a]));
      PRUNERC_TRY_VOID(s_.bind(parts[a][1], kThreadAxis[a]));
    }
    return {};
  }

  // All threads of the block fetch an operand's tile together, a vector each.
  Result<void> fetch(const std::vector<int>& operands) {
    std::vector<BlockId> copies;
    for (const int operand : operands) {
      PRUNERC_TRY(const BlockId copy, s_.cache_read(block_, operand, ir::Scope::kShared));
      copies.push_back(copy);
    }
    for (const BlockId copy : copies) {
      PRUNERC_TRY(const std::vector<LoopId> loops, s_.compute_at(copy, reduce_[0]));
      PRUNERC_TRY(const LoopId fused, s_.fuse(loops));
      std::vector<Int> factors = {Int(-1)};
      for (std::size_t a = cuts_.size(); a-- > 0;) factors.push_back(cuts_[a].factors[1]);
      factors.push_back(context_.pick(kFetchWidths, 4));
      PRUNERC_TRY(const std::vector<LoopId> parts, s_.split(fused, factors));
      PRUNERC_TRY_VOID(s_.vectorize(parts.back()));
      for (std::size_t a = 0; a < cuts_.size(); ++a) {
        PRUNERC_TRY_VOID(s_.bind(parts[cuts_.size() - a], kThreadAxis[a]));
      }
    }
    return {};
  }

  // The start of the sums, by the threads that add to them.
  Result<void> start() {
    PRUNERC_TRY(const BlockId init, s_.decompose_reduction(block_, reduce_[0]));
    const std::vector<LoopId> loops = s_.loops_of(init);
    // [.., virtual threads, threads, two levels of registers]
    const std::size_t first = loops.size() - 4 * cuts_.size();
    std::vector<std::vector<LoopId>> parts(cuts_.size());
    for (std::size_t a = 0; a < cuts_.size(); ++a) {
      const std::size_t at = first + cuts_.size() - 1 - a;
      parts[a] = {loops[at], loops[at + cuts_.size()]};
    }
    return bind_threads(parts);
  }

  Result<void> bind_all(const Axes& axes) {
    std::vector<std::vector<LoopId>> parts;
    for (const Cut& c : cuts_) parts.push_back({c.loops[1], c.loops[2]});
    PRUNERC_TRY_VOID(bind_threads(parts));
    for (std::size_t a = 0; a < cuts_.size(); ++a) {
      PRUNERC_TRY_VOID(s_.bind(cuts_[a].loops[0], kBlockAxis[a]));
    }
    LoopId top = cuts_.back().loops[0];
    if (!axes.outer.empty()) {
      std::vector<LoopId> outer;
      for (const Axis& axis : axes.outer) outer.push_back(axis.loop);
      top = outer[0];
      if (outer.size() > 1) {
        PRUNERC_TRY(top, s_.fuse(outer));
      }
      PRUNERC_TRY_VOID(s_.bind(top, "block.z"));
    }
    return s_.annotate(top, "unroll_max_step", context_.pick(kUnrollSteps, kPreferredUnroll));
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  BlockId block_, consumer_;
  const GpuVariant& variant_;
  ir::BufferId result_;
  std::vector<Cut> cuts_;  // column, row
  std::vector<LoopId> reduce_;
};

}  // namespace

bool can_gpu_tile(const schedule::Schedule& schedule, BlockId block) {
  return find_axes(facts_of(schedule, block)).has_value();
}

Result<void> gpu_tile(SketchContext& context, BlockId block, BlockId consumer,
                      const GpuVariant& variant) {
  const schedule::Schedule before = context.schedule.fork();
  const Result<void> done = GpuTile(context, block, consumer, variant).run();
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
