// Three-valued proofs of conditions.
#ifndef PRUNERC_IR_ARITH_PROVE_H_
#define PRUNERC_IR_ARITH_PROVE_H_

#include "ir/arith/interval.h"
#include "ir/expr.h"

#include <cstdint>
#include <string_view>

namespace prunerc::ir {

/// kYes: holds for every binding within the ranges that satisfies the facts. kNo: fails for at
/// least one of them. kUnknown: neither was shown.
enum class Proof : uint8_t { kYes, kNo, kUnknown };
std::string_view to_string(Proof proof);

/// Both must hold.
Proof operator&&(Proof a, Proof b);

struct ProveOptions {
  /// Exact enumeration is tried if the variables (and parameters) involved have at most this many
  /// bindings; 0: never.
  int64_t max_points = 100'000;
};

/// Tries normal forms with intervals, then facts, then enumeration.
/// Cost: O(size) without enumeration.
Proof prove(Expr condition, const VarRanges& ranges, const ProveOptions& options = {});

/// lhs < rhs, lhs <= rhs, lhs == rhs without building the comparison.
Proof prove_less(Expr lhs, Expr rhs, const VarRanges& ranges, const ProveOptions& options = {});
Proof prove_less_equal(Expr lhs, Expr rhs, const VarRanges& ranges,
                       const ProveOptions& options = {});
Proof prove_equal(Expr lhs, Expr rhs, const VarRanges& ranges, const ProveOptions& options = {});

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_PROVE_H_
