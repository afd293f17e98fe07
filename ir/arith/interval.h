// Integer intervals and what is known of variables: the context of every simplification and proof.
#ifndef PRUNERC_IR_ARITH_INTERVAL_H_
#define PRUNERC_IR_ARITH_INTERVAL_H_

#include "ir/domain.h"
#include "ir/expr.h"
#include "ir/int_math.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace prunerc::ir {

/// All integers lo <= x <= hi; INT64_MIN and INT64_MAX stand for "no bound". Arithmetic saturates
/// to "no bound".
struct Interval {
  static constexpr int64_t kNoLower = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kNoUpper = std::numeric_limits<int64_t>::max();

  int64_t lo = kNoLower;
  int64_t hi = kNoUpper;

  static constexpr Interval all() { return {}; }
  static constexpr Interval point(int64_t v) { return {v, v}; }
  constexpr bool is_point() const { return lo == hi; }
  constexpr bool is_empty() const { return lo > hi; }
  /// Both ends are known.
  constexpr bool is_bounded() const { return lo != kNoLower && hi != kNoUpper; }
  constexpr bool contains(int64_t v) const { return lo <= v && v <= hi; }
  constexpr bool contains(Interval other) const { return lo <= other.lo && other.hi <= hi; }
  constexpr bool operator==(const Interval&) const = default;
};

Interval operator+(Interval a, Interval b);
Interval operator-(Interval a, Interval b);
Interval operator*(Interval a, Interval b);
/// Floor division and modulo; zero is left out of the divisor.
Interval floor_div(Interval a, Interval b);
Interval floor_mod(Interval a, Interval b);
Interval min(Interval a, Interval b);
Interval max(Interval a, Interval b);
Interval intersect(Interval a, Interval b);
Interval hull(Interval a, Interval b);

/// What is known where an expression stands: variables v with 0 <= v < extent, tile parameters,
/// conditions that hold. Borrows the expressions. Scopes nest by mark() and rewind(). Index
/// arithmetic over variables and parameters is taken not to overflow; values from buffers may be
/// anything of their type.
class VarRanges {
 public:
  VarRanges() = default;
  /// Knows the domains of a program's tile parameters (at least 1, at most the tiled extent,
  /// product of perfect tiles).
  explicit VarRanges(const Domain& domain);

  /// 0 <= var < extent; the extent may mention tile parameters and variables bound before.
  void bind(const Var* var, Expr extent);
  /// A variable with constant bounds.
  void bind(VarId var, Interval interval);
  /// Adds a fact. Conjunctions are taken apart; bounds of single variables narrow their intervals.
  void assume(Expr condition);
  /// Adds the fact that `condition` does not hold.
  void assume_not(Expr condition);

  struct Mark {
    std::size_t num_entries = 0;
    std::size_t num_facts = 0;
  };
  Mark mark() const { return {entries_.size(), facts_.size()}; }
  /// Forgets what was added since `mark`.
  void rewind(Mark mark);

  /// Interval of a variable; all() if it is unknown.
  Interval interval(VarId var) const;
  /// Interval of a tile parameter: at least [1, inf).
  Interval interval(ParamId param) const;
  /// The extent it was bound with (facts narrow the interval only); null if bound by an interval or
  /// not at all.
  Expr extent(VarId var) const;
  /// The same if it is no constant, else null.
  Expr symbolic_extent(VarId var) const;
  bool knows(VarId var) const;

  /// A condition that is known to hold, or not to hold.
  struct Fact {
    Expr condition;
    bool holds = true;
  };
  std::span<const Fact> facts() const { return facts_; }
  /// Null if no domain is known.
  const Domain* domain() const { return domain_; }

 private:
  struct Entry {
    VarId var;
    Interval interval;
    Expr extent;
  };
  void add_fact(Expr condition, bool holds);
  void narrow(Expr condition, bool holds);
  void narrow_expr(Expr e, Interval bound, int depth);

  std::vector<Entry> entries_;  // a later entry of a variable hides an earlier one
  std::vector<Fact> facts_;
  std::vector<Interval> params_;  // by ParamId
  const Domain* domain_ = nullptr;
};

/// Bounds of an integer or bool expression (bool: within [0, 1]); floats give all(). No normal form
/// is made, so this is cheap and coarse: `interval_of(x - x)` is not a point. Data that may wrap
/// gives the whole range of its type. Cost: O(size of e).
Interval interval_of(Expr e, const VarRanges& ranges);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_INTERVAL_H_
