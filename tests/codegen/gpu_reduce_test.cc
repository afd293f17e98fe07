// Reductions into several buffers whose iterations are threads.
#include "codegen/pipeline.h"
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace prunerc::testing {
namespace {

ir::Program scheduled(const ir::Program& base, const std::string& script) {
  const Result<schedule::TraceScript> parsed = schedule::parse_script(script);
  REQUIRE_OK(parsed);
  const Result<schedule::Schedule> done =
      schedule::replay(base, parsed->trace, {.verify = schedule::Verify::kEachStep});
  REQUIRE_OK(done);
  return done->program();
}

// Threads that fill warps, part of one, several and none, along one axis and two.
const char* const kShapes[] = {
    "split(@L1, [-1, 7]) -> @L10, @L11\nbind(@L11, \"thread.x\")\n",
    "split(@L1, [-1, 16]) -> @L10, @L11\nbind(@L11, \"thread.x\")\n",
    "split(@L1, [-1, 128]) -> @L10, @L11\nbind(@L11, \"thread.x\")\n",
    "split(@L1, [-1, 32]) -> @L10, @L11\nbind(@L11, \"thread.y\")\n",
    "split(@L1, [-1, 3, 5]) -> @L10, @L11, @L12\nbind(@L12, \"thread.x\")\nbind(@L11, "
    "\"thread.y\")\n",
};

TEST_CASE("partial sums of fused rows take a place for each thread, not for each element between",
          "[gpu]") {
  const ir::Program program = parse_or_die(R"(
program p(X: f32[64, 5, 12]) -> (Y: f32[5, 12]) {
  for b in 8 @L0 bind(block.x) { for r in 8 @L1 { for y in 8 @L2 bind(thread.y) { for x in 8 @L3 bind(thread.x) {
    block "Y" @B0 [vi: S(5) = (b*8 + x) // 12, vj: S(12) = (b*8 + x) % 12, vk: R(64) = r*8 + y] where b*8 + x < 60 {
      init { Y[vi, vj] = 0f32 } Y[vi, vj] = Y[vi, vj] + X[vk, vi, vj] } } } } }
})");
  const Result<ir::Program> lowered = codegen::lower_gpu(program, gpu_target());
  REQUIRE_OK(lowered);
  INFO(ir::print(*lowered));
  CHECK(compare_lowered_on_host(program, *lowered, gpu_target(), 2, kTwoOrders) == "");
  int64_t most = 0;
  for (const ir::Buffer& buffer : lowered->buffers()) {
    if (buffer.scope != ir::Scope::kShared) continue;
    int64_t size = 1;
    for (ir::Expr extent : buffer.shape) size *= extent.as<ir::IntImm>()->value;
    most = std::max(most, size);
  }
  CHECK(most == 64);
}

TEST_CASE("tuples combine across threads of every shape, idle ones included", "[gpu]") {
  const ir::Target target = gpu_target();
  int tried = 0;
  for (const GpuProgram& p : gpu_programs()) {
    const bool has_scratch = p.name.rfind("row_argmax", 0) == 0 || p.name.rfind("row_soft", 0) == 0;
    const bool is_plain = p.name.rfind("row_moments", 0) == 0 || p.name.rfind("row_att", 0) == 0;
    if (!has_scratch && !is_plain) continue;
    for (const char* const shape : kShapes) {
      CAPTURE(p.name, shape);
      std::string script = std::string(shape) + "bind(@L0, \"block.x\")\n";
      if (has_scratch) script += "set_scope(@B0, 1, \"shared\")\n";
      const ir::Program now = scheduled(p.base, script);
      const Result<ir::Program> lowered = codegen::lower_gpu(now, target);
      REQUIRE_OK(lowered);
      const ir::FpvVerdict verdict = ir::check_equivalent(p.base, *lowered);
      INFO(ir::to_string(verdict));
      CHECK(verdict.ok());
      const std::string found = compare_lowered_on_host(p.base, *lowered, target, 2, kTwoOrders);
      INFO(found);
      CHECK(found.empty());
      ++tried;
    }
  }
  CHECK(tried == 40);
}

TEST_CASE("other threads inside of those that reduce have results of their own", "[gpu]") {
  const ir::Program program = parse_or_die(R"(
program sums(X: f32[6, 64]) -> (Y: f32[6]) {
  for b in 1 @L0 bind(block.x) { for k in 2 @L1 { for t in 32 @L2 bind(thread.x) { for i in 6 @L3 bind(thread.y) {
    block "Y" @B0 [vi: S(6) = i, vk: R(64) = k*32 + t] { init { Y[vi] = 0f32 } Y[vi] = Y[vi] + X[vi, vk] }
  } } } }
})");
  const Result<ir::Program> lowered = codegen::lower_gpu(program, gpu_target());
  REQUIRE_OK(lowered);
  const ir::FpvVerdict verdict = ir::check_equivalent(program, *lowered);
  INFO(ir::to_string(verdict) << ir::print(*lowered));
  CHECK(verdict.ok());
  CHECK(compare_lowered_on_host(program, *lowered, gpu_target(), 2, kTwoOrders) == "");
}

std::string pair(const std::string& body, const std::string& guard = "") {
  return R"(
program pair(X: f32[6, 32]) -> (P: f32[6], Q: f32[6]) {
  for i in 6 @L0 bind(block.x) { for k in 32 @L1 bind(thread.x) {
    block "pair" @B0 [vi: S(6) = i, vk: R(32) = k] )" +
         guard + R"({
      init { P[vi] = 0f32 Q[vi] = 0f32 }
      )" +
         body +
         R"(
  } } }
})";
}

