// Rule "chain": contractions and rows between them under common outer loops.
//
//     for h, t { for s, e { A[h,t,s] += Q[h,t,e] * K[h,s,e] } }                       attention
//     for h, t { for s { softmax of A's row } }
//     for h, t { for e, s { O[h,t,e] += P[h,t,s] * V[h,s,e] } }
//   ~>
//     for h * t0 parallel {                              a task: some rows, from first to last
//       for s0, t1, e { for t2, s1 unrolled { for s2 vectorized { A } } }             as rule "tile"
//       for t1, t2 { for s { softmax } }                                              as rule "rows"
//       for e0, t1, s { for t2, e1 unrolled { for e2 vectorized { O } } }
//     }
//
// What the rows of a task are made of stays in the cache, and threads wait for each other once.
// Every block is scheduled by its own rule with the common axes cut alike; then the nests are
// merged, loop by loop, which is where dependences are asked about.
#include "search/space/sketch_rule/chain.h"

#include "ir/equal.h"
#include "search/space/sketch_rule/tile_axes.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;

constexpr int64_t kPreferredRows = 6;
constexpr int64_t kPreferredTiles = 4;

// By common axis: the number of a block's iteration variable, -1 if the block does not have it.
using Places = std::vector<int>;

int iter_of(const ir::Block& block, ir::Expr subscript) {
  const auto* var = subscript.as<ir::Var>();
  for (std::size_t i = 0; var != nullptr && i < block.iters.size(); ++i) {
    const ir::IterVar& iter = block.iters[i];
    if (iter.var->id == var->id && iter.kind == ir::IterKind::kSpatial) return static_cast<int>(i);
  }
  return -1;
}

// The producer's variables that one reader's axes come from: both subscripts are the variable.
Places through(const ir::Block& producer, const ir::Block& reader, const Places& of_reader) {
  const ir::Access& write = producer.writes[0];
  Places found(of_reader.size(), -1);
  bool first = true;
  for (const ir::Access& read : reader.reads) {
    if (read.buffer != write.buffer) continue;
    for (std::size_t axis = 0; axis < found.size(); ++axis) {
      int place = -1;
      for (std::size_t d = 0; d < read.region.size(); ++d) {
        const int from = iter_of(reader, read.region[d].min);
        if (from < 0 || from != of_reader[axis]) continue;
        place = iter_of(producer, write.region[d].min);
      }
      const bool same =
          place >= 0 &&
          ir::structural_equal(producer.iters[static_cast<std::size_t>(place)].extent,
                               reader.iters[static_cast<std::size_t>(of_reader[axis])].extent);
      if (!same) place = -1;
      found[axis] = first || found[axis] == place ? place : -1;
    }
    first = false;
  }
  return found;
}

// The reader's variables that a producer's axes go to: the other way round.
Places onward(const ir::Block& producer, const Places& of_producer, const ir::Block& reader) {
  const ir::Access& write = producer.writes[0];
  Places found(of_producer.size(), -1);
  for (const ir::Access& read : reader.reads) {
    if (read.buffer != write.buffer) continue;
    for (std::size_t axis = 0; axis < found.size(); ++axis) {
      for (std::size_t d = 0; d < read.region.size(); ++d) {
        const int from = iter_of(producer, write.region[d].min);
        if (from < 0 || from != of_producer[axis]) continue;
        const int to = iter_of(reader, read.region[d].min);
        const bool same =
            to >= 0 && ir::structural_equal(producer.iters[static_cast<std::size_t>(from)].extent,
                                            reader.iters[static_cast<std::size_t>(to)].extent);
        if (same) found[axis] = to;
      }
    }
    break;
  }
  return found;
}

void keep_common(const Places& other, Places* places) {
  for (std::size_t axis = 0; axis < places->size(); ++axis) {
    if (other[axis] != (*places)[axis]) (*places)[axis] = -1;
  }
}

// The groups from the first contraction to the last one, and the axes that all of their blocks have.
class ChainFinder {
 public:
  ChainFinder(const schedule::Schedule& schedule, const std::vector<Group>& groups)
      : schedule_(schedule), program_(schedule.program()), groups_(groups) {}

