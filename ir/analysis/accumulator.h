// What a reduction accumulates: one element by an operation, or a tuple of elements by a step whose
// combination of two partial results is known.
#ifndef PRUNERC_IR_ANALYSIS_ACCUMULATOR_H_
#define PRUNERC_IR_ANALYSIS_ACCUMULATOR_H_

#include "ir/builder.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::ir {

/// store: T[idx] = T[idx] op update, where update does not read T and idx is free of the block's
/// reduction variables.
struct Reducer {
  ExprKind op;  // Add, Mul, Min or Max
  const Store* store;
  Expr update;
};
/// Of the block's body, or of a statement inside it.
std::optional<Reducer> match_reducer(const Block& block);
std::optional<Reducer> match_reducer(const Block& block, Stmt inside);

/// The value e with (e op x) == x.
Expr identity_of(IrBuilder& b, ExprKind op, DType dtype);

/// kSingle: T = T op x.
/// kBest (argmax, argmin): position P and value V of the best element so far; x at position p where
/// c holds takes its place if it is better, or as good and earlier, or if nothing was taken
/// (P < 0):
///     P = select(c && (P < 0 || (V < x || x == V && p < P)), p, P);  V = select(c, max(V, x), V)
/// kSoftmax: sum S of weights w * exp(x - M) under the largest exponent M:
///     S = S*exp(M - max(M, x)) + w*exp(x - max(M, x));  M = max(M, x)
/// c and w may be missing.
enum class AccumulatorKind : uint8_t { kSingle, kBest, kSoftmax };

/// A block's accumulation, read off its body.
struct Accumulator {
  AccumulatorKind kind = AccumulatorKind::kSingle;
  ExprKind op = ExprKind::kAdd;       // of kSingle; max or min of the others
  std::vector<const Store*> targets;  // in order of execution; one index tuple for all
  /// What one instance brings: {x}; {c, x, p}; {w, x}. Null: missing.
  std::vector<Expr> element;
};

/// Nullopt if the body accumulates in no such way, or its targets depend on reduction variables.
std::optional<Accumulator> match_accumulator(IrBuilder& b, const Block& block);

/// Where an accumulation is held.
struct Held {
  BufferId buffer;
  std::vector<Expr> indices;
};

/// The statement that joins one element to what the targets hold.
Stmt accumulate(IrBuilder& b, const Accumulator& how, std::span<const Held> targets,
                std::span<const Expr> element);
/// The element that a partial result is: joining it to another one combines both.
std::vector<Expr> element_of(IrBuilder& b, const Accumulator& how, std::span<const Held> partial);
/// The same combination as a function of what the targets (left) and a partial result (right) hold.
const Combiner* combiner_of(IrBuilder& b, const Accumulator& how);
/// Sets the targets to the result of no element.
Stmt start_from_nothing(IrBuilder& b, const Accumulator& how, std::span<const Held> targets);
/// Does the block's init do just that?
bool starts_from_nothing(IrBuilder& b, const Accumulator& how, const Block& block);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_ACCUMULATOR_H_
