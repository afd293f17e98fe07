#include "runtime/cpu/host.h"

#include "ir/support/hash.h"
#include "runtime/cpu/limits.h"
#include "runtime/cpu/orc.h"
#include "runtime/cpu/tiles.h"
#include "runtime/fill.h"
#include "tests/runtime/kernels.h"

#include <catch2/catch.hpp>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace prunerc::runtime {
namespace {

TEST_CASE("the host's description is plausible and reads back from its text") {
  const ir::Target target = host_target();
  CHECK(target.num_cores >= 1);
  CHECK(target.num_threads >= target.num_cores);
  CHECK(target.l1d_bytes >= 16 << 10);
  CHECK(target.l2_bytes >= target.l1d_bytes);
  CHECK((target.vector_bytes == 32 || target.vector_bytes == 64));
  CHECK(!target.llvm_cpu.empty());
  const Result<ir::Target> back = ir::target_from_string(ir::to_string(target));
  REQUIRE(back.ok());
  CHECK(*back == target);
  CHECK(host_model_name().find("thread") != std::string::npos);
  CHECK(host_name() == host_model_name() + " (" + target.llvm_cpu + ")");
}

// Run by the next test in a process that has not asked for tile registers yet.
TEST_CASE("a thread has a small signal stack", "[.small_signal_stack]") {
  std::vector<char> memory(8 << 10);
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  REQUIRE(sigaltstack(&stack, nullptr) == 0);
  CHECK_FALSE(allow_tiles());
  CHECK_FALSE(ir::has_feature(host_target(), "amx-tile"));
  CHECK_FALSE(ir::has_feature(host_target(), "amx-int8"));
  codegen::Artifact artifact = test_artifact("uses_tiles");
  CHECK(load_kernel(artifact).ok());  // needs none, it says
  artifact.tile_features = {"amx-tile"};
  const Result<LoadedKernel> refused = load_kernel(artifact);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().id() == Diag::kKernelLoad);
  CHECK(refused.error().message().find("less than 12 KB") != std::string::npos);
  artifact.tile_features = {"amx-tile", "amx-none"};
  const Result<LoadedKernel> unknown = load_kernel(artifact);
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().id() == Diag::kCpuFeatures);
  CHECK(unknown.error().message() == "the code needs amx-none, which this CPU lacks");
  // Who loads a kernel asks again; what the host is does not change.
  stack.ss_flags = SS_DISABLE;
  REQUIRE(sigaltstack(&stack, nullptr) == 0);
  artifact.tile_features = {"amx-tile"};
  CHECK(load_kernel(artifact).ok());
  CHECK(allow_tiles());
  CHECK_FALSE(ir::has_feature(host_target(), "amx-tile"));
  // And now the stack is.
  stack.ss_flags = 0;
  CHECK(sigaltstack(&stack, nullptr) != 0);
}

