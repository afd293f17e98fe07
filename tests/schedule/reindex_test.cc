// Copies indexed by a block's variables, bijections of blocks, padding in and out.
#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

/// Y[v] = a window of X that may leave it: only the condition keeps it inside.
constexpr std::string_view kWindow = R"(
program window(X: f32[10]) -> (Y: f32[10]) {
  buffer T: f32[10] global
  for i in 10 @L0 { block "T" @B0 [v: S(10) = i] { T[v] = X[v]*2f32 } }
  for i in 10 @L1 { block "Y" @B1 [v: S(10) = i] { Y[v] = select(1 <= v, T[v - 1], 0f32) } }
})";

constexpr std::string_view kTwice = R"(
program twice(X: f32[10]) -> (Y: f32[9]) {
  for i in 9 @L0 { block "Y" @B0 [v: S(9) = i] { Y[v] = X[v] + X[v + 1] } }
})";

constexpr std::string_view kFlat = R"(
program flat(X: f32[4, 8]) -> (Y: f32[32]) {
  for i in 4 @L0 { for j in 8 @L1 {
    block "Y" @B0 [vi: S(4) = i, vj: S(8) = j] { Y[vi*8 + vj] = X[vi, 7 - vj] }
  } }
})";

constexpr std::string_view kGather = R"(
program gather(X: f32[10], I: i64[4]) -> (Y: f32[4]) {
  for i in 4 @L0 { block "Y" @B0 [v: S(4) = i] { Y[v] = X[max(0, min(9, I[v]))] } }
})";

constexpr std::string_view kGuarded = R"(
program guarded(X: f32[8]) -> (Y: f32[8]) {
  for i in 8 @L0 { block "Y" @B0 [v: S(8) = i] where i < 4 { Y[v] = X[v] } }
  for i in 8 @L1 { block "Z" @B1 [v: S(8) = i] where 4 <= i { Y[v] = 0f32 } }
})";

constexpr std::string_view kNest = R"(
program nest(X: f32[6]) -> (Y: f32[6], Z: f32[6]) {
  for i in 6 @L0 {
    block "Y" @B0 [v: S(6) = i] { Y[v] = X[v] }
    block "Z" @B1 [v: S(6) = i] { Z[v] = Y[v] + 1f32 }
  }
})";

std::string cache(std::string_view side, std::string_view map, std::string_view block = "@B0",
                  int index = 0) {
  return "reindex_cache_" + std::string(side) + "(" + std::string(block) + ", " +
         std::to_string(index) + ", \"local\", \"" + std::string(map) + "\")";
}

