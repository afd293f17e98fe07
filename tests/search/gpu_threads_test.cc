// What is taken on a GPU without measuring has threads enough, whatever the extents: the windows of pools, few long
// rows, sums over columns, totals.
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "ir/query.h"
#include "ir/support/parallel.h"
#include "ir/visit.h"
#include "schedule/legality/gpu_limits.h"
#include "search/space/space.h"
#include "search/tune/instant.h"
#include "tests/support/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

Task gpu_task(const std::string& text) {
  lang::CompileInput input;
  input.text = text;
  const lang::LangResult compiled = lang::compile(input);
  INFO(text << "\n" << compiled.rendered);
  REQUIRE(compiled.program.has_value());
  return make_task("p", *compiled.program, *ir::target_from_string("cuda:h100"));
}

// Instances of the kernel's largest block.
int64_t work_of(const ir::Program& program, ir::LoopId kernel) {
  int64_t most = 0;
  bool inside = false;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        if (const ir::Loop* loop = s.as<ir::Loop>(); loop != nullptr && loop->id == kernel) {
          inside = true;
          ir::walk(
              loop->body,
              [&](ir::Stmt part) {
                const ir::Block* block = part.as<ir::Block>();
                int64_t own = block != nullptr ? 1 : 0;
                for (std::size_t i = 0; block != nullptr && i < block->iters.size(); ++i) {
                  own *= ir::constant_value(block->iters[i].extent).value_or(1);
                }
                most = std::max(most, own);
                return true;
              },
              [](ir::Expr) {});
        }
        return true;
      },
      [](ir::Expr) {});
  REQUIRE(inside);
  return most;
}

// A thread has at most so many instances of its own, as long as threads are few.
constexpr int64_t kMostWork = 256;
constexpr int64_t kManyThreads = 1024;

void check_threads(const std::string& text) {
  const Task task = gpu_task(text);
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  ThreadPool pool(2);
  const Result<Candidate> chosen = instant_candidate(task, *space, pool);
  REQUIRE_OK(chosen);
  INFO(text << "\n" << ir::print(chosen->program));
  REQUIRE_OK(schedule::check_gpu_limits(chosen->program, task.target));
  const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(chosen->program);
  REQUIRE_OK(needs);
  for (const schedule::GpuNeeds& kernel : *needs) {
    const int64_t threads = kernel.threads() * kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
    INFO(kernel.name << ": " << threads << " threads");
    CHECK(threads >= std::min(kManyThreads, work_of(chosen->program, kernel.loop) / kMostWork));
  }
}

std::string pool_text(int64_t n, int64_t c, int64_t size, int64_t k, int64_t stride, int64_t pad) {
  const int64_t out = (size + 2 * pad - k) / stride + 1;
  return fmt::format(
      "op p(X: f32[{0},{1},{2},{2}]) -> (Y: f32[{0},{1},{3},{3}]) {{ Y[n,c,i,j] = "
      "max[p in 0..{4}, q in 0..{4}] (X[n,c,i*{5} + p - {6}, j*{5} + q - {6}] or -inf); }}",
      n, c, size, out, k, stride, pad);
}

TEST_CASE("pools have threads for each result, whatever batch, window and stride") {
  for (const int64_t n : {1, 2, 8}) {
    for (const int64_t k : {2, 3, 7}) {
      for (const int64_t stride : {1, 2}) check_threads(pool_text(n, 64, 56, k, stride, k / 2));
    }
  }
  check_threads(pool_text(8, 64, 112, 3, 2, 1));
  check_threads(pool_text(7, 13, 31, 3, 2, 1));
  check_threads(pool_text(1, 64, 112, 2, 2, 0));
  check_threads(pool_text(8, 2048, 7, 7, 7, 0));
}

TEST_CASE("few long rows are cut into parts for all processors") {
  check_threads("op p(X: f32[4096,4096]) -> (s: f32) { s = sum[i,j] X[i,j]; }");
  check_threads("op p(X: f32[4099,4093]) -> (s: f32) { s = sqrt(sum[i,j] X[i,j]*X[i,j]); }");
  check_threads("op p(X: f32[7,9999991]) -> (Y: f32[7]) { Y[i] = max[j] X[i,j]; }");
  check_threads("op p(X: f32[5,1000003]) -> (Y: i64[5]) { Y[i] = argmax[j] X[i,j]; }");
  check_threads("op p(X: f32[1000003,7]) -> (Y: f32[7]) { Y[j] = sum[i] X[i,j]; }");
  check_threads("op p(X: f32[65537,67]) -> (Y: f32[67]) { Y[j] = sum[i] X[i,j]; }");
  check_threads("op p(a: f32[9999991], b: f32[9999991]) -> (s: f32) { s = sum[i] a[i]*b[i]; }");
  check_threads("op p(X: f32[8,32,112,112]) -> (Y: f32[32]) { Y[c] = sum[n,h,w] X[n,c,h,w]; }");
}

TEST_CASE("maps that are summed as a whole have threads along them") {
  check_threads("op p(X: f32[8,64,112,112]) -> (Y: f32[8,64]) { Y[n,c] = max[h,w] X[n,c,h,w]; }");
  check_threads("op p(X: f32[1,512,7,7]) -> (Y: f32[1,512]) { Y[n,c] = max[h,w] X[n,c,h,w]; }");
}

TEST_CASE("sums of a map and of its rows are one kernel, however long the map") {
  const Task task = gpu_task(
      "op p(X: f32[64,64,64,64]) -> (D: f32[64,64,64]) { let m[n,c] = sum[h,w] X[n,c,h,w]; "
      "let r[n,c,h] = sum[w] X[n,c,h,w]; D[n,c,h] = r[n,c,h] - m[n,c]; }");
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  const auto sketch = std::find_if(space->sketches.begin(), space->sketches.end(),
                                   [](const Sketch& s) { return s.name == "gpu"; });
  REQUIRE(sketch != space->sketches.end());
  const auto index = static_cast<int>(sketch - space->sketches.begin());
  const Result<Candidate> made = instantiate(task, *space, index, {});
  REQUIRE_OK(made);
  INFO(ir::print(made->program));
  const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(made->program);
  REQUIRE_OK(needs);
  CHECK(needs->size() == 1);
}

TEST_CASE("more tiles than a grid has along its last axis stand along the first one") {
  check_threads(
      "op p(A: f32[70000,16,16], B: f32[70000,16,16]) -> (C: f32[70000,16,16]) { "
      "C[n,i,j] = sum[k] A[n,i,k] * B[n,k,j]; }");
}

}  // namespace
}  // namespace prunerc
