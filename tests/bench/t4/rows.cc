#include "tests/bench/t4/rows.h"

#include "costmodel/latency/calibrate.h"
#include "costmodel/latency/program.h"
#include "search/space/draft_space.h"
#include "search/space/space.h"
#include "tests/bench/draft/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search

namespace {

constexpr double kLast = std::numeric_limits<double>::infinity();
constexpr std::size_t kSizes[] = {1, 8, 64};
/// What the first 64 of the matrix product's 18,000 are to hold.
constexpr double kGoal = 0.95;
/// A part that is larger than the whole is wrong; boost clocks and spread excuse a few.
constexpr double kMemoryGoal = 0.95;

using Key = std::pair<int, std::vector<schedule::Decision>>;

/// The rows of one pool that ran.
struct Measured {
  const NamedPool* from;
  std::vector<const PoolRow*> rows;
  std::vector<double> ns;
};

/// What an analyzer says of them: in infinity what it takes for impossible.
struct Priced {
  std::vector<double> ns;
  std::vector<bool> fits;
  std::vector<costmodel::CalibrationSample> parts;  // of ours alone
};

Measured measured_of(const NamedPool& named) {
  Measured out{&named, {}, {}};
  for (const PoolRow& row : named.pool.rows) {
    if (!row.ok()) continue;
    out.rows.push_back(&row);
    out.ns.push_back(row.median_ns);
  }
  return out;
}

void price_sketch(DraftSketch& sketch, const Measured& measured, Priced* out) {
  std::vector<std::size_t> mine;
  std::vector<std::vector<int32_t>> genes;
  for (std::size_t i = 0; i < measured.rows.size(); ++i) {
    if (measured.rows[i]->sketch != sketch.sketch) continue;
    mine.push_back(i);
    genes.push_back(genes_of(sketch, measured.rows[i]->decisions));
  }
  if (mine.empty()) return;
  const std::vector<std::vector<double>> columns = columns_of(sketch, genes);
  std::vector<const double*> inputs;
  for (const std::vector<double>& column : columns) inputs.push_back(column.data());
  std::vector<double> ns(mine.size()), fits(mine.size());
  double* const outputs[] = {ns.data(), fits.data()};
  costmodel::SymbolScratch scratch;
  const costmodel::CoefficientValues hand = costmodel::hand_coefficients(ir::TargetKind::kCuda);
  sketch.symbols.score.evaluate(inputs, mine.size(), outputs, scratch, hand);
  std::vector<costmodel::CalibrationSample> parts;
  if (sketch.symbols.parts.num_outputs() > 0) {
    parts = costmodel::calibration_samples(sketch.symbols, inputs, ns, 0);
  }
  for (std::size_t i = 0; i < mine.size(); ++i) {
    out->ns[mine[i]] = fits[i] > 0 ? ns[i] : kLast;
    out->fits[mine[i]] = fits[i] > 0;
    if (parts.empty()) continue;
    out->parts[mine[i]] = std::move(parts[i]);
    out->parts[mine[i]].measured_ns = measured.ns[mine[i]];
  }
}

// A row of a sketch without symbols, by its program, as searches price such; what this build does not make stays unknown.
void price_program(const Task& task, const SearchSpace& space, const Measured& measured,
                   std::size_t i, Analyzer analyzer, Priced* out) {
  const Result<Candidate> made =
      instantiate(task, space, measured.rows[i]->sketch, measured.rows[i]->decisions);
  if (!made) return;
  out->fits[i] = true;
  if (analyzer != Analyzer::kPrunerc) {
    out->ns[i] = published_latency_ms(made->program, task, analyzer);
    return;
  }
  out->ns[i] = made->predicted_ns;
  const costmodel::SymbolProgram symbols = costmodel::derive(made->program, task.target);
  out->parts[i] = costmodel::calibration_samples(symbols, {}, {{measured.ns[i]}}, 0).front();
}

Priced price(const Measured& measured, Analyzer analyzer) {
  const Pool& pool = measured.from->pool;
  const Task task = pool.task().value();
  const SearchSpace space = pool.space();
  DraftSpace draft = make_draft_space(task, space, analyzer, 1);
  const std::size_t n = measured.rows.size();
  Priced out{std::vector<double>(n, kLast), std::vector<bool>(n),
             std::vector<costmodel::CalibrationSample>(n)};
  for (DraftSketch& sketch : draft.sketches) price_sketch(sketch, measured, &out);
  for (const DraftSpace::NotParametric& sketch : draft.not_parametric) {
    for (std::size_t i = 0; i < n; ++i) {
      if (measured.rows[i]->sketch == sketch.sketch) {
        price_program(task, space, measured, i, analyzer, &out);
      }
    }
  }
  return out;
}

double sum_of(const costmodel::CalibrationSample& sample, costmodel::TermPart part) {
  double sum = 0;
  for (std::size_t i = static_cast<std::size_t>(part); i < sample.parts_ns.size();
       i += static_cast<std::size_t>(costmodel::kNumTermParts)) {
    sum += sample.parts_ns[i];
  }
  return sum;
}

// The two ceilings of the model of that name: multiply-adds, and bytes of memory.
std::vector<double> roofline_of(const Priced& ours) {
  std::vector<double> out;
  for (const costmodel::CalibrationSample& sample : ours.parts) {
    out.push_back(std::max({sum_of(sample, costmodel::TermPart::kFma),
                            sum_of(sample, costmodel::TermPart::kTensor),
                            sum_of(sample, costmodel::TermPart::kMemory)}));
  }
  return out;
}

std::vector<double> fitted_of(const Priced& ours, const costmodel::CoefficientValues& values) {
  std::vector<double> out;
  for (std::size_t i = 0; i < ours.parts.size(); ++i) {
    out.push_back(ours.fits[i] ? costmodel::predict_ns(ours.parts[i], values) : kLast);
  }
  return out;
}

// Another device's times of the same configurations; last what it has none of.
std::vector<double> times_of(const Measured& other, const Measured& wanted) {
  std::map<Key, double> known;
  for (std::size_t i = 0; i < other.rows.size(); ++i) {
    known[{other.rows[i]->sketch, other.rows[i]->decisions}] = other.ns[i];
  }
  std::vector<double> out;
  for (const PoolRow* row : wanted.rows) {
    const auto at = known.find({row->sketch, row->decisions});
    out.push_back(at == known.end() ? kLast : at->second);
  }
  return out;
}

// Share of the rows that took at least as long as their bytes of memory alone take.
double memory_within(const Priced& ours, const Measured& measured) {
  double within = 0, all = 0;
  for (std::size_t r = 0; r < ours.parts.size(); ++r) {
    if (!ours.fits[r]) continue;
    ++all;
    if (sum_of(ours.parts[r], costmodel::TermPart::kMemory) <= measured.ns[r]) ++within;
  }
  return within / std::max(all, 1.0);
}

class Judge {
 public:
  Judge(const std::vector<NamedPool>& pools, const T4BenchOptions& options) : options_(options) {
    for (const NamedPool& pool : pools) {
      measured_.push_back(measured_of(pool));
      ours_.push_back(price(measured_.back(), Analyzer::kPrunerc));
    }
  }

