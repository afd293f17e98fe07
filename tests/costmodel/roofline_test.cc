#include "costmodel/latency/roofline.h"

#include "costmodel/latency/nest.h"
#include "ir/parser.h"
#include "schedule/schedule.h"
#include "tests/costmodel/sketches.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <cmath>

namespace prunerc {
namespace {

using namespace costmodel;  // NOLINT: a test
using namespace testing;    // NOLINT: a test
using schedule::Int;
using schedule::Schedule;

ir::Target machine(int64_t num_threads = 1) {
  ir::Target target = ir::target_from_string("cpu:icelake-server").value();
  target.num_threads = num_threads;
  return target;
}

double latency(const Schedule& s, int64_t num_threads = 1) {
  return estimate_latency(s.program(), machine(num_threads)).total_ns;
}

/// i0 j0 k | i1 unrolled, j1 unrolled, lanes.
Schedule tiled(int64_t n, int64_t rows, int64_t vectors) {
  Schedule s(matmul(n));
  const auto loops = s.loops_of(s.blocks()[0]);
  const auto i = s.split(loops[0], {Int(-1), Int(rows)}).value();
  const auto j = s.split(loops[1], {Int(-1), Int(vectors), Int(16)}).value();
  REQUIRE_OK(s.reorder({i[0], j[0], loops[2], i[1], j[1], j[2]}));
  REQUIRE_OK(s.unroll(i[1]));
  REQUIRE_OK(s.unroll(j[1]));
  REQUIRE_OK(s.vectorize(j[2]));
  return s;
}

TEST_CASE("a register tile of vectors beats the program as written by far") {
  CHECK(latency(Schedule(matmul(256))) > 10 * latency(tiled(256, 8, 2)));
}

TEST_CASE("the estimate of a good tile lies between the machine's limit and three times it") {
  const ir::Target target = machine();
  const double limit = 2.0 * 256 * 256 * 256 / target.peak_gflops();
  const double ns = latency(tiled(256, 8, 3));
  CHECK(ns > limit);
  CHECK(ns < 3 * limit);
}

TEST_CASE("too few accumulators wait for each other") {
  CHECK(latency(tiled(256, 1, 1)) > 2 * latency(tiled(256, 8, 2)));
}

TEST_CASE("more accumulators than registers spill") {
  const LatencyEstimate fits = estimate_latency(tiled(256, 8, 2).program(), machine());
  const LatencyEstimate spills = estimate_latency(tiled(256, 16, 8).program(), machine());
  CHECK(fits.max_tile_registers <= 32);
  CHECK(spills.max_tile_registers > 32);
  CHECK(spills.core_ns > 1.2 * fits.core_ns);
}

TEST_CASE("lanes along a strided axis are gathered") {
  auto vectorized = [](int which) {
    Schedule s(parse_or_die(R"(program t(X: f32[128, 128]) -> (Y: f32[128, 128]) {
      for i in 128 { for j in 128 { block "Y" [vi: S(128) = i, vj: S(128) = j] {
        Y[vi, vj] = X[vi, vj] + 1f32 } } } })"));
    const auto loops = s.loops_of(s.blocks()[0]);
    const auto parts = s.split(loops[static_cast<std::size_t>(which)], {Int(-1), Int(16)}).value();
    REQUIRE_OK(s.reorder({parts[0], loops[static_cast<std::size_t>(1 - which)], parts[1]}));
    REQUIRE_OK(s.vectorize(parts[1]));
    return latency(s);
  };
  CHECK(vectorized(0) > 5 * vectorized(1));
}

TEST_CASE("columns of a tile as wide as a vector are no gather") {
  auto tiled_rows = [](int64_t rows) {
    Schedule s(parse_or_die(R"(program t(X: f32[128, 128]) -> (Y: f32[128, 128]) {
      for j in 128 { for i in 128 { block "Y" [vj: S(128) = j, vi: S(128) = i] {
        Y[vj, vi] = X[vi, vj] } } } })"));
    const auto loops = s.loops_of(s.blocks()[0]);
    const auto j = s.split(loops[0], {Int(-1), Int(rows)}).value();
    const auto i = s.split(loops[1], {Int(-1), Int(16)}).value();
    REQUIRE_OK(s.reorder({j[0], i[0], j[1], i[1]}));
    REQUIRE_OK(s.vectorize(i[1]));
    REQUIRE_OK(s.unroll(j[1]));
    return latency(s);
  };
  CHECK(tiled_rows(8) > 3 * tiled_rows(16));
}

TEST_CASE("two threads halve a large product and do not help a tiny one") {
  auto parallel = [](int64_t n) {
    Schedule s = tiled(n, 4, 2);
    REQUIRE_OK(s.parallel(s.loops_of(s.blocks()[0])[0]));
    return s;
  };
  const Schedule large = parallel(256);
  CHECK(latency(large, 2) < 0.75 * latency(large, 1));
  const Schedule tiny = parallel(32);
  CHECK(latency(tiny, 2) > latency(tiny, 1));
}

TEST_CASE("an uneven split leaves a thread idle") {
  auto with_tasks = [](int64_t tasks) {
    Schedule s = tiled(240, 4, 1);
    const auto loops = s.loops_of(s.blocks()[0]);
    const auto parts = s.split(loops[0], {Int(tasks), Int(-1)}).value();
    REQUIRE_OK(s.parallel(parts[0]));
    return latency(s, 2);
  };
  CHECK(with_tasks(3) > 1.25 * with_tasks(4));
}

TEST_CASE("rows that compete for few cache sets cost traffic that a packed panel does not") {
  Schedule plain = tiled(1024, 6, 4);
  Schedule packed(matmul(1024));
  const ir::BlockId block = packed.blocks()[0];
  const ir::BlockId copy = packed.cache_read(block, 1, ir::Scope::kGlobal).value();
  const auto loops = packed.loops_of(block);
  const auto i = packed.split(loops[0], {Int(-1), Int(6)}).value();
  const auto j = packed.split(loops[1], {Int(-1), Int(4), Int(16)}).value();
  REQUIRE_OK(packed.reorder({j[0], i[0], loops[2], i[1], j[1], j[2]}));
  REQUIRE_OK(packed.unroll(i[1]));
  REQUIRE_OK(packed.unroll(j[1]));
  REQUIRE_OK(packed.vectorize(j[2]));
  const auto copy_loops = packed.compute_at(copy, j[0]);
  REQUIRE_OK(copy_loops);
  const auto lanes = packed.split(copy_loops->back(), {Int(-1), Int(16)}).value();
  REQUIRE_OK(packed.vectorize(lanes[1]));
  const LatencyEstimate a = estimate_latency(plain.program(), machine());
  const LatencyEstimate b = estimate_latency(packed.program(), machine());
  CHECK(a.l3_ns > 2 * b.l3_ns);
  CHECK(b.total_ns < a.total_ns);
}

TEST_CASE("constants that are cold come from memory, other data stay") {
  const auto memory_ns = [](std::string inputs, int64_t constants_bytes) {
    ir::Target target = machine();
    target.constants_bytes = constants_bytes;
    const ir::Program program = ir::parse("program scale(" + inputs + R"() -> (C: f32[4096]) {
      for i in 4096 @L0 { block "C" @B0 [vi: S(4096) = i] { C[vi] = A[vi]*B[vi] } }
    })")
                                    .value();
    return estimate_latency(program, target).memory_ns;
  };
  const std::string warm = "A: f32[4096], B: f32[4096]", mixed = "A: f32[4096], const B: f32[4096]";
  const int64_t l3 = machine().l3_bytes;
  CHECK(memory_ns(mixed, 0) == 0);
  CHECK(memory_ns(mixed, l3 / 2) == 0);
  CHECK(memory_ns(warm, 2 * l3) == 0);
  // At a million bytes per us or less.
  CHECK(memory_ns(mixed, 2 * l3) > 16384 / 1000.0);
}

TEST_CASE("rows that drive each other out leave other data in the cache") {
  // Twice the rows of A for each row of B: half as many rows of B, and A's lines are found again by
  // the next steps.
  const auto fetched_ns = [](int64_t rows) {
    return estimate_latency(tiled(768, rows, 1).program(), machine()).l2_ns;
  };
  CHECK(fetched_ns(16) < 0.7 * fetched_ns(8));
}

TEST_CASE("sums stay in registers over all loops that leave them alone") {
  Schedule nested = tiled(256, 8, 2);
  const auto k = nested.loops_of(nested.blocks()[0])[2];
  REQUIRE_OK(nested.split(k, {Int(-1), Int(4)}));
  const double plain = estimate_latency(tiled(256, 8, 2).program(), machine()).core_ns;
  const double split = estimate_latency(nested.program(), machine()).core_ns;
  CHECK(split >= plain);
  CHECK(split < 1.1 * plain);
}

TEST_CASE("short chains run beside each other, long ones wait") {
  // One accumulator a tile, over blocks of the sum: 4 steps before it is stored, or 128.
  const auto core_ns = [](int64_t steps) {
    Schedule s = tiled(256, 1, 1);
    const auto loops = s.loops_of(s.blocks()[0]);
    const auto k = s.split(loops[2], {Int(-1), Int(steps)}).value();
    REQUIRE_OK(s.reorder({k[0], loops[0], loops[1], k[1]}));
    return estimate_latency(s.program(), machine()).core_ns;
  };
  CHECK(core_ns(4) < 0.8 * core_ns(128));
}

TEST_CASE("elements for all lanes do not take the port of a whole vector") {
  ir::Target zen4 = ir::target_from_string("cpu:znver4").value();
  zen4.num_threads = 1;
  // One vector and eight elements a step, or two and eight for twice the products.
  const double one = estimate_latency(tiled(256, 8, 1).program(), zen4).core_ns;
  const double two = estimate_latency(tiled(256, 8, 2).program(), zen4).core_ns;
  CHECK(one < 1.1 * two);
}

/// A depthwise convolution; `rows` of outputs unrolled, and one of the window's axes.
Schedule depthwise(int64_t width, int64_t rows, bool kernel_rows) {
  const std::string w = std::to_string(width), padded = std::to_string(width + 16);
  Schedule s(parse_or_die("program d(X: f32[34, " + padded + "], F: f32[3, 3]) -> (Y: f32[32, " +
                          w + "]) { for i in 32 { for j in " + w +
                          " { for a in 3 { for b in 3 { block \"Y\" [vi: S(32) = i, vj: S(" + w +
                          ") = j, va: R(3) = a, vb: R(3) = b] { init { Y[vi, vj] = 0f32 } "
                          "Y[vi, vj] = Y[vi, vj] + X[vi + va, vj + vb] * F[va, vb] } } } } } }"));
  const auto loops = s.loops_of(s.blocks()[0]);
  const auto i = s.split(loops[0], {Int(-1), Int(rows)}).value();
  const auto j = s.split(loops[1], {Int(-1), Int(16)}).value();
  const ir::LoopId unrolled = kernel_rows ? loops[2] : loops[3];
  const ir::LoopId serial = kernel_rows ? loops[3] : loops[2];
  REQUIRE_OK(s.reorder({i[0], j[0], serial, unrolled, i[1], j[1]}));
  REQUIRE_OK(s.unroll(unrolled));
  REQUIRE_OK(s.unroll(i[1]));
  REQUIRE_OK(s.vectorize(j[1]));
  return s;
}

double core(const Schedule& s) { return estimate_latency(s.program(), machine()).core_ns; }

TEST_CASE("rows that the windows of unrolled outputs share are loaded once") {
  // 8 + 2 rows instead of 3 * 8.
  CHECK(core(depthwise(128, 8, true)) < 0.8 * core(depthwise(128, 8, false)));
  // One row of outputs shares nothing.
  CHECK(core(depthwise(128, 1, true)) == Approx(core(depthwise(128, 1, false))));
}

TEST_CASE("vectors that begin within a line take two accesses") {
  const auto copy = [](int64_t width) {
    const std::string w = std::to_string(width);
    Schedule s(parse_or_die("program t(X: f32[64, " + w +
                            "]) -> (Y: f32[64, 96]) { for i in 64 { "
                            "for j in 96 { block \"Y\" [vi: S(64) = i, vj: S(96) = j] { "
                            "Y[vi, vj] = X[vi, vj] * X[vi, vj + 16] } } } }"));
    const auto loops = s.loops_of(s.blocks()[0]);
    const auto j = s.split(loops[1], {Int(-1), Int(16)}).value();
    REQUIRE_OK(s.vectorize(j[1]));
    return core(s);
  };
  CHECK(copy(113) > 1.2 * copy(112));
  CHECK(copy(128) == Approx(copy(112)));
}

TEST_CASE("a scalar that several vectors use takes a register") {
  // 7 * 4 accumulators and 4 vectors fill 32 registers.
  const auto registers = [](int64_t rows, int64_t vectors) {
    return estimate_latency(tiled(256, rows, vectors).program(), machine()).max_tile_registers;
  };
  CHECK(registers(7, 4) == 33);
  CHECK(registers(6, 4) == 29);
  // Used once, it is an operand in memory.
  CHECK(registers(8, 1) == 9);
  // Not without AVX-512: 7 * 2 accumulators of 8 lanes, 2 vectors, and the scalar.
  const ir::Target avx2 = ir::target_from_string("cpu:haswell").value();
  CHECK(estimate_latency(tiled(256, 7, 1).program(), avx2).max_tile_registers == 17);
}

TEST_CASE("sums with masked lanes stay in memory unless they have a tile of their own") {
  const auto product = [](int64_t n) {
    const std::string e = std::to_string(n);
    Schedule s(parse_or_die("program m(A: f32[64, 64], B: f32[64, " + e + "]) -> (C: f32[64, " + e +
                            "]) { for i in 64 { for j in " + e +
                            " { for k in 64 { block \"C\" [vi: S(64) = i, vj: S(" + e +
                            ") = j, vk: R(64) = k] { init { C[vi, vj] = 0f32 } C[vi, vj] = "
                            "C[vi, vj] + A[vi, vk] * B[vk, vj] } } } } }"));
    return s;
  };
  const auto tile = [](Schedule* s, ir::BlockId block) {
    const auto loops = s->loops_of(block);
    const auto i = s->split(loops[0], {Int(-1), Int(8)}).value();
    const auto j = s->split(loops[1], {Int(-1), Int(16)}).value();
    REQUIRE_OK(s->reorder({i[0], j[0], loops[2], i[1], j[1]}));
    REQUIRE_OK(s->unroll(i[1]));
    REQUIRE_OK(s->vectorize(j[1]));
    return j[0];
  };
  const auto direct = [&](int64_t n) {
    Schedule s = product(n);
    tile(&s, s.blocks()[0]);
    return core(s);
  };
  const auto cached = [&](int64_t n) {
    Schedule s = product(n);
    const ir::BlockId block = s.blocks()[0];
    const ir::BlockId out = s.cache_write(block, 0, ir::Scope::kLocal).value();
    const ir::LoopId at = tile(&s, block);
    REQUIRE_OK(s.reverse_compute_at(out, at));
    return core(s);
  };
  CHECK(direct(61) > 1.5 * direct(64));
  CHECK(direct(61) > 1.5 * cached(61));
  CHECK(direct(64) < 1.1 * cached(64));
}

TEST_CASE("rows that prefetchers lose between two visits are waited for") {
  // Columns in memory order over tiles of rows that lie a page apart.
  const auto waiting = [](int64_t rows) {
    Schedule s(parse_or_die(R"(program t(X: f32[768, 1024]) -> (Y: f32[1024]) {
      for j in 1024 { for i in 768 { block "Y" [vj: S(1024) = j, vi: R(768) = i] {
        init { Y[vj] = 0f32 } Y[vj] = Y[vj] + X[vi, vj] } } } })"));
    const auto loops = s.loops_of(s.blocks()[0]);
    const auto j = s.split(loops[0], {Int(-1), Int(16)}).value();
    const auto i = s.split(loops[1], {Int(-1), Int(rows)}).value();
    REQUIRE_OK(s.reorder({i[0], j[0], i[1], j[1]}));
    REQUIRE_OK(s.vectorize(j[1]));
    return estimate_latency(s.program(), machine()).latency_ns;
  };
  CHECK(waiting(96) > 1.5 * waiting(32));
  CHECK(waiting(32) > 3 * waiting(12));
  CHECK(waiting(4) < 0.05 * waiting(96));
  CHECK(waiting(768) < 1.3 * waiting(96));
}

TEST_CASE("a stage that follows in the same row finds it in the cache") {
  const char* text = R"(program t(X: f32[4096, 512]) -> (Y: f32[4096, 512]) {
    buffer T: f32[4096, 512] global
    for i in 4096 { for j in 512 { block "T" [vi: S(4096) = i, vj: S(512) = j] {
      T[vi, vj] = exp(X[vi, vj]) } } }
    for i1 in 4096 { for j1 in 512 { block "Y" [wi: S(4096) = i1, wj: S(512) = j1] {
      Y[wi, wj] = T[wi, wj] + 1f32 } } } })";
  const Schedule apart(parse_or_die(text));
  Schedule fused(parse_or_die(text));
  const auto blocks = fused.blocks();
  REQUIRE_OK(fused.compute_at(blocks[0], fused.loops_of(blocks[1])[0]));
  const LatencyEstimate a = estimate_latency(apart.program(), machine());
  const LatencyEstimate b = estimate_latency(fused.program(), machine());
  CHECK(b.l2_ns + b.l3_ns < 0.7 * (a.l2_ns + a.l3_ns));
}

