// Rule "fuse axes": neighbouring axes that share a tile's vectors become one, for its rows.
//
//     block [h: S(7), w: S(7), co: S(512), ..] { Y[h, w, co] += X[h + kh, w + kw, ci] * F[..] }
//   ~>
//     block [v: S(49), co: S(512), ..] { Y[v, co] += X[v // 7 + kh, v % 7 + kw, ci] * F[..] }
//
// 49 rows make tasks and register tiles of any height, 7 rows of 7 do not. Where all subscripts
// name the axes side by side (a product with several row axes, a convolution of 1x1), v // 7 and
// v % 7 meet again in the address and nothing is lost: every sketch does that. Elsewhere each row
// of a tile has a pointer of its own, which its reductions do not move: that is a variant.
//
// Pixels that are themselves the vectors (channels first) become one axis too where a row of them does not
// fill a vector: 7 rows of 7 are seven vectors half empty, 49 pixels are three and one element. So do those of
// an elementwise block that is alone: 28 rows of 28 are 49 whole vectors.
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/query.h"
#include "search/space/sketch_rule/tile_axes.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace prunerc::search {
namespace {

using ir::BlockId;

/// Iteration variables [first, last) of a block.
struct Run {
  std::size_t first = 0, last = 0;
};

int64_t extent_of(const ir::IterVar& iter) { return ir::constant_value(iter.extent).value_or(0); }

const ir::IterVar* iter_of(const ir::Block& block, ir::VarId var) {
  return &*std::find_if(block.iters.begin(), block.iters.end(),
                        [&](const ir::IterVar& iter) { return iter.var->id == var; });
}

// Of the block's variables longer than 1, that one alone.
bool mentions_alone(const ir::Block& block, ir::Expr index, ir::VarId var) {
  return std::all_of(block.iters.begin(), block.iters.end(), [&](const ir::IterVar& iter) {
    return extent_of(iter) == 1 || mentions(index, iter.var->id) == (iter.var->id == var);
  });
}

// The longest run of spatial variables around the tile's row, each of which vectors are shared
// along; nullopt if it is the row alone.
std::optional<Run> find_run(const ir::Program& program, const BlockFacts& facts) {
  const std::optional<TileAxes> axes = find_axes(program, facts);
  if (!axes || !axes->row) return std::nullopt;
  const ir::Block& block = *facts.block;
  const auto fits = [&](std::size_t i) {
    const ir::IterVar& iter = block.iters[i];
    return iter.kind == ir::IterKind::kSpatial && extent_of(iter) > 0 &&
           (extent_of(iter) == 1 || shares_vectors(block, iter.var->id, axes->vector.var));
  };
  Run run{static_cast<std::size_t>(axes->row->iter), static_cast<std::size_t>(axes->row->iter)};
  if (!fits(run.first)) return std::nullopt;
  while (run.first > 0 && fits(run.first - 1)) --run.first;
  while (run.last < block.iters.size() && fits(run.last)) ++run.last;
  while (extent_of(block.iters[run.first]) == 1) ++run.first;
  while (extent_of(block.iters[run.last - 1]) == 1) --run.last;
  return run.last - run.first > 1 ? std::optional(run) : std::nullopt;
}

// Whether every access that moves along the run has a dimension for each of its variables, side by
// side and as long as they are: then its address moves by one stride along the fused one.
bool has_one_stride(const ir::Program& program, const ir::Block& block, const Run& run) {
  const auto fits = [&](const ir::Access& access) {
    std::vector<ir::VarId> vars;
    for (std::size_t i = run.first; i < run.last; ++i) {
      if (extent_of(block.iters[i]) > 1) vars.push_back(block.iters[i].var->id);
    }
    const std::span<const ir::Expr> shape = program.buffer(access.buffer).shape;
    const auto moves = [&](std::size_t d) {
      return std::any_of(vars.begin(), vars.end(),
                         [&](ir::VarId var) { return mentions(access.region[d].min, var); });
    };
    // Those of extent 1 stand between nobody, unless a condition lets the run move along them.
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (ir::constant_value(shape[d]) != 1 || moves(d)) dims.push_back(d);
    }
    const auto first = std::find_if(dims.begin(), dims.end(), moves);
    if (first == dims.end()) return true;
    if (std::count_if(first, dims.end(), moves) != std::ssize(vars)) return false;
    if (dims.end() - first < std::ssize(vars)) return false;
    for (std::size_t i = 0; i < vars.size(); ++i) {
      const std::size_t dim = first[static_cast<std::ptrdiff_t>(i)];
      const ir::Expr index = access.region[dim].min;
      if (step_of(index, vars[i]) != 1 || !mentions_alone(block, index, vars[i])) return false;
      const std::optional<int64_t> size = ir::constant_value(shape[dim]);
      if (i > 0 && size != extent_of(*iter_of(block, vars[i]))) return false;
    }
    return true;
  };
  return std::all_of(block.reads.begin(), block.reads.end(), fits) &&
         std::all_of(block.writes.begin(), block.writes.end(), fits);
}

