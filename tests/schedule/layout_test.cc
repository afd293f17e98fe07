// Layouts of intermediates, blocks of loops, tensor intrinsics.
#include "ir/printer.h"
#include "schedule/primitive.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

std::string layout(std::string_view block, std::string_view map, std::string_view pad = "[]") {
  return "transform_layout(" + std::string(block) + ", 0, \"" + std::string(map) + "\", " +
         std::string(pad) + ")";
}

constexpr std::string_view kReadOutside = R"(
program outside(X: f32[8]) -> (Y: f32[8]) {
  buffer T: f32[8] global
  for i in 8 @L0 { block "T" @B0 [v: S(8) = i] { T[v] = X[v] } }
  for i in 8 @L1 { if T[i] < 1f32 { block "Y" @B1 [v: S(8) = i] { Y[v] = X[v] } }
                   if 1f32 <= T[i] { block "Z" @B2 [v: S(8) = i] { Y[v] = 0f32 } } }
})";

constexpr std::string_view kHalves = R"(
program halves(X: f32[10]) -> (Y: f32[10]) {
  buffer T: f32[10] global
  for i in 5 @L0 { block "T" @B0 [v: S(5) = i] { T[v] = X[v] } }
  for i in 5 @L1 { block "U" @B1 [v: S(5) = i] { T[v + 5] = X[v]*2f32 } }
  for i in 10 @L2 { block "Y" @B2 [v: S(10) = i] { Y[v] = T[v] } }
})";

constexpr std::string_view kSmall = R"(
program small(X: u8[10]) -> (Y: u8[10]) {
  buffer T: u8[10] global
  for i in 10 @L0 { block "T" @B0 [v: S(10) = i] { T[v] = X[v] } }
  for i in 10 @L1 { block "Y" @B1 [v: S(10) = i] { Y[v] = T[v] } }
})";

