// What kernels ask of a GPU, and what it refuses.
#include "schedule/legality/gpu_limits.h"

#include "schedule/schedule.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

using schedule::GpuNeeds;
using schedule::Schedule;

ir::Target hopper() { return *ir::target_from_string("cuda:sm_90a"); }

std::vector<GpuNeeds> needs_of(std::string_view program, std::string_view steps) {
  Schedule s(parse_or_die(program));
  REQUIRE_OK(apply_steps(s, steps));
  const Result<std::vector<GpuNeeds>> needs = schedule::gpu_needs(s.program());
  REQUIRE_OK(needs);
  return *needs;
}

TEST_CASE("hand-written GPU schedules fit every architecture") {
  for (const GpuProgram& one : gpu_programs()) {
    INFO(one.name);
    for (const char* name : {"cuda:sm_80", "cuda:sm_89", "cuda-host:sm_90a"}) {
      if (one.arch == "sm_90a" && std::string_view(name) != "cuda-host:sm_90a") continue;
      REQUIRE_OK(schedule::check_gpu_limits(one.scheduled, *ir::target_from_string(name)));
    }
  }
}

TEST_CASE("grid, threads, shared memory and registers are read off the program") {
  for (const GpuProgram& one : gpu_programs()) {
    if (one.name != "matmul") continue;
    const Result<std::vector<GpuNeeds>> all = schedule::gpu_needs(one.scheduled);
    REQUIRE_OK(all);
    REQUIRE(all->size() == 1);
    const GpuNeeds& needs = (*all)[0];
    CHECK(needs.threads() == 64);
    CHECK(needs.vthreads == 2);
    // 64 x 8 elements of A, whose rows are 8 beyond a multiple of 32 already, and 8 x 64 of B.
    CHECK(needs.smem_bytes == 4 * (64 * 8 + 8 * 64));
    // 2 x (2 x 2) x (2 x 4) sums.
    CHECK(needs.registers == 16 + 64);
  }
}

TEST_CASE("lanes of a warpgroup are thread.x, or rows of it that thread.y counts") {
  for (const GpuProgram& one : gpu_programs()) {
    const bool in_rows = one.name == "matmul_wgmma_rows";
    if (!in_rows && one.name != "matmul_wgmma") continue;
    INFO(one.name);
    const Result<std::vector<GpuNeeds>> all = schedule::gpu_needs(one.scheduled);
    REQUIRE_OK(all);
    REQUIRE(all->size() == 1);
    CHECK((*all)[0].block[0] == (in_rows ? 32 : 128));
    CHECK((*all)[0].threads() == 256);
  }
}

constexpr std::string_view kTiled =
    "split(@L0, [4, 4])\nsplit(@L1, [2, 8])\nreorder([@L3, @L5, @L2, @L4, @L6])\n"
    "cache_read(@B0, 0, \"shared\")\ncompute_at(@B1, @L5)\n"
    "bind(@L3, \"block.y\")\nbind(@L5, \"block.x\")\n";

TEST_CASE("copies and alignment take room") {
  // A tile of four rows of 32.
  CHECK(needs_of(kMatmul, kTiled)[0].smem_bytes == 4 * 4 * 32);
  CHECK(needs_of(kMatmul, std::string(kTiled) + "storage_align(@B1, 0, 0, 32, 4)")[0].smem_bytes ==
        4 * 4 * 36);
  CHECK(needs_of(kMatmul, std::string(kTiled) + "double_buffer(@B1, 0)")[0].smem_bytes ==
        2 * 4 * 4 * 32);
  CHECK(needs_of(kMatmul, kTiled)[0].grid == std::array<int64_t, 3>{2, 4, 1});
}

TEST_CASE("what begins anew in a pipeline takes its stages, what lies outside of it does not") {
  const std::string piped = std::string(kTiled) +
                            "cache_read(@B0, 1, \"shared\")\ncompute_at(@B2, @L2)\n"
                            "software_pipeline(@L2, [0, 2], [0, 1])";
  // Four rows of 32 once, and three times a row of 8.
  CHECK(needs_of(kMatmul, piped)[0].smem_bytes == 4 * 4 * 32 + 3 * 4 * 8);
}

