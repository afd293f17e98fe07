#include "codegen/cuda/host_object.h"
#include "runtime/cuda_host/async.h"
#include "runtime/cuda_host/run.h"
#include "tests/runtime/cuda_host/kernels.h"
#include "tests/support/cuda_host.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace prunerc::runtime::cuda_host {
namespace {

using testing::GemmCase;

/// Inputs are rounded before; sums of f32 differ in order only.
constexpr double kTolerance = 1e-6;

std::vector<ExecutionOptions> all_orders() {
  std::vector<ExecutionOptions> all;
  for (const ThreadOrder order :
       {ThreadOrder::kAscending, ThreadOrder::kDescending, ThreadOrder::kRandom}) {
    for (const AsyncMode mode : {AsyncMode::kEager, AsyncMode::kLazy, AsyncMode::kLateMma})
      all.push_back({.order = order, .mode = mode, .seed = 5});
  }
  return all;
}

void check_in_all_orders(const GemmCase& gemm) {
  const Result<codegen::Artifact> object = codegen::build_host_object(gemm.artifact, {});
  if (!object.ok()) FAIL(object.error().message());
  std::vector<std::string_view> inputs(gemm.inputs.begin(), gemm.inputs.end());
  for (const ExecutionOptions& options : all_orders()) {
    INFO(to_string(options.order) << ", " << to_string(options.mode));
    const Result<std::vector<std::string>> outputs = run_on_host(*object, inputs, options);
    if (!outputs.ok()) FAIL(outputs.error().message());
    CHECK(testing::error_of(gemm, outputs->front()) < kTolerance);
  }
}

TEST_CASE("a tiled product gives the same result in every order of threads") {
  check_in_all_orders(testing::sgemm_tiled({.m = 70, .n = 100, .k = 37}));
}

TEST_CASE("a reduction over 1024 threads gives the same result in every order") {
  check_in_all_orders(testing::row_sums({.m = 5, .n = 1, .k = 3001}));
}

TEST_CASE("a pipeline of cp.async, ldmatrix and mma gives the same result in every order") {
  check_in_all_orders(testing::hgemm_mma({.m = 100, .n = 128, .k = 224}));
}

TEST_CASE(
    "a persistent kernel with TMA, mbarriers and wgmma gives the same result in every order") {
  check_in_all_orders(testing::hgemm_tma({.m = 200, .n = 136, .k = 584}, 2));
}

// Element i of the output: where element i of a swizzled buffer lies.
codegen::Artifact swizzle_table(int width, int elem_bytes, int64_t elems) {
  codegen::Artifact out;
  out.kind = codegen::ArtifactKind::kCudaSource;
  out.entry = "table";
  out.bytes = fmt::format(
      "PR_KERNEL(1, 1) void table(int* PR_RESTRICT out) {{\n"
      "  for (int i = 0; i < {}; ++i) out[i] = pr_swizzled<{}, {}>(i);\n}}\n",
      elems, width, elem_bytes);
  out.params = {{"out", ir::DType::kI32, {elems}, codegen::ParamRole::kOutput}};
  codegen::Launch& launch = out.launches.emplace_back();
  launch.kernel = "table";
  launch.args = {{codegen::LaunchArgKind::kParam, 0}};
  return out;
}

codegen::Artifact waves(int64_t elems) {
  codegen::Artifact out;
  out.kind = codegen::ArtifactKind::kCudaSource;
  out.entry = "waves";
  out.bytes = fmt::format(
      "PR_KERNEL(1, 1) void waves(const float* PR_RESTRICT x, float* PR_RESTRICT s,\n"
      "    float* PR_RESTRICT c) {{\n"
      "  for (int i = 0; i < {}; ++i) {{\n    s[i] = pr_sin(x[i]);\n    c[i] = pr_cos(x[i]);\n"
      "  }}\n}}\n",
      elems);
  out.params = {{"x", ir::DType::kF32, {elems}},
                {"s", ir::DType::kF32, {elems}, codegen::ParamRole::kOutput},
                {"c", ir::DType::kF32, {elems}, codegen::ParamRole::kOutput}};
  codegen::Launch& launch = out.launches.emplace_back();
  launch.kernel = "waves";
  for (int64_t i = 0; i < 3; ++i) launch.args.push_back({codegen::LaunchArgKind::kParam, i});
  return out;
}

// Distance in units of the last place of what is wanted.
double ulps(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e9;
  const float rounded = std::fabs(static_cast<float>(want));
  const float unit = std::nextafter(rounded, std::numeric_limits<float>::infinity()) - rounded;
  return std::fabs(got - want) / unit;
}

TEST_CASE("f32 sine and cosine are within two units in the last place, whatever the argument") {
  std::vector<float> x;
  for (uint64_t bits = 0; bits >> 32 == 0; bits += 65521)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  // Where little is left of the argument, on both sides of the border to large ones.
  for (int n = 1; n < 80000; n += 7) x.push_back(static_cast<float>(n * 1.5707963267948966));
  const std::vector<std::string_view> inputs = {
      {reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)}};
  const auto outputs =
      testing::run_source_on_host(waves(static_cast<int64_t>(x.size())), inputs, {});
  if (!outputs.ok()) FAIL(outputs.error().message());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    float s = 0, c = 0;
    std::memcpy(&s, (*outputs)[0].data() + i * sizeof(float), sizeof(float));
    std::memcpy(&c, (*outputs)[1].data() + i * sizeof(float), sizeof(float));
    const double at = x[i];
    worst = std::max({worst, ulps(s, std::sin(at)), ulps(c, std::cos(at))});
    if (at == 0) CHECK(std::signbit(s) == std::signbit(x[i]));
  }
  CHECK(worst <= 2);
}

TEST_CASE("a swizzle moves pieces of 16 bytes as the hardware does, and meets no bank twice") {
  constexpr int64_t kBytes = 4096;
  for (const int width : {32, 64, 128}) {
    for (const int elem : {1, 2, 4}) {
      INFO(width << " bytes, elements of " << elem);
      const auto outputs =
          testing::run_source_on_host(swizzle_table(width, elem, kBytes / elem), {}, {});
      REQUIRE(outputs.ok());
      const auto* const at = reinterpret_cast<const int*>(outputs->front().data());
      for (int64_t i = 0; i < kBytes / elem; ++i) CHECK(at[i] * elem == swizzled(i * elem, width));
      // What ldmatrix reads at once: a piece of eight rows. Eight times 16 bytes are all banks.
      for (int64_t piece = 0; piece < width; piece += 16) {
        std::set<int64_t> banks;
        for (int64_t row = 8; row < 16; ++row)
          banks.insert(at[(row * width + piece) / elem] * elem / 16 % 8);
        CHECK(banks.size() == 8);
      }
    }
  }
}

TEST_CASE("blocks may run on several host threads") {
  const GemmCase gemm = testing::sgemm_tiled({.m = 200, .n = 190, .k = 33});
  const std::vector<std::string_view> inputs(gemm.inputs.begin(), gemm.inputs.end());
  const auto outputs = testing::run_source_on_host(gemm.artifact, inputs, {.num_threads = 3});
  REQUIRE(outputs.ok());
  CHECK(testing::error_of(gemm, outputs->front()) < kTolerance);
}

}  // namespace
}  // namespace prunerc::runtime::cuda_host
