// LLVM modules to object code for a named CPU; and what the host is. No LLVM types in the
// interface.
#ifndef PRUNERC_CODEGEN_CPU_OBJECT_H_
#define PRUNERC_CODEGEN_CPU_OBJECT_H_

#include "codegen/storage_plan.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

enum class ObjectForm : uint8_t { kObject, kAssembly, kLlvmText };

/// CPU and features that code for `target` uses: LLVM's names, "znver4" and "+avx512f,-amx-bf16".
struct CpuName {
  std::string triple, cpu, features;
};
/// Errors: Unsupported (a CPU that LLVM does not know; vectors of another size than 16, 32 or 64).
Result<CpuName> resolve_cpu(const ir::Target& target);

/// The machine that runs this: triple, CPU and features as LLVM detects them.
CpuName host_cpu();

/// LLVM's names of all that the CPU has, implied features included.
Result<std::vector<std::string>> enabled_features(const CpuName& name);

/// One function of an object.
struct LoweredFunction {
  std::string symbol;
  ir::Program program;
  StoragePlan plan;
};

/// Emits the lowered programs as functions of one object, optimises them, and returns its bytes in
/// the wanted form. Deterministic; any number of threads may call it at once. Errors: Unsupported,
/// Internal.
Result<std::string> emit_object(std::span<const LoweredFunction> functions,
                                const ir::Target& target, ObjectForm form);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_OBJECT_H_
