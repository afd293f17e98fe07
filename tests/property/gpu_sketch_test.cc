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

#include <algorithm>
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

// Runs each sketch by its preferred decisions; the texts of their schedules.
std::vector<std::string> run_sketches(const std::string& name, const ir::Program& base) {
  const ir::Target target = gpu_target();
  const ExecutionOptions orders[] = {
      {.order = ThreadOrder::kAscending, .mode = AsyncMode::kEager},
      {.order = ThreadOrder::kDescending, .mode = AsyncMode::kLazy},
  };
  const search::Task task = search::make_task(name, base, target);
  const Result<search::SearchSpace> space = search::make_space(task);
  REQUIRE_OK(space);
  std::vector<std::string> traces;
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    const Result<search::Candidate> made =
        search::instantiate(task, *space, static_cast<int>(s), {});
    INFO(name << " " << space->sketches[s].name);
    REQUIRE_OK(made);
    INFO(ir::print(made->program));
    CHECK(compare_on_host(base, made->program, target, 1, orders) == "");
    traces.push_back(schedule::print(made->trace));
  }
  return traces;
}

TEST_CASE("sketches for GPUs run on the host and give the interpreter's results", "[gpu]") {
  std::size_t num_run = 0;
  for (const GpuProgram& p : gpu_programs()) {
    if (kPrograms.count(p.name) != 0) num_run += run_sketches(p.name, p.base).size();
  }
  CHECK(num_run >= 20);
}

// Y = A x + b, by rows of A or by its columns.
std::string vector_product(bool by_rows) {
  const std::string at = by_rows ? "vi, vk" : "vk, vi";
  return "program product(A: f32[" + std::string(by_rows ? "37, 532" : "532, 37") +
         R"(], x: f32[532], b: f32[37]) -> (Y: f32[37]) {
  buffer s: f32[37] global
  for i in 37 { for k in 532 { block "s" [vi: S(37) = i, vk: R(532) = k] {
    init { s[vi] = 0f32 } s[vi] = s[vi] + A[)" +
         at + R"(]*x[vk] } } }
  for j in 37 { block "Y" [vi: S(37) = j] { Y[vi] = s[vi] + b[vi] } }
})";
}

TEST_CASE("a matrix that is read once is read by all threads of a block, neighbours together",
          "[gpu]") {
  const std::vector<std::string> by_rows =
      run_sketches("by_rows", parse_or_die(vector_product(true)));
  // No tiles of rows, for which x would be fetched.
  CHECK(by_rows[0].find("cache_read") == std::string::npos);
  CHECK(by_rows.size() >= 2);
  run_sketches("by_columns", parse_or_die(vector_product(false)));
}

// A layer's rows belong to its own kernel: all blocks of the next one would compute them again.
TEST_CASE("two products with vectors are two kernels", "[gpu]") {
  const std::vector<std::string> traces = run_sketches("two_layers", parse_or_die(R"(
program two_layers(V: f32[34, 260], W: f32[21, 34], x: f32[260]) -> (Y: f32[21]) {
  buffer h: f32[34] global
  buffer g: f32[34] global
  for i in 34 { for k in 260 { block "h" [vi: S(34) = i, vk: R(260) = k] {
    init { h[vi] = 0f32 } h[vi] = h[vi] + V[vi, vk]*x[vk] } } }
  for j in 34 { block "g" [vi: S(34) = j] { g[vi] = max(h[vi], 0f32) } }
  for m in 21 { for n in 34 { block "Y" [vi: S(21) = m, vk: R(34) = n] {
    init { Y[vi] = 0f32 } Y[vi] = Y[vi] + W[vi, vk]*g[vk] } } }
})"));
  std::size_t num_kernels = 0;
  for (std::size_t at = 0; (at = traces[0].find("\"block.x\"", at)) != std::string::npos; ++at)
    ++num_kernels;
  CHECK(num_kernels == 2);
}

// Batches, channels and windows: the fused index of a thread has four digits.
constexpr const char* kPool = R"(
program pool(X: f32[2, 6, 29, 31]) -> (Y: f32[2, 6, 14, 15]) {
  for n in 2 { for c in 6 { for i in 14 { for j in 15 { for p in 3 { for q in 3 {
    block "Y" [vn: S(2) = n, vc: S(6) = c, vi: S(14) = i, vj: S(15) = j, vp: R(3) = p, vq: R(3) = q] {
      init { Y[vn, vc, vi, vj] = f32.ninf }
      Y[vn, vc, vi, vj] = max(Y[vn, vc, vi, vj], X[vn, vc, vi*2 + vp, vj*2 + vq]) } } } } } } }
})";

TEST_CASE("a pool's windows are written out, each result by a thread of its own", "[gpu]") {
  for (const std::string& trace : run_sketches("pool", parse_or_die(kPool)))
    CHECK(trace.find("\"thread.x\"") != std::string::npos);
}

constexpr const char* kPaddedPool = R"(
program padded_pool(X: f32[2, 32, 63, 71]) -> (Y: f32[2, 32, 32, 36]) {
  buffer Z: f32[2, 32, 65, 73] global
  for n in 2 { for c in 32 { for h in 65 { for w in 73 {
    block "Z" [vn: S(2) = n, vc: S(32) = c, vh: S(65) = h, vw: S(73) = w] {
      Z[vn, vc, vh, vw] = select(0 <= vh - 1 && vh - 1 < 63 && 0 <= vw - 1 && vw - 1 < 71,
                                 X[vn, vc, vh - 1, vw - 1], f32.ninf) } } } } }
  for n_1 in 2 { for c_1 in 32 { for i in 32 { for j in 36 { for p in 3 { for q in 3 {
    block "Y" [vn: S(2) = n_1, vc: S(32) = c_1, vi: S(32) = i, vj: S(36) = j, vp: R(3) = p, vq: R(3) = q] {
      init { Y[vn, vc, vi, vj] = f32.ninf }
      Y[vn, vc, vi, vj] = max(Y[vn, vc, vi, vj], Z[vn, vc, vi*2 + vp, vj*2 + vq]) } } } } } } }
})";

