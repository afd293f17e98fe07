// Mappings of operators onto tensor intrinsics.
#include "schedule/mapping/mapping.h"

#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace prunerc::testing {
namespace {

using namespace ir;  // NOLINT: a test
using schedule::Schedule;
using schedule::TensorMapping;

/// Convolution of 7 x 7 images of 5 channels, 3 x 3 taps, 6 channels out, channels last.
constexpr std::string_view kConvNhwc = R"(
program conv(X: f16[2, 9, 9, 5], W: f16[3, 3, 5, 6]) -> (Y: f32[2, 7, 7, 6]) {
  for n in 2 @L0 { for h in 7 @L1 { for w in 7 @L2 { for f in 6 @L3 {
  for r in 3 @L4 { for s in 3 @L5 { for c in 5 @L6 {
    block "Y" @B0 [vn: S(2) = n, vh: S(7) = h, vw: S(7) = w, vf: S(6) = f, vr: R(3) = r, vs: R(3) = s, vc: R(5) = c] {
      init { Y[vn, vh, vw, vf] = 0f32 }
      Y[vn, vh, vw, vf] = Y[vn, vh, vw, vf] + f32(X[vn, vh + vr, vw + vs, vc])*f32(W[vr, vs, vc, vf])
  } } } } } } } }
})";

/// What `conv2d_f16_nhwc` of tools/std becomes: padding before, conversion after, one image.
constexpr std::string_view kConvStages = R"(
program conv2d_f16_nhwc(X: f16[1, 5, 6, 4], F: f16[3, 3, 4, 3]) -> (Y: f16[1, 5, 6, 3]) {
  buffer Y_sum: f32[1, 5, 6, 3] global
  buffer X_pad: f16[1, 7, 8, 4] global
  for p0 in 1 @L0 { for p1 in 7 @L1 { for p2 in 8 @L2 { for p3 in 4 @L3 {
    block "X_pad" @B1 [vp0: S(1) = p0, vp1: S(7) = p1, vp2: S(8) = p2, vp3: S(4) = p3] {
      X_pad[vp0, vp1, vp2, vp3] = select(0 <= vp1 - 1 && vp1 - 1 < 5 && 0 <= vp2 - 1 && vp2 - 1 < 6, X[vp0, vp1 - 1, vp2 - 1, vp3], 0f16)
  } } } } }
  for n in 1 @L4 { for oh in 5 @L5 { for ow in 6 @L6 { for co in 3 @L7 {
  for kh in 3 @L8 { for kw in 3 @L9 { for ci in 4 @L10 {
    block "Y_sum" @B0 [vn: S(1) = n, voh: S(5) = oh, vow: S(6) = ow, vco: S(3) = co, vkh: R(3) = kh, vkw: R(3) = kw, vci: R(4) = ci] {
      init { Y_sum[vn, voh, vow, vco] = 0f32 }
      Y_sum[vn, voh, vow, vco] = Y_sum[vn, voh, vow, vco] + f32(X_pad[0, voh + vkh, vow + vkw, vci])*f32(F[vkh, vkw, vci, vco])
  } } } } } } } }
  for n in 1 @L11 { for oh in 5 @L12 { for ow in 6 @L13 { for co in 3 @L14 {
    block "Y" @B2 [vn: S(1) = n, voh: S(5) = oh, vow: S(6) = ow, vco: S(3) = co] {
      Y[vn, voh, vow, vco] = f16(Y_sum[vn, voh, vow, vco])
  } } } } }
})";

constexpr std::string_view kBatched = R"(
program batched(A: f16[3, 32, 16], B: f16[3, 16, 16]) -> (C: f32[3, 32, 16]) {
  for b in 3 @L0 { for i in 32 @L1 { for j in 16 @L2 { for k in 16 @L3 {
    block "C" @B0 [vb: S(3) = b, vi: S(32) = i, vj: S(16) = j, vk: R(16) = k] {
      init { C[vb, vi, vj] = 0f32 }
      C[vb, vi, vj] = C[vb, vi, vj] + f32(A[vb, vi, vk])*f32(B[vb, vk, vj])
  } } } } }
})";

constexpr std::string_view kBytes = R"(
program bytes(A: u8[5, 10], B: i8[10, 20]) -> (C: i32[5, 20]) {
  for i in 5 @L0 { for j in 20 @L1 { for k in 10 @L2 {
    block "C" @B0 [vi: S(5) = i, vj: S(20) = j, vk: R(10) = k] {
      init { C[vi, vj] = 0i32 }
      C[vi, vj] = C[vi, vj] + i32(A[vi, vk])*i32(B[vk, vj])
  } } } }
})";

std::vector<TensorMapping> mappings(std::string_view program, std::string_view intrinsic) {
  const Result<std::vector<TensorMapping>> found =
      schedule::tensor_mappings(parse_or_die(program), BlockId(0), intrinsic);
  REQUIRE_OK(found);
  return *found;
}

// The mapping makes a program with the intrinsic that still computes the same.
void check_mapping(std::string_view program, const TensorMapping& mapping) {
  const Program base = parse_or_die(program);
  INFO(to_string(base, BlockId(0), mapping));
  Schedule s(base, schedule::Verify::kEachStep);
  const Result<std::vector<LoopId>> loops = schedule::apply_mapping(s, BlockId(0), mapping);
  REQUIRE_OK(loops);
  INFO(print(s.program()));
  CHECK(print(s.program()).find("tensor_" + mapping.intrinsic) != std::string::npos);
  check_same_result(base, s.program(), 1);
  const FpvVerdict verdict = check_equivalent(base, s.program());
  INFO(to_string(verdict));
  CHECK(verdict.ok());
  // What was done is a trace like any other.
  const Result<schedule::Trace> read = schedule::parse_trace(print(s.trace()));
  REQUIRE_OK(read);
  CHECK(schedule::replay(base, *read).ok());
}

