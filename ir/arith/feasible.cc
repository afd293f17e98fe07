#include "ir/arith/feasible.h"

#include "ir/arith/interval.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

namespace prunerc::ir {
namespace {

/// Elimination may square the number of rows at each step; beyond this it gives up.
constexpr std::size_t kMaxRows = 400;

int64_t coef(const AffineRow& row, std::size_t var) {
  return var < row.coefs.size() ? row.coefs[var] : 0;
}

int64_t gcd_of(const AffineRow& row) {
  int64_t gcd = 0;
  for (const int64_t c : row.coefs) gcd = std::gcd(gcd, c);
  return gcd;
}

enum class Outcome : uint8_t { kGoOn, kContradiction, kGiveUp };

/// Which integers the projection of a variable keeps: all that have a rational value of it above
/// them, or only some that certainly have an integer one.
enum class Shadow : uint8_t { kReal, kDark };

class Elimination {
 public:
  Elimination(std::vector<AffineRow> equations, std::vector<AffineRow> inequalities,
              std::size_t num_vars, Shadow shadow)
      : equations_(std::move(equations)),
        inequalities_(std::move(inequalities)),
        num_vars_(num_vars),
        shadow_(shadow) {}

  Proof run() {
    for (Outcome outcome = Outcome::kGoOn; outcome != Outcome::kGiveUp;) {
      if (!equations_.empty()) {
        outcome = solve_equation();
      } else {
        outcome = tighten();
        const std::optional<std::size_t> var = next_var();
        if (outcome == Outcome::kGoOn && !var) {
          return exact_ || shadow_ == Shadow::kDark ? Proof::kYes : Proof::kUnknown;
        }
        if (outcome == Outcome::kGoOn) outcome = eliminate(*var);
      }
      if (outcome == Outcome::kContradiction) {
        return exact_ || shadow_ == Shadow::kReal ? Proof::kNo : Proof::kUnknown;
      }
    }
    return Proof::kUnknown;
  }

 private:
  // Replaces x_var by `value` in every row.
  bool substitute(std::size_t var, const AffineRow& value) {
    for (std::vector<AffineRow>* rows : {&equations_, &inequalities_}) {
      for (AffineRow& row : *rows) {
        const int64_t factor = coef(row, var);
        if (factor == 0) continue;
        row.coefs[var] = 0;
        if (!row.add(value, factor)) return false;
      }
    }
    return true;
  }

  // Uses up the last equation, or makes its smallest coefficient smaller.
  Outcome solve_equation() {
    AffineRow& row = equations_.back();
    const int64_t gcd = gcd_of(row);
    if (gcd == 0) {
      const bool holds = row.constant == 0;
      equations_.pop_back();
      return holds ? Outcome::kGoOn : Outcome::kContradiction;
    }
    if (row.constant % gcd != 0) return Outcome::kContradiction;
    for (int64_t& c : row.coefs) c /= gcd;
    row.constant /= gcd;
    std::size_t best = 0;
    int64_t smallest = 0;
    for (std::size_t i = 0; i < row.coefs.size(); ++i) {
      const int64_t size = std::abs(row.coefs[i]);
      if (size != 0 && (smallest == 0 || size < smallest)) {
        smallest = size;
        best = i;
      }
    }
    const int64_t pivot = row.coefs[best];
    AffineRow value;
    if (smallest == 1) {
      // x = -(rest) / pivot, and pivot is 1 or -1.
      AffineRow rest = std::move(row);
      equations_.pop_back();
      rest.coefs[best] = 0;
      if (!value.add(rest, -pivot)) return Outcome::kGiveUp;
      return substitute(best, value) ? Outcome::kGoOn : Outcome::kGiveUp;
    }
    // With x = t - sum of q_j x_j the coefficients of this row become remainders by the pivot; t
    // takes the place of x.
    value.add(best, 1);
    for (std::size_t i = 0; i < row.coefs.size(); ++i) {
      if (i != best) value.add(i, -floor_div(row.coefs[i], pivot));
    }
    return substitute(best, value) ? Outcome::kGoOn : Outcome::kGiveUp;
  }

