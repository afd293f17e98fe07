#include "search/algebra/bank_entry.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace prunerc::search::algebra {
namespace {

// exp and its like, as in roofline.h.
constexpr double kSpecialFlops = 10;

using Choices = std::map<int32_t, int>;  // derivation by entry

struct Dag {
  Choices choices;
  std::vector<int32_t> roots;
  std::vector<int32_t> reductions;  // entries that are one, ascending
  OpCost cost;
};

class Extraction {
 public:
  Extraction(std::span<const BankEntry> entries, std::span<const Axis> axes,
             std::span<const Pattern> patterns, TermGraph& graph, std::size_t width)
      : entries_(entries), axes_(axes), patterns_(patterns), graph_(graph), width_(width) {}

  std::vector<BankForm> run(std::span<const std::vector<int32_t>> outputs) {
    std::vector<Dag> all = {Dag{}};
    for (const std::vector<int32_t>& entries : outputs) {
      std::vector<Dag> next;
      for (const Dag& dag : all) {
        for (const int32_t id : entries) {
          std::vector<int32_t> roots = dag.roots;
          roots.push_back(id);
          for (Dag& both : join({dag}, best(id), roots, {})) next.push_back(std::move(both));
        }
      }
      trim(next);
      all = std::move(next);
    }
    std::vector<BankForm> out;
    for (const Dag& dag : all) {
      std::map<int32_t, TermId> made;
      BankForm form{{}, dag.cost.flops, dag.cost.bytes};
      for (const int32_t root : dag.roots) form.outputs.push_back(term_of(root, dag, made));
      out.push_back(std::move(form));
    }
    return out;
  }

 private:
  const BankEntry& entry(int32_t id) const { return entries_[static_cast<std::size_t>(id)]; }
  const Derivation& derivation(int32_t id, int which) const {
    return entry(id).derivations[static_cast<std::size_t>(which)];
  }

  // The cheapest ways to compute an entry. What is being computed is not used on the way.
  const std::vector<Dag>& best(int32_t id) {
    if (const auto at = best_.find(id); at != best_.end()) return at->second;
    if (!open_.insert(id).second) return none_;
    std::vector<Dag> found;
    if (entry(id).leaf >= 0) found.push_back({});
    for (int which = 0; which < static_cast<int>(entry(id).derivations.size()); ++which) {
      const Derivation& d = derivation(id, which);
      const std::vector<Dag> first = best(d.a);
      const std::vector<Dag> second = d.b < 0 ? std::vector<Dag>{Dag{}} : best(d.b);
      for (Dag& dag : join(first, second, {id}, {{id, which}})) found.push_back(std::move(dag));
    }
    trim(found);
    open_.erase(id);
    return best_[id] = std::move(found);
  }

  // Each of `a` with each of `b` and `more`; where they differ, as in `more`, then as in a.
  std::vector<Dag> join(const std::vector<Dag>& a, const std::vector<Dag>& b,
                        const std::vector<int32_t>& roots, const Choices& more) const {
    std::vector<Dag> out;
    for (const Dag& x : a) {
      for (const Dag& y : b) {
        Choices choices = more;
        choices.insert(x.choices.begin(), x.choices.end());
        choices.insert(y.choices.begin(), y.choices.end());
        if (std::optional<Dag> dag = reached(choices, roots)) out.push_back(std::move(*dag));
      }
    }
    trim(out);
    return out;
  }

  // What the roots need of the choices, nullopt if something needs itself.
  std::optional<Dag> reached(const Choices& choices, const std::vector<int32_t>& roots) const {
    Dag out;
    out.roots = roots;
    std::set<int32_t> open;
    for (const int32_t root : roots) {
      if (!reach(root, choices, open, &out)) return std::nullopt;
    }
    for (const auto& [id, which] : out.choices) {
      const Derivation::Op op = derivation(id, which).op;
      const bool reduces = op == Derivation::Op::kReduce || op == Derivation::Op::kContract;
      if (reduces) out.reductions.push_back(id);
    }
    return out;
  }