TEST_CASE("the layout of an intermediate changes, or the reason is said") {
  const Case cases[] = {
      {kDenseRelu, layout("@B0", "(i, j) -> (j, i)"), ""},
      {kDenseRelu, layout("@B0", "(i, j) -> (i // 4, j // 4, i % 4, j % 4)"), ""},
      {kDenseRelu, layout("@B0", "(i, j) -> (i*16 + j)"), ""},
      {kDenseRelu, layout("@B0", "(i, j) -> (j // 5, i, j % 5)"), ""},
      {kDenseRelu, layout("@B0", "(i, j) -> (j*2, 7 - i)"), ""},
      {kConv, layout("@B0", "(c, h, w) -> (h, w, c)"), ""},
      {kConv, layout("@B0", "(c, h, w) -> (h // 4, w, c, h % 4)", "[0]"), ""},
      {kConv, layout("@B0", "(c, h, w) -> (h // 4, w, c, h % 4)", "[3]"), ""},
      {kChain, layout("@B0", "(i) -> (i // 4, i % 4)", "[1]"), ""},
      {kChain,
       layout("@B0", "(i) -> (i // 5, i % 5)") + "\n" + layout("@B0", "(a, b) -> (b, a)") +
           "\ncompute_at(@B0, @L1)",
       ""},
      {kChain, layout("@B0", "(i) -> (i // 4, i % 4)") + "\ncompute_at(@B0, @L1)", ""},
      {kStencil, "compute_at(@B0, @L1)\n" + layout("@B0", "(i) -> (i // 4, i % 4)"), ""},
      {kHalves, layout("@B1", "(i) -> (i % 5, i // 5)"), ""},
      {kChain, layout("@B2", "(i) -> (i)"), "LayoutForm"},
      {kChain, layout("@B9", "(i) -> (i)"), "BlockNotFound"},
      {kChain, "transform_layout(@B0, 1, \"(i) -> (i)\", [])", "AccessIndexRange"},
      {kChain, layout("@B0", "i"), "IndexMapText"},
      {kChain, layout("@B0", "(i, j) -> (i, j)"), "IndexMapArity"},
      {kChain, layout("@B0", "(i) -> (i // 2)"), "IndexMapNotInjective"},
      {kChain, layout("@B0", "(i) -> (i // 4, i % 4)", "[1, 2]"), "LayoutForm"},
      {kSmall, layout("@B0", "(i) -> (i // 4, i % 4)", "[255]"), ""},
      {kSmall, layout("@B0", "(i) -> (i // 4, i % 4)", "[256]"), "LayoutForm"},
      {kReadOutside, layout("@B0", "(i) -> (i // 4, i % 4)"), "LayoutForm"},
      {kHalves, layout("@B0", "(i) -> (i // 4, i % 4)", "[0]"), "LayoutForm"},
      {kDenseRelu, "storage_align(@B0, 0, 0, 8, 4)\n" + layout("@B0", "(i, j) -> (j, i)"),
       "LayoutForm"},
      {kDenseRelu,
       "set_scope(@B0, 0, \"shared\")\nswizzle(@B0, 0, 64)\n" + layout("@B0", "(i, j) -> (j, i)"),
       "LayoutForm"},
      {kChain, layout("@B0", "(i) -> (i*3)", "[0]"), "LayoutForm"},
      {kDenseRelu, layout("@B0", "(i, j) -> (j // 5, i, j % 5)", "[0]"), "LayoutForm"},
      {kChain, "split(@L0, [-1, 3])\n" + layout("@B0", "(i) -> (i // 4, i % 4)", "[0]"),
       "LayoutForm"},
      {kStencil, "compute_at(@B0, @L1)\n" + layout("@B0", "(i) -> (i // 4, i % 4)", "[0]"),
       "LayoutForm"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("padding is written with the value that is given") {
  const schedule::Schedule s = check_steps(kChain, layout("@B0", "(i) -> (i // 4, i % 4)", "[1]"));
  CHECK(print(s.program()).find("[v0, v1] = select(v0*4 + v1 < 10, X[v0*4 + v1] + 1f32, 1f32)") !=
        std::string::npos);
}

constexpr std::string_view kHolder = R"(
program holder(X: f32[8]) -> (Y: f32[8]) {
  for i in 2 @L0 { block "Y" @B0 [v: S(2) = i] {
    for j in 4 @L1 { block "inner" @B1 [w: S(4) = j] { Y[v*4 + w] = X[v*4 + w] } }
  } }
})";

constexpr std::string_view kDiagonal = R"(
program diagonal(X: f32[4, 8]) -> (Y: f32[4, 8]) {
  for i in 4 @L0 { for j in 8 @L1 {
    block "Y" @B0 [vi: S(4) = i, vj: S(8) = (i + j) % 8] { Y[vi, vj] = X[vi, vj] }
  } }
})";

constexpr std::string_view kOpaqueRow = R"(
program opaque(X: f32[8]) -> (Y: f32[8]) {
  for i in 8 @L0 { block "Y" @B0 [v: O(8) = i] { Y[v] = X[v] } }
})";

