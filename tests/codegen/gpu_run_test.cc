// Programs for a GPU, executed on the host.
#include "tests/codegen/gpu_run.h"

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

}  // namespace
}  // namespace prunerc::testing
