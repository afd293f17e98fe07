// The analyzer on GPUs: the order of schedules that differ in one thing, limits, and sketches
// against their instances.
#include "costmodel/latency/roofline.h"
#include "costmodel/latency/symbols.h"
#include "ir/printer.h"
#include "ir/tile_space.h"
#include "schedule/legality/gpu_limits.h"
#include "tests/costmodel/sketches.h"
#include "tests/support/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel {
namespace {

using testing::parse_or_die;

const ir::Target kA100 = ir::target_from_string("cuda:a100").value();

double ns(const ir::Program& program, const ir::Target& target = kA100) {
  return estimate_latency(program, target).total_ns;
}

/// Of a GEMM: blocks, virtual threads, threads and registers of rows and columns, k, vectors.
double gemm_ns(const std::vector<int64_t>& values) {
  static const ir::Program sketch = gpu_gemm(1024, 1024, 1024);
  return ns(instance(sketch, values));
}

double part_ns(const ir::Program& program, TermPart part, const ir::Target& target = kA100) {
  const LatencySymbols s = latency_symbols(program, target);
  double out = 0;
  for (const LatencyTerm& term : s.terms) {
    out += term.parts_ns[static_cast<std::size_t>(part)].value();
  }
  return out;
}

// Every thread copies elements at distance `step`; `lanes` of them in vectors.
ir::Program copy(int64_t step, int64_t lanes) {
  const int64_t chunks = 4 / lanes;
  return parse_or_die(fmt::format(
      R"(program p(X: f32[1024, 4096]) -> (Y: f32[1024, 4096]) {{
  for b in 1024 @L0 bind(block.x) {{ for c in {chunks} @L1 {{ for t in 1024 @L2 bind(thread.x) {{ for v in {lanes} @L3 vectorized {{
    block "Y" @B0 [i: S(1024) = b, j: S(4096) = {index}] {{ reads X[i, j] writes Y[i, j] Y[i, j] = X[i, j] }}
  }} }} }} }} }})",
      fmt::arg("chunks", chunks), fmt::arg("lanes", lanes),
      fmt::arg("index", step == 1 ? fmt::format("(c * 1024 + t) * {} + v", lanes)
                                  : fmt::format("t * 4 + c * {} + v", lanes))));
}

// Tiles of 32 x 32 through shared memory: columns are read from what rows wrote.
ir::Program transpose_by(const std::string& layout) {
  return parse_or_die(fmt::format(
      R"(program p(X: f32[1024, 1024]) -> (Y: f32[1024, 1024]) {{
  buffer S: f32[1024, 1024] shared
  for by in 32 @L0 bind(block.y) {{ for bx in 32 @L1 bind(block.x) {{
    for y in 32 @L2 bind(thread.y) {{ for x in 32 @L3 bind(thread.x) {{
      block "S" @B0 [i: S(1024) = by * 32 + y, j: S(1024) = bx * 32 + x]{0} {{
        reads X[i, j] writes S[i, j] S[i, j] = X[i, j] }} }} }}
    for y in 32 @L4 bind(thread.y) {{ for x in 32 @L5 bind(thread.x) {{
      block "Y" @B1 [i: S(1024) = bx * 32 + y, j: S(1024) = by * 32 + x] {{
        reads S[j, i] writes Y[i, j] Y[i, j] = S[j, i] }} }} }}
  }} }} }})",
      layout));
}

ir::Program transpose(int64_t padding) {
  return transpose_by(
      padding > 0 ? fmt::format(" {{align_factor_0_0=32, align_offset_0_0={}}}", padding) : "");
}

// A row of 1024 per block with this value.
ir::Program map(const std::string& value) {
  return parse_or_die(fmt::format(
      R"(program p(X: f32[4096, 1024]) -> (Y: f32[4096, 1024]) {{
  for b in 4096 @L0 bind(block.x) {{ for t in 256 @L1 bind(thread.x) {{ for v in 4 @L2 vectorized {{
    block "Y" @B0 [i: S(4096) = b, j: S(1024) = t * 4 + v] {{
      reads X[i, j] writes Y[i, j] Y[i, j] = {} }} }} }} }} }})",
      value));
}

