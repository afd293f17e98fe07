#include "search/algebra/lift_expr.h"

#include "ir/query.h"

#include <algorithm>
#include <cmath>

namespace prunerc::search::algebra {
namespace {

using ir::Expr;
using ir::ExprKind;

// What the range of its axis makes of a digit.
void normalise(Digit& d, const Scope& scope) {
  const int64_t extent = scope.extent(d.axis);
  const int64_t left = (extent + d.lower - 1) / d.lower;
  if (d.extent >= left) d.extent = 0;
  if (left <= 1 || d.extent == 1) d.scale = 0;
}

// Far below where sums and products of a few such numbers wrap.
constexpr int64_t kMostScale = int64_t{1} << 40;

bool is_small(const Subscript& s) {
  const auto fits = [](int64_t v) { return -kMostScale < v && v < kMostScale; };
  return fits(s.base) && std::all_of(s.digits.begin(), s.digits.end(), [&](const Digit& d) {
           return fits(d.scale) && fits(d.lower);
         });
}

std::optional<Subscript> lift_any(Expr e, const Scope& scope);

// Nullopt beyond kMostScale, as programs wrap.
std::optional<Subscript> lift_subscript(Expr e, const Scope& scope) {
  std::optional<Subscript> s = lift_any(e, scope);
  return s && is_small(*s) ? s : std::nullopt;
}

std::optional<Subscript> lift_any(Expr e, const Scope& scope) {
  if (const auto* var = e.as<ir::Var>()) {
    const AxisId axis = scope.axis(var->id);
    if (axis < 0) return std::nullopt;
    // An axis of one step is 0 everywhere, however it was written.
    return scope.extent(axis) == 1 ? Subscript{} : plain_subscript(axis);
  }
  if (const std::optional<int64_t> value = ir::constant_value(e)) return Subscript{{}, *value};
  const ir::BinaryNode* node = ir::as_binary(e);
  if (node == nullptr) return std::nullopt;
  const std::optional<Subscript> a = lift_subscript(node->lhs, scope);
  const std::optional<Subscript> b = lift_subscript(node->rhs, scope);
  if (!a || !b) return std::nullopt;
  const auto constant = [](const Subscript& s) { return s.digits.empty(); };
  switch (e.kind()) {
    case ExprKind::kAdd: return *a + *b;
    case ExprKind::kSub: return *a + *b * -1;
    case ExprKind::kMul: {
      const bool by_right = constant(*b);
      if (!by_right && !constant(*a)) return std::nullopt;
      const Subscript& of = by_right ? *a : *b;
      const int64_t factor = by_right ? b->base : a->base;
      int64_t product = 0;
      if (__builtin_mul_overflow(of.base, factor, &product)) return std::nullopt;
      for (const Digit& d : of.digits) {
        if (__builtin_mul_overflow(d.scale, factor, &product)) return std::nullopt;
      }
      return of * factor;
    }
    case ExprKind::kFloorDiv:
    case ExprKind::kFloorMod: {
      if (!constant(*b) || b->base < 1 || a->base != 0 || a->digits.size() != 1) return {};
      Digit d = a->digits[0];
      if (d.scale != 1) return std::nullopt;
      const int64_t by = b->base;
      if (d.extent != 0 && d.extent % by != 0) return std::nullopt;
      if (e.kind() == ExprKind::kFloorMod) {
        d.extent = by;
      } else {
        d.lower *= by;
        if (d.extent != 0) d.extent /= by;
      }
      normalise(d, scope);
      return d.scale == 0 ? Subscript{} : Subscript{{d}, 0};
    }
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<std::vector<Subscript>> lift_index(std::span<const Expr> indices,
                                                 const Scope& scope) {
  std::vector<Subscript> out;
  for (Expr e : indices) {
    std::optional<Subscript> s = lift_subscript(e, scope);
    if (!s) return std::nullopt;
    out.push_back(std::move(*s));
  }
  return out;
}

namespace {

std::optional<Condition> lift_comparison(Expr e, const Scope& scope) {
  const ir::BinaryNode* node = ir::as_binary(e);
  if (node == nullptr || !ir::is_int(node->lhs.dtype())) return std::nullopt;
  const std::optional<Subscript> a = lift_subscript(node->lhs, scope);
  const std::optional<Subscript> b = lift_subscript(node->rhs, scope);
  if (!a || !b) return std::nullopt;
  Condition c;
  c.value = *a + *b * -1;
  switch (e.kind()) {
    case ExprKind::kLt: c.value.base += 1; return c;
    case ExprKind::kLe: return c;
    case ExprKind::kEq: c.kind = Condition::Kind::kZero; return c;
    case ExprKind::kNe: c.kind = Condition::Kind::kNotZero; return c;
    default: return std::nullopt;
  }
}

std::optional<std::vector<Condition>> lift_conditions(Expr e, const Scope& scope) {
  std::vector<Condition> out;
  for (Expr part : ir::conjuncts(e)) {
    const std::optional<Condition> c = lift_comparison(part, scope);
    if (!c) return std::nullopt;
    out.push_back(*c);
  }
  return out;
}

bool is_data_op(ExprKind kind, ir::DType dtype) {
  switch (kind) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
    case ExprKind::kMin:
    case ExprKind::kMax: return ir::is_float(dtype) || ir::is_int(dtype);
    case ExprKind::kDiv: return true;
    default: return false;
  }
}

std::optional<double> data_constant(Expr e) {
  if (const auto* f = e.as<ir::FloatImm>()) {
    return std::isnan(f->value) ? std::nullopt : std::optional(f->value);
  }
  const auto* i = e.as<ir::IntImm>();
  if (i == nullptr || ir::is_bool(e.dtype())) return std::nullopt;
  const auto value = static_cast<double>(i->value);
  return std::fabs(value) < 9e15 ? std::optional(value) : std::nullopt;
}

class ExprLifter {
 public:
  ExprLifter(TermGraph* graph, const Scope& scope, const LoadFn& load)
      : graph_(graph), scope_(scope), load_(load) {}

  TermId run(Expr e) {
    if (const std::optional<double> value = data_constant(e)) {
      return graph_ == nullptr ? 0 : graph_->constant(*value, e.dtype());
    }
    if (const auto* load = e.as<ir::Load>()) return load_(*load);
    if (const ir::BinaryNode* node = ir::as_binary(e)) {
      if (!is_data_op(e.kind(), e.dtype())) return -1;
      const TermId a = run(node->lhs);
      const TermId b = a < 0 ? -1 : run(node->rhs);
      if (b < 0) return -1;
      return graph_ == nullptr ? 0 : graph_->binary(e.kind(), a, b);
    }
    if (const auto* cast = e.as<ir::Cast>()) {
      if (ir::is_bool(e.dtype()) || ir::is_bool(cast->operand.dtype())) return -1;
      const TermId a = run(cast->operand);
      return a < 0 || graph_ == nullptr ? a : graph_->cast(e.dtype(), a);
    }
    if (const auto* choice = e.as<ir::Select>()) return select(*choice);
    if (const auto* call = e.as<ir::Call>()) return this->call(*call);
    return -1;
  }

 private:
  TermId select(const ir::Select& choice) {
    const auto conditions = lift_conditions(choice.condition, scope_);
    const TermId a = conditions ? run(choice.on_true) : -1;
    const TermId b = a < 0 ? -1 : run(choice.on_false);
    if (b < 0 || graph_ == nullptr) return b;
    return graph_->select(graph_->mask(*conditions), a, b);
  }

  TermId call(const ir::Call& call) {
    std::vector<TermId> args;
    for (Expr arg : call.args) {
      args.push_back(run(arg));
      if (args.back() < 0) return -1;
    }
    return graph_ == nullptr ? 0 : graph_->call(call.intrinsic, args);
  }

  TermGraph* graph_;
  const Scope& scope_;
  const LoadFn& load_;
};

}  // namespace

TermId lift_value(TermGraph* graph, const Scope& scope, const LoadFn& load, Expr e) {
  return ExprLifter(graph, scope, load).run(e);
}

}  // namespace prunerc::search::algebra
