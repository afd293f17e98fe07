// What ranges and facts say about conditions; conjunctions and disjunctions.
#include "ir/arith/simplifier.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

bool shares_atoms(const Linear& a, const Linear& b) {
  return std::any_of(a.terms.begin(), a.terms.end(), [&](const Term& t) {
    return std::any_of(b.terms.begin(), b.terms.end(),
                       [&](const Term& u) { return compare_atoms(t, u) == 0; });
  });
}

// Evaluating it cannot fail: nothing is loaded and nothing divided by what may be zero.
bool is_total(Expr e) {
  bool total = true;
  walk(e, [&](Expr x) {
    const ExprKind k = x.kind();
    const BinaryNode* n = as_binary(x);
    const bool divides = k == ExprKind::kFloorDiv || k == ExprKind::kFloorMod;
    const bool by_constant = divides && n->rhs.kind() == ExprKind::kIntImm;
    total = total && k != ExprKind::kLoad && (!divides || by_constant);
    return total;
  });
  return total;
}

}  // namespace

void Simplifier::assume(Expr condition, bool holds) {
  forms_.clear();
  if (holds) {
    ranges_.assume(condition);
  } else {
    ranges_.assume_not(condition);
  }
}

void Simplifier::rewind(Mark mark) {
  forms_.clear();
  ranges_.rewind(mark.ranges);
  // Forms made since the mark, even of earlier facts, may rest on narrower ranges.
  if (linear_facts_.size() > mark.num_facts) linear_facts_.resize(mark.num_facts);
}

const std::vector<Simplifier::LinearFact>& Simplifier::linear_facts() {
  if (making_facts_) return linear_facts_;
  making_facts_ = true;
  while (linear_facts_.size() < ranges_.facts().size()) {
    const VarRanges::Fact fact = ranges_.facts()[linear_facts_.size()];
    LinearFact made;
    made.form.overflow = true;  // until it is known to be of use
    const BinaryNode* n = as_binary(fact.condition);
    const bool is_order = n != nullptr && (n->kind == ExprKind::kLt || n->kind == ExprKind::kLe);
    const bool is_equal = n != nullptr && ((n->kind == ExprKind::kEq && fact.holds) ||
                                           (n->kind == ExprKind::kNe && !fact.holds));
    if ((is_order || is_equal) && n->lhs.dtype() == DType::kI64) {
      const Linear a = linear(n->lhs);
      const Linear b = linear(n->rhs);
      made.is_equality = is_equal;
      made.form = fact.holds ? a - b : b - a;
      // a < b is a - b + 1 <= 0; its negation b <= a is b - a <= 0.
      if (is_order && (n->kind == ExprKind::kLt) == fact.holds) made.form = made.form + 1;
      if (may_wrap(a) || may_wrap(b) || may_wrap(made.form)) made.form.overflow = true;
    }
    linear_facts_.push_back(made);
  }
  making_facts_ = false;
  return linear_facts_;
}

Interval Simplifier::interval_with_facts(const Linear& linear) {
  Interval result = interval_of(linear, ranges_);
  if (linear.terms.empty() || ranges_.facts().empty()) return result;
  const std::vector<LinearFact>& facts = linear_facts();
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const Linear& form = facts[i].form;
    if (form.overflow || !shares_atoms(linear, form)) continue;
    // linear = (linear - form) + form with form <= 0.
    const Interval above = interval_of(linear - form, ranges_);
    const Interval below = interval_of(linear + form, ranges_);
    result.hi = std::min(result.hi, above.hi);
    result.lo = std::max(result.lo, below.lo);
    if (!facts[i].is_equality) continue;
    result.hi = std::min(result.hi, below.hi);
    result.lo = std::max(result.lo, above.lo);
  }
  result.hi = std::min(result.hi, multiplied_out(linear));
  return result;
}

// With c > 0, rest + c*(x // d) <= (d*rest + c*x) // d: a fact may be about that sum. The bound of
// the first quotient alone; others in x or in the rest are seen to in turn.
int64_t Simplifier::multiplied_out(const Linear& linear) {
  for (const Term& t : linear.terms) {
    const FloorDiv* n = t.degree == 1 ? t.atoms[0].as<FloorDiv>() : nullptr;
    const IntImm* divisor = n != nullptr ? n->rhs.as<IntImm>() : nullptr;
    if (divisor == nullptr || divisor->value < 1 || t.coef < 1) continue;
    const Linear inner = this->linear(n->lhs);
    if (may_wrap(inner)) continue;
    const Linear sum = (linear - Linear::of(t)) * divisor->value + inner * t.coef;
    if (sum.overflow) continue;
    const int64_t hi = interval_with_facts(sum).hi;
    return hi == Interval::kNoUpper ? hi : floor_div(hi, divisor->value);
  }
  return Interval::kNoUpper;
}

