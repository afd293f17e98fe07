// Limits of a GPU that were kept, on a driver without one.
#include "tools/driver/gpu_platform.h"

#include "ir/support/file.h"
#include "runtime/cuda/attributes.h"
#include "runtime/cuda/driver.h"
#include "tools/driver/platform.h"

#include <catch2/catch.hpp>

#include <cstdlib>

namespace prunerc {
namespace {

TEST_CASE("kept limits are the device's under every name of it, and words override them") {
  const char* const folder = std::getenv("TEST_TMPDIR");
  REQUIRE(folder != nullptr);
  setenv("XDG_CACHE_HOME", folder, 1);
  setenv("PRUNERC_LIBCUDA", "tests/runtime/cuda/libfake_cuda.so", 1);
  const runtime::cuda::GpuLimits limits = {.launch_ns = 1500,
                                           .fma_gflops = 1000,
                                           .tensor_gflops = 12000,
                                           .memory_read_gbps = 15,
                                           .memory_copy_gbps = 14,
                                           .l2_read_gbps = 50,
                                           .shared_read_gbps = 400,
                                           .timer = "timer=graph"};
  const Result<const runtime::cuda::Driver*> api = runtime::cuda::driver();
  REQUIRE(api.ok());
  const auto device = runtime::cuda::describe_device(**api);
  REQUIRE(device.ok());
  const std::string path =
      limits_file({device->name, device->driver_version, device->target, {}, {}});
  CHECK(path != limits_file({device->name, device->driver_version + 1, device->target, {}, {}}));
  const std::string text = to_string(limits) + "\n";
  REQUIRE(replace_file(path, text).ok());

  const Result<GpuPlatform> gpu = gpu_platform();
  if (!gpu.ok()) FAIL(gpu.error().message());
  REQUIRE(gpu->limits.has_value());
  CHECK(*gpu->limits == limits);
  for (const char* name : {"cuda", "cuda:sm_90a"}) {
    const Result<ir::Target> target = resolve_target(name, 0);
    REQUIRE(target.ok());
    CHECK(*target == gpu->target);
    CHECK(target->name == "cuda:sm_90a");
    CHECK(target->num_sms == 4);
    CHECK(target->platform.fma_gflops == 1000);
    CHECK(target->tensor_macs_per_sm == 1000);
    const Result<ir::Target> other =
        resolve_target(std::string(name) + " fma_gflops=7 num_sms=5", 0);
    REQUIRE(other.ok());
    CHECK(other->platform.fma_gflops == 7);
    CHECK(other->num_sms == 5);
    CHECK(other->platform.launch_ns == 1500);
    CHECK(resolve_target(std::string(name) + " speed=7", 0).error().id() == Diag::kTargetField);
  }
  // Another architecture, a described device and the host's stand-in are what the table says.
  CHECK(resolve_target("cuda:sm_80", 0)->num_sms == 108);
  CHECK(resolve_target("cuda:h200", 0)->num_sms == 132);
  CHECK(resolve_target("cuda-host:sm_90a", 0)->num_sms == 132);

  // This process is no worker, so nothing can be measured: attributes are what is left, and what
  // was kept stays.
  const Result<GpuPlatform> again = gpu_platform(true);
  REQUIRE(again.ok());
  CHECK_FALSE(again->limits.has_value());
  CHECK(again->problem != "");
  CHECK(again->target.platform.fma_gflops == 0);
  CHECK(again->target.platform.memory_bandwidth == 16e9);
  CHECK(*read_file(path) == text);
}

}  // namespace
}  // namespace prunerc
