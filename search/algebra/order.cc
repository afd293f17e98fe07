#include "search/algebra/order.h"

#include "search/algebra/words.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

namespace prunerc::search::algebra {
namespace {

using ir::ExprKind;

struct Factor {
  TermId term = 0;
  bool inverse = false;  // divides
  std::string words = {};
};

// scale * the product of factors, summed over `bound`.
struct Monomial {
  int sign = 1;
  AxisSet bound = 0, output = 0;
  std::vector<Factor> factors;
};

// The best way to make the product of some factors, with all axes summed that nothing else has.
struct Plan {
  double cost = std::numeric_limits<double>::infinity();
  uint32_t left = 0;  // the other half is what is left; 0: a single factor
  AxisSet axes = 0;   // that remain
};

class Reorder {
 public:
  Reorder(Spec& spec, const OrderOptions& options)
      : spec_(spec), graph_(spec.graph), options_(options) {
    std::vector<TermId> roots;
    for (const Output& output : spec.outputs) roots.push_back(output.value);
    for (const TermId id : reachable(graph_, roots)) {
      for (const TermId arg : graph_[id].args) ++uses_[arg];
    }
    for (const TermId root : roots) ++uses_[root];
  }

  std::string run() {
    for (Output& output : spec_.outputs) output.value = rewrite(output.value);
    return words_;
  }

 private:
  bool is_float(TermId id) const { return ir::is_float(graph_[id].dtype); }

  bool is_product(TermId id) const {
    const Term& t = graph_[id];
    if (t.op == TermOp::kReduce) return t.kind == ExprKind::kAdd;
    return t.op == TermOp::kBinary &&
           (t.kind == ExprKind::kMul || (t.kind == ExprKind::kDiv && is_float(id)));
  }

  TermId rewrite(TermId id) {
    if (const auto at = done_.find(id); at != done_.end()) return at->second;
    TermId made = -1;
    if (is_product(id)) made = rewrite_product(id);
    if (made < 0) {
      std::vector<TermId> args = graph_[id].args;
      for (TermId& arg : args) arg = rewrite(arg);
      made = args.empty() ? id : graph_.with_args(id, args);
    }
    return done_[id] = made;
  }

  // Flattening.

  // `outside`: axes of the factors beside it, which a bound axis must not become one with.
  bool flatten(TermId id, bool inverse, AxisSet outside, bool is_root, Monomial* out) {
    const Term t = graph_[id];  // a copy: renaming grows the graph
    const bool is_own = is_root || uses_[id] <= 1 || options_.through_shared;
    if (is_own && t.op == TermOp::kBinary && is_product(id)) {
      const bool divides = t.kind == ExprKind::kDiv;
      const AxisSet left = graph_[t.args[0]].free;
      const AxisSet right = graph_[t.args[1]].free;
      return flatten(t.args[0], inverse, outside | right, false, out) &&
             flatten(t.args[1], inverse != divides, outside | left, false, out);
    }
    if (is_own && !inverse && t.op == TermOp::kReduce && t.kind == ExprKind::kAdd) {
      TermId arg = t.args[0];
      AxisSet bound = 0;
      for (AxisId axis = 0; axis < kMaxAxes; ++axis) {
        if ((t.bound & axis_bit(axis)) == 0) continue;
        AxisId mine = axis;
        if (((taken_ | outside) & axis_bit(axis)) != 0) {
          mine = copy_axis(axis);
          if (mine < 0) return false;
          arg = replace_axes(graph_, arg, {{axis, plain_subscript(mine)}});
        }
        bound |= axis_bit(mine);
      }
      taken_ |= bound;
      out->bound |= bound;
      return flatten(arg, false, outside, false, out);
    }
    out->factors.push_back({id, inverse, words_of(spec_, id)});
    return out->factors.size() <= kMaxFactors;
  }

