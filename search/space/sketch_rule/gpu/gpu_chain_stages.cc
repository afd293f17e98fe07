#include "search/space/sketch_rule/gpu/gpu_chain_stages.h"

#include "search/space/sketch_rule/gpu/gpu_chain.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

constexpr std::size_t kRow = 0, kColumn = 1;
/// Elements of a row that a lane takes at once, so that it waits for shared memory seldom.
constexpr int64_t kTaken = 8;
constexpr int64_t kWidest = 4;

class Finder {
 public:
  Finder(const schedule::Schedule& schedule, const MatrixProduct& first,
         const MatrixProduct& second)
      : s_(schedule), p_(first), q_(second) {}

  std::vector<ChainStage> run() {
    note_dims(p_.out, {p_.out_m, p_.out_n});
    std::vector<ChainStage> stages;
    for (const BlockId id : s_.blocks()) {
      const bool is_product = id == p_.out || id == q_.block || id == q_.out;
      if (is_product || !comes_of(s_, id, p_.block)) continue;
      const Places places = places_of(*find_block(s_.program(), id));
      const bool reads_rows = places[kColumn] && !comes_of(s_, id, q_.block);
      if (!reads_rows && !comes_of(s_, q_.out, id)) continue;
      stages.push_back({id, places});
      note_dims(id, places);
    }
    const auto is_inside = [&](BlockId id) {
      return id == q_.block || id == q_.out ||
             std::any_of(stages.begin(), stages.end(),
                         [&](const ChainStage& stage) { return stage.block == id; });
    };
    for (ChainStage& stage : stages) {
      const std::vector<BlockId> readers = s_.consumers(stage.block);
      const ir::BufferId made = find_block(s_.program(), stage.block)->writes[0].buffer;
      stage.read_behind = s_.program().buffer(made).role == ir::BufferRole::kOutput ||
                          !std::all_of(readers.begin(), readers.end(), is_inside);
    }
    return stages;
  }

 private:
  void note_dims(BlockId id, const Places& places) {
    const ir::Block& block = *find_block(s_.program(), id);
    const ir::BufferId made = block.writes[0].buffer;
    for (std::size_t d = 0; d < block.writes[0].region.size(); ++d) {
      const std::optional<std::size_t> variable = variable_at(block, made, d);
      for (const std::size_t along : {kRow, kColumn}) {
        if (variable && variable == places[along]) dims_[made][along] = d;
      }
    }
  }

  // By what the block reads of the kernel.
  Places places_of(const ir::Block& block) const {
    Places places;
    for (const ir::Access& access : block.reads) {
      const auto dims = dims_.find(access.buffer);
      if (dims == dims_.end()) continue;
      for (const std::size_t along : {kRow, kColumn}) {
        if (!dims->second[along]) continue;
        const auto place = variable_at(block, access.buffer, *dims->second[along]);
        if (place) places[along] = place;
      }
    }
    return places;
  }

  const schedule::Schedule& s_;
  const MatrixProduct &p_, &q_;
  std::map<ir::BufferId, Places> dims_;  // of what the kernel has made of the scores
};

class Sharing {
 public:
  Sharing(SketchContext& context, const ChainRows& rows, std::vector<LoopId>* grid)
      : s_(context.schedule), rows_(rows), grid_(*grid) {}

  Result<void> run(const ChainStage& stage) {
    const ir::Block& block = *find_block(s_.program(), stage.block);
    const auto [row, column] = stage.places;
    const bool reduces = is_reduction(block);
    // Whole rows are too much to be left for later kernels.
    if (!fits(block, stage.places) || (stage.read_behind && column && !reduces)) {
      return error(Diag::kUnsupported, std::string("a stage of this shape between products"));
    }
    PRUNERC_TRY(const std::vector<LoopId> loops,
                stage.read_behind ? join(stage) : s_.compute_at(stage.block, grid_.back()));
    const auto scope = stage.block == rows_.kept ? ir::Scope::kLocal : ir::Scope::kShared;
    if (!stage.read_behind) PRUNERC_TRY_VOID(s_.set_scope(stage.block, 0, scope));
    if (column) return share_elements(stage, loops, reduces);
    if (rows_.kept.valid()) {
      return error(Diag::kUnsupported, std::string("values of rows between rows in registers"));
    }
    std::vector<Int> factors = rows_.warps->warp_factors();
    factors.insert(factors.begin(), Int(-1));
    factors.emplace_back(kWarpLanes);
    PRUNERC_TRY(const std::vector<LoopId> parts, s_.split(loops[*row], factors));
    PRUNERC_TRY_VOID(rows_.warps->bind_warps(parts, 1));
    return s_.bind(parts.back(), "thread.x");
  }

  // Once all stages stand there: their loops over rows become one if rows are kept.
  Result<void> finish() {
    if (rows_.kept.valid() && shared_.size() > 1) {
      const std::vector<BlockId> all = s_.blocks();
      std::vector<LoopId> loops;
      for (const BlockId id : all) {
        for (const SharedRows& stage : shared_) {
          if (stage.block == id) loops.push_back(stage.rows[0]);
        }
      }
      PRUNERC_TRY_VOID(s_.merge(loops));
    }
    for (const SharedRows& stage : shared_) {
      PRUNERC_TRY_VOID(rows_.warps->bind_warps(stage.rows, kFirstWarps));
      PRUNERC_TRY_VOID(s_.bind(stage.lanes, "thread.x"));
    }
    return {};
  }

