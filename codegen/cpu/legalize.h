// What old CPUs lack, written with what they have; private to codegen/cpu.
#ifndef PRUNERC_CODEGEN_CPU_LEGALIZE_H_
#define PRUNERC_CODEGEN_CPU_LEGALIZE_H_

#include "ir/support/result.h"

#include <string>

namespace llvm {
class IRBuilderBase;
class Module;
class Value;
}  // namespace llvm

namespace prunerc::codegen {

/// A fused operation that a program asks for, which rounds once on every CPU.
llvm::Value* rounded_once(llvm::Value* fma);

/// a + b in f64, cut, and its last bit set if anything is lost: a rounding to a narrower type is then as
/// if from the exact sum. NaN and infinite sums stay.
llvm::Value* sum_to_odd(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b);

/// For a CPU without fused multiply-adds and half-precision conversions, where both would become
/// calls of library functions. A fused operation on f32 is done in f64, where the product is exact
/// and the sum is rounded: to odd if the operation is rounded_once, else (those that functions are
/// made of) a second time, by at most half a unit in the last place. Errors: Unsupported for fused
/// operations on f64 and for half-precision values.
Result<void> replace_fused(llvm::Module& module, const std::string& cpu);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_LEGALIZE_H_
