// Floor division and modulo of normal forms, and the reverse: quotient and remainder joined again.
#include "ir/arith/simplifier.h"
#include "ir/visit.h"

#include <algorithm>
#include <numeric>

namespace prunerc::ir {
namespace {

// A sum of more terms is not searched for a common factor of some of them.
constexpr std::size_t kMaxFactorTerms = 8;

Term constant_term(int64_t value) {
  Term t;
  t.coef = value;
  return t;
}

// Common factor of two products; the coefficient is positive.
Term common_factor(const Term& a, const Term& b) {
  Term out;
  // The least integer has no absolute value.
  out.coef = a.coef == Interval::kNoLower ? 1 : std::gcd(a.coef, b.coef);
  int j = 0;
  for (Expr atom : a.factors()) {
    while (j < b.degree && compare_exprs(b.atoms[static_cast<std::size_t>(j)], atom) < 0) ++j;
    if (j < b.degree && compare_exprs(b.atoms[static_cast<std::size_t>(j)], atom) == 0) {
      out.atoms[static_cast<std::size_t>(out.degree++)] = atom;
      ++j;
    }
  }
  return out;
}

bool same_term(const Term& a, const Term& b) {
  return a.coef == b.coef && compare_atoms(a, b) == 0;
}

bool has_atom(const Term& t, ExprKind kind) {
  return std::any_of(t.factors().begin(), t.factors().end(),
                     [&](Expr atom) { return atom.kind() == kind; });
}

// The term without its first atom of the given kind; null if there is none or more than one.
const BinaryNode* take_atom(const Term& t, ExprKind kind, Term* rest) {
  if (!has_atom(t, kind)) return nullptr;
  const BinaryNode* taken = nullptr;
  *rest = constant_term(t.coef);
  for (Expr atom : t.factors()) {
    if (atom.kind() == kind) {
      if (taken != nullptr) return nullptr;
      taken = as_binary(atom);
    } else {
      rest->atoms[static_cast<std::size_t>(rest->degree++)] = atom;
    }
  }
  return taken;
}

// Coefficient of a product of atoms; 0 if absent.
int64_t coefficient_of(const Linear& linear, const Term& atoms) {
  const auto at =
      std::lower_bound(linear.terms.begin(), linear.terms.end(), atoms,
                       [](const Term& x, const Term& y) { return compare_atoms(x, y) < 0; });
  return at != linear.terms.end() && compare_atoms(*at, atoms) == 0 ? at->coef : 0;
}

bool has_all_terms(const Linear& linear, const Linear& part) {
  return std::all_of(part.terms.begin(), part.terms.end(),
                     [&](const Term& t) { return coefficient_of(linear, t) == t.coef; });
}

// A divisor that is one positive term.
std::optional<Term> as_divisor(const Linear& linear, const VarRanges& ranges) {
  if (linear.overflow) return std::nullopt;
  if (linear.terms.empty()) {
    if (linear.constant <= 0) return std::nullopt;
    return constant_term(linear.constant);
  }
  if (linear.terms.size() != 1 || linear.constant != 0) return std::nullopt;
  if (linear.has_data || interval_of(linear, ranges).lo <= 0) return std::nullopt;
  if (linear.terms[0].coef <= 0) return std::nullopt;
  return linear.terms[0];
}

}  // namespace

bool Simplifier::may_wrap(const Linear& linear) const {
  return linear.overflow || (linear.has_data && !interval_of(linear, ranges_).is_bounded());
}

bool Simplifier::is_within(const Linear& linear, const Term& limit) {
  if (linear.is_constant(0)) return true;
  const Interval whole = interval_with_facts(linear);
  if (whole.lo < 0) return false;
  if (limit.degree == 0) return whole.hi < limit.coef;
  return interval_with_facts(linear - Linear::of(limit)).hi < 0;
}

Linear Simplifier::divide(const Linear& dividend, const Linear& divisor, Part part) {
  const bool quotient = part == Part::kQuotient;
  const ExprKind kind = quotient ? ExprKind::kFloorDiv : ExprKind::kFloorMod;
  auto opaque = [&] {
    return Linear::of(b_.binary(kind, to_expr(b_, dividend), to_expr(b_, divisor)));
  };
  if (may_wrap(dividend) || divisor.overflow) return opaque();
  if (divisor.is_constant() && divisor.constant < 0 && divisor.constant != Interval::kNoLower) {
    const Linear negated = dividend * -1;
    if (negated.overflow) return opaque();
    const Linear result = divide(negated, divisor * -1, part);
    return quotient ? result : result * -1;
  }
  if (const std::optional<Term> term = as_divisor(divisor, ranges_)) {
    const Linear result = divide_by_term(dividend, *term, part);
    return result.overflow ? opaque() : result;
  }
  if (divisor.is_constant()) return opaque();
  if (dividend == divisor) return Linear::of(quotient ? 1 : 0);
  if (dividend.is_constant(0)) return Linear::of(0);
  if (!divisor.has_data && interval_with_facts(dividend).lo >= 0 &&
      interval_with_facts(dividend - divisor).hi < 0) {
    return quotient ? Linear::of(0) : dividend;
  }
  return opaque();
}

Linear Simplifier::divide_by_term(const Linear& dividend, const Term& divisor, Part part) {
  Linear whole;  // dividend = divisor * whole + rest
  Linear rest;
  whole.has_data = rest.has_data = dividend.has_data;
  if (divisor.degree == 0) {
    whole.constant = floor_div(dividend.constant, divisor.coef);
    rest.constant = floor_mod(dividend.constant, divisor.coef);
  } else {
    rest.constant = dividend.constant;
  }
  bool sorted = true;
  for (const Term& t : dividend.terms) {
    Term quotient;
    if (divide_terms(t, divisor, &quotient)) {
      sorted = sorted && divisor.degree == 0;
      if (quotient.degree == 0) {
        whole.constant += quotient.coef;
      } else {
        whole.terms.push_back(quotient);
      }
    } else if (divisor.degree == 0) {
      Term q = t;
      Term r = t;
      q.coef = t.coef / divisor.coef;
      r.coef = t.coef % divisor.coef;
      if (q.coef != 0) whole.terms.push_back(q);
      rest.terms.push_back(r);
    } else {
      rest.terms.push_back(t);
    }
  }
  if (!sorted) {
    std::sort(whole.terms.begin(), whole.terms.end(),
              [](const Term& x, const Term& y) { return compare_atoms(x, y) < 0; });
  }
  if (part == Part::kRemainder) return divide_rest(rest, divisor, part);
  return rest.is_constant(0) ? whole : whole + divide_rest(rest, divisor, part);
}

Linear Simplifier::divide_rest(const Linear& rest, const Term& divisor, Part part) {
  const bool quotient = part == Part::kQuotient;
  if (rest.is_constant(0)) return Linear::of(0);
  if (divisor.degree == 0) {
    const Interval range = interval_with_facts(rest);
    if (range.is_bounded() &&
        floor_div(range.lo, divisor.coef) == floor_div(range.hi, divisor.coef)) {
      const int64_t k = floor_div(range.lo, divisor.coef);
      return quotient ? Linear::of(k) : rest + Linear::of(divisor) * -k;
    }
  } else if (is_within(rest, divisor)) {
    return quotient ? Linear::of(0) : rest;
  } else if (const Linear next = rest + Linear::of(divisor); is_within(next, divisor)) {
    return quotient ? Linear::of(-1) : next;
  }
  if (fuel_ > 0) {
    if (part == Part::kRemainder) {
      if (const std::optional<Linear> inner = unwrap_inner_mod(rest, divisor)) {
        return divide_by_term(*inner, divisor, part);
      }
    }
    if (std::optional<Linear> result = divide_single_atom(rest, divisor, part)) return *result;
    if (std::optional<Linear> result = divide_by_factor(rest, divisor, part)) return *result;
    Linear joined = rest;  // smaller coefficients may match where the dividend's did not
    if (joined.terms.size() > 1 && recombine_step(joined))
      return divide_by_term(joined, divisor, part);
  }
  return Linear::of(b_.binary(quotient ? ExprKind::kFloorDiv : ExprKind::kFloorMod,
                              to_expr(b_, rest), to_expr(b_, divisor)));
}

// k*(x % a) may become k*x below a modulus that divides k*a.
std::optional<Linear> Simplifier::unwrap_inner_mod(const Linear& rest, const Term& divisor) {
  for (const Term& t : rest.terms) {
    Term factor;
    const BinaryNode* mod = take_atom(t, ExprKind::kFloorMod, &factor);
    if (mod == nullptr || !take_fuel()) continue;
    const std::optional<Term> period = as_divisor(linear(mod->rhs), ranges_);
    Term multiple;
    Term ignored;
    if (!period.has_value() || !multiply_terms(factor, *period, &multiple)) continue;
    if (!divide_terms(multiple, divisor, &ignored)) continue;
    const Linear inner = linear(mod->lhs);
    if (may_wrap(inner)) continue;
    const std::optional<Linear> unwrapped = multiply(Linear::of(factor), inner);
    if (!unwrapped.has_value() || unwrapped->overflow) continue;
    const Linear sum = rest - Linear::of(t) + *unwrapped;
    if (!may_wrap(sum)) return sum;
  }
  return std::nullopt;
}

// (x//a + k)//c = (x + k*a)//(a*c), and (x%a)//c = (x//c)%(a/c) if c divides a.
std::optional<Linear> Simplifier::divide_single_atom(const Linear& rest, const Term& divisor,
                                                     Part part) {
  if (part == Part::kRemainder || rest.terms.size() != 1 || rest.terms[0].degree != 1 ||
      rest.terms[0].coef != 1 || !take_fuel()) {
    return std::nullopt;
  }
  const Expr atom = rest.terms[0].atoms[0];
  const BinaryNode* n = as_binary(atom);
  if (n == nullptr) return std::nullopt;
  if (n->kind != ExprKind::kFloorDiv && n->kind != ExprKind::kFloorMod) return std::nullopt;
  const std::optional<Term> inner = as_divisor(linear(n->rhs), ranges_);
  if (!inner.has_value()) return std::nullopt;
  const Linear x = linear(n->lhs);
  if (may_wrap(x)) return std::nullopt;
  Term combined;
  if (n->kind == ExprKind::kFloorDiv) {
    if (!multiply_terms(*inner, divisor, &combined)) return std::nullopt;
    combined = reduced(combined);
    const Linear shifted = x + Linear::of(*inner) * rest.constant;
    if (may_wrap(shifted)) return std::nullopt;
    return divide_by_term(shifted, combined, part);
  }
  if (rest.constant != 0 || !divide_terms(*inner, divisor, &combined)) return std::nullopt;
  return divide_by_term(divide_by_term(x, divisor, Part::kQuotient), combined, Part::kRemainder);
}

// rest = g*high + low with g | divisor and 0 <= low < g: the low part leaves the division.
std::optional<Linear> Simplifier::divide_by_factor(const Linear& rest, const Term& divisor,
                                                   Part part) {
  if (rest.terms.size() > kMaxFactorTerms) return std::nullopt;
  std::vector<Term> factors;
  for (const Term& t : rest.terms) {
    const Term g = common_factor(t, divisor);
    const bool trivial = (g.degree == 0 && g.coef == 1) || same_term(g, divisor);
    if (!trivial && std::none_of(factors.begin(), factors.end(),
                                 [&](const Term& f) { return same_term(f, g); })) {
      factors.push_back(g);
    }
  }
  std::stable_sort(factors.begin(), factors.end(), [](const Term& x, const Term& y) {
    return x.degree != y.degree ? x.degree > y.degree : x.coef > y.coef;
  });
  for (const Term& g : factors) {
    Linear high;
    Linear low;
    high.has_data = low.has_data = rest.has_data;
    low.constant = g.degree == 0 ? floor_mod(rest.constant, g.coef) : rest.constant;
    high.constant = g.degree == 0 ? floor_div(rest.constant, g.coef) : 0;
    for (const Term& t : rest.terms) {
      Term quotient;
      if (divide_terms(t, g, &quotient)) {
        high = high + Linear::of(quotient);
      } else {
        low.terms.push_back(t);
      }
    }
    Term smaller;
    if (!take_fuel() || !is_within(low, g) || !divide_terms(divisor, g, &smaller)) continue;
    const Linear result = divide_by_term(high, smaller, part);
    if (part == Part::kQuotient) return result;
    const std::optional<Linear> scaled = multiply(result, Linear::of(g));
    if (scaled.has_value()) return *scaled + low;
  }
  return std::nullopt;
}

// A product of divisors may hold all parameters of a perfect tile vector.
Term Simplifier::reduced(const Term& divisor) const {
  if (ranges_.domain() == nullptr || divisor.degree < 2) return divisor;
  const Linear out = reduce_tiles(Linear::of(divisor), *ranges_.domain());
  return out.terms.empty() ? constant_term(out.constant) : out.terms[0];
}

Linear Simplifier::recombine(Linear linear) {
  while (linear.terms.size() >= 2 && fuel_ > 0 && recombine_step(linear)) {
  }
  return linear;
}

bool Simplifier::recombine_step(Linear& linear) {
  for (const Term& t : linear.terms) {
    Term rest;
    if (const BinaryNode* mod = take_atom(t, ExprKind::kFloorMod, &rest)) {
      if (!take_fuel()) return false;
      if (join_quotient(linear, rest, *mod)) return true;
      if (join_next_digit(linear, rest, *mod)) return true;
      if (cancel_dividend(linear, rest, *mod)) return true;
    }
    if (const BinaryNode* quotient = take_atom(t, ExprKind::kFloorDiv, &rest)) {
      if (take_fuel() && cancel_dividend(linear, rest, *quotient)) return true;
    }
  }
  return false;
}

// m*(x % a) + m*a*(x // a) = m*x
bool Simplifier::join_quotient(Linear& linear, const Term& rest, const BinaryNode& mod) {
  const Linear x = this->linear(mod.lhs);
  const std::optional<Term> a = as_divisor(this->linear(mod.rhs), ranges_);
  Term step;
  if (!a.has_value() || may_wrap(x) || !multiply_terms(rest, *a, &step)) return false;
  const std::optional<Linear> quotient =
      multiply(divide_by_term(x, *a, Part::kQuotient), Linear::of(step));
  if (!quotient.has_value() || quotient->overflow || !has_all_terms(linear, *quotient))
    return false;
  const std::optional<Linear> joined = multiply(Linear::of(rest), x);
  const std::optional<Linear> old = multiply(Linear::of(rest), Linear::of(Expr(&mod)));
  if (!joined.has_value() || !old.has_value() || quotient->terms.empty()) return false;
  const Linear next = linear - *old - *quotient + *joined;
  if (next.overflow) return false;
  linear = next;
  return true;
}

// m*(x % a) + m*a*((x // a) % e) = m*(x % (a*e))
bool Simplifier::join_next_digit(Linear& linear, const Term& rest, const BinaryNode& mod) {
  const std::optional<Term> a = as_divisor(this->linear(mod.rhs), ranges_);
  Term step;
  if (!a.has_value() || !multiply_terms(rest, *a, &step)) return false;
  Linear quotient;
  for (const Term& t : linear.terms) {
    Term other;
    const BinaryNode* digit = take_atom(t, ExprKind::kFloorMod, &other);
    if (digit == nullptr || !same_term(other, step)) continue;
    const Linear x = this->linear(mod.lhs);
    if (may_wrap(x)) return false;
    if (quotient.terms.empty()) quotient = divide_by_term(x, *a, Part::kQuotient);
    const std::optional<Term> e = as_divisor(this->linear(digit->rhs), ranges_);
    Term both;
    if (!e.has_value() || !multiply_terms(*a, *e, &both)) continue;
    both = reduced(both);
    if (!(this->linear(digit->lhs) == quotient)) continue;
    const std::optional<Linear> joined =
        multiply(Linear::of(rest), divide_by_term(x, both, Part::kRemainder));
    const std::optional<Linear> old = multiply(Linear::of(rest), Linear::of(Expr(&mod)));
    if (!joined.has_value() || !old.has_value()) continue;
    const Linear next = linear - *old - Linear::of(t) + *joined;
    if (next.overflow || next.terms.size() >= linear.terms.size()) continue;
    linear = next;
    return true;
  }
  return false;
}

// m*x - m*(x % a) = m*a*(x // a), and m*x - m*a*(x // a) = m*(x % a)
bool Simplifier::cancel_dividend(Linear& linear, const Term& rest, const BinaryNode& part) {
  const bool is_mod = part.kind == ExprKind::kFloorMod;
  const std::optional<Term> a = as_divisor(this->linear(part.rhs), ranges_);
  const Linear x = this->linear(part.lhs);
  Term minus_m = rest;
  if (!a.has_value() || may_wrap(x) || x.terms.empty()) return false;
  if (!is_mod && !divide_terms(rest, *a, &minus_m)) return false;
  const std::optional<Linear> dividend = multiply(Linear::of(minus_m) * -1, x);
  if (!dividend.has_value() || dividend->overflow || !has_all_terms(linear, *dividend))
    return false;
  std::optional<Linear> other;
  if (is_mod) {
    other = multiply(Linear::of(minus_m) * -1, divide_by_term(x, *a, Part::kQuotient));
    if (other.has_value()) other = multiply(*other, Linear::of(*a));
  } else {
    other = multiply(Linear::of(minus_m) * -1, divide_by_term(x, *a, Part::kRemainder));
  }
  const std::optional<Linear> old = multiply(Linear::of(rest), Linear::of(Expr(&part)));
  if (!other.has_value() || !old.has_value()) return false;
  const Linear next = linear - *old - *dividend + *other;
  if (next.overflow || next.terms.size() >= linear.terms.size()) return false;
  linear = next;
  return true;
}

}  // namespace prunerc::ir
