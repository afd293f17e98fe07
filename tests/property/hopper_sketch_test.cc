// Sketches with wgmma, executed on the host: every kind of product, each with the next sketch.
#include "ir/parser.h"
#include "ir/printer.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/half_products.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <string>
#include <vector>

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

// Sketch number `turn` of those with wgmma, in three orders.
void check_sketch(const NamedProgram& op, std::size_t turn, Rng* rng) {
  const ir::Target target = gpu_target("cuda-host:sm_90a");
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
      {.order = ThreadOrder::kRandom, .mode = AsyncMode::kLateMma, .seed = 3},
  };
  const search::Task task = search::make_task(op.name, op.program, target);
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  const std::vector<int> sketches = wgmma_sketches(*space);
  INFO(op.name);
  REQUIRE(sketches.size() >= 6);
  const int sketch = sketches[turn % sketches.size()];
  INFO(space->sketches[static_cast<std::size_t>(sketch)].name);
  // Some decisions are no programs: a tile of a block that reads beside what it computed.
  Result<search::Candidate> made = search::instantiate(task, *space, sketch, {});
  for (int attempt = 0; attempt < 4; ++attempt) {
    Result<search::Candidate> other = search::instantiate(
        task, *space, sketch, search::random_genome(*space, sketch, *rng).decisions);
    if (other.ok()) made = std::move(other);
  }
  REQUIRE_OK(made);
  INFO(ir::print(made->program));
  CHECK(compare_on_host(op.program, made->program, target, 1, orders) == "");
}

TEST_CASE("sketches with wgmma run on the host and give the interpreter's results", "[gpu]") {
  Rng rng(7);
  std::size_t turn = 0;
  for (const NamedProgram& op : half_products()) check_sketch(op, turn++, &rng);
}

NamedProgram bytes_product(int m, int n, int k, const char* b_shape, const char* b_at) {
  const std::string text = fmt::format(
      "program p(A: i8[{0}, {2}], B: i8[{3}]) -> (C: i32[{0}, {1}]) {{\n"
      "  for i in {0} {{ for j in {1} {{ for k in {2} {{\n"
      "    block \"C\" [vi: S({0}) = i, vj: S({1}) = j, vk: R({2}) = k] {{\n"
      "      init {{ C[vi, vj] = 0i32 }}\n"
      "      C[vi, vj] = C[vi, vj] + i32(A[vi, vk])*i32(B[{4}])\n"
      "  }} }} }} }}\n}}\n",
      m, n, k, b_shape, b_at);
  return {"bytes", parse_or_die(text)};
}

TEST_CASE("bytes are multiplied by wgmma where the rows of both run along the sum", "[gpu]") {
  Rng rng(11);
  const int shapes[][3] = {{128, 64, 256}, {97, 72, 208}, {64, 256, 131}, {1, 128, 384}};
  for (std::size_t i = 0; i < std::size(shapes); ++i) {
    const auto& [m, n, k] = shapes[i];
    check_sketch(bytes_product(m, n, k, fmt::format("{}, {}", n, k).c_str(), "vj, vk"), 3 * i,
                 &rng);
  }
  const NamedProgram across = bytes_product(128, 64, 256, "256, 64", "vk, vj");
  const Result<search::SearchSpace> space = search::make_space(
      search::make_task(across.name, across.program, gpu_target("cuda-host:sm_90a")));
  REQUIRE_OK(space);
  CHECK(wgmma_sketches(*space).empty());
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
