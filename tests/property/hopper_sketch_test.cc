// Sketches with wgmma, executed on the host: every kind of product, each with the next sketch.
#include "ir/printer.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/half_products.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

using runtime::cuda_host::AsyncMode;
using runtime::cuda_host::ExecutionOptions;
using runtime::cuda_host::ThreadOrder;

std::vector<int> wgmma_sketches(const search::SearchSpace& space) {
  std::vector<int> out;
  for (std::size_t i = 0; i < space.sketches.size(); ++i) {
    if (space.sketches[i].name.find("wgmma") != std::string::npos)
      out.push_back(static_cast<int>(i));
  }
  return out;
}

TEST_CASE("sketches with wgmma run on the host and give the interpreter's results", "[gpu]") {
  const ir::Target target = gpu_target("cuda-host:sm_90a");
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
      {.order = ThreadOrder::kRandom, .mode = AsyncMode::kLateMma, .seed = 3},
  };
  Rng rng(7);
  std::size_t turn = 0;
  for (const NamedProgram& op : half_products()) {
    const search::Task task = search::make_task(op.name, op.program, target);
    const Result<search::SearchSpace> space = search::make_space(task);
    REQUIRE_OK(space);
    const std::vector<int> sketches = wgmma_sketches(*space);
    INFO(op.name);
    REQUIRE(sketches.size() >= 6);
    const int sketch = sketches[turn++ % sketches.size()];
    INFO(space->sketches[static_cast<std::size_t>(sketch)].name);
    // Some decisions are no programs: a tile of a block that reads beside what it computed.
    Result<search::Candidate> made = search::instantiate(task, *space, sketch, {});
    for (int attempt = 0; attempt < 4; ++attempt) {
      Result<search::Candidate> other = search::instantiate(
          task, *space, sketch, search::random_genome(*space, sketch, rng).decisions);
      if (other.ok()) made = std::move(other);
    }
    REQUIRE_OK(made);
    INFO(ir::print(made->program));
    CHECK(compare_on_host(op.program, made->program, target, 1, orders) == "");
  }
}

TEST_CASE("no other target is offered wgmma", "[gpu]") {
  const NamedProgram op = half_products().front();
  for (const char* name : {"cuda-host:sm_80", "cuda:sm_89"}) {
    const Result<search::SearchSpace> space =
        search::make_space(search::make_task(op.name, op.program, gpu_target(name)));
    REQUIRE_OK(space);
    CHECK(wgmma_sketches(*space).empty());
  }
}

}  // namespace
}  // namespace prunerc::testing
