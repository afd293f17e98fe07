#include "codegen/pipeline.h"

#include "codegen/lower/gpu.h"
#include "codegen/lower/lower.h"
#include "ir/printer.h"
#include "ir/support/options.h"
#include "ir/verify.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace prunerc::codegen {
namespace {

constexpr Pass kCpuPasses[] = {
    {"init", lower_init, true},
    {"place", place_buffers, true},
    {"blocks", lower_blocks, true},
    {"compact", compact_buffers, false},
    {"privatize", privatize_reductions, false},
    {"guards", hoist_guards, false},
    {"tiles", unroll_tiles, false},
    {"simplify", simplify_lowered, false},
    {"lanes", fill_lanes, false},
};

// clang-format off
constexpr Pass kGpuPasses[] = {
    {"owners", check_owners, true},
    {"cross_thread", lower_cross_thread, true},
    {"init", lower_init, true},
    {"threads", distribute_threads, true},
    {"place", place_gpu_buffers, true},
    {"blocks", lower_blocks, true},
    {"registers", compact_registers, false},
    {"compact", compact_buffers, false},
    {"align", align_shared, false},
    {"fragments", spread_fragments, true},
    {"rings", lower_rings, true},
    {"pipelines", lower_pipelines, false},
    {"uniform", lower_uniform_stores, true},
    {"simplify", simplify_lowered, false},
    {"barriers", insert_barriers, true},
};
// clang-format on

void dump(const std::string& name, const ir::Program& before, const ir::Program& after) {
  const bool unchanged = before.root().is(after.root());
  write_dump(unchanged ? name + " (unchanged)" : name, unchanged ? "" : ir::print(after));
}

// Every pass runs in here: what it made is verified, its time taken, its program dumped if asked
// for.
Result<ir::Program> run_pass(const Pass& pass, const ir::Program& program, const ir::Target& target,
                             const PipelineOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  PRUNERC_TRY(ir::Program result, pass.run(program, target));
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  if (options.times != nullptr) options.times->push_back({pass.name, elapsed.count()});
  const std::string name = "after:lower/" + std::string(pass.name);
  if (debug_options().time_passes) {
    std::fprintf(stderr, "%-24s %8.3f ms\n", name.c_str(), elapsed.count() * 1e-6);
  }
  if (debug_options().wants_dump(name)) dump(name, program, result);
  if (const Result<void> sound = ir::verify(result); !sound.ok()) {
    return with_detail(error(Diag::kInternal, name + ": " + sound.error().message()),
                       ir::print(result));
  }
  return result;
}

}  // namespace

std::span<const Pass> cpu_passes() { return kCpuPasses; }
std::span<const Pass> gpu_passes() { return kGpuPasses; }

Result<ir::Program> run_passes(std::span<const Pass> passes, const ir::Program& program,
                               const ir::Target& target, const PipelineOptions& options) {
  if (!program.domain().empty()) {
    return error(Diag::kUnsupported, "compiling a program with tile parameters");
  }
  ir::Program current = program;
  const int64_t asked = debug_options().max_optional_passes;
  const int64_t limit = asked >= 0 ? asked : options.max_optional_passes;
  int64_t num_optional = 0;
  for (const Pass& pass : passes) {
    const bool disabled = std::find(options.disabled.begin(), options.disabled.end(), pass.name) !=
                          options.disabled.end();
    if (!pass.required) {
      const bool beyond = limit >= 0 && num_optional >= limit;
      ++num_optional;
      if (disabled || beyond) continue;
    }
    PRUNERC_TRY(current, run_pass(pass, current, target, options));
  }
  return current;
}

Result<ir::Program> lower_cpu(const ir::Program& program, const ir::Target& target,
                              const PipelineOptions& options) {
  return run_passes(kCpuPasses, program, target, options);
}

Result<ir::Program> lower_gpu(const ir::Program& program, const ir::Target& target,
                              const PipelineOptions& options) {
  return run_passes(kGpuPasses, program, target, options);
}

}  // namespace prunerc::codegen