// "(a0, a1, a2, a3) -> (a0*7 + a1, a2, a3)"; of the spatial variables alone for an epilogue, which
// has no others.
std::string map_text(const ir::Block& block, const Run& run, bool spatial_only) {
  std::string from, to;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    if (spatial_only && block.iters[i].kind != ir::IterKind::kSpatial) continue;
    const std::string name = "a" + std::to_string(i);
    const bool continues = i > run.first && i < run.last;
    from += (from.empty() ? "" : ", ") + name;
    to += (to.empty() ? "" : continues ? " + " : ", ") + name;
    int64_t stride = 1;
    for (std::size_t j = i + 1; i >= run.first && j < run.last; ++j)
      stride *= extent_of(block.iters[j]);
    if (stride > 1) to += "*" + std::to_string(stride);
  }
  return "(" + from + ") -> (" + to + ")";
}

/// Vectors along an axis lose at most so much of their lanes at its end before its neighbours are taken in.
constexpr double kMaxLostLanes = 0.1;

bool fills_vectors(const SketchContext& context, const BlockFacts& facts, const Axis& axis) {
  const int64_t lanes = context.target.lanes(facts.element_bytes);
  const int64_t padded = ceil_div(axis.extent, lanes) * lanes;
  return static_cast<double>(axis.extent) >= (1 - kMaxLostLanes) * static_cast<double>(padded);
}

// The spatial variables up to the contiguous one that are side by side in all that moves along them:
// nullopt if there are none, or the contiguous one fills a vector. Longer ones stay, although their last
// vector may be half empty: what an epilogue reads is then no longer contiguous.
std::optional<Run> find_vector_run(const SketchContext& context, const BlockFacts& facts) {
  const std::optional<TileAxes> axes = find_axes(context.program(), facts);
  if (!axes) return std::nullopt;
  const bool is_long = axes->vector.extent > context.target.lanes(facts.element_bytes);
  if (is_long || fills_vectors(context, facts, axes->vector)) return std::nullopt;
  const ir::Block& block = *facts.block;
  Run best{static_cast<std::size_t>(axes->vector.iter),
           static_cast<std::size_t>(axes->vector.iter) + 1};
  for (Run run = best; run.first > 0;) {
    --run.first;
    if (block.iters[run.first].kind != ir::IterKind::kSpatial) break;
    if (!has_one_stride(context.program(), block, run)) break;
    best = run;
  }
  while (best.first < best.last && extent_of(block.iters[best.first]) == 1) ++best.first;
  return best.last - best.first > 1 ? std::optional(best) : std::nullopt;
}

Result<void> fuse_axes_of(SketchContext& context, BlockId id, bool windows) {
  const BlockFacts facts = facts_of(context.schedule, id);
  if (facts.block == nullptr || !facts.trivial || facts.block->writes.size() != 1) return {};
  std::optional<Run> run = find_vector_run(context, facts);
  if (!run) {
    run = find_run(context.program(), facts);
    if (!run || (!windows && !has_one_stride(context.program(), *facts.block, *run))) return {};
  }
  const BlockId epilogue = epilogue_of(context.schedule, id);
  const std::string whole = map_text(*facts.block, *run, false);
  const std::string shared = map_text(*facts.block, *run, true);
  PRUNERC_TRY_VOID(context.schedule.transform_block_layout(id, whole));
  if (epilogue.valid()) {
    PRUNERC_TRY_VOID(context.schedule.transform_block_layout(epilogue, shared));
  }
  // The result has a dimension for each variable, so that a tile of it is a box.
  PRUNERC_TRY(const BlockId copy, write_by_variable(context, id));
  return epilogue.valid() ? context.schedule.compute_inline(copy) : Result<void>();
}

