#include "ir/arith/loop_index.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "ir/support/rng.h"
#include "ir/visit.h"
#include "schedule/trace/factor.h"
#include "search/space/sketch_rule/rule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace prunerc::search {

using ir::Expr;
using schedule::Int;

Int SketchContext::pick(std::vector<int64_t> values, int64_t preferred) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() == 1) return Int(values[0]);
  std::size_t at = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i] - preferred) < std::abs(values[at] - preferred)) at = i;
  }
  const int64_t chosen = values[at];
  const std::vector<int64_t> weights(values.size(), 1);
  Result<Int> made =
      schedule.decide_categorical(std::move(values), weights, static_cast<int64_t>(at));
  return made.ok() ? *made : Int(chosen);
}

namespace {

// How much more than the extent tiles of these sizes cover, at least 1.
double waste(int64_t extent, int64_t tile) {
  return static_cast<double>(ceil_div(extent, tile) * tile) / static_cast<double>(extent);
}

/// Fewer elements of padding outweigh being near the preferred size by this.
constexpr double kWasteWeight = 12;

// The size near `preferred`, in ratio, that wastes little.
int64_t size_near(int64_t extent, int64_t preferred, int64_t most) {
  int64_t best = 1;
  double best_cost = std::numeric_limits<double>::infinity();
  preferred = std::clamp<int64_t>(preferred, 1, most);
  // Tiles of thousands waste little; those nearby do.
  constexpr int64_t kMostTried = 4096;
  const int64_t low = std::max<int64_t>({1, preferred / 2, preferred - kMostTried / 2});
  const int64_t high = std::min({most, 2 * preferred, low + kMostTried});
  for (int64_t size = low; size <= high; ++size) {
    const double ratio = static_cast<double>(size) / static_cast<double>(preferred);
    const double cost = std::abs(std::log2(ratio)) + kWasteWeight * (waste(extent, size) - 1);
    if (cost < best_cost) {
      best_cost = cost;
      best = size;
    }
  }
  return best;
}

}  // namespace

std::vector<Int> SketchContext::cover(int64_t extent, std::vector<int64_t> preferred,
                                      int64_t max_innermost) {
  // From the innermost level outwards: what is left is the number of tiles.
  int64_t rest = extent;
  for (std::size_t i = preferred.size(); i-- > 0;) {
    const bool capped = i + 1 == preferred.size() && max_innermost > 0;
    preferred[i] = size_near(rest, preferred[i], capped ? std::min(rest, max_innermost) : rest);
    rest = ceil_div(rest, preferred[i]);
  }
  const int levels = static_cast<int>(preferred.size()) + 1;
  if (!schedule::fits_covering(extent, levels, max_innermost, preferred)) {
    std::fill(preferred.begin(), preferred.end(), 1);
  }
  std::vector<Int> factors = {Int(-1)};
  if (extent > 1) {
    Result<std::vector<Int>> inner =
        schedule.decide_covering_tile(extent, levels, max_innermost, preferred);
    if (inner.ok()) {
      factors.insert(factors.end(), inner->begin(), inner->end());
      return factors;
    }
  }
  factors.insert(factors.end(), preferred.begin(), preferred.end());
  return factors;
}

bool SketchContext::keeps(ir::BlockId block) const {
  return std::find(keep.begin(), keep.end(), block) != keep.end();
}

const ir::Block* find_block(const ir::Program& program, ir::BlockId id) {
  return ir::LoopIndex(program).block(id);
}

bool is_reduction(const ir::Block& block) {
  return std::any_of(block.iters.begin(), block.iters.end(),
                     [](const ir::IterVar& v) { return v.kind != ir::IterKind::kSpatial; });
}