constexpr std::string_view kWide = R"(
program wide(X: f32[4096, 64]) -> (Y: f32[4096, 64]) {
  buffer T: f32[4096, 64] shared
  for i in 4096 @L0 { for j in 64 @L1 { block "T" @B0 [v: S(4096) = i, w: S(64) = j] { T[v, w] = X[v, w] } } }
  for i in 4096 @L2 { for j in 64 @L3 { block "Y" @B1 [v: S(4096) = i, w: S(64) = j] { Y[v, w] = T[v, w] } } }
})";

TEST_CASE("attributes of a text that no primitive sets count for nothing") {
  const std::string body = "{ T[v, w] = X[v, w] }";
  for (const char* attrs : {"", "{align_factor_0_0 = 0, align_offset_0_0 = 0}",
                            "{align_factor_0_0 = 8, align_offset_0_0 = -3}",
                            "{align_factor_0_0 = 9223372036854775807}", "{swizzle_0 = 0}"}) {
    std::string text(kWide);
    text.insert(text.find(body), attrs);
    INFO(text);
    CHECK(needs_of(text, "split(@L2, [2, 2048])\ncompute_at(@B0, @L4)\nbind(@L4, \"block.x\")")[0]
              .smem_bytes == 2048 * 64 * 4);
  }
}

void check_limit(std::string_view program, std::string_view steps, const ir::Target& target,
                 std::string_view what) {
  Schedule s(parse_or_die(program));
  REQUIRE_OK(apply_steps(s, steps));
  const Result<void> fits = schedule::check_gpu_limits(s.program(), target);
  CHECK_DIAG(fits, GpuLimit);
  if (!fits) {
    INFO(fits.error().message());
    CHECK(fits.error().message().find(what) != std::string::npos);
  }
}

TEST_CASE("what does not fit is refused with numbers") {
  const ir::Target target = hopper();
  check_limit(kWide, "compute_inline(@B0)\nbind(@L2, \"thread.x\")", target,
              "needs 4096 threads of a block along x, the target has 1024");
  check_limit(kWide,
              "compute_inline(@B0)\nsplit(@L2, [-1, 64])\nbind(@L5, \"thread.y\")\n"
              "bind(@L3, \"thread.x\")\nbind(@L4, \"block.x\")",
              target, "needs 4096 threads of a block, the target has 1024");
  check_limit(kWide, "compute_inline(@B0)\nsplit(@L2, [-1, 128])\nbind(@L5, \"thread.z\")", target,
              "128 threads of a block along z");
  check_limit(kWide, "compute_inline(@B0)\nsplit(@L2, [-1, 128])\nbind(@L5, \"vthread.x\")", target,
              "128 virtual threads");
  check_limit(kWide, "split(@L2, [2, 2048])\ncompute_at(@B0, @L4)\nbind(@L4, \"block.x\")", target,
              "needs 524288 bytes of shared memory, the target has 232448");
  check_limit(kWide,
              "set_scope(@B0, 0, \"local\")\nsplit(@L2, [-1, 8])\ncompute_at(@B0, @L4)\n"
              "bind(@L4, \"block.x\")",
              target, "528 registers of a thread");
  ir::Target few = target;
  few.registers_per_sm = 512;
  check_limit(kWide, "compute_inline(@B0)\nbind(@L3, \"thread.x\")\nbind(@L2, \"block.x\")", few,
              "1024 registers of a block, the target has 512");
  check_limit(kWide, "compute_inline(@B0)\nsplit(@L2, [-1, 8])", target,
              "statements outside of kernels");
  REQUIRE_OK(schedule::check_gpu_limits(parse_or_die(kWide), *ir::target_from_string("cpu")));
}

}  // namespace
}  // namespace prunerc::testing