bool moves_along(const ir::Block& block, const Run& run, ir::Expr index) {
  for (std::size_t i = run.first; i < run.last; ++i) {
    if (mentions(index, block.iters[i].var->id)) return true;
  }
  return false;
}

// Whether the value that a block stores depends on where along the run it is, as a triangle does: its
// conditions would be of digits.
bool computes_with(const ir::Block& block, const Run& run) {
  const auto* store = block.body.as<ir::Store>();
  bool found = store == nullptr;
  if (found) return true;
  ir::walk(store->value, [&](ir::Expr e) {
    const auto* var = e.as<ir::Var>();
    for (std::size_t i = run.first; i < run.last && var != nullptr; ++i) {
      found = found || block.iters[i].var->id == var->id;
    }
    return e.kind() != ir::ExprKind::kLoad;
  });
  return found;
}

// Whether subscripts that move along the run are its variables, and no clamps or sums of them.
// Variables of extent 1 count as the 0 that they are: a window over all of a map has its corner there.
bool is_plain(const ir::Program& program, const ir::Block& block, const Run& run) {
  ir::IrBuilder b(program);
  ir::VarMap units;
  for (const ir::IterVar& iter : block.iters) {
    if (extent_of(iter) == 1) units[iter.var->id] = b.int_imm(0);
  }
  const auto fits = [&](const ir::Access& access) {
    return std::all_of(access.region.begin(), access.region.end(), [&](const ir::Range& range) {
      if (!moves_along(block, run, range.min)) return true;
      const ir::Expr index = ir::simplify(b, ir::substitute(b, range.min, units), {});
      return index.kind() == ir::ExprKind::kVar || ir::constant_value(index) == 0;
    });
  };
  return std::all_of(block.reads.begin(), block.reads.end(), fits) &&
         std::all_of(block.writes.begin(), block.writes.end(), fits);
}

// Whether what is read along the run are inputs: what other blocks compute goes by its axes.
bool reads_inputs(const ir::Program& program, const ir::Block& block, const Run& run) {
  return std::all_of(block.reads.begin(), block.reads.end(), [&](const ir::Access& access) {
    return program.buffer(access.buffer).role == ir::BufferRole::kInput ||
           std::none_of(access.region.begin(), access.region.end(),
                        [&](const ir::Range& range) { return moves_along(block, run, range.min); });
  });
}

// The variable and the one before it, if they lie side by side in every access. Those of extent 1 are no
// neighbours of a longer one: they go along between two such, and stay where there is only one.
std::optional<Run> with_previous(const ir::Program& program, const ir::Block& block,
                                 const Axis& axis) {
  const auto last = static_cast<std::size_t>(axis.iter);
  std::size_t first = last;
  do {
    if (first == 0 || block.iters[first - 1].kind != block.iters[last].kind) return std::nullopt;
    --first;
  } while (axis.extent > 1 && extent_of(block.iters[first]) == 1);
  const Run run{first, last + 1};
  const bool fits = has_one_stride(program, block, run) && is_plain(program, block, run);
  return fits && !computes_with(block, run) ? std::optional(run) : std::nullopt;
}

Result<void> join(SketchContext& context, const ir::Block& block, const Run& run) {
  const Result<std::vector<ir::LoopId>> joined =
      context.schedule.transform_block_layout(block.id, map_text(block, run, false));
  return joined.ok() ? Result<void>() : joined.error();
}

std::ptrdiff_t num_long(const std::vector<Axis>& axes) {
  return std::count_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.extent > 1; });
}

// Whether sums keep more of the axes that are longer than 1: then the joined one would be among the rows (rows.cc).
bool sums_keep_more(SketchContext& context, std::ptrdiff_t num_axes) {
  const std::vector<BlockId> blocks = context.schedule.blocks();
  return std::any_of(blocks.begin(), blocks.end(), [&](BlockId id) {
    const BlockFacts facts = facts_of(context.schedule, id);
    return !facts.reduce.empty() && num_long(facts.spatial) > num_axes;
  });
}

