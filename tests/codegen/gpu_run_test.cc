// Programs for a GPU, executed on the host.
#include "tests/codegen/gpu_run.h"

#include "codegen/codegen.h"
#include "codegen/cuda/print.h"
#include "codegen/pipeline.h"
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

// Columns that loops move by whole pieces, across a panel's end, backwards, and not by themselves.
TEST_CASE("a swizzled tile is read anywhere, whatever moves the subscript", "[gpu]") {
  for (const char* bytes : {"32", "64", "128", "256"}) {
    const ir::Program program = parse_or_die(R"(
program p(A: f16[16, 128]) -> (B: f16[16, 64]) {
  buffer T: f16[16, 128] shared
  for b in 1 bind(block.x) {
    for i in 16 bind(thread.y) { for j in 16 bind(thread.x) { for v in 8 vectorized {
      block "T" [r: S(16) = i, w: S(128) = j*8 + v] {swizzle_0 = )" +
                                             std::string(bytes) + R"(} { T[r, w] = A[r, w] } } } }
    for k in 16 bind(thread.y) { for t in 16 bind(thread.x) { for c in 4 {
      block "B" [r: S(16) = k, w: S(64) = c*16 + t] {
        B[r, w] = T[r, w] + T[r, w + 4]*2f16 + T[15 - r, w//2*2 + 8]*3f16 + T[r, 127 - w] } } } }
  }
})");
    CAPTURE(bytes);
    CHECK(compare_on_host(program, program, gpu_target(), 1, kTwoOrders) == "");
  }
}

struct PipelineCase {
  const char *what, *program, *script;
};
const char* const kSums = R"(
program e(A: f32[4, 8, 64]) -> (Y: f32[4, 64]) {
  for i in 4 @L0 { for j in 64 @L1 { for k in 8 @L2 {
    block "Y" @B0 [vi: S(4) = i, vj: S(64) = j, vk: R(8) = k] {
      init { Y[vi, vj] = 0f32 } Y[vi, vj] = Y[vi, vj] + A[vi, vk, vj] } } } } })";
const char* const kTurned = R"(
program f(A: f32[4, 8, 64]) -> (Y: f32[4, 64]) {
  buffer T: f32[4, 8, 64] global
  for i in 4 @L0 { for k in 8 @L1 { for j in 64 @L2 {
    block "T" @B0 [vi: S(4) = i, vk: S(8) = k, vj: S(64) = j] { T[vi, vk, vj] = A[vi, vk, 63 - vj] } } } }
  for i_1 in 4 @L3 { for j_1 in 64 @L4 { for k_1 in 8 @L5 {
    block "Y" @B1 [wi: S(4) = i_1, wj: S(64) = j_1, wk: R(8) = k_1] {
      init { Y[wi, wj] = 0f32 } Y[wi, wj] = Y[wi, wj] + T[wi, wk, wj] } } } } })";
const char* const kNested = R"(
program f(A: f32[4, 8, 4, 64]) -> (Y: f32[4, 64]) {
  for i in 4 @L0 { for j in 64 @L1 { for k in 8 @L2 { for l in 4 @L3 {
    block "Y" @B0 [vi: S(4) = i, vj: S(64) = j, vk: R(8) = k, vl: R(4) = l] {
      init { Y[vi, vj] = 0f32 } Y[vi, vj] = Y[vi, vj] + A[vi, vk, vl, vj] } } } } } })";
const char* const kEpilogue = R"(
program x(A: f32[4, 64, 3], Z: f32[4, 64]) -> (Y: f32[64]) {
  buffer T: f32[4, 64] global
  buffer U: f32[4, 64] global
  for i in 4 @L0 { for j in 64 @L1 { for k in 3 @L2 {
    block "T" @B0 [vi: S(4) = i, vj: S(64) = j, vk: R(3) = k] {
      init { T[vi, vj] = 0f32 } T[vi, vj] = T[vi, vj] + A[vi, vj, vk] } } } }
  for i_1 in 4 @L3 { for j_1 in 64 @L4 {
    block "U" @B1 [wi: S(4) = i_1, wj: S(64) = j_1] { U[wi, wj] = T[wi, wj] + Z[wi, wj] } } }
  for j_2 in 64 @L5 { for i_2 in 4 @L6 {
    block "Y" @B2 [xj: S(64) = j_2, xi: R(4) = i_2] {
      init { Y[xj] = 0f32 } Y[xj] = Y[xj] + U[xi, xj] } } } })";

const PipelineCase kPipelines[] = {
    {"a fetch that no threads share", kSums, R"(
cache_read(@B0, 0, "shared")
reorder([@L2, @L1])
compute_at(@B1, @L2)
bind(@L0, "block.x")
bind(@L1, "thread.x")
software_pipeline(@L2, [0,1], [0,1])
)"},
    {"registers that are fetched ahead", kSums, R"(
cache_read(@B0, 0, "local")
reorder([@L2, @L1])
compute_at(@B1, @L2)
bind(@L0, "block.x")
bind(@L1, "thread.x")
bind(@L8, "thread.x")
software_pipeline(@L2, [0,1], [0,1])
)"},
    {"a fetch that reads what another one brings", kTurned, R"(
cache_read(@B0, 0, "shared")
set_scope(@B0, 0, "shared")
reorder([@L5, @L4])
compute_at(@B0, @L5)
compute_at(@B2, @L5)
bind(@L3, "block.x")
bind(@L14, "thread.x")
bind(@L11, "thread.x")
bind(@L4, "thread.x")
software_pipeline(@L5, [0,0,1], [0,1,2])
)"},
    {"a fetch that goes on with what it brings", kEpilogue, R"(
fuse_reduction_epilogue(@B0, @B1)
reorder([@L6, @L5])
split(@L5, [2, 32])
reorder([@L7, @L6, @L8])
compute_at(@B0, @L6)
set_scope(@B0, 0, "shared")
bind(@L7, "block.x")
bind(@L8, "thread.x")
bind(@L10, "thread.x")
decompose_reduction(@B0, @L11)
software_pipeline(@L6, [0,1],[0,1])
)"},
    {"pipelines in each other", kNested, R"(
cache_read(@B0, 0, "shared")
cache_read(@B0, 0, "shared")
reorder([@L2, @L3, @L1])
compute_at(@B2, @L3)
compute_at(@B1, @L2)
bind(@L0, "block.x")
bind(@L1, "thread.x")
bind(@L19, "thread.x")
bind(@L15, "thread.x")
software_pipeline(@L3, [0,1],[0,1])
software_pipeline(@L2, [0,1],[0,1])
)"},
};

TEST_CASE("pipelines run ahead only as far as that changes nothing", "[gpu]") {
  for (const PipelineCase& c : kPipelines) {
    CAPTURE(c.what);
    const Result<ir::Program> base = ir::parse(c.program);
    REQUIRE_OK(base);
    const Result<schedule::TraceScript> script = schedule::parse_script(c.script);
    REQUIRE_OK(script);
    const Result<schedule::Schedule> done = schedule::replay(*base, script->trace, {});
    REQUIRE_OK(done);
    CHECK(compare_on_host(*base, done->program(), gpu_target(), 1, kTwoOrders) == "");
    CHECK(check_races_and_compile(*base, done->program(), gpu_target(), "sm_80") == "");
  }
}

// An element of Y: `extent` of type `type`, made of v and the inputs X (8 values of that type).
std::string elements(int64_t extent, const std::string& type, const std::string& value) {
  const std::string n = std::to_string(extent);
  return "program p(X: " + type + "[8]) -> (Y: " + type + "[" + n + "]) { for i in " + n +
         " @L0 { block \"Y\" @B0 [v: S(" + n + ") = i] { Y[v] = " + value + " } } }";
}

TEST_CASE("indices that are values, and whole numbers that data make", "[gpu]") {
  const std::pair<const char*, const char*> cases[] = {
      {"i64", "select(v < 3, v, 7 - v)"},
      {"i64", "abs(v - 40)*100000000"},
      {"i64", "v*100000000 // 7"},
      {"i64", "(3 - v*100000000) % 1000"},
      {"i64", "(v - 50) // 3"},
      {"i64", "X[v % 8] // 3"},
      {"i64", "(X[v % 8] - 5) % 3"},
      {"i64", "min(X[v % 8], v)"},
      {"i32", "X[v % 8] // 3i32"},
      {"i8", "(X[v % 8] - 7i8) % 3i8"},
      {"u8", "X[v % 8] // 3u8"},
      {"f32", "X[v*100000007 // 1600000001]"},
      {"f32", "X[v*100000007 // 400000003 % 8]"},
      {"f32", "X[select(v < 8, v, 7)]"},
      {"f32", "X[abs(v - 40) % 8]"},
      {"f32", "X[max(min(i64(X[v % 8]), 7), 0)]"},
  };
  for (const auto& [type, value] : cases) {
    CAPTURE(type, value);
    const Result<ir::Program> base = ir::parse(elements(100, type, value));
    REQUIRE_OK(base);
    schedule::Schedule s(*base);
    REQUIRE_OK(s.bind(s.loops_of(ir::BlockId(0))[0], "thread.x"));
    CHECK(compare_on_host(*base, s.program(), gpu_target(), 1, kTwoOrders) == "");
  }
}

TEST_CASE("sine and cosine of f64 are the library's, of large arguments too", "[gpu]") {
  for (const char* value : {"sin(X[v % 8] + f64(v))", "cos(X[v % 8] - f64(v))",
                            "sin(X[v % 8]*1e18f64)", "cos(X[v % 8]*1e18f64)"}) {
    CAPTURE(value);
    const ir::Program base = parse_or_die(elements(100, "f64", value));
    schedule::Schedule s(base);
    REQUIRE_OK(s.bind(s.loops_of(ir::BlockId(0))[0], "thread.x"));
    CHECK(compare_on_host(base, s.program(), gpu_target(), 1, kTwoOrders) == "");
  }
}

TEST_CASE("a division stays behind the condition that hides it, also outside of a loop", "[gpu]") {
  const ir::Program program = parse_or_die(R"(
program p(X: f32[4, 8]) -> (Y: f32[4, 8]) {
  for b in 1 bind(block.x) {
    for i in 4 bind(thread.x) { for k in 8 {
      block "I" [v: S(4) = i, w: S(8) = k] { Y[v, w] = 1f32 } } }
    for j in 4 bind(thread.x) { for l in 8 {
      block "Y" [v: S(4) = j, w: S(8) = l] where l < j && 11 % j < 2 { Y[v, w] = X[v, w] } } }
  }
})");
  CHECK(compare_on_host(program, program, gpu_target(), 1, kTwoOrders) == "");
}

TEST_CASE("an f64 is rounded to 16 bits once", "[gpu]") {
  // Beside the middle of two numbers of 16 bits, which is what an f32 would make of them.
  const std::pair<const char*, const char*> cases[] = {
      {"f16", "1.0004882812509f64"},   {"f16", "1.0014648437491f64"}, {"f16", "65519.99999999f64"},
      {"bf16", "1.00390625000001f64"}, {"f16", "1e300f64"},
  };
  for (const auto& [type, value] : cases) {
    CAPTURE(type, value);
    const std::string narrow = type;
    const Result<ir::Program> base =
        ir::parse(elements(8, "f64", "f64(" + narrow + "(X[v]*0f64 + " + value + "))*1e6f64"));
    REQUIRE_OK(base);
    schedule::Schedule s(*base);
    REQUIRE_OK(s.bind(s.loops_of(ir::BlockId(0))[0], "thread.x"));
    CHECK(compare_on_host(*base, s.program(), gpu_target(), 1, kTwoOrders) == "");
  }
}

TEST_CASE("an fma of 16 bits rounds once", "[gpu]") {
  // Products that are the middle of two numbers of 16 bits, and a little more or less.
  for (const char* value : {"fma(3f16, 683f16, f16(X[v]*0f64 + 0.00006103515625f64))",
                            "fma(7bf16, 37bf16, bf16(X[v]*0f64 - 0.00000095367431640625f64))",
                            "fma(7bf16, 37bf16, bf16(X[v]*0f64 - 1f64/1e30f64))"}) {
    CAPTURE(value);
    const ir::Program base = parse_or_die(elements(8, "f64", "f64(" + std::string(value) + ")"));
    schedule::Schedule s(base);
    REQUIRE_OK(s.bind(s.loops_of(ir::BlockId(0))[0], "thread.x"));
    CHECK(compare_on_host(base, s.program(), gpu_target(), 1, kTwoOrders) == "");
  }
}

TEST_CASE("rows that ldmatrix cannot read are refused where code is made", "[gpu]") {
  for (const GpuProgram& p : gpu_programs()) {
    if (p.name != "matmul_ldmatrix") continue;
    const Result<schedule::Schedule> done = schedule::replay(p.base, gpu_trace(p.name), {});
    REQUIRE_OK(done);
    schedule::Schedule s = *done;
    // Rows of an odd number of words.
    REQUIRE_OK(s.storage_align(ir::BlockId(2), 0, 0, 2, 1));
    const ir::Target target = gpu_target();
    const Result<ir::Program> lowered = codegen::lower_gpu(s.program(), target);
    REQUIRE_OK(lowered);
    CHECK_DIAG(codegen::print_cuda(*lowered, target, "k"), Unsupported);
  }
}

TEST_CASE("what no GPU launches is refused where code is made", "[gpu]") {
  for (const auto& [axis, rows] : {std::pair("block.y", 70000), std::pair("thread.z", 128)}) {
    const std::string n = std::to_string(rows);
    const Result<ir::Program> base =
        ir::parse("program p(A: f32[" + n + "]) -> (Y: f32[" + n + "]) { for i in " + n +
                  " @L0 { block \"Y\" @B0 [v: S(" + n + ") = i] { Y[v] = A[v] } } }");
    REQUIRE_OK(base);
    schedule::Schedule s(*base);
    REQUIRE_OK(s.bind(s.loops_of(ir::BlockId(0))[0], axis));
    const ir::Target target = gpu_target("cuda:sm_80");
    const Result<ir::Program> lowered = codegen::lower_gpu(s.program(), target);
    REQUIRE_OK(lowered);
    CHECK_DIAG(codegen::print_cuda(*lowered, target, "k"), GpuLimit);
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