// A product of f16: each warp has 64 x 32 results in registers, by instructions or by fma.
ir::Program half_product(bool is_tensor) {
  const std::string loops =
      is_tensor
          ? R"(for i2 in 16 @L8 {tensor_mma_m16n8k16_f16=1} { for j2 in 8 @L9 { for k2 in 16 @L10 {)"
          : R"(for k2 in 16 @L10 { for i2 in 16 @L8 { for j2 in 8 @L9 {)";
  // Without the instruction, the 32 lanes of a warp share its tile of 64 x 32.
  const std::string warp = is_tensor ? "for l in 1 @L11 {" : "for l in 32 @L11 bind(thread.x) {";
  const std::string i =
      is_tensor ? "by * 128 + w * 64 + i1 * 16 + i2" : "by * 128 + w * 64 + (i1 * 16 + i2)";
  const std::string j = is_tensor ? "bx * 32 + j1 * 8 + j2" : "bx * 32 + (l * 8 + j2) % 32";
  const std::string tiles =
      is_tensor ? "for i1 in 4 @L6 { for j1 in 4 @L7 {" : "for i1 in 1 @L6 { for j1 in 1 @L7 {";
  return parse_or_die(R"(program p(A: f16[2048, 2048], B: f16[2048, 2048]) -> (C: f32[2048, 2048]) {
  buffer SA: f16[2048, 2048] shared
  buffer SB: f16[2048, 2048] shared
  for by in 16 @L0 bind(block.y) { for bx in 64 @L1 bind(block.x) { for k0 in 128 @L2 {
    for f in 8 @L12 { for y in 2 @L13 bind(thread.y) { for x in 32 @L14 bind(thread.x) { for v in 4 @L15 vectorized {
      block "SA" @B0 [i: S(2048) = by * 128 + (((f * 2 + y) * 32 + x) * 4 + v) // 16,
                      k: S(2048) = k0 * 16 + (((f * 2 + y) * 32 + x) * 4 + v) % 16] {
        reads A[i, k] writes SA[i, k] SA[i, k] = A[i, k] } } } } }
    for f in 2 @L16 { for y in 2 @L17 bind(thread.y) { for x in 32 @L18 bind(thread.x) { for v in 4 @L19 vectorized {
      block "SB" @B1 [k: S(2048) = k0 * 16 + (((f * 2 + y) * 32 + x) * 4 + v) // 32,
                      j: S(2048) = bx * 32 + (((f * 2 + y) * 32 + x) * 4 + v) % 32] {
        reads B[k, j] writes SB[k, j] SB[k, j] = B[k, j] } } } } }
    for w in 2 @L4 bind(thread.y) { )" +
                      warp + tiles + loops + R"(
      block "C" @B2 [vi: S(2048) = )" +
                      i + ", vj: S(2048) = " + j + R"(, vk: R(2048) = k0 * 16 + k2] {
        reads SA[vi, vk], SB[vk, vj] writes C[vi, vj] init { C[vi, vj] = 0f32 }
        C[vi, vj] = C[vi, vj] + f32(SA[vi, vk]) * f32(SB[vk, vj]) } } } } } } } } } } } })");
}

std::vector<std::vector<int64_t>> candidates(const ir::Program& sketch, int n, uint64_t seed) {
  const ir::DomainSpace space(sketch.domain());
  Rng rng(seed);
  std::vector<std::vector<int64_t>> out;
  for (int i = 0; i < n; ++i) out.push_back(space.sample(rng));
  return out;
}

}  // namespace

TEST_CASE("a tile of registers beats one sum for each thread") {
  const double one = gemm_ns({64, 1, 16, 1, 64, 1, 16, 1, 64, 16, 1});
  const double tile = gemm_ns({16, 1, 16, 4, 16, 1, 16, 4, 64, 16, 4});
  CHECK(tile < 0.7 * one);
  // Within three times of what the multiply-adds alone take.
  const double limit = 2.0 * 1024 * 1024 * 1024 / kA100.peak_gflops();
  CHECK(tile > limit);
  CHECK(tile < 3 * limit);
}

TEST_CASE("blocks for every multiprocessor beat few, and a wave that is full beats one begun") {
  const double few = gemm_ns({1, 8, 16, 8, 2, 8, 16, 4, 128, 8, 4});
  const double many = gemm_ns({16, 1, 16, 4, 16, 1, 16, 4, 128, 8, 4});
  CHECK(many < 0.2 * few);
  const auto with_blocks = [](int64_t blocks) {
    return part_ns(parse_or_die(fmt::format(
                       R"(program p(X: f32[{0}, 256]) -> (Y: f32[{0}, 256]) {{
      for b in {0} @L0 bind(block.x) {{ for t in 256 @L1 bind(thread.x) {{ for k in 512 @L2 {{
        block "Y" @B0 [i: S({0}) = b, j: S(256) = t, v: R(512) = k] {{ reads X[i, j] writes Y[i, j]
          init {{ Y[i, j] = 0f32 }} Y[i, j] = Y[i, j] + X[i, j] * X[i, j] }} }} }} }} }})",
                       blocks)),
                   TermPart::kFma);
  };
  CHECK(with_blocks(109) == Approx(2 * with_blocks(108)));
  CHECK(with_blocks(216) == Approx(with_blocks(109)));
}

TEST_CASE(
    "neighbouring threads that read neighbours beat those that stride, and vectors single "
    "elements") {
  const ir::Program coalesced = copy(1, 1), strided = copy(4, 1);
  // Reads find the rest of their sectors in L1, writes do not.
  CHECK(part_ns(strided, TermPart::kL2) == Approx(2.5 * part_ns(coalesced, TermPart::kL2)));
  CHECK(ns(strided) > 1.05 * ns(coalesced));
  CHECK(part_ns(copy(1, 4), TermPart::kIssue) < 0.5 * part_ns(coalesced, TermPart::kIssue));
  CHECK(ns(copy(1, 4)) < ns(coalesced));
}

