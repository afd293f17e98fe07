#include "ir/arith/linear.h"

#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <numeric>

namespace prunerc::ir {
namespace {

// A product of two sums is expanded up to this many terms.
constexpr std::size_t kMaxProductTerms = 32;

// Variables first, then parameters, then everything else.
int rank(ExprKind kind) {
  return kind == ExprKind::kVar ? 0 : kind == ExprKind::kTileParam ? 1 : 2 + static_cast<int>(kind);
}

int three_way(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

int compare_lists(std::span<const Expr> a, std::span<const Expr> b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (const int c = compare_exprs(a[i], b[i]); c != 0) return c;
  }
  return 0;
}

void add_checked(int64_t& to, int64_t value, bool& overflow) {
  overflow = __builtin_add_overflow(to, value, &to) || overflow;
}

// a + factor * b by merging.
Linear combine(const Linear& a, const Linear& b, int64_t factor) {
  Linear out;
  out.overflow = a.overflow || b.overflow;
  out.has_data = a.has_data || b.has_data;
  int64_t scaled = 0;
  out.overflow = __builtin_mul_overflow(b.constant, factor, &scaled) || out.overflow;
  out.constant = a.constant;
  add_checked(out.constant, scaled, out.overflow);
  out.terms.reserve(a.terms.size() + b.terms.size());
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    const int c = i == a.terms.size()   ? 1
                  : j == b.terms.size() ? -1
                                        : compare_atoms(a.terms[i], b.terms[j]);
    if (c < 0) {
      out.terms.push_back(a.terms[i++]);
      continue;
    }
    Term t = b.terms[j++];
    out.overflow = __builtin_mul_overflow(t.coef, factor, &t.coef) || out.overflow;
    if (c == 0) add_checked(t.coef, a.terms[i++].coef, out.overflow);
    if (t.coef != 0) out.terms.push_back(t);
  }
  // Data that cancels is gone: ring identities hold even where it wraps.
  if (out.has_data && out.terms.size() < a.terms.size() + b.terms.size()) {
    out.has_data = std::any_of(out.terms.begin(), out.terms.end(), [](const Term& t) {
      return std::any_of(t.factors().begin(), t.factors().end(), has_data);
    });
  }
  return out;
}

}  // namespace

bool multiply_terms(const Term& a, const Term& b, Term* out) {
  if (a.degree + b.degree > Term::kMaxDegree) return false;
  if (__builtin_mul_overflow(a.coef, b.coef, &out->coef)) return false;
  out->degree = a.degree + b.degree;
  std::merge(a.atoms.begin(), a.atoms.begin() + a.degree, b.atoms.begin(),
             b.atoms.begin() + b.degree, out->atoms.begin(),
             [](Expr x, Expr y) { return compare_exprs(x, y) < 0; });
  return true;
}

bool divide_terms(const Term& a, const Term& b, Term* out) {
  if (b.coef == 0 || b.degree > a.degree || a.coef % b.coef != 0) return false;
  Term quotient;
  quotient.coef = a.coef / b.coef;
  int j = 0;
  for (Expr atom : a.factors()) {
    if (j < b.degree && compare_exprs(atom, b.atoms[static_cast<std::size_t>(j)]) == 0) {
      ++j;
    } else {
      quotient.atoms[static_cast<std::size_t>(quotient.degree++)] = atom;
    }
  }
  if (j < b.degree) return false;
  *out = quotient;
  return true;
}

int compare_exprs(Expr a, Expr b) {
  if (a.is(b)) return 0;
  if (a.kind() != b.kind()) return rank(a.kind()) < rank(b.kind()) ? -1 : 1;
  if (a.dtype() != b.dtype()) return a.dtype() < b.dtype() ? -1 : 1;
  if (const Var* v = a.as<Var>()) return three_way(v->id.value, b.as<Var>()->id.value);
  if (const TileParam* p = a.as<TileParam>()) {
    return three_way(p->id.value, b.as<TileParam>()->id.value);
  }
  if (const IntImm* c = a.as<IntImm>()) return three_way(c->value, b.as<IntImm>()->value);
  if (const BinaryNode* n = as_binary(a)) {
    const BinaryNode* m = as_binary(b);
    const int c = compare_exprs(n->lhs, m->lhs);
    return c != 0 ? c : compare_exprs(n->rhs, m->rhs);
  }
  if (const Load* l = a.as<Load>()) {
    const int c = three_way(l->buffer.value, b.as<Load>()->buffer.value);
    return c != 0 ? c : compare_lists(l->indices, b.as<Load>()->indices);
  }
  if (const Call* l = a.as<Call>()) {
    const int c =
        three_way(static_cast<int>(l->intrinsic), static_cast<int>(b.as<Call>()->intrinsic));
    return c != 0 ? c : compare_lists(l->args, b.as<Call>()->args);
  }
  if (const Cast* n = a.as<Cast>()) return compare_exprs(n->operand, b.as<Cast>()->operand);
  if (structural_equal(a, b)) return 0;
  return a.hash() < b.hash() ? -1 : 1;
}

int compare_atoms(const Term& a, const Term& b) {
  for (int i = 0; i < a.degree && i < b.degree; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (const int c = compare_exprs(a.atoms[k], b.atoms[k]); c != 0) return c;
  }
  return a.degree - b.degree;
}

Linear Linear::of(int64_t value) {
  Linear out;
  out.constant = value;
  return out;
}

