// The lowering pipeline: one visible table of passes and one wrapper around each.
#ifndef PRUNERC_CODEGEN_PIPELINE_H_
#define PRUNERC_CODEGEN_PIPELINE_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

/// Lists of these are the table of contents of lowering: pipeline.cc.
struct Pass {
  std::string_view name;  // of its function and its file; dumped as after:lower/NAME
  Result<ir::Program> (*run)(const ir::Program&, const ir::Target&);
  bool required;  // false: the program is correct without it (bisection and tests leave it out)
};

/// In order of execution.
std::span<const Pass> cpu_passes();
std::span<const Pass> gpu_passes();

struct PassTime {
  std::string_view name;
  double elapsed_ns = 0;
};

struct PipelineOptions {
  /// Optional passes after this many do not run; negative: all run. For bisecting a wrong result.
  int64_t max_optional_passes = -1;
  /// Names of optional passes that do not run.
  std::span<const std::string_view> disabled;
  /// If set: receives the time of each pass.
  std::vector<PassTime>* times = nullptr;
};

/// Runs the passes in order, and ir::verify on what each makes. The environment's PRUNERC_DUMP,
/// PRUNERC_TIME and PRUNERC_BISECT (ir/support/options.def) apply.
/// Errors: those of the passes; Internal with the program if a pass makes a malformed one;
/// Unsupported for programs that still have tile parameters.
Result<ir::Program> run_passes(std::span<const Pass> passes, const ir::Program& program,
                               const ir::Target& target, const PipelineOptions& options = {});

/// run_passes with cpu_passes.
Result<ir::Program> lower_cpu(const ir::Program& program, const ir::Target& target,
                              const PipelineOptions& options = {});

/// run_passes with gpu_passes.
Result<ir::Program> lower_gpu(const ir::Program& program, const ir::Target& target,
                              const PipelineOptions& options = {});

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_PIPELINE_H_