TEST_CASE("intermediates count with what is in use at once") {
  const char* text = R"(program t(X: f32[64, 512]) -> (Y: f32[64, 512]) {
    buffer T: f32[64, 512] global
    for i in 64 { for j in 512 { block "T" [vi: S(64) = i, vj: S(512) = j] { T[vi, vj] = X[vi, vj] } }
      for j1 in 512 { block "Y" [wi: S(64) = i, wj: S(512) = j1] { Y[wi, wj] = T[wi, wj] } } } })";
  const ir::Program program = parse_or_die(text);
  ParamSpace space(program.domain());
  const NestTable table(program, space);
  REQUIRE(table.nests().size() == 2);
  for (const ir::Buffer& buffer : program.buffers()) {
    if (buffer.name != "T") continue;
    REQUIRE(table.shape(buffer.id).size() == 2);
    CHECK(table.shape(buffer.id)[0].is(1));
    CHECK(table.shape(buffer.id)[1].is(512));
    CHECK(table.alloc_depth(buffer.id) == 1);
  }
}

TEST_CASE("every random program has a finite positive estimate") {
  const ir::Target target = machine(2);
  for (int i = 0; i < num_cases(); ++i) {
    Rng rng(first_seed() + static_cast<uint64_t>(i), 5);
    const ir::Program program = random_program(rng);
    const LatencyEstimate e = estimate_latency(program, target);
    INFO("case " << i);
    CHECK(std::isfinite(e.total_ns));
    CHECK(e.total_ns > 0);
    for (const double part : {e.core_ns, e.l2_ns, e.l3_ns, e.memory_ns, e.latency_ns, e.launch_ns})
      CHECK(part >= 0);
  }
}

}  // namespace
}  // namespace prunerc