  // Divides each inequality by what its coefficients share, rounding the constant down; drops those
  // that always hold.
  Outcome tighten() {
    std::vector<AffineRow> kept;
    for (AffineRow& row : inequalities_) {
      const int64_t gcd = gcd_of(row);
      if (gcd == 0 && row.constant < 0) return Outcome::kContradiction;
      if (gcd == 0) continue;
      for (int64_t& c : row.coefs) c /= gcd;
      row.constant = floor_div(row.constant, gcd);
      const auto same = std::find_if(kept.begin(), kept.end(), [&](const AffineRow& other) {
        for (std::size_t i = 0; i < num_vars_; ++i) {
          if (coef(other, i) != coef(row, i)) return false;
        }
        return true;
      });
      if (same == kept.end()) {
        kept.push_back(std::move(row));
      } else {
        same->constant = std::min(same->constant, row.constant);
      }
    }
    inequalities_ = std::move(kept);
    return inequalities_.size() > kMaxRows ? Outcome::kGiveUp : Outcome::kGoOn;
  }

  // The variable whose elimination makes the fewest rows; rather one that is eliminated exactly.
  std::optional<std::size_t> next_var() const {
    std::optional<std::size_t> best;
    int64_t best_cost = 0;
    for (std::size_t var = 0; var < num_vars_; ++var) {
      int64_t lower = 0;
      int64_t upper = 0;
      bool unit_lower = true;
      bool unit_upper = true;
      for (const AffineRow& row : inequalities_) {
        const int64_t c = coef(row, var);
        lower += c > 0 ? 1 : 0;
        upper += c < 0 ? 1 : 0;
        unit_lower &= c <= 1;
        unit_upper &= c >= -1;
      }
      if (lower + upper == 0) continue;
      const int64_t inexact = unit_lower || unit_upper ? 0 : int64_t{1} << 32;
      const int64_t cost = lower * upper + inexact;
      if (!best || cost < best_cost) {
        best = var;
        best_cost = cost;
      }
    }
    return best;
  }

  Outcome eliminate(std::size_t var) {
    std::vector<AffineRow> lower;
    std::vector<AffineRow> upper;
    std::vector<AffineRow> rest;
    for (AffineRow& row : inequalities_) {
      const int64_t c = coef(row, var);
      (c > 0 ? lower : c < 0 ? upper : rest).push_back(std::move(row));
    }
    if (lower.size() * upper.size() + rest.size() > kMaxRows) return Outcome::kGiveUp;
    for (const AffineRow& from : lower) {
      for (const AffineRow& to : upper) {
        const int64_t a = from.coefs[var];
        const int64_t b = -to.coefs[var];
        exact_ = exact_ && (a == 1 || b == 1);
        AffineRow both;
        if (!both.add(from, b) || !both.add(to, a)) return Outcome::kGiveUp;
        // An interval of that length holds an integer whatever its ends are.
        if (shadow_ == Shadow::kDark) both.constant -= (a - 1) * (b - 1);
        rest.push_back(std::move(both));
      }
    }
    inequalities_ = std::move(rest);
    return Outcome::kGoOn;
  }

  std::vector<AffineRow> equations_, inequalities_;
  std::size_t num_vars_;
  Shadow shadow_;
  bool exact_ = true;
};

int64_t value_at(const AffineRow& row, const std::vector<int64_t>& point) {
  int64_t out = row.constant;
  for (std::size_t i = 0; i < row.coefs.size(); ++i) out += row.coefs[i] * point[i];
  return out;
}

}  // namespace

void AffineRow::add(std::size_t var, int64_t factor) {
  if (coefs.size() <= var) coefs.resize(var + 1, 0);
  coefs[var] += factor;
}

bool AffineRow::add(const AffineRow& other, int64_t factor) {
  const auto accumulate = [factor](int64_t& to, int64_t value) {
    int64_t product = 0;
    return !__builtin_mul_overflow(value, factor, &product) &&
           !__builtin_add_overflow(to, product, &to);
  };
  if (coefs.size() < other.coefs.size()) coefs.resize(other.coefs.size(), 0);
  bool fits = accumulate(constant, other.constant);
  for (std::size_t i = 0; i < other.coefs.size(); ++i) {
    fits = fits && accumulate(coefs[i], other.coefs[i]);
  }
  return fits;
}

bool AffineRow::is_constant() const { return gcd_of(*this) == 0; }

std::size_t AffineSystem::add_var(int64_t lo, int64_t hi) {
  bounds_.push_back({lo, hi});
  return bounds_.size() - 1;
}

Proof AffineSystem::eliminate() const {
  std::vector<AffineRow> equations = equations_;
  std::vector<AffineRow> inequalities = inequalities_;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    if (bounds_[i].lo > bounds_[i].hi) return Proof::kNo;
    AffineRow above;
    above.add(i, 1);
    above.constant = -bounds_[i].lo;
    if (bounds_[i].lo == bounds_[i].hi) {
      equations.push_back(std::move(above));  // the last ones are solved first
      continue;
    }
    AffineRow below;
    below.add(i, -1);
    below.constant = bounds_[i].hi;
    inequalities.push_back(std::move(above));
    inequalities.push_back(std::move(below));
  }
  const Proof found = Elimination(equations, inequalities, num_vars(), Shadow::kReal).run();
  if (found != Proof::kUnknown) return found;
  return Elimination(std::move(equations), std::move(inequalities), num_vars(), Shadow::kDark)
      .run();
}

