// What the search proposes for a GPU becomes CUDA text that computes what the operator does.
#include "ir/parser.h"
#include "ir/printer.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/space/variation.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>

namespace prunerc::testing {
namespace {

using runtime::cuda_host::AsyncMode;
using runtime::cuda_host::ExecutionOptions;
using runtime::cuda_host::ThreadOrder;

// Each takes a compiler of C++ a second or two.
const std::set<std::string> kPrograms = {
    "matmul_ragged",     "matmul_bias_relu_ragged", "conv2d_nhwc_ragged",
    "max_pool2d_ragged", "softmax_ragged",          "layer_norm_ragged",
    "row_sum_ragged",    "silu_mul_ragged",         "transpose_ragged"};

TEST_CASE("sketches for GPUs run on the host and give the interpreter's results", "[gpu]") {
  const ir::Target target = gpu_target();
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
  };
  int num_run = 0;
  for (const GpuProgram& p : gpu_programs()) {
    if (kPrograms.count(p.name) == 0) continue;
    const search::Task task = search::make_task(p.name, p.base, target);
    const Result<search::SearchSpace> space = search::make_space(task);
    REQUIRE_OK(space);
    for (std::size_t s = 0; s < space->sketches.size(); ++s) {
      const Result<search::Candidate> made =
          search::instantiate(task, *space, static_cast<int>(s), {});
      INFO(p.name << " " << space->sketches[s].name);
      REQUIRE_OK(made);
      INFO(ir::print(made->program));
      const std::string difference = compare_on_host(p.base, made->program, target, 1, orders);
      CHECK(difference == "");
      ++num_run;
    }
  }
  CHECK(num_run >= 20);
}

// The last stage reads a row backwards: what another thread has in its registers.
constexpr const char* kFlipped = R"(
program flipped(X: f32[5, 512]) -> (Y: f32[5, 512]) {
  buffer p: f32[5, 512] global
  buffer s: f32[5] global
  for i_1 in 5 @L2 { for j_1 in 512 @L3 {
    block "p" @B1 [vi: S(5) = i_1, vj: S(512) = j_1] { p[vi, vj] = exp(X[vi, vj]) } } }
  for i_2 in 5 @L4 { for j_2 in 512 @L5 {
    block "s" @B2 [vi: S(5) = i_2, vj: R(512) = j_2] {
      init { s[vi] = 0f32 } s[vi] = s[vi] + p[vi, vj] } } }
  for i_3 in 5 @L6 { for j_3 in 512 @L7 {
    block "Y" @B3 [vi: S(5) = i_3, vj: S(512) = j_3] { Y[vi, vj] = p[vi, 511 - vj] / s[vi] } } }
})";

TEST_CASE("a row that is read at other elements than it was made at is shared", "[gpu]") {
  const ir::Target target = gpu_target();
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kEager}};
  const Result<ir::Program> base = ir::parse(kFlipped);
  REQUIRE_OK(base);
  const search::Task task = search::make_task("flipped", *base, target);
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  int num_run = 0;
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    INFO(space->sketches[s].name);
    const Result<search::Candidate> made =
        search::instantiate(task, *space, static_cast<int>(s), {});
    if (!made.ok()) continue;  // a row for each thread takes too many registers
    CHECK(compare_on_host(*base, made->program, target, 1, orders) == "");
    ++num_run;
  }
  CHECK(num_run > 0);
}

}  // namespace
}  // namespace prunerc::testing
