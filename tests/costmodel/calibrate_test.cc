// Calibration on made-up measurements: what it must find, and what it must leave alone.
#include "costmodel/latency/calibrate.h"

#include "costmodel/latency/program.h"
#include "ir/tile_space.h"
#include "tests/costmodel/sketches.h"
#include "tests/support/check.h"

#include <cmath>

namespace prunerc::costmodel {
namespace {

constexpr auto kCore = static_cast<std::size_t>(TermPart::kCore);
constexpr auto kL2 = static_cast<std::size_t>(TermPart::kL2);
constexpr auto kMemory = static_cast<std::size_t>(TermPart::kMemory);
constexpr auto kShare = static_cast<std::size_t>(kNotHiddenSlot);

const CoefficientValues kHand = hand_coefficients(ir::TargetKind::kCpu);

// Candidates of three tasks, two terms each, measured by a machine that has these coefficients.
std::vector<CalibrationSample> measured(const CoefficientValues& machine, int n, double noise,
                                        uint64_t seed) {
  Rng rng(seed);
  std::vector<CalibrationSample> out;
  for (int i = 0; i < n; ++i) {
    CalibrationSample s;
    s.task = static_cast<int32_t>(rng.below(3));
    for (int term = 0; term < 2; ++term) {
      for (int p = 0; p < kNumTermParts; ++p) {
        // CPUs have four parts.
        s.parts_ns.push_back(p < 4 ? 1e4 * std::exp2(rng.uniform() * 5) : 0);
      }
    }
    s.launch_ns = 3000;
    s.measured_ns = 1;
    s.measured_ns = predict_ns(s, machine) * std::exp2((rng.uniform() - 0.5) * 2 * noise);
    out.push_back(s);
  }
  return out;
}

}  // namespace

TEST_CASE("a rank correlation ends where a value is no number") {
  const std::vector<double> order = {1, 2, 3, 4};
  const double nan = std::nan("");
  CHECK(std::isfinite(rank_correlation(order, std::vector<double>{nan, 2, nan, 4})));
  CHECK(rank_correlation(order, std::vector<double>{1, 2, 2, 4}) == Approx(0.9486833));
}

TEST_CASE("calibration finds the coefficients of a machine, up to its speed") {
  CoefficientValues machine = kHand;
  machine[kCore] = 0.7;
  machine[kL2] = 2.5;
  machine[kMemory] = 1.6;
  machine[kShare] = 0.6;
  const auto samples = measured(machine, 600, 0.02, 1);
  const Calibration c = calibrate(samples, kHand, {.prior_weight = 0.01, .iterations = 60});
  REQUIRE(c.is_kept);
  CHECK(c.rank_after > 0.99);
  CHECK(c.rank_after > c.rank_before);
  CHECK(c.residual_after < 0.25 * c.residual_before);
  CHECK(c.values[kL2] / c.values[kCore] == Approx(2.5 / 0.7).epsilon(0.05));
  CHECK(c.values[kMemory] / c.values[kCore] == Approx(1.6 / 0.7).epsilon(0.05));
  CHECK(c.values[kShare] == Approx(0.6).margin(0.05));
}

TEST_CASE("few samples stay near the prior, and very few leave it as it is") {
  CoefficientValues machine = kHand;
  machine[kL2] = 2.5;
  const Calibration some = calibrate(measured(machine, 60, 0.05, 2), kHand);
  const Calibration many = calibrate(measured(machine, 2000, 0.05, 2), kHand);
  CHECK(some.values[kL2] < many.values[kL2]);
  CHECK(some.values[kL2] > 1);
  const Calibration few = calibrate(measured(machine, 6, 0.05, 2), kHand);
  CHECK(!few.is_kept);
  CHECK(few.values == kHand);
}

TEST_CASE("the held-out order never falls: what is noise is not learned") {
  int num_kept = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    auto samples = measured(kHand, 80, 0.3, seed);
    Rng rng(seed, 9);
    for (CalibrationSample& s : samples) s.measured_ns = 1e4 * std::exp2(rng.uniform() * 6);
    const Calibration c = calibrate(samples, kHand, {.seed = seed});
    if (c.is_kept) {
      CHECK(c.rank_after >= c.rank_before);
      ++num_kept;
    } else {
      CHECK(c.values == kHand);
    }
    for (std::size_t i = 0; i < kShare; ++i) {
      CHECK(c.values[i] >= kHand[i] / 8.0001);
      CHECK(c.values[i] <= kHand[i] * 8.0001);
    }
    CHECK(c.values[kShare] >= 0);
    CHECK(c.values[kShare] <= 1);
  }
  CHECK(num_kept < 40);
}

TEST_CASE("the same samples give the same coefficients, and a wrong measurement bends nothing") {
  CoefficientValues machine = kHand;
  machine[kMemory] = 2;
  auto samples = measured(machine, 300, 0.05, 4);
  const Calibration first = calibrate(samples, kHand);
  CHECK(first.values == calibrate(samples, kHand).values);
  samples[7].measured_ns *= 1000;
  const Calibration second = calibrate(samples, kHand);
  CHECK(second.values[kMemory] == Approx(first.values[kMemory]).epsilon(0.1));
}

TEST_CASE("samples of a sketch predict what its score says") {
  const ir::Program sketch = cpu_gemm(96, 192, 128);
  const ir::Target target = ir::target_from_string("cpu:icelake-server num_threads=2").value();
  const SymbolProgram program = derive(sketch, target);
  const ir::DomainSpace space(sketch.domain());
  Rng rng(6);
  constexpr std::size_t kNum = 300;
  std::vector<std::vector<double>> columns(space.num_params(), std::vector<double>(kNum));
  for (std::size_t i = 0; i < kNum; ++i) {
    const std::vector<int64_t> point = space.sample(rng);
    for (std::size_t p = 0; p < point.size(); ++p) columns[p][i] = static_cast<double>(point[p]);
  }
  std::vector<const double*> pointers;
  for (const auto& column : columns) pointers.push_back(column.data());
  CoefficientValues values = kHand;
  values[kCore] = 1.5;
  values[kL2] = 0.5;
  std::vector<double> score(kNum);
  double* const outputs[] = {score.data(), nullptr};
  SymbolScratch scratch;
  program.score.evaluate(pointers, kNum, outputs, scratch, values);
  const auto samples = calibration_samples(program, pointers, score, 0);
  int num_wrong = 0;
  for (std::size_t i = 0; i < kNum; ++i) {
    num_wrong += std::abs(predict_ns(samples[i], values) / score[i] - 1) > 1e-9 ? 1 : 0;
  }
  CHECK(num_wrong == 0);
}

}  // namespace prunerc::costmodel