  std::optional<std::pair<std::size_t, std::size_t>> span() const {
    std::vector<std::size_t> all, shared;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].contracts()) continue;
      all.push_back(i);
      if (shares_rows(groups_[i].blocks[0])) shared.push_back(i);
    }
    // A sum of what tiles have found, each times its correction, has no rows: it stands behind a chain.
    if (shared.size() >= 2) all = shared;
    if (all.size() < 2) return std::nullopt;
    return std::pair(all.front(), all.back() + 1);
  }

  // By block; empty if there is no axis that all have.
  std::map<BlockId, Chain::Axes> axes(std::size_t first, std::size_t last) {
    std::vector<BlockId> blocks;
    for (std::size_t i = first; i < last; ++i) {
      blocks.insert(blocks.end(), groups_[i].blocks.begin(), groups_[i].blocks.end());
    }
    if (!find_places(blocks)) return {};
    std::vector<BlockId> contractions;
    for (std::size_t i = first; i < last; ++i) {
      if (groups_[i].contracts()) contractions.push_back(groups_[i].blocks[0]);
    }
    std::vector<std::size_t> common;
    std::optional<std::size_t> row;  // the innermost that all contractions share operands along
    for (std::size_t axis = 0; axis < places_.begin()->second.size(); ++axis) {
      const bool everywhere = std::all_of(places_.begin(), places_.end(), [&](const auto& entry) {
        return entry.second[axis] >= 0;
      });
      if (!everywhere || std::any_of(contractions.begin(), contractions.end(),
                                     [&](BlockId id) { return is_vector_axis(id, axis); })) {
        continue;
      }
      common.push_back(axis);
      const bool shared = std::all_of(contractions.begin(), contractions.end(),
                                      [&](BlockId id) { return shares_along(id, axis); });
      if (shared) row = axis;
    }
    std::map<BlockId, Chain::Axes> found;
    if (common.empty()) return found;
    for (const auto& [id, places] : places_) {
      Chain::Axes& of_block = found[id];
      for (const std::size_t axis : common) {
        if (axis != row) of_block.outer.push_back(places[axis]);
      }
      if (row) of_block.row = places[*row];
    }
    return found;
  }

 private:
  // Whether an operand is the same along an axis that is no vector.
  bool shares_rows(BlockId id) const {
    const ir::Block& block = *find_block(program_, id);
    return std::any_of(block.iters.begin(), block.iters.end(), [&](const ir::IterVar& i) {
      return i.kind == ir::IterKind::kSpatial && ir::constant_value(i.extent) != 1 &&
             !is_contiguous(program_, block.writes[0], i.var->id) && is_reused(block, i.var->id);
    });
  }

  const ir::IterVar& iter(BlockId id, std::size_t axis) const {
    const int place = places_.at(id)[axis];
    return find_block(program_, id)->iters[static_cast<std::size_t>(place)];
  }

  bool is_vector_axis(BlockId id, std::size_t axis) const {
    const ir::Block& block = *find_block(program_, id);
    return is_contiguous(program_, block.writes[0], iter(id, axis).var->id) &&
           ir::constant_value(iter(id, axis).extent) != 1;
  }

  bool shares_along(BlockId id, std::size_t axis) const {
    const std::optional<int64_t> extent = ir::constant_value(iter(id, axis).extent);
    return extent && *extent > 1 && is_reused(*find_block(program_, id), iter(id, axis).var->id);
  }

  // From the last block, whose spatial variables are the axes, backwards; then forwards for blocks that
  // are read behind the chain alone, as a tile's maximum is.
  bool find_places(const std::vector<BlockId>& blocks) {
    std::vector<BlockId> unread;
    for (std::size_t b = blocks.size(); b-- > 0;) {
      const ir::Block* block = find_block(program_, blocks[b]);
      if (block->writes.size() != 1 || !facts_of(schedule_, blocks[b]).trivial) return false;
      std::optional<Places> places;
      for (const BlockId reader : schedule_.consumers(blocks[b])) {
        const auto of_reader = places_.find(reader);
        if (of_reader == places_.end()) continue;
        const Places from = through(*block, *find_block(program_, reader), of_reader->second);
        if (!places) places = from;
        keep_common(from, &*places);
      }
      if (b + 1 == blocks.size()) {
        if (places) return false;
        places.emplace();
        for (std::size_t i = 0; i < block->iters.size(); ++i) {
          if (block->iters[i].kind == ir::IterKind::kSpatial)
            places->push_back(static_cast<int>(i));
        }
      }
      if (places) {
        places_[blocks[b]] = *places;
      } else {
        unread.insert(unread.begin(), blocks[b]);
      }
    }
    return std::all_of(unread.begin(), unread.end(), [&](BlockId id) { return follow(id); });
  }

  // Gives a block the axes of what it reads in the chain.
  bool follow(BlockId id) {
    std::optional<Places> places;
    for (const auto& [producer, of_producer] : places_) {
      const std::vector<BlockId> readers = schedule_.consumers(producer);
      if (std::find(readers.begin(), readers.end(), id) == readers.end()) continue;
      const Places from =
          onward(*find_block(program_, producer), of_producer, *find_block(program_, id));
      if (!places) places = from;
      for (std::size_t axis = 0; axis < from.size(); ++axis) {
        if (from[axis] >= 0 && (*places)[axis] < 0) (*places)[axis] = from[axis];
        if (from[axis] >= 0 && from[axis] != (*places)[axis]) return false;
      }
    }
    if (places) places_[id] = *places;
    return places.has_value();
  }

  const schedule::Schedule& schedule_;
  const ir::Program& program_;
  const std::vector<Group>& groups_;
  std::map<BlockId, Places> places_;
};

