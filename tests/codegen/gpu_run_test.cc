// Programs for a GPU, executed on the host.
#include "tests/codegen/gpu_run.h"

#include "codegen/codegen.h"
#include "ir/parser.h"
#include "schedule/schedule.h"
#include "tests/support/check.h"
#include "tests/support/gpu_bugs.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

using runtime::cuda_host::AsyncMode;
using runtime::cuda_host::ExecutionOptions;
using runtime::cuda_host::ThreadOrder;

TEST_CASE("hand-written GPU schedules run on the host", "[gpu]") {
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
      {.order = ThreadOrder::kRandom, .mode = AsyncMode::kLateMma, .seed = 3},
  };
  for (const GpuProgram& p : gpu_programs()) {
    CAPTURE(p.name);
    const std::string difference =
        compare_on_host(p.base, p.scheduled, gpu_target("cuda-host:" + p.arch), 1, orders);
    INFO(difference);
    CHECK(difference.empty());
  }
}

TEST_CASE("a pipeline may be deeper than its loop is long", "[gpu]") {
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
  };
  for (const int64_t iterations : {1, 2, 3}) {
    const std::string k = std::to_string(iterations * 32);
    const Result<ir::Program> base = ir::parse(
        "program p(A: f16[128, " + k + "], B: f16[" + k + ", 128]) -> (C: f32[128, 128]) {" +
        " for i in 128 @L0 { for j in 128 @L1 { for k in " + k +
        " @L2 { block \"C\" @B0 [vi: S(128) = i, vj: S(128) = j, vk: R(" + k +
        ") = k] { init { C[vi, vj] = 0f32 }" +
        " C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[vk, vj]) } } } } }");
    REQUIRE_OK(base);
    const Result<schedule::Schedule> done =
        schedule::replay(*base, gpu_trace("matmul_cp_async"), {});
    REQUIRE_OK(done);
    CAPTURE(iterations);
    CHECK(compare_on_host(*base, done->program(), gpu_target(), 1, orders) == "");
  }
}

// The races themselves are for `./dev bench gpu_host`, whose checkers are processes of their own;
// what the orders alone show is shown here.
TEST_CASE("bugs planted in a pipeline give wrong values in some order", "[gpu]") {
  const ir::Target target = gpu_target();
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kLazy},
  };
  for (const GpuProgram& p : gpu_programs()) {
    if (p.name != "matmul_cp_async") continue;
    const Result<ir::Program> lowered = codegen::lower_gpu(p.scheduled, target);
    REQUIRE_OK(lowered);
    for (const GpuBug bug :
         {GpuBug::kLostBarrier, GpuBug::kWeakWait, GpuBug::kWrongStage, GpuBug::kShortFetch}) {
      const int num_sites = count_sites(*lowered, bug);
      CAPTURE(to_string(bug));
      CHECK(num_sites > 0);
      for (int site = 0; site < num_sites; ++site) {
        CAPTURE(site);
        CHECK_FALSE(
            compare_lowered_on_host(p.base, plant(*lowered, bug, site), target, 1, orders).empty());
      }
    }
  }
}

}  // namespace
}  // namespace prunerc::testing
