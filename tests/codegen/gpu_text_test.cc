// What the text of kernels must hold, and which programs have none.
#include "codegen/codegen.h"
#include "codegen/cuda/print.h"
#include "ir/parser.h"
#include "tests/codegen/gpu_run.h"
#include "tests/support/check.h"
#include "tests/support/gpu_programs.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <regex>
#include <string>

namespace prunerc::testing {
namespace {

using ir::Program;

Result<codegen::Artifact> kernels_of(std::string_view text) {
  return codegen::print_cuda_artifact(parse_or_die(text), gpu_target());
}

std::string text_of(std::string_view name) {
  for (const GpuProgram& p : gpu_programs()) {
    if (p.name != name) continue;
    const Result<codegen::Artifact> artifact =
        codegen::print_cuda_artifact(p.scheduled, gpu_target("cuda-host:" + p.arch));
    REQUIRE_OK(artifact);
    return artifact->bytes;
  }
  FAIL("no such program");
  return "";
}

TEST_CASE("schedules become the instructions that they ask for", "[gpu]") {
  CHECK(num_times(text_of("matmul"), "pr_copy<16>") == 2);
  CHECK(num_times(text_of("matmul"), "pr_sync();") == 2);
  CHECK(num_times(text_of("softmax"), "pr_shfl_down") == 10);

  const std::string mma = text_of("matmul_ldmatrix");
  CHECK(num_times(mma, "pr_mma_m16n8k16_f16(") == 1);
  CHECK(num_times(mma, "pr_ldmatrix_x4(") == 1);
  CHECK(num_times(mma, "pr_ldmatrix_x4_trans(") == 1);

  // Rows of 32 halves, 8 more so that eight rows meet no bank twice: 64 * 40 and 32 * 72 elements.
  CHECK(num_times(text_of("matmul_aligned"), "PR_SHARED(smem, 9728);") == 1);

  // Both operands: stores and the rows of ldmatrix. No byte more than without.
  const std::string swizzled = text_of("matmul_swizzled");
  CHECK(num_times(swizzled, "pr_swizzled<64, 2>(") == 3);
  CHECK(num_times(swizzled, "pr_swizzled<128, 2>(") == 3);
  CHECK(num_times(swizzled, "PR_SHARED(smem, 24576);") == 1);
  // Steps of K along rows of A, and columns of a warp along those of B, move no row: they are XORed to
  // one address of all of them. What else copies of unrolled loops add to it is added then.
  for (const char* const read :
       {R"(pr_ldmatrix_x4\(.* / 16 \* 8\).*, i\d+ \* 32, i\d+ \* \d+\);)",
        R"(pr_ldmatrix_x4_trans\(.* / 16 \* 8\).*, i\d+ \* 32, (0|i\d+ \* \d+)\);)"}) {
    CHECK(std::regex_search(swizzled, std::regex(read)));
  }
  CHECK(num_times(swizzled, ") ^ (") == 0);

  const std::string async = text_of("matmul_cp_async");
  CHECK(num_times(async, "pr_cp_async<16>") == 4);
  CHECK(num_times(async, "pr_cp_async_commit();") == 2);
  CHECK(num_times(async, "pr_cp_async_wait<1>();") == 1);
  CHECK(num_times(async, "pr_sync();") == 1);
  CHECK(num_times(text_of("matmul_cp_async_padded"), "pr_cp_async_zfill<16>") == 4);

  // One warp to a row: its first lane writes, and no barrier stands in the loop over rows. Weights wait for maxima of their
  // own warp. What is rounded is so once.
  const std::string attention = text_of("attention_mma");
  CHECK(num_times(attention, "pr_shfl_down") == 10);
  CHECK(num_times(attention, "pr_sync();") == 7);
  CHECK(num_times(attention, "pr_sync_warp();") == 1);
  CHECK(num_times(attention, "pr_to_f16(pr_to_f32(") == 0);
}

TEST_CASE("shared memory holds the largest first, and smaller ones where they live at other times",
          "[gpu]") {
  // Scores of 32 rows (8192 bytes) and weights (4608): the tiles of Q, K and V lie within them.
  CHECK(num_times(text_of("attention_mma"), "PR_SHARED(smem, 12928);") == 1);

  // In one pass: a maximum and a sum of each tile take two exchanges each, and nothing but factors is shared.
  const std::string online = text_of("attention_online");
  CHECK(num_times(online, "pr_shfl_xor(") == 4);
  // Of a lane, of each exchange, and with what was there.
  CHECK(num_times(online, "pr_max_nan(") == 4);
  CHECK(num_times(online, "pr_exp_f16(") == 1);
  CHECK(num_times(online, "pr_mma_m16n8k16_f16(") == 2);
  CHECK(num_times(online, "pr_sync();") == 1);
}

std::string text_or_die(std::string_view program) {
  const Result<codegen::Artifact> artifact = kernels_of(program);
  REQUIRE_OK(artifact);
  return artifact->bytes;
}

// Sums of rows by threads, `value` of each element; `guard` of the block.
std::string sums(const std::string& value, const std::string& guard = "", int64_t row = 512) {
  const std::string n = std::to_string(row);
  return text_or_die("program p(A: f32[8, " + n +
                     "]) -> (B: f32[8]) { for i in 8 bind(block.x) { " +
                     "for j in 4 unrolled { for t in 32 bind(thread.x) { for v in 4 unrolled { " +
                     "block \"B\" [vi: S(8) = i, vj: R(" + n + ") = j*128 + (t*4 + v)] " + guard +
                     " { init { B[vi] = 0f32 } B[vi] = B[vi] + " + value + " } } } } } }");
}

TEST_CASE("what registers add up comes in vectors, if all of it is read", "[gpu]") {
  CHECK(num_times(sums("A[vi, vj]"), "pr_load<16>") == 1);
  CHECK(num_times(sums("A[vi, vj]*A[vi, vj]"), "pr_load<16>") >= 1);
  CHECK(num_times(sums("A[vi, vj]", "where t < 20"), "pr_load<16>") == 1);
  // Rows that do not begin at multiples of 16 bytes; lanes that end; values behind a condition;
  // columns.
  CHECK(num_times(sums("A[vi, vj]", "", 513), "pr_load<16>") == 0);
  CHECK(num_times(sums("A[vi, vj]", "where j*128 + (t*4 + v) < 399"), "pr_load<16>") == 0);
  CHECK(num_times(sums("select(vj < 399, A[vi, vj], 0f32)"), "pr_load<16>") == 0);
  CHECK(num_times(sums("A[vi, 511 - vj]"), "pr_load<16>") == 0);
}

// Rows of A, through the shared tile T, with what a condition chooses for each element.
Program chosen(const std::string& value) {
  return parse_or_die(R"(
program p(A: f32[8, 128], C: f32[8], D: f32[128]) -> (B: f32[8, 128]) {
  buffer T: f32[8, 128] shared
  for i in 8 bind(block.x) {
    for t in 32 bind(thread.x) { for v in 4 vectorized {
      block "T" [vi: S(8) = i, vj: S(128) = t*4 + v] { T[vi, vj] = A[vi, vj] } } }
    for t in 32 bind(thread.x) { for v in 4 vectorized {
      block "B" [vi: S(8) = i, vj: S(128) = t*4 + v] { B[vi, vj] = T[vi, vj] + )" +
                      value + R"( } } }
  }
})");
}

TEST_CASE("what conditions choose comes in vectors where it is read in any case, or may be",
          "[gpu]") {
  const auto num_vectors = [](const std::string& value) {
    const Program program = chosen(value);
    CAPTURE(value);
    CHECK(compare_on_host(program, program, gpu_target(), 1, kTwoOrders) == "");
    const Result<codegen::Artifact> text = codegen::print_cuda_artifact(program, gpu_target());
    REQUIRE_OK(text);
    return num_times(text->bytes, "pr_load<16>") - 1;  // but T
  };
  // As ONNX's Max of two tensors is written: NaN if one of them is.
  const std::string largest =
      "select(max(D[vj], A[vi, vj]) != max(D[vj], A[vi, vj]), A[vi, vj], max(A[vi, vj], D[vj]))";
  CHECK(num_vectors(largest) == 2);
  CHECK(num_vectors("select(C[vi] < 0f32, A[vi, vj]*2f32, A[vi, vj])") == 1);
  CHECK(num_vectors("select(C[vi] < 0f32, T[vi, vj]*2f32, 1f32)") == 0);  // the T before
  // Data of each lane decide; each element is there.
  CHECK(num_vectors("select(D[vj] < 0f32, A[vi, vj], 1f32)") == 2);
  CHECK(num_vectors("select(D[vj] < 0f32 && A[vi, vj] < 2f32, 1f32, 2f32)") == 2);
  // Not without the condition.
  CHECK(num_vectors("select(C[vi] < 0f32 && vj < 124, A[vi, vj + 4], 1f32)") == 0);
  CHECK(num_vectors("select(C[vi] < 0f32 && 4 <= vj, D[vj - 4], 1f32)") == 0);
  CHECK(num_vectors("select(D[vj] < 0f32 && 0 < vi, A[7 // vi, vj], 1f32)") == 1);
  // What an index or a row's data hide is not fetched, whatever else hides it.
  CHECK(num_vectors("select(C[vi] < 0f32, A[vi, vj], D[vj])") == 0);
  CHECK(num_vectors("select(vj < 64 && C[vi] < 0f32, D[vj], 1f32)") == 0);
  CHECK(num_vectors("select(vj < 64 || A[vi, vj] < 0f32, D[vj], 1f32)") == 0);
  CHECK(num_vectors("select(vj < 64, D[vj], 1f32)") == 0);
  CHECK(num_vectors("select(vj < 64, select(C[vi] < 0f32, D[vj], 2f32), 1f32)") == 0);
}

// Blocks of 4 x 4 bytes of A, rows for columns, through the shared tile T: `value` of T[vn, vk], what is `read`
// of it. A note keeps the block's `guard` inside of the loop over rows.
Program turned(const std::string& value, int64_t columns = 32, const std::string& guard = "",
               const std::string& read = "T[wn, wk]") {
  const std::string note = guard.empty() ? "" : "{note = 1} ";
  return parse_or_die("program p(A: i8[64, " + std::to_string(columns) + R"(]) -> (B: i8[32, 64]) {
  buffer T: i8[32, 64] shared
  for b in 1 bind(block.x) {
    for h in 16 { for t in 8 bind(thread.x) { for r in 4 unrolled )" +
                      note + R"({ for c in 4 vectorized {
      block "T" [vn: S(32) = t*4 + r, vk: S(64) = h*4 + c] )" +
                      guard + " { T[vn, vk] = " + value + R"( } } } } }
    for h2 in 32 { for t2 in 8 bind(thread.x) { for v in 8 vectorized {
      block "B" [wn: S(32) = h2, wk: S(64) = t2*8 + v] { B[wn, wk] = )" +
                      read + R"( } } } }
  }
})");
}

TEST_CASE("blocks of bytes whose rows become columns are turned in registers", "[gpu]") {
  const auto text_of_turned = [](const std::string& value, int64_t columns = 32) {
    const Program program = turned(value, columns);
    CAPTURE(value);
    CHECK(compare_on_host(program, program, gpu_target(), 1, kTwoOrders) == "");
    const Result<codegen::Artifact> text = codegen::print_cuda_artifact(program, gpu_target());
    REQUIRE_OK(text);
    return text->bytes;
  };
  const auto is_turned = [&](const std::string& value, int64_t columns = 32) {
    return num_times(text_of_turned(value, columns), "pr_transpose_4x4(") == 1;
  };
  const std::string plain = text_of_turned("A[vk, vn]");
  CHECK(num_times(plain, "pr_transpose_4x4(") == 1);
  CHECK(num_times(plain, "pr_load<4>(") == 4);
  CHECK(num_times(plain, "pr_store<4>(") == 4);
  CHECK(is_turned("A[vk, vn]", 36));
  // Words that are left out, from the middle of a block on, and blocks.
  CHECK(num_times(text_of_turned("select(vk < 61, A[vk, vn], 0i8)"), "pr_copy_zfill<4>(") == 4);
  CHECK(is_turned("select(vn < 20, A[vk, vn], 0i8)"));
  CHECK(is_turned("select(vk < 61, select(vn < 20, A[vk, vn], 0i8), 0i8)"));
  // Parts of words; words at no multiple of four; other values.
  CHECK_FALSE(is_turned("select(vn < 21, A[vk, vn], 0i8)"));
  CHECK_FALSE(is_turned("A[vk, vn]", 33));
  CHECK_FALSE(is_turned("A[vk, vn + 2]", 36));
  CHECK_FALSE(is_turned("A[vk, 31 - vn]"));
  CHECK_FALSE(is_turned("A[vk, vn] - 1i8"));
  CHECK_FALSE(is_turned("select(vk < 61, A[vk, vn], 1i8)"));
  CHECK_FALSE(is_turned("select(A[vk, 0] < 0i8, A[vk, vn], 0i8)"));
}

TEST_CASE("blocks that a condition leaves out are not turned, and its numbers may leave int",
          "[gpu]") {
  const auto text_where = [](const std::string& guard, const std::string& read) {
    CAPTURE(guard);
    const Program program = turned("A[vk, vn]", 32, "where " + guard, read);
    CHECK(compare_on_host(program, program, gpu_target(), 1, kTwoOrders) == "");
    const Result<codegen::Artifact> text = codegen::print_cuda_artifact(program, gpu_target());
    REQUIRE_OK(text);
    return text->bytes;
  };
  const std::string small = text_where("h < 10", "select(wk < 40, T[wn, wk], 0i8)");
  INFO(small);
  CHECK(num_times(small, "pr_transpose_4x4(") == 1);
  CHECK(num_times(small, "(pr_i64)") == 0);
  // Less than 2^31 where it holds, more in other threads.
  const std::string large =
      text_where("t*400000001 + h < 2000000012", "select(wn < 20, T[wn, wk], 0i8)");
  INFO(large);
  CHECK(num_times(large, "pr_transpose_4x4(") == 1);
  CHECK(num_times(large, "(pr_i64)") >= 1);
}

TEST_CASE("what threads of the kernel write is not read where a condition leaves it out", "[gpu]") {
  const auto text_with = [](const std::string& value) {
    return text_or_die(R"(
program p(A: f32[128], C: f32[1]) -> (B: f32[128]) {
  buffer T: f32[128] shared
  for b in 1 bind(block.x) {
    for t in 32 bind(thread.x) { for v in 4 vectorized {
      block "T" [w: S(128) = t*4 + v] { T[w] = A[w] } } }
    for t in 32 bind(thread.x) { for v in 4 vectorized {
      block "B" [w: S(128) = t*4 + v] { B[w] = )" +
                       value + R"( } } }
  }
})");
  };
  CHECK(num_times(text_with("select(C[0] < 0f32, T[w]*2f32, 1f32)"), "pr_load<16>") == 0);
  CHECK(num_times(text_with("select(C[0] < 0f32, T[w]*2f32, T[w])"), "pr_load<16>") == 1);
  CHECK(num_times(text_with("select(A[w] < 0f32, A[w]*2f32, T[w])"), "pr_load<16>") == 1);
}

TEST_CASE("plain copies to shared memory are written out as far as registers go", "[gpu]") {
  const auto copied = [](int rows, const std::string& value, const std::string& guard = "") {
    const std::string text = R"(
program p(A: f32[ROWS, 64]) -> (C: f32[ROWS, 64]) {
  buffer S: f32[ROWS, 64] shared
  for b in 1 bind(block.x) {
    for i in ROWS { for t in 64 bind(thread.x) {
      block "S" [v: S(ROWS) = i, w: S(64) = t] { GUARD S[v, w] = VALUE } } }
    for i in ROWS { for t in 64 bind(thread.x) {
      block "C" [v: S(ROWS) = i, w: S(64) = t] { C[v, w] = S[v, 63 - w] } } }
  }
})";
    const std::string number = std::to_string(rows);
    std::string filled = std::regex_replace(text, std::regex("ROWS"), number);
    filled = replaced(replaced(filled, "GUARD", guard), "VALUE", value);
    const Result<codegen::Artifact> kernels = kernels_of(filled);
    REQUIRE_OK(kernels);
    return kernels->bytes;
  };
  // All of them, a divisor that is not much less than 32, else 32 and a rest.
  CHECK(num_times(copied(20, "A[v, w]"), "#pragma unroll 20\n") == 1);
  CHECK(num_times(copied(40, "A[v, w]"), "#pragma unroll 20\n") == 1);
  CHECK(num_times(copied(37, "A[v, w]"), "#pragma unroll 32\n") == 1);
  // Loops over results of arithmetic and conditions are left as they are.
  CHECK(num_times(copied(20, "A[v, w] + 1f32"), "#pragma unroll 1\n") == 2);
  CHECK(num_times(copied(20, "select(w < 60, A[v, w], 0f32)"), "#pragma unroll 1\n") == 2);
  CHECK(num_times(copied(20, "A[v, w] }", "if v*3 + w < 100 {"), "#pragma unroll 20\n") == 0);
}

TEST_CASE("a quotient is approximate unless something makes a jump of it", "[gpu]") {
  const auto quotient = [](const std::string& value, const std::string& type = "f32") {
    return num_times(
        text_or_die("program p(A: " + type + "[8], B: " + type + "[8]) -> (C: " + type +
                    "[8]) { for i in 8 bind(thread.x) { block \"C\" [v: S(8) = i] " +
                    "{ C[v] = " + value + " } } }"),
        "pr_div_approx(");
  };
  CHECK(quotient("exp(A[v]/B[v])") == 1);
  CHECK(quotient("max(A[v]/B[v], 0f32)") == 1);
  CHECK(quotient("floor(A[v]/B[v])") == 0);
  CHECK(quotient("f32(i32(A[v]/B[v]))") == 0);
  CHECK(quotient("select(A[v]/B[v] < 1f32, A[v], B[v])") == 0);
  CHECK(quotient("A[v]/B[v]", "f64") == 0);
}

TEST_CASE("a program of several nests becomes a kernel each, with a workspace between", "[gpu]") {
  const Result<codegen::Artifact> artifact = kernels_of(R"(
program p(A: f32[8]) -> (B: f32[8]) {
  buffer T: f32[8] global
  for i in 8 bind(thread.x) { block "T" [v: S(8) = i] { T[v] = A[v] + 1f32 } }
  for i in 8 bind(block.x) { block "B" [v: S(8) = i] { B[v] = T[7 - v] } }
})");
  REQUIRE_OK(artifact);
  REQUIRE(artifact->launches.size() == 2);
  CHECK(artifact->launches[0].block[0] == 8);
  CHECK(artifact->launches[1].grid[0] == 8);
  CHECK(artifact->launches[1].args[1].kind == codegen::LaunchArgKind::kWorkspace);
  CHECK(artifact->workspace_bytes == 256);
}

TEST_CASE("programs that are no kernels are refused", "[gpu]") {
  CHECK_DIAG(kernels_of(R"(
program p(A: f32[4, 8]) -> (B: f32[4, 8]) {
  for i in 4 { for j in 8 bind(thread.x) {
    block "B" [v: S(4) = i, w: S(8) = j] { B[v, w] = A[v, w] } } }
})"),
             ThreadKernel);
  CHECK_DIAG(kernels_of(R"(
program p(A: f32[4, 8]) -> (B: f32[4, 8]) {
  for i in 4 bind(block.y) { for k in 2 { for j in 4 bind(block.x) {
    block "B" [v: S(4) = i, w: S(8) = k*4 + j] { B[v, w] = A[v, w] } } } }
})"),
             ThreadKernel);
  CHECK_DIAG(kernels_of(R"(
program p(A: f32[2048]) -> (B: f32[2048]) {
  for i in 2048 bind(thread.x) { block "B" [v: S(2048) = i] { B[v] = A[v] } }
})"),
             GpuLimit);
  CHECK_DIAG(kernels_of(R"(
program p(A: f32[65536]) -> (B: f32[65536]) {
  buffer T: f32[65536] shared
  for b in 1 bind(block.x) {
    for i in 256 bind(thread.x) { for j in 256 {
      block "T" [v: S(65536) = i*256 + j] { T[v] = A[v] } } }
    for i in 256 bind(thread.x) { for j in 256 {
      block "B" [v: S(65536) = i*256 + j] { B[v] = T[65535 - v] } } }
  }
})"),
             GpuLimit);
  CHECK_DIAG(kernels_of(R"(
program p(A: f32[8]) -> (B: f32[8]) {
  buffer T: f32[8] local
  for b in 1 bind(block.x) {
    for i in 8 bind(thread.x) { block "T" [v: S(8) = i] { T[v] = A[v] } }
    for i in 8 bind(thread.x) { block "B" [v: S(8) = i] { B[v] = T[7 - v] } }
  }
})"),
             ThreadOwner);
}

TEST_CASE("a tile whose rows are not whole panels cannot be swizzled", "[gpu]") {
  const auto swizzled = [](const std::string& bytes) {
    return kernels_of(R"(
program p(A: f32[4, 48]) -> (B: f32[4, 48]) {
  buffer T: f32[4, 48] shared
  for b in 2 bind(block.x) {
    for i in 4 bind(thread.y) { for j in 24 bind(thread.x) {
      block "T" [v: S(4) = i, w: S(48) = b*24 + j] {swizzle_0 = )" +
                      bytes + R"(} { T[v, w] = A[v, w] } } }
    for i in 4 bind(thread.y) { for j in 24 bind(thread.x) {
      block "B" [v: S(4) = i, w: S(48) = b*24 + j] { B[v, w] = T[v, w] } } }
  }
})");
  };
  CHECK_DIAG(swizzled("128"), SwizzleForm);
  CHECK_DIAG(swizzled("0"), SwizzleForm);
  // Rows of 96 bytes are three panels of 32.
  const Result<codegen::Artifact> whole = swizzled("96");
  REQUIRE_OK(whole);
  CHECK(num_times(whole->bytes, "pr_swizzled<32, 4>(") == 2);
}

TEST_CASE("a tensor loop whose operands are in the wrong place is refused", "[gpu]") {
  CHECK_DIAG(kernels_of(R"(
program p(A: f16[16, 16], B: f16[16, 8]) -> (C: f32[16, 8]) {
  for b in 1 bind(block.x) { for w in 1 bind(thread.y) {
    block "C" [vb: S(1) = b] {
      reads A[0 +: 16, 0 +: 16], B[0 +: 16, 0 +: 8], C[0 +: 16, 0 +: 8]
      writes C[0 +: 16, 0 +: 8]
      for i in 16 { for j in 8 { C[i, j] = 0f32 } }
      for i in 16 {tensor_mma_m16n8k16_f16 = 1} { for j in 8 { for k in 16 {
        C[i, j] = C[i, j] + f32(A[i, k])*f32(B[k, j]) } } }
    } } }
})"),
             TensorTarget);
}

}  // namespace
}  // namespace prunerc::testing
