// Pruner's published analyzer on a CPU: lanes for threads, tasks for blocks, the L2 for shared memory.
#include "costmodel/pruner/analyzer.h"
#include "ir/tile_space.h"
#include "tests/costmodel/pruner_support.h"
#include "tests/costmodel/sketches.h"
#include "tests/support/check.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace prunerc::costmodel {
namespace {

using testing::parse_or_die;

PrunerDevice device_of(const std::string& target) {
  return pruner_device(ir::target_from_string(target).value());
}
// 4 threads, 8 lanes, 16 registers, 256 KiB of L2, 3 GHz, two multiply-adds a cycle.
const PrunerDevice kCpu = device_of("cpu:x86-64-v3");
const PrunerOptions kPaper = {.version = PrunerVersion::kPaper};

std::vector<StatementSymbols> symbols_of(const ir::Program& program) {
  ParamSpace space(program.domain());
  return pruner_symbols(NestTable(program, space), kCpu);
}

std::vector<double> penalties(const StatementSymbols& s, const PrunerDevice& device,
                              const PrunerOptions& options) {
  const PrunerPenalties p = pruner_latency({&s, 1}, device, options).terms[0].penalties;
  return {p.registers.value(), p.reuse.value(), p.shared.value(),
          p.warps.value(),     p.waves.value(), p.transactions.value()};
}

TEST_CASE("a CPU as the analyzer's device") {
  CHECK(kCpu.num_sms == 4);
  CHECK(kCpu.warp_size == 8);
  CHECK(kCpu.registers_per_thread == 16);
  CHECK(kCpu.shared_bytes_per_sm == 256 * 1024);
  CHECK(kCpu.transaction_bytes == 64);
  CHECK(kCpu.peak_gflops == Approx(4 * 2 * 2 * 8 * 3.0));
  CHECK(kCpu.bandwidth_gb_s == Approx(8 * 3.0));
  const PrunerDevice measured =
      device_of("cpu:x86-64-v3 fma_gflops_all=123 memory_bandwidth=1e10 memory_bandwidth_all=3e10");
  CHECK(measured.peak_gflops == 123);
  CHECK(measured.bandwidth_gb_s == Approx(30));
}

TEST_CASE("symbols of a packed product on a CPU, worked out by hand") {
  // 4 tasks of 16 rows; panels of 32 columns; tiles of 8 x 16: two vectors of 8 lanes.
  const ir::Program program =
      instance(cpu_gemm(64, 64, 32), std::vector<int64_t>{4, 2, 8, 2, 2, 16, 4, 8});
  const std::vector<StatementSymbols> all = symbols_of(program);
  const StatementSymbols& sum = of(program, all, "C");
  CHECK(sum.blocks.value() == 4);
  CHECK(sum.threads.value() == 16);
  CHECK(sum.flops.value() == 2.0 * 64 * 64 * 32);
  CHECK(sum.registers.value() == 8 * 2 + 8 + 2);
  // One visit: the tile and all of k.
  CHECK(sum.flops_per_thread.value() == 2.0 * 8 * 2 * 32);
  CHECK(sum.accesses.value() == 8 * 2 + 8 * 32 + 2 * 32);
  CHECK(sum.reuse.value() == Approx(1 + 1024.0 / 336));
  // A task's rows of A and C, and a panel; A and C come from memory.
  CHECK(sum.shared_bytes.value() == 4 * (16 * 32 + 16 * 64 + 32 * 32));
  CHECK(sum.dram_bytes.value() == 4 * 4 * (16 * 32 + 16 * 64));
  CHECK(sum.dram.value() == 4 * (16 * 32 + 16 * 64));
  CHECK(sum.useful_bytes.value() == sum.transferred_bytes.value());
  const StatementSymbols& pack = of(program, all, "P");
  CHECK(pack.flops.value() == 0);
  CHECK(pack.dram_bytes.value() == 4 * 4 * 32 * 64);
  CHECK(pack.shared_bytes.value() == 4 * (32 * 64 + 32 * 32));
  const PrunerTerm term = pruner_latency({&sum, 1}, kCpu, kPaper).terms[0];
  const double alpha = 1 + 1024.0 / 336;
  CHECK(term.compute_ms.value() == Approx(262144 / (384 * alpha / (1 + alpha)) / 1e6));
  CHECK(term.memory_ms.value() == Approx(24576 / (24 * 16.0 / 26) / 1e6));
}

TEST_CASE("lanes that stay empty, tasks that wait, parts of lines, and an L2 that is too small") {
  const ir::Program program = parse_or_die(
      R"(program p(X: f32[8, 30]) -> (Y: f32[8, 30]) {
  for b in 5 @L0 parallel { for i in 8 @L1 { for v in 6 @L2 vectorized {
    block "Y" @B0 [vi: S(8) = i, vj: S(30) = b * 6 + v] {
      reads X[vi, vj] writes Y[vi, vj] Y[vi, vj] = X[vi, vj] * 2f32 } } } } })");
  const StatementSymbols s = symbols_of(program)[0];
  CHECK(s.useful_bytes.value() == 2 * 8 * 6 * 4);
  CHECK(s.transferred_bytes.value() == 2 * 8 * 64);
  CHECK(s.shared_bytes.value() == 2 * 8 * 6 * 4);
  const std::vector<double> p = penalties(s, kCpu, kPaper);
  CHECK(p[0] == 1);
  CHECK(p[2] == 1);
  CHECK(p[3] == 6.0 / 8);
  CHECK(p[4] == 5.0 / 8);
  CHECK(p[5] == 6.0 * 4 / 64);
  CHECK(penalties(s, device_of("cpu:x86-64-v3 l2_bytes=192"), kPaper)[2] == 0.5);
}

