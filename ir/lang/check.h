// The proofs of a bound operator: reads stay in range, divisors are not zero.
#ifndef PRUNERC_IR_LANG_CHECK_H_
#define PRUNERC_IR_LANG_CHECK_H_

#include "ir/lang/typed.h"

#include <set>
#include <unordered_map>
#include <vector>

namespace prunerc::lang {

/// Which sides of a subscript could not be proved.
struct Doubt {
  bool below = false;
  bool above = false;
};

/// What the proofs found out, for lowering.
struct Proofs {
  /// By read with an `or` value: the tests that it needs, one per dimension.
  std::unordered_map<const Node*, std::vector<Doubt>> doubts;
  /// Reductions whose reads are in range only under the conditions of the place where they stand.
  std::set<const Node*> guarded;
};

/// Proves all reads and divisions of `op`, and reports those that it cannot.
Proofs check_operator(const BoundOp& op, DiagSink& sink);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_CHECK_H_