  std::vector<Row> run() {
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      if (!measured_[i].rows.empty()) judge(i);
    }
    return std::move(rows_);
  }

 private:
  const std::string& name(std::size_t i) const { return measured_[i].from->name; }
  bool is_fitted(std::size_t i) const {
    return std::find(options_.fit.begin(), options_.fit.end(), name(i)) != options_.fit.end();
  }
  bool same_class(std::size_t i, std::size_t j) const {
    return measured_[i].from->op_class == measured_[j].from->op_class;
  }

  // Coefficients from the class's pools that are there to be fitted.
  std::optional<costmodel::CoefficientValues> fit_for(std::size_t i) {
    std::vector<costmodel::CalibrationSample> samples;
    for (std::size_t j = 0; j < measured_.size(); ++j) {
      if (!same_class(i, j) || !is_fitted(j)) continue;
      for (std::size_t r = 0; r < ours_[j].parts.size(); ++r) {
        if (!ours_[j].fits[r]) continue;
        samples.push_back(ours_[j].parts[r]);
        samples.back().task = static_cast<int32_t>(j);
      }
    }
    if (samples.empty()) return std::nullopt;
    const costmodel::Calibration fit =
        costmodel::calibrate(samples, costmodel::hand_coefficients(ir::TargetKind::kCuda));
    fmt::print("{}: fit by {} rows, {}; rank {:.3f} -> {:.3f}\n", name(i), samples.size(),
               fit.is_kept ? "kept" : "not kept", fit.rank_before, fit.rank_after);
    return fit.values;
  }

