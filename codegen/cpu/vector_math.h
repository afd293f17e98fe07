// Mathematical functions emitted inline as LLVM IR, at any vector width.
#ifndef PRUNERC_CODEGEN_CPU_VECTOR_MATH_H_
#define PRUNERC_CODEGEN_CPU_VECTOR_MATH_H_

#include "ir/expr.h"

#include <span>
#include <string_view>

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace prunerc::codegen {

/// intrinsic(args) for f32 or f64 scalars or vectors, all of one type. No calls, no branches; see
/// math_accuracy. `has_avx512` spares instructions, and gives erf of f32 another last bit. Special values follow C:
/// exp(-inf) = 0, log(0) = -inf, log(<0) = NaN, pow(x, 0) = 1, ...
llvm::Value* emit_intrinsic(llvm::IRBuilderBase& b, ir::Intrinsic intrinsic,
                            std::span<llvm::Value* const> args, bool has_avx512);

/// The largest error against the exact result, as measured by the tests. Units: ulp of the result.
struct MathAccuracy {
  ir::Intrinsic intrinsic;
  double max_ulp_f32;
  double max_ulp_f64;
};
/// One row per function that is not exact; the tests fail if a row promises too much.
std::span<const MathAccuracy> math_accuracy();

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_VECTOR_MATH_H_
