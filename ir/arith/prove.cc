#include "ir/arith/prove.h"

#include "ir/arith/evaluate.h"
#include "ir/arith/simplifier.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <vector>

namespace prunerc::ir {
namespace {

// 2^6 corners of the domain are tried before (or instead of) all points.
constexpr std::size_t kMaxCornerVars = 6;

// The variables a condition depends on, through facts and symbolic extents, with their ranges.
class PointSet {
 public:
  PointSet(Expr condition, const VarRanges& ranges)
      : ranges_(ranges), used_(ranges.facts().size()) {
    add(condition);
    for (bool grown = true; grown;) {
      grown = false;
      for (std::size_t i = 0; i < used_.size(); ++i) {
        if (used_[i] || !touches(ranges.facts()[i].condition)) continue;
        used_[i] = grown = true;
        add(ranges.facts()[i].condition);
      }
    }
  }

  bool is_enumerable() const { return enumerable_; }
  /// Facts and extents are all taken into account, so that a counterexample is one.
  bool is_exact() const { return point_.params.empty(); }
  std::size_t num_dims() const { return limits_.size(); }
  Interval limit(std::size_t dim) const { return limits_[dim]; }

  int64_t num_points(int64_t at_most) const {
    int64_t product = 1;
    for (Interval limit : limits_) {
      if (limit.is_empty()) return 0;
      int64_t size = 0;
      if (__builtin_sub_overflow(limit.hi, limit.lo, &size) || size >= at_most / product)
        return at_most + 1;
      ++size;
      product *= size;
    }
    return product;
  }

  void set(std::size_t dim, int64_t value) {
    if (dim < point_.vars.size()) {
      point_.vars[dim].second = value;
    } else {
      point_.params[dim - point_.vars.size()].second = value;
    }
  }
  const Point& point() const { return point_; }

  /// Does the point satisfy the facts and symbolic extents? Nullopt if that cannot be evaluated.
  std::optional<bool> admits() const {
    for (const auto& [var, extent] : extents_) {
      const std::optional<int64_t> size = evaluate(extent, point_);
      if (!size.has_value()) return std::nullopt;
      const auto is_var = [id = var](const auto& entry) { return entry.first == id; };
      const auto value = std::find_if(point_.vars.begin(), point_.vars.end(), is_var);
      if (value->second >= *size) return false;
    }
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (!used_[i]) continue;
      const VarRanges::Fact& fact = ranges_.facts()[i];
      const std::optional<int64_t> value = evaluate(fact.condition, point_);
      if (!value.has_value()) return std::nullopt;
      if ((*value != 0) != fact.holds) return false;
    }
    return true;
  }

  /// Parameters after variables; called once when all are known.
  void finish() {
    limits_.insert(limits_.end(), param_limits_.begin(), param_limits_.end());
    for (Interval limit : limits_) enumerable_ = enumerable_ && limit.is_bounded();
  }

 private:
  bool touches(Expr e) const {
    return any_var(e, [&](VarId id) { return knows(id); });
  }
  bool knows(VarId id) const {
    return std::any_of(point_.vars.begin(), point_.vars.end(),
                       [&](const auto& entry) { return entry.first == id; });
  }
  void add(Expr e) {
    walk(e, [&](Expr x) {
      if (const Var* v = x.as<Var>()) add_var(v);
      if (const TileParam* p = x.as<TileParam>()) add_param(p);
      const ExprKind k = x.kind();
      if (k == ExprKind::kLoad || k == ExprKind::kCall || is_float(x.dtype())) enumerable_ = false;
      return true;
    });
  }
  void add_var(const Var* v) {
    if (knows(v->id)) return;
    point_.vars.emplace_back(v->id, 0);
    limits_.push_back(ranges_.interval(v->id));
    if (const Expr extent = ranges_.symbolic_extent(v->id); extent.defined()) {
      extents_.emplace_back(v->id, extent);
      add(extent);
    }
  }
  void add_param(const TileParam* p) {
    for (const auto& entry : point_.params) {
      if (entry.first == p->id) return;
    }
    point_.params.emplace_back(p->id, 1);
    param_limits_.push_back(ranges_.interval(p->id));
  }

