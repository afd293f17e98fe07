// What old CPUs lack, written with what they have; private to codegen/cpu.
#ifndef PRUNERC_CODEGEN_CPU_LEGALIZE_H_
#define PRUNERC_CODEGEN_CPU_LEGALIZE_H_

#include "ir/support/result.h"

#include <string>

namespace llvm {
class Module;
}

namespace prunerc::codegen {

/// For a CPU without fused multiply-adds and half-precision conversions, where both would become
/// calls of library functions. A fused operation on f32 is done in f64, where the product is exact:
/// what is left is the second rounding, at most half a unit in the last place. Errors: Unsupported
/// for fused operations on f64 and for half-precision values.
Result<void> replace_fused(llvm::Module& module, const std::string& cpu);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_LEGALIZE_H_
