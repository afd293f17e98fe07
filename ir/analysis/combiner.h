// How partial results of a reduction into several buffers combine: the combiner that the block
// declares, or one read off its body. Checked at samples, not believed.
#ifndef PRUNERC_IR_ANALYSIS_COMBINER_H_
#define PRUNERC_IR_ANALYSIS_COMBINER_H_

#include "ir/analysis/tuple.h"
#include "ir/builder.h"

#include <optional>
#include <string>
#include <vector>

namespace prunerc::ir {

struct CombinedTuple {
  Tuple tuple;
  const Combiner* combiner = nullptr;  // the block's, or new nodes of the builder
  /// If the body does nothing but combine with partial results (as what rfactor leaves does): where
  /// it reads them, by target. Else empty.
  std::vector<Expr> partials;
};

/// The combiner that the block declares; else the step with each element replaced by what the
/// target that holds it alone after one instance holds in the other partial result. Not checked.
std::optional<CombinedTuple> read_combiner(IrBuilder& b, const Block& block);

/// Let u be the block's step, e its init, c the combiner. For partial results p, q, r that the step
/// makes of some elements: c(p, q) = c(q, p), c(c(p, q), r) = c(p, c(q, r)), c(p, e) = p, and
/// u(p, x) = c(p, u(e, x)) for each element x. Then instances may run in any order, and results of
/// parts combine to the result of all.
/// The equations are evaluated at random points, floats as real numbers: at small integers, where
/// values are often equal, at the constants of the step, and at real numbers, some of them equal.
/// Nullopt: the block declares none and none can be read off, or it does not hold. `fault` then
/// says why a declared one does not (empty: nothing is declared).
std::optional<CombinedTuple> find_combiner(IrBuilder& b, const Block& block, std::string* fault);

/// How partial results of a reduction combine, whichever way it is known: as an accumulation of a
/// known kind does (accumulator.h), else as find_combiner says.
std::optional<CombinedTuple> known_combination(IrBuilder& b, const Block& block);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_COMBINER_H_
