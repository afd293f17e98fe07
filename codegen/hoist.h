// Cuts a scheduled program with const inputs into what is run once for them and what every call runs.
#ifndef PRUNERC_CODEGEN_HOIST_H_
#define PRUNERC_CODEGEN_HOIST_H_

#include "codegen/storage_plan.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <vector>

namespace prunerc::codegen {

/// Two programs and where their parameters are. Argument i of both kernels is parameter i of the
/// scheduled program; behind the last one stands the address of the prepared memory.
struct Hoisted {
  /// Const inputs to prepared buffers, its outputs.
  ir::Program prepare;
  /// The other inputs and prepared buffers, its const inputs, to the outputs.
  ir::Program run;
  std::vector<ParamPlace> prepare_places, run_places;
  int64_t prepared_bytes = 0;
};

bool has_const_inputs(const ir::Program& program);

/// `prepare` is the prologue (ir/analysis/prologue.h) and a copy of each const input that `run` still
/// reads: a call needs no const input any more. Prepared buffers start at multiples of
/// kStorageAlignment. Errors: Unsupported (shapes that are not constant).
Result<Hoisted> hoist(const ir::Program& scheduled);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_HOIST_H_
