// Values of a fragment's rows in its lanes: what they are right for, and what is refused.
#include "codegen/codegen.h"
#include "codegen/pipeline.h"
#include "ir/parser.h"
#include "schedule/legality/gpu_limits.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <string>
#include <vector>

namespace prunerc::testing {
namespace {

// A product of one warp, c[i, j], and statements behind it; R, G and Q are results, m, n and x registers.
ir::Program behind_product(std::string_view last) {
  return parse_or_die(fmt::format(R"(
program p(A: f16[16, 16], B: f16[16, 8]) -> (Y: f32[16, 8], R: f32[16], G: f32[16], Q: f32[8]) {{
  buffer a: f16[16, 16] local
  buffer b: f16[16, 8] local
  buffer c: f32[16, 8] local
  buffer m: f32[16] local
  buffer n: f32[16] local
  buffer x: f32[8] local
  for z in 1 bind(block.x) {{ for w in 1 bind(thread.y) {{
    block "C" [vz: S(1) = z] {{
      reads A[0 +: 16, 0 +: 16], B[0 +: 16, 0 +: 8], R[0 +: 16], G[0 +: 16], Q[0 +: 8], Y[0 +: 16, 0 +: 8]
      writes a[0 +: 16, 0 +: 16], b[0 +: 16, 0 +: 8], c[0 +: 16, 0 +: 8], m[0 +: 16], n[0 +: 16], x[0 +: 8], Y[0 +: 16, 0 +: 8], R[0 +: 16], G[0 +: 16], Q[0 +: 8]
      for i in 16 {{ for k in 16 {{ a[i, k] = A[i, k] }} }}
      for k in 16 {{ for j in 8 {{ b[k, j] = B[k, j] }} }}
      for i in 16 {{ for j in 8 {{ c[i, j] = 0f32 }} }}
      for i in 16 {{tensor_mma_m16n8k16_f16 = 1}} {{ for j in 8 {{ for k in 16 {{
        c[i, j] = c[i, j] + f32(a[i, k])*f32(b[k, j]) }} }} }}
      {}
    }} }} }}
}})",
                                  last));
}

Result<codegen::Artifact> kernels(std::string_view last) {
  return codegen::print_cuda_artifact(behind_product(last), gpu_target());
}

// Maxima of rows in registers, then these statements.
std::string with_maxima(std::string_view then) {
  return "for i in 16 { m[i] = f32.ninf } "
         "for i in 16 { for j in 8 { m[i] = max(m[i], c[i, j]) } } " +
         std::string(then);
}

TEST_CASE("rows are reduced in their lanes, and what leaves is stored once", "[gpu]") {
  const std::string last = with_maxima(
      "for i in 16 { n[i] = 0f32 } for i in 16 { for j in 8 { n[i] = n[i] + (c[i, j] - m[i]) } } "
      "for i in 16 { R[i] = m[i] } for i in 16 { G[i] = n[i] } "
      "for i in 16 { for j in 8 { Y[i, j] = c[i, j] - m[i] } } for j in 8 { Q[j] = 0f32 }");
  const Result<codegen::Artifact> made = kernels(last);
  REQUIRE_OK(made);
  INFO(made->bytes);
  // Lanes that exchange maxima agree whatever is no number: of two rows of a lane, one after the other.
  CHECK(num_times(made->bytes, "pr_max_nan(") >= 4);
  CHECK(num_times(made->bytes, "pr_max<float>(") == 0);
  const ir::Program program = behind_product(last);
  CHECK(compare_on_host(program, program, gpu_target(), 1, kTwoOrders) == "");
  CHECK(check_races_and_compile(program, program, gpu_target(), "sm_80") == "");
}

TEST_CASE("what several lanes would store in one element is refused", "[gpu]") {
  const auto each = [](const char* store) {
    return kernels(fmt::format("for i in 16 {{ for j in 8 {{ {} }} }}", store));
  };
  REQUIRE_OK(each("Y[i, j] = c[i, j]"));
  const Result<codegen::Artifact> in_memory = each("Y[i, j] = max(Y[i, j], c[i, j])");
  REQUIRE_OK(in_memory);
  CHECK(num_times(in_memory->bytes, "pr_max_nan(") == 0);
  CHECK_DIAG(each("R[i] = R[i] + c[i, j]"), ThreadKernel);
  CHECK_DIAG(each("Q[j] = max(Q[j], c[i, j])"), ThreadKernel);
  CHECK_DIAG(each("Y[i // 2, j] = c[i, j]"), ThreadKernel);
  CHECK_DIAG(each("Y[i // 2, j] = Y[i // 2, j] + c[i, j]"), ThreadKernel);
  CHECK_DIAG(each("Y[i, j] = Y[15 - i, j] + c[i, j]"), ThreadKernel);
}

TEST_CASE("values of rows leave for elements of their own, which no other lane reads", "[gpu]") {
  const auto each = [](const char* store) {
    return kernels(with_maxima(fmt::format("for r in 16 {{ {} }}", store)));
  };
  REQUIRE_OK(each("G[r] = m[r]"));
  REQUIRE_OK(each("G[r] = G[r] + m[r]"));
  CHECK_DIAG(each("G[r // 8] = m[r]"), ThreadKernel);
  CHECK_DIAG(each("G[r // 8] = max(G[r // 8], m[r])"), ThreadKernel);
  CHECK_DIAG(each("G[r] = G[15 - r] + m[r]"), ThreadKernel);
  CHECK_DIAG(each("G[0] = m[r]"), ThreadKernel);
}

TEST_CASE("a value of a row that decides what is reduced into it is refused", "[gpu]") {
  const auto each = [](const char* body) {
    return kernels(with_maxima(fmt::format("for i in 16 {{ for j in 8 {{ {} }} }}", body)));
  };
  CHECK_DIAG(each("if (m[i] < c[i, j]) { m[i] = m[i] + c[i, j] }"), ThreadKernel);
  CHECK_DIAG(each("m[i] = m[i] + m[i]*c[i, j]"), ThreadKernel);
  CHECK_DIAG(each("m[i] = c[i, j]"), ThreadKernel);
  CHECK_DIAG(each("m[i] = max(m[15 - i], c[i, j])"), ThreadKernel);
}

// Nothing of a fragment is reduced into it: each thread has all of it, in any fragment.
TEST_CASE("a vector that no fragment is reduced into is in every thread", "[gpu]") {
  const Result<codegen::Artifact> made = kernels(
      "for i in 16 { n[i] = f32(i) } for i in 16 { for j in 8 { Y[i, j] = c[i, j]*n[i] } }");
  REQUIRE_OK(made);
  CHECK(num_times(made->bytes, "n_rows") == 0);
}

TEST_CASE("sums scaled and added to are one operation in registers alone", "[gpu]") {
  const Result<codegen::Artifact> in_registers = kernels(
      with_maxima("for i in 16 { for j in 8 { c[i, j] = c[i, j]*m[i] + c[i, j]*c[i, j] } }"));
  const Result<codegen::Artifact> in_memory = kernels(
      with_maxima("for i in 16 { for j in 8 { Y[i, j] = Y[i, j]*m[i] + c[i, j]*c[i, j] } }"));
  REQUIRE_OK(in_registers);
  REQUIRE_OK(in_memory);
  CHECK(num_times(in_registers->bytes, "pr_fma(") == num_times(in_memory->bytes, "pr_fma(") + 1);
}

TEST_CASE("results that become factors at other places are refused", "[gpu]") {
  const auto factor = [](const char* store) {
    return codegen::print_cuda_artifact(parse_or_die(fmt::format(R"(
program p(A: f16[16, 16], B: f16[16, 16], V: f16[16, 8]) -> (Y: f32[16, 8]) {{
  buffer a: f16[16, 16] local
  buffer b: f16[16, 16] local
  buffer c: f32[16, 16] local
  buffer p: f16[16, 16] local
  buffer v: f16[16, 8] local
  buffer o: f32[16, 8] local
  for z in 1 bind(block.x) {{ for w in 1 bind(thread.y) {{
    block "C" [vz: S(1) = z] {{
      reads A[0 +: 16, 0 +: 16], B[0 +: 16, 0 +: 16], V[0 +: 16, 0 +: 8]
      writes a[0 +: 16, 0 +: 16], b[0 +: 16, 0 +: 16], c[0 +: 16, 0 +: 16], p[0 +: 16, 0 +: 16], v[0 +: 16, 0 +: 8], o[0 +: 16, 0 +: 8], Y[0 +: 16, 0 +: 8]
      for i in 16 {{ for k in 16 {{ a[i, k] = A[i, k] }} }}
      for k in 16 {{ for j in 16 {{ b[k, j] = B[k, j] }} }}
      for k in 16 {{ for j in 8 {{ v[k, j] = V[k, j] }} }}
      for i in 16 {{ for j in 16 {{ c[i, j] = 0f32 }} }}
      for t in 2 {{ for i in 16 {{tensor_mma_m16n8k16_f16 = 1}} {{ for j in 8 {{ for k in 16 {{
        c[i, t*8 + j] = c[i, t*8 + j] + f32(a[i, k])*f32(b[k, t*8 + j]) }} }} }} }}
      for i in 16 {{ for j in 16 {{ {} }} }}
      for i in 16 {{ for j in 8 {{ o[i, j] = 0f32 }} }}
      for i in 16 {{tensor_mma_m16n8k16_f16 = 1}} {{ for j in 8 {{ for k in 16 {{
        o[i, j] = o[i, j] + f32(p[i, k])*f32(v[k, j]) }} }} }}
      for i in 16 {{ for j in 8 {{ Y[i, j] = o[i, j] }} }}
    }} }} }}
}})",
                                                                 store)),
                                        gpu_target());
  };
  REQUIRE_OK(factor("p[i, j] = f16(c[i, j])"));
  CHECK_DIAG(factor("p[j, i] = f16(c[i, j])"), Unsupported);
}

