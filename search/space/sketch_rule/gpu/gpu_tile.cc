// Rule "tile" for GPUs: reductions with operands that several outputs need.
//
//     for o, r, c { for k { C } }
//   ~>
//     for o bind(block.z), r_b bind(block.y), c_b bind(block.x) {
//       C_init, as the nest of C without k
//       for k0 {software_pipeline} {
//         for .. ty bind(thread.y) tx bind(thread.x) v vectorized { fetch A }   the same for B
//         for r_t bind(thread.y) c_t bind(thread.x) {
//           for k1 { for k2 unrolled { for r_s r_v c_s c_v { C } } }             C in registers
//         }
//       }
//       for r_t c_t r_s r_v c_s { for c_v vectorized { copy-out or fused consumer } }
//     }
//
// Threads of a block are loops beside each other under its loop and meet where one ends. All of
// them have the extents r_t and c_t, which are the same decisions everywhere: an element of C stays
// with one thread. A thread's elements are strided (r_s), so that neighbours meet no bank twice, of
// vectors (c_v) where an operand's rows run along that axis; where they run along k, k2 makes the
// vectors. Blocks are inferred, so any extent can be cut. Tails are guarded, but for k, which a
// fetch rounds up with zeros. Source: Ansor (Zheng et al., OSDI 2020), section 4.1, for the levels.
#include "ir/arith/loop_index.h"
#include "ir/thread_axis.h"
#include "search/space/sketch_rule/gpu/gpu.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

const std::vector<int64_t> kColumnThreads = {8, 16, 32};
const std::vector<int64_t> kRowThreads = {4, 8, 16};
const std::vector<int64_t> kFewThreads = {2, 4, 8, 16, 32};  // of extents that these are much for
const std::vector<int64_t> kTile = {1, 2, 4, 8};             // a thread's elements along an axis
const std::vector<int64_t> kReduceTile = {2, 4, 8};          // vectors of k in one fetch
const std::vector<int64_t> kPipeline = {1, 2, 3};            // iterations that a fetch is ahead
/// Of extents: a product with three such ones reads all of its operands often.
constexpr int64_t kLarge = 64;
/// Of extents that keep the machine busy with tiles of that many a thread at least.
constexpr int64_t kManyElements = 256;
constexpr int64_t kLeastTile = 2;
constexpr int64_t kPreferredTile = 8;
constexpr int64_t kVector = 4;
constexpr int64_t kAsyncCopies = 80;  // compute capability
constexpr int64_t kFetchBytes = 16;
/// Statements of one fetch: all of its products are written out.
constexpr int64_t kUnroll = 1024;
constexpr int64_t kUnrollWindow = 256;  // where each asks for the window's edge

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