TEST_CASE("padded rows in shared memory beat rows that meet in one bank") {
  const double conflict = part_ns(transpose(0), TermPart::kShared);
  const double padded = part_ns(transpose(1), TermPart::kShared);
  // One of four accesses of a tile (two of them global) takes 32 rounds instead of one.
  CHECK(conflict == Approx(padded * (3 + 32) / 4.0));
  CHECK(ns(transpose(0)) > 1.5 * ns(transpose(1)));
}

// Tiles of 64 rows of `columns` halves through shared memory, 16 bytes a thread.
ir::Program through_swizzled(int64_t columns, int64_t bytes) {
  const std::string swizzle = bytes > 0 ? fmt::format(" {{swizzle_0={}}}", bytes) : "";
  return parse_or_die(fmt::format(
      R"(program p(X: f16[4096, {0}]) -> (Y: f16[4096, {0}]) {{
  buffer S: f16[4096, {0}] shared
  for b in 64 @L0 bind(block.x) {{
    for c in {1} @L1 {{ for t in 256 @L2 bind(thread.x) {{ for v in 8 @L3 vectorized {{
      block "S" @B0 [i: S(4096) = b * 64 + ((c * 256 + t) * 8 + v) // {0}, j: S({0}) = ((c * 256 + t) * 8 + v) % {0}]{2} {{
        reads X[i, j] writes S[i, j] S[i, j] = X[i, j] }} }} }} }}
    for c1 in {1} @L4 {{ for t1 in 256 @L5 bind(thread.x) {{ for v1 in 8 @L6 vectorized {{
      block "Y" @B1 [i1: S(4096) = b * 64 + ((c1 * 256 + t1) * 8 + v1) // {0}, j1: S({0}) = ((c1 * 256 + t1) * 8 + v1) % {0}] {{
        reads S[i1, j1] writes Y[i1, j1] Y[i1, j1] = S[i1, j1] }} }} }} }}
  }} }})",
      columns, 64 * columns / 2048, swizzle));
}

TEST_CASE(
    "swizzled rows meet no bank twice in panels as wide as they are, and do in narrower ones") {
  for (const int64_t columns : {32, 64, 128}) {
    const double plain = part_ns(through_swizzled(columns, 0), TermPart::kShared);
    for (const int64_t bytes : {32, 64, 128}) {
      const int64_t row = columns * 2;
      if (bytes > row) continue;
      INFO("rows of " << row << " bytes, panels of " << bytes);
      // Of four accesses two are in shared memory: eight lanes meet in a panel's banks.
      const auto rounds = static_cast<double>(std::min<int64_t>(row, 128) / bytes);
      CHECK(part_ns(through_swizzled(columns, bytes), TermPart::kShared) ==
            Approx(plain * (2 + 2 * rounds) / 4));
    }
    // The widest panels that divide the row.
    CHECK(part_ns(through_swizzled(columns, columns * 2), TermPart::kShared) == Approx(plain));
  }
}

TEST_CASE("a swizzle spreads a column of 32 rows over eight pieces of 16 bytes") {
  const double column = part_ns(transpose_by(" {swizzle_0=128}"), TermPart::kShared);
  CHECK(column == Approx(part_ns(transpose(0), TermPart::kShared) * (3 + 4) / (3 + 32)));
}

TEST_CASE("statements without products cost memory, and functions cost their unit") {
  const ir::Program add = map("X[i, j] + 1f32");
  CHECK(part_ns(add, TermPart::kMemory) ==
        Approx(2.0 * 4096 * 1024 * 4 / kA100.platform.memory_bandwidth * 1e9));
  CHECK(part_ns(add, TermPart::kSpecial) == 0);
  std::string deep = "X[i, j]";
  for (int i = 0; i < 40; ++i) deep = "exp(" + deep + ")";
  CHECK(part_ns(map(deep), TermPart::kSpecial) > part_ns(map(deep), TermPart::kMemory));
  CHECK(ns(map(deep)) > 1.5 * ns(add));
}

TEST_CASE("tensor instructions beat multiply-adds where the device has them") {
  const ir::Program tensor = half_product(true), plain = half_product(false);
  CHECK(part_ns(tensor, TermPart::kTensor) > 0);
  CHECK(part_ns(tensor, TermPart::kFma) < 0.05 * part_ns(plain, TermPart::kFma));
  CHECK(ns(tensor) < 0.5 * ns(plain));
  const double macs = 2048.0 * 2048 * 2048;
  CHECK(part_ns(tensor, TermPart::kTensor) >
        macs / (108 * 1024 * kA100.platform.clock_ghz) * 0.999);
}

