#include "search/algebra/axis.h"

#include "search/algebra/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace prunerc::search::algebra {
namespace {

struct Cut {
  AxisId axis = 0;
  int64_t size = 0;  // of the inner part
};

void look(const Subscript& s, const Spec& spec, std::optional<Cut>* found) {
  for (const Digit& d : s.digits) {
    if (d.lower == 1 && d.extent == 0) continue;
    const int64_t size = d.lower > 1 ? d.lower : d.extent;
    const int64_t extent = spec.axes[static_cast<std::size_t>(d.axis)].extent;
    if (!*found && extent % size == 0 && size > 1 && size < extent) *found = Cut{d.axis, size};
  }
}

std::optional<Cut> first_cut(const Spec& spec, std::span<const TermId> roots) {
  std::optional<Cut> found;
  for (const TermId id : reachable(spec.graph, roots)) {
    const Term& t = spec.graph[id];
    for (const Subscript& s : t.index) look(s, spec, &found);
    for (const Condition& c : t.conditions) look(c.value, spec, &found);
  }
  return found;
}

struct Pair {
  TermId first = 0, second = 0;            // the sums
  TermId shared = 0, left = 0, right = 0;  // operands
};

bool is_sum_of_product(const TermGraph& graph, TermId id) {
  const Term& t = graph[id];
  if (t.op != TermOp::kReduce || t.kind != ir::ExprKind::kAdd) return false;
  const Term& product = graph[t.args[0]];
  return product.op == TermOp::kBinary && product.kind == ir::ExprKind::kMul;
}

std::optional<Pair> find_pair(const TermGraph& graph, std::span<const TermId> roots) {
  std::vector<TermId> sums;
  for (const TermId id : reachable(graph, roots)) {
    if (is_sum_of_product(graph, id)) sums.push_back(id);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    for (std::size_t j = i + 1; j < sums.size(); ++j) {
      const Term& a = graph[sums[i]];
      const Term& b = graph[sums[j]];
      const std::vector<TermId>& x = graph[a.args[0]].args;
      const std::vector<TermId>& y = graph[b.args[0]].args;
      for (std::size_t s = 0; s < 4; ++s) {
        const TermId left = x[1 - s / 2], right = y[1 - s % 2];
        const bool are_alike = x[s / 2] == y[s % 2] && a.bound == b.bound &&
                               graph[left].free == graph[right].free && left != right;
        if (are_alike) return Pair{sums[i], sums[j], x[s / 2], left, right};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

bool split_axis(Spec& spec, AxisId axis, int64_t size) {
  const Axis whole = spec.axes[static_cast<std::size_t>(axis)];
  const auto high = static_cast<AxisId>(spec.axes.size());
  const Subscript parts = plain_subscript(high) * size + plain_subscript(high + 1);
  const AxisMap map = {{axis, parts}};
  std::vector<Output> outputs = spec.outputs;
  for (Output& output : outputs) {
    output.value = replace_axes(spec.graph, output.value, map);
    if (output.value < 0) return false;
    for (Subscript& s : output.index) {
      if (!replace_axes(Subscript(s), map, &s)) return false;
    }
  }
  spec.outputs = std::move(outputs);
  for (const auto& [id, named] : spec.names) {
    const TermId part = replace_axes(spec.graph, id, map);
    if (part >= 0) spec.labels.try_emplace(part, spec.program.buffer(named.buffer).name);
  }
  // What it was divided by stays in the small program.
  const int64_t parts_of_twin = std::min<int64_t>(2, whole.extent / size);
  spec.axes[static_cast<std::size_t>(axis)].twin = parts_of_twin * size;
  add_axis(spec, whole.name + "_o", whole.extent / size, parts_of_twin);
  add_axis(spec, whole.name + "_i", size, size);
  return true;
}

std::string factor_axes(Spec& spec) {
  std::string words;
  for (int round = 0; round < 8 && spec.axes.size() + 2 <= kMaxAxes; ++round) {
    std::vector<TermId> roots;
    for (const Output& output : spec.outputs) roots.push_back(output.value);
    const std::optional<Cut> cut = first_cut(spec, roots);
    if (!cut || !split_axis(spec, cut->axis, cut->size)) break;
    words += fmt::format("{}{} = ({}, {})", words.empty() ? "" : ", ",
                         spec.axes[static_cast<std::size_t>(cut->axis)].name,
                         spec.axes[spec.axes.size() - 2].name, spec.axes.back().name);
  }
  return words;
}

std::string join_products(Spec& spec) {
  std::vector<TermId> roots;
  for (const Output& output : spec.outputs) roots.push_back(output.value);
  const std::optional<Pair> pair = find_pair(spec.graph, roots);
  if (!pair || spec.axes.size() >= kMaxAxes) return "";
  const std::string words = fmt::format("{} and {} side by side", words_of(spec, pair->left),
                                        words_of(spec, pair->right));
  TermGraph& graph = spec.graph;
  const Term sum = graph[pair->first];
  const AxisId side = add_axis(spec, "side", 2, 2);
  const TermId operand = graph.select(graph.mask({{Condition::Kind::kZero, plain_subscript(side)}}),
                                      pair->left, pair->right);
  const TermId both = graph.reduce(ir::ExprKind::kAdd, sum.bound, graph.mul(pair->shared, operand));
  std::vector<AxisId> dims = {side};
  for (AxisId axis = 0; axis < side; ++axis) {
    if ((sum.free & axis_bit(axis)) != 0) dims.push_back(axis);
  }
  const std::size_t num_outputs = spec.outputs.size();
  const ir::BufferId buffer = add_buffer(spec, "both", dims, both);
  std::unordered_map<TermId, TermId> with;
  for (const int64_t i : {0, 1}) {
    std::vector<Subscript> index = {Subscript{{}, i}};
    for (std::size_t d = 1; d < dims.size(); ++d) index.push_back(plain_subscript(dims[d]));
    with[i == 0 ? pair->first : pair->second] = graph.load(buffer, index, sum.dtype);
  }
  for (std::size_t i = 0; i < num_outputs; ++i) {
    spec.outputs[i].value = replace_terms(graph, spec.outputs[i].value, with);
  }
  return words;
}

}  // namespace prunerc::search::algebra
