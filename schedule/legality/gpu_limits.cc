#include "schedule/legality/gpu_limits.h"

#include "ir/analysis/region.h"
#include "ir/equal.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/tensor/intrinsic.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"
#include "schedule/legality/live_range.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/site.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

/// Virtual threads are copies of code; what is written out takes NVRTC its time.
constexpr int64_t kMostVthreads = 64;
/// Addresses, counters and what else the simplest kernel holds.
constexpr int64_t kBaseRegisters = 16;
/// Of a warp those that have values of different rows; for each of them so many have the same.
constexpr int64_t kLanesOfRows = 8, kLanesOfRow = 4;

std::size_t dimension(LoopKind kind) {
  return (static_cast<std::size_t>(kind) - static_cast<std::size_t>(LoopKind::kBlockX)) % 3;
}

bool is_vthread(LoopKind kind) {
  return is_thread_axis(kind) && !is_block_axis(kind) && !is_lane_axis(kind);
}

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// How a written buffer is to be stored, by the attributes of its writers.
struct Storage {
  std::map<int64_t, std::pair<int64_t, int64_t>> rows;  // axis to factor and offset
  int64_t copies = 1;
  int64_t alignment = 1;  // of the first byte
};

// An access of a buffer in terms of the loops around its block, outermost first. Blocks are
// counted.
struct Use {
  BufferRegion region;
  std::vector<const Loop*> loops;
  int block = 0;
};

// Measures one kernel.
class Meter {
 public:
  Meter(const Program& program, const Loop& kernel) : b_(program), kernel_(kernel) {
    read_attributes();
  }

  Result<GpuNeeds> run() {
    out_.loop = kernel_.id;
    PRUNERC_TRY_VOID(visit_stmt(&kernel_));
    // Lanes of tensor instructions are thread.x, whether a loop says so or not, or rows of it.
    if (rows_of_lanes(most_lanes_, out_.block[0], out_.block[1]) == 1)
      out_.block[0] = std::max(out_.block[0], most_lanes_);
    // The row of threads, or warpgroup of rows, that brings what is copied in bulk.
    const bool in_rows = rows_of_lanes(most_lanes_, out_.block[0], out_.block[1]) > 1;
    if (!rings_.empty()) ++out_.block[in_rows ? 2 : 1];
    out_.registers = kBaseRegisters;
    spread_lanes();
    std::vector<LiveRange> shared, local;
    for (const auto& [buffer, uses] : uses_) {
      const Scope scope = b_.buffer(buffer).scope;
      LiveRange range = lifetime(uses);
      // The copy engine runs ahead: its tiles share their room with nothing.
      if (rings_.count(buffer) != 0) range = {0, num_blocks_ - 1, 0};
      if (scope == Scope::kShared) {
        range.amount = shared_bytes(buffer, uses);
        shared.push_back(range);
      } else if (scope == Scope::kLocal) {
        range.amount = (local_bytes(buffer, uses) + 3) / 4;
        local.push_back(range);
      }
    }
    std::stable_sort(shared.begin(), shared.end(),
                     [](const LiveRange& x, const LiveRange& y) { return x.amount > y.amount; });
    out_.smem_bytes = first_fit_bytes(shared);
    out_.registers += peak_amount(local);
    return out_;
  }

