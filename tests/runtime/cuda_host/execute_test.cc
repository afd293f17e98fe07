#include "codegen/cuda/host_object.h"
#include "runtime/cuda_host/run.h"
#include "tests/runtime/cuda_host/kernels.h"
#include "tests/support/cuda_host.h"

#include <catch2/catch.hpp>

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

TEST_CASE("blocks may run on several host threads") {
  const GemmCase gemm = testing::sgemm_tiled({.m = 200, .n = 190, .k = 33});
  const std::vector<std::string_view> inputs(gemm.inputs.begin(), gemm.inputs.end());
  const auto outputs = testing::run_source_on_host(gemm.artifact, inputs, {.num_threads = 3});
  REQUIRE(outputs.ok());
  CHECK(testing::error_of(gemm, outputs->front()) < kTolerance);
}

}  // namespace
}  // namespace prunerc::runtime::cuda_host
