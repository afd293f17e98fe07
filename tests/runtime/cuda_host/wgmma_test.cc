// wgmma on every layout of its operands that TMA can make: the two agree on swizzles and on where
// descriptors point. Whether silicon does too is what silicon_test asks.
#include "codegen/cuda/nvrtc.h"
#include "runtime/cuda_host/options.h"
#include "tests/runtime/cuda_host/kernels.h"
#include "tests/runtime/cuda_host/products.h"
#include "tests/runtime/cuda_host/windows.h"
#include "tests/support/cuda_host.h"

#include <catch2/catch.hpp>

namespace prunerc::runtime::cuda_host {
namespace {

using codegen::Artifact;
using testing::make_operand;
using testing::make_product;
using testing::Operand;
using testing::Product;

TEST_CASE("wgmma multiplies operands of every type, swizzle, order and width") {
  for (const Product& p : testing::all_products()) {
    INFO(p.type << " n " << p.n << " k " << p.k << " swizzle " << p.swizzle << " K-major "
                << p.a_k_major << p.b_k_major);
    const Operand a = make_operand(p, 64, p.a_k_major, 1);
    const Operand b = make_operand(p, p.n, p.b_k_major, 2);
    const std::vector<std::string_view> inputs{a.bytes, b.bytes};
    const auto out =
        testing::run_source_on_host(make_product(p), inputs, {.mode = AsyncMode::kLazy});
    if (!out.ok()) FAIL(out.error().message());
    CHECK(testing::decode_result(p, out->front()) == testing::multiply(p, a, b));
  }
}

TEST_CASE("what runs on the host here compiles for a GPU") {
  if (const auto nvrtc = codegen::nvrtc_info(); !nvrtc.ok()) {
    WARN("skipped: " << nvrtc.error().message());
    return;
  }
  std::vector<Artifact> artifacts = {testing::sgemm_tiled({.m = 70, .n = 100, .k = 37}).artifact,
                                     testing::hgemm_mma({.m = 100, .n = 128, .k = 224}).artifact,
                                     testing::hgemm_tma({.m = 200, .n = 136, .k = 584}, 2).artifact,
                                     testing::window_copy({})};
  for (const Product& p : testing::all_products()) artifacts.push_back(make_product(p));
  for (const Artifact& artifact : artifacts) {
    const Result<codegen::Cubin> cubin = codegen::compile_cubin(artifact.bytes, artifact.cpu, {});
    if (!cubin.ok()) FAIL(cubin.error().message());
    CHECK(!cubin->serializes_wgmma);
    CHECK(cubin->info.kernels.front().stack_bytes == 0);
  }
}

TEST_CASE("wgmma refuses what the hardware does not have") {
  const auto fault_of = [](const std::string& from, const std::string& to) {
    Artifact artifact = make_product({.n = 32});
    const size_t at = artifact.bytes.find(from);
    REQUIRE(at != std::string::npos);
    artifact.bytes.replace(at, from.size(), to);
    const std::string a(64 * 64 * 2, '\0'), b(32 * 64 * 2, '\0');
    const std::vector<std::string_view> inputs{a, b};
    const auto out = testing::run_source_on_host(artifact, inputs, {});
    return out.ok() ? std::string() : out.error().message();
  };
  // Integers are not transposed.
  CHECK(fault_of("pr_wgmma<32, pr_f16, 0, 0>", "pr_wgmma<32, pr_tf32, 0, 1>")
            .find("16-bit operands only") != std::string::npos);
  CHECK(fault_of("pr_wgmma_desc(bs + 0,", "pr_wgmma_desc(bs + 65536,")
            .find("outside of shared memory") != std::string::npos);
  CHECK(fault_of("pr_wgmma_desc(bs + 0,", "pr_wgmma_desc(bs + (t == 5 ? 32 : 0),")
            .find("bring different wgmma") != std::string::npos);
  CHECK(fault_of("pr_tma_load_2d(smem + 0,", "pr_tma_load_2d(smem + 128,")
            .find("not aligned as its swizzle requires") != std::string::npos);
}

}  // namespace
}  // namespace prunerc::runtime::cuda_host
