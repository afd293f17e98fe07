// Small questions about expressions that several analyses ask.
#ifndef PRUNERC_IR_ANALYSIS_LEAF_H_
#define PRUNERC_IR_ANALYSIS_LEAF_H_

#include "ir/expr.h"
#include "ir/visit.h"

#include <cstdint>
#include <optional>

namespace prunerc::ir {

/// Does e mention the variable?
inline bool has_var(Expr e, VarId var) {
  bool found = false;
  walk(e, [&](Expr part) {
    const Var* here = part.as<Var>();
    found |= here != nullptr && here->id == var;
    return !found;
  });
  return found;
}

/// The value of an integer constant.
inline std::optional<int64_t> constant_value(Expr e) {
  const IntImm* imm = e.as<IntImm>();
  return imm != nullptr ? std::optional(imm->value) : std::nullopt;
}

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_LEAF_H_