// Narrows the bounds to what `row` >= 0 leaves; true if something changed.
bool AffineSystem::narrow(const AffineRow& row) {
  Interval most = Interval::point(row.constant);
  for (std::size_t i = 0; i < row.coefs.size(); ++i) most = most + reach(row, i);
  bool changed = false;
  for (std::size_t i = 0; i < row.coefs.size() && most.hi != Interval::kNoUpper; ++i) {
    const int64_t c = row.coefs[i];
    if (c == 0) continue;
    // c * x >= -(the most that the others reach)
    const int64_t others = most.hi - reach(row, i).hi;
    if (c > 0) {
      const int64_t least = -floor_div(others, c);
      changed |= least > bounds_[i].lo;
      bounds_[i].lo = std::max(bounds_[i].lo, least);
    } else {
      const int64_t largest = floor_div(others, -c);
      changed |= largest < bounds_[i].hi;
      bounds_[i].hi = std::min(bounds_[i].hi, largest);
    }
    if (bounds_[i].lo > bounds_[i].hi) return false;
  }
  return changed;
}

Interval AffineSystem::reach(const AffineRow& row, std::size_t var) const {
  return Interval::point(row.coefs[var]) * Interval{bounds_[var].lo, bounds_[var].hi};
}

void AffineSystem::narrow_all() {
  constexpr int kRounds = 4;
  bool changed = true;
  for (int round = 0; round < kRounds && changed; ++round) {
    changed = false;
    for (const AffineRow& row : inequalities_) changed |= narrow(row);
    for (const AffineRow& row : equations_) {
      changed |= narrow(row);
      AffineRow negated;
      if (negated.add(row, -1)) changed |= narrow(negated);
    }
  }
}

Proof AffineSystem::branch(int64_t* budget) const {
  const Proof found = eliminate();
  if (found != Proof::kUnknown) return found;
  // Variables that others were made from come first; with them the others are decided.
  std::size_t next = 0;
  while (next < num_vars() && bounds_[next].lo == bounds_[next].hi) ++next;
  if (next == num_vars()) return Proof::kUnknown;  // numbers too large even for one point
  const Bounds range = bounds_[next];
  if (range.hi - range.lo >= *budget) return Proof::kUnknown;
  *budget -= range.hi - range.lo + 1;
  Proof all = Proof::kNo;
  AffineSystem fixed = *this;
  for (int64_t value = range.lo; value <= range.hi; ++value) {
    fixed.bounds_[next] = {value, value};
    AffineSystem narrowed = fixed;
    narrowed.narrow_all();
    const Proof one = narrowed.branch(budget);
    if (one == Proof::kYes) return one;
    if (one == Proof::kUnknown) all = one;
  }
  return all;
}

Proof AffineSystem::feasible(const ProveOptions& options) const {
  // An elimination costs about as much as trying so many points.
  constexpr int64_t kPointsPerBranch = 64;
  int64_t budget = options.max_points / kPointsPerBranch;
  const Proof found = branch(&budget);
  return found == Proof::kUnknown ? enumerate(options.max_points) : found;
}

Proof AffineSystem::enumerate(int64_t max_points) const {
  int64_t count = 1;
  std::vector<int64_t> point;
  for (const Bounds& bounds : bounds_) {
    if (bounds.lo > bounds.hi) return Proof::kNo;
    if (max_points == 0) return Proof::kUnknown;
    const int64_t size = bounds.hi - bounds.lo + 1;
    if (size > max_points / count) return Proof::kUnknown;
    count *= size;
    point.push_back(bounds.lo);
  }
  const auto holds = [&] {
    return std::all_of(equations_.begin(), equations_.end(),
                       [&](const AffineRow& row) { return value_at(row, point) == 0; }) &&
           std::all_of(inequalities_.begin(), inequalities_.end(),
                       [&](const AffineRow& row) { return value_at(row, point) >= 0; });
  };
  for (int64_t n = 0; n < count; ++n) {
    if (holds()) return Proof::kYes;
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (++point[i] <= bounds_[i].hi) break;
      point[i] = bounds_[i].lo;
    }
  }
  return Proof::kNo;
}

}  // namespace prunerc::ir