 private:
  // Extents of the axes, how deep virtual threads multiply, and who touches what.
  Result<void> visit_stmt(Stmt s) {
    if (const Loop* loop = s.as<Loop>()) {
      PRUNERC_TRY(const int64_t extent, constant_extent(*loop));
      if (is_block_axis(loop->loop_kind)) out_.grid[dimension(loop->loop_kind)] = extent;
      if (is_lane_axis(loop->loop_kind)) out_.block[dimension(loop->loop_kind)] = extent;
      const int64_t outer = vthreads_;
      if (is_vthread(loop->loop_kind)) vthreads_ *= extent;
      out_.vthreads = std::max(out_.vthreads, vthreads_);
      num_bulk_ += is_bulk_copy(*loop) ? 1 : 0;
      loops_.push_back(loop);
      ranges_.bind(loop->var, loop->extent);
      const int first = num_blocks_;
      PRUNERC_TRY_VOID(visit_stmt(loop->body));
      blocks_in_[loop] = {first, num_blocks_ - 1};
      loops_.pop_back();
      num_bulk_ -= is_bulk_copy(*loop) ? 1 : 0;
      vthreads_ = outer;
    } else if (const Block* block = s.as<Block>()) {
      out_.name = block->name;
      most_lanes_ = std::max(most_lanes_, lanes_of(*block));
      if (num_bulk_ > 0) {
        for (const Access& access : block->writes) rings_.insert(access.buffer);
      }
      const bool by_lanes = std::any_of(loops_.begin(), loops_.end(), [](const Loop* around) {
        return around->loop_kind == LoopKind::kThreadX;
      });
      if (!by_lanes) of_warps_.push_back(block);
      for (const auto* list : {&block->reads, &block->writes}) {
        for (const Access& access : *list) {
          uses_[access.buffer].push_back({bound_region(b_, *block, access), loops_, num_blocks_});
          int64_t& lanes = lanes_.try_emplace(access.buffer, 1).first->second;
          lanes = std::max(lanes, lanes_of(*block));
        }
      }
      ++num_blocks_;
    } else if (const Seq* seq = s.as<Seq>()) {
      for (Stmt child : seq->stmts) PRUNERC_TRY_VOID(visit_stmt(child));
    } else if (const If* branch = s.as<If>()) {
      PRUNERC_TRY_VOID(visit_stmt(branch->then_body));
      if (branch->else_body.defined()) PRUNERC_TRY_VOID(visit_stmt(branch->else_body));
    }
    return {};
  }

  // The dimensions of a buffer along rows and columns of tensor instructions' tiles; without columns a value of rows.
  struct Tile {
    std::optional<std::size_t> row, column;
  };

  // What a warp's code exchanges values with at the same rows and columns is spread over lanes as the operands of its
  // instructions are. Of what it reduces columns into, and of what meets that, each lane has two rows of sixteen.
  void spread_lanes() {
    std::map<BufferId, Tile> tiles;
    for (const Block* block : of_warps_) {
      if (lanes_of(*block) > 1) note_tiles(*block, &tiles);
    }
    for (const bool has_column : {true, false}) {
      for (bool grew = true; grew;) {
        grew = false;
        for (const Block* block : of_warps_) grew = spread_in(*block, has_column, &tiles) || grew;
      }
    }
  }

  std::vector<const Access*> local_accesses(const Block& block) const {
    std::vector<const Access*> out;
    for (const auto* list : {&block.reads, &block.writes}) {
      for (const Access& access : *list) {
        if (b_.buffer(access.buffer).scope == Scope::kLocal) out.push_back(&access);
      }
    }
    return out;
  }

  // Operands of an instruction have two dimensions of more than one element.
  void note_tiles(const Block& block, std::map<BufferId, Tile>* tiles) const {
    for (const Access* access : local_accesses(block)) {
      std::vector<std::size_t> wide;
      for (std::size_t d = 0; d < access->region.size(); ++d) {
        if (constant(access->region[d].extent) != 1) wide.push_back(d);
      }
      if (wide.size() == 2) tiles->try_emplace(access->buffer, Tile{wide[0], wide[1]});
    }
  }

  static std::optional<std::size_t> dimension_of(const Access& access, const Range& range) {
    for (std::size_t d = 0; d < access.region.size(); ++d) {
      const Range& here = access.region[d];
      if (structural_equal(here.min, range.min) && structural_equal(here.extent, range.extent))
        return d;
    }
    return std::nullopt;
  }