  const VarRanges& ranges_;
  Point point_;
  std::vector<Interval> limits_;  // variables, then parameters
  std::vector<Interval> param_limits_;
  std::vector<std::pair<VarId, Expr>> extents_;
  std::vector<bool> used_;
  bool enumerable_ = true;
};

enum class Check : uint8_t { kHolds, kFails, kUndefined };

Check check_point(Expr condition, const PointSet& domain) {
  const std::optional<bool> admitted = domain.admits();
  if (!admitted.has_value()) return Check::kUndefined;
  if (!*admitted) return Check::kHolds;
  const std::optional<int64_t> value = evaluate(condition, domain.point());
  if (!value.has_value()) return Check::kUndefined;
  return *value != 0 ? Check::kHolds : Check::kFails;
}

bool fails_at_corner(Expr condition, PointSet& domain) {
  if (domain.num_dims() > kMaxCornerVars || !domain.is_exact()) return false;
  const std::size_t num_corners = std::size_t{1} << domain.num_dims();
  for (std::size_t corner = 0; corner < num_corners; ++corner) {
    for (std::size_t i = 0; i < domain.num_dims(); ++i) {
      domain.set(i, (corner >> i & 1) != 0 ? domain.limit(i).lo : domain.limit(i).hi);
    }
    if (check_point(condition, domain) == Check::kFails) return true;
  }
  return false;
}

Proof enumerate(Expr condition, PointSet& domain) {
  std::vector<int64_t> at(domain.num_dims());
  for (std::size_t i = 0; i < at.size(); ++i) domain.set(i, at[i] = domain.limit(i).hi);
  while (true) {
    const Check check = check_point(condition, domain);
    if (check == Check::kUndefined) return Proof::kUnknown;
    if (check == Check::kFails) return domain.is_exact() ? Proof::kNo : Proof::kUnknown;
    std::size_t dim = 0;  // downwards: guards fail at upper ends
    while (dim < at.size() && at[dim] == domain.limit(dim).lo) {
      domain.set(dim, at[dim] = domain.limit(dim).hi);
      ++dim;
    }
    if (dim == at.size()) return Proof::kYes;
    domain.set(dim, --at[dim]);
  }
}

Proof by_points(Expr condition, const VarRanges& ranges, const ProveOptions& options) {
  if (options.max_points <= 0) return Proof::kUnknown;
  PointSet domain(condition, ranges);
  domain.finish();
  if (!domain.is_enumerable()) return Proof::kUnknown;
  if (fails_at_corner(condition, domain)) return Proof::kNo;
  if (domain.num_points(options.max_points) > options.max_points) return Proof::kUnknown;
  if (domain.num_points(options.max_points) == 0) return Proof::kYes;
  return enumerate(condition, domain);
}

Proof prove_parts(Expr condition, const VarRanges& ranges, const ProveOptions& options) {
  if (condition.kind() != ExprKind::kAnd) return by_points(condition, ranges, options);
  const BinaryNode* n = as_binary(condition);
  const Proof left = prove_parts(n->lhs, ranges, options);
  if (left == Proof::kNo) return left;
  return left && prove_parts(n->rhs, ranges, options);
}

}  // namespace

std::string_view to_string(Proof proof) {
  return proof == Proof::kYes ? "yes" : proof == Proof::kNo ? "no" : "unknown";
}

Proof operator&&(Proof a, Proof b) {
  if (a == Proof::kNo || b == Proof::kNo) return Proof::kNo;
  return a == Proof::kYes && b == Proof::kYes ? Proof::kYes : Proof::kUnknown;
}

Proof prove(Expr condition, const VarRanges& ranges, const ProveOptions& options) {
  if (const IntImm* c = condition.as<IntImm>()) return c->value != 0 ? Proof::kYes : Proof::kNo;
  IrBuilder scratch("proof");
  const SimplifyOptions simplify_options;
  Simplifier s(scratch, ranges, simplify_options);
  s.keep_loads();
  const Expr simple = s.visit(condition);
  if (const IntImm* c = simple.as<IntImm>()) return c->value != 0 ? Proof::kYes : Proof::kNo;
  return prove_parts(simple, ranges, options);
}

namespace {

Proof prove_comparison(ExprKind kind, Expr lhs, Expr rhs, const VarRanges& ranges,
                       const ProveOptions& options) {
  IrBuilder scratch("comparison");
  return prove(scratch.binary(kind, lhs, rhs), ranges, options);
}

}  // namespace

Proof prove_less(Expr lhs, Expr rhs, const VarRanges& ranges, const ProveOptions& options) {
  return prove_comparison(ExprKind::kLt, lhs, rhs, ranges, options);
}
Proof prove_less_equal(Expr lhs, Expr rhs, const VarRanges& ranges, const ProveOptions& options) {
  return prove_comparison(ExprKind::kLe, lhs, rhs, ranges, options);
}
Proof prove_equal(Expr lhs, Expr rhs, const VarRanges& ranges, const ProveOptions& options) {
  return prove_comparison(ExprKind::kEq, lhs, rhs, ranges, options);
}

}  // namespace prunerc::ir