  bool reach(int32_t id, const Choices& choices, std::set<int32_t>& open, Dag* out) const {
    const auto at = choices.find(id);
    if (at == choices.end() || out->choices.count(id) > 0) return open.count(id) == 0;
    if (!open.insert(id).second) return false;
    const Derivation& d = derivation(id, at->second);
    if (!reach(d.a, choices, open, out)) return false;
    if (d.b >= 0 && !reach(d.b, choices, open, out)) return false;
    open.erase(id);
    out->choices.insert(*at);
    const OpCost cost = cost_of(axes_, graph_, patterns_, d, entry(id).free, entry(id).dtype);
    out->cost.flops += cost.flops;
    out->cost.bytes += cost.bytes;
    return true;
  }

  // The cheapest, and of those with the same reductions one: how elements go in between matters less
  // than what is summed.
  void trim(std::vector<Dag>& dags) const {
    std::stable_sort(dags.begin(), dags.end(),
                     [](const Dag& a, const Dag& b) { return a.cost.total() < b.cost.total(); });
    std::vector<Dag> kept;
    for (Dag& dag : dags) {
      const bool is_known = std::any_of(kept.begin(), kept.end(), [&](const Dag& other) {
        return other.reductions == dag.reductions;
      });
      if (!is_known) kept.push_back(std::move(dag));
      if (kept.size() == width_) break;
    }
    dags = std::move(kept);
  }

  TermId term_of(int32_t id, const Dag& dag, std::map<int32_t, TermId>& made) {
    if (const auto at = made.find(id); at != made.end()) return at->second;
    const auto choice = dag.choices.find(id);
    if (choice == dag.choices.end()) return made[id] = entry(id).leaf;
    const Derivation& d = derivation(id, choice->second);
    const TermId a = term_of(d.a, dag, made);
    const TermId b = d.b < 0 ? -1 : term_of(d.b, dag, made);
    TermId term = -1;
    switch (d.op) {
      case Derivation::Op::kBinary: term = graph_.binary(d.kind, a, b); break;
      case Derivation::Op::kReduce: term = graph_.reduce(d.kind, d.bound, a); break;
      case Derivation::Op::kContract:
        term = graph_.reduce(ir::ExprKind::kAdd, d.bound, graph_.mul(a, b));
        break;
      case Derivation::Op::kPattern: {
        const Pattern& pattern = patterns_[static_cast<std::size_t>(d.pattern)];
        std::vector<TermId> args = graph_[pattern.term].args;
        args[pattern.hole] = a;
        term = graph_.with_args(pattern.term, args);
        break;
      }
    }
    return made[id] = term;
  }

  std::span<const BankEntry> entries_;
  std::span<const Axis> axes_;
  std::span<const Pattern> patterns_;
  TermGraph& graph_;
  std::size_t width_;
  std::map<int32_t, std::vector<Dag>> best_;
  std::set<int32_t> open_;
  const std::vector<Dag> none_;
};

}  // namespace

OpCost cost_of(std::span<const Axis> axes, const TermGraph& graph,
               std::span<const Pattern> patterns, const Derivation& d, AxisSet free,
               ir::DType dtype) {
  const double elems = extent_of(axes, free);
  OpCost cost{elems, elems * static_cast<double>(ir::byte_size(dtype))};
  switch (d.op) {
    case Derivation::Op::kBinary: break;
    case Derivation::Op::kReduce: cost.flops *= extent_of(axes, d.bound); break;
    case Derivation::Op::kContract: cost.flops *= 2 * extent_of(axes, d.bound); break;
    case Derivation::Op::kPattern:
      if (graph[patterns[static_cast<std::size_t>(d.pattern)].term].op == TermOp::kCall) {
        cost.flops *= kSpecialFlops;
      }
      break;
  }
  return cost;
}

std::vector<BankForm> extract(std::span<const BankEntry> entries,
                              std::span<const std::vector<int32_t>> outputs,
                              std::span<const Axis> axes, std::span<const Pattern> patterns,
                              TermGraph& graph, int max_forms) {
  return Extraction(entries, axes, patterns, graph, static_cast<std::size_t>(max_forms))
      .run(outputs);
}

}  // namespace prunerc::search::algebra
