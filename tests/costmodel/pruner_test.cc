// Pruner's published analyzer: the symbols of products as its source would extract them, latencies
// worked out by hand from its formulas, and what each penalty does.
#include "costmodel/pruner/analyzer.h"
#include "schedule/schedule.h"
#include "tests/costmodel/pruner_support.h"
#include "tests/costmodel/sketches.h"
#include "tests/support/check.h"

#include <string>

namespace prunerc::costmodel {
namespace {

using schedule::Int;
using schedule::Schedule;
using testing::parse_or_die;

// Tiles of 64 x 64 by threads of `own` x `own` sums, 16 steps of k at a time through shared memory.
ir::Program tiled(int64_t n, int64_t own) {
  const int64_t threads = 64 / own;
  Schedule s(matmul(n));
  const ir::BlockId sum = s.blocks()[0];
  const std::vector<ir::LoopId> loops = s.loops_of(sum);
  const ir::BlockId out = s.cache_write(sum, 0, ir::Scope::kLocal).value();
  const auto i = s.split(loops[0], {Int(-1), Int(threads), Int(own)}).value();
  const auto j = s.split(loops[1], {Int(-1), Int(threads), Int(own)}).value();
  const auto k = s.split(loops[2], {Int(-1), Int(16)}).value();
  REQUIRE_OK(s.reorder({i[0], j[0], k[0], i[1], j[1], k[1], i[2], j[2]}));
  const auto o = s.reverse_compute_at(out, j[0]).value();
  const auto oi = s.split(o[0], {Int(threads), Int(own)}).value();
  const auto oj = s.split(o[1], {Int(threads), Int(own)}).value();
  REQUIRE_OK(s.reorder({oi[0], oj[0], oi[1], oj[1]}));
  std::vector<std::pair<ir::LoopId, ir::LoopId>> threads_of = {{oi[0], oj[0]}};
  for (int operand = 0; operand < 2; ++operand) {
    const ir::BlockId copy = s.cache_read(sum, operand, ir::Scope::kShared).value();
    const ir::LoopId fused = s.fuse(s.compute_at(copy, k[0]).value()).value();
    const auto f = s.split(fused, {Int(-1), Int(threads), Int(threads)}).value();
    threads_of.push_back({f[1], f[2]});
  }
  const ir::BlockId init = s.decompose_reduction(sum, k[0]).value();
  const std::vector<ir::LoopId> starts = s.loops_of(init);
  threads_of.push_back({starts[2], starts[3]});
  threads_of.push_back({i[1], j[1]});
  for (const auto& [y, x] : threads_of) {
    REQUIRE_OK(s.bind(y, "thread.y"));
    REQUIRE_OK(s.bind(x, "thread.x"));
  }
  REQUIRE_OK(s.bind(i[0], "block.y"));
  REQUIRE_OK(s.bind(j[0], "block.x"));
  return s.program();
}

const PrunerDevice kA100 = find_pruner_device("a100_40").value();

std::vector<StatementSymbols> symbols_of(const ir::Program& program) {
  ParamSpace space(program.domain());
  return pruner_symbols(NestTable(program, space), kA100);
}

const PrunerOptions kRelease = {.version = PrunerVersion::kRelease};
const PrunerOptions kPaper = {.version = PrunerVersion::kPaper};

TEST_CASE("symbols of a tiled product are those that the source extracts") {
  const ir::Program program = tiled(1024, 4);
  const std::vector<StatementSymbols> all = symbols_of(program);
  REQUIRE(all.size() == 4);
  const StatementSymbols& sum = of(program, all, "C_local");
  CHECK(sum.blocks.value() == 256);
  CHECK(sum.threads.value() == 256);
  CHECK(sum.flops_per_thread.value() == 32768);
  CHECK(sum.flops.value() == 2147483648.0);
  CHECK(sum.registers.value() == 24);
  CHECK(sum.accesses.value() == 8208);
  CHECK(sum.reuse.value() == Approx(4.99220).epsilon(1e-5));
  CHECK(sum.dram.value() == 0);
  for (const char* name : {"A_shared", "B_shared"}) {
    const StatementSymbols& fill = of(program, all, name);
    CHECK(fill.shared.value() == 65536);
    CHECK(fill.dram.value() == 16777216);
    CHECK(fill.dram_bytes.value() == 4 * 16777216.0);
    CHECK(fill.shared_bytes.value() == 64 * 16 * 4);
    CHECK(fill.flops.value() == 0);
  }
  CHECK(of(program, all, "C").dram.value() == 1048576);
}

TEST_CASE("each statement of a block counts its own operations") {
  const ir::Program program = testing::parse_or_die(R"(
    program p(X: f32[64]) -> (Y: f32[64], Z: f32[64]) {
      block "B" [] {
        for i in 64 { Y[i] = X[i] * 2f32 }
        for j in 64 { Z[j] = X[j] * 2f32 + 1f32 } } })");
  const std::vector<StatementSymbols> all = symbols_of(program);
  CHECK(of(program, all, "Y").flops.value() == 64);
  CHECK(of(program, all, "Z").flops.value() == 128);
}

TEST_CASE("released latencies, worked out by hand") {
  const ir::Program large = tiled(1024, 4);
  const std::vector<StatementSymbols> symbols = symbols_of(large);
  const PrunerLatency t1 = pruner_latency(symbols, kA100, kRelease);
  CHECK(t1.ms.value() == Approx(0.188110).epsilon(1e-5));
  for (const PrunerTerm& term : t1.terms) {
    const std::string name(large.buffer(term.buffer).name);
    if (name == "C_local") {
      CHECK(term.compute_ms.value() == Approx(0.167385).epsilon(1e-5));
      CHECK(1 / term.penalties.reuse.value() == Approx(1.20031).epsilon(1e-5));
      CHECK(term.penalties.waves.value() == Approx(0.790123).epsilon(1e-5));
      CHECK(term.penalties.warps.value() == 1);
      CHECK(term.penalties.registers.value() == 1);
    } else {
      CHECK(term.memory_ms.value() == Approx(name == "C" ? 0.000628 : 0.010048).epsilon(1e-3));
    }
  }
  const ir::Program small = tiled(128, 8);
  const std::vector<StatementSymbols> few = symbols_of(small);
  const StatementSymbols& sum = of(small, few, "C_local");
  CHECK(sum.blocks.value() == 4);
  CHECK(sum.threads.value() == 64);
  CHECK(sum.flops.value() == 4194304);
  CHECK(sum.registers.value() == 80);
  CHECK(sum.accesses.value() == 2112);
  const PrunerLatency t2 = pruner_latency({&sum, 1}, kA100, kRelease);
  CHECK(t2.ms.value() == Approx(0.012948).epsilon(1e-4));
  CHECK(t2.terms[0].penalties.waves.value() == Approx(0.0185185).epsilon(1e-5));
  CHECK(pruner_latency_ms(large, kA100, kRelease) == Approx(0.188110).epsilon(1e-4));
}

TEST_CASE("each penalty of the paper acts on its own side") {
  StatementSymbols s;
  s.flops = 1e9;
  s.dram_bytes = 1e6;
  s.dram = 2.5e5;
  s.blocks = 10 * kA100.num_sms;
  s.threads = 128;
  s.reuse = 1e9;
  s.useful_bytes = s.transferred_bytes = 128;
  const auto latency = [&](const PrunerOptions& version) {
    return pruner_latency({&s, 1}, kA100, version).terms[0];
  };
  const PrunerTerm base = latency(kPaper);
  CHECK(base.compute_ms.value() == Approx(1e9 / 19490 / 1e6));
  CHECK(base.memory_ms.value() == Approx(1e6 / 1555 / 1e6));
  const auto ratios = [&](const PrunerOptions& version, const PrunerTerm& before) {
    const PrunerTerm now = latency(version);
    return std::pair((now.compute_ms / before.compute_ms).value(),
                     (now.memory_ms / before.memory_ms).value());
  };
  using Pair = std::pair<double, double>;
  const auto near = [](Pair a, Pair b) {
    return a.first == Approx(b.first) && a.second == Approx(b.second);
  };
  const StatementSymbols kept = s;
  s.registers = 256;  // twice what there is: slower memory in the paper, arithmetic in the release
  CHECK(near(ratios(kPaper, base), {1, 2}));
  const PrunerTerm released = latency(kRelease);
  s = kept;
  CHECK(near(ratios(kRelease, released), {0.5, 1}));
  s.threads = 33;  // two warps, one of them with one thread
  CHECK(near(ratios(kPaper, base), {64.0 / 33, 1}));
  s = kept;
  s.blocks += 1;  // a wave of one block
  CHECK(near(ratios(kPaper, base), {11.0 / (10 + 1 / kA100.num_sms), 1}));
  s = kept;
  s.transferred_bytes = 1024;
  CHECK(near(ratios(kPaper, base), {1, 8}));
  s = kept;
  s.reuse = 1;
  CHECK(near(ratios(kPaper, base), {2, 1}));
  s = kept;
  PrunerDevice little = kA100;
  little.shared_bytes_per_sm = 1024;
  s.shared_bytes = 4096;
  CHECK(pruner_latency({&s, 1}, little, kPaper).terms[0].memory_ms.value() ==
        Approx(4 * base.memory_ms.value()));
}

TEST_CASE("transactions are those of one warp's addresses") {
  const auto copy = [](const std::string& index, const std::string& kinds) {
    return parse_or_die(
        "program p(X: f32[64, 64]) -> (Y: f32[64, 64]) { for b in 64 @L0 "
        "bind(block.x) { for t in 16 @L1 bind(thread.x) { for v in 4 @L2 " +
        kinds + " { block \"y\" @B0 [i: S(64) = b, j: S(64) = t*4 + v] { reads X[" + index +
        "] writes Y[i, j] Y[i, j] = X[" + index + "] } } } } }");
  };
  const auto bytes = [](const ir::Program& program) {
    const StatementSymbols s = symbols_of(program)[0];
    return std::pair(s.useful_bytes.value(), s.transferred_bytes.value());
  };
  using Pair = std::pair<double, double>;
  // A row of 64 each way by vectors of four; without them every fourth element.
  CHECK(bytes(copy("i, j", "vectorized")) == Pair(512, 512));
  CHECK(bytes(copy("i, j", "")) == Pair(128, 512));
  // Columns: 64 pieces of 32 bytes for 256 bytes, beside the row that is written.
  CHECK(bytes(copy("j, i", "vectorized")) == Pair(512, 256 + 64 * 32));
  // One element for all.
  CHECK(bytes(copy("i, 0", "vectorized")) == Pair(256 + 4, 256 + 32));
}

// 2048^3 by warps of 64 x columns, an instruction of 16 x 8 x 16 at a time, from shared memory.
ir::Program tensor_product(int64_t columns) {
  const std::string j1 = std::to_string(columns / 8), bx = std::to_string(2048 / columns);
  return parse_or_die(R"(program p(A: f16[2048, 2048], B: f16[2048, 2048]) -> (C: f32[2048, 2048]) {
  for by in 16 @L0 bind(block.y) { for bx in )" +
                      bx +
                      R"( @L1 bind(block.x) { for k0 in 128 @L2 { for w in 2 @L3 bind(thread.y) {
    for i1 in 4 @L4 { for j1 in )" +
                      j1 + R"( @L5 {
      for i2 in 16 @L6 {tensor_mma_m16n8k16_f16=1} { for j2 in 8 @L7 { for k2 in 16 @L8 {
        block "C" @B0 [vi: S(2048) = by * 128 + w * 64 + i1 * 16 + i2,
                       vj: S(2048) = bx * )" +
                      std::to_string(columns) + R"( + j1 * 8 + j2, vk: R(2048) = k0 * 16 + k2] {
          reads A[vi, vk], B[vk, vj] writes C[vi, vj] init { C[vi, vj] = 0f32 }
          C[vi, vj] = C[vi, vj] + f32(A[vi, vk]) * f32(B[vk, vj]) } } } } } } } } } } })");
}