  AxisId copy_axis(AxisId axis) {
    if (spec_.axes.size() >= kMaxAxes) return -1;
    const Axis copy = spec_.axes[static_cast<std::size_t>(axis)];
    return add_axis(spec_, copy.name + "_", copy.extent, copy.twin);
  }

  // Multiplies out the first factor that is a sum and has a bound axis; nothing if there is none.
  bool distribute(std::vector<Monomial>* monomials) {
    for (std::size_t m = 0; m < monomials->size(); ++m) {
      const Monomial from = (*monomials)[m];
      for (std::size_t f = 0; f < from.factors.size(); ++f) {
        const Term t = graph_[from.factors[f].term];
        const bool is_sum = t.op == TermOp::kBinary && !from.factors[f].inverse &&
                            (t.kind == ExprKind::kAdd || t.kind == ExprKind::kSub);
        if (!is_sum || (t.free & from.bound) == 0 || monomials->size() >= 8) continue;
        std::vector<Monomial> parts;
        for (int side = 0; side < 2; ++side) {
          Monomial part = from;
          part.factors.erase(part.factors.begin() + static_cast<std::ptrdiff_t>(f));
          if (side == 1 && t.kind == ExprKind::kSub) part.sign = -part.sign;
          taken_ = from.bound;
          AxisSet outside = from.output;
          for (const Factor& other : part.factors) outside |= graph_[other.term].free;
          const TermId arg = t.args[static_cast<std::size_t>(side)];
          if (!flatten(arg, false, outside, false, &part)) return false;
          parts.push_back(std::move(part));
        }
        monomials->erase(monomials->begin() + static_cast<std::ptrdiff_t>(m));
        monomials->insert(monomials->begin() + static_cast<std::ptrdiff_t>(m), parts.begin(),
                          parts.end());
        return true;
      }
    }
    return false;
  }

  TermId rewrite_product(TermId id) {
    Monomial whole;
    taken_ = 0;
    whole.output = graph_[id].free;
    if (!flatten(id, false, whole.output, true, &whole) || whole.bound == 0) return -1;
    std::vector<Monomial> monomials = {whole};
    if (options_.distribute) {
      while (distribute(&monomials)) {
      }
    }
    TermId sum = -1;
    std::string words;
    for (Monomial& m : monomials) {
      std::string order;
      const TermId part = best_order(m, graph_[id].dtype, &order);
      words += (words.empty() ? "" : m.sign > 0 ? " + " : " - ") + order;
      if (part < 0) return -1;
      if (sum < 0) {
        sum = m.sign > 0 ? part : graph_.sub(graph_.constant(0, graph_[id].dtype), part);
      } else {
        sum = m.sign > 0 ? graph_.add(sum, part) : graph_.sub(sum, part);
      }
    }
    std::vector<TermId> args = graph_[id].args;
    for (TermId& arg : args) arg = rewrite(arg);
    if (graph_.with_args(id, args) != sum) say(words);
    return sum;
  }

  // The order.

  TermId best_order(Monomial& m, ir::DType dtype, std::string* order) {
    AxisSet all = 0;
    for (Factor& f : m.factors) {
      f.term = rewrite(f.term);
      all |= graph_[f.term].free;
    }
    // A sum over an axis that no factor has multiplies by its extent.
    if (m.factors.empty() || (m.bound & ~all) != 0) return -1;
    const auto n = static_cast<int>(m.factors.size());
    const uint32_t full = (uint32_t{1} << n) - 1;
    std::vector<AxisSet> own(std::size_t{full} + 1, 0);
    for (uint32_t s = 1; s <= full; ++s) {
      const int low = __builtin_ctz(s);
      own[s] = own[s & (s - 1)] | graph_[m.factors[static_cast<std::size_t>(low)].term].free;
    }
    std::vector<Plan> plans(std::size_t{full} + 1);
    for (uint32_t s = 1; s <= full; ++s) {
      const AxisSet wanted = m.output | own[full & ~s];
      plans[s].axes = own[s] & (wanted | ~m.bound);
      plan(own, plans, s);
    }
    const Made made = build(m, plans, full, own, dtype, order);
    return made.inverse ? graph_.div(graph_.constant(1, dtype), made.term) : made.term;
  }

