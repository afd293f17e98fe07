// Known answers on a GPU: swizzles and descriptors of wgmma in every layout, and the hand-written
// kernels. What the host takes for granted is shown here or not at all.
#include "tests/runtime/cuda_host/kernels.h"
#include "tests/runtime/cuda_host/products.h"
#include "tests/runtime/cuda_host/windows.h"
#include "tests/support/gpu.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

using runtime::JobOutcome;

/// Tensor cores truncate where the host rounds.
constexpr double kTolerance = 1e-3;

#define NEEDS_GPU()                                         \
  if (const std::string why = why_no_gpu(); !why.empty()) { \
    WARN("skipped: " << why);                               \
    return;                                                 \
  }

TEST_CASE("wgmma on silicon reads every layout as the host does") {
  NEEDS_GPU();
  for (const Product& p : all_products()) {
    INFO(p.type << " n " << p.n << " k " << p.k << " swizzle " << p.swizzle << " K-major "
                << p.a_k_major << p.b_k_major);
    const Operand a = make_operand(p, 64, p.a_k_major, 1);
    const Operand b = make_operand(p, p.n, p.b_k_major, 2);
    const std::vector<std::string_view> inputs{a.bytes, b.bytes};
    const JobOutcome outcome = check_source_on_gpu(make_product(p), inputs);
    INFO(outcome.measurement.detail);
    REQUIRE(outcome.measurement.status == MeasureStatus::kOk);
    CHECK(decode_result(p, outcome.outputs.front()) == multiply(p, a, b));
  }
}

TEST_CASE("TMA on silicon brings windows as the host does") {
  NEEDS_GPU();
  for (const Windows& w : all_windows()) {
    const codegen::Artifact artifact = window_copy(w);
    const std::string input = window_input(w);
    const std::vector<std::string_view> inputs{input};
    const JobOutcome outcome = check_source_on_gpu(artifact, inputs);
    INFO(artifact.bytes << outcome.measurement.detail);
    REQUIRE(outcome.measurement.status == MeasureStatus::kOk);
    CHECK(outcome.outputs.front() == window_output(w));
  }
}

TEST_CASE("the hand-written kernels give their products on silicon") {
  NEEDS_GPU();
  for (const GemmCase& gemm :
       {sgemm_tiled({.m = 70, .n = 100, .k = 37}), hgemm_mma({.m = 100, .n = 128, .k = 224}),
        row_sums({.m = 5, .n = 1, .k = 3001}), hgemm_tma({.m = 200, .n = 136, .k = 584}, 2)}) {
    const std::vector<std::string_view> inputs(gemm.inputs.begin(), gemm.inputs.end());
    const JobOutcome outcome = check_source_on_gpu(gemm.artifact, inputs);
    INFO(outcome.measurement.detail);
    REQUIRE(outcome.measurement.status == MeasureStatus::kOk);
    CHECK(error_of(gemm, outcome.outputs.front()) < kTolerance);
  }
}

}  // namespace
}  // namespace prunerc::testing