// The loops at `depth` of the nests that the blocks stand in, in the program's order.
std::vector<LoopId> loops_at(const SketchContext& context, std::size_t depth,
                             const std::vector<BlockId>& of_blocks) {
  std::vector<LoopId> wanted, found;
  for (const BlockId id : of_blocks) {
    const std::vector<LoopId> loops = context.schedule.loops_of(id);
    if (depth < loops.size()) wanted.push_back(loops[depth]);
  }
  for (const BlockId id : context.schedule.blocks()) {
    const std::vector<LoopId> loops = context.schedule.loops_of(id);
    if (depth >= loops.size()) continue;
    const bool mine = std::find(wanted.begin(), wanted.end(), loops[depth]) != wanted.end();
    if (mine && (found.empty() || found.back() != loops[depth])) found.push_back(loops[depth]);
  }
  return found;
}

Result<LoopId> merge_at(SketchContext& context, std::size_t depth,
                        const std::vector<BlockId>& blocks) {
  const std::vector<LoopId> loops = loops_at(context, depth, blocks);
  if (loops.size() == 1) return loops[0];
  return context.schedule.merge(loops);
}

// The stages of a row, row by row, as far as they may be.
void merge_rows(SketchContext& context, std::size_t depth, const std::vector<BlockId>& stages) {
  for (std::size_t at = depth; at < depth + 2; ++at) {
    if (!merge_at(context, at, stages).ok()) return;
  }
}

int64_t extent_of(const ir::Block& block, int iter) {
  return ir::constant_value(block.iters[static_cast<std::size_t>(iter)].extent).value_or(1);
}

// How many rows there are to share out among threads.
int64_t num_tasks(const ir::Block& block, const Chain::Axes& axes) {
  int64_t total = axes.row < 0 ? 1 : extent_of(block, axes.row);
  for (const int iter : axes.outer) total *= extent_of(block, iter);
  return total;
}

Result<void> apply_chain(SketchContext& context, const Variant& variant,
                         const std::vector<Group>& groups, Chain* chain) {
  const auto& [some, axes] = *chain->axes.begin();
  const ir::Block& block = *find_block(context.program(), some);
  if (num_tasks(block, axes) < std::max<int64_t>(2, context.target.num_threads)) {
    return error(Diag::kUnsupported, std::string("a chain of so few rows"));
  }
  if (axes.row >= 0) {
    chain->factors =
        context.cover(extent_of(block, axes.row), {kPreferredTiles, kPreferredRows}, kMaxRows);
  }
  context.chain = chain;
  std::vector<BlockId> all;
  for (const Group& group : groups) {
    all.insert(all.end(), group.blocks.begin(), group.blocks.end());
    if (group.contracts() && !tile_group(context, group, variant)) {
      return error(Diag::kUnsupported, std::string("a chain with this contraction"));
    }
    if (group.contracts()) continue;
    for (const BlockId id : group.blocks) PRUNERC_TRY_VOID(schedule_rows(context, {id}, variant));
  }
  context.chain = nullptr;
  const std::size_t depth = chain->depth();
  std::vector<LoopId> tasks;
  for (std::size_t at = 0; at < depth; ++at) {
    PRUNERC_TRY(const LoopId merged, merge_at(context, at, all));
    tasks.push_back(merged);
  }
  for (const Group& group : groups) {
    if (!group.contracts() && !chain->factors.empty()) merge_rows(context, depth, group.blocks);
  }
  PRUNERC_TRY_VOID(parallelize(context, tasks));
  return {};
}

}  // namespace

bool Chain::Axes::is_outer(int iter) const {
  return std::find(outer.begin(), outer.end(), iter) != outer.end();
}

std::vector<Axis> Chain::Axes::outer_of(const BlockFacts& facts) const {
  std::vector<Axis> found;
  for (const int iter : outer) {
    for (const Axis& axis : facts.spatial) {
      if (axis.iter == iter) found.push_back(axis);
    }
  }
  return found;
}

Result<void> schedule_chain(SketchContext& context, const Variant& variant,
                            std::vector<Group>* groups) {
  ChainFinder finder(context.schedule, *groups);
  const auto span = finder.span();
  Chain chain;
  if (span) chain.axes = finder.axes(span->first, span->second);
  if (chain.axes.empty()) return error(Diag::kUnsupported, std::string("a chain in this program"));
  const auto begin = groups->begin() + static_cast<std::ptrdiff_t>(span->first);
  const auto end = groups->begin() + static_cast<std::ptrdiff_t>(span->second);
  const schedule::Schedule before = context.schedule.fork();
  const Result<void> done = apply_chain(context, variant, {begin, end}, &chain);
  context.chain = nullptr;
  if (!done) {
    context.schedule = before;
    return done;
  }
  groups->erase(begin, end);
  return {};
}

}  // namespace prunerc::search