TEST_CASE("a pool's neighbours share what their windows read, padding included", "[gpu]") {
  const std::vector<std::string> traces = run_sketches("padded_pool", parse_or_die(kPaddedPool));
  CHECK(std::any_of(traces.begin(), traces.end(), [](const std::string& trace) {
    return trace.find("cache_write(") != std::string::npos &&
           trace.find("vectorize(") != std::string::npos;
  }));
}

// Rows, columns, a total with a stage behind it, places of maxima: none of their extents is a multiple of anything.
constexpr const char* kLongSums[] = {
    R"(program rows(X: f32[3, 9001]) -> (Y: f32[3]) {
  for i in 3 { for k in 9001 { block "Y" [vi: S(3) = i, vk: R(9001) = k] {
    init { Y[vi] = 0f32 } Y[vi] = Y[vi] + X[vi, vk] } } }
})",
    R"(program columns(X: f32[1031, 37]) -> (Y: f32[37]) {
  for j in 37 { for k in 1031 { block "Y" [vj: S(37) = j, vk: R(1031) = k] {
    init { Y[vj] = 0f32 } Y[vj] = Y[vj] + X[vk, vj] } } }
})",
    R"(program total(X: f32[97, 101]) -> (Y: f32) {
  buffer s: f32 global
  for i in 97 { for k in 101 { block "s" [vi: R(97) = i, vk: R(101) = k] {
    init { s[] = 0f32 } s[] = s[] + X[vi, vk] } } }
  block "Y" [] { Y[] = s[]*2f32 }
})",
    R"(program batches(X: f32[3, 2, 67, 61]) -> (Y: f32[2]) {
  for c in 2 { for n in 3 { for i in 67 { for k in 61 {
    block "Y" [vc: S(2) = c, vn: R(3) = n, vi: R(67) = i, vk: R(61) = k] {
      init { Y[vc] = f32.ninf } Y[vc] = max(Y[vc], X[vn, vc, vi, vk]) } } } } }
})"};

TEST_CASE("few long rows are added up in parts, and each way gives the same", "[gpu]") {
  for (const char* const text : kLongSums) {
    const std::vector<std::string> traces = run_sketches("sums", parse_or_die(text));
    const auto has_parts = [](const std::string& trace) {
      return trace.find("rfactor(") != std::string::npos;
    };
    INFO(text);
    CHECK(std::any_of(traces.begin(), traces.end(), has_parts));
  }
}

// What "split k" leaves: a thread adds up vectors of neighbours where there are many.
TEST_CASE("short sums of many neighbours are vectors", "[gpu]") {
  const std::vector<std::string> traces = run_sketches("parts", parse_or_die(R"(
program parts(P: f32[3, 250, 264]) -> (Y: f16[250, 264]) {
  buffer s: f32[250, 264] global
  for i in 250 { for j in 264 { for p in 3 {
    block "s" [vi: S(250) = i, vj: S(264) = j, vp: R(3) = p] {
      init { s[vi, vj] = 0f32 } s[vi, vj] = s[vi, vj] + P[vp, vi, vj] } } } }
  for i_1 in 250 { for j_1 in 264 { block "Y" [vi: S(250) = i_1, vj: S(264) = j_1] {
    Y[vi, vj] = f16(s[vi, vj]) } } }
})"));
  CHECK(std::any_of(traces.begin(), traces.end(), [](const std::string& trace) {
    return trace.find("compute_at(") != std::string::npos &&
           trace.find("vectorize(") != std::string::npos;
  }));
}

constexpr const char* kChannelsLast = R"(
program channels_last(X: f16[2, 40, 67], b: f16[40]) -> (Y: f16[2, 67, 40]) {
  for n in 2 { for p in 67 { for c in 40 {
    block "Y" [vn: S(2) = n, vp: S(67) = p, vc: S(40) = c] {
      Y[vn, vp, vc] = max(X[vn, vc, vp] + b[vc], 0f16) } } } }
})";

TEST_CASE("what is read across its rows goes through shared memory", "[gpu]") {
  const std::vector<std::string> traces =
      run_sketches("channels_last", parse_or_die(kChannelsLast));
  CHECK(traces[0].find("\"shared\"") != std::string::npos);
  // And once without.
  CHECK(traces.size() >= 2);
  CHECK(traces.back().find("\"shared\"") == std::string::npos);
  // Short rows are read as they are.
  std::string narrow = kChannelsLast;
  for (std::size_t at; (at = narrow.find("67")) != std::string::npos;) narrow.replace(at, 2, "9");
  for (const std::string& trace : run_sketches("narrow", parse_or_die(narrow)))
    CHECK(trace.find("\"shared\"") == std::string::npos);
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