// Tiles of 128 x 64 into shared memory, `ahead` iterations before they are read.
ir::Program fetched(bool is_bulk, int64_t ahead) {
  const std::string copy =
      is_bulk ? "for i in 128 @L3 {{bulk_copy=1, pipeline_stage=0, pipeline_order=0}} {{ for j in "
                "64 @L4 {{"
              : "for i in 128 @L3 {{pipeline_stage=0, pipeline_order=0}} {{ for j in 64 @L4 {{";
  return parse_or_die(
      fmt::format(fmt::runtime(R"(program p(A: f16[16896, 4096]) -> (C: f16[16896, 64]) {{
  buffer S: f16[16896, 4096] shared
  for b in 132 @L0 bind(block.x) {{ for k in 64 @L1 {{software_pipeline={}}} {{
    )" + copy + R"(
      block "S" @B0 [i0: S(16896) = b * 128 + i, j0: S(4096) = k * 64 + j] {{
        reads A[i0, j0] writes S[i0, j0] S[i0, j0] = A[i0, j0] }} }} }}
    for t in 128 @L5 bind(thread.x) {{pipeline_stage={}, pipeline_order=1}} {{ for v in 64 @L6 {{
      block "C" @B1 [i1: S(16896) = b * 128 + t, j1: S(64) = v, k1: R(64) = k] {{
        reads S[i1, k1 * 64 + j1] writes C[i1, j1] init {{ C[i1, j1] = 0f16 }}
        C[i1, j1] = C[i1, j1] + S[i1, k1 * 64 + j1] }} }} }} }} }} }})"),
                  ahead + 1, ahead));
}

TEST_CASE(
    "a bulk copy is the copy engine's: bytes, not one thread's loop, and in flight as deep as its "
    "pipeline") {
  const ir::Program bulk = fetched(true, 1), loop = fetched(false, 1);
  CHECK(part_ns(bulk, TermPart::kMemory) == Approx(part_ns(loop, TermPart::kMemory)));
  CHECK(part_ns(bulk, TermPart::kLatency) < 0.05 * part_ns(loop, TermPart::kLatency));
  CHECK(part_ns(bulk, TermPart::kIssue) < part_ns(loop, TermPart::kIssue));
  const double waits =
      part_ns(bulk, TermPart::kLatency) - part_ns(fetched(true, 3), TermPart::kLatency);
  CHECK(waits == Approx(64 * 450 * (1 - 1 / 3.0) / kA100.platform.clock_ghz));
}

// Tiles of 128 x 64, a row by each thread in pieces of so many elements of two bytes.
ir::Program pieces_fetched(int64_t lanes, int64_t ahead, const char* type = "f16",
                           const char* value = "A[i0, j0]") {
  return parse_or_die(fmt::format(R"(program p(A: {4}[16896, 4096]) -> (C: f16[16896, 64]) {{
  buffer S: f16[16896, 4096] shared
  for b in 132 @L0 bind(block.x) {{ for k in 64 @L1 {{software_pipeline={1}}} {{
    for c in {3} @L2 {{pipeline_stage=0, pipeline_order=0}} {{ for t in 128 @L3 bind(thread.x) {{ for v in {0} @L4 vectorized {{
      block "S" @B0 [i0: S(16896) = b * 128 + t, j0: S(4096) = k * 64 + c * {0} + v] {{
        reads A[i0, j0] writes S[i0, j0] S[i0, j0] = {5} }} }} }} }}
    for t1 in 128 @L5 bind(thread.x) {{pipeline_stage={2}, pipeline_order=1}} {{ for v1 in 64 @L6 {{
      block "C" @B1 [i1: S(16896) = b * 128 + t1, j1: S(64) = v1, k1: R(64) = k] {{
        reads S[i1, k1 * 64 + j1] writes C[i1, j1] init {{ C[i1, j1] = 0f16 }}
        C[i1, j1] = C[i1, j1] + S[i1, k1 * 64 + j1] }} }} }} }} }} }})",
                                  lanes, ahead + 1, ahead, 64 / lanes, type, value));
}

// The same of bytes, by blocks whose rows become columns.
ir::Program turned_blocks_fetched(int64_t ahead) {
  return parse_or_die(fmt::format(R"(program p(A: i8[4096, 16896]) -> (C: i8[16896, 64]) {{
  buffer S: i8[16896, 4096] shared
  for b in 132 @L0 bind(block.x) {{ for k in 64 @L1 {{software_pipeline={0}}} {{
    for c in 4 @L2 {{pipeline_stage=0, pipeline_order=0}} {{ for t in 128 @L3 bind(thread.x) {{
      for r in 4 @L4 unrolled {{ for v in 4 @L5 vectorized {{
        block "S" @B0 [i0: S(16896) = b * 128 + t % 32 * 4 + r, j0: S(4096) = k * 64 + c * 16 + t // 32 * 4 + v] {{
          reads A[j0, i0] writes S[i0, j0] S[i0, j0] = A[j0, i0] }} }} }} }} }}
    for t1 in 128 @L6 bind(thread.x) {{pipeline_stage={1}, pipeline_order=1}} {{ for v1 in 64 @L7 {{
      block "C" @B1 [i1: S(16896) = b * 128 + t1, j1: S(64) = v1, k1: R(64) = k] {{
        reads S[i1, k1 * 64 + j1] writes C[i1, j1] init {{ C[i1, j1] = 0i8 }}
        C[i1, j1] = C[i1, j1] + S[i1, k1 * 64 + j1] }} }} }} }} }} }})",
                                  ahead + 1, ahead));
}

