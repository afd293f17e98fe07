#include "tests/codegen/gpu_run.h"

#include "codegen/codegen.h"
#include "codegen/cuda/host_object.h"
#include "codegen/cuda/nvrtc.h"
#include "ir/support/check.h"
#include "runtime/cuda_host/run.h"
#include "tests/support/cuda_host_device.h"
#include "tests/support/gpu_check.h"

#include <fmt/format.h>

namespace prunerc::testing {

using namespace ir;

Target gpu_target(std::string_view name) {
  const Result<Target> target = target_from_string(name);
  PRUNERC_CHECK(target.ok(), "a target of the table");
  return *target;
}

std::string compare_on_host(const Program& reference, const Program& scheduled,
                            const Target& target, uint64_t seed,
                            std::span<const runtime::cuda_host::ExecutionOptions> orders) {
  const Result<Program> lowered = codegen::lower_gpu(scheduled, target);
  if (!lowered.ok()) return "lower: " + lowered.error().message();
  return compare_lowered_on_host(reference, *lowered, target, seed, orders);
}

std::string compare_lowered_on_host(const Program& reference, const Program& lowered,
                                    const Target& target, uint64_t seed,
                                    std::span<const runtime::cuda_host::ExecutionOptions> orders) {
  const Result<Expected> expected = expected_outputs(reference, seed);
  if (!expected.ok()) return "interpreter: " + expected.error().message();
  const Result<codegen::Artifact> source = codegen::print_lowered_cuda(lowered, target, "k");
  if (!source.ok()) return "print: " + source.error().message();
  if (const Result<void> valid = codegen::validate(*source); !valid.ok()) {
    return "artifact: " + valid.error().message();
  }
  const Result<codegen::Artifact> object = codegen::build_host_object(*source, {});
  if (!object.ok()) return "build: " + object.error().message() + "\n" + source->bytes;
  for (const runtime::cuda_host::ExecutionOptions& order : orders) {
    const auto outputs = runtime::cuda_host::run_on_host(*object, expected->input_bytes(), order);
    const std::string what =
        outputs.ok() ? difference(*expected, *outputs) : "run: " + outputs.error().message();
    if (what.empty()) continue;
    return fmt::format("{} ({}, {})\n{}", what, to_string(order.order), to_string(order.mode),
                       source->bytes);
  }
  return "";
}

std::string check_races_and_compile(const ir::Program& reference, const ir::Program& scheduled,
                                    const ir::Target& target, std::string_view arch) {
  const Result<codegen::Artifact> source = codegen::print_cuda_artifact(scheduled, target);
  if (!source.ok()) return source.error().message();
  const Result<Expected> expected = expected_outputs(reference, 1);
  if (!expected.ok()) return expected.error().message();
  const runtime::JobOutcome outcome =
      check_source_on_host(*source, expected->input_bytes(), codegen::HostChecker::kRace);
  if (outcome.measurement.status != MeasureStatus::kOk) return outcome.measurement.detail;
  std::string found = difference(*expected, outcome.outputs);
  if (!found.empty()) return found;
  const Result<codegen::Cubin> cubin = codegen::compile_cubin(source->bytes, arch, {});
  const bool is_rejected = !cubin.ok() && cubin.error().id() == Diag::kNvrtcRejected;
  return is_rejected ? cubin.error().message() : "";
}

}  // namespace prunerc::testing
