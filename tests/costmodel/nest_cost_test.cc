// What nests of one program save each other, and what they wait for: registers, caches, sums.
#include "costmodel/latency/roofline.h"
#include "tests/support/check.h"

#include <fmt/format.h>

#include <string>

namespace prunerc {
namespace {

using namespace costmodel;  // NOLINT: a test
using namespace testing;    // NOLINT: a test

LatencyEstimate estimate(const std::string& text) {
  ir::Target target = ir::target_from_string("cpu:icelake-server").value();
  target.num_threads = 1;
  return estimate_latency(parse_or_die(text), target);
}

// Sums of `columns` in 4 lanes, then over these; `kind` of the loop over the rows of a tile.
std::string sums_of_lanes(const std::string& kind) {
  return fmt::format(R"(program s(X: f32[512, 256]) -> (Y: f32[512]) {{
    buffer P: f32[512, 16] global
    for i0 in 64 {{
      for k in 16 {{ for i1 in 8 {0} {{ for l in 16 vectorized {{
        block "P" [vi: S(512) = i0 * 8 + i1, vl: S(16) = l, vk: R(16) = k] {{
          init {{ P[vi, vl] = 0f32 }} P[vi, vl] = P[vi, vl] + X[vi, vk * 16 + vl] }} }} }} }}
      for i2 in 8 {0} {{ for l1 in 16 unrolled {{
        block "Y" [wi: S(512) = i0 * 8 + i2, wl: R(16) = l1] {{
          init {{ Y[wi] = 0f32 }} Y[wi] = Y[wi] + P[wi, wl] }} }} }}
    }} }})",
                     kind);
}

TEST_CASE("what unrolled code hands over stays in registers") {
  // The same sums; a loop that stays needs an array that it can index.
  const double in_registers = estimate(sums_of_lanes("unrolled")).core_ns;
  const double in_memory = estimate(sums_of_lanes("")).core_ns;
  CHECK(in_memory > 1.5 * in_registers);
}

TEST_CASE("a result is stored once, whatever its sum begins with") {
  const auto core_ns = [](const std::string& start) {
    return estimate(R"(program s(X: f32[4096, 64]) -> (Y: f32[4096]) {
      for i0 in 256 { )" +
                    start + R"(
        for k in 64 { for i1 in 16 vectorized {
          block "Y" [vi: S(4096) = i0 * 16 + i1, vk: R(64) = k] {
            Y[vi] = Y[vi] + X[vi, vk] } } } } })")
        .core_ns;
  };
  // Constant places: the start is a register. With the start in a loop of its own over all rows it
  // is stored, and loaded again.
  const std::string vector = R"(for i2 in 16 vectorized {
    block "Z" [wi: S(4096) = i0 * 16 + i2] { Y[wi] = 0f32 } })";
  const std::string serial = R"(for i2 in 16 {
    block "Z" [wi: S(4096) = i0 * 16 + i2] { Y[wi] = 0f32 } })";
  CHECK(core_ns(vector) < core_ns(serial));
  CHECK(core_ns(vector) < 1.05 * core_ns(""));
}

