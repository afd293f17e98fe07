#include "search/algebra/cascade.h"

#include "search/algebra/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

namespace prunerc::search::algebra {
namespace {

using ir::ExprKind;

/// Shorter axes stay whole: their rows fit everywhere.
constexpr int64_t kShortestAxis = 512;
/// Longer ones fit a CPU's second level worse and are dearer to be compared.
constexpr int64_t kWantedTile = 256;

std::vector<TermId> roots_of(const Spec& spec) {
  std::vector<TermId> roots;
  for (const Output& output : spec.outputs) roots.push_back(output.value);
  return roots;
}

bool is_constant(const TermGraph& graph, TermId id, double value) {
  return graph[id].op == TermOp::kConst && graph[id].value == value;
}

// Whether elements may be minus infinity because somebody wants them hidden, by a constant or by a mask
// that is added: a tile of nothing else has no maximum. Sums of products are taken to be finite.
bool may_be_masked(const TermGraph& graph, TermId id) {
  const Term& t = graph[id];
  if (t.op == TermOp::kLoad || is_constant(graph, id, -HUGE_VAL)) return true;
  if (t.op == TermOp::kReduce && t.kind == ExprKind::kAdd) return false;
  return std::any_of(t.args.begin(), t.args.end(),
                     [&](TermId arg) { return may_be_masked(graph, arg); });
}

/// exp(x - maximum), where the maximum is that of x.
struct Shifted {
  TermId x = 0, maximum = 0;
};

std::optional<Shifted> shifted(const TermGraph& graph, TermId id) {
  const Term& t = graph[id];
  if (t.op != TermOp::kCall || t.intrinsic != ir::Intrinsic::kExp) return std::nullopt;
  const Term& difference = graph[t.args[0]];
  if (difference.op != TermOp::kBinary || difference.kind != ExprKind::kSub) return std::nullopt;
  const Shifted found = {difference.args[0], difference.args[1]};
  const Term& maximum = graph[found.maximum];
  if (maximum.op != TermOp::kReduce || maximum.kind != ExprKind::kMax) return std::nullopt;
  if (maximum.args[0] != found.x) return std::nullopt;
  return may_be_masked(graph, found.x) ? std::nullopt : std::optional(found);
}

// The longest axis that such a maximum is over; -1: there is none.
AxisId find_axis(const Spec& spec) {
  AxisId best = -1;
  const auto extent = [&](AxisId axis) { return spec.axes[static_cast<std::size_t>(axis)].extent; };
  for (const TermId id : reachable(spec.graph, roots_of(spec))) {
    const std::optional<Shifted> found = shifted(spec.graph, id);
    if (!found) continue;
    for (AxisId axis = 0; axis < static_cast<AxisId>(spec.axes.size()); ++axis) {
      if ((spec.graph[found->maximum].bound & axis_bit(axis)) == 0) continue;
      if (best < 0 || extent(axis) > extent(best)) best = axis;
    }
  }
  return best;
}

class Cascade {
 public:
  Cascade(Spec& spec, AxisId tiles, AxisId inner)
      : graph_(spec.graph), tiles_(axis_bit(tiles)), inner_(axis_bit(inner)) {
    for (const TermId id : reachable(graph_, roots_of(spec))) ids_.push_back(id);
  }

  // Whether a sum got rid of its correction.
  bool run(Spec& spec) {
    for (const TermId id : ids_) correct(id);
    for (Output& output : spec.outputs) {
      output.value = rewrite(replace_terms(graph_, output.value, with_));
    }
    return num_sums_ > 0;
  }

 private:
  // exp(x - m) becomes exp(x - n)*exp(n - m), with n the maximum of the tile.
  void correct(TermId id) {
    const std::optional<Shifted> found = shifted(graph_, id);
    if (!found) return;
    const Term maximum = graph_[found->maximum];  // a copy: the graph grows
    if ((maximum.bound & tiles_) == 0 || (maximum.bound & inner_) == 0) return;
    const TermId own = graph_.reduce(ExprKind::kMax, maximum.bound & ~tiles_, maximum.args[0]);
    const TermId whole = graph_.reduce(ExprKind::kMax, tiles_, own);
    const TermId correction = graph_.call(ir::Intrinsic::kExp, graph_.sub(own, whole));
    corrections_.insert(correction);
    with_[id] = graph_.mul(graph_.call(ir::Intrinsic::kExp, graph_.sub(found->x, own)), correction);
    with_[found->maximum] = whole;
  }

  struct Factors {
    std::vector<TermId> up, down;  // multiplied, and divided by
  };

