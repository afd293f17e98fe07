#include "tests/bench/algebra/timed_kernel.h"

#include "ir/interp/tensor.h"
#include "ir/support/check.h"
#include "tests/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>

namespace prunerc::bench {
namespace {

constexpr int kTurns = 31;
constexpr double kSampleSeconds = 2e-3;  // one sample runs a kernel so long

void* aligned(std::vector<float>& array, int64_t size) {
  array.resize(static_cast<std::size_t>(size) + 16);
  const auto at = reinterpret_cast<std::uintptr_t>(array.data());
  return array.data() + ((64 - at % 64) % 64) / sizeof(float);
}

}  // namespace

TimedKernel::TimedKernel(const ir::Program& spec, Kernel kernel) : kernel_(std::move(kernel)) {
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<const void*> constants;
  for (const ir::BufferId id : spec.params()) {
    const ir::Buffer& buffer = spec.buffer(id);
    int64_t size = 1;
    for (const int64_t extent : ir::shape_of(buffer)) size *= extent;
    auto* data = static_cast<float*>(aligned(arrays_.emplace_back(), size));
    if (buffer.role == ir::BufferRole::kOutput) {
      outputs_.push_back(data);
      output_sizes_.push_back(size);
      continue;
    }
    for (int64_t i = 0; i < size; ++i) data[i] = uniform(rng);
    (buffer.is_const ? constants : inputs_).push_back(data);
  }
  if (!constants.empty()) {
    PRUNERC_CHECK(kernel_.prepare(constants).ok(), "constants are prepared");
  }
  sample_of(1);
  repeats_ = std::max(1, static_cast<int>(kSampleSeconds / std::max(1e-7, sample_of(1))));
}

double TimedKernel::sample() { return sample_of(repeats_); }

double TimedKernel::apart_from(const TimedKernel& other) const {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (output_sizes_ != other.output_sizes_) return kNever;
  double out = 0;
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const auto* const mine = static_cast<const float*>(outputs_[o]);
    const auto* const theirs = static_cast<const float*>(other.outputs_[o]);
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < output_sizes_[o]; ++i) {
      const double distance = std::fabs(static_cast<double>(mine[i]) - theirs[i]);
      if (!std::isfinite(distance)) return kNever;
      worst = std::max(worst, distance);
      largest = std::max(largest, std::fabs(static_cast<double>(mine[i])));
    }
    if (worst > 0) out = std::max(out, largest > 0 ? worst / largest : kNever);
  }
  return out;
}

double TimedKernel::sample_of(int repeats) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < repeats; ++i) {
    PRUNERC_CHECK(kernel_.run(inputs_, outputs_).ok(), "a tuned kernel runs");
  }
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

InTurns time_in_turns(TimedKernel& first, TimedKernel& second) {
  std::vector<double> a, b, ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    a.push_back(first.sample());
    b.push_back(second.sample());
    ratios.push_back(a.back() / b.back());
  }
  std::sort(ratios.begin(), ratios.end());
  const std::size_t tenth = ratios.size() / 10;
  return {median(a) * 1e6, median(b) * 1e6, median(a) / median(b),
          fmt::format("{:.2f}-{:.2f} in {} turns", ratios[tenth], ratios[ratios.size() - 1 - tenth],
                      kTurns),
          first.apart_from(second)};
}

}  // namespace prunerc::bench