// Y[vi, vj] = value; X, a factor of each row and one of each column.
double elementwise_ns(const std::string& value) {
  return estimate(R"(program s(X: f32[256, 512], S: f32[256], G: f32[512]) -> (Y: f32[256, 512]) {
    for i in 256 { for j0 in 32 { for j1 in 16 vectorized {
      block "Y" [vi: S(256) = i, vj: S(512) = j0 * 16 + j1] { Y[vi, vj] = )" +
                  value + " } } } } }")
      .core_ns;
}

TEST_CASE("what a row has in common is computed once for it, alone or beside other work") {
  for (const std::string other : {"", "X[vi, vj] * "}) {
    const double plain = elementwise_ns(other + "S[vi]");
    const double of_row = elementwise_ns(other + "exp(S[vi])");
    CHECK(of_row >= plain);
    CHECK(of_row < 1.5 * plain);
    CHECK(elementwise_ns(other + "exp(G[vj])") > 3 * plain);
    // A root and a quotient as well, however the product is put.
    CHECK(elementwise_ns(other + "(1f32 / sqrt(S[vi] + 1f32))") < 1.5 * plain);
  }
}

TEST_CASE("vectors whose lanes share elements cost no less than those that lie side by side") {
  const auto core_ns = [](const std::string& at) {
    std::string sum = "X[" + at + "]";
    for (int shift = 64; shift < 512; shift += 64) sum += fmt::format(" + X[{} + {}]", at, shift);
    return estimate(R"(program s(X: f32[8192]) -> (Y: f32[4096]) {
      for i0 in 256 { for i1 in 16 vectorized {
        block "Y" [vi: S(4096) = i0 * 16 + i1] { Y[vi] = )" +
                    sum + " } } } }")
        .core_ns;
  };
  CHECK(core_ns("vi // 4") >= core_ns("vi"));
}

TEST_CASE("what reads the running result is done anew every time") {
  const auto core_ns = [](const std::string& update) {
    return estimate(
               "program s(X: f32[256, 512]) -> (Y: f32[256]) { for i in 256 { for k in 512 { "
               "block \"Y\" [vi: S(256) = i, vk: R(512) = k] { init { Y[vi] = 0f32 } "
               "Y[vi] = " +
               update + " } } } }")
        .core_ns;
  };
  CHECK(core_ns("exp(Y[vi]) + X[vi, vk]") > 1.5 * core_ns("Y[vi] + X[vi, vk]"));
}

// A product with the sum's loop outside of its columns: 1,024 sums a row of C.
std::string outer_product(bool own_start) {
  const std::string start = R"(for z0 in 64 { for z1 in 16 vectorized {
      block "Z" [wi: S(64) = i, wj: S(1024) = z0 * 16 + z1] { C[wi, wj] = 0f32 } } })";
  return fmt::format(R"(program s(A: f32[64, 512], B: f32[512, 1024]) -> (C: f32[64, 1024]) {{
    for i in 64 {{ {0} for k in 512 {{ for j0 in 64 {{ for j1 in 16 vectorized {{
      block "C" [vi: S(64) = i, vj: S(1024) = j0 * 16 + j1, vk: R(512) = k] {{
        {1} C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] }} }} }} }} }} }})",
                     own_start ? start : "", own_start ? "" : "init { C[vi, vj] = 0f32 }");
}

TEST_CASE("a row of sums that comes round again is in memory, wherever it starts") {
  ir::Target target = ir::target_from_string("cpu:znver4").value();
  target.num_threads = 1;
  const double inside = estimate_latency(parse_or_die(outer_product(false)), target).core_ns;
  const double outside = estimate_latency(parse_or_die(outer_product(true)), target).core_ns;
  CHECK(inside > 0.9 * outside);
  CHECK(inside < 1.1 * outside);
}

TEST_CASE("what a later nest reads of a result is stored for good all the same") {
  // The sums are an output, too, or end where they are read.
  const auto core_ns = [](bool is_output) {
    return estimate(fmt::format(
                        R"(program s(X: f32[4096, 64]) -> (Y: f32[4096]{0}) {{ {1}
      for i0 in 256 {{
        for z in 16 vectorized {{ block "Z" [zi: S(4096) = i0 * 16 + z] {{ T[zi] = 0f32 }} }}
        for k in 64 {{ for i1 in 16 vectorized {{
          block "T" [vi: S(4096) = i0 * 16 + i1, vk: R(64) = k] {{
            T[vi] = T[vi] + X[vi, vk] }} }} }}
        for i2 in 16 vectorized {{ block "Y" [wi: S(4096) = i0 * 16 + i2] {{
          Y[wi] = T[wi] * T[wi] }} }} }} }})",
                        is_output ? ", T: f32[4096]" : "",
                        is_output ? "" : "buffer T: f32[4096] global"))
        .core_ns;
  };
  CHECK(core_ns(true) > core_ns(false));
}

