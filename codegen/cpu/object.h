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

/// An object in the wanted form, and what one thread takes of its stack in it: a function and a task
/// of its parallel loops, what runs between them apart; 0 of LLVM's text.
struct EmittedObject {
  std::string bytes;
  int64_t stack_bytes = 0;
};

/// Emits the lowered programs as functions of one object and optimises them. Deterministic; any
/// number of threads may call it at once. Errors: Unsupported, Internal.
Result<EmittedObject> emit_object(std::span<const LoweredFunction> functions,
                                  const ir::Target& target, ObjectForm form);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_OBJECT_H_
