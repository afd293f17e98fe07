// Terms: what a program computes, as a graph over named axes in which no loop and no buffer is left.
// Named axes make broadcasts, transposes and renamed loops one thing, so that equal computations are
// one term.
#ifndef PRUNERC_SEARCH_ALGEBRA_TERM_H_
#define PRUNERC_SEARCH_ALGEBRA_TERM_H_

#include "ir/expr.h"
#include "ir/support/ids.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace prunerc::search::algebra {

using AxisId = int32_t;
/// One bit for each axis; programs with more than 64 are not lifted.
using AxisSet = uint64_t;
inline constexpr int kMaxAxes = 64;
constexpr AxisSet axis_bit(AxisId axis) { return AxisSet{1} << axis; }

/// What loops of one extent that mean the same thing have in common.
struct Axis {
  std::string name;
  int64_t extent = 1;
  /// Extent in the small program that stands for this one when forms are compared; 0: it follows from
  /// others, as that of a padded copy does.
  int64_t twin = 1;
  bool operator==(const Axis&) const = default;
};

/// (axis // lower) % extent * scale; extent 0: no remainder is taken.
struct Digit {
  AxisId axis = 0;
  int64_t lower = 1, extent = 0, scale = 1;
  auto operator<=>(const Digit&) const = default;
};

/// base + the sum of digits, which are sorted and differ in more than their scale.
struct Subscript {
  std::vector<Digit> digits;
  int64_t base = 0;
  auto operator<=>(const Subscript&) const = default;
  /// The axis, if it is one and nothing else; else -1.
  AxisId plain() const;
  AxisSet axes() const;
};
Subscript plain_subscript(AxisId axis);
Subscript operator+(const Subscript& a, const Subscript& b);
Subscript operator*(const Subscript& a, int64_t factor);

/// value <= 0, value == 0 or value != 0.
struct Condition {
  enum class Kind : uint8_t { kAtMostZero, kZero, kNotZero };
  Kind kind = Kind::kAtMostZero;
  Subscript value;
  auto operator<=>(const Condition&) const = default;
};

/// Whether it decides at a place that a program of small extents lacks: k < 200 of 400, k == 7; but not
/// near an end of its range, as padding does, nor where axes meet, as a causal mask does.
bool names_position(const Condition& condition, std::span<const Axis> axes);

enum class TermOp : uint8_t {
  kLoad,    // an element of a buffer, at `index`
  kConst,   // `value`
  kMask,    // a bool: all of `conditions`
  kBinary,  // `kind` of two args: Add .. Max of floats, Add, Sub, Mul, Min, Max of integers
  kCall,    // `intrinsic` of the args
  kSelect,  // args: mask, value where it holds, value where not
  kCast,    // of one arg to `dtype`
  kReduce,  // `kind` (Add, Mul, Min or Max) of one arg over `bound`
};

using TermId = int32_t;

/// A node. Fields that its op has no use for keep their defaults, so that equal terms compare equal.
struct Term {
  TermOp op = TermOp::kConst;
  ir::ExprKind kind = ir::ExprKind::kAdd;
  ir::Intrinsic intrinsic = ir::Intrinsic::kExp;
  ir::DType dtype = ir::DType::kF32;
  double value = 0;
  ir::BufferId buffer{-1};
  std::vector<Subscript> index;
  std::vector<Condition> conditions;
  std::vector<TermId> args;
  AxisSet bound = 0;  // axes that end here
  AxisSet free = 0;   // axes that the value depends on; filled in by TermGraph
  bool operator==(const Term&) const = default;
};

/// The terms that have been made, each once (hash consing): terms are equal if their ids are. Grows
/// only; args have smaller ids than what they are args of.
/// Threads: as a container.
class TermGraph {
 public:
  const Term& operator[](TermId id) const { return terms_[static_cast<std::size_t>(id)]; }
  int size() const { return static_cast<int>(terms_.size()); }

  /// The id of this node; `free` is filled in. Nothing is simplified.
  TermId put(Term term);

  TermId load(ir::BufferId buffer, std::vector<Subscript> index, ir::DType dtype);
  TermId constant(double value, ir::DType dtype);
  TermId mask(std::vector<Condition> conditions);
  TermId binary(ir::ExprKind kind, TermId a, TermId b);
  TermId add(TermId a, TermId b) { return binary(ir::ExprKind::kAdd, a, b); }
  TermId sub(TermId a, TermId b) { return binary(ir::ExprKind::kSub, a, b); }
  TermId mul(TermId a, TermId b) { return binary(ir::ExprKind::kMul, a, b); }
  TermId div(TermId a, TermId b) { return binary(ir::ExprKind::kDiv, a, b); }
  TermId call(ir::Intrinsic intrinsic, std::span<const TermId> args);
  TermId call(ir::Intrinsic intrinsic, TermId arg) { return call(intrinsic, std::span(&arg, 1)); }
  TermId select(TermId mask, TermId on_true, TermId on_false);
  TermId cast(ir::DType dtype, TermId arg);
  /// Over no axis: the arg itself.
  TermId reduce(ir::ExprKind kind, AxisSet bound, TermId arg);

  /// `id` with other args in the same places.
  TermId with_args(TermId id, std::span<const TermId> args);

 private:
  std::vector<Term> terms_;
  std::unordered_map<uint64_t, std::vector<TermId>> by_hash_;
};

/// `id` with each axis of the map, bound or free, replaced by a subscript over others: a reduction
/// over an axis becomes one over the axes that it is made of. An axis that is taken apart somewhere
/// may become another axis, or high*radix + low with low < radix; -1 where a digit does not divide
/// out. Cost: O(terms below).
using AxisMap = std::unordered_map<AxisId, Subscript>;
TermId replace_axes(TermGraph& graph, TermId id, const AxisMap& map);
/// False where a digit does not divide out.
bool replace_axes(const Subscript& in, const AxisMap& map, Subscript* out);

/// `id` with terms below it (and itself) replaced; what is replaced is not looked into.
TermId replace_terms(TermGraph& graph, TermId id, std::unordered_map<TermId, TermId> with);

/// All terms below the roots, roots included, args before what they are args of.
std::vector<TermId> reachable(const TermGraph& graph, std::span<const TermId> roots);

/// Product of the extents.
double extent_of(std::span<const Axis> axes, AxisSet set);

/// "sum[e] Q[h, t, e]*K[h, s, e]"; `names` gives buffers.
using BufferNames = std::vector<std::string>;
std::string to_string(const TermGraph& graph, TermId id, std::span<const Axis> axes,
                      const BufferNames& names);

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_TERM_H_