// Whether an axis of a stage and those behind it may be one: it becomes the only axis, which is cut into tasks
// itself, or rows for all threads are left.
bool leaves_rows(SketchContext& context, const ir::Block& block, const Run& run) {
  int64_t rows = 1;
  std::ptrdiff_t num_before = 0;
  for (std::size_t i = 0; i < run.first; ++i) {
    rows *= extent_of(block.iters[i]);
    num_before += extent_of(block.iters[i]) > 1 ? 1 : 0;
  }
  if (num_before == 0 && context.schedule.blocks().size() == 1) return true;
  return rows >= context.target.num_threads && !sums_keep_more(context, num_before);
}

// The contiguous axis of an elementwise block that nobody reads, if vectors do not divide it; axes of extent 1
// behind it first.
Result<void> join_rows(SketchContext& context, BlockId id) {
  for (;;) {
    const BlockFacts facts = facts_of(context.schedule, id);
    const bool is_last = facts.block != nullptr && facts.trivial && facts.reduce.empty() &&
                         facts.block->writes.size() == 1 && context.schedule.consumers(id).empty();
    if (!is_last || facts.spatial.empty()) return {};
    const ir::Block& block = *facts.block;
    const Axis& axis = facts.spatial.back();
    const bool is_unit = axis.extent == 1;
    const bool fills = axis.extent % context.target.lanes(facts.element_bytes) == 0;
    if (!is_unit && (fills || !is_contiguous(context.program(), block.writes[0], axis.var)))
      return {};
    const std::optional<Run> run = with_previous(context.program(), block, axis);
    if (!run || !reads_inputs(context.program(), block, *run)) return {};
    if (!is_unit && !leaves_rows(context, block, *run)) return {};
    PRUNERC_TRY_VOID(join(context, block, *run));
    if (!is_unit) return {};
  }
}

// A contiguous axis that is summed over and leaves lanes empty: a mean over 7 rows of 7 is one over 49.
// A total keeps an axis for its parts.
Result<void> join_summed(SketchContext& context, BlockId id) {
  for (;;) {
    const BlockFacts facts = facts_of(context.schedule, id);
    if (facts.block == nullptr || !facts.trivial || facts.reduce.empty()) return {};
    if (num_long(facts.spatial) == 0 && num_long(facts.reduce) <= 2) return {};
    Axis axis = facts.reduce.back();
    for (const Axis& reduced : facts.reduce) {
      if (reduced.extent > 1) axis = reduced;
    }
    if (fills_vectors(context, facts, axis) ||
        !reads_contiguously(context.program(), *facts.block, axis.var)) {
      return {};
    }
    const std::optional<Run> run = with_previous(context.program(), *facts.block, axis);
    if (!run) return {};
    PRUNERC_TRY_VOID(join(context, *facts.block, *run));
  }
}

}  // namespace

void join_summed_axes(SketchContext& context, BlockId id) {
  for (;;) {
    const BlockFacts facts = facts_of(context.schedule, id);
    if (facts.block == nullptr || !facts.trivial || facts.reduce.size() < 2) return;
    const Axis& axis = facts.reduce.back();
    if (!reads_contiguously(context.program(), *facts.block, axis.var)) return;
    const std::optional<Run> run = with_previous(context.program(), *facts.block, axis);
    if (!run || !join(context, *facts.block, *run).ok()) return;
  }
}

void fuse_axes(SketchContext& context, bool windows) {
  for (const BlockId id : context.schedule.blocks()) {
    const ir::Block* block = find_block(context.program(), id);
    if (block == nullptr || context.keeps(id)) continue;
    const schedule::Schedule before = context.schedule.fork();
    Result<void> done = {};
    if (!is_reduction(*block)) {
      done = join_rows(context, id);
    } else if (can_tile(context.schedule, id) || can_tile_dot(context.schedule, id)) {
      done = fuse_axes_of(context, id, windows);
    } else {
      done = join_summed(context, id);
    }
    if (!done.ok()) context.schedule = before;
  }
}

}  // namespace prunerc::search
