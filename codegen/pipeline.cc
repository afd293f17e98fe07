#include "codegen/pipeline.h"

#include "codegen/lower/passes.h"
#include "ir/printer.h"
#include "ir/support/options.h"
#include "ir/verify.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace prunerc::codegen {
namespace {

constexpr bool kRequired = true;
constexpr bool kOptional = false;

// A pass is called as its function is; so is its file (tests/codegen/pipeline_test.cc).
#define PRUNERC_PASS(function, required) \
  { #function, function, required }

// clang-format off
constexpr Pass kCpuPasses[] = {
    PRUNERC_PASS(lower_init,                    kRequired),
    PRUNERC_PASS(skip_masked,                   kOptional),
    PRUNERC_PASS(place_allocs,                  kRequired),
    PRUNERC_PASS(lower_blocks,                  kRequired),
    PRUNERC_PASS(compact_buffers,               kOptional),
    PRUNERC_PASS(privatize_reductions,          kOptional),
    PRUNERC_PASS(carry_scans,                   kOptional),
    PRUNERC_PASS(branch_updates,                kOptional),
    PRUNERC_PASS(hoist_guards,                  kOptional),
    PRUNERC_PASS(unroll_register_tiles,         kOptional),
    PRUNERC_PASS(simplify_expressions,          kOptional),
    PRUNERC_PASS(unmask_vector_tails,           kOptional),
};

constexpr Pass kGpuPasses[] = {
    PRUNERC_PASS(check_register_ownership,      kRequired),
    PRUNERC_PASS(trim_masked_loops,             kOptional),
    PRUNERC_PASS(lower_cross_thread_reductions, kRequired),
    PRUNERC_PASS(lower_init,                    kRequired),
    PRUNERC_PASS(distribute_thread_loops,       kRequired),
    PRUNERC_PASS(place_gpu_allocs,              kRequired),
    PRUNERC_PASS(lower_blocks,                  kRequired),
    PRUNERC_PASS(compact_registers,             kOptional),
    PRUNERC_PASS(compact_buffers,               kOptional),
    PRUNERC_PASS(pad_shared_rows,               kOptional),
    PRUNERC_PASS(distribute_fragments,          kRequired),
    PRUNERC_PASS(multibuffer_bulk_copies,       kRequired),
    PRUNERC_PASS(pipeline_loops,                kOptional),
    PRUNERC_PASS(guard_uniform_stores,          kRequired),
    PRUNERC_PASS(simplify_expressions,          kOptional),
    PRUNERC_PASS(insert_barriers,               kRequired),
    PRUNERC_PASS(branch_masked_tiles,           kOptional),
};
// clang-format on
#undef PRUNERC_PASS

void dump(const std::string& name, const ir::Program& before, const ir::Program& after) {
  const bool unchanged = before.root().is(after.root());
  write_dump(unchanged ? name + " (unchanged)" : name, unchanged ? "" : ir::print(after));
}

// Every pass runs in here: its time is taken, its program dumped if asked for, and verified.
Result<ir::Program> run_pass(const Pass& pass, const ir::Program& program, const ir::Target& target,
                             const PipelineOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  PRUNERC_TRY(ir::Program result, pass.run(program, target));
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  if (options.times != nullptr) options.times->push_back({pass.name, elapsed.count()});
  const std::string name = "after:lower/" + std::string(pass.name);
  if (debug_options().time_passes) {
    std::fprintf(stderr, "%-48s %8.3f ms\n", name.c_str(), elapsed.count() * 1e-6);
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
  // Passes begin at a statement.
  if (!program.root().defined()) return current;
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
