// Are block bindings an independent affine map of the loops around, and can it be inverted?
#ifndef PRUNERC_IR_ARITH_ITER_MAP_H_
#define PRUNERC_IR_ARITH_ITER_MAP_H_

#include "ir/arith/linear.h"
#include "ir/builder.h"
#include "ir/support/result.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace prunerc::ir {

/// Why a map was not recognised.
enum class IterMapError : uint8_t {
  kNone,
  kNotAffine,             // a subscript holds data, a product of iterators, min, max, select ...
  kIteratorDivisor,       // a divisor depends on an iterator
  kDivisorMismatch,       // a divisor does not divide a scale or an extent
  kPredicateUnsupported,  // the guard is not a conjunction of affine bounds
  kPredicateConflict,     // the guard does not cut a whole fused iterator
  kNotIndependent,        // two indices share (part of) an iterator
  kNotCovering,  // an index does not traverse a contiguous range, or part of an iterator is unused
  kSymbolic,     // an extent or scale could not be compared
};
std::string_view to_string(IterMapError error);

/// What the caller needs. Surjective: each index runs through its whole range independently of the
/// others (an instance may repeat). Bijective: moreover each instance occurs once.
enum class IterMapLevel : uint8_t { kSurjective, kBijective };

/// floormod(floordiv(source, lower), extent) * scale. Numbers are monomials over tile parameters
/// (Term).
struct IterSplit {
  int32_t mark = -1;  // index into IterMap::marks
  Term lower, extent, scale;
};
/// base + sum of splits, largest scale first.
struct IterSum {
  std::vector<IterSplit> splits;
  Linear base;
};
/// An iterator: a loop variable, or a fused sum of others cut by the guard to [0, extent).
struct IterMark {
  Expr var;       // null for a fused iterator
  IterSum fused;  // empty for a variable
  Term extent;
};
/// A recognised map: index i of the bindings is indices[i].
struct IterMap {
  std::vector<IterMark> marks;
  std::vector<IterSum> indices;
  std::vector<Linear> extents;  // number of values each index takes
  bool bijective = false;
};

/// Either a map or a reason.
struct IterMapResult {
  IterMap map;
  IterMapError error = IterMapError::kNone;
  int32_t index = -1;  // binding to blame; -1: the guard or several
  bool ok() const { return error == IterMapError::kNone; }
};

/// Recognises bindings over the variables `loops` (ranges from `ranges`), limited to where `guard`
/// holds (null: always). Variables that are not in `loops` are constants. Sound: what is accepted
/// has the property asked for.
IterMapResult detect_iter_map(IrBuilder& b, std::span<const Expr> bindings,
                              std::span<const Var* const> loops, Expr guard,
                              const VarRanges& ranges, IterMapLevel level);

/// For a bijective map: each loop variable (in the order of `loops`) as an expression of the index
/// values `outputs`. Errors: Unsupported if the map is not bijective.
Result<std::vector<Expr>> invert_iter_map(IrBuilder& b, const IterMap& map,
                                          std::span<const Var* const> loops,
                                          std::span<const Expr> outputs, const VarRanges& ranges);

/// TensorIR's "affine binding" of a block under its loops: surjective, and each index has no terms
/// or a scale of 1.
IterMapResult affine_binding(IrBuilder& b, const Block& block, std::span<const Loop* const> loops,
                             const VarRanges& ranges);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_ITER_MAP_H_