TEST_CASE("registers of rows are shared by the lanes that hold them, plain vectors by none",
          "[gpu]") {
  const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(parse_or_die(R"(
program p(A: f16[16, 16], B: f16[16, 8], X: f32[8]) -> (Y: f32[16, 8]) {
  buffer a: f16[16, 16] local
  buffer b: f16[16, 8] local
  buffer c: f32[16, 8] local
  buffer m: f32[16] local
  buffer x: f32[8] local
  for z in 1 bind(block.x) { for w in 1 bind(thread.y) {
    for i in 16 { for k in 16 { block "a" [vi: S(16) = i, vk: S(16) = k] { a[vi, vk] = A[vi, vk] } } }
    for k in 16 { for j in 8 { block "b" [vk: S(16) = k, vj: S(8) = j] { b[vk, vj] = B[vk, vj] } } }
    for i in 16 { for j in 8 { block "c" [vi: S(16) = i, vj: S(8) = j] { c[vi, vj] = 0f32 } } }
    block "C" [vz: S(1) = z] {
      reads a[0 +: 16, 0 +: 16], b[0 +: 16, 0 +: 8], c[0 +: 16, 0 +: 8]
      writes c[0 +: 16, 0 +: 8]
      for i in 16 {tensor_mma_m16n8k16_f16 = 1} { for j in 8 { for k in 16 {
        c[i, j] = c[i, j] + f32(a[i, k])*f32(b[k, j]) } } }
    }
    for i in 16 { for j in 8 { block "m" [vi: S(16) = i, vj: R(8) = j] {
      init { m[vi] = f32.ninf }
      m[vi] = max(m[vi], c[vi, vj]) } } }
    for j in 8 { block "x" [vj: S(8) = j] { x[vj] = X[vj] } }
    for i in 16 { for j in 8 { block "Y" [vi: S(16) = i, vj: S(8) = j] {
      Y[vi, vj] = (c[vi, vj] - m[vi])*x[vj] } } }
  } }
})"));
  REQUIRE_OK(needs);
  REQUIRE(needs->size() == 1);
  // Four of c, two of m, eight of x, beside what each kernel has.
  CHECK((*needs)[0].registers == 16 + 4 + 2 + 8);
}

}  // namespace
}  // namespace prunerc::testing