// Reads X twice, one pass after the other.
double beyond_l2(int64_t rows) {
  const LatencyEstimate e = estimate(fmt::format(
      R"(program s(X: f32[{0}, 1024]) -> (A: f32[1024], B: f32[1024]) {{
    for i in {0} {{ for j in 1024 vectorized {{
      block "A" [vi: R({0}) = i, vj: S(1024) = j] {{
        init {{ A[vj] = 0f32 }} A[vj] = A[vj] + X[vi, vj] }} }} }}
    for i1 in {0} {{ for j1 in 1024 vectorized {{
      block "B" [wi: R({0}) = i1, wj: S(1024) = j1] {{
        init {{ B[wj] = 0f32 }} B[wj] = B[wj] + X[wi, wj] * X[wi, wj] }} }} }} }})",
      rows));
  return e.l3_ns / static_cast<double>(rows);
}

TEST_CASE("data that two passes read is one set of data in the cache") {
  // Icelake's L2 is 1.25 MiB: 0.75 of it for X, which would be too much if it counted twice.
  CHECK(beyond_l2(240) == 0);
}

TEST_CASE("parts of a packed buffer are so many sets of data") {
  // Icelake's L2 is 1.25 MiB.
  const auto l3_ns = [](int64_t begin, int64_t columns) {
    return estimate(fmt::format(
                        R"(program s(X: f32[512, 1040]) -> (A: f32[512], B: f32[512]) {{
      for i in 512 {{ for j in {1} {{ block "A" [vi: S(512) = i, vj: R({1}) = j] {{
        init {{ A[vi] = 0f32 }} A[vi] = A[vi] + X[vi, vj] }} }} }}
      for i1 in 512 {{ for j1 in {1} {{ block "B" [wi: S(512) = i1, wj: R({1}) = j1] {{
        init {{ B[wi] = 0f32 }} B[wi] = B[wi] + X[wi, wj + {0}] }} }} }} }})",
                        begin, columns))
        .l3_ns;
  };
  CHECK(l3_ns(0, 384) == 0);   // the same 0.75 MiB twice
  CHECK(l3_ns(384, 384) > 0);  // 1.5 MiB
  CHECK(l3_ns(512, 512) > l3_ns(384, 384));
}

TEST_CASE("a cache loses by and by what is larger than it") {
  const double all = beyond_l2(1024);
  CHECK(beyond_l2(250) == 0);
  CHECK(beyond_l2(288) > 0);
  CHECK(beyond_l2(320) > 1.5 * beyond_l2(288));
  CHECK(beyond_l2(320) < 0.7 * all);
  CHECK(beyond_l2(400) == Approx(all).epsilon(0.02));
}

// A row's total and its quotients, row by row or one after the other for all rows.
std::string normalised(bool by_rows) {
  const std::string total = R"(for j in 512 {
      block "S" [vi: S(64) = i, vj: R(512) = j] {
        init { S[vi] = 0f32 } S[vi] = S[vi] + X[vi, vj] } })";
  const std::string quotients = R"(for j0 in 32 { for j1 in 16 vectorized {
      block "Y" [wi: S(64) = r, wj: S(512) = j0 * 16 + j1] { Y[wi, wj] = X[wi, wj] * S[wi] } } })";
  std::string rows = quotients;
  if (by_rows) rows.replace(rows.find("= r,"), 4, "= i,");
  return "program n(X: f32[64, 512]) -> (Y: f32[64, 512]) { buffer S: f32[64] global for i in 64 "
         "{ " +
         total + (by_rows ? rows + " }" : " } for r in 64 { " + rows + " }") + " }";
}

TEST_CASE("a row that waits for its total costs more than rows whose totals are there") {
  const double by_rows = estimate(normalised(true)).core_ns;
  const double apart = estimate(normalised(false)).core_ns;
  // 40 to 100 cycles a row at 2 to 4 GHz.
  CHECK(by_rows - apart > 64 * 10);
  CHECK(by_rows - apart < 64 * 50);
  // What is no sum is there in time.
  const auto element = [](bool by) {
    std::string text = normalised(by);
    text.replace(text.find("S[vi] + X[vi, vj]"), 17, "X[vi, vj] * 2f32");
    return estimate(text).core_ns;
  };
  CHECK(element(true) - element(false) < 64 * 10);
}

}  // namespace
}  // namespace prunerc