TEST_CASE("tensor instructions: fragments are registers, their products the arithmetic") {
  const StatementSymbols s = symbols_of(tensor_product(32))[0];
  CHECK(s.threads.value() == 64);
  CHECK(s.blocks.value() == 1024);
  CHECK(s.flops.value() == 2.0 * 2048 * 2048 * 2048);
  // A lane's share of 64 x 32 sums, 64 x 16 and 16 x 32 factors.
  CHECK(s.registers.value() == (64 * 32 + 64 * 16 + 16 * 32) / 32.0);
  CHECK(s.accesses.value() == (64 * 32 + 64 * 2048 + 2048 * 32) / 32.0);
  CHECK(s.flops_per_thread.value() == 2.0 * 64 * 32 * 2048 / 32);
  CHECK(s.fragment_bytes.value() == 2);
  CHECK(s.aligned.value() == 1);
  const PrunerTerm term = pruner_latency({&s, 1}, kA100, kPaper).terms[0];
  const double reuse = 1 + 262144.0 / 6208, waves = 1024.0 / (10 * 108);
  CHECK(term.penalties.waves.value() == Approx(waves));
  CHECK(term.compute_ms.value() ==
        Approx(17179869184.0 / (312000 * waves * reuse / (1 + reuse)) / 1e6));
  // Columns of 8 fill half of a fragment of 16.
  const StatementSymbols narrow = symbols_of(tensor_product(8))[0];
  CHECK(narrow.aligned.value() == 0.5);
  const auto alignment = [&](const PrunerOptions& options) {
    return pruner_latency({&narrow, 1}, kA100, options).terms[0].penalties.alignment.value();
  };
  CHECK(alignment(kPaper) == 0.5);
  PrunerOptions without = kPaper;
  without.alignment = false;
  CHECK(alignment(without) == 1);
  // A device whose tensor rate nobody knows computes at its other one.
  const PrunerDevice t4 = find_pruner_device("t4").value();
  CHECK(pruner_latency({&s, 1}, t4, kPaper).terms[0].compute_ms.value() >
        10 * term.compute_ms.value());
}

TEST_CASE("devices: the published table, ours, and targets") {
  CHECK(find_pruner_device("k80").value().peak_gflops == 8226);
  CHECK(find_pruner_device("orin").value().num_sms == 16);
  CHECK(find_pruner_device("a100").value().bandwidth_gb_s == 1935);
  const Result<PrunerDevice> unknown = find_pruner_device("v100");
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().id() == Diag::kTargetUnknown);
  const ir::Target hopper = ir::target_from_string("cuda:sm_90a").value();
  const PrunerDevice own = pruner_device(hopper);
  CHECK(own.num_sms == static_cast<double>(hopper.num_sms));
  CHECK(own.peak_gflops == hopper.peak_gflops());
  CHECK(own.tensor_gflops ==
        Approx(2 * 132 * 2048 * hopper.platform.clock_ghz));  // dense f16, of the target's table
  for (const PrunerDevice& device : pruner_devices()) {
    CHECK(device.peak_gflops > 1000);
    CHECK(device.num_sms > 10);
  }
}

}  // namespace
}  // namespace prunerc::costmodel
