#include "codegen/cuda/nvrtc.h"

#include "ir/support/rng.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

namespace prunerc::codegen {
namespace {

/// Ends the case, saying why, where NVRTC is not installed.
#define NEEDS_NVRTC()                                 \
  if (const auto nvrtc = nvrtc_info(); !nvrtc.ok()) { \
    WARN("skipped: " << nvrtc.error().message());     \
    return;                                           \
  }

constexpr const char* kArchs[] = {"sm_80", "sm_89", "sm_90a"};

/// Two kernels; the launch bounds of the second, 64 registers a thread, make it spill.
const std::string kTwoKernels = R"(
PR_KERNEL(128, 1) void add(const float* PR_RESTRICT p0, float* PR_RESTRICT p1) {
  const int i = pr_block_x() * 128 + pr_thread_x();
  p1[i] = p0[i] + 1.0f;
}
PR_KERNEL(1024, 1) void spill(const float* p0, float* p1) {
  float v[100];
  for (int i = 0; i < 100; ++i) v[i] = p0[i * 1024 + pr_thread_x()];
  pr_sync();
  const float x = p1[pr_thread_x()];
  for (int i = 0; i < 100; ++i) p1[i * 1024 + pr_thread_x()] = v[i] * x;
}
)";

/// Uses every wrapper, so that a wrong instruction in the prelude is found.
const std::string kAllWrappers = R"(
PR_KERNEL(128, 1) void all(const float* PR_RESTRICT p0, float* PR_RESTRICT p1) {
  PR_SHARED(smem, 4096);
  const int t = pr_thread_x() + pr_thread_y() + pr_thread_z() + pr_block_y() + pr_block_z();
  float x = p0[t];
  pr_sync_warp();
  pr_bar_arrive(1, 128);
  pr_bar_sync(1, 128);
  x += pr_shfl_down(x, 1) + pr_shfl_xor(x, 2) + pr_shfl(x, 3);
  x += pr_shfl_down((double)x, 1) + pr_shfl_xor((pr_i64)x, 2) + pr_shfl(x > 1, 3);
  x += pr_to_f32(pr_shfl_xor(pr_to_f16(x), 4)) + pr_to_f32(pr_shfl(pr_to_bf16(x), 4));
  x += pr_shfl((signed char)x, 1) + pr_shfl((unsigned char)x, 1);
  float v[4];
  pr_load<16>(v, p0 + 4 * t);
  pr_store<16>(p1 + 4 * t, v);
  pr_copy<2>(smem, p0);
  pr_copy<4>(smem, p0);
  pr_copy<8>(smem, p0);
  pr_copy<16>(smem, p0);
  pr_cp_async<4>(smem, p0);
  pr_cp_async<8>(smem, p0);
  pr_cp_async<16>(smem, p0);
  pr_cp_async_zfill<4>(smem, p0, x > 0);
  pr_cp_async_zfill<16>(smem, p0, x > 0);
  pr_cp_async_commit();
  pr_cp_async_wait<1>();
  unsigned r1[1], r2[2], r4[4];
  pr_ldmatrix_x1(r1, smem + 16 * t);
  pr_ldmatrix_x2(r2, smem + 16 * t);
  pr_ldmatrix_x4(r4, smem + 16 * t);
  pr_ldmatrix_x1_trans(r1, smem + 16 * t);
  pr_ldmatrix_x2_trans(r2, smem + 16 * t);
  pr_ldmatrix_x4_trans(r4, smem + 16 * t);
  pr_ldmatrix_x4(r4, smem + 16 * t, 64, 1024);
  r4[0] = pr_pack(pr_to_f16(x), pr_to_f16(x)) + pr_pack(pr_to_bf16(x), pr_to_bf16(x)) + pr_to_tf32(x);
  int n[4] = {1, 2, 3, 4};
  pr_mma_m16n8k16_f16(v, r4, r2);
  pr_mma_m16n8k16_bf16(v, r4, r2);
  pr_mma_m16n8k8_tf32(v, r4, r2);
  pr_mma_m16n8k32_s8(n, r4, r2);
  pr_transpose_4x4(r4);
  unsigned a8[8], b8[8], a4[4], b4[4], a2[2], b2[2];
  float d[8];
  int e[8];
  for (int i = 0; i < 8; ++i) d[i] = 0.0f, e[i] = 0;
  pr_wmma_load_a(a8, (const pr_f16*)smem, 16);
  pr_wmma_load_b(b8, (const pr_f16*)smem, 16);
  pr_wmma_mma<pr_f16>(d, a8, b8);
  pr_wmma_load_a(a4, (const pr_bf16*)smem, 16);
  pr_wmma_load_b_col(b4, (const pr_bf16*)smem, 16);
  pr_wmma_mma_col<pr_bf16>(d, a4, b4);
  pr_wmma_load_a(a2, (const signed char*)smem, 16);
  pr_wmma_load_b(b2, (const signed char*)smem, 16);
  pr_wmma_mma<signed char>(e, a2, b2);
  pr_wmma_store(p1, d, 16);
  pr_wmma_store((int*)p1, e, 16);
  const double y = x;
  x += pr_exp(x) + pr_log(x) + pr_sqrt(x) + pr_rsqrt(x) + pr_tanh(x) + pr_erf(x) + pr_sigmoid(x);
  x += pr_sin(x) + pr_cos(x) + pr_floor(x) + pr_ceil(x) + pr_round(x) + pr_pow(x, x) + pr_abs(x);
  x += pr_sin(y) + pr_cos(y) + pr_exp(y) + pr_sigmoid(y) + pr_pow(y, y) + pr_fma(y, y, y) + pr_fma(x, x, x) + pr_abs(n[0]);
  x += pr_fma_f16(x, x, x) + pr_fma_bf16(x, x, x);
  x += pr_min(x, 1.0f) + pr_max(n[0], n[1]) + pr_floordiv(n[0], n[1]) + pr_floormod((pr_i64)n[2], (pr_i64)n[3]);
  x += pr_odd(y) + pr_f2i<int>(x) + pr_f2i<signed char>(x) + pr_f2i<unsigned char>(y) + pr_f2i<pr_i64>(y);
  p1[t] = x + v[0] + n[0] + r1[0] + r2[0] + pr_block_x();
}
)";

