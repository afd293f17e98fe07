#include "schedule/twin/twin.h"

#include "ir/tensor/index_map.h"
#include "ir/visit.h"
#include "schedule/primitive.h"
#include "schedule/schedule.h"
#include "schedule/twin/narrow.h"
#include "schedule/twin/shrink.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

namespace prunerc::schedule {
namespace {

using ir::LoopId;

constexpr int64_t kUncapped = std::numeric_limits<int64_t>::max();
/// Times the cost of a twin: what a base may cost that is its own for want of a smaller one.
constexpr int64_t kUnshrunk = 8;
/// Values that an index map is asked for to see what it does to a loop.
constexpr int64_t kMostProbed = int64_t{1} << 16;

// How far sizes are cut down: sampled ones to `tile`, loops that nothing splits to `unsplit`.
struct Caps {
  int64_t tile = kUncapped;
  int64_t outer = 4;
  int64_t unsplit = 8;
  bool is_narrow = false;  // for a trace with narrower products, narrow.h
};
constexpr Caps kLevels[] = {{kUncapped, 4, 8}, {kUncapped, 2, 4}, {8, 4, 8}, {4, 4, 8},
                            {3, 4, 4},         {3, 2, 4},         {2, 2, 4}};
constexpr Caps kNarrowLevel = {2, 2, 4, true};
/// Columns of such products. Eight are the fewest that there are; of 32 all threads fetch some, and
/// tails keep their alignment.
constexpr int64_t kNarrowColumns[] = {8, 32};
/// Rows that the copy engine brings are multiples of 16 bytes long: tails of so many elements.
constexpr int64_t kTailUnit = 16;

// At most `cap`, and a multiple of the powers of two that the extent is a multiple of, so that
// fused loops are divided as they were.
int64_t small_like(int64_t extent, int64_t cap) {
  if (extent <= cap) return extent;
  if (extent % 2 != 0) return cap - 1;
  return extent % 4 != 0 && cap > 2 ? cap - 2 : cap;
}

// The decision with smaller sizes, none of them 1 that was not.
Decision cut(const DecisionSpace& space, const Decision& decision, const Caps& caps) {
  if (caps.tile == kUncapped && space.primitive == PrimitiveKind::kSampleCategorical)
    return decision;
  Decision out = decision;
  if (space.primitive == PrimitiveKind::kSampleCategorical) {
    const auto now = static_cast<std::size_t>(decision[0]);
    if (now >= space.values.size() || space.values[now] <= caps.tile) return out;
    // The largest value that is allowed; the smallest that is not 1 if none is. Divisors of what it
    // was come first: they divide what it divided.
    bool has_divisor = false;
    for (std::size_t i = 0; i < space.values.size(); ++i) {
      const int64_t best = space.values[static_cast<std::size_t>(out[0])];
      const int64_t value = space.values[i];
      if (value < 2 || value >= space.values[now]) continue;
      const bool divides = space.values[now] % value == 0;
      if (has_divisor && !divides) continue;
      const bool better = best > caps.tile ? value < best : value > best && value <= caps.tile;
      if (better || (divides && !has_divisor && value <= caps.tile))
        out[0] = static_cast<int64_t>(i);
      has_divisor = has_divisor || (divides && value <= caps.tile);
    }
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool outermost = i == 0 && space.primitive != PrimitiveKind::kSampleCoveringTile;
    out[i] = std::min(out[i], outermost ? caps.outer : caps.tile);
  }
  const bool covers = space.primitive == PrimitiveKind::kSampleCoveringTile;
  return covers ? repair_decision(space, out) : out;
}

// What a trace does to the extents of loops: follows splits of base loops and of their parts. The
// twin's own trace has the same steps, perhaps with smaller numbers.
class Tiling {
 public:
  Tiling(const ir::Program& base, const Trace& trace, const Trace& own, const Caps& caps)
      : caps_(caps) {
    ir::walk(
        base.root(),
        [&](ir::Stmt s) {
          const ir::Loop* loop = s.as<ir::Loop>();
          const ir::IntImm* extent = loop != nullptr ? loop->extent.as<ir::IntImm>() : nullptr;
          if (extent != nullptr) {
            base_.push_back(loop->id);
            parts_[loop->id].extent = extent->value;
            loop_of_[loop->var->id] = loop->id;
          }
          if (const ir::Block* block = s.as<ir::Block>()) add_block(*block);
          return true;
        },
        [](ir::Expr) {});
    int decision = 0;
    for (std::size_t i = 0; i < trace.instructions.size(); ++i) {
      const Instruction& step = trace.instructions[i];
      if (step.is_sample()) {
        sample(step, trace.decision_space(decision), own.decision_space(decision),
               trace.decisions[static_cast<std::size_t>(decision)]);
        ++decision;
      } else if (step.primitive == PrimitiveKind::kProduct) {
        multiply(step);
      } else if (step.primitive == PrimitiveKind::kSplit) {
        split(step, own.instructions[i]);
      } else if (step.primitive == PrimitiveKind::kTransformBlockLayout) {
        take_apart(step);
      } else if (step.primitive == PrimitiveKind::kNarrowReduction) {
        replace_loop(step);
      }
    }
  }

