// Operation counts that are known by hand.
#include "ir/analysis/flops.h"

#include "ir/builder.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

OpCounts count(const std::string& text) {
  const Result<OpCounts> counts = count_ops(parse_or_die(text));
  REQUIRE(counts.ok());
  return *counts;
}

std::string matmul(const std::string& loops, const std::string& bind_i, const std::string& guard) {
  return R"(
program matmul(A: f32[100, 30], B: f32[30, 20]) -> (C: f32[100, 20]) {
  )" + loops +
         R"( { for j in 20 { for k in 30 {
    block "C" @B0 [vi: S(100) = )" +
         bind_i + "], vj: S(20) = j, vk: R(30) = k] " + guard + R"( {
      reads A[vi, vk], B[vk, vj]
      writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
})";
}

std::string without_bracket(std::string text) {
  const std::size_t at = text.find("], vj");
  return text.erase(at, 1);
}

}  // namespace

TEST_CASE("a matrix product takes two operations per multiply-add and one init per output") {
  const OpCounts c = count(without_bracket(matmul("for i in 100", "i", "")));
  CHECK(c.mul_add == 2.0 * 100 * 20 * 30);
  CHECK(c.flops() == c.mul_add);
  CHECK(c.loads == 3.0 * 100 * 20 * 30);
  CHECK(c.stores == 100.0 * 20 * 30 + 100 * 20);
  CHECK(c.special + c.divide + c.integer + c.convert == 0);
}

TEST_CASE("instances that a guard cuts off do not count, in the body or in the init") {
  const std::string loops = "for i0 in 7 { for i1 in 16";
  std::string text =
      without_bracket(matmul(loops, "i0*16 + i1", "where i0*16 + i1 < 100 && j < 20"));
  text += "}";
  const OpCounts c = count(text);
  CHECK(c.mul_add == Approx(2.0 * 100 * 20 * 30));
  CHECK(c.stores == Approx(100.0 * 20 * 30 + 100 * 20));
}

TEST_CASE("branches count for the iterations that take them") {
  const OpCounts c = count(R"(
program t(A: f32[64]) -> (C: f32[64]) {
  for i in 64 {
    block "C" @B0 [v: S(64) = i] {
      reads A[v]
      writes C[v]
      if v < 16 { C[v] = exp(A[v]) } else { C[v] = A[v]/2f32 }
  } }
})");
  CHECK(c.special == 16);
  CHECK(c.divide == 48);
  CHECK(c.stores == 64);
}

TEST_CASE("units are told apart and subscripts are not counted") {
  const OpCounts c = count(R"(
program t(A: f32[64], Q: i8[64]) -> (C: f32[64]) {
  for i in 64 {
    block "C" @B0 [v: S(64) = i] {
      reads A[(v*3 + 1) % 64], Q[v]
      writes C[v]
      C[v] = max(fma(A[(v*3 + 1) % 64], 2f32, 1f32), f32(i32(Q[v]) + 1i32)) / sqrt(A[(v*3 + 1) % 64])
  } }
})");
  CHECK(c.mul_add == 2 * 64);
  CHECK(c.divide == 64);
  CHECK(c.special == 64);
  CHECK(c.compare == 64);
  CHECK(c.integer == 64);
  CHECK(c.convert == 2 * 64);
  CHECK(c.loads == 3 * 64);
}

TEST_CASE("compulsory traffic is every parameter once") {
  const Result<int64_t> bytes = compulsory_bytes(parse_or_die(R"(
program t(A: f32[8, 4], Q: i8[16]) -> (C: f16[8]) {
  buffer T: f64[100] global
  for i in 8 { block "C" @B0 [v: S(8) = i] { reads A[v, 0] writes C[v] C[v] = f16(A[v, 0]) } }
})"));
  REQUIRE(bytes.ok());
  CHECK(*bytes == 8 * 4 * 4 + 16 + 8 * 2);
}

TEST_CASE("counting refuses tile parameters") {
  IrBuilder b("sketch");
  const Expr shape[] = {b.int_imm(16)};
  const BufferId out = b.add_buffer("C", DType::kF32, shape, Scope::kGlobal, BufferRole::kOutput);
  const Expr t = b.param(b.add_param("T"));
  Loop loop{};
  loop.id = b.fresh_loop_id();
  loop.var = b.fresh_var("i");
  loop.extent = t;
  const Expr at[] = {loop.var};
  loop.body = b.store(out, at, b.float_imm(1, DType::kF32));
  const Result<OpCounts> counts = count_ops(b.finish(b.loop(loop)));
  REQUIRE_FALSE(counts.ok());
  CHECK(counts.error().id() == Diag::kUnsupported);
  IrBuilder b2("shape");
  const Expr sizes[] = {b2.param(b2.add_param("T"))};
  b2.add_buffer("C", DType::kF32, sizes, Scope::kGlobal, BufferRole::kOutput);
  CHECK_FALSE(compulsory_bytes(b2.finish({})).ok());
}

}  // namespace prunerc::ir
