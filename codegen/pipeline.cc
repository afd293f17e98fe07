#include "codegen/pipeline.h"

#include "codegen/lower/lower.h"
#include "ir/printer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

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
};

// PRUNERC_DUMP=after:lower/*,after:lower/init
bool wants_dump(std::string_view pass) {
  const char* wanted = std::getenv("PRUNERC_DUMP");
  if (wanted == nullptr) return false;
  std::string_view rest = wanted;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view item = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    constexpr std::string_view kPrefix = "after:lower/";
    if (item.substr(0, kPrefix.size()) != kPrefix) continue;
    item.remove_prefix(kPrefix.size());
    if (item == "*" || item == pass) return true;
  }
  return false;
}

void dump(std::string_view pass, const ir::Program& before, const ir::Program& after) {
  const bool unchanged = before.root().is(after.root());
  std::fprintf(stderr, "// after lower/%.*s%s\n", static_cast<int>(pass.size()), pass.data(),
               unchanged ? " (unchanged)" : "");
  if (!unchanged) std::fputs(ir::print(after).c_str(), stderr);
}

Result<ir::Program> run_pass(const Pass& pass, const ir::Program& program, const ir::Target& target,
                             const PipelineOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  PRUNERC_TRY(ir::Program result, pass.run(program, target));
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  if (options.times != nullptr) options.times->push_back({pass.name, elapsed.count()});
  if (wants_dump(pass.name)) dump(pass.name, program, result);
  return result;
}

}  // namespace

std::span<const Pass> cpu_passes() { return kCpuPasses; }

Result<ir::Program> lower_cpu(const ir::Program& program, const ir::Target& target,
                              const PipelineOptions& options) {
  if (!program.domain().empty()) {
    return error(Diag::kUnsupported, "compiling a program with tile parameters");
  }
  ir::Program current = program;
  int64_t num_optional = 0;
  for (const Pass& pass : kCpuPasses) {
    const bool disabled = std::find(options.disabled.begin(), options.disabled.end(), pass.name) !=
                          options.disabled.end();
    if (!pass.required) {
      const bool beyond =
          options.max_optional_passes >= 0 && num_optional >= options.max_optional_passes;
      ++num_optional;
      if (disabled || beyond) continue;
    }
    PRUNERC_TRY(current, run_pass(pass, current, target, options));
  }
  return current;
}

}  // namespace prunerc::codegen
