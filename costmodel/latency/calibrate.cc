#include "costmodel/latency/calibrate.h"

#include "costmodel/latency/program.h"
#include "ir/support/rng.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace prunerc::costmodel {
namespace {

constexpr auto kSize = static_cast<std::size_t>(kNumCoefficients);
constexpr auto kParts = static_cast<std::size_t>(kNumTermParts);
constexpr auto kShare = static_cast<std::size_t>(kNotHiddenSlot);
constexpr auto kLaunch = static_cast<std::size_t>(kLaunchSlot);

/// Factors move by powers of two; this many at most.
constexpr double kMaxDoublings = 3;
/// Residuals beyond this (in log2) count linearly: a mistaken measurement is no reason to bend.
constexpr double kLargeResidual = 0.7;
/// One in so many candidates is held out.
constexpr uint64_t kHeldOut = 4;
/// With fewer held-out candidates an order says nothing.
constexpr std::size_t kMinHeldOut = 8;

using Vector = std::array<double, kSize>;

// Where the fit stands: doublings of each factor, and the share itself.
struct Point {
  Vector doublings{};
  CoefficientValues values(const CoefficientValues& prior) const {
    CoefficientValues out = prior;
    for (std::size_t i = 0; i < kSize; ++i) {
      out[i] = i == kShare ? std::clamp(prior[i] + doublings[i], 0.0, 1.0)
                           : prior[i] * std::exp2(doublings[i]);
    }
    return out;
  }
  void clamp(const CoefficientValues& prior) {
    for (std::size_t i = 0; i < kSize; ++i) {
      if (i == kShare) {
        doublings[i] = std::clamp(doublings[i], -prior[i], 1 - prior[i]);
      } else {
        doublings[i] = std::clamp(doublings[i], -kMaxDoublings, kMaxDoublings);
      }
    }
  }
};

struct Row {
  double residual = 0;  // log2(predicted / measured)
  Vector slope{};
};

Row row_of(const CalibrationSample& s, const CoefficientValues& c) {
  Row row;
  double total = c[kLaunch] * s.launch_ns;
  row.slope[kLaunch] = total;
  for (std::size_t first = 0; first < s.parts_ns.size(); first += kParts) {
    std::size_t largest = 0;
    double sum = 0, most = 0;
    for (std::size_t i = 0; i < kParts; ++i) {
      const double part = c[i] * s.parts_ns[first + i];
      sum += part;
      if (part <= most) continue;
      most = part;
      largest = i;
    }
    total += most + c[kShare] * (sum - most);
    for (std::size_t i = 0; i < kParts; ++i) {
      row.slope[i] += c[i] * s.parts_ns[first + i] * (i == largest ? 1 : c[kShare]);
    }
    row.slope[kShare] += sum - most;
  }
  total = std::max(total, 1e-3);
  // d log2(total) / d doubling is the part's share of the total.
  for (std::size_t i = 0; i < kSize; ++i) row.slope[i] /= total;
  row.slope[kShare] /= std::log(2.0);
  row.residual = std::log2(total / std::max(s.measured_ns, 1e-3));
  return row;
}

using Samples = std::vector<const CalibrationSample*>;

std::map<int32_t, std::vector<Row>> rows_of(const Samples& samples, const CoefficientValues& c) {
  std::map<int32_t, std::vector<Row>> tasks;
  for (const CalibrationSample* s : samples) tasks[s->task].push_back(row_of(*s, c));
  // Without its task's offset, which is the mean residual.
  for (auto& [task, rows] : tasks) {
    Row mean;
    for (const Row& row : rows) {
      mean.residual += row.residual;
      for (std::size_t i = 0; i < kSize; ++i) mean.slope[i] += row.slope[i];
    }
    const auto n = static_cast<double>(rows.size());
    for (Row& row : rows) {
      row.residual -= mean.residual / n;
      for (std::size_t i = 0; i < kSize; ++i) row.slope[i] -= mean.slope[i] / n;
    }
  }
  return tasks;
}

double weight_of(double residual) {
  return std::min(1.0, kLargeResidual / std::max(std::abs(residual), 1e-12));
}

class Fit {
 public:
  Fit(const Samples& samples, const CoefficientValues& prior, const CalibrationOptions& options)
      : samples_(samples), prior_(prior), options_(options) {}

  Point run() const {
    Point at;
    double loss = loss_of(at);
    double damping = 1e-2;
    for (int i = 0; i < options_.iterations; ++i) {
      Point next = step(at, damping);
      const double next_loss = loss_of(next);
      if (next_loss < loss) {
        at = next;
        loss = next_loss;
        damping = std::max(damping / 4, 1e-9);
      } else {
        damping *= 8;
      }
    }
    return at;
  }

 private:
  double loss_of(const Point& at) const {
    double loss = 0;
    for (const auto& [task, rows] : rows_of(samples_, at.values(prior_))) {
      for (const Row& row : rows) {
        const double r = std::abs(row.residual);
        loss += r <= kLargeResidual ? r * r : kLargeResidual * (2 * r - kLargeResidual);
      }
    }
    for (const double d : at.doublings) loss += options_.prior_weight * d * d;
    return loss;
  }

