// Faults that fooled other systems, planted as kernels in place of what was compiled: the measurer
// that every search uses must let none of them pass. Prints a line for each.
#include "codegen/artifact.h"
#include "ir/target.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/host.h"
#include "search/space/task.h"
#include "tools/driver/measurer.h"
#include "tools/driver/prunerc.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace prunerc {
namespace {

constexpr const char* kOperator = R"(
op f(A: f32[48,48], B: f32[48,48]) -> (C: f32[48,48]) {
  let T[i,j] = sum[k] A[i,k] * B[k,j];
  C[i,j] = max(T[i,j], 0);
}
)";

runtime::WorkerOptions worker_options() {
  runtime::WorkerOptions options;
  options.worker_argv = {"tests/runtime/worker", "__worker"};
  return options;
}

/// Runs its own kernel, whatever it is given.
class LyingDevice : public runtime::Device {
 public:
  explicit LyingDevice(const std::string& entry) : device_(worker_options()), entry_(entry) {
    std::ifstream file("tests/bench/robust/threat_kernels.o", std::ios::binary);
    object_.assign(std::istreambuf_iterator<char>(file), {});
  }

  runtime::JobOutcome run(const runtime::Job& job) override {
    codegen::Artifact artifact = *job.artifact;
    artifact.bytes = object_;
    artifact.entry = entry_;
    runtime::Job own = job;
    own.artifact = &artifact;
    return device_.run(own);
  }
  std::vector<runtime::Measurement> compare(std::span<const runtime::Job> jobs,
                                            const runtime::TimingOptions& timing) override {
    return device_.compare(jobs, timing);
  }

 private:
  runtime::CpuDevice device_;
  std::string entry_;
  std::string object_;
};

search::Measurement answer(DeviceMeasurer& measurer, const search::Task& task,
                           search::MeasureKind kind) {
  search::MeasureInput input;
  input.kind = kind;
  input.task = &task;
  input.program = task.base;
  input.seed = 1;
  measurer.submit(std::move(input));
  const auto outcome = measurer.next(std::chrono::steady_clock::now() + std::chrono::minutes(1));
  REQUIRE(outcome.has_value());
  return outcome->measurement;
}

/// What timing and then verification say of the kernel; "" if both let it pass.
std::string caught_by(const std::string& entry, const search::Task& task) {
  LyingDevice lying(entry);
  runtime::CpuDevice cpu(worker_options());
  MeasurerOptions options;
  options.timing.max_time_ns = 50'000'000;
  DeviceMeasurer measurer(lying, cpu, options);
  const search::Measurement timed = answer(measurer, task, search::MeasureKind::kTime);
  if (!timed.ok()) return "timing: " + timed.detail;
  const search::Measurement verified = answer(measurer, task, search::MeasureKind::kVerify);
  return verified.ok() ? "" : "verification: " + verified.detail;
}

TEST_CASE("no kernel that fooled another system passes for right") {
  OperatorRequest request;
  request.text = kOperator;
  const Result<Operator> op = load_operator(request);
  REQUIRE(op.ok());
  ir::Target target = runtime::host_target();
  target.num_threads = 1;
  const search::Task task = search::make_task(op->name, op->program, target);
  CHECK(caught_by("honest", task).empty());
  for (const char* entry : {"copies_its_input", "leaves_what_is_there", "answers_one_late",
                            "rounds_inputs_to_bf16", "rounds_sums_to_bf16", "skips_the_last_rows",
                            "zeroes_the_last_rows", "skips_the_last_terms", "skips_one_term",
                            "remembers_by_address", "remembers_results_by_address"}) {
    const std::string how = caught_by(entry, task);
    std::printf("threat %s %s\n", entry, how.empty() ? "MISSED" : how.c_str());
    INFO(entry);
    CHECK_FALSE(how.empty());
  }
}

}  // namespace
}  // namespace prunerc
