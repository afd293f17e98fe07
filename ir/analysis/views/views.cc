#include "ir/analysis/views/views.h"

#include "ir/analysis/views/stages.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/query.h"

#include <algorithm>
#include <optional>

namespace prunerc::ir {
namespace {

/// target[iters in order] = source[f(iters)].
struct View {
  const Store* target;
  const Load* source;
};

std::optional<View> view_of(const Stage& stage) {
  const Store* store = stage.block.body.as<Store>();
  if (store == nullptr || stage.block.init.defined() || stage.reduces()) return std::nullopt;
  const Load* load = store->value.as<Load>();
  if (load == nullptr || load->buffer == store->buffer) return std::nullopt;
  if (store->indices.size() != stage.iters.size()) return std::nullopt;
  for (std::size_t i = 0; i < stage.iters.size(); ++i) {
    const Var* var = store->indices[i].as<Var>();
    if (var == nullptr || var->id != stage.iters[i].var->id) return std::nullopt;
  }
  const bool follows_data =
      std::any_of(load->indices.begin(), load->indices.end(), [](Expr e) { return has_load(e); });
  if (follows_data) return std::nullopt;
  return View{store, load};
}

int64_t num_divisions(std::span<const Expr> indices) {
  int64_t count = 0;
  for (Expr index : indices) {
    walk(index, [&](Expr part) {
      count += part.kind() == ExprKind::kFloorDiv || part.kind() == ExprKind::kFloorMod;
      return true;
    });
  }
  return count;
}

// Where the view's element at `indices` is in its source.
std::vector<Expr> source_of(IrBuilder& b, const Stage& view, const Load& source,
                            std::span<const Expr> indices, const Stage& reader) {
  VarMap map;
  for (std::size_t i = 0; i < view.iters.size(); ++i) map[view.iters[i].var->id] = indices[i];
  VarRanges ranges;
  for (const IterVar& iter : reader.iters) ranges.bind(iter.var, iter.extent);
  std::vector<Expr> out;
  for (Expr index : source.indices) {
    const Expr moved = substitute(b, index, map);
    out.push_back(index.as<Var>() != nullptr ? moved : simplify(b, moved, ranges));
  }
  return out;
}

bool adds_divisions(Stages& stages, const Stage& view, const View& parts) {
  for (const Stage& reader : stages.list) {
    if (&reader == &view) continue;
    for (const Stmt part : {reader.block.init, reader.block.body}) {
      for (const Load* load : loads_of(part)) {
        if (load->buffer != parts.target->buffer) continue;
        const std::vector<Expr> moved =
            source_of(stages.b, view, *parts.source, load->indices, reader);
        if (num_divisions(moved) > num_divisions(load->indices)) return true;
      }
    }
  }
  return false;
}

// What reads the view reads its source.
bool sink_into_readers(Stages& stages, std::size_t at, const View& parts) {
  const BufferId target = parts.target->buffer, source = parts.source->buffer;
  if (stages.b.buffer(target).role != BufferRole::kIntermediate) return false;
  if (stages.num_writers(target) != 1 || stages.num_writers(source) > 1) return false;
  if (adds_divisions(stages, stages.list[at], parts)) return false;
  const Stage view = stages.list[at];
  stages.list.erase(stages.list.begin() + static_cast<std::ptrdiff_t>(at));
  stages.is_changed = true;
  move_elements(stages, target, [&](std::span<const Expr> indices, const Stage& reader) {
    return Element{source, source_of(stages.b, view, *parts.source, indices, reader)};
  });
  return true;
}

// For each iteration variable of the view the dimension of the source that it runs along; nullopt if
// the view does more than permute, add and drop dimensions of one element.
std::optional<std::vector<std::optional<std::size_t>>> permutation_of(const IrBuilder& b,
                                                                      const Stage& view,
                                                                      const Load& source) {
  std::vector<std::optional<std::size_t>> out(view.iters.size());
  const Buffer& buffer = b.buffer(source.buffer);
  for (std::size_t d = 0; d < source.indices.size(); ++d) {
    const std::optional<int64_t> extent = constant_value(buffer.shape[d]);
    if (!extent) return std::nullopt;
    const Var* var = source.indices[d].as<Var>();
    if (var == nullptr) {
      if (*extent != 1 || constant_value(source.indices[d]) != 0) return std::nullopt;
      continue;
    }
    const std::optional<std::size_t> iter = view.spatial_in(source.indices[d]);
    if (!iter || out[*iter] || constant_value(view.iters[*iter].extent) != extent)
      return std::nullopt;
    out[*iter] = d;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i] && constant_value(view.iters[i].extent) != 1) return std::nullopt;
  }
  return out;
}

// What writes the view's source writes the view.
bool sink_into_writer(Stages& stages, std::size_t at, const View& parts) {
  const BufferId target = parts.target->buffer, source = parts.source->buffer;
  if (stages.b.buffer(source).role != BufferRole::kIntermediate) return false;
  if (stages.num_writers(target) != 1 || stages.num_writers(source) != 1) return false;
  if (stages.writer(source) >= at) return false;
  const auto dims = permutation_of(stages.b, stages.list[at], *parts.source);
  if (!dims) return false;
  stages.list.erase(stages.list.begin() + static_cast<std::ptrdiff_t>(at));
  stages.is_changed = true;
  move_elements(stages, source, [&](std::span<const Expr> indices, const Stage&) {
    Element out{target, {}};
    for (const std::optional<std::size_t>& dim : *dims)
      out.indices.push_back(dim ? indices[*dim] : stages.b.int_imm(0));
    return out;
  });
  return true;
}

bool absorb_one(Stages& stages) {
  for (std::size_t i = 0; i < stages.list.size(); ++i) {
    const std::optional<View> view = view_of(stages.list[i]);
    if (!view) continue;
    if (sink_into_readers(stages, i, *view) || sink_into_writer(stages, i, *view)) return true;
  }
  return false;
}

}  // namespace

Program absorb_views(const Program& program) {
  std::optional<Stages> stages = stages_of(program);
  if (!stages) return program;
  while (absorb_one(*stages)) {
  }
  order_stages(*stages);
  return stages->is_changed ? program_of(*stages) : program;
}

std::size_t count_views(const Program& program) {
  const std::optional<Stages> stages = stages_of(program);
  if (!stages) return 0;
  return static_cast<std::size_t>(
      std::count_if(stages->list.begin(), stages->list.end(),
                    [](const Stage& stage) { return view_of(stage).has_value(); }));
}

}  // namespace prunerc::ir