TEST_CASE("a convolution is mapped onto a matrix product, padded where it must be") {
  const std::vector<TensorMapping> all = mappings(kConvNhwc, "wmma_16x16x16_f16");
  // 7 choices of rows, 1 of columns, 7 of the depth; the operands either way round.
  CHECK(all.size() == 98);
  const TensorMapping& best = all[0];
  CHECK(to_string(parse_or_die(kConvNhwc), BlockId(0), best).find("% useful") != std::string::npos);
  CHECK(best.useful == Approx(98.0 / 112 * 45 / 48 * 6 / 16));
  CHECK(std::is_sorted(all.begin(), all.end(),
                       [](const auto& x, const auto& y) { return x.useful > y.useful; }));
  check_mapping(kConvNhwc, best);
}

TEST_CASE("an operator of several stages is mapped where its product is") {
  const std::vector<TensorMapping> all = mappings(kConvStages, "wmma_16x16x16_f16");
  CHECK(all[0].extents == std::vector<int64_t>{30, 3, 36});
  CHECK(all[0].padded == std::vector<int64_t>{32, 16, 48});
  check_mapping(kConvStages, all[0]);
}

TEST_CASE("every mapping of a convolution computes the same") {
  const std::vector<TensorMapping> all = mappings(kConvNhwc, "wmma_16x16x16_f16");
  for (std::size_t i = 1; i < all.size(); i += 13) check_mapping(kConvNhwc, all[i]);
}

TEST_CASE("matrix products map in both orders of their operands") {
  for (const char* intrinsic : {"wmma_16x16x16_f16", "mma_m16n8k16_f16"}) {
    const std::vector<TensorMapping> all = mappings(kBatched, intrinsic);
    CHECK(all.size() == 2);
    for (const TensorMapping& mapping : all) {
      CHECK(mapping.useful == 1);
      CHECK(mapping.outer == std::vector<int>{0});
      check_mapping(kBatched, mapping);
    }
  }
}

TEST_CASE("operands of fixed strides are laid out tile by tile") {
  const std::vector<TensorMapping> all = mappings(kBytes, "x86_vpdpbusd_16x4");
  REQUIRE(all.size() == 1);
  CHECK(all[0].padded == std::vector<int64_t>{32, 12});
  check_mapping(kBytes, all[0]);
}

TEST_CASE("one row of a product is a matrix of one row") {
  constexpr std::string_view kRow = R"(
program row(A: f16[1, 16], B: f16[16, 24]) -> (C: f32[1, 24]) {
  for i in 1 @L0 { for j in 24 @L1 { for k in 16 @L2 {
    block "C" @B0 [vi: S(1) = i, vj: S(24) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + f32(A[0, vk])*f32(B[vk, vj])
  } } } }
})";
  const std::vector<TensorMapping> all = mappings(kRow, "mma_m16n8k16_f16");
  REQUIRE(all.size() == 2);
  // The eight columns of the instruction waste less than its sixteen rows.
  CHECK(all[0].padded == std::vector<int64_t>{32, 8, 16});
  CHECK(all[1].padded == std::vector<int64_t>{16, 24, 16});
}

TEST_CASE("what has no mapping is refused with the reason") {
  auto find = [](std::string_view program, std::string_view intrinsic, int block = 0) {
    return schedule::tensor_mappings(parse_or_die(program), BlockId(block), intrinsic);
  };
  CHECK_DIAG(find(kMatmul, "wmma_16x16x16_f16"), TensorNoMapping);
  CHECK_DIAG(find(kRowSum, "wmma_16x16x16_f16"), TensorNoMapping);
  CHECK_DIAG(find(kChain, "wmma_16x16x16_f16"), TensorNoMapping);
  CHECK_DIAG(find(kBytes, "wmma_16x16x16_s8"), TensorNoMapping);
  CHECK_DIAG(find(kBatched, "ldmatrix_x4_f16"), TensorNoMapping);
  CHECK_DIAG(find(kBatched, "nothing"), TensorUnknown);
  CHECK_DIAG(find(kBatched, "wmma_16x16x16_f16", 7), BlockNotFound);
  // A vector has no columns.
  CHECK_DIAG(
      find("program v(A: f16[16, 16], X: f16[16]) -> (Y: f32[16]) { for i in 16 { for k in 16 {"
           " block \"Y\" [vi: S(16) = i, vk: R(16) = k] { init { Y[vi] = 0f32 }"
           " Y[vi] = Y[vi] + f32(A[vi, vk])*f32(X[vk]) } } } }",
           "wmma_16x16x16_f16"),
      TensorNoMapping);
}

TEST_CASE("a mapping that cannot be applied leaves the schedule as it was") {
  const Program base = parse_or_die(kBytes);
  Schedule s(base);
  TensorMapping mapping = mappings(kBytes, "x86_vpdpbusd_16x4")[0];
  mapping.intrinsic = "wmma_16x16x16_s8";
  CHECK_FALSE(schedule::apply_mapping(s, BlockId(0), mapping).ok());
  CHECK(s.program().is(base));
  CHECK(s.trace().instructions.empty());
}

}  // namespace
}  // namespace prunerc::testing