Linear Linear::of(Expr atom) {
  Linear out;
  if (const IntImm* c = atom.as<IntImm>()) {
    out.constant = c->value;
    return out;
  }
  out.terms.resize(1);
  out.terms[0].coef = 1;
  out.terms[0].degree = 1;
  out.terms[0].atoms[0] = atom;
  out.has_data = ir::has_data(atom);
  return out;
}

Linear Linear::of(const Term& term) {
  if (term.degree == 0) return of(term.coef);
  Linear out;
  if (term.coef != 0) out.terms.push_back(term);
  out.has_data = std::any_of(term.factors().begin(), term.factors().end(), ir::has_data);
  return out;
}

bool Linear::operator==(const Linear& other) const {
  if (overflow || other.overflow || constant != other.constant) return false;
  if (terms.size() != other.terms.size()) return false;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].coef != other.terms[i].coef) return false;
    if (compare_atoms(terms[i], other.terms[i]) != 0) return false;
  }
  return true;
}

Linear operator+(const Linear& a, const Linear& b) { return combine(a, b, 1); }
Linear operator-(const Linear& a, const Linear& b) { return combine(a, b, -1); }

Linear operator+(const Linear& a, int64_t value) {
  Linear out = a;
  add_checked(out.constant, value, out.overflow);
  return out;
}

Linear operator*(const Linear& a, int64_t factor) {
  Linear zero;
  return combine(zero, a, factor);
}

std::optional<Linear> multiply(const Linear& a, const Linear& b) {
  if (b.terms.empty()) return a * b.constant;
  if (a.terms.empty()) return b * a.constant;
  if (a.terms.size() * b.terms.size() > kMaxProductTerms) return std::nullopt;
  Linear out;
  out.has_data = a.has_data || b.has_data;
  out.overflow = a.overflow || b.overflow;
  out.overflow = __builtin_mul_overflow(a.constant, b.constant, &out.constant) || out.overflow;
  for (const Term& x : a.terms) {
    for (const Term& y : b.terms) {
      Term product;
      if (!multiply_terms(x, y, &product)) return std::nullopt;
      out.terms.push_back(product);
    }
  }
  std::sort(out.terms.begin(), out.terms.end(),
            [](const Term& x, const Term& y) { return compare_atoms(x, y) < 0; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < out.terms.size(); ++i) {
    if (kept > 0 && compare_atoms(out.terms[kept - 1], out.terms[i]) == 0) {
      add_checked(out.terms[kept - 1].coef, out.terms[i].coef, out.overflow);
    } else {
      out.terms[kept++] = out.terms[i];
    }
  }
  out.terms.resize(kept);
  out.terms.erase(
      std::remove_if(out.terms.begin(), out.terms.end(), [](const Term& t) { return t.coef == 0; }),
      out.terms.end());
  if (b.constant != 0) {
    Linear rest = a;
    rest.constant = 0;
    out = combine(out, rest, b.constant);
  }
  if (a.constant != 0) {
    Linear rest = b;
    rest.constant = 0;
    out = combine(out, rest, a.constant);
  }
  return out;
}

int64_t coefficient_gcd(const Linear& a) {
  int64_t g = 0;
  for (const Term& t : a.terms) g = std::gcd(g, t.coef == Interval::kNoLower ? 1 : t.coef);
  return g;
}

Expr to_expr(IrBuilder& b, const Term& term) {
  Expr product;
  for (Expr atom : term.factors()) product = product.defined() ? b.mul(product, atom) : atom;
  if (!product.defined()) return b.int_imm(term.coef);
  return term.coef == 1 ? product : b.mul(product, b.int_imm(term.coef));
}

Expr to_expr(IrBuilder& b, const Linear& linear) {
  if (linear.terms.empty()) return b.int_imm(linear.constant);
  if (linear.terms.size() == 1 && linear.constant == 0 && linear.terms[0].coef != -1) {
    return to_expr(b, linear.terms[0]);
  }
  std::vector<const Term*> order;
  order.reserve(linear.terms.size());
  for (const Term& t : linear.terms) order.push_back(&t);
  // Positive before negative, so that the first needs no minus; then high degree and large steps
  // first, as people write strides. stable_sort keeps the order of atoms among equals.
  std::stable_sort(order.begin(), order.end(), [](const Term* x, const Term* y) {
    if ((x->coef > 0) != (y->coef > 0)) return x->coef > 0;
    if (x->degree != y->degree) return x->degree > y->degree;
    return x->coef > 0 ? x->coef > y->coef : x->coef < y->coef;
  });
  Expr sum;
  if (order[0]->coef < 0 && (linear.constant > 0 || order[0]->coef == -1)) {
    sum = b.int_imm(linear.constant > 0 ? linear.constant : 0);
  }
  for (const Term* t : order) {
    if (!sum.defined()) {
      sum = to_expr(b, *t);
    } else if (t->coef > 0 || t->coef == Interval::kNoLower) {
      sum = b.add(sum, to_expr(b, *t));
    } else {
      Term negated = *t;
      negated.coef = -t->coef;
      sum = b.sub(sum, to_expr(b, negated));
    }
  }
  const bool constant_done = order[0]->coef < 0 && linear.constant > 0;
  if (constant_done || linear.constant == 0) return sum;
  if (linear.constant > 0 || linear.constant == Interval::kNoLower) {
    return b.add(sum, b.int_imm(linear.constant));
  }
  return b.sub(sum, b.int_imm(-linear.constant));
}

}  // namespace prunerc::ir
