// Programs for a GPU, executed on the host.
#include "tests/codegen/gpu_run.h"

#include "codegen/codegen.h"
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
  const ir::Target target = gpu_target();
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
      {.order = ThreadOrder::kRandom, .mode = AsyncMode::kLateMma, .seed = 3},
  };
  for (const GpuProgram& p : gpu_programs()) {
    if (p.name.substr(0, 10) == "row_argmax") continue;  // gpu_lower_test.cc
    CAPTURE(p.name);
    const std::string difference = compare_on_host(p.base, p.scheduled, target, 1, orders);
    INFO(difference);
    CHECK(difference.empty());
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
