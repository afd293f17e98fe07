// Reductions along one variable, as programs have them before anything is done to them: what `online` and `rescale` read.
#ifndef PRUNERC_SCHEDULE_LEGALITY_AXIS_REDUCTION_H_
#define PRUNERC_SCHEDULE_LEGALITY_AXIS_REDUCTION_H_

#include "ir/analysis/accumulator.h"
#include "schedule/legality/dataflow.h"

#include <cstddef>
#include <span>
#include <vector>

namespace prunerc::schedule {

/// T = T op update, from the operation's identity on. Borrows from the program.
struct AxisReduction {
  std::size_t place = 0;  // in the Dataflow
  const ir::Block* block = nullptr;
  ir::Reducer reducer{};
  const ir::IterVar* axis = nullptr;

  ir::BufferId target() const { return reducer.store->buffer; }
};

/// The block at that place as a maximum or a sum of f32 or f64 along one variable: in a canonical nest, without
/// attributes, each other variable one subscript of what it alone writes, sources final.
/// Errors: BlockNotSimple, BufferManyWriters; those of check_sources_final and check_movable.
Result<AxisReduction> read_axis_reduction(ir::IrBuilder& b, const Dataflow& flow, std::size_t place,
                                          ir::ExprKind op);

/// The variable itself, whichever node it is.
bool is_var(ir::Expr e, const ir::IterVar& iter);
/// The spatial variables are the subscripts, each once.
bool is_at_variables(const ir::Block& block, std::span<const ir::Expr> indices);

/// Numerators and denominators of a product.
struct Factors {
  std::vector<ir::Expr> above, below;
};
Factors factors_of(ir::Expr product);

/// Without conversions from floats to floats around it.
ir::Expr without_float_casts(ir::Expr e);
/// The load of the buffer that is one numerator of what is added up, perhaps converted; null if the buffer is read
/// otherwise, more than once, or by its own subscripts.
const ir::Load* sole_factor(const AxisReduction& sum, ir::BufferId buffer);

/// The load of a buffer in exp(x - load), and x.
struct Exponent {
  ir::Expr x;
  const ir::Load* subtracted = nullptr;  // null: the expression is none
};
Exponent exponent_of(ir::Expr power);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_AXIS_REDUCTION_H_