TEST_CASE("all six penalties of the paper tell candidates of a CPU apart") {
  const ir::Program sketch = cpu_gemm(144, 144, 144);
  const PrunerDevice device = device_of("cpu:x86-64-v3 l2_bytes=65536");
  const ir::DomainSpace space(sketch.domain());
  Rng rng(3);
  std::vector<std::set<double>> seen(6);
  for (int i = 0; i < 80; ++i) {
    const ir::Program program = instance(sketch, space.sample(rng));
    const std::vector<StatementSymbols> all = symbols_of(program);
    const std::vector<double> p = penalties(of(program, all, "C"), device, kPaper);
    for (std::size_t k = 0; k < p.size(); ++k) {
      CHECK(p[k] > 0);
      CHECK(p[k] <= 1);
      seen[k].insert(p[k]);
    }
  }
  // Rows are whole here, so transactions are too (the test above).
  for (const std::size_t k : {0, 1, 2, 3, 4}) CHECK(seen[k].size() > 1);
}

TEST_CASE("on a CPU as well both versions over a sketch are those of its instances") {
  for (const PrunerVersion version : {PrunerVersion::kRelease, PrunerVersion::kPaper}) {
    const PrunerOptions options = {.version = version};
    for (const NamedSketch& sketch : all_sketches()) {
      if (sketch.target.starts_with("cuda")) continue;
      const PrunerDevice device = device_of(sketch.target);
      const SymbolCode code = derive_pruner(sketch.program, device, options);
      const ir::DomainSpace space(sketch.program.domain());
      Rng rng(9);
      INFO(sketch.name);
      std::set<double> latencies;
      for (int i = 0; i < 150; ++i) {
        const std::vector<int64_t> point = space.sample(rng);
        const double ms = evaluate_at(code, point).ms;
        CHECK(std::isfinite(ms));
        latencies.insert(ms);
        const ir::Program program = instance(sketch.program, point);
        if (is_guarded(program)) continue;
        CHECK(ms == Approx(pruner_latency_ms(program, device, options)).epsilon(1e-9));
      }
      CHECK(latencies.size() > 20);
    }
  }
}

}  // namespace
}  // namespace prunerc::costmodel
