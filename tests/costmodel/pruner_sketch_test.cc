// Pruner's published analyzer over sketches, and with single penalties left out.
#include "costmodel/pruner/analyzer.h"
#include "ir/tile_space.h"
#include "tests/costmodel/pruner_support.h"
#include "tests/costmodel/sketches.h"
#include "tests/support/check.h"

#include <cmath>

namespace prunerc::costmodel {
namespace {

const PrunerDevice kA100 = find_pruner_device("a100_40").value();

}  // namespace

TEST_CASE("both versions over a sketch are those of its instances") {
  for (const PrunerVersion version : {PrunerVersion::kRelease, PrunerVersion::kPaper}) {
    const PrunerOptions options = {.version = version};
    for (const NamedSketch& sketch : all_sketches()) {
      if (!sketch.target.starts_with("cuda")) continue;
      const SymbolCode code = derive_pruner(sketch.program, kA100, options);
      const ir::DomainSpace space(sketch.program.domain());
      Rng rng(8);
      int num_equal = 0, num_wrong = 0;
      for (int i = 0; i < 150; ++i) {
        const std::vector<int64_t> point = space.sample(rng);
        const auto [ms, is_feasible] = evaluate_at(code, point);
        CHECK(is_feasible == 1);
        const ir::Program program = instance(sketch.program, point);
        // A guard simplifies subscripts of the instance.
        if (is_guarded(program)) continue;
        const bool is_equal = std::abs(ms / pruner_latency_ms(program, kA100, options) - 1) < 1e-9;
        num_equal += is_equal ? 1 : 0;
        num_wrong += is_equal ? 0 : 1;
      }
      INFO(sketch.name);
      CHECK(num_wrong == 0);
      CHECK(num_equal > 20);
    }
  }
}

TEST_CASE("a penalty that is left out is 1, and the others stay") {
  StatementSymbols s;
  s.flops = 1e9;
  s.dram_bytes = 1e6;
  s.dram = 2.5e5;
  s.blocks = 1.5 * kA100.num_sms;
  s.threads = 33;
  s.reuse = 2;
  s.registers = 512;
  s.shared_bytes = 1e6;
  s.useful_bytes = 32;
  s.transferred_bytes = 256;
  PrunerDevice device = kA100;
  device.shared_bytes_per_sm = 1e5;
  const auto penalties = [&](const PrunerOptions& options) {
    const PrunerPenalties p = pruner_latency({&s, 1}, device, options).terms[0].penalties;
    return std::vector<double>{p.registers.value(), p.reuse.value(), p.shared.value(),
                               p.warps.value(),     p.waves.value(), p.transactions.value()};
  };
  const PrunerOptions all = {.version = PrunerVersion::kPaper};
  const std::vector<double> full = penalties(all);
  for (const double p : full) CHECK(p < 1);
  bool PrunerOptions::*const switches[] = {&PrunerOptions::registers, &PrunerOptions::reuse,
                                           &PrunerOptions::shared,    &PrunerOptions::warps,
                                           &PrunerOptions::waves,     &PrunerOptions::transactions};
  for (std::size_t i = 0; i < full.size(); ++i) {
    PrunerOptions options = all;
    options.*switches[i] = false;
    const std::vector<double> left = penalties(options);
    for (std::size_t p = 0; p < full.size(); ++p) CHECK(left[p] == (p == i ? 1 : full[p]));
    CHECK(pruner_latency({&s, 1}, device, options).ms.value() <
          pruner_latency({&s, 1}, device, all).ms.value());
  }
  PrunerOptions no_memory = all;
  no_memory.memory = false;
  const PrunerTerm term = pruner_latency({&s, 1}, device, no_memory).terms[0];
  CHECK(term.memory_ms.is(0));
  CHECK(term.compute_ms.value() > 0);
  // The release has no penalties of memory.
  const std::vector<double> release = penalties({.version = PrunerVersion::kRelease});
  CHECK(release[2] == 1);
  CHECK(release[5] == 1);
}

TEST_CASE("described devices are those that are sold, beside the published table") {
  const ir::Target k80 = ir::target_from_string("cuda:k80").value();
  CHECK(k80.num_sms == 13);  // one die of two; the published table has both
  CHECK(2 * k80.num_sms == static_cast<int64_t>(find_pruner_device("k80").value().num_sms));
  CHECK(k80.peak_gflops() == Approx(8736 / 2.0).epsilon(0.01));
  const std::pair<const char*, double> peaks[] = {{"cuda:t4", 8100},
                                                  {"cuda:titanv", 14900},
                                                  {"cuda:a100", 19500},
                                                  {"cuda:a100-40", 19500},
                                                  {"cuda:orin", 5300},
                                                  {"cuda:h100", 66900},
                                                  {"cuda:h200", 66900},
                                                  {"cuda:rtx2080ti", 13450},
                                                  {"cuda:titan-rtx", 16300},
                                                  {"cuda:rtx3090", 35600},
                                                  {"cuda:a6000", 38700},
                                                  {"cuda:a4000", 19200},
                                                  {"cuda:rtx3060-laptop", 9850}};
  for (const auto& [name, gflops] : peaks) {
    const ir::Target device = ir::target_from_string(name).value();
    INFO(name);
    CHECK(device.peak_gflops() == Approx(gflops).epsilon(0.02));
    // The text form is that of a target of the table, which reads back.
    CHECK(ir::target_from_string(ir::to_string(device)).value() == device);
  }
  CHECK(ir::device_names().size() == 15);
  const Result<ir::Target> less = ir::target_from_string("cuda:a100 num_sms=54");
  REQUIRE(less.ok());
  CHECK(less->num_sms == 54);
  CHECK(!ir::target_from_string("cuda:a100 num_sms=many").ok());
  CHECK(!ir::target_from_string("cuda:a101").ok());
}

}  // namespace prunerc::costmodel