std::optional<bool> Simplifier::decide_not_positive(const Linear& difference) {
  if (difference.overflow) return std::nullopt;
  const Interval range = interval_with_facts(difference);
  if (range.hi <= 0) return true;
  if (range.lo > 0) return false;
  return std::nullopt;
}

std::optional<bool> Simplifier::decide(Expr condition) {
  if (const IntImm* c = condition.as<IntImm>()) return c->value != 0;
  for (const VarRanges::Fact& fact : ranges_.facts()) {
    if (structural_equal(fact.condition, condition)) return fact.holds;
  }
  if (const Not* n = condition.as<Not>()) {
    const std::optional<bool> inner = decide(n->operand);
    if (inner.has_value()) return !*inner;
    return std::nullopt;
  }
  const BinaryNode* n = as_binary(condition);
  if (n == nullptr) return std::nullopt;
  if (n->kind == ExprKind::kAnd || n->kind == ExprKind::kOr) {
    const std::optional<bool> a = decide(n->lhs);
    const std::optional<bool> b = decide(n->rhs);
    const bool decisive = n->kind == ExprKind::kOr;
    if (a == decisive || b == decisive) return decisive;
    if (a == !decisive && b == !decisive) return !decisive;
    return std::nullopt;
  }
  if (n->kind < ExprKind::kEq || n->kind > ExprKind::kLe || !is_int(n->lhs.dtype()))
    return std::nullopt;
  const Interval range = interval_of(condition, ranges_);
  if (range.is_point()) return range.lo != 0;
  if (n->lhs.dtype() != DType::kI64) return std::nullopt;
  const Linear a = linear(n->lhs);
  const Linear b = linear(n->rhs);
  Linear difference = a - b;
  if (may_wrap(a) || may_wrap(b) || may_wrap(difference)) return std::nullopt;
  if (n->kind == ExprKind::kLt) return decide_not_positive(difference + 1);
  if (n->kind == ExprKind::kLe) return decide_not_positive(difference);
  const Interval values = interval_with_facts(difference);
  const bool is_equality = n->kind == ExprKind::kEq;
  if (!values.contains(0)) return !is_equality;
  if (values == Interval::point(0)) return is_equality;
  return std::nullopt;
}

// Appends the simplified parts of a conjunction (or disjunction), each under the ones before it as
// facts.
void Simplifier::collect(ExprKind kind, Expr e, std::vector<Expr>& parts,
                         std::optional<bool>& decided) {
  if (decided.has_value()) return;
  if (e.kind() == kind) {
    const BinaryNode* n = as_binary(e);
    collect(kind, n->lhs, parts, decided);
    collect(kind, n->rhs, parts, decided);
    return;
  }
  const Expr part = visit(e);
  if (part.kind() == kind) return collect(kind, part, parts, decided);
  const bool neutral = kind == ExprKind::kAnd;
  if (const IntImm* c = part.as<IntImm>()) {
    if ((c->value != 0) != neutral) decided = !neutral;
    return;
  }
  const std::optional<bool> known = decide(part);
  if (known.has_value()) {
    if (*known != neutral) decided = !neutral;
    return;
  }
  parts.push_back(part);
  assume(part, neutral);
}

// Takes out parts that follow from the later ones. Later parts then run in more cases, so they must
// be total.
void Simplifier::drop_implied(ExprKind kind, std::vector<Expr>& parts) {
  const bool neutral = kind == ExprKind::kAnd;
  for (std::size_t i = parts.size(); i-- > 0;) {
    const bool total =
        std::all_of(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, parts.end(), is_total);
    if (!total) break;
    const Mark outside = mark();
    for (std::size_t j = i + 1; j < parts.size(); ++j) assume(parts[j], neutral);
    const std::optional<bool> known = decide(parts[i]);
    rewind(outside);
    if (known == neutral) parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

Expr Simplifier::visit_logic(Expr e) {
  const ExprKind kind = e.kind();
  std::vector<Expr> parts;
  std::optional<bool> decided;
  const Mark outside = mark();
  collect(kind, e, parts, decided);
  rewind(outside);
  if (decided.has_value()) return b_.bool_imm(*decided);
  if (parts.size() > 1) drop_implied(kind, parts);
  if (parts.empty()) return b_.bool_imm(kind == ExprKind::kAnd);
  Expr result = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) result = b_.binary(kind, result, parts[i]);
  return result;
}

}  // namespace prunerc::ir
