#include "costmodel/latency/coefficients.h"
#include "ir/support/rng.h"
#include "search/draft/draft_space.h"
#include "search/pool.h"
#include "tests/bench/draft_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>

namespace prunerc::bench {
namespace {

using namespace search;  // NOLINT: a benchmark of search

constexpr std::size_t kSizes[] = {64, 128, 256, 512};

/// One pool as numbers: what was measured of every candidate that ran, and what analyzers say.
struct Scored {
  std::string name, op_class;
  std::vector<double> measured_ns;
  std::map<std::string, std::vector<double>> predicted;  // by analyzer
};

// "gemm_512-cpu.pool" is of class "gemm": what stands before the first "_".
std::string class_of(const std::string& file) { return file.substr(0, file.find('_')); }

std::vector<double> predict(const Pool& pool, const Task& task, const std::vector<int>& rows,
                            Analyzer analyzer) {
  const SearchSpace space = pool.space();
  DraftSpace draft = make_draft_space(task, space, analyzer, 1);
  const auto coefficients = costmodel::hand_coefficients(task.target.kind);
  std::vector<double> out(rows.size(), std::numeric_limits<double>::infinity());
  costmodel::SymbolScratch scratch;
  for (DraftSketch& sketch : draft.sketches) {
    std::vector<std::size_t> mine;
    std::vector<std::vector<double>> columns(sketch.num_params);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const PoolRow& row = pool.rows[static_cast<std::size_t>(rows[i])];
      if (row.sketch != sketch.sketch) continue;
      for (std::size_t d = 0; d < sketch.tables.size(); ++d) {
        const int32_t gene = sketch.tables[d].find(row.decisions[d]);
        for (std::size_t l = 0; l < sketch.params[d].size(); ++l) {
          const ir::ParamId param = sketch.params[d][l];
          if (!param.valid()) continue;
          columns[static_cast<std::size_t>(param.value)].push_back(
              sketch.tables[d].column(l)[gene]);
        }
      }
      mine.push_back(i);
    }
    if (mine.empty()) continue;
    std::vector<const double*> inputs;
    for (const std::vector<double>& column : columns) inputs.push_back(column.data());
    std::vector<double> ns(mine.size()), fits(mine.size());
    double* const outputs[] = {ns.data(), fits.data()};
    sketch.score.evaluate(inputs, mine.size(), outputs, scratch, coefficients);
    for (std::size_t i = 0; i < mine.size(); ++i) out[mine[i]] = ns[i];
  }
  return out;
}

Scored score(const std::filesystem::path& path) {
  const Pool pool = read_pool(path.string()).value();
  const Task task = pool.task().value();
  Scored out;
  out.name = path.stem().string();
  out.op_class = class_of(out.name);
  std::vector<int> rows;
  for (std::size_t i = 0; i < pool.rows.size(); ++i) {
    if (!pool.rows[i].ok()) continue;
    rows.push_back(static_cast<int>(i));
    out.measured_ns.push_back(pool.rows[i].median_ns);
  }
  out.predicted["prunerc"] = predict(pool, task, rows, Analyzer::kPrunerc);
  out.predicted["paper"] = predict(pool, task, rows, Analyzer::kPruner);
  out.predicted["release"] = predict(pool, task, rows, Analyzer::kPrunerRelease);
  return out;
}

// Measured times of the candidates that make the draft. `chosen`: the candidates that exist.
std::vector<double> drafted(const Scored& pool, const std::vector<double>& predicted,
                            std::vector<std::size_t> chosen, std::size_t size) {
  size = std::min(size, chosen.size());
  std::partial_sort(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(size),
                    chosen.end(), [&](std::size_t a, std::size_t b) {
                      return predicted[a] != predicted[b] ? predicted[a] < predicted[b] : a < b;
                    });
  std::vector<double> out;
  for (std::size_t i = 0; i < size; ++i) out.push_back(pool.measured_ns[chosen[i]]);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::size_t> everyone(const Scored& pool) {
  std::vector<std::size_t> all(pool.measured_ns.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

double least(const Scored& pool, const std::vector<std::size_t>& chosen) {
  double best = std::numeric_limits<double>::infinity();
  for (const std::size_t i : chosen) best = std::min(best, pool.measured_ns[i]);
  return best;
}

// Best of all over the k-th best of the draft (pruner.md 8: the drafter's measure).
double best_k(const Scored& pool, const std::vector<double>& predicted,
              const std::vector<std::size_t>& chosen, std::size_t size, std::size_t k) {
  const std::vector<double> draft = drafted(pool, predicted, chosen, size);
  return draft.empty() ? 0 : least(pool, chosen) / draft[std::min(k, draft.size()) - 1];
}

// What a draft drawn at random has on average, from the order statistics: candidate i of the sorted
// pool is the best of the draft with the chance that none before it was drawn.
double random_best(const Scored& pool, std::size_t size) {
  std::vector<double> sorted = pool.measured_ns;
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double none_before = 1, total = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double left = n - static_cast<double>(i);
    const double taken = std::min(1.0, static_cast<double>(size) / left);
    total += none_before * taken * sorted[0] / sorted[i];
    none_before *= 1 - taken;
    if (none_before <= 0) break;
  }
  return total;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto ranks = [](const std::vector<double>& v) {
    std::vector<std::size_t> order(v.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t x, std::size_t y) { return v[x] < v[y]; });
    std::vector<double> out(v.size());
    for (std::size_t i = 0; i < order.size();) {
      std::size_t j = i;
      while (j < order.size() && v[order[j]] == v[order[i]]) ++j;
      for (std::size_t t = i; t < j; ++t) out[order[t]] = 0.5 * static_cast<double>(i + j - 1);
      i = j;
    }
    return out;
  };
  const std::vector<double> x = ranks(a), y = ranks(b);
  const auto n = static_cast<double>(x.size());
  const double mean = (n - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

struct Interval {
  double lo = 0, hi = 0;
};

// 95 % of the values of `f` over pools resampled with replacement.
Interval bootstrap(const Scored& pool, int times, uint64_t seed,
                   const std::function<double(const std::vector<std::size_t>&)>& f) {
  Rng rng(seed, pool.measured_ns.size());
  std::vector<double> values;
  const std::size_t n = pool.measured_ns.size();
  for (int t = 0; t < times; ++t) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < n; ++i) chosen.push_back(static_cast<std::size_t>(rng.below(n)));
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    values.push_back(f(chosen));
  }
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  return {at(0.025), at(0.975)};
}

void print_pool(const Scored& pool) {
  std::vector<double> sorted = pool.measured_ns;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  fmt::print("{}: {} ran, best {:.1f} us, median {:.2f} x best, worst {:.2f} x\n", pool.name,
             sorted.size(), sorted[0] / 1e3, median / sorted[0], sorted.back() / sorted[0]);
  for (const auto& [name, predicted] : pool.predicted) {
    fmt::print("  {:<8} rank correlation {:+.3f};", name,
               rank_correlation(pool.measured_ns, predicted));
    for (const std::size_t size : kSizes) {
      fmt::print("  @{}: {:.3f} {:.3f} {:.3f}", size,
                 best_k(pool, predicted, everyone(pool), size, 1),
                 best_k(pool, predicted, everyone(pool), size, 5),
                 best_k(pool, predicted, everyone(pool), size, 20));
    }
    fmt::print("\n");
  }
  fmt::print("  {:<8}                         ", "random");
  for (const std::size_t size : kSizes) fmt::print("  @{}: {:.3f}", size, random_best(pool, size));
  fmt::print("\n");
}

/// The worst pool of a class decides nothing alone: means over its pools.
struct ClassMean {
  int pools = 0;
  std::map<std::string, double> sum;  // by row
  void add(const std::string& row, double value) { sum[row] += value; }
};

}  // namespace

std::vector<Row> quality_rows(const DraftOptions& options) {
  std::vector<std::filesystem::path> files;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(options.pools, missing)) {
    if (entry.path().extension() == ".pool") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) fmt::print("no pools in {}\n", options.pools);
  fmt::print("Best-1, Best-5 and Best-20 of drafts of several sizes:\n");
  std::vector<Row> rows;
  std::map<std::string, ClassMean> classes;
  for (const std::filesystem::path& file : files) {
    const Scored pool = score(file);
    if (pool.measured_ns.empty()) continue;
    print_pool(pool);
    ClassMean& mean = classes[pool.op_class];
    ++mean.pools;
    for (const std::size_t size : kSizes) {
      for (const auto& [name, predicted] : pool.predicted) {
        mean.add(fmt::format("{}@{}", name, size),
                 best_k(pool, predicted, everyone(pool), size, 1));
      }
      mean.add(fmt::format("random@{}", size), random_best(pool, size));
    }
    const std::vector<double>& ours = pool.predicted.at("prunerc");
    const Interval interval =
        bootstrap(pool, options.bootstrap, options.seed,
                  [&](const std::vector<std::size_t>& c) { return best_k(pool, ours, c, 128, 1); });
    rows.push_back({"best1_at_128/task/" + pool.name, best_k(pool, ours, everyone(pool), 128, 1),
                    "", 0.98, fmt::format("95 %: {:.3f} to {:.3f}", interval.lo, interval.hi)});
    const std::vector<double> draft = drafted(pool, ours, everyone(pool), 128);
    const double best = least(pool, everyone(pool));
    rows.push_back(
        {"space_quality/" + pool.name,
         draft[draft.size() / 2] / best,
         "x best",
         {},
         fmt::format("median of the 128 drafted; quartiles {:.2f} and {:.2f}",
                     draft[draft.size() / 4] / best, draft[3 * draft.size() / 4] / best)});
  }
  for (const auto& [name, mean] : classes) {
    const auto value = [&](const std::string& row) {
      return mean.sum.at(row) / static_cast<double>(mean.pools);
    };
    for (const std::size_t size : kSizes) {
      const std::optional<double> goal = size == 512   ? std::optional(0.995)
                                         : size == 128 ? std::optional(0.98)
                                                       : std::nullopt;
      rows.push_back({fmt::format("best1_at_{}/{}", size, name),
                      value(fmt::format("prunerc@{}", size)), "", goal,
                      fmt::format("{} pools; random {:.3f}", mean.pools,
                                  value(fmt::format("random@{}", size)))});
      rows.push_back({fmt::format("best1_at_{}_release/{}", size, name),
                      value(fmt::format("release@{}", size)),
                      "",
                      {},
                      fmt::format("paper {:.3f}", value(fmt::format("paper@{}", size)))});
    }
  }
  return rows;
}

}  // namespace prunerc::bench
