// Conjunctions of affine conditions over bounded integers: is there a solution?
#ifndef PRUNERC_IR_ARITH_FEASIBLE_H_
#define PRUNERC_IR_ARITH_FEASIBLE_H_

#include "ir/arith/interval.h"
#include "ir/arith/prove.h"

#include <cstdint>
#include <vector>

namespace prunerc::ir {

/// sum of coefs[i] * x_i, plus constant. Missing coefficients are 0.
struct AffineRow {
  std::vector<int64_t> coefs;
  int64_t constant = 0;

  void add(std::size_t var, int64_t factor);
  /// Adds factor * other; false if that overflows.
  bool add(const AffineRow& other, int64_t factor);
  bool is_constant() const;
};

/// Integer variables with bounds, equations and inequalities.
///
/// Method: equations are solved over the integers (unimodular substitutions until a coefficient is
/// 1), then variables are eliminated from the inequalities one by one (Fourier-Motzkin). A
/// contradiction means that there is no solution. Without one there is a solution if every
/// elimination was exact, which it is where one of two combined coefficients is 1, or if the dark
/// shadow (Pugh's Omega test) is not empty. Otherwise the first variable is set to each of its
/// values, and so on, within a budget; and small systems are enumerated.
class AffineSystem {
 public:
  /// lo <= x <= hi; returns its index.
  std::size_t add_var(int64_t lo, int64_t hi);
  std::size_t num_vars() const { return bounds_.size(); }
  /// row == 0, row >= 0.
  void require_zero(AffineRow row) { equations_.push_back(std::move(row)); }
  void require_nonnegative(AffineRow row) { inequalities_.push_back(std::move(row)); }

  /// kYes: some integer point satisfies all; kNo: none does.
  Proof feasible(const ProveOptions& options = {.max_points = 1'000'000}) const;
  /// By trying all points; kUnknown if there are more than `max_points`.
  Proof enumerate(int64_t max_points) const;

 private:
  struct Bounds {
    int64_t lo, hi;  // far enough from the ends of 64 bits that their distance fits
  };
  Proof eliminate() const;
  Proof branch(int64_t* budget) const;
  bool narrow(const AffineRow& row);
  void narrow_all();
  Interval reach(const AffineRow& row, std::size_t var) const;
  std::vector<Bounds> bounds_;
  std::vector<AffineRow> equations_, inequalities_;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_FEASIBLE_H_