  Point step(const Point& at, double damping) const {
    std::array<Vector, kSize> normal{};
    Vector right{};
    for (const auto& [task, rows] : rows_of(samples_, at.values(prior_))) {
      for (const Row& row : rows) {
        const double w = weight_of(row.residual);
        for (std::size_t i = 0; i < kSize; ++i) {
          right[i] -= w * row.slope[i] * row.residual;
          for (std::size_t j = 0; j < kSize; ++j) normal[i][j] += w * row.slope[i] * row.slope[j];
        }
      }
    }
    for (std::size_t i = 0; i < kSize; ++i) {
      right[i] -= options_.prior_weight * at.doublings[i];
      normal[i][i] = normal[i][i] * (1 + damping) + options_.prior_weight;
    }
    Point next = at;
    const Vector move = solve(normal, right);
    for (std::size_t i = 0; i < kSize; ++i) next.doublings[i] += move[i];
    next.clamp(prior_);
    return next;
  }

  // Cholesky; the prior makes the matrix positive definite.
  static Vector solve(std::array<Vector, kSize> a, Vector b) {
    for (std::size_t j = 0; j < kSize; ++j) {
      for (std::size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
      a[j][j] = std::sqrt(std::max(a[j][j], 1e-12));
      for (std::size_t i = j + 1; i < kSize; ++i) {
        for (std::size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
        a[i][j] /= a[j][j];
      }
    }
    for (std::size_t i = 0; i < kSize; ++i) {
      for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
      b[i] /= a[i][i];
    }
    for (std::size_t i = kSize; i-- > 0;) {
      for (std::size_t k = i + 1; k < kSize; ++k) b[i] -= a[k][i] * b[k];
      b[i] /= a[i][i];
    }
    return b;
  }

  const Samples& samples_;
  const CoefficientValues& prior_;
  const CalibrationOptions& options_;
};

// Ranks from 0; equal values share their mean rank.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Stable, since a value that is no number may spoil the order and nothing else.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) {
      ranks[order[k]] = static_cast<double>(i + end - 1) / 2;
    }
    i = end;
  }
  return ranks;
}

double rank_of(const Samples& samples, const CoefficientValues& c) {
  std::map<int32_t, std::pair<std::vector<double>, std::vector<double>>> tasks;
  for (const CalibrationSample* s : samples) {
    tasks[s->task].first.push_back(predict_ns(*s, c));
    tasks[s->task].second.push_back(s->measured_ns);
  }
  double sum = 0, n = 0;
  for (const auto& [task, pair] : tasks) {
    if (pair.first.size() < 3) continue;
    sum += rank_correlation(pair.first, pair.second);
    n += 1;
  }
  return n > 0 ? sum / n : 0;
}

double residual_of(const Samples& samples, const CoefficientValues& c) {
  double sum = 0;
  for (const auto& [task, rows] : rows_of(samples, c)) {
    for (const Row& row : rows) sum += row.residual * row.residual;
  }
  return std::sqrt(sum / std::max(1.0, static_cast<double>(samples.size())));
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double predict_ns(const CalibrationSample& sample, const CoefficientValues& values) {
  return std::exp2(row_of(sample, values).residual) * std::max(sample.measured_ns, 1e-3);
}

Calibration calibrate(std::span<const CalibrationSample> samples, const CoefficientValues& prior,
                      const CalibrationOptions& options) {
  Samples used, held_out;
  Rng rng(options.seed, 0x63616c);
  for (const CalibrationSample& s : samples) {
    (rng.below(kHeldOut) == 0 ? held_out : used).push_back(&s);
  }
  Calibration out;
  out.values = prior;
  if (held_out.size() < kMinHeldOut) return out;
  const CoefficientValues fitted = Fit(used, prior, options).run().values(prior);
  out.rank_before = rank_of(held_out, prior);
  out.rank_after = rank_of(held_out, fitted);
  out.residual_before = residual_of(held_out, prior);
  out.residual_after = residual_of(held_out, fitted);
  out.is_kept = out.rank_after >= out.rank_before;
  if (out.is_kept) out.values = fitted;
  return out;
}

std::vector<CalibrationSample> calibration_samples(const SymbolProgram& program,
                                                   std::span<const double* const> columns,
                                                   std::span<const double> measured_ns,
                                                   int32_t task) {
  const std::size_t n = measured_ns.size();
  std::vector<std::vector<double>> values(program.parts.num_outputs(), std::vector<double>(n));
  std::vector<double*> outputs;
  for (auto& column : values) outputs.push_back(column.data());
  SymbolScratch scratch;
  program.parts.evaluate(columns, n, outputs, scratch);
  std::vector<CalibrationSample> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    out[i].task = task;
    out[i].measured_ns = measured_ns[i];
    out[i].launch_ns = values[SymbolProgram::kLaunchOutput][i];
    for (const SymbolProgram::Term& term : program.terms) {
      for (std::size_t p = 0; p < kParts; ++p) {
        out[i].parts_ns.push_back(p < term.num_parts ? values[term.first + p][i] : 0);
      }
    }
  }
  return out;
}

}  // namespace prunerc::costmodel
