// Small questions about expressions and statements.
#ifndef PRUNERC_IR_QUERY_H_
#define PRUNERC_IR_QUERY_H_

#include "ir/expr.h"
#include "ir/stmt.h"
#include "ir/visit.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::ir {

/// The value of an integer constant; nullopt for anything else and for null.
inline std::optional<int64_t> constant_value(Expr e) {
  const IntImm* imm = e.as<IntImm>();
  return imm != nullptr ? std::optional(imm->value) : std::nullopt;
}

/// The operands of a tree of &&; none for null.
inline std::vector<Expr> conjuncts(Expr condition) {
  if (!condition.defined()) return {};
  const And* both = condition.as<And>();
  if (both == nullptr) return {condition};
  std::vector<Expr> out = conjuncts(both->lhs);
  for (Expr e : conjuncts(both->rhs)) out.push_back(e);
  return out;
}

/// Does f(node) hold for a node of e?
template <typename F>
bool any_node(Expr e, F&& f) {
  bool found = false;
  walk(e, [&](Expr part) {
    found = found || f(part);
    return !found;
  });
  return found;
}

/// Does e read memory?
inline bool has_load(Expr e) {
  return any_node(e, [](Expr part) { return part.kind() == ExprKind::kLoad; });
}

/// Is e made of more than variables, parameters and constants? Then its arithmetic may wrap.
inline bool has_data(Expr e) {
  return any_node(e, [](Expr part) {
    const ExprKind k = part.kind();
    return k == ExprKind::kLoad || k == ExprKind::kCast || k == ExprKind::kCall;
  });
}

/// Does e read the buffer?
inline bool loads_from(Expr e, BufferId buffer) {
  return any_node(e, [&](Expr part) {
    const Load* load = part.as<Load>();
    return load != nullptr && load->buffer == buffer;
  });
}

/// Does e keep its value whatever the statement stores?
inline bool outlasts(Expr e, Stmt s) {
  bool lasts = true;
  if (!has_load(e)) return lasts;
  walk(
      s,
      [&](Stmt part) {
        const Store* store = part.as<Store>();
        lasts = lasts && (store == nullptr || !loads_from(e, store->buffer));
        return lasts;
      },
      [](Expr) {});
  return lasts;
}

/// Does a variable with f(its VarId) occur in e?
template <typename F>
bool any_var(Expr e, F&& f) {
  return any_node(e, [&](Expr part) {
    const Var* v = part.as<Var>();
    return v != nullptr && f(v->id);
  });
}

/// Does the variable (one of the variables) occur in the expression (in one of the expressions)?
inline bool mentions(Expr e, VarId var) {
  return any_var(e, [&](VarId id) { return id == var; });
}
inline bool mentions(std::span<const Expr> exprs, VarId var) {
  return std::any_of(exprs.begin(), exprs.end(), [&](Expr e) { return mentions(e, var); });
}
inline bool mentions(Expr e, std::span<const VarId> vars) {
  return any_var(e,
                 [&](VarId id) { return std::find(vars.begin(), vars.end(), id) != vars.end(); });
}

/// Does a reduction variable of the block move with the loop?
inline bool reduces_over(const Block& block, const Loop& loop) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
    return iter.kind == IterKind::kReduce && mentions(iter.binding, loop.var->id);
  });
}
/// Does an outermost block inside the loop reduce over it?
inline bool carries_reduction(const Loop& loop) {
  bool found = false;
  walk(
      loop.body,
      [&](Stmt s) {
        const Block* block = s.as<Block>();
        found = found || (block != nullptr && reduces_over(*block, loop));
        return !found && block == nullptr;
      },
      [](Expr) {});
  return found;
}

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_QUERY_H_