  // From what is spread already; of elements, then of rows.
  bool spread_in(const Block& block, bool has_column, std::map<BufferId, Tile>* tiles) {
    const std::vector<const Access*> all = local_accesses(block);
    bool grew = false;
    for (const Access* from : all) {
      const auto known = tiles->find(from->buffer);
      if (known == tiles->end()) continue;
      const Tile tile = known->second;
      for (const Access* to : all) {
        if (tiles->count(to->buffer) != 0) continue;
        const auto row = dimension_of(*to, from->region[*tile.row]);
        const auto column =
            tile.column ? dimension_of(*to, from->region[*tile.column]) : std::nullopt;
        const bool is_stored =
            to >= block.writes.data() && to < block.writes.data() + block.writes.size();
        const bool is_made = is_stored && lanes_.at(from->buffer) == kLanesOfRows * kLanesOfRow;
        if (!row || column.has_value() != has_column) continue;
        if (!column && tile.column && !is_made) continue;
        tiles->try_emplace(to->buffer, Tile{row, column});
        const int64_t lanes = column ? lanes_.at(from->buffer) : kLanesOfRows;
        lanes_.at(to->buffer) = std::max(lanes_.at(to->buffer), lanes);
        grew = true;
      }
    }
    return grew;
  }

  // The lanes that a tensor instruction in the block spreads its operands over; 1 without any.
  static int64_t lanes_of(const Block& block) {
    int64_t lanes = 1;
    walk(
        block.body,
        [&](Stmt s) {
          const Loop* loop = s.as<Loop>();
          const std::optional<std::string_view> name =
              loop == nullptr ? std::nullopt : tensor_of(*loop);
          if (!name) return true;
          const Result<const TensorIntrinsic*> tensor = find_tensor(*name);
          if (tensor.ok()) lanes = std::max<int64_t>(lanes, (*tensor)->lanes);
          return false;
        },
        [](Expr) {});
    return lanes;
  }

  // From the first to the last block that uses the buffer; loops that the buffer outlives count
  // whole.
  LiveRange lifetime(const std::vector<Use>& uses) const {
    const std::size_t depth = common_depth(uses);
    LiveRange out = {uses[0].block, uses[0].block, 0};
    for (const Use& use : uses) {
      std::pair<int, int> blocks = {use.block, use.block};
      if (use.loops.size() > depth) blocks = blocks_in_.at(use.loops[depth]);
      out.first = std::min(out.first, blocks.first);
      out.last = std::max(out.last, blocks.second);
    }
    return out;
  }

  // The loops around all uses: inside them the buffer begins anew.
  static std::size_t common_depth(const std::vector<Use>& uses) {
    std::size_t depth = uses[0].loops.size();
    for (const Use& use : uses) {
      std::size_t same = 0;
      while (same < std::min(depth, use.loops.size()) && use.loops[same] == uses[0].loops[same]) {
        ++same;
      }
      depth = same;
    }
    return depth;
  }

  // The box that all threads of a block touch together, for the worst of its places.
  int64_t shared_bytes(BufferId id, const std::vector<Use>& uses) {
    const std::size_t depth = common_depth(uses);
    std::optional<BufferRegion> all;
    for (const Use& use : uses) {
      std::vector<VarId> relaxed;
      for (std::size_t i = 0; i < use.loops.size(); ++i) {
        const LoopKind kind = use.loops[i]->loop_kind;
        const bool thread = is_lane_axis(kind) || is_vthread(kind);
        if (i >= depth || thread) relaxed.push_back(use.loops[i]->var->id);
      }
      const BufferRegion one = relax_region(b_, use.region, relaxed, ranges_);
      all = all ? hull(b_, *all, one, ranges_) : one;
    }
    // A bound of what is cut off at the buffer's end may lose sight of where it begins.
    const auto clipped = region_extents(b_, clip_to_buffer(b_, *all, ranges_), ranges_);
    const auto whole = region_extents(b_, *all, ranges_);
    std::vector<int64_t> size;
    for (std::size_t d = 0; d < clipped.size(); ++d) {
      size.push_back(std::min(bounded(id, d, clipped[d]), bounded(id, d, whole[d])));
    }
    return bytes_of(id, size, stages_of(uses, rings_.count(id) != 0));
  }

  // A whole dimension where no bound is known.
  int64_t bounded(BufferId id, std::size_t d, const std::optional<Expr>& extent) {
    const int64_t whole = constant(b_.buffer(id).shape[d]).value_or(1);
    return extent ? std::min(constant(*extent).value_or(whole), whole) : whole;
  }