std::string wgmma_kernel(int n, const std::string& type, const std::string& acc,
                         const std::string& trans) {
  return fmt::format(R"(
PR_KERNEL(128, 1) void product(const PR_GRID_CONSTANT pr_tensor_map m, {2}* PR_RESTRICT p1) {{
  PR_SHARED(smem, 65536);
  pr_u64* const bar = (pr_u64*)(smem + 65000 / 8 * 8);
  if (pr_thread_x() == 0) {{
    pr_mbar_init(bar, 1);
    pr_fence_mbar_init();
    pr_mbar_expect_tx(bar, 8192);
    pr_tma_load_2d(smem, &m, 0, 0, bar);
  }}
  pr_sync();
  pr_mbar_wait(bar, 0);
  {2} d[{0} / 2];
  pr_wgmma_fence();
  pr_wgmma<{0}, {1}{3}>(d, pr_wgmma_desc(smem, 16, 1024, 128), pr_wgmma_desc(smem, 16, 1024, 128), 0);
  pr_wgmma_commit();
  pr_wgmma_wait<0>();
  for (int i = 0; i < {0} / 2; ++i) p1[i * 128 + pr_thread_x()] = d[i];
}}
)",
                     n, type, acc, trans);
}

void check_compiles(const std::string& text, const char* arch) {
  const Result<Cubin> cubin = compile_cubin(text, arch, {});
  if (!cubin.ok()) FAIL(arch << ": " << cubin.error().message());
  CHECK(!cubin->serializes_wgmma);
}