TEST_CASE("tuples across threads that do not combine are refused", "[gpu]") {
  const ir::Target target = gpu_target();
  const auto lowered = [&](const std::string& text) {
    return codegen::lower_gpu(parse_or_die(text), target);
  };
  REQUIRE_OK(lowered(pair("P[vi] = P[vi] + X[vi, vk] Q[vi] = Q[vi] + X[vi, vk]*X[vi, vk]")));
  // A recurrence; what it reads is none of its elements; another row's result.
  CHECK_DIAG(lowered(pair("P[vi] = P[vi]*2f32 + X[vi, vk] Q[vi] = Q[vi] + P[vi]")), Unsupported);
  CHECK_DIAG(lowered(pair("P[vi] = P[vi] + X[vi, vk] Q[vi] = Q[vi]*P[vi]")), Unsupported);
  CHECK_DIAG(lowered(pair("P[vi] = P[vi] + X[vi, vk] Q[vi] = Q[vi] + P[5 - vi]")), Unsupported);
  // A row may have no threads at all.
  CHECK_DIAG(lowered(pair("P[vi] = P[vi] + X[vi, vk] Q[vi] = Q[vi] + X[vi, vk]*X[vi, vk]",
                          "where k + 3 < i ")),
             Unsupported);
}

TEST_CASE("threads that have a tuple's instances for some of their results alone are refused",
          "[gpu]") {
  const ir::Target target = gpu_target();
  const auto lowered = [&](const std::string& guard) {
    return codegen::lower_gpu(parse_or_die(R"(
program m(X: f32[2, 4, 64]) -> (N: f32[2, 4], Mean: f32[2, 4], M2: f32[2, 4]) {
  for b in 2 @L0 bind(block.x) { for k in 64 @L1 bind(thread.x) { for i in 4 @L2 {
    block "moments" @B0 [vb: S(2) = b, vi: S(4) = i, vk: R(64) = k] where )" +
                                           guard +
                                           R"( {
      init { N[vb, vi] = 0f32 Mean[vb, vi] = 0f32 M2[vb, vi] = 0f32 }
      combine (n1, m1, s1), (n2, m2, s2) -> (n1 + n2, m1 + (m2 - m1)*n2/(n1 + n2), s1 + s2 + (m2 - m1)*(m2 - m1)*n1*n2/(n1 + n2))
      M2[vb, vi] = M2[vb, vi] + (X[vb, vi, vk] - Mean[vb, vi])*(X[vb, vi, vk] - Mean[vb, vi])*N[vb, vi]/(N[vb, vi] + 1f32)
      Mean[vb, vi] = Mean[vb, vi] + (X[vb, vi, vk] - Mean[vb, vi])/(N[vb, vi] + 1f32)
      N[vb, vi] = N[vb, vi] + 1f32 } } } }
})"),
                              target);
  };
  REQUIRE_OK(lowered("k < 40"));
  CHECK_DIAG(lowered("k + i*8 < 40"), Unsupported);
}

TEST_CASE("threads without an instance in some rows alone add nothing to theirs", "[gpu]") {
  const ir::Target target = gpu_target();
  // The last of several parts is shorter, of a sum and of a tuple.
  const auto parts = [](const std::string& result, const std::string& body) {
    return parse_or_die("program parts(X: f32[150]) -> (" + result + R"() {
  for p in 3 @L0 bind(block.x) { for k in 64 @L1 bind(thread.x) {
    block "part" @B0 [vp: S(3) = p, vk: R(64) = k] where p*64 + k < 150 {
      )" + body + " } } }\n}");
  };
  const std::string value = "X[vp*64 + vk]";
  for (const ir::Program& program :
       {parts("P: f32[3]", "init { P[vp] = 0f32 } P[vp] = P[vp] + " + value),
        parts("P: f32[3]", "init { P[vp] = f32.ninf } P[vp] = max(P[vp], " + value + ")"),
        parts("P: f32[3], Q: f32[3]", "init { P[vp] = 0f32 Q[vp] = 0f32 } P[vp] = P[vp] + " +
                                          value + " Q[vp] = Q[vp] + " + value + "*" + value)}) {
    INFO(ir::print(program));
    REQUIRE_OK(codegen::lower_gpu(program, target));
    CHECK(compare_on_host(program, program, target, 3, kTwoOrders) == "");
  }
}

}  // namespace
}  // namespace prunerc::testing
