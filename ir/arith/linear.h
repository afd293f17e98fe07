// Polynomial normal form of index expressions: a constant plus coefficients times products of
// atoms.
#ifndef PRUNERC_IR_ARITH_LINEAR_H_
#define PRUNERC_IR_ARITH_LINEAR_H_

#include "ir/arith/interval.h"
#include "ir/builder.h"
#include "ir/equal.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::ir {

/// A total order that depends on structure and ids only: negative, zero, positive.
int compare_exprs(Expr a, Expr b);

/// coef * atoms[0] * ... ; the atoms are sorted and may repeat. No atoms: a constant.
struct Term {
  static constexpr int kMaxDegree = 8;

  int64_t coef = 0;
  int32_t degree = 0;
  std::array<Expr, kMaxDegree> atoms;

  std::span<const Expr> factors() const { return {atoms.data(), static_cast<std::size_t>(degree)}; }
};

/// The product; false if it does not fit.
bool multiply_terms(const Term& a, const Term& b, Term* out);
/// a / b if b's coefficient and atoms divide a's; false if not.
bool divide_terms(const Term& a, const Term& b, Term* out);

/// Order of the products of atoms, coefficients aside.
int compare_atoms(const Term& a, const Term& b);

/// constant + sum of terms. Terms are sorted, their products of atoms differ, no coefficient is 0.
/// Atoms are variables, tile parameters, floordiv and floormod that do not divide further, and
/// opaque expressions.
struct Linear {
  int64_t constant = 0;
  std::vector<Term> terms;
  bool overflow = false;  // a coefficient left 64 bits: the value must not be used
  bool has_data = false;  // holds values from buffers: may wrap unless its interval is bounded

  static Linear of(int64_t value);
  static Linear of(Expr atom);
  static Linear of(const Term& term);
  bool is_constant() const { return terms.empty() && !overflow; }
  bool is_constant(int64_t value) const { return is_constant() && constant == value; }
  bool operator==(const Linear& other) const;
};

Linear operator+(const Linear& a, const Linear& b);
Linear operator-(const Linear& a, const Linear& b);
Linear operator*(const Linear& a, int64_t factor);
/// Nullopt if the product has too many terms or too high a degree to be expanded.
std::optional<Linear> multiply(const Linear& a, const Linear& b);
/// Greatest common divisor of all coefficients of terms (not the constant); 0 if there are none.
int64_t coefficient_gcd(const Linear& a);

/// Normal form of an i64 expression; equal polynomials give equal forms. Atoms are simplified; new
/// ones are made by b.
Linear to_linear(IrBuilder& b, Expr e, const VarRanges& ranges);
/// Adds a constant.
Linear operator+(const Linear& a, int64_t value);
/// Back to an expression: large coefficients first, the constant last.
Expr to_expr(IrBuilder& b, const Linear& linear);
Expr to_expr(IrBuilder& b, const Term& term);

/// Puts the extent in for a product of all parameters of a perfect tile vector.
Linear reduce_tiles(const Linear& linear, const Domain& domain);

/// Bounds of a normal form: variables run between their (possibly symbolic) ends, tile parameters
/// from 1; exact for sums that are affine in independent variables.
Interval interval_of(const Linear& linear, const VarRanges& ranges);

/// Replaces each variable of `inner` (outermost first) by the end of its range that makes the value
/// smallest or largest; exact for sums that are affine in them. Nullopt if an atom or a sign does
/// not allow it.
enum class Bound { kLower, kUpper };
std::optional<Linear> eliminate_vars(IrBuilder& b, const Linear& linear, Bound bound,
                                     const VarRanges& ranges, std::span<const VarId> inner);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_LINEAR_H_
