// Ranges of integer expressions over constant index ranges, under the facts that guard them.
#ifndef PRUNERC_IR_LANG_RANGE_H_
#define PRUNERC_IR_LANG_RANGE_H_

#include "ir/lang/typed.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace prunerc::lang {

/// Inclusive. Empty if lo > hi.
struct ValueRange {
  int64_t lo = INT64_MIN;
  int64_t hi = INT64_MAX;
  bool contains(int64_t value) const { return lo <= value && value <= hi; }
};

/// A sum of integer multiples of indices and opaque terms, plus a constant.
struct LinearForm {
  std::vector<std::pair<const Node*, int64_t>>
      terms;  // distinct structurally, coefficients nonzero
  int64_t constant = 0;
  bool is_valid = true;  // false after an overflow
};

/// A condition that holds (or not) where an expression is evaluated.
struct Fact {
  const Node* condition;
  bool holds;
  bool operator==(const Fact&) const = default;
};

/// The facts of one place, with what follows from them for single indices.
class FactSet {
 public:
  /// This place, where `condition` also holds (or not). Conjunctions are taken apart.
  FactSet with(const Node* condition, bool holds) const;
  bool is_empty() const { return facts_.empty(); }
  /// True if the facts exclude each other: the place is never reached.
  bool is_unreachable() const { return is_unreachable_; }
  const std::vector<Fact>& facts() const { return facts_; }
  /// Each is at least 0.
  const std::vector<LinearForm>& inequalities() const { return inequalities_; }
  ValueRange range_of(const IndexVar* index) const;

 private:
  void add(const Node* condition, bool holds);
  void add_comparison(AstOp op, const Node* lhs, const Node* rhs);
  void narrow();
  void narrow_by(const LinearForm& form);
  void exclude(const Node* lhs, const Node* rhs);

  std::vector<Fact> facts_;
  std::vector<LinearForm> inequalities_;
  std::map<const IndexVar*, ValueRange> narrowed_;
  bool is_unreachable_ = false;
};

/// Range of an integer node at a place. Sound: wrapping arithmetic gives the whole range of the
/// type.
ValueRange range_of(const Node* node, const FactSet& facts);

/// Whether arithmetic of indices and constants in the node may leave the range of an i64; what else there is
/// (data, reductions, casts of floats) and stands on it is not asked about.
bool may_wrap(const Node* node, const FactSet& facts);

/// The node as a linear form over i64; parts that are not linear become opaque terms.
LinearForm linear_form(const Node* node);
/// a + factor * b.
LinearForm add_scaled(const LinearForm& a, const LinearForm& b, int64_t factor);

/// Exact range by evaluating every point, if the indices involved have at most `budget` points
/// (which is lowered by the work done) and nothing overflows; nullopt otherwise. An unreachable
/// place gives an empty range.
std::optional<ValueRange> enumerate_range(const Node* node, const FactSet& facts, int64_t& budget);

/// True if the node takes the value 0 nowhere, by evaluating every point; false if it may.
bool enumerate_nonzero(const Node* node, const FactSet& facts, int64_t& budget);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_RANGE_H_