  const std::vector<Decision>& decisions() const { return decisions_; }
  /// Extents of the base loops that are split.
  LoopExtents wanted() const {
    LoopExtents out;
    for (const LoopId id : base_) {
      const Part& part = parts_.at(id);
      if (is_split(part)) out[id] = small_extent(part);
    }
    return out;
  }
  /// Those of the others.
  LoopExtents others() const {
    LoopExtents out;
    for (const LoopId id : base_) {
      const Part& part = parts_.at(id);
      if (!is_split(part)) out[id] = small_extent(part);
    }
    return out;
  }

 private:
  struct Part {
    int64_t extent = 1;
    int64_t small = 0;                 // what a factor becomes; 0: as the caps say
    int64_t tile = 1, small_tile = 1;  // product of the given factors, before and after
    bool fixed = false;                // a number in an index map
    int64_t inner = 1;                 // iterations of the loops that became one with it
    std::vector<LoopId> children;
  };
  struct Value {
    int64_t value = 1, small = 1;
  };

  bool is_split(const Part& part) const {
    return part.fixed || part.children.size() > 1 ||
           (part.children.size() == 1 && is_split(parts_.at(part.children[0])));
  }

  void sample(const Instruction& step, const DecisionSpace& space, const DecisionSpace& own,
              const Decision& decision) {
    const Decision small = cut(own, decision, caps_);
    decisions_.push_back(small);
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      const ValueId* id = std::get_if<ValueId>(&step.outputs[i]);
      if (id == nullptr) continue;
      const bool is_choice = space.primitive == PrimitiveKind::kSampleCategorical;
      const auto at = [&](const DecisionSpace& from, const Decision& d) {
        return is_choice ? from.values[static_cast<std::size_t>(d[0])] : i < d.size() ? d[i] : 1;
      };
      values_[id->value] = {at(space, decision), at(own, small)};
    }
  }

  // With two tiles at most an odd number of them would be one.
  int64_t small_outer(int64_t extent) const {
    if (caps_.is_narrow && extent % 2 != 0) return std::min<int64_t>(extent, 3);
    return small_like(extent, caps_.outer);
  }

  Value value_of(const Int& item) {
    return item.ref.valid() ? values_[item.ref.value] : Value{item.value, item.value};
  }

  void multiply(const Instruction& step) {
    const ValueId* id = step.outputs.empty() ? nullptr : std::get_if<ValueId>(&step.outputs[0]);
    if (id == nullptr) return;
    Value product;
    for (const Int& factor : std::get<std::vector<Int>>(step.operands[0])) {
      const Value v = value_of(factor);
      product = {product.value * v.value, product.small * v.small};
    }
    values_[id->value] = product;
  }

  void split(const Instruction& step, const Instruction& own) {
    const auto found = parts_.find(std::get<LoopId>(step.operands[0]));
    if (found == parts_.end()) return;  // of a loop that some other primitive made
    Part whole = found->second;
    std::vector<Value> factors;
    int inferred = -1;
    const auto& given = std::get<std::vector<Int>>(step.operands[1]);
    const auto& given_own = std::get<std::vector<Int>>(own.operands[1]);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const Value v = {value_of(given[i]).value, value_of(given_own[i]).small};
      if (v.value == -1) {
        inferred = static_cast<int>(factors.size());
      } else {
        whole.tile *= v.value;
        whole.small_tile *= v.small;
      }
      factors.push_back(v);
    }
    if (inferred >= 0) {
      const int64_t rest = (whole.extent + whole.tile - 1) / whole.tile;
      factors[static_cast<std::size_t>(inferred)] = {rest, small_outer(rest)};
    }
    for (std::size_t i = 0; i < factors.size() && i < step.outputs.size(); ++i) {
      const LoopId child = std::get<LoopId>(step.outputs[i]);
      Part part;
      part.extent = factors[i].value;
      part.small = factors[i].small;
      parts_[child] = part;
      whole.children.push_back(child);
    }
    found->second = whole;
  }

