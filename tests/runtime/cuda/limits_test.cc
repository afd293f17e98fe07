// From the times of probes to a target, on a driver without a GPU (fake_cuda.cc): what its
// "cubins" take is written into them, what they compute is not compared.
#include "runtime/cuda/limits.h"

#include "runtime/cuda/attributes.h"
#include "runtime/cuda/device.h"

#include <catch2/catch.hpp>

#include <cstdlib>

namespace prunerc::runtime::cuda {
namespace {

constexpr const char* kFake = "tests/runtime/cuda/libfake_cuda.so";

class LimitsOnFake {
 public:
  LimitsOnFake() {
    setenv("PRUNERC_LIBCUDA", kFake, 1);
    setenv("PRUNERC_CUPTI", kFake, 1);
    auto opened = CudaDevice::open({.worker_argv = {"tests/support/gpu_worker", "__cuda_worker"},
                                    .cache = CacheState::kWarm,
                                    .run_limit_ns = 5'000'000'000});
    if (!opened.ok()) FAIL(opened.error().message());
    device = std::move(opened).value();
    const Result<DeviceDescription> found = describe_device(**driver());
    if (!found.ok()) FAIL(found.error().message());
    description = *found;
    probes = limit_probes(description.target, {.scale = 1e-4});
    for (LimitProbe& probe : probes) probe.expected.clear();
  }
  ~LimitsOnFake() {
    unsetenv("PRUNERC_LIBCUDA");
    unsetenv("PRUNERC_CUPTI");
  }
  LimitsOnFake(const LimitsOnFake&) = delete;
  LimitsOnFake& operator=(const LimitsOnFake&) = delete;

  const LimitProbe& probe(const std::string& kernel) const {
    for (const LimitProbe& one : probes) {
      if (one.source.entry == kernel) return one;
    }
    FAIL("no probe " + kernel);
    std::abort();
  }

  std::unique_ptr<CudaDevice> device;
  DeviceDescription description;
  std::vector<LimitProbe> probes;
};

/// Each kernel takes a time of its own.
Result<std::string> fake_compile(const codegen::Artifact&) {
  return std::string(
      "limit_launch idle 900\nlimit_fma idle 100000\nlimit_wmma idle 300000\n"
      "limit_wgmma idle 400000\nlimit_memory_read idle 500000\nlimit_memory_copy idle 600000\n"
      "limit_l2_read idle 700000\nlimit_shared_read idle 800000\n");
}

TEST_CASE("a device's attributes become a target of its generation") {
  const LimitsOnFake fake;
  const ir::Target& t = fake.description.target;
  CHECK(fake.description.name == "fake");
  CHECK(fake.description.driver_version == 13000);
  CHECK(t.name == "cuda:sm_90a");
  CHECK(t.compute_capability == 90);
  CHECK(t.num_sms == 4);
  CHECK(t.l2_bytes == 1 << 20);
  CHECK(t.platform.clock_ghz == 1.5);
  // Both edges of 64 wires at 1 GHz.
  CHECK(t.platform.memory_bandwidth == 16e9);
  // What the driver did not tell is the table's.
  CHECK(t.warp_size == 32);
  CHECK(t.fma_lanes_per_sm == 128);
}

TEST_CASE("measured limits are work over time, and take the places of the table's") {
  const LimitsOnFake fake;
  const Result<GpuLimits> limits = measure_limits(*fake.device, fake.probes, fake_compile);
  if (!limits.ok()) FAIL(limits.error().message());
  CHECK(limits->timer == "timer=cupti");
  CHECK(limits->launch_ns == 900);
  CHECK(limits->fma_gflops == fake.probe("limit_fma").work / 1e5);
  // The faster of two kinds of instructions.
  CHECK(limits->tensor_gflops ==
        std::max(fake.probe("limit_wmma").work / 3e5, fake.probe("limit_wgmma").work / 4e5));
  CHECK(limits->memory_read_gbps == fake.probe("limit_memory_read").work / 5e5);
  CHECK(limits->memory_copy_gbps == fake.probe("limit_memory_copy").work / 6e5);
  CHECK(limits->l2_read_gbps == fake.probe("limit_l2_read").work / 7e5);
  CHECK(limits->shared_read_gbps == fake.probe("limit_shared_read").work / 8e5);

  const ir::Target t = with_limits(fake.description.target, *limits);
  CHECK(t.peak_gflops() == limits->fma_gflops);
  CHECK(t.platform.memory_bandwidth == limits->memory_read_gbps * 1e9);
  CHECK(t.platform.l2_bandwidth == limits->l2_read_gbps * 1e9);
  CHECK(t.platform.launch_ns == 900);
  const double tensor = 2.0 * 4 * static_cast<double>(t.tensor_macs_per_sm) * 1.5;
  CHECK(tensor == Approx(limits->tensor_gflops).epsilon(0.01));
  CHECK(t.num_sms == 4);
}

TEST_CASE("limits read back from their text, and nothing else does") {
  const GpuLimits limits = {.launch_ns = 1.0 / 3,
                            .fma_gflops = 1e5,
                            .tensor_gflops = 7e5,
                            .memory_read_gbps = 4e3,
                            .memory_copy_gbps = 3.9e3,
                            .l2_read_gbps = 1e4,
                            .shared_read_gbps = 3e4,
                            .timer = "timer=cupti"};
  const std::string text = to_string(limits);
  REQUIRE(limits_from_string(text + "\n").has_value());
  CHECK(*limits_from_string(text + "\n") == limits);
  for (std::size_t size = 0; size + limits.timer.size() < text.size(); ++size) {
    CHECK_FALSE(limits_from_string(text.substr(0, size)).has_value());
  }
  GpuLimits none = limits;
  none.l2_read_gbps = 0;
  CHECK_FALSE(limits_from_string(to_string(none)).has_value());
}

TEST_CASE("a probe that fails, does not compile or computes something else is named") {
  LimitsOnFake fake;
  const auto message = [&](const CompileProbe& compile) {
    const Result<GpuLimits> limits = measure_limits(*fake.device, fake.probes, compile);
    REQUIRE(!limits.ok());
    CHECK(limits.error().id() == Diag::kCudaCall);
    return limits.error().message();
  };
  const std::string stops = message([](const codegen::Artifact& source) -> Result<std::string> {
    std::string text = *fake_compile(source);
    return text.replace(text.find("limit_fma idle"), 14, "limit_fma fail");
  });
  CHECK(stops.find("measuring f32 multiply-adds failed: crash") == 0);
  const std::string lacks = message([](const codegen::Artifact&) -> Result<std::string> {
    return std::string("limit_launch idle 900\n");
  });
  CHECK(lacks.find("it has no function limit_fma") != std::string::npos);
  const std::string refused = message([](const codegen::Artifact&) -> Result<std::string> {
    return error(Diag::kCudaCall, std::string("the compiler"), std::string("no"));
  });
  CHECK(refused == "the compiler failed: no");
  fake.probes = limit_probes(fake.description.target);
  CHECK(message(fake_compile).find("limit_launch computed something else") != std::string::npos);
}

TEST_CASE("a generation that the table does not have is an error, a later part of one is not") {
  const LimitsOnFake fake;
  Driver other = **driver();
  other.cuDeviceGetAttribute = [](int* value, int attribute, int) {
    return *value = attribute == kAttrMajor ? 3 : 5, 0;
  };
  const Result<DeviceDescription> old = describe_device(other);
  REQUIRE(!old.ok());
  CHECK(old.error().id() == Diag::kTargetUnknown);
  CHECK(old.error().message().find("cuda:sm_35") != std::string::npos);
  other.cuDeviceGetAttribute = [](int* value, int attribute, int) {
    return *value = attribute == kAttrMajor ? 8 : 7, 0;
  };
  const Result<DeviceDescription> orin = describe_device(other);
  REQUIRE(orin.ok());
  CHECK(orin->target.name == "cuda:sm_86");
  CHECK(orin->target.compute_capability == 87);
}

}  // namespace
}  // namespace prunerc::runtime::cuda