BlockFacts facts_of(const schedule::Schedule& schedule, ir::BlockId id) {
  const ir::LoopIndex index(schedule.program());
  BlockFacts facts;
  facts.block = index.block(id);
  if (facts.block == nullptr) return facts;
  const std::vector<const ir::Loop*> loops = index.enclosing_loops(id);
  facts.trivial = facts.block->guard.defined() ? false : true;
  std::size_t num_bound = 0;
  for (std::size_t i = 0; i < facts.block->iters.size(); ++i) {
    const ir::IterVar& iter = facts.block->iters[i];
    const auto* extent = iter.extent.as<ir::IntImm>();
    const auto* var = iter.binding.as<ir::Var>();
    Axis axis;
    axis.iter = static_cast<int>(i);
    axis.var = iter.var->id;
    axis.extent = extent != nullptr ? extent->value : 0;
    for (const ir::Loop* loop : loops) {
      if (var != nullptr && loop->var->id == var->id) axis.loop = loop->id;
    }
    const bool constant = iter.binding.as<ir::IntImm>() != nullptr && axis.extent == 1;
    if (extent == nullptr || (!axis.loop.valid() && !constant) ||
        iter.kind == ir::IterKind::kOpaque) {
      facts.trivial = false;
    }
    if (!axis.loop.valid()) continue;
    ++num_bound;
    (iter.kind == ir::IterKind::kSpatial ? facts.spatial : facts.reduce).push_back(axis);
  }
  if (num_bound != loops.size()) facts.trivial = false;
  for (const auto& accesses : {facts.block->reads, facts.block->writes}) {
    for (const ir::Access& access : accesses) {
      const ir::Buffer& buffer = schedule.program().buffer(access.buffer);
      if (ir::is_float(buffer.dtype) || ir::is_int(buffer.dtype)) {
        facts.element_bytes = std::max(facts.element_bytes, ir::byte_size(buffer.dtype));
      }
    }
  }
  return facts;
}

bool mentions(const ir::Access& access, ir::VarId var) {
  return std::any_of(access.region.begin(), access.region.end(), [&](const ir::Range& r) {
    return mentions(r.min, var) || mentions(r.extent, var);
  });
}

bool has_variable_subscripts(const ir::Access& access) {
  return std::all_of(access.region.begin(), access.region.end(), [](const ir::Range& range) {
    return range.min.as<ir::Var>() != nullptr || range.min.as<ir::IntImm>() != nullptr;
  });
}

int64_t step_of(Expr index, ir::VarId var) {
  constexpr int64_t kNotAffine = 1 << 20;
  if (const auto* v = index.as<ir::Var>()) return v->id == var ? 1 : 0;
  if (!mentions(index, var)) return 0;
  const ir::BinaryNode* binary = ir::as_binary(index);
  if (binary == nullptr) return kNotAffine;
  const int64_t lhs = step_of(binary->lhs, var);
  const int64_t rhs = step_of(binary->rhs, var);
  switch (index.kind()) {
    case ir::ExprKind::kAdd: return lhs + rhs;
    case ir::ExprKind::kSub: return lhs - rhs;
    case ir::ExprKind::kMul: {
      const auto* factor = binary->rhs.as<ir::IntImm>();
      if (factor != nullptr) return lhs * factor->value;
      const auto* left = binary->lhs.as<ir::IntImm>();
      return left != nullptr ? rhs * left->value : kNotAffine;
    }
    // A clipped subscript is what it is inside.
    case ir::ExprKind::kMin:
    case ir::ExprKind::kMax: return lhs != 0 ? lhs : rhs;
    default: return kNotAffine;
  }
}

// X[.., v // 7, v % 7]: the last subscripts together are v.
bool is_taken_apart(const ir::Access& access, ir::VarId var) {
  int64_t below = 1;  // steps of v in the dimensions so far
  std::size_t d = access.region.size();
  for (bool is_whole = false; !is_whole; --d) {
    if (d == 0) return false;
    Expr e = access.region[d - 1].min;
    int64_t size = 0;
    if (const auto* mod = e.as<ir::FloorMod>(); mod != nullptr) {
      size = ir::constant_value(mod->rhs).value_or(0);
      if (size < 1) return false;
      e = mod->lhs;
    }
    if (const auto* div = e.as<ir::FloorDiv>(); div != nullptr && below > 1) {
      if (ir::constant_value(div->rhs) != below) return false;
      e = div->lhs;
    } else if (below > 1) {
      return false;
    }
    const auto* v = e.as<ir::Var>();
    if (v == nullptr || v->id != var) return false;
    is_whole = size == 0;
    below *= size;
  }
  return std::none_of(access.region.begin(), access.region.begin() + static_cast<std::ptrdiff_t>(d),
                      [&](const ir::Range& range) { return mentions(range.min, var); });
}