  // The elements that one thread touches: a box may have gaps between its virtual threads.
  int64_t local_bytes(BufferId id, const std::vector<Use>& uses) {
    const std::size_t depth = common_depth(uses);
    int64_t most = 0;
    for (const Use& use : uses) {
      std::vector<VarId> relaxed;
      for (std::size_t i = depth; i < use.loops.size(); ++i) {
        const LoopKind kind = use.loops[i]->loop_kind;
        if (!is_block_axis(kind) && !is_lane_axis(kind)) relaxed.push_back(use.loops[i]->var->id);
      }
      const std::vector<std::optional<Expr>> extents =
          region_extents(b_, relax_region(b_, use.region, relaxed, ranges_), ranges_);
      int64_t elems = 1;
      for (std::size_t d = 0; d < extents.size(); ++d) {
        int64_t steps = constant(use.region.box[d].extent).value_or(1);
        for (std::size_t i = depth; i < use.loops.size(); ++i) {
          const Var* var = use.loops[i]->var;
          const bool varies = std::find(relaxed.begin(), relaxed.end(), var->id) != relaxed.end() &&
                              mentions(use.region.box[d].min, var->id);
          if (varies) steps *= *constant(use.loops[i]->extent);
        }
        elems *= std::min(bounded(id, d, extents[d]), steps);
      }
      most = std::max(most, elems);
    }
    return most * byte_size(b_.buffer(id).dtype) / lanes_[id];
  }

  void read_attributes() {
    walk(
        Stmt(&kernel_),
        [&](Stmt s) {
          const Block* block = s.as<Block>();
          if (block == nullptr) return true;
          for (std::size_t w = 0; w < block->writes.size(); ++w) read_attributes(*block, w);
          return false;
        },
        [](Expr) {});
  }

  // Copies of what begins anew inside of pipelines; a ring has all of its stages however short its loop is.
  static int64_t stages_of(const std::vector<Use>& uses, bool is_ring) {
    int64_t stages = 1;
    const std::size_t depth = common_depth(uses);
    for (std::size_t i = 0; i < depth; ++i) {
      const Loop& loop = *uses[0].loops[i];
      for (const Attr& attr : loop.attrs) {
        if (attr.key != kPipeline) continue;
        const int64_t most = is_ring ? attr.value : constant(loop.extent).value_or(attr.value);
        stages = std::max(stages, std::min(attr.value, most));
      }
    }
    return stages;
  }

  void read_attributes(const Block& block, std::size_t write) {
    Storage& storage = storage_[block.writes[write].buffer];
    const std::string number = std::to_string(write);
    for (const Attr& attr : block.attrs) {
      if (attr.key == kDoubleBuffer && attr.value == static_cast<int64_t>(write)) {
        storage.copies = 2;
      }
      if (attr.key == std::string(kSwizzle) + number && panel_of(attr.value) != 0) {
        storage.alignment = kSwizzleRows * panel_of(attr.value);
      }
      for (std::size_t axis = 0; axis < block.writes[write].region.size(); ++axis) {
        const std::string suffix = number + "_" + std::to_string(axis);
        auto& row = storage.rows.try_emplace(static_cast<int64_t>(axis), 1, 0).first->second;
        if (attr.key == std::string(kAlignFactor) + suffix) row.first = attr.value;
        if (attr.key == std::string(kAlignOffset) + suffix) row.second = attr.value;
      }
    }
  }

  int64_t bytes_of(BufferId id, const std::vector<int64_t>& extents, int64_t stages) {
    const Storage& storage = storage_[id];
    int64_t elems = 1;
    for (std::size_t d = extents.size(); d-- > 0;) {
      const auto row = storage.rows.find(static_cast<int64_t>(d));
      if (row != storage.rows.end()) {
        const auto& [factor, offset] = row->second;
        // storage_align sets no others; a program's text may.
        const bool fits = 0 <= offset && offset < factor && factor <= kMaxAlignFactor;
        if (fits) elems = round_up(std::max<int64_t>(elems - offset, 0), factor) + offset;
      }
      elems *= extents[d];
    }
    const int64_t bytes = elems * std::max(storage.copies, stages) * byte_size(b_.buffer(id).dtype);
    return round_up(bytes, storage.alignment);
  }

