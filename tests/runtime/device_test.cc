#include "runtime/cpu/device.h"

#include "runtime/clock.h"
#include "runtime/cpu/tiles.h"
#include "tests/runtime/kernels.h"

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>

namespace prunerc::runtime {
namespace {

struct Verdict {
  const char* entry;
  MeasureStatus status;
  const char* detail;  // part of the text for people
};

std::vector<float> floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> expected_input() {
  std::vector<float> values(1000);
  fill_tensor(Fill::kUniform, 1, ir::DType::kF32, 1000, values.data());
  return values;
}

/// True if the device still runs a sound kernel and returns what it computes.
bool works(CpuDevice& device) {
  const codegen::Artifact artifact = test_artifact("good");
  Job job = test_job(artifact);
  job.want_outputs = true;
  const JobOutcome outcome = device.run(job);
  if (outcome.measurement.status != MeasureStatus::kOk || outcome.outputs.size() != 1) return false;
  std::vector<float> expected = expected_input();
  for (float& value : expected) value += 1;
  return floats(outcome.outputs[0]) == expected;
}

const std::vector<Verdict> kVerdicts = {
    {"good", MeasureStatus::kOk, ""},
    {"good_parallel", MeasureStatus::kOk, ""},
    {"calls_expf", MeasureStatus::kOk, ""},
    {"uses_its_workspace", MeasureStatus::kOk, ""},
    {"reports_failure", MeasureStatus::kRunError, "returned 7"},
    {"reads_past_the_end", MeasureStatus::kCrash, "past the end of 'A'"},
    {"writes_past_the_end", MeasureStatus::kWrongResult, "outside of 'C'"},
    {"writes_before_the_start", MeasureStatus::kWrongResult, "outside of 'C'"},
    {"writes_far_away", MeasureStatus::kCrash, "SIGSEGV: write of an address that is in no buffer"},
    {"writes_an_input", MeasureStatus::kWrongResult, "wrote to its input 'A'"},
    {"leaves_one_unwritten", MeasureStatus::kWrongResult,
     "element 500 of output 'C' is never written"},
    {"reads_its_output", MeasureStatus::kWrongResult, "element 0 of output 'C' differs"},
    {"divides_by_zero", MeasureStatus::kCrash, "SIGFPE"},
    {"runs_an_illegal_instruction", MeasureStatus::kCrash, "SIGILL"},
    {"overflows_the_stack", MeasureStatus::kCrash, "stack overflow"},
    {"exits_with_success", MeasureStatus::kCrash, "exited with status 0"},
    {"closes_the_pipe", MeasureStatus::kCrash, ""},
    {"writes_to_the_pipe", MeasureStatus::kCrash, "garbage"},
    {"abuses_the_workspace", MeasureStatus::kWrongResult, "outside of its workspace"},
    {"calls_the_system_library", MeasureStatus::kBuildError, "getpid"},
    {"no_such_entry", MeasureStatus::kBuildError, "cannot load kernel 'no_such_entry': "},
};

TEST_CASE("each kind of bad kernel gets its verdict, and the kernel after it is not affected") {
  CpuDevice device(test_options(2));
  for (const Verdict& verdict : kVerdicts) {
    codegen::Artifact artifact = test_artifact(verdict.entry);
    if (artifact.entry == "uses_its_workspace") artifact.workspace_bytes_per_worker = 28;
    const Measurement result = device.run(test_job(artifact)).measurement;
    INFO(verdict.entry << ": " << to_string(result.status) << ": " << result.detail);
    CHECK(result.status == verdict.status);
    CHECK(result.detail.find(verdict.detail) != std::string::npos);
    CHECK(works(device));
  }
}

codegen::Artifact const_artifact(const std::string& prepare, const std::string& entry) {
  codegen::Artifact artifact = test_artifact(entry);
  artifact.prepare_entry = prepare;
  artifact.prepared_bytes = 4000;
  artifact.params.insert(artifact.params.begin() + 1, artifact.params[0]);
  artifact.params[1].name = "W";
  artifact.params[1].is_const = true;
  return artifact;
}

Job const_job(const codegen::Artifact& artifact) {
  Job job = test_job(artifact);
  job.inputs.push_back({.fill = Fill::kUniform, .seed = 2, .bytes = {}});
  return job;
}

TEST_CASE("constants are prepared once, and the kernel sees what was prepared alone") {
  CpuDevice device(test_options(2));
  const codegen::Artifact artifact = const_artifact("doubles", "adds_prepared");
  Job job = const_job(artifact);
  job.want_outputs = true;
  job.timing = TimingOptions{};
  const JobOutcome outcome = device.run(job);
  INFO(outcome.measurement.detail);
  REQUIRE(outcome.measurement.status == MeasureStatus::kOk);
  CHECK(outcome.measurement.median_ns > 0);
  std::vector<float> expected = expected_input(), weights(1000);
  fill_tensor(Fill::kUniform, 2, ir::DType::kF32, 1000, weights.data());
  for (size_t i = 0; i < weights.size(); ++i) expected[i] += 2 * weights[i];
  REQUIRE(outcome.outputs.size() == 1);
  CHECK(floats(outcome.outputs[0]) == expected);
  // In turns as well.
  const std::vector<Job> jobs(2, job);
  for (const Measurement& timed : device.compare(jobs, {})) CHECK(timed.ok());
}

TEST_CASE("constants are read from copies in turn where they are to be cold") {
  CpuDevice device(test_options());
  const codegen::Artifact artifact = const_artifact("doubles", "wants_constants_to_move");
  Job job = const_job(artifact);
  job.timing = TimingOptions{};
  CHECK(device.run(job).measurement.status == MeasureStatus::kWrongResult);
  for (const int64_t bytes : {int64_t{8200}, int64_t{1} << 20, int64_t{1} << 50}) {
    job.timing->constants_bytes = bytes;
    const Measurement result = device.run(job).measurement;
    INFO(bytes << ": " << result.detail);
    CHECK(result.ok());
    CHECK(result.median_ns > 0);
  }
  // Not even two.
  job.timing->constants_bytes = 8000;
  CHECK(device.run(job).measurement.status == MeasureStatus::kWrongResult);
}

TEST_CASE("what preparing and running must not do is found") {
  CpuDevice device(test_options());
  const struct {
    const char *prepare, *entry;
    MeasureStatus status;
    const char* detail;
  } verdicts[] = {
      {"doubles", "reads_a_constant", MeasureStatus::kCrash, "SIGSEGV"},
      {"doubles", "changes_prepared", MeasureStatus::kWrongResult, "prepared constants"},
      {"doubles_too_much", "adds_prepared", MeasureStatus::kWrongResult, "prepared constants"},
      {"doubles_an_input", "adds_prepared", MeasureStatus::kCrash, "SIGSEGV"},
      {"fails_to_prepare", "adds_prepared", MeasureStatus::kRunError, "returned 7"},
      {"no_such_entry", "adds_prepared", MeasureStatus::kBuildError, "no_such_entry"},
  };
  for (const auto& verdict : verdicts) {
    const codegen::Artifact artifact = const_artifact(verdict.prepare, verdict.entry);
    const Measurement result = device.run(const_job(artifact)).measurement;
    INFO(verdict.prepare << " " << verdict.entry << ": " << result.detail);
    CHECK(result.status == verdict.status);
    CHECK(result.detail.find(verdict.detail) != std::string::npos);
    CHECK(works(device));
  }
}

TEST_CASE("a kernel that names tile registers gets them in its worker, or is refused there") {
  codegen::Artifact artifact = test_artifact("uses_tiles");
  artifact.tile_features = {"amx-tile"};
  CpuDevice device(test_options(2));
  const Measurement result = device.run(test_job(artifact)).measurement;
  INFO(to_string(result.status) << ": " << result.detail);
  if (allow_tiles()) {
    CHECK(result.ok());
  } else {
    CHECK(result.status == MeasureStatus::kBuildError);
    // The CPU lacks them, or the system refuses.
    CHECK(result.detail.find("tile") != std::string::npos);
  }
  // One that does not say so dies of its first instruction, whether or not this process may.
  artifact.tile_features.clear();
  CpuDevice fresh(test_options(2));
  const Measurement died = fresh.run(test_job(artifact)).measurement;
  CHECK(died.status == MeasureStatus::kCrash);
  CHECK(died.detail.find("SIGILL") != std::string::npos);
}

TEST_CASE("a kernel that hangs is killed at the limit") {
  for (const char* entry : {"hangs", "hangs_in_a_worker", "sends_half_a_frame"}) {
    WorkerOptions options = test_options(2);
    options.run_limit_ns = 300'000'000;
    CpuDevice device(options);
    const codegen::Artifact artifact = test_artifact(entry);
    const int64_t started_ns = now_ns();
    const Measurement result = device.run(test_job(artifact)).measurement;
    INFO(entry << ": " << result.detail);
    CHECK(result.status == MeasureStatus::kTimeout);
    CHECK(now_ns() - started_ns < 5'000'000'000);
    CHECK(works(device));
  }
}

TEST_CASE("a stack overflow on a pool thread is a crash like any other") {
  CpuDevice device(test_options(2));
  const codegen::Artifact artifact = test_artifact("overflows_in_a_worker");
  Job job = test_job(artifact);
  job.check = Check::kNone;
  Measurement result;
  // The second worker gets a task in most runs only.
  for (int i = 0; i < 50 && result.status != MeasureStatus::kCrash; ++i)
    result = device.run(job).measurement;
  CHECK(result.status == MeasureStatus::kCrash);
  CHECK(result.detail.find("stack overflow") != std::string::npos);
  CHECK(works(device));
}

TEST_CASE("a crash in a used process is repeated in a fresh one before it counts") {
  CpuDevice device(test_options());
  REQUIRE(works(device));
  REQUIRE(device.num_workers_started() == 1);
  const codegen::Artifact artifact = test_artifact("divides_by_zero");
  CHECK(device.run(test_job(artifact)).measurement.status == MeasureStatus::kCrash);
  CHECK(device.num_workers_started() == 2);
}

TEST_CASE("the child of a fork does not end its parent's worker") {
  auto device = std::make_unique<CpuDevice>(test_options());
  REQUIRE(works(*device));
  const pid_t child = fork();
  if (child == 0) {
    device.reset();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(works(*device));
  CHECK(device->num_workers_started() == 1);
}

TEST_CASE("a process is replaced after its share of jobs") {
  WorkerOptions options = test_options();
  options.max_jobs_per_worker = 3;
  CpuDevice device(options);
  for (int i = 0; i < 7; ++i) CHECK(works(device));
  CHECK(device.num_workers_started() == 3);
}

TEST_CASE("inputs given as bytes reach the kernel") {
  CpuDevice device(test_options());
  const codegen::Artifact artifact = test_artifact("good");
  std::string bytes(4000, '\0');
  const float value = 41.0F;
  std::memcpy(bytes.data() + 4 * 123, &value, sizeof value);
  Job job = test_job(artifact);
  job.inputs = {{.fill = Fill::kBytes, .seed = 0, .bytes = bytes}};
  job.want_outputs = true;
  const JobOutcome outcome = device.run(job);
  REQUIRE(outcome.measurement.status == MeasureStatus::kOk);
  CHECK(floats(outcome.outputs[0])[123] == 42.0F);
  CHECK(floats(outcome.outputs[0])[0] == 1.0F);
}

TEST_CASE("inputs of another size or number are refused") {
  CpuDevice device(test_options());
  const codegen::Artifact artifact = test_artifact("good");
  Job job = test_job(artifact);
  job.inputs = {{.fill = Fill::kBytes, .seed = 0, .bytes = "short"}};
  const Measurement refused = device.run(job).measurement;
  CHECK(refused.status == MeasureStatus::kDeviceLost);
  CHECK(refused.detail.find("input 'A' needs 4000 bytes, found 5") != std::string::npos);
  job.inputs.clear();
  CHECK(device.run(job).measurement.status == MeasureStatus::kDeviceLost);
  job.inputs.resize(2);
  CHECK(device.run(job).measurement.status == MeasureStatus::kDeviceLost);
  CHECK(works(device));
}

TEST_CASE("inputs larger than a file may be are refused, and the process lives on") {
  CpuDevice device(test_options(2));
  REQUIRE(works(device));
  const codegen::Artifact artifact = test_artifact("good");
  const std::string bytes(4000, '\0');
  Job job = test_job(artifact);
  job.inputs = {{.fill = Fill::kBytes, .seed = 0, .bytes = bytes}};
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit low = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
  const Measurement refused = device.run(job).measurement;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  INFO(refused.detail);
  CHECK(refused.status == MeasureStatus::kDeviceLost);
  CHECK(refused.detail.find(std::strerror(EFBIG)) != std::string::npos);
  CHECK(works(device));
}

TEST_CASE("an object that is garbage is a build error") {
  CpuDevice device(test_options());
  for (const size_t keep : {0, 1, 63, 64, 1000}) {
    codegen::Artifact artifact = test_artifact("good");
    artifact.bytes.resize(keep);
    CHECK(device.run(test_job(artifact)).measurement.status == MeasureStatus::kBuildError);
  }
  codegen::Artifact artifact = test_artifact("good");
  artifact.kind = codegen::ArtifactKind::kCudaCubin;
  CHECK(device.run(test_job(artifact)).measurement.status == MeasureStatus::kBuildError);
  artifact = test_artifact("not an identifier");
  CHECK(device.run(test_job(artifact)).measurement.status == MeasureStatus::kBuildError);
  CHECK(works(device));
}

TEST_CASE("buffers that do not fit are the machine's failure, not the kernel's") {
  WorkerOptions options = test_options();
  options.memory_limit_bytes = int64_t{1} << 30;
  CpuDevice device(options);
  codegen::Artifact artifact = test_artifact("good");
  artifact.workspace_bytes = int64_t{1} << 38;
  CHECK(device.run(test_job(artifact)).measurement.status == MeasureStatus::kDeviceLost);
  CHECK(works(device));
}

TEST_CASE("a command that is no worker is an error with a hint") {
  WorkerOptions options = test_options();
  const codegen::Artifact artifact = test_artifact("good");
  options.worker_argv = {"/bin/true"};
  CHECK(CpuDevice(options).run(test_job(artifact)).measurement.detail.find("dispatch_worker") !=
        std::string::npos);
  options.worker_argv = {"/no/such/file"};
  const Measurement none = CpuDevice(options).run(test_job(artifact)).measurement;
  INFO(none.detail);
  CHECK(none.status == MeasureStatus::kDeviceLost);
  CHECK(none.detail.find("cannot start a worker process: ") != std::string::npos);
}

TEST_CASE("timing gives samples, a median and the repetitions") {
  CpuDevice device(test_options(2));
  const codegen::Artifact artifact = test_artifact("good_parallel");
  Job job = test_job(artifact);
  job.timing = TimingOptions{};
  const Measurement result = device.run(job).measurement;
  INFO(to_string(result.status) << ": " << result.detail);
  REQUIRE(result.ok());
  CHECK(result.samples_ns.size() >= 1);
  CHECK(result.median_ns > 10);
  CHECK(result.median_ns < 10'000'000);
  CHECK(result.min_ns <= result.median_ns);
  CHECK(result.runs_per_sample > 1);
  CHECK(result.canary_ns > 0);
}

TEST_CASE("a kernel that remembers results by address is wrong as soon as it is timed") {
  CpuDevice device(test_options());
  for (const char* entry :
       {"remembers_by_address", "remembers_results_by_address", "answers_one_late"}) {
    const codegen::Artifact artifact = test_artifact(entry);
    Job job = test_job(artifact);
    job.timing = TimingOptions{};
    const Measurement result = device.run(job).measurement;
    INFO(entry << ": " << to_string(result.status) << ": " << result.detail);
    CHECK(result.status == MeasureStatus::kWrongResult);
    CHECK(result.detail.find("'C' depends on what the kernel computed before") !=
          std::string::npos);
    CHECK(works(device));
  }
}

TEST_CASE("a kernel far slower than the best known is run once") {
  CpuDevice device(test_options());
  const codegen::Artifact artifact = test_artifact("sleeps_for_30_ms");
  Job job = test_job(artifact);
  job.timing = TimingOptions{};
  job.timing->best_known_ns = 1e6;
  const Measurement result = device.run(job).measurement;
  CHECK(result.status == MeasureStatus::kOk);
  REQUIRE(result.samples_ns.size() == 1);
  CHECK(result.median_ns > 30e6);
}

TEST_CASE("a comparison orders kernels and survives one that crashes") {
  CpuDevice device(test_options());
  const codegen::Artifact slow = test_artifact("slow_by_factor_20");
  const codegen::Artifact bad = test_artifact("divides_by_zero");
  const codegen::Artifact fast = test_artifact("good");
  const codegen::Artifact missing = test_artifact("no_such_entry");
  const std::vector<Job> jobs = {test_job(slow), test_job(bad), test_job(fast), test_job(missing)};
  const std::vector<Measurement> results = device.compare(jobs, {});
  REQUIRE(results.size() == 4);
  CHECK(results[1].status == MeasureStatus::kCrash);
  CHECK(results[3].status == MeasureStatus::kBuildError);
  REQUIRE(results[0].ok());
  REQUIRE(results[2].ok());
  CHECK(results[0].min_ns > 4 * results[2].min_ns);
  CHECK(works(device));
}

}  // namespace
}  // namespace prunerc::runtime