  // Which loops a block's variables are; none if one is no loop.
  void add_block(const ir::Block& block) {
    std::vector<LoopId> loops;
    for (const ir::IterVar& iter : block.iters) {
      const ir::Var* var = iter.binding.as<ir::Var>();
      const auto at = var != nullptr ? loop_of_.find(var->id) : loop_of_.end();
      if (at == loop_of_.end()) return;
      loops.push_back(at->second);
    }
    loops_of_[block.id] = std::move(loops);
  }

  // What the map takes apart by constants (v // 8, v % 8) is a loop with parts, of which remainders
  // keep their sizes, since the map's text has them. Of loops that it makes one (h*7 + w) all but
  // the outermost keep theirs. The twin of another map is left to the primitive.
  void take_apart(const Instruction& step) {
    const auto block = loops_of_.find(std::get<ir::BlockId>(step.operands[0]));
    const Result<ir::IndexMap> map = ir::IndexMap::parse(std::get<std::string>(step.operands[1]));
    if (block == loops_of_.end() || !map.ok()) return;
    const std::vector<LoopId> from = block->second;
    std::vector<LoopId> to;
    for (const Output& output : step.outputs) {
      if (const LoopId* loop = std::get_if<LoopId>(&output)) to.push_back(*loop);
    }
    if (map->num_inputs() != static_cast<int>(from.size())) return;
    if (map->num_outputs() != static_cast<int>(to.size())) return;
    std::vector<std::size_t> source;  // of each output, the outermost if it is a sum
    for (int o = 0; o < map->num_outputs(); ++o) {
      const std::vector<std::size_t> used = used_by(*map, o, from);
      if (used.empty()) return;
      source.push_back(used[0]);
      for (std::size_t u = 1; u < used.size(); ++u) keep_inner(from[used[0]], from[used[u]]);
    }
    // A variable that is not taken apart keeps its extent, however the map orders its values.
    const auto is_whole = [&](std::size_t i) {
      return parts_[from[i]].inner == 1 && std::count(source.begin(), source.end(), i) == 1;
    };
    for (const std::size_t i : source) {
      if (!is_whole(i) && parts_[from[i]].extent > kMostProbed) return;
    }
    block->second = to;
    for (std::size_t o = 0; o < to.size(); ++o) {
      Part& whole = parts_[from[source[o]]];
      if (whole.inner > 1) {
        parts_[to[o]].extent = whole.extent * whole.inner;
        whole.children.push_back(to[o]);
        continue;
      }
      const auto value_at = [&](int64_t x) {
        std::vector<int64_t> at(from.size(), 0);
        at[source[o]] = x;
        return map->at(at)[o];
      };
      Part part;
      if (is_whole(source[o])) part.extent = whole.extent;
      for (int64_t x = 0; x < whole.extent && !is_whole(source[o]); ++x)
        part.extent = std::max(part.extent, value_at(x) + 1);
      part.fixed = value_at(2 * whole.extent) < part.extent;
      part.small = small_like(part.extent, std::count(source.begin(), source.end(), source[o]) > 1
                                               ? caps_.outer
                                               : caps_.unsplit);
      if (part.fixed) whole.tile *= part.extent;
      whole.small_tile = whole.tile;
      whole.children.push_back(to[o]);
      parts_[to[o]] = part;
    }
  }

  // The loops that an output of the map is made of. One of extent 1 adds nothing to others.
  std::vector<std::size_t> used_by(const ir::IndexMap& map, int output,
                                   const std::vector<LoopId>& from) const {
    std::vector<std::size_t> used;
    for (int i = 0; i < map.num_inputs(); ++i) {
      if (map.uses(output, i)) used.push_back(static_cast<std::size_t>(i));
    }
    const auto is_unit = [&](std::size_t i) { return parts_.at(from[i]).extent == 1; };
    if (!std::all_of(used.begin(), used.end(), is_unit)) std::erase_if(used, is_unit);
    return used;
  }

  void keep_inner(LoopId outermost, LoopId inner) {
    parts_[inner].fixed = true;
    parts_[outermost].inner *= parts_[inner].extent;
  }

  // The loop of one variable is another one, shorter by what stays the same in a twin.
  void replace_loop(const Instruction& step) {
    const auto block = loops_of_.find(std::get<ir::BlockId>(step.operands[0]));
    const auto iter = static_cast<std::size_t>(std::get<Int>(step.operands[1]).value);
    const LoopId* loop = step.outputs.empty() ? nullptr : std::get_if<LoopId>(&step.outputs[0]);
    if (block == loops_of_.end() || loop == nullptr || iter >= block->second.size()) return;
    parts_[*loop] = parts_[block->second[iter]];
    block->second[iter] = *loop;
  }