bool is_contiguous(const ir::Access& access, ir::VarId var) {
  if (access.region.empty()) return false;
  if (is_taken_apart(access, var)) return true;
  for (std::size_t d = 0; d + 1 < access.region.size(); ++d) {
    if (mentions(access.region[d].min, var)) return false;
  }
  return step_of(access.region.back().min, var) == 1;
}

ir::Access without_unit_tail(const ir::Program& program, const ir::Access& access) {
  const std::span<const ir::Expr> shape = program.buffer(access.buffer).shape;
  std::size_t rank = access.region.size();
  while (rank > 1 && ir::constant_value(shape[rank - 1]) == 1) --rank;
  return {access.buffer, access.region.first(rank)};
}

std::ptrdiff_t num_long_dims(const ir::Program& program, const ir::Access& access) {
  const std::span<const ir::Expr> shape = program.buffer(access.buffer).shape;
  return std::count_if(shape.begin(), shape.end(),
                       [](Expr extent) { return ir::constant_value(extent) != 1; });
}

bool is_contiguous(const ir::Program& program, const ir::Access& access, ir::VarId var) {
  return is_contiguous(without_unit_tail(program, access), var);
}

int64_t power_of_two(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

std::vector<int64_t> up_to(std::vector<int64_t> values, int64_t limit) {
  std::vector<int64_t> kept;
  for (const int64_t value : values) {
    if (value <= limit || kept.empty()) kept.push_back(value);
  }
  return kept;
}

Result<ir::LoopId> vectorize_loop(SketchContext& context, ir::LoopId loop, int64_t extent,
                                  int64_t lanes, int64_t preferred_unroll) {
  const int64_t width = extent >= lanes ? lanes : power_of_two(extent);
  constexpr int64_t kMaxUnroll = 16;
  std::vector<Int> factors = context.cover(ceil_div(extent, width), {preferred_unroll}, kMaxUnroll);
  factors.push_back(Int(width));
  PRUNERC_TRY(const std::vector<ir::LoopId> parts, context.schedule.split(loop, factors));
  PRUNERC_TRY_VOID(context.schedule.vectorize(parts[2]));
  PRUNERC_TRY_VOID(context.schedule.unroll(parts[1]));
  return parts[0];
}

bool reads_contiguously(const ir::Program& program, const ir::Block& block, ir::VarId var) {
  return std::any_of(block.reads.begin(), block.reads.end(),
                     [&](const ir::Access& access) { return is_contiguous(program, access, var); });
}

Result<ir::BlockId> split_sum(SketchContext& context, ir::LoopId loop, Int unroll, int64_t lanes) {
  PRUNERC_TRY(const std::vector<ir::LoopId> parts,
              context.schedule.split(loop, {Int(-1), unroll, Int(lanes)}));
  PRUNERC_TRY(const ir::LoopId inner, context.schedule.fuse({parts[1], parts[2]}));
  const ir::LoopIndex index(context.program());
  int rank = 0;
  for (const ir::Block* block : index.blocks_under(inner)) {
    rank = static_cast<int>(block->writes[0].region.size());
  }
  return context.schedule.rfactor(inner, rank);
}

void combine_lanes(SketchContext& context, ir::BlockId block, int64_t lanes) {
  constexpr int64_t kGroup = 4;
  if (lanes < 2 * kGroup) return;
  const schedule::Schedule before = context.schedule.fork();
  const auto apply = [&]() -> Result<void> {
    const std::vector<ir::LoopId> loops = context.schedule.loops_of(block);
    PRUNERC_TRY(const ir::BlockId grouped, split_sum(context, loops.back(), Int(1), kGroup));
    const std::vector<ir::LoopId> inner = context.schedule.loops_of(grouped);
    PRUNERC_TRY_VOID(context.schedule.vectorize(inner.back()));
    PRUNERC_TRY_VOID(context.schedule.unroll(inner[inner.size() - 2]));
    return context.schedule.unroll(context.schedule.loops_of(block).back());
  };
  if (!apply()) context.schedule = before;
}

Result<ir::LoopId> parallelize(SketchContext& context, std::vector<ir::LoopId> loops) {
  if (context.target.num_threads <= 1 || loops.empty()) {
    return loops.empty() ? ir::LoopId() : loops.back();
  }
  const ir::LoopId innermost = loops.back();
  for (; !loops.empty(); loops.pop_back()) {
    schedule::Schedule attempt = context.schedule.fork();
    ir::LoopId target = loops[0];
    if (loops.size() > 1) {
      Result<ir::LoopId> fused = attempt.fuse(loops);
      if (!fused) continue;
      target = *fused;
    }
    if (!attempt.parallel(target)) continue;
    context.schedule = std::move(attempt);
    return loops.back() == innermost ? target : innermost;
  }
  return innermost;
}

namespace {

// Same axes and extents, each element of the result read where the reader stands: broadcasts,
// transpositions and paddings would need other tiles.
bool reads_as_written(const schedule::Schedule& schedule, const ir::Block& writer,
                      const ir::Block& reader) {
  ir::IrBuilder b(schedule.program());
  // An axis of extent 1 may stand in the subscripts of one and not of the other.
  ir::VarMap values;
  const auto axes_of = [&](const ir::Block& block) {
    std::vector<const ir::IterVar*> axes;
    for (const ir::IterVar& iter : block.iters) {
      if (ir::constant_value(iter.extent) == 1)
        values[iter.var->id] = b.int_imm(0);
      else if (iter.kind == ir::IterKind::kSpatial)
        axes.push_back(&iter);
    }
    return axes;
  };
  const std::vector<const ir::IterVar*> written = axes_of(writer), read = axes_of(reader);
  if (written.size() != read.size()) return false;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const std::optional<int64_t> extent = ir::constant_value(written[i]->extent);
    if (!extent || extent != ir::constant_value(read[i]->extent)) return false;
    values[read[i]->var->id] = Expr(written[i]->var);
  }
  const ir::Access& result = writer.writes[0];
  return std::all_of(reader.reads.begin(), reader.reads.end(), [&](const ir::Access& access) {
    if (access.buffer != result.buffer) return true;
    for (std::size_t d = 0; d < access.region.size(); ++d) {
      const Expr at = ir::substitute(b, access.region[d].min, values);
      const Expr from = ir::substitute(b, result.region[d].min, values);
      if (!ir::structural_equal(at, from)) return false;
    }
    return true;
  });
}

}  // namespace

