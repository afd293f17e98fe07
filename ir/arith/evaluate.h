// Exact evaluation of index expressions at one point; private to ir/analysis.
#ifndef PRUNERC_IR_ARITH_EVALUATE_H_
#define PRUNERC_IR_ARITH_EVALUATE_H_

#include "ir/expr.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace prunerc::ir {

/// Values of variables and parameters.
struct Point {
  std::vector<std::pair<VarId, int64_t>> vars;
  std::vector<std::pair<ParamId, int64_t>> params;
};

/// Value of an integer or bool expression; nullopt if it loads, holds floats, divides by zero or
/// names something that the point does not give.
std::optional<int64_t> evaluate(Expr e, const Point& at);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_EVALUATE_H_