  int64_t small_extent(const Part& part) const {
    if (part.fixed) return part.extent;
    if (part.children.empty()) {
      return part.small > 0 ? part.small : small_like(part.extent, caps_.unsplit);
    }
    int64_t product = 1;
    for (const LoopId child : part.children) product *= small_extent(parts_.at(child));
    if (part.inner > 1) {
      const int64_t rows = (product + part.inner - 1) / part.inner;
      return std::clamp<int64_t>(rows, std::min<int64_t>(2, part.extent), part.extent);
    }
    // A tail stays a tail: of the same length where the tile has its old size.
    const int64_t tail = part.extent % part.tile;
    if (tail != 0 && part.small_tile > 1) {
      const int64_t most = part.small_tile - 1;
      int64_t left =
          std::clamp(tail * part.small_tile / part.tile, std::min({tail, most, int64_t{2}}), most);
      if (caps_.is_narrow && tail % kTailUnit == 0 && part.small_tile > kTailUnit) {
        const int64_t units = (left + kTailUnit - 1) / kTailUnit;
        left = std::min(units * kTailUnit, most / kTailUnit * kTailUnit);
      }
      product = product - part.small_tile + left;
    }
    return std::clamp<int64_t>(product, 1, part.extent);
  }

  Caps caps_;
  std::vector<LoopId> base_;
  std::unordered_map<LoopId, Part> parts_;
  std::unordered_map<ir::VarId, LoopId> loop_of_;                  // of the base's loop variables
  std::unordered_map<ir::BlockId, std::vector<LoopId>> loops_of_;  // by the block's variables
  std::unordered_map<int32_t, Value> values_;
  std::vector<Decision> decisions_;
};

// `own`: the trace that the twin is made by, see Tiling.
Result<Twin> make_small(const ir::Program& base, const Trace& trace, const Trace& own,
                        const Caps& caps) {
  const Tiling tiling(base, trace, own, caps);
  Twin twin;
  PRUNERC_TRY(twin.base, shrink(base, tiling.wanted(), tiling.others()));
  ReplayOptions options;
  options.decisions = tiling.decisions();
  options.misfit = Misfit::kRepair;
  options.around = &twin.around;
  PRUNERC_TRY(const Schedule replayed, replay(twin.base, own, options));
  twin.scheduled = replayed.program();
  return twin;
}

// The program is its own twin.
Result<Twin> make_whole(const ir::Program& base, const Trace& trace) {
  Twin twin;
  twin.base = base;
  twin.is_true_shape = true;
  ReplayOptions options;
  options.around = &twin.around;
  PRUNERC_TRY(const Schedule replayed, replay(base, trace, options));
  twin.scheduled = replayed.program();
  return twin;
}

}  // namespace

Result<Twin> make_twin(const ir::Program& base, const Trace& trace, const TwinOptions& options) {
  if (cost_of(base) <= options.max_cost) {
    return make_whole(base, trace);
  }
  const auto cost_of_twin = [](const Twin& twin) {
    return cost_of(twin.base) + cost_of(twin.scheduled);
  };
  if (Result<Twin> twin = make_small(base, trace, trace, kLevels[0]);
      twin.ok() && cost_of_twin(*twin) <= 2 * options.max_cost) {
    return twin;
  }
  for (const int64_t columns : kNarrowColumns) {
    const std::optional<Trace> narrow = narrowed(base, trace, columns);
    if (!narrow) break;
    Result<Twin> twin = make_small(base, trace, *narrow, kNarrowLevel);
    if (twin.ok()) return twin;
  }
  Result<Twin> best = error(Diag::kUnsupported, "a twin of this shape");
  int64_t fewest = kUncapped;
  for (const Caps& caps : kLevels) {
    Result<Twin> twin = make_small(base, trace, trace, caps);
    if (!twin.ok()) {
      if (!best.ok()) best = std::move(twin);
      continue;
    }
    const int64_t cost = cost_of_twin(*twin);
    if (cost >= fewest) continue;
    fewest = cost;
    best = std::move(twin);
    if (cost <= 2 * options.max_cost) break;
  }
  // Tiles that cut every extent, or index maps that name them, leave nothing to shrink.
  if (!best.ok() && cost_of(base) <= kUnshrunk * options.max_cost) {
    return make_whole(base, trace);
  }
  return best;
}

}  // namespace prunerc::schedule