TEST_CASE("fetches too small for cp.async are waited for in each iteration, a batch at a time") {
  const auto latency = [](int64_t lanes, int64_t ahead) {
    return part_ns(pieces_fetched(lanes, ahead), TermPart::kLatency);
  };
  const double per_ns = kA100.platform.clock_ghz;
  // 32 pieces by cp.async are one wait.
  CHECK(latency(2, 1) - latency(2, 3) == Approx(64 * 450 * (1 - 1 / 3.0) / per_ns));
  CHECK(latency(1, 1) == Approx(latency(1, 3)));
  CHECK(latency(1, 1) > 64 * 1000 / per_ns);
}

TEST_CASE("fetches that convert or turn what they read are waited for in each iteration") {
  const auto latency = [](const ir::Program& program) {
    return part_ns(program, TermPart::kLatency);
  };
  const double wait = 64 * 1000 / kA100.platform.clock_ghz;
  const auto converted = [](int64_t ahead) {
    return pieces_fetched(2, ahead, "f32", "f16(A[i0, j0])");
  };
  CHECK(latency(converted(1)) == Approx(latency(converted(3))));
  CHECK(latency(converted(3)) - latency(pieces_fetched(2, 3)) == Approx(wait * (32 - 0.45 / 3)));
  CHECK(latency(turned_blocks_fetched(1)) == Approx(latency(turned_blocks_fetched(3))));
  // Zeros beside a tile are neither, but fewer are written out: eight at a time, not 32.
  const auto padded = [](int64_t lanes, int64_t ahead) {
    return pieces_fetched(lanes, ahead, "f16", "select(j0 < 4000, A[i0, j0], 0f16)");
  };
  CHECK(latency(padded(2, 3)) < latency(padded(2, 1)));
  CHECK(latency(padded(1, 1)) - latency(pieces_fetched(1, 1)) == Approx((8 - 2) * wait));
}

// Tiles of 64 x 16, a row of 16 after the other, by vectors of so many elements.
ir::Program rows_fetched(int64_t lanes) {
  return parse_or_die(fmt::format(
      R"(program p(X: f32[8192, 1024]) -> (Y: f32[8192, 1024]) {{
  for by in 128 @L0 bind(block.y) {{ for bx in 64 @L1 bind(block.x) {{ for c in {} @L2 {{ for t in 64 @L3 bind(thread.x) {{ for v in {} @L4 vectorized {{
    block "Y" @B0 [i: S(8192) = by * 64 + {e} // 16, j: S(1024) = bx * 16 + {e} % 16] {{
      reads X[i, j] writes Y[i, j] Y[i, j] = X[i, j] }} }} }} }} }} }} }})",
      16 / lanes, lanes, fmt::arg("e", fmt::format("((c * 64 + t) * {} + v)", lanes))));
}

TEST_CASE("narrow and wide copies of the same rows ask L2 for the same sectors") {
  const ir::Program narrow = rows_fetched(1), pairs = rows_fetched(2), wide = rows_fetched(4);
  CHECK(part_ns(narrow, TermPart::kL2) == Approx(part_ns(wide, TermPart::kL2)));
  CHECK(part_ns(pairs, TermPart::kL2) == Approx(part_ns(wide, TermPart::kL2)));
  CHECK(part_ns(narrow, TermPart::kShared) == Approx(part_ns(wide, TermPart::kShared)));
  CHECK(part_ns(narrow, TermPart::kIssue) > 2 * part_ns(wide, TermPart::kIssue));
}

// Sums of 16 x 16 products of registers' rows and columns, with loops as a schedule has them.
ir::Program registers_product(const std::string& top, const std::string& k) {
  return parse_or_die(fmt::format(
      R"(program p(A: f32[1024, 1024], B: f32[1024, 1024]) -> (C: f32[1024, 1024]) {{
  buffer SA: f32[1024, 1024] shared
  buffer SB: f32[1024, 1024] shared
  buffer R: f32[1024, 1024] local
  for by in 16 @L0 bind(block.y) {} {{ for bx in 16 @L1 bind(block.x) {{ for k0 in 64 @L2 {{
    for y in 16 @L3 bind(thread.y) {{ for x in 16 @L4 bind(thread.x) {{ for v in 4 @L5 vectorized {{
      block "SA" @B0 [i0: S(1024) = by * 64 + y * 4 + v, j0: S(1024) = k0 * 16 + x] {{ reads A[i0, j0] writes SA[i0, j0] SA[i0, j0] = A[i0, j0] }} }} }} }}
    for y1 in 16 @L6 bind(thread.y) {{ for x1 in 16 @L7 bind(thread.x) {{ for v1 in 4 @L8 vectorized {{
      block "SB" @B1 [i1: S(1024) = k0 * 16 + y1, j1: S(1024) = bx * 64 + x1 * 4 + v1] {{ reads B[i1, j1] writes SB[i1, j1] SB[i1, j1] = B[i1, j1] }} }} }} }}
    for ty in 16 @L9 bind(thread.y) {{ for tx in 16 @L10 bind(thread.x) {{ for k1 in 16 @L11 {} {{ for i in 4 @L12 {{ for j in 4 @L13 {{
      block "R" @B2 [vi: S(1024) = by * 64 + ty * 4 + i, vj: S(1024) = bx * 64 + tx * 4 + j, vk: R(1024) = k0 * 16 + k1] {{
        reads SA[vi, vk], SB[vk, vj] writes R[vi, vj] init {{ R[vi, vj] = 0f32 }} R[vi, vj] = R[vi, vj] + SA[vi, vk] * SB[vk, vj] }} }} }} }} }} }} }}
    for y2 in 16 @L14 bind(thread.y) {{ for x2 in 16 @L15 bind(thread.x) {{ for i2 in 4 @L16 {{ for j2 in 4 @L17 {{
      block "C" @B3 [oi: S(1024) = by * 64 + y2 * 4 + i2, oj: S(1024) = bx * 64 + x2 * 4 + j2] {{ reads R[oi, oj] writes C[oi, oj] C[oi, oj] = R[oi, oj] }} }} }} }} }}
  }} }} }})",
      top, k));
}

