// What a GPU does to its callers, played by a driver without one (fake_cuda.cc); with a real one
// the tests of code generation say more.
#include "runtime/cuda/device.h"

#include "runtime/cuda/cupti_timer.h"
#include "runtime/cuda/driver.h"

#include <catch2/catch.hpp>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace prunerc::runtime::cuda {
namespace {

using codegen::Artifact;
using codegen::LaunchArgKind;
using codegen::ParamRole;
using ir::DType;

constexpr const char* kFake = "tests/runtime/cuda/libfake_cuda.so";
constexpr InputSpec kInput = {.fill = Fill::kIota, .seed = 0, .bytes = {}};

/// Sets a variable for a scope: workers inherit it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

struct FakeGpu {
  Variable driver{"PRUNERC_LIBCUDA", kFake};
  Variable cupti{"PRUNERC_CUPTI", kFake};
  std::unique_ptr<CudaDevice> device = open();
  static std::unique_ptr<CudaDevice> open() {
    auto opened = CudaDevice::open({.worker_argv = {"tests/support/gpu_worker", "__cuda_worker"},
                                    .run_limit_ns = 500'000'000});
    if (!opened.ok()) FAIL(opened.error().message());
    return std::move(opened).value();
  }
};

/// A cubin of the fake driver with one function, launched `num_launches` times.
Artifact make_artifact(const std::string& behaviour, int64_t ns, int num_launches = 1) {
  Artifact artifact;
  artifact.kind = codegen::ArtifactKind::kCudaCubin;
  artifact.entry = "kernel";
  artifact.bytes = "kernel " + behaviour + " " + std::to_string(ns);
  artifact.params = {
      {.name = "A", .dtype = DType::kF32, .shape = {64}},
      {.name = "B", .dtype = DType::kF32, .shape = {64}, .role = ParamRole::kOutput}};
  for (int i = 0; i < num_launches; ++i) {
    artifact.launches.push_back({.kernel = "kernel",
                                 .args = {{LaunchArgKind::kParam, 0}, {LaunchArgKind::kParam, 1}},
                                 .tensor_maps = {}});
  }
  return artifact;
}

JobOutcome run(FakeGpu& gpu, const Artifact& artifact, bool timed = false) {
  Job job;
  job.artifact = &artifact;
  job.inputs = {kInput};
  job.want_outputs = true;
  if (timed) job.timing = TimingOptions{};
  return gpu.device->run(job);
}

TEST_CASE("a machine without a driver has no CUDA device, and says why") {
  // The first question of this process decides, so another process is asked: its worker.
  const Variable none("PRUNERC_LIBCUDA", "/no/such/libcuda.so.1");
  WorkerDevice workers({.worker_argv = {"tests/support/gpu_worker", "__cuda_worker"},
                        .memory_limit_bytes = INT64_MAX});
  const Artifact artifact = make_artifact("copy", 1000);
  Job job;
  job.artifact = &artifact;
  job.inputs = {kInput};
  const Measurement m = workers.run(job).measurement;
  CHECK(m.status == MeasureStatus::kDeviceLost);
  CHECK(m.detail.find("no CUDA device") != std::string::npos);
  CHECK(m.detail.find("/no/such/libcuda.so.1") != std::string::npos);
}

TEST_CASE("CUPTI without a driver is no timer, whether its library is there or not") {
  if (void* const real = dlopen("libcuda.so.1", RTLD_NOW)) {
    dlclose(real);
    WARN("skipped: this machine has a driver");
    return;
  }
  // Its state is the process's, so this is the one case that starts it here.
  const Result<CuptiTimer*> timer = CuptiTimer::start();
  REQUIRE(!timer.ok());
  CHECK(timer.error().id() == Diag::kCudaMissing);
}

TEST_CASE("a driver without a device, and a library that is no driver, are no device") {
  const Variable none("CUDA_FAKE_NO_DEVICE", "1");
  const Artifact artifact = make_artifact("copy", 1000);
  Job job;
  job.artifact = &artifact;
  job.inputs = {kInput};
  for (const char* library : {kFake, "libm.so.6"}) {
    const Variable driver("PRUNERC_LIBCUDA", library);
    WorkerDevice workers({.worker_argv = {"tests/support/gpu_worker", "__cuda_worker"},
                          .memory_limit_bytes = INT64_MAX,
                          .environment = {"CUDA_*"}});
    const Measurement m = workers.run(job).measurement;
    CHECK(m.status == MeasureStatus::kDeviceLost);
    CHECK(m.detail.find("no CUDA device") != std::string::npos);
  }
}

TEST_CASE("a kernel that does what it should gives its outputs") {
  FakeGpu gpu;
  const JobOutcome outcome = run(gpu, make_artifact("copy", 1000));
  CHECK(outcome.measurement.detail == "");
  REQUIRE(outcome.measurement.status == MeasureStatus::kOk);
  std::vector<float> values(64);
  fill_tensor(Fill::kIota, 0, DType::kF32, 64, values.data());
  CHECK(outcome.outputs.front() == std::string(reinterpret_cast<const char*>(values.data()), 256));
}

TEST_CASE("what a kernel does wrong is told apart") {
  FakeGpu gpu;
  const auto outcome_of = [&](const char* behaviour) {
    return run(gpu, make_artifact(behaviour, 1000)).measurement;
  };
  const Measurement stray = outcome_of("stray");
  CHECK(stray.status == MeasureStatus::kWrongResult);
  CHECK(stray.detail == "the kernel wrote outside of 'B'");
  const Measurement idle = outcome_of("idle");
  CHECK(idle.status == MeasureStatus::kWrongResult);
  CHECK(idle.detail == "element 0 of output 'B' is never written");
  CHECK(outcome_of("clobber").detail == "the kernel wrote to its input 'A'");
  CHECK(outcome_of("count").status == MeasureStatus::kWrongResult);
}

float first_value(const JobOutcome& outcome) {
  REQUIRE(outcome.measurement.ok());
  float value = 0;
  std::memcpy(&value, outcome.outputs.front().data(), sizeof value);
  return value;
}

TEST_CASE("an input is brought to the device once, whatever the number of runs and jobs") {
  FakeGpu gpu;
  const Artifact uploads = make_artifact("uploads", 1000);
  CHECK(first_value(run(gpu, uploads, true)) == 1);
  CHECK(first_value(run(gpu, uploads)) == 1);
  Job job;
  job.artifact = &uploads;
  job.want_outputs = true;
  job.inputs = {InputSpec{.fill = Fill::kUniform, .seed = 0, .bytes = {}}};
  CHECK(first_value(gpu.device->run(job)) == 2);
  job.inputs.front().seed = 1;
  CHECK(first_value(gpu.device->run(job)) == 3);
  CHECK(first_value(run(gpu, uploads)) == 3);
}

TEST_CASE("bytes of the caller are brought anew for each run") {
  FakeGpu gpu;
  const Artifact copy = make_artifact("copy", 1000);
  Job job;
  job.artifact = &copy;
  job.want_outputs = true;
  for (const char value : {'a', 'b'}) {
    const std::string bytes(256, value);
    job.inputs = {InputSpec{.fill = Fill::kBytes, .seed = 0, .bytes = bytes}};
    const JobOutcome outcome = gpu.device->run(job);
    REQUIRE(outcome.measurement.ok());
    CHECK(outcome.outputs.front() == bytes);
  }
}

TEST_CASE("only outputs that are asked for leave the device") {
  const Variable refused("CUDA_FAKE_NO_DOWNLOAD", "1");
  FakeGpu gpu;
  const Artifact copy = make_artifact("copy", 1000);
  Job job;
  job.artifact = &copy;
  job.inputs = {kInput};
  job.timing = TimingOptions{};
  const Measurement m = gpu.device->run(job).measurement;
  INFO(m.detail);
  CHECK(m.ok());
  job.want_outputs = true;
  CHECK(gpu.device->run(job).measurement.status == MeasureStatus::kCrash);
}

TEST_CASE("a kernel that writes far outside of its memory does not spoil the inputs of the next") {
  FakeGpu gpu;
  const float good = first_value(run(gpu, make_artifact("copy", 1000)));
  const Artifact ruin = make_artifact("ruin", 1000);
  Job unchecked;
  unchecked.artifact = &ruin;
  unchecked.inputs = {kInput};
  unchecked.check = Check::kNone;
  CHECK(gpu.device->run(unchecked).measurement.ok());
  CHECK(first_value(run(gpu, make_artifact("copy", 1000))) == good);
  CHECK(first_value(run(gpu, make_artifact("uploads", 1000))) == 2);
}

TEST_CASE("kept inputs make room for a job that needs their memory") {
  constexpr int64_t kMiB = int64_t{1} << 20;
  const Variable memory("CUDA_FAKE_MEMORY", "4194304");
  FakeGpu gpu;
  const auto run_with_input = [&](int64_t bytes) {
    Artifact artifact = make_artifact("copy", 1000);
    artifact.params[0].shape = {bytes / 4};
    return run(gpu, artifact).measurement;
  };
  CHECK(run_with_input(kMiB / 2).ok());
  CHECK(run_with_input(4 * kMiB - kMiB / 4).ok());
  const Measurement m = run_with_input(4 * kMiB);
  CHECK(m.status == MeasureStatus::kCrash);
  CHECK(m.detail.find("cuMemAlloc failed") != std::string::npos);
}

TEST_CASE("outputs of more than half of the device's memory are checked as well") {
  const Variable memory("CUDA_FAKE_MEMORY", "4194304");
  FakeGpu gpu;
  Artifact artifact = make_artifact("copy", 1000);
  artifact.params[1].shape = {int64_t{3} << 18};  // 3 MiB
  // The kernel writes its first 64 elements only, which is found; there is room for one round.
  const Measurement m = run(gpu, artifact).measurement;
  INFO(m.detail);
  CHECK(m.status == MeasureStatus::kWrongResult);
  CHECK(run(gpu, make_artifact("copy", 1000)).measurement.ok());
}

TEST_CASE("a sticky error ends the process that has it, and the next kernel runs") {
  FakeGpu gpu;
  const Measurement failed = run(gpu, make_artifact("fail", 1000)).measurement;
  CHECK(failed.status == MeasureStatus::kCrash);
  CHECK(failed.detail.find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
  CHECK(run(gpu, make_artifact("copy", 1000)).measurement.status == MeasureStatus::kOk);
}

TEST_CASE("a kernel that hangs is killed with its process, and the next one runs") {
  FakeGpu gpu;
  CHECK(run(gpu, make_artifact("hang", 1000)).measurement.status == MeasureStatus::kTimeout);
  CHECK(run(gpu, make_artifact("copy", 1000)).measurement.status == MeasureStatus::kOk);
}

TEST_CASE("cubins that do not load are build errors") {
  FakeGpu gpu;
  Artifact artifact = make_artifact("copy", 1000);
  artifact.bytes = "";
  CHECK(run(gpu, artifact).measurement.status == MeasureStatus::kBuildError);
  artifact = make_artifact("copy", 1000);
  artifact.launches[0].kernel = "other";
  CHECK(run(gpu, artifact).measurement.status == MeasureStatus::kBuildError);
  artifact = make_artifact("copy", 1000);
  artifact.kind = codegen::ArtifactKind::kCudaSource;
  CHECK(run(gpu, artifact).measurement.status == MeasureStatus::kBuildError);
}

TEST_CASE("a cubin of a newer CUDA that the driver refuses is an error with both versions") {
  const Variable version("CUDA_FAKE_VERSION", "12040");
  FakeGpu gpu;
  Artifact artifact = make_artifact("copy", 1000);
  artifact.bytes =
      std::string("\0\0\x0c\0\0\0\x08\0\0\0\xe8\x03\0\0NVIDIA Corp\0\x02\0\x5a\0\x82\0", 32);
  const Measurement m = run(gpu, artifact).measurement;
  CHECK(m.status == MeasureStatus::kBuildError);
  CHECK(m.detail == error(Diag::kCudaVersion, std::string("12.4"), std::string("13.0")).message());
  // 12.4 is not newer: what the driver says of it stands.
  artifact.bytes[30] = 124;
  CHECK(run(gpu, artifact).measurement.detail.find("cuModuleLoadData") != std::string::npos);
  artifact.bytes[30] = 125;
  CHECK(run(gpu, artifact).measurement.detail ==
        error(Diag::kCudaVersion, std::string("12.4"), std::string("12.5")).message());
  artifact.bytes.resize(28);  // does not say what made it
  CHECK(run(gpu, artifact).measurement.detail.find("cuModuleLoadData") != std::string::npos);
  CHECK(check_toolkit(12040, 12040).ok());
}

TEST_CASE("only kernels with tensor maps need a driver that encodes them") {
  const Artifact artifact = make_artifact("copy", 1000);
  Artifact with_map = artifact;
  with_map.launches[0].tensor_maps = {{.base = {LaunchArgKind::kParam, 0},
                                       .dtype = DType::kF32,
                                       .rows = 4,
                                       .cols = 16,
                                       .pitch_bytes = 64,
                                       .box_rows = 4,
                                       .box_cols = 16}};
  {
    FakeGpu gpu;
    CHECK(run(gpu, with_map).measurement.ok());
  }
  Artifact of_images = with_map;
  of_images.launches[0].tensor_maps[0].pixels = codegen::PixelBox{.height = 2, .width = 2};
  {
    FakeGpu gpu;
    CHECK(run(gpu, of_images).measurement.ok());
  }
  FakeGpu gpu;
  const Variable old("PRUNERC_LIBCUDA", "tests/runtime/cuda/libfake_cuda_11.so");
  CHECK(run(gpu, artifact).measurement.ok());
  for (const Artifact& one : {with_map, of_images}) {
    const Measurement m = run(gpu, one).measurement;
    CHECK(m.status == MeasureStatus::kBuildError);
    CHECK(m.detail == error(Diag::kCudaTensorMap).message());
  }
}

TEST_CASE("a kernel that does not stand out of what clears the L2 is timed by events") {
  const Variable no_cupti("CUDA_FAKE_NO_CUPTI", "1");
  const Variable noise("CUDA_FAKE_MEMSET_NOISE", "5000");
  for (const int64_t ns : {500, 30'000}) {
    FakeGpu gpu;
    const Measurement m = run(gpu, make_artifact("copy", ns), true).measurement;
    INFO(m.detail);
    REQUIRE(m.ok());
    CHECK(m.min_ns > 0);
    CHECK(m.detail == (ns == 500 ? "timer=events, cold L2" : "timer=graph, cold L2"));
  }
}

TEST_CASE("a kernel that takes no longer than an empty one has no time by events") {
  const Variable no_cupti("CUDA_FAKE_NO_CUPTI", "1");
  const Variable no_graph("CUDA_FAKE_NO_GRAPH", "1");
  const Variable noise("CUDA_FAKE_LAUNCH_NOISE", "5000");
  FakeGpu gpu;
  const Measurement m = run(gpu, make_artifact("copy", 500), true).measurement;
  CHECK(m.status == MeasureStatus::kRunError);
  CHECK(m.samples_ns.empty());
  CHECK(m.detail.find("cannot be told from empty ones") != std::string::npos);
  const Measurement longer = run(gpu, make_artifact("copy", 30'000), true).measurement;
  INFO(longer.detail);
  REQUIRE(longer.ok());
  CHECK(longer.min_ns > 0);
}

TEST_CASE("CUPTI times the kernels of a run, without launches and without what clears the L2") {
  FakeGpu gpu;
  const Measurement m = run(gpu, make_artifact("copy", 30'000, 2), true).measurement;
  REQUIRE(m.status == MeasureStatus::kOk);
  CHECK(m.median_ns == 60'000);
  CHECK(m.detail == "timer=cupti, cold L2");
  CHECK(m.canary_ns == Approx(12'000));
  CHECK(m.samples_ns.size() == 200);
}

TEST_CASE("without complete records a graph between events times the kernel") {
  for (const char* trouble : {"CUDA_FAKE_NO_CUPTI", "CUDA_FAKE_ZERO_TIMES", "CUDA_FAKE_DROPPED"}) {
    INFO(trouble);
    const Variable set(trouble, "1");
    FakeGpu gpu;
    const Measurement m = run(gpu, make_artifact("copy", 30'000, 2), true).measurement;
    REQUIRE(m.status == MeasureStatus::kOk);
    CHECK(m.median_ns == Approx(60'000).epsilon(0.001));
    CHECK(m.detail == "timer=graph, cold L2");
  }
}

TEST_CASE("without graphs events do, less what an empty kernel takes") {
  const Variable no_cupti("CUDA_FAKE_NO_CUPTI", "1");
  const Variable no_graph("CUDA_FAKE_NO_GRAPH", "1");
  FakeGpu gpu;
  const Measurement m = run(gpu, make_artifact("copy", 30'000, 2), true).measurement;
  INFO(m.detail);
  REQUIRE(m.status == MeasureStatus::kOk);
  CHECK(m.median_ns == Approx(60'000).epsilon(0.001));
  CHECK(m.detail == "timer=events, cold L2");
}

TEST_CASE("several kernels are timed in turn, and one that fails does not spoil the others") {
  FakeGpu gpu;
  const Artifact slow = make_artifact("copy", 50'000), fast = make_artifact("copy", 20'000);
  const Artifact broken = make_artifact("fail", 1000);
  std::vector<Job> jobs(3);
  jobs[0].artifact = &slow;
  jobs[1].artifact = &broken;
  jobs[2].artifact = &fast;
  for (Job& job : jobs) job.inputs = {kInput};
  const std::vector<Measurement> times = gpu.device->compare(jobs, TimingOptions{});
  CHECK(times[1].status == MeasureStatus::kCrash);
  jobs.erase(jobs.begin() + 1);
  const std::vector<Measurement> good = gpu.device->compare(jobs, TimingOptions{});
  CHECK(good[0].median_ns == 50'000);
  CHECK(good[1].median_ns == 20'000);
  CHECK(good[0].samples_ns.size() == 50);
}

}  // namespace
}  // namespace prunerc::runtime::cuda