TEST_CASE("a nest becomes one block that computes a tile, or the reason is said") {
  const Case cases[] = {
      {kMatmul, "blockize(@L0)", ""},
      {kMatmul, "blockize(@L1)", ""},
      {kMatmul, "blockize(@L2)", ""},
      {kMatmul,
       "split(@L0, [4, 4])\nsplit(@L1, [2, 8])\nsplit(@L2, [8, 4])\n"
       "reorder([@L3, @L5, @L7, @L4, @L6, @L8])\nblockize(@L4)",
       ""},
      {kMatmul, "split(@L2, [8, 4])\nblockize(@L4)\ndecompose_reduction(@B0, @L3)", ""},
      {kDenseRelu,
       "split(@L1, [4, 4])\nreorder([@L5, @L2, @L6])\nblockize(@L6)\ncompute_at(@B0, @L3)", ""},
      {kDenseRelu, "split(@L4, [4, 4])\nblockize(@L6)\nreverse_compute_at(@B1, @L0)", ""},
      {kMatmul, "split(@L1, [2, 8])\nblockize(@L4)\nreorder([@L3, @L0])", ""},
      {kMatmul, "split(@L1, [2, 8])\nreorder([@L2, @L4])\nblockize(@L4)\nparallel(@L3)", ""},
      {kChain, "split(@L0, [5, 2])\nblockize(@L4)", ""},
      {kFold, "decompose_reduction(@B0, @L1)\nblockize(@L1)", ""},
      {kConv, "blockize(@L7)", ""},
      {kConv, "split(@L5, [2, 4])\nreorder([@L6, @L7, @L8, @L10])\nblockize(@L10)", ""},
      {kMatmul, "blockize(@L9)", "LoopNotFound"},
      {kMatmul, "vectorize(@L1)\nblockize(@L0)", "LoopNotSerial"},
      {kMatmul, "annotate_loop(@L2, \"unroll\", 2)\nblockize(@L1)", "LoopHasAttr"},
      {kChain, "split(@L0, [4, 3])\nblockize(@L4)", "BlockizeForm"},
      {kHolder, "blockize(@L0)", "BlockNested"},
      {kHolder, "blockize(@L1)", "BlockNested"},
      {kDiagonal, "blockize(@L1)", "BlockizeForm"},
      {kOpaqueRow, "blockize(@L0)", "BlockizeForm"},
      {kFold, "blockize(@L1)", "BlockOrderFixed"},
      {kChain, "compute_at(@B0, @L1)\nblockize(@L1)", "BlockizeForm"},
      {kStencil, "compute_at(@B0, @L1)\nsplit(@L2, [3, 1])\nblockize(@L2)", "LoopNotFound"},
      {kStencil, "compute_at(@B0, @L1)\nblockize(@L2)", "BlockizeForm"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("a tile is initialised as a whole before its first update") {
  const schedule::Schedule s =
      check_steps(kMatmul,
                  "split(@L1, [2, 8])\nsplit(@L2, [8, 4])\nreorder([@L3, @L5, @L4, @L6])\n"
                  "blockize(@L4) -> @B0, @L7");
  const std::string text = print(s.program());
  CHECK(text.find("vj: S(2) = j_0, vk: R(8) = k_0]") != std::string::npos);
  CHECK(text.find("for j_1 in 8 @L7 {\n              C[vi, vj*8 + j_1] = 0f32") !=
        std::string::npos);
}

/// C = A B of bytes, ready for VNNI: panels of B in groups of four.
constexpr std::string_view kBytes = R"(
program bytes(A: u8[6, 8], B: i8[8, 32]) -> (C: i32[6, 32]) {
  for i in 6 @L0 { for j in 32 @L1 { for k in 8 @L2 {
    block "C" @B0 [vi: S(6) = i, vj: S(32) = j, vk: R(8) = k] {
      init { C[vi, vj] = 0i32 }
      C[vi, vj] = C[vi, vj] + i32(A[vi, vk])*i32(B[vk, vj])
  } } }
} })";

const std::string kTiles =
    "split(@L1, [2, 16])\nsplit(@L2, [2, 4])\nreorder([@L3, @L5, @L4, @L6])\n";
const std::string kPacked =
    "cache_read(@B0, 1, \"global\")\n"
    "transform_layout(@B1, 0, \"(k, j) -> (k // 4, j, k % 4)\", [])\n"
    "split(@L1, [2, 16])\nsplit(@L2, [2, 4])\nreorder([@L5, @L7, @L6, @L8])\n";

TEST_CASE("hole: a tensorize mismatch is left as a scalar loop") {
  // B's rows are not packed: an error with the difference, and the program is as it was.
  check_rejected(kBytes, kTiles + "tensorize(@L4, \"x86_vpdpbusd_16x4\")", "TensorMismatch");
}

TEST_CASE("a nest that computes what an intrinsic does stands for it; no other does") {
  const std::string vnni = "\"x86_vpdpbusd_16x4\")";
  const Case cases[] = {
      {kBytes, kPacked + "tensorize(@L6, " + vnni, ""},
      {kBytes, kPacked + "blockize(@L6)\ntensorize(@L6, " + vnni, ""},
      {kBytes, kPacked + "decompose_reduction(@B0, @L7)\ntensorize(@L6, " + vnni, ""},
      {kBytes, kPacked + "reorder([@L5, @L7, @L8, @L6])\ntensorize(@L8, " + vnni, ""},
      {kBytes, kPacked + "tensorize(@L6, " + vnni + "\ndecompose_reduction(@B0, @L7)", ""},
      // Tiles are moved and exchanged as elements are.
      {kBytes,
       kPacked + "tensorize(@L6, " + vnni +
           "\ncache_write(@B0, 0, \"local\")\nreverse_compute_at(@B2, @L5)",
       ""},
      {kBytes, kPacked + "tensorize(@L6, " + vnni + "\nreorder([@L7, @L5, @L0])", ""},
      {kBytes, kPacked + "tensorize(@L6, " + vnni + "\nunroll(@L7)\nparallel(@L0)", ""},
      {kBytes, kPacked + "annotate_loop(@L6, \"tensor_x86_vpdpbusd_16x4\", 1)", "AttrReserved"},
      {kBytes, kPacked + "tensorize(@L6, \"x86_nothing\")", "TensorUnknown"},
      {kBytes, kPacked + "tensorize(@L99, " + vnni, "LoopNotFound"},
      {kBytes, kPacked + "tensorize(@L8, " + vnni, "TensorMismatch"},
      {kBytes, kPacked + "tensorize(@L7, " + vnni, "TensorMismatch"},
      {kBytes, kPacked + "tensorize(@L6, \"x86_vdpbf16ps_16x2\")", "TensorMismatch"},
      {kBytes, kPacked + "tensorize(@L6, \"arm_sdot_4x4\")", "TensorMismatch"},
      // B's rows are not packed: the instruction would read other bytes.
      {kBytes, kTiles + "tensorize(@L4, " + vnni, "TensorMismatch"},
      {kBytes, kPacked + "tensorize(@L6, " + vnni + "\ntensorize(@L6, " + vnni, "LoopHasAttr"},
      {kBytes, kPacked + "tensorize(@L6, " + vnni + "\nsplit(@L6, [4, 4])", "LoopHasAttr"},
      // A layout that the intrinsic cannot read is refused after it, too.
      {kBytes,
       kPacked + "tensorize(@L6, " + vnni + "\n" +
           layout("@B1", "(a, b, c) -> (b // 16, a, b % 16, c)"),
       ""},
      {kBytes, kPacked + "tensorize(@L6, " + vnni + "\n" + layout("@B1", "(a, b, c) -> (a, c, b)"),
       "TensorMismatch"},
      {kMatmul, "split(@L1, [4, 4])\ntensorize(@L2, \"x86_vdpbf16ps_16x2\")", "TensorMismatch"},
      {kFold, "tensorize(@L1, " + vnni, "BlockOrderFixed"},
  };
  for (const Case& c : cases) check(c);
}

/// C = A B in half precision, one tile of a 16 x 16 x 16 product a step.
constexpr std::string_view kHalf = R"(
program half(A: f16[32, 16], B: f16[16, 16]) -> (C: f32[32, 16]) {
  for i in 32 @L0 { for j in 16 @L1 { for k in 16 @L2 {
    block "C" @B0 [vi: S(32) = i, vj: S(16) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk])*f32(B[vk, vj])
  } } } }
})";

TEST_CASE("tensor cores' products are recognised in a plain matrix product") {
  const std::string rows = "split(@L0, [2, 16])\n";
  const Case cases[] = {
      {kHalf, rows + "tensorize(@L4, \"wmma_16x16x16_f16\")", ""},
      {kHalf,
       rows + "split(@L1, [2, 8])\nreorder([@L5, @L4])\ntensorize(@L4, \"mma_m16n8k16_f16\")", ""},
      {kHalf, rows + "tensorize(@L4, \"wmma_16x16x16_bf16\")", "TensorMismatch"},
      {kHalf, rows + "tensorize(@L4, \"mma_m16n8k16_f16\")", "TensorMismatch"},
  };
  for (const Case& c : cases) check(c);
}

}  // namespace
}  // namespace prunerc::testing
