#include "tools/prunerc/verdict.h"

#include "ir/interp/interpreter.h"
#include "ir/support/check.h"
#include "runtime/cpu/device.h"
#include "runtime/fill.h"
#include "tools/driver/backend.h"
#include "tools/driver/reference.h"
#include "tools/prunerc/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace prunerc::cli {

std::string_view to_string(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::kRight: return "right";
    case Verdict::Kind::kWrong: return "wrong";
    case Verdict::Kind::kInvalid: return "invalid";
    case Verdict::Kind::kNotChecked: return "not checked";
  }
  PRUNERC_UNREACHABLE("verdict");
}

namespace {

// The outputs of the unscheduled program by the interpreter, as a worker would return them.
Result<std::vector<std::string>> interpreted(const search::Task& task,
                                             const std::vector<runtime::InputSpec>& specs) {
  std::vector<ir::Tensor> inputs;
  for (ir::BufferId id : task.base.params()) {
    const ir::Buffer& port = task.base.buffer(id);
    if (port.role != ir::BufferRole::kInput) continue;
    ir::Tensor tensor(port.dtype, ir::shape_of(port));
    const runtime::InputSpec& spec = specs[inputs.size()];
    runtime::fill_tensor(spec.fill, spec.seed, port.dtype, tensor.num_elements(),
                         tensor.data.data());
    inputs.push_back(std::move(tensor));
  }
  PRUNERC_TRY(const std::vector<ir::Tensor> outputs, ir::interpret(task.base, inputs));
  std::vector<std::string> bytes;
  for (const ir::Tensor& tensor : outputs) {
    bytes.emplace_back(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  return bytes;
}

// Whether the interpreter and the compiled unscheduled program agree; if not, the verdict says so.
bool agrees_with_interpreter(const search::Task& task, References& references, uint64_t seed,
                             Verdict* verdict) {
  const Result<std::vector<std::string>> outputs =
      interpreted(task, References::inputs(task.base, seed));
  const Result<Comparison> comparison =
      outputs.ok() ? references.compare(task, seed, *outputs) : Result<Comparison>(outputs.error());
  if (comparison.ok() && comparison->ok) {
    verdict->what += ", and to the interpreter's";
    return true;
  }
  verdict->kind = comparison.ok() ? Verdict::Kind::kWrong : Verdict::Kind::kNotChecked;
  verdict->what = fmt::format("seed {}: interpreter: {}", seed,
                              comparison.ok() ? comparison->what : comparison.error().message());
  return false;
}

std::string_view place_of(ir::TargetKind kind) {
  switch (kind) {
    case ir::TargetKind::kCpu: return "cpu";
    case ir::TargetKind::kCuda: return "gpu";
    case ir::TargetKind::kCudaHost: return "host";
  }
  PRUNERC_UNREACHABLE("target");
}

// What all runs of one check have in common.
struct Bench {
  const KernelCheck& how;
  const search::Task& task;
  const codegen::Artifact& artifact;
  ir::Target target;
  int num_threads;
  runtime::Device& device;
  References& references;
};

// Runs the job, and once more, alone in a process of its own and for longer, if that took too long: other
// work may have been in the way.
runtime::JobOutcome run_patiently(const Bench& bench, const runtime::Job& job) {
  runtime::JobOutcome ran = bench.device.run(job);
  runtime::Measurement& m = ran.measurement;
  if (m.status != MeasureStatus::kTimeout) return ran;
  const int64_t limit_ns = patient_limit_ns(bench.how, bench.target);
  const Result<std::unique_ptr<runtime::Device>> alone =
      open_device(bench.target, bench.num_threads, {}, limit_ns);
  if (!alone.ok()) return ran;
  ran = (*alone)->run(job);
  // Loading and preparing have limits of their own.
  if (m.status == MeasureStatus::kTimeout && m.detail.ends_with("while running")) {
    m.detail = fmt::format("took longer than {:g} s ({}); --timeout gives it more",
                           static_cast<double>(limit_ns) * 1e-9, m.detail);
  }
  return ran;
}

// Of a run that did not end well: nothing is known of a kernel that was not given the time or the machine.
void take_failure(const runtime::Measurement& m, uint64_t seed, Verdict* verdict) {
  const bool is_late = m.status == MeasureStatus::kTimeout;
  verdict->kind = is_late || m.status == MeasureStatus::kDeviceLost ? Verdict::Kind::kNotChecked
                                                                    : Verdict::Kind::kWrong;
  verdict->what = fmt::format("seed {}: {}{}", seed,
                              is_late ? "" : fmt::format("{}: ", describe(m.status)), m.detail);
}

// One set of inputs; false if the verdict stands after it.
bool check_inputs(const Bench& bench, uint64_t seed, Verdict* verdict) {
  runtime::Job job;
  job.artifact = &bench.artifact;
  job.inputs = References::inputs(bench.task.base, seed);
  job.want_outputs = true;
  const runtime::JobOutcome ran = run_patiently(bench, job);
  if (!ran.measurement.ok()) {
    take_failure(ran.measurement, seed, verdict);
    return false;
  }
  const Result<Comparison> comparison = bench.references.compare(bench.task, seed, ran.outputs);
  if (!comparison.ok()) {
    const bool is_invalid = comparison.error().id() == Diag::kProgramInvalid;
    verdict->kind = is_invalid ? Verdict::Kind::kInvalid : Verdict::Kind::kNotChecked;
    verdict->what = comparison.error().message();
    return false;
  }
  if (!comparison->ok) {
    verdict->kind = Verdict::Kind::kWrong;
    verdict->what = fmt::format("seed {}: {}", seed, comparison->what);
    return false;
  }
  verdict->what = comparison->what;
  if (comparison->is_empty()) {
    verdict->kind = Verdict::Kind::kNotChecked;
    return false;
  }
  return !bench.how.interpret ||
         agrees_with_interpreter(bench.task, bench.references, seed, verdict);
}

}  // namespace

int64_t patient_limit_ns(const KernelCheck& how, const ir::Target& target) {
  constexpr int64_t kPatience = 3, kMostMoreNs = 3'600'000'000'000;
  const int64_t first_ns = how.run_limit_ns > 0 ? how.run_limit_ns : own_run_limit_ns(target);
  return first_ns + std::min((kPatience - 1) * first_ns, kMostMoreNs);
}

Verdict check_kernel(const KernelCheck& how, const search::Task& task,
                     const codegen::Artifact& artifact) {
  const StillAt working("comparing outputs of " + task.name);
  Verdict verdict;
  verdict.name = task.name;
  const int num_threads = static_cast<int>(std::max<int64_t>(1, task.target.num_threads));
  const ir::Target target = with_device(task.target);
  const Result<std::unique_ptr<runtime::Device>> device =
      open_device(target, num_threads, {}, how.run_limit_ns);
  if (!device.ok()) {
    verdict.kind = Verdict::Kind::kNotChecked;
    verdict.what = device.error().message();
    return verdict;
  }
  verdict.ran_on = place_of(target.kind);
  runtime::CpuDevice cpu({.num_threads = num_threads});
  References references(cpu);
  const Bench bench = {how, task, artifact, target, num_threads, **device, references};
  while (verdict.num_seeds < how.num_seeds) {
    const uint64_t seed = how.seed + static_cast<uint64_t>(verdict.num_seeds);
    if (!check_inputs(bench, seed, &verdict)) break;
    ++verdict.num_seeds;
  }
  return verdict;
}

bool take_values(const Result<ValueVerdict>& found, Verdict* verdict) {
  if (!found.ok()) {
    verdict->values = "not compared: " + found.error().message();
    const Diag id = found.error().id();
    if (id == Diag::kTimeLimit || id == Diag::kWorkerStart)
      verdict->kind = Verdict::Kind::kNotChecked;
    return false;
  }
  verdict->values = found->what;
  if (!found->ok) verdict->kind = Verdict::Kind::kWrong;
  return found->num_elems > 0;
}

}  // namespace prunerc::cli