  void judge(std::size_t i) {
    const Measured& measured = measured_[i];
    const int64_t possible = std::count(ours_[i].fits.begin(), ours_[i].fits.end(), true);
    rows_.push_back({fmt::format("rows/{}", name(i)),
                     static_cast<double>(measured.rows.size()),
                     "",
                     {},
                     fmt::format("ran; {} of them within the limits that ours knows", possible)});
    add(fmt::format("memory_within/{}", name(i)), memory_within(ours_[i], measured), kMemoryGoal);
    for (const std::size_t k : kSizes) {
      add(fmt::format("best{}/{}/random", k, name(i)), best_of_drawn(measured.ns, k));
    }
    score(i, "roofline", roofline_of(ours_[i]));
    score(i, "paper", price(measured, Analyzer::kPruner).ns);
    score(i, "release", price(measured, Analyzer::kPrunerRelease).ns);
    score(i, "ours", ours_[i].ns);
    if (!is_fitted(i)) {
      const std::optional<costmodel::CoefficientValues> values = fit_for(i);
      if (values) score(i, "fitted", fitted_of(ours_[i], *values));
    }
    for (std::size_t j = 0; j < measured_.size(); ++j) {
      // Of another operator, decisions mean something else.
      if (j == i || measured_[j].from->pool.program != measured.from->pool.program) continue;
      score(i, "from_" + name(j).substr(name(j).find('_') + 1), times_of(measured_[j], measured),
            Unknown::kSkip);
    }
  }

  void add(std::string row, double value, std::optional<double> goal = {}) {
    rows_.push_back({std::move(row), value, "", goal, ""});
  }

  // What has no finite value comes last; the rank correlation may leave it out.
  enum class Unknown : uint8_t { kOrderLast, kSkip };
  void score(std::size_t i, const std::string& method, const std::vector<double>& predicted,
             Unknown unknown = Unknown::kOrderLast) {
    const Measured& measured = measured_[i];
    std::vector<double> ns, order;
    for (std::size_t r = 0; r < predicted.size(); ++r) {
      if (unknown == Unknown::kSkip && predicted[r] == kLast) continue;
      ns.push_back(measured.ns[r]);
      order.push_back(predicted[r]);
    }
    add(fmt::format("spearman/{}/{}", name(i), method), costmodel::rank_correlation(ns, order));
    for (const std::size_t k : kSizes) {
      const bool is_aim =
          k == 64 && measured.from->op_class == "gemm" && (method == "ours" || method == "fitted");
      add(fmt::format("best{}/{}/{}", k, name(i), method),
          best_of_first(measured.ns, predicted, k, options_.seeds),
          is_aim ? std::optional(kGoal) : std::nullopt);
    }
  }

  const T4BenchOptions& options_;
  std::vector<Measured> measured_;
  std::vector<Priced> ours_;
  std::vector<Row> rows_;
};

}  // namespace

std::vector<Row> t4_rows(const std::vector<NamedPool>& pools, const T4BenchOptions& options) {
  return Judge(pools, options).run();
}

}  // namespace prunerc::bench