Result<ir::BlockId> write_by_variable(SketchContext& context, ir::BlockId id) {
  const ir::Block* block = find_block(context.program(), id);
  std::string from, to;
  for (std::size_t i = 0; i < block->iters.size(); ++i) {
    const std::string name = "a" + std::to_string(i);
    from += (i > 0 ? ", " : "") + name;
    const bool written = mentions(block->writes[0], block->iters[i].var->id);
    if (written) to += (to.empty() ? "" : ", ") + name;
  }
  return context.schedule.reindex_cache_write(id, 0, ir::Scope::kGlobal,
                                              "(" + from + ") -> (" + to + ")");
}

ir::BlockId epilogue_of(const schedule::Schedule& schedule, ir::BlockId block) {
  const std::vector<ir::BlockId> readers = schedule.consumers(block);
  if (readers.size() != 1) return {};
  const ir::Block* reader = find_block(schedule.program(), readers[0]);
  const ir::Block* writer = find_block(schedule.program(), block);
  if (reader == nullptr || writer == nullptr || is_reduction(*reader)) return {};
  const BlockFacts facts = facts_of(schedule, readers[0]);
  return facts.trivial && reads_as_written(schedule, *writer, *reader) ? readers[0] : ir::BlockId();
}

}  // namespace prunerc::search
