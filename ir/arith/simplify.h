// Simplification: same value, same or smaller shape, a normal form for index arithmetic.
#ifndef PRUNERC_IR_ARITH_SIMPLIFY_H_
#define PRUNERC_IR_ARITH_SIMPLIFY_H_

#include "ir/arith/interval.h"
#include "ir/builder.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace prunerc::ir {

/// Options of one run; the defaults are for ordinary use.
struct SimplifyOptions {
  /// Names of rules (simplify_rule_names) that do not run.
  std::span<const std::string_view> disabled_rules;
  /// If set: resized to the number of rules; entry i counts the uses of rule i.
  std::vector<int64_t>* rule_counts = nullptr;
  /// Steps until the rest is returned as it is.
  int64_t fuel = 1'000'000;
};

/// Equal for every binding within the ranges; the same node if nothing changed; idempotent; at most
/// twice the nodes. Float expressions change only where the result is the same in every bit.
Expr simplify(IrBuilder& b, Expr e, const VarRanges& ranges, const SimplifyOptions& options = {});

/// Simplifies every expression of s under the ranges of its loops and iteration variables and the
/// conditions around; takes out branches and blocks that never run. Null if nothing is left.
Stmt simplify(IrBuilder& b, Stmt s, const VarRanges& ranges = {},
              const SimplifyOptions& options = {});

/// A whole program, its tile parameters' domain included.
Program simplify(const Program& program, const SimplifyOptions& options = {});

/// Names of the rules of simplify_rules.cc, in order of application.
std::span<const std::string_view> simplify_rule_names();

/// Number of nodes: the measure of "not larger".
int64_t expr_size(Expr e);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_SIMPLIFY_H_