TEST_CASE("bytes that a thread turns are read in words, those that it computes from one by one") {
  const auto shared_ns = [](const char* value) {
    const std::string fetch = fmt::format("{{ T[vn, vk] = {} }}", value);
    return part_ns(parse_or_die(R"(
program p(A: i8[64, 32]) -> (B: i8[32, 64]) {
  buffer T: i8[32, 64] shared
  for b in 1 bind(block.x) {
    for h in 16 { for t in 8 bind(thread.x) { for r in 4 unrolled { for c in 4 vectorized {
      block "T" [vn: S(32) = t*4 + r, vk: S(64) = h*4 + c] )" +
                                fetch + R"( } } } }
    for h2 in 32 { for t2 in 8 bind(thread.x) { for v in 8 vectorized {
      block "B" [wn: S(32) = h2, wk: S(64) = t2*8 + v] { B[wn, wk] = T[wn, wk] } } } }
  }
})"),
                   TermPart::kShared);
  };
  const double computed = shared_ns("A[vk, vn] - 1i8");
  CHECK(shared_ns("A[vk, vn]") < computed);
  CHECK(shared_ns("select(vk < 61, A[vk, vn], 0i8)") < computed);
}

TEST_CASE("loops are written out as far as code generation does it") {
  const ir::Program none = registers_product("", ""),
                    by_limit = registers_product("{unroll_max_step=256}", ""),
                    little = registers_product("{unroll_max_step=255}", ""),
                    all = registers_product("", "unrolled");
  CHECK(part_ns(little, TermPart::kIssue) == Approx(part_ns(none, TermPart::kIssue)));
  CHECK(part_ns(by_limit, TermPart::kIssue) == Approx(part_ns(all, TermPart::kIssue)));
  CHECK(part_ns(all, TermPart::kIssue) < 0.9 * part_ns(none, TermPart::kIssue));
  CHECK(part_ns(all, TermPart::kLatency) < part_ns(none, TermPart::kLatency));
  // Rows of A lie along k, which others are written out inside of: four at a time.
  CHECK(part_ns(all, TermPart::kShared) < 0.8 * part_ns(none, TermPart::kShared));
}

TEST_CASE("code that no partition keeps is fetched") {
  const auto unrolled = [](int64_t n, const ir::Target& target = kA100) {
    return part_ns(parse_or_die(fmt::format(
                       R"(program p(X: f32[256, 262144]) -> (Y: f32[256, 262144]) {{
      for b in 256 @L0 bind(block.x) {{ for o in {} @L1 {{ for t in 256 @L2 bind(thread.x) {{ for k in {} @L3 unrolled {{
        block "Y" @B0 [i: S(256) = b, j: S(262144) = (o * {} + k) * 256 + t] {{ reads X[i, j] writes Y[i, j]
          Y[i, j] = X[i, j] * X[i, j] }} }} }} }} }} }})",
                       1024 / n, n, n)),
                   TermPart::kIssue, target);
  };
  CHECK(unrolled(128) <= unrolled(16));
  CHECK(unrolled(512) > 1.2 * unrolled(128));
  CHECK(unrolled(1024) > 1.5 * unrolled(128));
  // Since Hopper more is kept.
  const ir::Target hopper = ir::target_from_string("cuda:h100").value();
  CHECK(unrolled(512, hopper) <= unrolled(128, hopper));
}

TEST_CASE("blocks along one axis share tiles as those along two do") {
  const auto product = [](const std::string& loops, const std::string& y, const std::string& x) {
    return parse_or_die(fmt::format(
        R"(program p(A: f32[256, 4096], B: f32[4096, 2048]) -> (C: f32[256, 2048]) {{ {}
  for ty in 16 @L2 bind(thread.y) {{ for tx in 16 @L3 bind(thread.x) {{ for k in 4096 @L4 {{
    block "C" @B0 [i: S(256) = ({}) * 16 + ty, j: S(2048) = ({}) * 16 + tx, r: R(4096) = k] {{
      reads A[i, r], B[r, j] writes C[i, j] init {{ C[i, j] = 0f32 }} C[i, j] = C[i, j] + A[i, r] * B[r, j]
    }} }} }} }} {} }})",
        loops, y, x, loops.find("by") == loops.npos ? "}" : "} }"));
  };
  const ir::Program one = product("for b in 2048 @L0 bind(block.x) {", "b // 128", "b % 128");
  const ir::Program two =
      product("for by in 16 @L0 bind(block.y) { for bx in 128 @L1 bind(block.x) {", "by", "bx");
  CHECK(part_ns(one, TermPart::kMemory) == Approx(part_ns(two, TermPart::kMemory)).epsilon(0.1));
}