TEST_CASE("a block is reindexed through a copy, or the reason is said") {
  const Case cases[] = {
      {kConv, "reindex(@B1, \"read\", 0)", ""},
      {kConv, "reindex(@B1, \"read\", 1)", ""},
      {kConv, "reindex(@B1, \"write\", 0)", ""},
      {kMatmul, "reindex(@B0, \"read\", 1)\nreindex(@B0, \"write\", 0)", ""},
      {kFlat, "reindex(@B0, \"read\", 0)", ""},
      {kFlat, "reindex(@B0, \"write\", 0)", ""},
      {kMatmul, "split(@L0, [4, 4])\nreindex(@B0, \"read\", 0)", ""},
      {kMatmul, "split(@L0, [-1, 5])\nreindex(@B0, \"write\", 0)", ""},
      {kNest, "reindex(@B1, \"write\", 0)", ""},
      {kMatmul, "reindex(@B0, \"side\", 0)", "AccessSide"},
      {kMatmul, "reindex(@B7, \"read\", 0)", "BlockNotFound"},
      {kMatmul, "reindex(@B0, \"read\", 2)", "AccessIndexRange"},
      {kTwice, "reindex(@B0, \"read\", 0)", "ReindexForm"},
      {kGather, "reindex(@B0, \"read\", 0)", "ReindexForm"},
      {kWindow, "reindex(@B1, \"read\", 0)", "ReindexForm"},
      {kGuarded, "reindex(@B0, \"write\", 0)", "BufferManyWriters"},
      {kNest, "reindex(@B1, \"read\", 0)", "BlockProducerLate"},
      {kNest, "reindex(@B0, \"write\", 0)", "CacheReaderInside"},
      {kMatmul, "blockize(@L2)\nreindex(@B0, \"read\", 0)", "ReindexForm"},
      {kMatmul, "blockize(@L2)\nreindex(@B0, \"write\", 0)", "ReindexForm"},
      {kMatmul, "decompose_reduction(@B0, @L2)\nreindex(@B0, \"write\", 0)", "BufferManyWriters"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("the copy of a reindexed block has the layout of the map") {
  const Case cases[] = {
      {kMatmul, cache("read", "(i, j, k) -> (k, i)"), ""},
      {kMatmul, cache("read", "(i, j, k) -> (k // 8, i, k % 8)"), ""},
      {kMatmul, cache("read", "(i, j, k) -> (k // 5, i, k % 5)"), ""},
      {kMatmul, cache("write", "(i, j, k) -> (j // 4, i, j % 4)"), ""},
      {kConv, cache("read", "(f, h, w, c, r, s) -> (h*8 + w, c*9 + r*3 + s)", "@B1"), ""},
      {kConv, cache("write", "(f, h, w, c, r, s) -> (h*8 + w, f)", "@B1"), ""},
      {kMatmul, cache("read", "(i, j, k) -> (i, j, k)"), "ReindexForm"},
      {kMatmul, cache("read", "(i, j, k) -> (k, j)"), "IndexMapNotInjective"},
      {kMatmul, cache("read", "(i, j, k) -> (i)"), "IndexMapNotInjective"},
      {kMatmul, cache("read", "(i, k) -> (k, i)"), "IndexMapArity"},
      {kMatmul, cache("read", "(i, j, k)"), "IndexMapText"},
      {kMatmul, cache("write", "(i, j, k) -> (i, j, k)"), "ReindexForm"},
      {kMatmul, "reindex_cache_read(@B0, 0, \"nowhere\", \"(i, j, k) -> (i, k)\")", "ScopeUnknown"},
      {kMatmul, cache("write", "(i, j, k) -> (i, j)", "@B0", 1), "AccessIndexRange"},
      {kMatmul, cache("write", "(i, j) -> (j, i)"), "IndexMapArity"},
      {kMatmul, cache("write", "(i, j, k) -> (i // 2, j)"), "IndexMapNotInjective"},
  };
  for (const Case& c : cases) check(c);
}

constexpr std::string_view kKept = R"(
program kept(X: f32[4, 8]) -> (Y: f32[4, 1]) {
  for i in 4 @L0 { for u in 1 @L1 { for k in 8 @L2 {
    block "Y" @B0 [vi: S(4) = i, vu: S(1) = u, vk: R(8) = k] {
      init { Y[vi, vu] = 0f32 }
      Y[vi, vu] = Y[vi, vu] + X[vi, vk]
  } } } }
})";

TEST_CASE("the variables of a block are mapped onto others, or the reason is said") {
  auto layout = [](std::string_view block, std::string_view map) {
    return "transform_block_layout(" + std::string(block) + ", \"" + std::string(map) + "\")";
  };
  const Case cases[] = {
      {kMatmul, layout("@B0", "(i, j, k) -> (i*16 + j, k)"), ""},
      {kMatmul, layout("@B0", "(i, j, k) -> (k, j, i)"), ""},
      {kMatmul, layout("@B0", "(i, j, k) -> (i // 4, j, i % 4, k // 8, k % 8)"), ""},
      {kConv, layout("@B1", "(f, h, w, c, r, s) -> (h*8 + w, f, r*12 + s*4 + c)"), ""},
      {kConv, layout("@B0", "(c, h, w) -> (w, h, c)"), ""},
      {kChain, layout("@B1", "(i) -> (i // 5, i % 5)"), ""},
      {kKept, layout("@B0", "(i, u, k) -> (i, k)"), ""},
      {kMatmul, layout("@B0", "(i, j, k) -> (i, j*32 + k)"), "BlockNotSimple"},
      {kMatmul, layout("@B0", "(i, j, k) -> (i // 3, i % 3, j, k)"), "BlockNotSimple"},
      {kMatmul, layout("@B0", "(i, j, k) -> (i*2, j, k)"), "BlockNotSimple"},
      {kMatmul, layout("@B0", "(i, j, k) -> (i, j)"), "IndexMapNotInjective"},
      {kMatmul, layout("@B0", "(i, j) -> (i, j)"), "IndexMapArity"},
      {kMatmul, layout("@B0", "(i, j, k) -> (i, j, x)"), "IndexMapText"},
      {kMatmul, layout("@B3", "(i, j, k) -> (i, j, k)"), "BlockNotFound"},
      {kFold, layout("@B0", "(i, k) -> (k, i)"), "BlockOrderFixed"},
      {kMatmul, "split(@L0, [4, 4])\n" + layout("@B0", "(i, j, k) -> (k, j, i)"), "BlockNotSimple"},
      {kMatmul, "parallel(@L0)\n" + layout("@B0", "(i, j, k) -> (k, j, i)"), "BlockNotSimple"},
      {kNest, layout("@B0", "(i) -> (i)"), "BlockNotSimple"},
  };
  for (const Case& c : cases) check(c);
}

constexpr std::string_view kOdd = R"(
program odd(A: f32[5, 9], B: f32[9, 7]) -> (C: f32[5, 7]) {
  for i in 5 @L0 { for j in 7 @L1 { for k in 9 @L2 {
    block "C" @B0 [vi: S(5) = i, vj: S(7) = j, vk: R(9) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
})";

std::string reduction(std::string_view init, std::string_view update,
                      std::string_view type = "f32") {
  const std::string t(type);
  return "program r(A: " + t + "[5, 9], B: " + t + "[9], D: " + t + "[5]) -> (C: " + t +
         "[5]) { for i in 5 @L0 { for k in 9 @L1 { block \"C\" @B0 [vi: S(5) = i, vk: R(9) = k] { "
         "init { C[vi] = " +
         std::string(init) + " } C[vi] = " + std::string(update) + " } } } }";
}

TEST_CASE("hole: pad_einsum's zero fill for reducers that are no sums") {
  check_rejected(reduction("f32.ninf", "max(C[vi], A[vi, vk])"), "pad_einsum(@B0, [4, 4])",
                 "EinsumForm");
  check_rejected(reduction("1f32", "C[vi]*A[vi, vk]"), "pad_einsum(@B0, [4, 4])", "EinsumForm");
}

TEST_CASE("sums of products are padded with zeros, or the reason is said") {
  const std::string dot = reduction("0f32", "C[vi] + A[vi, vk]*B[vk]");
  const std::string sum = reduction("0f32", "C[vi] + A[vi, vk]");
  const std::string largest = reduction("f32.ninf", "max(C[vi], A[vi, vk])");
  const std::string product = reduction("1f32", "C[vi]*A[vi, vk]");
  const std::string from_one = reduction("1f32", "C[vi] + A[vi, vk]*B[vk]");
  const std::string shifted = reduction("0f32", "C[vi] + (A[vi, vk] + 1f32)*B[vk]");
  const std::string scaled = reduction("0f32", "C[vi] + A[vi, vk]*D[vi]");
  const std::string scaled_int = reduction("0i32", "C[vi] + A[vi, vk]*D[vi]", "i32");
  const std::string square = reduction("0f32", "C[vi] + A[vi, vk]*A[vi, vk]");
  const std::string backwards = reduction("0f32", "C[vi] + A[vi, 8 - vk]*B[vk]");
  const Case cases[] = {
      {kOdd, "pad_einsum(@B0, [4, 4, 4])", ""},
      {kOdd, "pad_einsum(@B0, [1, 1, 16])", ""},
      {kOdd, "pad_einsum(@B0, [8, 1, 1])", ""},
      {kOdd, "pad_einsum(@B0, [5, 7, 9])", ""},
      {kDenseRelu, "pad_einsum(@B0, [16, 16, 16])", ""},
      {kOdd, "pad_einsum(@B0, [4, 4, 4])\ncompute_inline(@B1)", ""},
      {dot, "pad_einsum(@B0, [4, 4])", ""},
      {sum, "pad_einsum(@B0, [4, 4])", ""},
      {scaled, "pad_einsum(@B0, [4, 1])", ""},
      {scaled_int, "pad_einsum(@B0, [4, 4])", ""},
      // The hole: zeros are no identity of these.
      {largest, "pad_einsum(@B0, [4, 4])", "EinsumForm"},
      {product, "pad_einsum(@B0, [4, 4])", "EinsumForm"},
      {from_one, "pad_einsum(@B0, [4, 4])", "EinsumForm"},
      {shifted, "pad_einsum(@B0, [4, 4])", "EinsumForm"},
      // 0 times what could be infinite.
      {scaled, "pad_einsum(@B0, [4, 4])", "EinsumForm"},
      {square, "pad_einsum(@B0, [4, 4])", "EinsumForm"},
      {backwards, "pad_einsum(@B0, [4, 4])", "EinsumForm"},
      {kOdd, "pad_einsum(@B0, [4, 4])", "EinsumForm"},
      {kOdd, "pad_einsum(@B0, [4, 0, 4])", "EinsumForm"},
      {kOdd, "pad_einsum(@B0, [1099511627776, 1099511627776, 1])", "EinsumForm"},
      {kOdd, "split(@L0, [5, 1])\npad_einsum(@B0, [4, 4, 4])", "EinsumForm"},
      {kOdd, "pad_einsum(@B9, [4, 4, 4])", "BlockNotFound"},
      {kFold, "pad_einsum(@B0, [4, 4])", "BlockOrderFixed"},
      {kConv, "pad_einsum(@B1, [4, 1, 1, 3, 1, 1])", ""},
      {kConv, "pad_einsum(@B1, [4, 1, 1, 3, 1, 1])\ncompute_inline(@B0)", ""},
      {kConv, "pad_einsum(@B1, [1, 2, 1, 1, 1, 1])", "EinsumForm"},
      {kConv, "pad_einsum(@B1, [1, 1, 1, 1, 2, 1])", "EinsumForm"},
      {kChain, "pad_einsum(@B0, [4])", "EinsumForm"},
  };
  for (const Case& c : cases) check(c);
}

constexpr std::string_view kColumn = R"(
program column(X: f32[6, 8]) -> (Y: f32[10, 8]) {
  for i in 10 @L0 { for j in 8 @L1 {
    block "Y" @B0 [vi: S(10) = i, vj: S(8) = j] {
      Y[vi, vj] = select(2*vi < 16 && vi - 2 >= 0, X[vi - 2, vj], 7f32)
  } } }
})";

std::string padded(std::string_view condition, std::string_view other = "0f32") {
  return "program p(X: f32[8, 8], Z: f32[8]) -> (Y: f32[8, 8]) { for i in 8 @L0 { for j in 8 @L1 { "
         "block \"Y\" @B0 [vi: S(8) = i, vj: S(8) = j] { Y[vi, vj] = select(" +
         std::string(condition) + ", X[vi, vj], " + std::string(other) + ") } } } }";
}

TEST_CASE("padding is taken apart into a fill and what is inside, or the reason is said") {
  // Each element is written again by a later instance.
  const std::string twice = R"(
program p(X: f32[4]) -> (Y: f32[4]) {
  buffer P: f32[4] global
  for i in 4 @L0 { for j in 4 @L1 {
    block "P" @B0 [v: S(4) = i, w: S(4) = j] { P[v] = select(w < 2, X[v], 0f32) } } }
  for i2 in 4 @L2 { block "Y" @B1 [u: S(4) = i2] { Y[u] = P[u] } }
})";
  // One loop is two variables, with a box for each; the other is none.
  const std::string diagonal = R"(
program p(X: f32[8]) -> (Y: f32[8]) {
  buffer P: f32[8, 8] global
  for i in 8 @L0 { for j in 2 @L1 {
    block "P" @B0 [v: S(8) = i, w: S(8) = i] { P[v, w] = select(1 <= v && w < 5, X[v - 1], 0f32) } } }
  for i2 in 8 @L2 { block "Y" @B1 [u: S(8) = i2] { Y[u] = P[u, u] } }
})";
  const std::string wedge = padded("vi < vj"), never = padded("vi < 0"), always = padded("vi < 8"),
                    data = padded("Z[vi] < 1f32"), other = padded("vi < 4", "Z[vi]");
  const std::string tiles =
      "split(@L1, [5, 2])\nsplit(@L2, [-1, 3])\nreorder([@L9, @L11, @L10, @L12])\n";
  const Case cases[] = {
      {kConv, "decompose_padding(@B0, @L0)", ""},
      {kConv, "decompose_padding(@B0, @L1)", ""},
      {kConv, "decompose_padding(@B0, @L2)", ""},
      {kColumn, "decompose_padding(@B0, @L0)", ""},
      {diagonal, "decompose_padding(@B0, @L0)", ""},
      {kColumn, "decompose_padding(@B0, @L1)\nparallel(@L0)", ""},
      {kConv, "reorder([@L2, @L1])\ndecompose_padding(@B0, @L2)", ""},
      {kOdd, "pad_einsum(@B0, [4, 4, 4])\ndecompose_padding(@B1, @L3)", ""},
      {kConv, "decompose_padding(@B0, @L3)", "LoopNotAround"},
      {kConv, "decompose_padding(@B0, @L99)", "LoopNotFound"},
      {kConv, "decompose_padding(@B9, @L0)", "BlockNotFound"},
      {kConv, "decompose_padding(@B1, @L3)", "PaddingForm"},
      {kConv, "vectorize(@L2)\ndecompose_padding(@B0, @L0)", "LoopNotSerial"},
      {kConv, "split(@L2, [5, 2])\ndecompose_padding(@B0, @L0)", ""},
      {kConv, "split(@L2, [-1, 3])\ndecompose_padding(@B0, @L0)", ""},
      {kConv, tiles + "decompose_padding(@B0, @L10)", ""},
      {kConv, tiles + "decompose_padding(@B0, @L0)", ""},
      {kConv, tiles + "parallel(@L0)\ndecompose_padding(@B0, @L12)\nvectorize(@L12)", ""},
      {kConv, tiles + "fuse([@L9, @L11])\ndecompose_padding(@B0, @L13)", ""},
      {kConv, "split(@L2, [-1, 3])\ndecompose_padding(@B0, @L0)\nparallel(@L1)", ""},
      {kConv, tiles + "vectorize(@L12)\ndecompose_padding(@B0, @L10)", "LoopNotSerial"},
      {kConv, tiles + "decompose_padding(@B0, @L4)", "LoopNotAround"},
      {wedge, "split(@L0, [2, 4])\ndecompose_padding(@B0, @L2)", "PaddingForm"},
      {wedge, "decompose_padding(@B0, @L0)", "PaddingForm"},
      {twice, "decompose_padding(@B0, @L0)", "PaddingForm"},
      {never, "decompose_padding(@B0, @L0)", "PaddingForm"},
      {always, "decompose_padding(@B0, @L0)", "PaddingForm"},
      {data, "decompose_padding(@B0, @L0)", "PaddingForm"},
      {other, "decompose_padding(@B0, @L0)", "PaddingForm"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("the methods give the blocks and loops that they make") {
  schedule::Schedule s(parse_or_die(kConv), schedule::Verify::kEachStep);
  const ir::BlockId pad(0), conv(1);
  const Result<ir::BlockId> fill = s.decompose_padding(pad, ir::LoopId(0));
  REQUIRE_OK(fill);
  CHECK(s.producers(conv) == std::vector<ir::BlockId>{*fill, pad});
  const Result<ir::BlockId> copy = s.reindex(conv, "read", 0);
  REQUIRE_OK(copy);
  CHECK(s.producers(conv) == std::vector<ir::BlockId>{*copy});
  const std::vector<ir::LoopId> loops = s.loops_of(conv);
  const Result<ir::BlockId> tile = s.blockize(loops[3]);
  REQUIRE_OK(tile);
  CHECK(*tile == conv);
  CHECK(s.loops_of(conv) == std::vector<ir::LoopId>(loops.begin(), loops.begin() + 3));
  CHECK_DIAG(s.tensorize(loops[3], "x86_vpdpbusd_16x4"), TensorMismatch);
  check_same_result(parse_or_die(kConv), s.program(), 2);
}

TEST_CASE("what is inside of the padding runs without a condition") {
  const schedule::Schedule s = check_steps(kConv, "decompose_padding(@B0, @L0)");
  const std::string text = print(s.program());
  CHECK(text.find("select") == std::string::npos);
  CHECK(text.find("[vc_1, vh_1 + 1, vw_1 + 1] = X[vc_1, vh_1, vw_1]") != std::string::npos);
}

}  // namespace
}  // namespace prunerc::testing