TEST_CASE("f32 sine and cosine keep no array in a thread's memory") {
  NEEDS_NVRTC();
  const std::string text = R"(
PR_KERNEL(128, 1) void waves(const float* PR_RESTRICT p0, float* PR_RESTRICT p1) {
  const int i = pr_block_x() * 128 + pr_thread_x();
  p1[i] = pr_sin(p0[i]) + pr_cos(2.0f * p0[i]);
}
)";
  for (const char* arch : kArchs) {
    const Result<Cubin> cubin = compile_cubin(text, arch, {});
    if (!cubin.ok()) FAIL(arch << ": " << cubin.error().message());
    CHECK(cubin->info.kernels.front().stack_bytes == 0);
  }
}

TEST_CASE("every wrapper of the device prelude compiles for every architecture") {
  NEEDS_NVRTC();
  for (const char* arch : kArchs) check_compiles(kAllWrappers, arch);
}

TEST_CASE("wgmma compiles in every type, at small, odd and large widths") {
  NEEDS_NVRTC();
  for (const int n : {8, 24, 136, 256}) {
    check_compiles(wgmma_kernel(n, "pr_f16", "float", ""), "sm_90a");
    check_compiles(wgmma_kernel(n, "pr_bf16", "float", ", 0, 1"), "sm_90a");
    check_compiles(wgmma_kernel(n, "pr_tf32", "float", ""), "sm_90a");
  }
  // Integers have fewer widths.
  for (const int n : {8, 32, 96, 256})
    check_compiles(wgmma_kernel(n, "signed char", "int", ""), "sm_90a");
}

TEST_CASE("resources in the cubin are those of the compiler's log") {
  NEEDS_NVRTC();
  for (const char* arch : kArchs) {
    INFO(arch);
    const Result<Cubin> cubin = compile_cubin(kTwoKernels, arch, {});
    REQUIRE(cubin.ok());
    CHECK(cubin->info.arch == std::atoi(arch + 3));
    REQUIRE(cubin->info.kernels.size() == 2);
    REQUIRE(cubin->spills.size() == 2);
    for (const KernelResources& kernel : cubin->info.kernels) {
      const bool is_first = cubin->spills[0].kernel == kernel.kernel;
      const SpillInfo& said = cubin->spills[is_first ? 0 : 1];
      CHECK(said.kernel == kernel.kernel);
      CHECK(said.registers == kernel.registers);
      CHECK(said.stack_bytes == kernel.stack_bytes);
      CHECK(kernel.param_bytes == 16);
      CHECK(kernel.code_bytes > 0);
      CHECK((said.spill_store_bytes > 0) == (kernel.kernel == "spill"));
      CHECK(kernel.max_threads[0] == (kernel.kernel == "spill" ? 1024 : 128));
    }
  }
}

TEST_CASE("a wgmma whose accumulator is touched too early is seen to be serialized") {
  NEEDS_NVRTC();
  std::string text = wgmma_kernel(64, "pr_f16", "float", "");
  const std::string commit = "  pr_wgmma_commit();\n";
  text.insert(text.find(commit) + commit.size(), R"(
  for (int k = 0; k < 8; ++k) {
    d[0] += 1.0f;
    pr_wgmma_fence();
    pr_wgmma<64, pr_f16>(d, pr_wgmma_desc(smem, 16, 1024, 128),
                         pr_wgmma_desc(smem + 32 * k, 16, 1024, 128), 1);
    pr_wgmma_commit();
  }
)");
  const Result<Cubin> cubin = compile_cubin(text, "sm_90a", {});
  REQUIRE(cubin.ok());
  CHECK(cubin->serializes_wgmma);
}

TEST_CASE("text that is not CUDA C is rejected with the compiler's message and the kernel's line") {
  NEEDS_NVRTC();
  const Result<Cubin> cubin = compile_cubin("\nint x = y;", "sm_80", {});
  REQUIRE(!cubin.ok());
  CHECK(cubin.error().id() == Diag::kNvrtcRejected);
  CHECK(cubin.error().message().find("kernel.cu(2)") != std::string::npos);
}

TEST_CASE("wgmma does not exist before sm_90a, and an unknown architecture is an error") {
  NEEDS_NVRTC();
  const std::string text = wgmma_kernel(64, "pr_f16", "float", "");
  CHECK(compile_cubin(text, "sm_80", {}).error().id() == Diag::kNvrtcRejected);
  CHECK(compile_cubin(kTwoKernels, "sm_1", {}).error().id() == Diag::kNvrtcRejected);
  CHECK(compile_ptx("int x = y;", "sm_80").error().id() == Diag::kNvrtcRejected);
}

