// Operations of one iteration of a store.
#ifndef PRUNERC_COSTMODEL_FEATURE_OPS_H_
#define PRUNERC_COSTMODEL_FEATURE_OPS_H_

#include "costmodel/feature/stores.h"
#include "costmodel/latency/poly.h"

#include <span>

namespace prunerc::costmodel {

/// Adds those of an expression. Extents of iteration variables by VarId: what does not move is no
/// term of a sum.
void count_operations(ir::Expr e, std::span<const Sym> extents, ParamSpace& space, StoreOps* ops);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_OPS_H_