  void flatten(TermId id, bool inverse, Factors* out) {
    const Term t = graph_[id];
    const bool is_float = ir::is_float(t.dtype);
    if (is_float && t.op == TermOp::kBinary &&
        (t.kind == ExprKind::kMul || t.kind == ExprKind::kDiv)) {
      flatten(t.args[0], inverse, out);
      flatten(t.args[1], inverse != (t.kind == ExprKind::kDiv), out);
      return;
    }
    // What is nothing under a mask is nothing without the factors that the tile shares, too.
    if (is_float && !inverse && t.op == TermOp::kSelect && is_constant(graph_, t.args[2], 0)) {
      Factors inside, rest;
      flatten(t.args[1], false, &inside);
      for (const TermId f : inside.up) (is_shared(f) ? out->up : rest.up).push_back(f);
      for (const TermId f : inside.down) (is_shared(f) ? out->down : rest.down).push_back(f);
      out->up.push_back(graph_.select(t.args[0], product(rest, t.dtype), t.args[2]));
      return;
    }
    (inverse ? out->down : out->up).push_back(id);
  }

  bool is_shared(TermId id) const { return (graph_[id].free & inner_) == 0; }

  TermId product(const Factors& factors, ir::DType dtype) {
    TermId made = -1;
    for (const TermId f : factors.up) made = made < 0 ? f : graph_.mul(made, f);
    if (made < 0) made = graph_.constant(1, dtype);
    for (const TermId f : factors.down) made = graph_.div(made, f);
    return made;
  }

  TermId rewrite(TermId id) {
    if (const auto at = done_.find(id); at != done_.end()) return at->second;
    std::vector<TermId> args = graph_[id].args;
    for (TermId& arg : args) arg = rewrite(arg);
    TermId made = args.empty() ? id : graph_.with_args(id, args);
    const Term t = graph_[made];
    const bool is_sum = t.op == TermOp::kReduce && t.kind == ExprKind::kAdd &&
                        (t.bound & tiles_) != 0 && (t.bound & inner_) != 0;
    if (is_sum) made = summed(made, t);
    return done_[id] = made;
  }

  TermId summed(TermId id, const Term& sum) {
    Factors all, own, of_tile, of_whole;
    flatten(sum.args[0], false, &all);
    const bool is_corrected = std::any_of(all.up.begin(), all.up.end(),
                                          [&](TermId f) { return corrections_.count(f) > 0; });
    if (!is_corrected) return id;
    const AxisSet inside = sum.bound & ~tiles_;
    const auto part = [&](TermId f) -> Factors& {
      if ((graph_[f].free & inside) != 0) return own;
      return (graph_[f].free & tiles_) != 0 ? of_tile : of_whole;
    };
    for (const TermId f : all.up) part(f).up.push_back(f);
    for (const TermId f : all.down) part(f).down.push_back(f);
    ++num_sums_;
    of_tile.up.push_back(graph_.reduce(ExprKind::kAdd, inside, product(own, sum.dtype)));
    const TermId whole = graph_.reduce(ExprKind::kAdd, tiles_, product(of_tile, sum.dtype));
    of_whole.up.insert(of_whole.up.begin(), whole);
    return product(of_whole, sum.dtype);
  }

  TermGraph& graph_;
  AxisSet tiles_, inner_;
  std::vector<TermId> ids_;
  std::unordered_map<TermId, TermId> with_, done_;
  std::set<TermId> corrections_;
  int num_sums_ = 0;
};

}  // namespace

std::string cascade(Spec& spec, int64_t tile) {
  const AxisId axis = find_axis(spec);
  if (axis < 0 || spec.axes.size() + 2 > kMaxAxes) return "";
  const Axis whole = spec.axes[static_cast<std::size_t>(axis)];
  if (tile < 2 || whole.extent <= tile || whole.extent % tile != 0) return "";
  Spec cut = spec;
  if (!split_axis(cut, axis, tile)) return "";
  const auto inner = static_cast<AxisId>(cut.axes.size() - 1);
  if (!Cascade(cut, inner - 1, inner).run(cut)) return "";
  spec = std::move(cut);
  return fmt::format("{} in tiles of {}, each with its own maximum", whole.name, tile);
}

int64_t cascade_tile(const Spec& spec) {
  const AxisId axis = find_axis(spec);
  const int64_t extent = axis < 0 ? 0 : spec.axes[static_cast<std::size_t>(axis)].extent;
  if (extent < kShortestAxis) return 0;
  const auto distance = [](int64_t d) {
    return std::fabs(std::log(static_cast<double>(d) / static_cast<double>(kWantedTile)));
  };
  int64_t best = 0;
  for (int64_t d = kWantedTile / 4; d <= kWantedTile * 4 && d <= extent / 2; ++d) {
    if (extent % d == 0 && (best == 0 || distance(d) < distance(best))) best = d;
  }
  return best;
}

}  // namespace prunerc::search::algebra