TEST_CASE("faster memory and more multiprocessors are faster") {
  const ir::Program program = map("X[i, j] + 1f32");
  double last = 1e30;
  for (const char* name : {"cuda:k80", "cuda:t4", "cuda:titanv", "cuda:a100-40", "cuda:a100",
                           "cuda:h100", "cuda:h200"}) {
    const double now = ns(program, ir::target_from_string(name).value());
    INFO(name);
    CHECK(now < last);
    last = now;
  }
}

TEST_CASE("measured rates take the place of the table's") {
  ir::Target slow = kA100;
  slow.platform.fma_gflops = kA100.peak_gflops() / 2;
  const std::vector<int64_t> values = {16, 1, 16, 4, 16, 1, 16, 4, 64, 16, 4};
  const ir::Program tile = instance(gpu_gemm(1024, 1024, 1024), values);
  CHECK(part_ns(tile, TermPart::kFma, slow) ==
        Approx(2 * part_ns(tile, TermPart::kFma)).epsilon(1e-9));
  // 64 bytes of 128 in a cycle of each multiprocessor.
  slow = kA100;
  slow.platform.l1_bandwidth = 64e9 * static_cast<double>(kA100.num_sms) * kA100.platform.clock_ghz;
  CHECK(part_ns(transpose(1), TermPart::kShared, slow) ==
        Approx(2 * part_ns(transpose(1), TermPart::kShared)).epsilon(1e-9));
}

// Scores and weighted sums of 256 rows, 32 to a block, by tiles of 32 keys; the weights lie between.
ir::Program rows_of_weights(const std::string& weight) {
  return parse_or_die(fmt::format(
      R"(program p(Q: f32[256, 8], K: f32[256, 8], V: f32[256, 8]) -> (Y: f32[256, 8]) {{
  buffer a: f32[256, 256] shared
  buffer p: f32[256, 256] shared
  buffer y: f32[256, 8] local
  for b in 8 @L0 bind(block.x) {{
    for s0 in 8 @L1 {{ for x0 in 32 @L2 bind(thread.x) {{ for s1 in 32 @L3 {{ for e in 8 @L4 {{
      block "a" @B0 [vt: S(256) = b * 32 + x0, vs: S(256) = s0 * 32 + s1, ve: R(8) = e] {{
        init {{ a[vt, vs] = 0f32 }} a[vt, vs] = a[vt, vs] + Q[vt, ve] * K[vs, ve] }} }} }} }} }}
    for x1 in 32 @L5 bind(thread.x) {{ for u in 256 @L6 {{
      block "p" @B1 [vt: S(256) = b * 32 + x1, vs: S(256) = u] {{ p[vt, vs] = {} }} }} }}
    for x2 in 32 @L7 bind(thread.x) {{ for f0 in 8 @L8 {{
      block "y_init" @B2 [vt: S(256) = b * 32 + x2, vf: S(8) = f0] {{ y[vt, vf] = 0f32 }} }} }}
    for k0 in 8 @L9 {{ for x3 in 32 @L10 bind(thread.x) {{ for k1 in 32 @L11 {{ for f1 in 8 @L12 {{
      block "y" @B3 [vt: S(256) = b * 32 + x3, vf: S(8) = f1, vk: R(256) = k0 * 32 + k1] {{
        y[vt, vf] = y[vt, vf] + p[vt, vk] * V[vk, vf] }} }} }} }} }}
    for x4 in 32 @L13 bind(thread.x) {{ for f2 in 8 @L14 {{
      block "Y" @B4 [vt: S(256) = b * 32 + x4, vf: S(8) = f2] {{ Y[vt, vf] = y[vt, vf] }} }} }}
  }} }})",
      weight));
}

TEST_CASE("products that begin or end with a mask cost the tiles that run") {
  const ir::Program whole = rows_of_weights("a[vt, vs]");
  const ir::Program causal = rows_of_weights("select(vs <= vt, a[vt, vs], 0f32)");
  const ir::Program behind = rows_of_weights("select(vt <= vs, a[vt, vs], 0f32)");
  // Of eight tiles block b runs b + 1, or 8 - b. Nothing else multiplies.
  const double share = 4.5 / 8;
  for (const ir::Program& masked : {causal, behind}) {
    CHECK(part_ns(masked, TermPart::kFma) ==
          Approx(share * part_ns(whole, TermPart::kFma)).epsilon(0.02));
  }
  CHECK(ns(causal) < ns(whole));
  // A kernel that leaves out one of them costs what its sketch's symbols say.
  CHECK(ns(rows_of_weights("select(vs <= vt, a[vt, vs], 1f32)")) ==
        Approx(ns(rows_of_weights("select(vt <= vs, a[vt, vs], 1f32)"))));
}