 private:
  // Rows in the order of share_elements: all, at once, warps.
  static constexpr std::size_t kFirstWarps = 2;
  struct SharedRows {
    BlockId block;
    std::vector<LoopId> rows;
    LoopId lanes;
  };

  // Lanes have the same elements of a row in all stages. What a warp reads of several rows it reads at once: sums and
  // maxima of different rows do not wait for each other.
  Result<void> share_elements(const ChainStage& stage, const std::vector<LoopId>& loops,
                              bool reduces) {
    const auto [row, column] = stage.places;
    std::vector<Int> factors = rows_.warps->warp_factors();
    factors.insert(factors.begin(), {Int(-1), Int(rows_.at_once)});
    PRUNERC_TRY(const std::vector<LoopId> rows, s_.split(loops[*row], factors));
    const int64_t width = std::gcd(rows_.elements, kWidest);
    std::vector<Int> cuts = {Int(-1), Int(kTaken / width), Int(kWarpLanes), Int(width)};
    if (rows_.kept.valid()) cuts.erase(cuts.begin() + 1);
    PRUNERC_TRY(const std::vector<LoopId> columns, s_.split(loops[*column], cuts));
    const std::size_t lanes = columns.size() - 2;
    std::vector<LoopId> order = {rows[0]};
    for (std::size_t i = 0; i < loops.size() && !stage.read_behind; ++i) {
      if (i != *row && i != *column) order.push_back(loops[i]);
    }
    order.insert(order.end(), rows.begin() + kFirstWarps, rows.end());
    if (lanes == 2) order.push_back(columns[0]);
    order.insert(order.end(), {columns[lanes], columns[lanes - 1], rows[1], columns.back()});
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY_VOID(s_.unroll(columns[lanes - 1]));
    PRUNERC_TRY_VOID(s_.unroll(rows[1]));
    // Sums are no lanes', but what they add up comes in vectors all the same.
    if (width > 1) {
      PRUNERC_TRY_VOID(reduces ? s_.unroll(columns.back()) : s_.vectorize(columns.back()));
    }
    shared_.push_back({stage.block, rows, columns[lanes]});
    return {};
  }

  // One variable along the rows, perhaps one along their elements, which alone may be reduced.
  bool fits(const ir::Block& block, const Places& places) const {
    const std::size_t rank = grid_.size() + (places[kColumn] ? 1 : 0);
    if (block.writes.size() != 1 || !places[kRow] || block.iters.size() != rank) return false;
    for (std::size_t i = 0; i < rank; ++i) {
      if (block.iters[i].kind != ir::IterKind::kSpatial && i != places[kColumn]) return false;
    }
    return true;
  }

  // A block that is read behind the kernel moves under no loop of its readers: its own loops over blocks of the grid
  // become the kernel's. Returns the loops of its variables, as compute_at does.
  Result<std::vector<LoopId>> join(const ChainStage& stage) {
    const BlockFacts facts = facts_of(s_, stage.block);
    std::vector<LoopId> loops(facts.block->iters.size()), order;
    for (const auto* axes : {&facts.spatial, &facts.reduce}) {
      for (const Axis& axis : *axes) loops[static_cast<std::size_t>(axis.iter)] = axis.loop;
    }
    const auto [row, column] = stage.places;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (i != row && i != column) order.push_back(loops[i]);
    }
    order.push_back(loops[*row]);
    if (column) order.push_back(loops[*column]);
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY(const std::vector<LoopId> parts, s_.split(loops[*row], {Int(-1), rows_.rows}));
    loops[*row] = parts[1];
    order[grid_.size() - 1] = parts[0];
    const std::vector<BlockId> all = s_.blocks();
    const bool is_last = std::find(all.begin(), all.end(), rows_.second) <
                         std::find(all.begin(), all.end(), stage.block);
    for (std::size_t i = 0; i < grid_.size(); ++i) {
      std::vector<LoopId> both = {order[i], grid_[i]};
      if (is_last) std::swap(both[0], both[1]);
      PRUNERC_TRY(grid_[i], s_.merge(both));
    }
    return loops;
  }

  schedule::Schedule& s_;
  const ChainRows& rows_;
  std::vector<LoopId>& grid_;
  std::vector<SharedRows> shared_;
};

}  // namespace

std::vector<ChainStage> find_stages(const schedule::Schedule& schedule, const MatrixProduct& first,
                                    const MatrixProduct& second) {
  return Finder(schedule, first, second).run();
}

Result<void> share_stages(SketchContext& context, const std::vector<ChainStage>& stages,
                          const ChainRows& rows, std::vector<LoopId>* grid) {
  Sharing sharing(context, rows, grid);
  for (std::size_t i = stages.size(); i-- > 0;) PRUNERC_TRY_VOID(sharing.run(stages[i]));
  return sharing.finish();
}

}  // namespace prunerc::search