  IrBuilder b_;
  const Loop& kernel_;
  GpuNeeds out_;
  std::map<BufferId, std::vector<Use>> uses_;
  std::set<BufferId> rings_;            // what bulk copies fill
  int num_bulk_ = 0;                    // bulk copies around
  std::map<BufferId, int64_t> lanes_;   // that hold one copy of a buffer together
  int64_t most_lanes_ = 1;              // of a tensor instruction
  std::vector<const Block*> of_warps_;  // outside of thread.x
  std::vector<const Loop*> loops_;
  std::map<const Loop*, std::pair<int, int>> blocks_in_;  // first and last
  int num_blocks_ = 0;
  VarRanges ranges_;
  int64_t vthreads_ = 1;
  std::map<BufferId, Storage> storage_;
};

// The outermost loops with a thread axis; `outside`: there are statements in none.
void outermost_axes(Stmt s, std::vector<const Loop*>* kernels, bool* outside) {
  const Loop* loop = s.as<Loop>();
  if (loop != nullptr && is_thread_axis(loop->loop_kind)) {
    kernels->push_back(loop);
  } else if (loop != nullptr) {
    outermost_axes(loop->body, kernels, outside);
  } else if (const Seq* seq = s.as<Seq>()) {
    for (Stmt child : seq->stmts) outermost_axes(child, kernels, outside);
  } else {
    *outside = true;
  }
}

std::string limit(int64_t most, std::string_view what) {
  return std::to_string(most) + " " + std::string(what);
}

Result<void> check(const GpuNeeds& needs, const Target& target) {
  const auto fits = [&](int64_t have, int64_t most, std::string_view what) -> Result<void> {
    if (most <= 0 || have <= most) return {};
    return error(Diag::kGpuLimit, needs.name, limit(have, what), limit(most, what));
  };
  constexpr std::string_view kAxes[] = {"x", "y", "z"};
  for (std::size_t d = 0; d < 3; ++d) {
    PRUNERC_TRY_VOID(fits(needs.grid[d], kMostBlocks[d], "blocks along " + std::string(kAxes[d])));
    PRUNERC_TRY_VOID(
        fits(needs.block[d], kMostThreads[d], "threads of a block along " + std::string(kAxes[d])));
  }
  PRUNERC_TRY_VOID(fits(needs.threads(), target.max_threads_per_block, "threads of a block"));
  PRUNERC_TRY_VOID(fits(needs.vthreads, kMostVthreads, "virtual threads"));
  PRUNERC_TRY_VOID(fits(needs.smem_bytes, target.smem_bytes_per_block, "bytes of shared memory"));
  PRUNERC_TRY_VOID(fits(needs.registers, target.max_registers_per_thread, "registers of a thread"));
  // Warps get their registers whole.
  const int64_t lanes = round_up(needs.threads(), std::max<int64_t>(target.warp_size, 1));
  return fits(needs.registers * lanes, target.registers_per_sm, "registers of a block");
}

}  // namespace

Result<std::vector<GpuNeeds>> gpu_needs(const Program& program) {
  PRUNERC_TRY_VOID(check_thread_axes(program.root()));
  std::vector<const Loop*> kernels;
  bool outside = false;
  outermost_axes(program.root(), &kernels, &outside);
  std::vector<GpuNeeds> out;
  for (const Loop* kernel : kernels) {
    PRUNERC_TRY(GpuNeeds needs, Meter(program, *kernel).run());
    out.push_back(std::move(needs));
  }
  return out;
}

Result<void> check_gpu_limits(const Program& program, const Target& target) {
  if (target.kind == TargetKind::kCpu) return {};
  PRUNERC_TRY(const std::vector<GpuNeeds> all, gpu_needs(program));
  for (const GpuNeeds& needs : all) PRUNERC_TRY_VOID(check(needs, target));
  std::vector<const Loop*> kernels;
  bool outside = false;
  outermost_axes(program.root(), &kernels, &outside);
  if (!outside) return {};
  return error(Diag::kGpuLimit, std::string(program.name()),
               std::string("statements outside of kernels"), std::string("kernels alone"));
}

}  // namespace prunerc::schedule