// One axis cut for blocks, threads and two levels of registers.
struct Cut {
  std::array<Int, 3> factors = {Int(1), Int(1), Int(1)};
  std::vector<LoopId> loops;  // block, strided, thread, vector
};
constexpr const char* kBlockAxis[] = {"block.x", "block.y"};
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
    find_vectors(*facts.block, *axes);
    PRUNERC_TRY_VOID(decide(*axes));
    PRUNERC_TRY(std::vector<BlockId> copies, pad_reduction(*axes, fetched));
    PRUNERC_TRY_VOID(take_registers());
    PRUNERC_TRY_VOID(cut_axes(*axes));
    PRUNERC_TRY_VOID(order_loops(*axes));
    PRUNERC_TRY_VOID(copy_out(places));
    if (copies.empty()) {
      PRUNERC_TRY(copies, copy_operands(fetched));
    }
    for (const BlockId copy : copies) PRUNERC_TRY_VOID(fetch(copy, *axes));
    PRUNERC_TRY_VOID(start());
    PRUNERC_TRY_VOID(bind_all(*axes));
    // Without asynchronous copies nothing runs ahead, and copies of it only take room.
    if (copies.empty() || context_.target.compute_capability < kAsyncCopies) return {};
    std::vector<Int> stages(copies.size(), Int(0));
    stages.push_back(context_.pick(kPipeline, 2));
    std::vector<int64_t> order;
    for (std::size_t i = 0; i < stages.size(); ++i) order.push_back(static_cast<int64_t>(i));
    return s_.software_pipeline(reduce_[0], stages, order);
  }

 private:
  // Along which axis the operands that move with it have their rows.
  void find_vectors(const ir::Block& block, const Axes& axes) {
    const auto runs_along = [&](const Axis& axis) {
      return std::any_of(block.reads.begin(), block.reads.end(), [&](const ir::Access& access) {
        return access.buffer != block.writes[0].buffer && is_contiguous(access, axis.var);
      });
    };
    vectors_ = {runs_along(axes.column) ? kVector : 1};
    if (axes.row) vectors_.push_back(runs_along(*axes.row) ? kVector : 1);
  }

  Result<void> decide(const Axes& axes) {
    PRUNERC_TRY_VOID(decide(axes.column, kColumnThreads, axes.row ? 16 : 32, vectors_[0]));
    if (axes.row) PRUNERC_TRY_VOID(decide(*axes.row, kRowThreads, 8, vectors_[1]));
    const int64_t extent = axes.reduce[axes.longest].extent;
    const bool is_long = extent >= kReduceTile[0] * kVector;
    inner_ = is_long ? kVector : 1;
    outer_ =
        context_.pick(is_long ? up_to(kReduceTile, extent / kVector) : up_to(kTile, extent), 4);
    PRUNERC_TRY(reduce_tile_, s_.product({outer_, Int(inner_)}));
    return {};
  }

  Result<void> decide(const Axis& axis, const std::vector<int64_t>& threads, int64_t preferred,
                      int64_t vector) {
    Cut cut;
    const int64_t width = vector > axis.extent ? 1 : vector;
    std::vector<int64_t> strided;
    const int64_t least = axis.extent >= kManyElements ? kLeastTile : 1;
    for (const int64_t tile : kTile) {
      if (tile >= std::max(width, least)) strided.push_back(tile / width);
    }
    const int64_t vectors = ceil_div(axis.extent, width);
    cut.factors[1] = context_.pick(
        up_to(vectors < 2 * threads.back() ? kFewThreads : threads, vectors), preferred);
    cut.factors[0] = context_.pick(up_to(strided, vectors), kPreferredTile / width);
    cut.factors[2] = width;
    cuts_.push_back(std::move(cut));
    return {};
  }

  // Of a sum of products both operands' copies round k up to whole fetches with zeros: then nothing
  // inside of the tile asks where k ends.
  Result<std::vector<BlockId>> pad_reduction(const Axes& axes, const std::vector<int>& fetched) {
    const ir::Block* block = find_block(s_.program(), block_);
    const auto num_operands = std::count_if(
        block->reads.begin(), block->reads.end(),
        [&](const ir::Access& access) { return access.buffer != block->writes[0].buffer; });
    // Copies of windows would be those of whole images.
    const bool is_product =
        fetched.size() == 2 && num_operands == 2 && inner_ > 1 &&
        std::all_of(block->reads.begin(), block->reads.end(), has_variable_subscripts);
    if (!is_product || axes.reduce.size() > 1) return std::vector<BlockId>();
    std::vector<Int> multiples(block->iters.size(), Int(1));
    multiples[static_cast<std::size_t>(axes.reduce[0].iter)] = reduce_tile_;
    Result<std::vector<BlockId>> copies = s_.pad_einsum(block_, multiples);
    if (!copies.ok() || copies->size() != 2) return std::vector<BlockId>();
    for (const BlockId copy : *copies) PRUNERC_TRY_VOID(s_.set_scope(copy, 0, ir::Scope::kShared));
    return copies;
  }

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

  Result<void> cut(const Axis& axis, Cut* out) {
    std::vector<Int> factors = {Int(-1)};
    factors.insert(factors.end(), out->factors.begin(), out->factors.end());
    PRUNERC_TRY(out->loops, s_.split(axis.loop, factors));
    return {};
  }

  Result<void> cut_axes(const Axes& axes) {
    PRUNERC_TRY_VOID(cut(axes.column, &cuts_[0]));
    if (axes.row) PRUNERC_TRY_VOID(cut(*axes.row, &cuts_[1]));
    PRUNERC_TRY(reduce_, s_.split(axes.reduce[axes.longest].loop, {Int(-1), outer_, Int(inner_)}));
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
    for (const Axis& axis : axes.outer) order.push_back(axis.loop);
    const auto add = [&](const std::vector<LoopId>& loops) {
      order.insert(order.end(), loops.begin(), loops.end());
    };
    add(level(0));
    order.push_back(reduce_[0]);
    add(level(2));
    for (std::size_t i = 0; i < axes.reduce.size(); ++i) {
      order.push_back(i == axes.longest ? reduce_[1] : axes.reduce[i].loop);
    }
    order.push_back(reduce_[2]);
    for (std::size_t a = cuts_.size(); a-- > 0;) {
      order.push_back(cuts_[a].loops[1]);
      order.push_back(cuts_[a].loops[3]);
    }
    PRUNERC_TRY_VOID(s_.reorder(order));
    return s_.unroll(reduce_[2]);
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
      const std::array<Int, 3>& f = cuts_[a].factors;
      PRUNERC_TRY(std::vector<LoopId> part, s_.split(loops[variables[a]], {f[0], f[1], f[2]}));
      parts.push_back(std::move(part));
    }
    std::vector<LoopId> order;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (std::find(variables.begin(), variables.end(), i) == variables.end()) {
        order.push_back(loops[i]);
      }
    }
    std::vector<LoopId> threads;
    for (std::size_t a = parts.size(); a-- > 0;) order.push_back(parts[a][1]);
    for (std::size_t a = parts.size(); a-- > 0;) {
      order.push_back(parts[a][0]);
      order.push_back(parts[a][2]);
    }
    PRUNERC_TRY_VOID(s_.reorder(order));
    if (vectors_[0] > 1) PRUNERC_TRY_VOID(s_.vectorize(parts[0][2]));
    for (const std::vector<LoopId>& part : parts) threads.push_back(part[1]);
    return bind_threads(threads);
  }

  // By axis.
  Result<void> bind_threads(const std::vector<LoopId>& threads) {
    for (std::size_t a = 0; a < threads.size(); ++a) {
      PRUNERC_TRY_VOID(s_.bind(threads[a], kThreadAxis[a]));
    }
    return {};
  }

  Result<std::vector<BlockId>> copy_operands(const std::vector<int>& operands) {
    std::vector<BlockId> copies;
    for (const int operand : operands) {
      PRUNERC_TRY(const BlockId copy, s_.cache_read(block_, operand, ir::Scope::kShared));
      copies.push_back(copy);
    }
    return copies;
  }

  // All threads of the block fetch an operand's tile together, a vector each.
  Result<void> fetch(BlockId copy, const Axes& axes) {
    const int64_t width = fetch_width(copy);
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.compute_at(copy, reduce_[0]));
    const bool is_matrix = count_long(loops) <= 2;
    PRUNERC_TRY(const LoopId fused, s_.fuse(loops));
    std::vector<Int> factors = {Int(-1)};
    for (std::size_t a = cuts_.size(); a-- > 0;) factors.push_back(cuts_[a].factors[1]);
    factors.emplace_back(width);
    PRUNERC_TRY(const std::vector<LoopId> parts, s_.split(fused, factors));
    // Places in a window take much arithmetic, which copies of it would multiply.
    if (is_matrix) PRUNERC_TRY_VOID(s_.unroll(parts[0]));
    PRUNERC_TRY_VOID(s_.vectorize(parts.back()));
    for (std::size_t a = 0; a < cuts_.size(); ++a) {
      PRUNERC_TRY_VOID(s_.bind(parts[cuts_.size() - a], kThreadAxis[a]));
    }
    return lengthen_rows(copy, axes);
  }

  // Loops of more than one iteration.
  std::size_t count_long(const std::vector<LoopId>& loops) const {
    const ir::LoopIndex index(s_.program());
    return static_cast<std::size_t>(std::count_if(loops.begin(), loops.end(), [&](LoopId id) {
      const auto* extent = index.loop(id)->extent.as<ir::IntImm>();
      return extent == nullptr || extent->value > 1;
    }));
  }

  // Elements of one vector, as far as rows of the operand are made of them; windows begin anywhere.
  int64_t fetch_width(BlockId copy) const {
    const ir::Block* block = find_block(s_.program(), block_);
    const ir::BufferId copied = find_block(s_.program(), copy)->writes[0].buffer;
    const bool is_plain =
        std::any_of(block->reads.begin(), block->reads.end(), [&](const ir::Access& access) {
          return access.buffer == copied && !access.region.empty() &&
                 access.region.back().min.as<ir::Var>() != nullptr;
        });
    const std::span<const ir::Access> reads = find_block(s_.program(), copy)->reads;
    if (!is_plain || reads.empty()) return 1;
    const ir::Buffer& from = s_.program().buffer(reads[0].buffer);
    const auto* length = from.shape.empty() ? nullptr : from.shape.back().as<ir::IntImm>();
    const int64_t wide = kFetchBytes / ir::byte_size(from.dtype);
    return length != nullptr ? std::gcd(length->value, wide) : 1;
  }

  // Rows along k are odd multiples of a vector, so that eight of them meet eight different banks.
  Result<void> lengthen_rows(BlockId copy, const Axes& axes) {
    const ir::Block* block = find_block(s_.program(), copy);
    const ir::Buffer& buffer = s_.program().buffer(block->writes[0].buffer);
    const std::size_t rank = buffer.shape.size();
    const int64_t wide = kFetchBytes / ir::byte_size(buffer.dtype);
    if (rank < 2 || !is_along_reduction(buffer.id, axes)) return {};
    return s_.storage_align(copy, 0, static_cast<int>(rank) - 2, 2 * wide, wide);
  }

  bool is_along_reduction(ir::BufferId operand, const Axes& axes) const {
    const ir::Block* block = find_block(s_.program(), block_);
    for (const ir::Access& access : block->reads) {
      const ir::VarId k =
          block->iters[static_cast<std::size_t>(axes.reduce[axes.longest].iter)].var->id;
      if (access.buffer == operand) return is_contiguous(access, k);
    }
    return false;
  }

  // The start of the sums, by the threads that add to them.
  Result<void> start() {
    PRUNERC_TRY(const BlockId init, s_.decompose_reduction(block_, reduce_[0]));
    const std::vector<LoopId> loops = s_.loops_of(init);
    // [.., threads, two levels of registers each]
    const std::size_t first = loops.size() - 3 * cuts_.size();
    std::vector<LoopId> threads;
    for (std::size_t a = cuts_.size(); a-- > 0;) threads.push_back(loops[first + a]);
    return bind_threads(threads);
  }

  Result<void> bind_all(const Axes& axes) {
    std::vector<LoopId> threads;
    for (const Cut& c : cuts_) threads.push_back(c.loops[2]);
    PRUNERC_TRY_VOID(bind_threads(threads));
    // A grid is long along its first axis alone.
    int64_t num_outer = 1;
    for (const Axis& axis : axes.outer) num_outer *= axis.extent;
    const bool swaps = num_outer > ir::kMostBlocks[2];
    for (std::size_t a = 0; a < cuts_.size(); ++a) {
      PRUNERC_TRY_VOID(s_.bind(cuts_[a].loops[0], a == 0 && swaps ? "block.z" : kBlockAxis[a]));
    }
    LoopId top = cuts_.back().loops[0];
    if (!axes.outer.empty()) {
      std::vector<LoopId> outer;
      for (const Axis& axis : axes.outer) outer.push_back(axis.loop);
      top = outer[0];
      if (outer.size() > 1) {
        PRUNERC_TRY(top, s_.fuse(outer));
      }
      PRUNERC_TRY_VOID(s_.bind(top, swaps ? "block.x" : "block.z"));
    }
    return s_.annotate(top, "unroll_max_step", axes.reduce.size() > 1 ? kUnrollWindow : kUnroll);
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  BlockId block_, consumer_;
  const GpuVariant& variant_;
  ir::BufferId result_;
  std::vector<Cut> cuts_;         // column, row
  std::vector<int64_t> vectors_;  // alike
  Int outer_ = 1, reduce_tile_ = 1;
  int64_t inner_ = 1;           // of a fetch's k, written out
  std::vector<LoopId> reduce_;  // fetches, vectors, elements
};

}  // namespace

bool can_gpu_tile(const schedule::Schedule& schedule, BlockId block) {
  return find_axes(facts_of(schedule, block)).has_value();
}

bool must_share_operands(const schedule::Schedule& schedule, BlockId block) {
  const std::optional<Axes> axes = find_axes(facts_of(schedule, block));
  if (!axes || !axes->row) return false;
  return std::min({axes->row->extent, axes->column.extent, axes->reduce[axes->longest].extent}) >=
         kLarge;
}

Result<void> gpu_tile(SketchContext& context, BlockId block, BlockId consumer,
                      const GpuVariant& variant) {
  const schedule::Schedule before = context.schedule.fork();
  const Result<void> done = GpuTile(context, block, consumer, variant).run();
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