TEST_CASE("PTX is made for the virtual architecture") {
  NEEDS_NVRTC();
  const Result<std::string> ptx = compile_ptx(kTwoKernels, "sm_90a");
  REQUIRE(ptx.ok());
  CHECK(ptx->find(".target sm_90a") != std::string::npos);
  CHECK(ptx->find(".entry add") != std::string::npos);
}

TEST_CASE("products and sums round as they are written, but where the text says fma") {
  NEEDS_NVRTC();
  const auto ptx = [](const char* value) {
    return compile_ptx(
               std::string("extern \"C\" __global__ void f(float* y, float a, float b, float c)"
                           " { *y = ") +
                   value + "; }",
               "sm_80")
        .value();
  };
  CHECK(ptx("a * b - c * c").find("fma") == std::string::npos);
  CHECK(ptx("__fmaf_rn(a, b, c)").find("fma") != std::string::npos);
}

TEST_CASE("a cached cubin is used, and one that is damaged is made again") {
  NEEDS_NVRTC();
  const std::string folder = std::filesystem::temp_directory_path() / "prunerc-nvrtc-test";
  std::filesystem::remove_all(folder);
  const Result<Cubin> first = compile_cubin(kTwoKernels, "sm_80", {.cache_folder = folder});
  REQUIRE(first.ok());
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  const auto written = std::filesystem::last_write_time(files[0]);
  const Result<Cubin> second = compile_cubin(kTwoKernels, "sm_80", {.cache_folder = folder});
  REQUIRE(second.ok());
  CHECK(*first == *second);
  CHECK(std::filesystem::last_write_time(files[0]) == written);
  std::filesystem::resize_file(files[0], std::filesystem::file_size(files[0]) - 1);
  const Result<Cubin> third = compile_cubin(kTwoKernels, "sm_80", {.cache_folder = folder});
  REQUIRE(third.ok());
  CHECK(third->info == first->info);
  CHECK(std::filesystem::file_size(files[0]) > 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("several threads may compile at a time") {
  NEEDS_NVRTC();
  std::vector<std::string> cubins(4);
  std::vector<std::thread> threads;
  for (std::string& bytes : cubins) {
    threads.emplace_back([&bytes] {
      const Result<Cubin> cubin = compile_cubin(kTwoKernels, "sm_80", {});
      if (cubin.ok()) bytes = cubin->bytes;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& bytes : cubins) CHECK(!bytes.empty());
}

TEST_CASE("damaged and truncated cubins are read or refused, never a crash") {
  NEEDS_NVRTC();
  const Result<Cubin> cubin = compile_cubin(kTwoKernels, "sm_90a", {});
  REQUIRE(cubin.ok());
  const std::string& bytes = cubin->bytes;
  Rng rng(3);
  for (int i = 0; i < 3000; ++i) {
    const size_t size = rng.below(bytes.size());
    const auto cut = read_cubin(std::string_view(bytes).substr(0, size));
    if (!cut.ok()) REQUIRE(cut.error().id() == Diag::kCubinMalformed);
    std::string damaged = bytes;
    for (uint64_t flips = 1 + rng.below(4); flips > 0; --flips)
      damaged[rng.below(damaged.size())] ^= static_cast<char>(1 << rng.below(8));
    // Most of a cubin is code: aim at the header and the tables as well.
    damaged[rng.below(64)] ^= static_cast<char>(rng.below(3));
    const auto read = read_cubin(damaged);
    if (!read.ok()) REQUIRE(read.error().id() == Diag::kCubinMalformed);
  }
  CHECK(read_cubin("").error().id() == Diag::kCubinMalformed);
  CHECK(read_cubin("\x7f"
                   "ELF")
            .error()
            .id() == Diag::kCubinMalformed);
}

}  // namespace
}  // namespace prunerc::codegen