TEST_CASE("a sketch's numbers on a GPU are those of its instances") {
  for (const NamedSketch& sketch : all_sketches()) {
    const ir::Target target = ir::target_from_string(sketch.target).value();
    if (target.kind == ir::TargetKind::kCpu) continue;
    const LatencySymbols symbols = latency_symbols(sketch.program, target);
    const Sym wanted[] = {symbols.total_ns,   symbols.core_ns,   symbols.l2_ns,
                          symbols.memory_ns,  symbols.launch_ns, symbols.code_size,
                          symbols.is_feasible};
    int wrong = 0, num_equal = 0;
    for (const std::vector<int64_t>& point : candidates(sketch.program, 400, 7)) {
      const std::vector<double> params(point.begin(), point.end());
      const std::vector<double> got = evaluate(wanted, params);
      if (got[6] == 0) continue;
      const ir::Program program = instance(sketch.program, point);
      // With more threads than a fetch has elements, the guard simplifies subscripts of the
      // instance.
      if (is_guarded(program)) continue;
      ++num_equal;
      const LatencyEstimate e = estimate_latency(program, target);
      const double expected[] = {e.total_ns,  e.core_ns,   e.l2_ns,
                                 e.memory_ns, e.launch_ns, e.code_size};
      for (std::size_t o = 0; o < 6; ++o) {
        // Threads beyond a fetch's tile: what the guard says of single loops the sketch does not
        // see.
        const double tolerance = is_guarded(program) ? 0.1 : 1e-9;
        if (std::abs(got[o] - expected[o]) <= tolerance * std::abs(expected[o])) continue;
        if (++wrong > 3) continue;
        UNSCOPED_INFO(sketch.name << " output " << o << ": " << got[o] << " for " << expected[o]
                                  << "\n"
                                  << ir::print(program));
      }
    }
    INFO(sketch.name);
    CHECK(wrong == 0);
    CHECK(num_equal > 50);
  }
}

// Two loops after each other, each with a ring of four tiles of 16 rows.
constexpr const char* kRings = R"(
program p(A: f16[32, 64], B: f16[32, 64]) -> (C: f32[32, 64], D: f32[32, 64]) {
  buffer S: f16[32, 64] shared
  buffer T: f16[32, 64] shared
  for b in 1 bind(block.x) {
    for k in 2 {software_pipeline = 4} {
      for i in 16 {bulk_copy = 1} { for j in 64 {
        block "S" [v: S(32) = k*16 + i, x: S(64) = j] { S[v, x] = A[v, x] } } }
      for t in 64 bind(thread.x) { for i in 16 {
        block "C" [v: S(32) = k*16 + i, x: S(64) = t] { C[v, x] = f32(S[v, x]) } } } }
    for k in 2 {software_pipeline = 4} {
      for i in 16 {bulk_copy = 1} { for j in 64 {
        block "T" [v: S(32) = k*16 + i, x: S(64) = j] { T[v, x] = B[v, x] } } }
      for t in 64 bind(thread.x) { for i in 16 {
        block "D" [v: S(32) = k*16 + i, x: S(64) = t] { D[v, x] = f32(T[v, x]) } } } }
  }
})";

TEST_CASE("a ring has all of its stages in a kernel's shared memory, beside every other one") {
  const ir::Program program = parse_or_die(kRings);
  const ir::Target small = ir::target_from_string("cuda:h100 smem_bytes_per_block=8192").value();
  const int64_t bytes = int64_t{2} * 4 * 16 * 64 * 2;
  double have = 0;
  for (const LatencyLimit& limit : latency_symbols(program, small).limits) {
    if (limit.what == "bytes of shared memory") have = limit.have.value();
  }
  CHECK(have == static_cast<double>(bytes));
  const Result<std::vector<schedule::GpuNeeds>> needs = schedule::gpu_needs(program);
  REQUIRE(needs.ok());
  CHECK((*needs)[0].smem_bytes == bytes);
  CHECK((*needs)[0].block[1] == 2);
}

TEST_CASE("no candidate is refused that the check of its instance lets pass") {
  int num_refused = 0, num_missed = 0, num_illegal = 0;
  for (const NamedSketch& sketch : all_sketches()) {
    const ir::Target target = ir::target_from_string(sketch.target).value();
    if (target.kind == ir::TargetKind::kCpu) continue;
    const LatencySymbols symbols = latency_symbols(sketch.program, target);
    for (const std::vector<int64_t>& point : candidates(sketch.program, 300, 9)) {
      const std::vector<double> params(point.begin(), point.end());
      const bool is_feasible = evaluate({&symbols.is_feasible, 1}, params)[0] != 0;
      const bool is_legal =
          schedule::check_gpu_limits(instance(sketch.program, point), target).ok();
      INFO(sketch.name);
      CHECK((is_feasible || !is_legal));
      num_illegal += is_legal ? 0 : 1;
      num_refused += is_feasible ? 0 : 1;
      num_missed += is_feasible && !is_legal ? 1 : 0;
    }
  }
  // Nearly all that are illegal are refused without an instance.
  CHECK(num_refused > 50);
  CHECK(num_missed * 20 < num_illegal);
}

}  // namespace prunerc::costmodel
