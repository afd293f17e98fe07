// What a reduction accumulates: one element by an operation, or a tuple of elements by a step whose
// combination of two partial results is known.
#ifndef PRUNERC_SCHEDULE_PRIMITIVE_ACCUMULATOR_H_
#define PRUNERC_SCHEDULE_PRIMITIVE_ACCUMULATOR_H_

#include "ir/builder.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::schedule {

/// kSingle: T = T op x.
/// kBest (argmax, argmin): position P and value V of the best element so far; x at position p where
/// c holds takes its place if it is better, or as good and earlier, or if nothing was taken (P <
/// 0):
///     P = select(c && (P < 0 || (V < x || x == V && p < P)), p, P);  V = select(c, max(V, x), V)
/// kSoftmax: sum S of weights w * exp(x - M) under the largest exponent M:
///     S = S*exp(M - max(M, x)) + w*exp(x - max(M, x));  M = max(M, x)
/// c and w may be missing.
enum class AccumulatorKind : uint8_t { kSingle, kBest, kSoftmax };

/// A block's accumulation, read off its body.
struct Accumulator {
  AccumulatorKind kind = AccumulatorKind::kSingle;
  ir::ExprKind op = ir::ExprKind::kAdd;   // of kSingle; max or min of the others
  std::vector<const ir::Store*> targets;  // in order of execution; one index tuple for all
  /// What one instance brings: {x}; {c, x, p}; {w, x}. Null: missing.
  std::vector<ir::Expr> element;
};

/// Nullopt if the body accumulates in no such way, or its targets depend on reduction variables.
std::optional<Accumulator> match_accumulator(ir::IrBuilder& b, const ir::Block& block);

/// Where an accumulation goes.
struct Target {
  ir::BufferId buffer;
  std::vector<ir::Expr> indices;
};

/// The statement that joins one element to what the targets hold.
ir::Stmt accumulate(ir::IrBuilder& b, const Accumulator& how, std::span<const Target> targets,
                    std::span<const ir::Expr> element);
/// The element that a partial result is: joining it to another one combines both.
std::vector<ir::Expr> element_of(ir::IrBuilder& b, const Accumulator& how,
                                 std::span<const Target> partial);
/// Sets the targets to the result of no element.
ir::Stmt start_from_nothing(ir::IrBuilder& b, const Accumulator& how,
                            std::span<const Target> targets);
/// Does the block's init do just that?
bool starts_from_nothing(ir::IrBuilder& b, const Accumulator& how, const ir::Block& block);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_PRIMITIVE_ACCUMULATOR_H_