TEST_CASE("tile registers are refused while a signal stack is too small for them") {
  if (!allow_tiles()) {
    WARN("skipped: no tile registers here");
    CHECK_FALSE(ir::has_feature(host_target(), "amx-tile"));
    return;
  }
  CHECK(ir::has_feature(host_target(), "amx-tile"));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    execl("/proc/self/exe", "runtime_test", "[small_signal_stack]", "-w", "NoTests", nullptr);
    _exit(1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("what a virtual machine hides of its CPU is not compiled for") {
  const auto without = [](std::set<std::string_view> hidden) {
    return [hidden](std::string_view name) { return !hidden.contains(name); };
  };
  CHECK(hidden_features("icelake-server", without({"avx512vbmi", "gfni"})) == ",-gfni,-avx512vbmi");
  CHECK(hidden_features("icelake-server", without({})) == "");
  // Without the first of them there are none, as LLVM knows.
  CHECK(hidden_features("icelake-server", without({"avx512f", "avx512vbmi"})) == "");
  // What the name does not imply cannot be hidden.
  CHECK(hidden_features("haswell", without({"avx512vbmi", "gfni", "sse4a"})) == "");
  CHECK(hidden_features("znver3", without({"sse4a"})) == ",-sse4a");
  CHECK(hidden_features("no such CPU", without({"gfni"})) == "");
}

TEST_CASE("measured limits are ordered as a memory hierarchy is") {
  LimitsOptions options;
  options.sample_ns = 500'000;
  options.memory_footprint_bytes = 64 << 20;
  const MachineLimits limits = measure_limits(options);
  CHECK(limits.clock_ghz > 0.5);
  CHECK(limits.clock_ghz < 10);
  CHECK(limits.one.fma_gflops > 5);
  REQUIRE(limits.one.levels.size() >= 3);
  CHECK(limits.one.levels.front().read_gbps > 1.5 * limits.one.levels.back().read_gbps);
  for (const LevelBandwidth& level : limits.one.levels) {
    CHECK(level.read_gbps > 0.5);
    CHECK(level.copy_gbps > 0.5);
  }
  // The first level feeds two registers a multiply-add at most.
  CHECK(limits.one.levels.front().read_gbps < 4 * limits.one.fma_gflops);
  // Kept of every limit: some sample was no better than the best.
  CHECK(limits.one.fma_spread >= 0);
  CHECK(limits.one.fma_spread < 1);
  CHECK(to_spreads(limits).fma_gflops == limits.one.fma_spread);
  CHECK(to_spreads(limits).memory_bandwidth_all == limits.all.levels.back().read_spread);
  const ir::Platform platform = to_platform(limits);
  CHECK(platform.fma_gflops == limits.one.fma_gflops);
  CHECK(platform.l1_bandwidth == Approx(limits.one.levels.front().read_gbps * 1e9));
}

TEST_CASE("a burst of other work lowers no limit, and shows in its spread") {
  // A clock of our own: each sample is a tick, and other work has ticks 8 to 15.
  int tick = 0;
  std::string order;
  const auto probe = [&](char name, double rate) {
    return [&tick, &order, name, rate] {
      order += name;
      const bool disturbed = tick >= 8 && tick < 16;
      ++tick;
      return disturbed ? rate / 4 : rate;
    };
  };
  const std::vector<std::function<double()>> probes = {probe('a', 100), probe('b', 40)};
  const std::vector<Rate> rates = sample_in_rounds(probes, 10);
  CHECK(order.substr(0, 6) == "ababab");
  REQUIRE(rates.size() == 2);
  CHECK(rates[0] == Rate{100, 0});
  CHECK(rates[1] == Rate{40, 0});
  // Rounds 5 to 8 of 8 here: half of the samples are low, so the median is.
  tick = 0;
  CHECK(sample_in_rounds(probes, 8)[0] == Rate{100, 0.375});
  CHECK(sample_in_rounds(probes, 0)[0] == Rate{});
}

TEST_CASE("narrower registers reach less") {
  // A sample is short, so that one falls between other work.
  constexpr int64_t kSampleNs = 300'000;
  const double sse4 = measure_fma_gflops(1, kSampleNs, 16);
  CHECK(sse4 > 2);
  CHECK(measure_fma_gflops(1, kSampleNs, 32) > 1.5 * sse4);
  LimitsOptions options;
  options.sample_ns = 200'000;
  options.memory_footprint_bytes = 64 << 20;
  options.vector_bytes = 16;
  const MachineLimits limits = measure_limits(options);
  CHECK(limits.vector_bytes == 16);
  for (const LevelBandwidth& level : limits.all.levels) {
    CHECK(level.read_gbps > 0.5);
    CHECK(level.copy_gbps > 0.5);
  }
}

TEST_CASE("limits are those of the CPUs that the process may use") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  LimitsOptions options;
  options.sample_ns = 100'000;
  options.memory_footprint_bytes = 16 << 20;
  const MachineLimits limits = measure_limits(options);
  REQUIRE(sched_setaffinity(0, sizeof(before), &before) == 0);
  CHECK(limits.all.num_threads == 1);
  CHECK(limits.launch_ns == 0);
  CHECK(limits.all.fma_gflops >= limits.one.fma_gflops);
}

TEST_CASE("fills depend on the seed and the element only") {
  for (int i = 0; i < kNumFills; ++i) {
    const auto fill = static_cast<Fill>(i);
    std::vector<float> long_fill(1000);
    std::vector<float> short_fill(10);
    fill_tensor(fill, 5, ir::DType::kF32, 1000, long_fill.data());
    fill_tensor(fill, 5, ir::DType::kF32, 10, short_fill.data());
    CHECK(std::memcmp(long_fill.data(), short_fill.data(), 40) == 0);
  }
}

TEST_CASE("fills are the same bytes in every version, which kept references count on") {
  constexpr int64_t kCount = 4099;
  const uint64_t expected[ir::kNumDTypes] = {
      0x48882a8799964fce, 0xeb08624cc64ec436, 0x69589658e275cbfa,
      0x228e0031fc235953, 0xc861b3758812ca89, 0xbf2edd5fc896c8e1,
      0xb6a28fcf8b60e9d0, 0xc2e8fbec42ba4e91, 0xb42705f4a9429c6c,
  };
  for (int type = 0; type < ir::kNumDTypes; ++type) {
    const auto dtype = static_cast<ir::DType>(type);
    uint64_t hash = 0;
    for (int fill = 0; fill < kNumFills; ++fill) {
      for (const uint64_t seed : {1U, 77U}) {
        std::string bytes(static_cast<size_t>(kCount * ir::byte_size(dtype)), '\0');
        fill_tensor(static_cast<Fill>(fill), seed, dtype, kCount, bytes.data());
        hash = hash_combine(hash, hash_bytes(bytes));
      }
    }
    INFO(ir::to_string(dtype));
    CHECK(hash == expected[type]);
  }
}

TEST_CASE("uniform floats spread over their range and seeds differ") {
  std::vector<float> a(10'000);
  std::vector<float> b(10'000);
  fill_tensor(Fill::kUniform, 1, ir::DType::kF32, 10'000, a.data());
  fill_tensor(Fill::kUniform, 2, ir::DType::kF32, 10'000, b.data());
  double sum = 0;
  for (const float value : a) {
    REQUIRE(std::abs(value) <= 1);
    sum += value;
  }
  CHECK(std::abs(sum / 10'000) < 0.05);
  CHECK(std::set<float>(a.begin(), a.end()).size() > 9'000);
  CHECK(a != b);
}

TEST_CASE("small integers are exact and in range for every type") {
  std::vector<int8_t> i8(1000);
  std::vector<uint8_t> u8(1000);
  std::vector<uint8_t> flags(1000);
  std::vector<uint16_t> bf16(1000);
  fill_tensor(Fill::kSmallInt, 1, ir::DType::kI8, 1000, i8.data());
  fill_tensor(Fill::kSmallInt, 1, ir::DType::kU8, 1000, u8.data());
  fill_tensor(Fill::kSmallInt, 1, ir::DType::kBool, 1000, flags.data());
  fill_tensor(Fill::kSmallInt, 1, ir::DType::kBF16, 1000, bf16.data());
  for (size_t i = 0; i < 1000; ++i) {
    REQUIRE(std::abs(i8[i]) <= 8);
    REQUIRE(u8[i] <= 8);
    REQUIRE(flags[i] <= 1);
    const double value = ir::bf16_value(bf16[i]);
    REQUIRE(value == std::floor(value));
    REQUIRE(std::abs(value) <= 8);
  }
  CHECK(std::set<int8_t>(i8.begin(), i8.end()).size() == 17);
}

}  // namespace
}  // namespace prunerc::runtime