  double size(AxisSet axes) const { return extent_of(spec_.axes, axes); }

  void plan(const std::vector<AxisSet>& own, std::vector<Plan>& plans, uint32_t s) const {
    Plan& best = plans[s];
    const double out = size(best.axes);
    if ((s & (s - 1)) == 0) {
      const bool sums = best.axes != own[s];
      best.cost = sums ? size(own[s]) + options_.bytes_per_flop * 4 * (size(own[s]) + out) : 0;
      return;
    }
    const uint32_t low = s & (~s + 1);  // stays left, so that no split is seen twice
    for (uint32_t left = (s - 1) & s; left != 0; left = (left - 1) & s) {
      if ((left & low) == 0) continue;
      const Plan& a = plans[left];
      const Plan& b = plans[s & ~left];
      const AxisSet loops = a.axes | b.axes;
      const bool sums = loops != best.axes;
      // A product that nothing is summed of is part of what reads it.
      const double moved = size(a.axes) + size(b.axes) + (sums ? out : 0);
      const double cost =
          a.cost + b.cost + (sums ? 2 : 1) * size(loops) + options_.bytes_per_flop * 4 * moved;
      if (cost < best.cost) {
        best.cost = cost;
        best.left = left;
      }
    }
  }

  struct Made {
    TermId term = 0;
    bool inverse = false;
  };

  Made build(const Monomial& m, const std::vector<Plan>& plans, uint32_t s,
             const std::vector<AxisSet>& own, ir::DType dtype, std::string* order) {
    Made made;
    AxisSet loops = 0;
    if (plans[s].left == 0) {
      const Factor& f = m.factors[static_cast<std::size_t>(__builtin_ctz(s))];
      made = {f.term, f.inverse};
      loops = own[s];
      *order = f.inverse ? "1/" + f.words : f.words;
      if (loops != plans[s].axes) *order = "sum(" + *order + ")";
    } else {
      std::string left, right;
      const Made a = build(m, plans, plans[s].left, own, dtype, &left);
      const Made b = build(m, plans, s & ~plans[s].left, own, dtype, &right);
      loops = plans[plans[s].left].axes | plans[s & ~plans[s].left].axes;
      if (a.inverse == b.inverse) {
        made = {graph_.mul(a.term, b.term), a.inverse};
      } else if (b.inverse) {
        made = {graph_.div(a.term, b.term), false};
      } else {
        made = {graph_.div(b.term, a.term), false};
      }
      *order = b.inverse && !a.inverse
                   ? fmt::format("({} / {})", left, right.substr(right.rfind("1/", 0) == 0 ? 2 : 0))
                   : fmt::format("({}*{})", left, right);
    }
    const AxisSet summed = loops & ~plans[s].axes;
    if (summed != 0) {
      if (made.inverse) made = {graph_.div(graph_.constant(1, dtype), made.term), false};
      made.term = graph_.reduce(ExprKind::kAdd, summed, made.term);
    }
    return made;
  }

  void say(const std::string& what) {
    if (!words_.empty()) words_ += ", ";
    words_ += what;
  }

  Spec& spec_;
  TermGraph& graph_;
  const OrderOptions& options_;
  std::unordered_map<TermId, int> uses_;
  std::unordered_map<TermId, TermId> done_;
  AxisSet taken_ = 0;  // axes that a bound one must not be
  std::string words_;
};

}  // namespace

std::string reorder(Spec& spec, const OrderOptions& options) {
  std::vector<TermId> before;
  for (const Output& output : spec.outputs) before.push_back(output.value);
  const std::string words = Reorder(spec, options).run();
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != spec.outputs[i].value) return words.empty() ? "another order" : words;
  }
  return "";
}

}  // namespace prunerc::search::algebra
