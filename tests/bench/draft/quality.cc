// How good the drafts of several analyzers are on measured pools.
#include "costmodel/latency/calibrate.h"
#include "ir/support/rng.h"
#include "tests/bench/draft/order.h"
#include "tests/bench/draft/pools.h"
#include "tests/bench/draft/rows.h"
#include "tests/bench/draft/scored.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>

namespace prunerc::bench {
namespace {

constexpr std::size_t kSizes[] = {64, 128, 256, 512};

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

// Best of all over the k-th best of the draft: the measure of Pruner, ASPLOS'25, Table 10.
double best_k(const Scored& pool, const std::vector<double>& draft,
              const std::vector<std::size_t>& chosen, std::size_t k) {
  return draft.empty() ? 0 : least(pool, chosen) / draft[std::min(k, draft.size()) - 1];
}

// Candidates of a pool resampled with replacement, each once.
std::vector<std::size_t> resample(const Scored& pool, Rng& rng) {
  const std::size_t n = pool.measured_ns.size();
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < n; ++i) chosen.push_back(static_cast<std::size_t>(rng.below(n)));
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

using Measure = std::function<double(const Scored&, const std::vector<std::size_t>&)>;

double mean_over(std::span<const Scored> pools, const Measure& f) {
  double sum = 0;
  for (const Scored& pool : pools) sum += f(pool, everyone(pool));
  return sum / static_cast<double>(pools.size());
}

// "95 %: 0.9 to 1": of the mean over pools, all resampled.
std::string interval_of(std::span<const Scored> pools, const DraftBenchOptions& options,
                        const Measure& f) {
  Rng rng(options.seed, pools.size());
  std::vector<double> values;
  for (int t = 0; t < options.bootstrap; ++t) {
    double sum = 0;
    for (const Scored& pool : pools) sum += f(pool, resample(pool, rng));
    values.push_back(sum / static_cast<double>(pools.size()));
  }
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  return values.empty() ? "" : fmt::format("95 %: {:.3f} to {:.3f}", at(0.025), at(0.975));
}

void print_pool(const Scored& pool) {
  std::vector<double> sorted = pool.measured_ns;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  fmt::print("{}: {} ran, best {:.1f} us, median {:.2f} x best, worst {:.2f} x\n", pool.name,
             sorted.size(), sorted[0] / 1e3, median / sorted[0], sorted.back() / sorted[0]);
  const std::vector<std::size_t> all = everyone(pool);
  for (const auto& [name, predicted] : pool.predicted) {
    fmt::print("  {:<10} rank correlation {:+.3f};", name,
               costmodel::rank_correlation(pool.measured_ns, predicted.ns));
    for (const std::size_t size : kSizes) {
      const std::vector<double> draft = drafted(pool, name, all, size);
      fmt::print("  @{}: {:.3f} {:.3f} {:.3f}", size, best_k(pool, draft, all, 1),
                 best_k(pool, draft, all, 5), best_k(pool, draft, all, 20));
    }
    fmt::print("\n");
  }
  fmt::print("  {:<10}                         ", "random");
  for (const std::size_t size : kSizes)
    fmt::print("  @{}: {:.3f}", size, best_of_drawn(pool.measured_ns, size));
  fmt::print("\n");
}

Measure best_k_of(const std::string& analyzer, std::size_t size, std::size_t k) {
  return [=](const Scored& pool, const std::vector<std::size_t>& chosen) {
    return best_k(pool, drafted(pool, analyzer, chosen, size), chosen, k);
  };
}

std::optional<double> goal_of(std::size_t size, std::size_t k) {
  if (k != 1) return std::nullopt;
  return size == 512 ? std::optional(0.995) : size == 128 ? std::optional(0.98) : std::nullopt;
}

// Best-k of every draft size with its interval, other analyzers and chance beside it.
std::vector<Row> best_rows(const std::string& name, std::span<const Scored> pools,
                           const DraftBenchOptions& options) {
  std::vector<Row> rows;
  for (const std::size_t size : kSizes) {
    for (const std::size_t k : {1, 5, 20}) {
      const Measure ours = best_k_of("prunerc", size, k);
      std::string note = fmt::format(
          "{}; order alone {:.3f}, calibrated {:.3f}, release {:.3f}, "
          "paper {:.3f}",
          interval_of(pools, options, ours), mean_over(pools, best_k_of("order", size, k)),
          mean_over(pools, best_k_of("calibrated", size, k)),
          mean_over(pools, best_k_of("release", size, k)),
          mean_over(pools, best_k_of("paper", size, k)));
      if (k == 1) {
        const Measure random = [size](const Scored& pool, const std::vector<std::size_t>&) {
          return best_of_drawn(pool.measured_ns, size);
        };
        note += fmt::format(", random {:.3f}", mean_over(pools, random));
      }
      rows.push_back({fmt::format("best{}_at_{}/{}", k, size, name), mean_over(pools, ours), "",
                      goal_of(size, k), note});
    }
    const Measure release = best_k_of("release", size, 1);
    rows.push_back({fmt::format("best1_at_{}_release/{}", size, name),
                    mean_over(pools, release),
                    "",
                    {},
                    interval_of(pools, options, release)});
  }
  return rows;
}

// Latencies of what is drafted, in units of the pool's best: 10, 50 and 90 % of them.
std::vector<Row> space_rows(const std::string& name, std::span<const Scored> pools) {
  constexpr std::size_t kSize = 128;
  constexpr double kQuantiles[] = {0.1, 0.5, 0.9};
  const auto quantile = [&](const std::string& analyzer, double q) {
    return mean_over(pools, [&](const Scored& pool, const std::vector<std::size_t>& chosen) {
      std::vector<double> draft =
          analyzer == "random" ? pool.measured_ns : drafted(pool, analyzer, chosen, kSize);
      std::sort(draft.begin(), draft.end());
      const auto at = static_cast<std::size_t>(q * static_cast<double>(draft.size() - 1));
      return draft[at] / least(pool, chosen);
    });
  };
  std::string note = "medians; 10 and 90 %:";
  for (const char* const analyzer : {"prunerc", "calibrated", "release", "paper", "random"}) {
    note +=
        fmt::format(" {} {:.2f} ({:.2f} to {:.2f})", analyzer, quantile(analyzer, kQuantiles[1]),
                    quantile(analyzer, kQuantiles[0]), quantile(analyzer, kQuantiles[2]));
  }
  return {{"space_quality/" + name, quantile("prunerc", kQuantiles[1]), "x best", {}, note}};
}

// Best-1 of the published analyzers without each of their parts.
std::vector<Row> penalty_rows(const std::string& name, std::span<const Scored> pools) {
  std::vector<Row> rows;
  for (const auto& [what, unused] : pools[0].ablated) {
    const std::string whole = what.substr(0, what.find('/'));
    const auto without = [&, what = what](std::size_t size) {
      return mean_over(pools, [&](const Scored& pool, const std::vector<std::size_t>& chosen) {
        return best_k(pool, first_of(pool, pool.ablated.at(what), chosen, size), chosen, 1);
      });
    };
    const auto correlation = [&](const auto& predicted_of) {
      return mean_over(pools, [&](const Scored& pool, const std::vector<std::size_t>&) {
        return costmodel::rank_correlation(pool.measured_ns, predicted_of(pool));
      });
    };
    rows.push_back(
        {fmt::format("best1_at_128_without/{}/{}", what, name),
         without(128),
         "",
         {},
         fmt::format(
             "with it {:.3f}; @512 without {:.3f}, with {:.3f}; rank correlation without "
             "{:+.3f}, with {:+.3f}",
             mean_over(pools, best_k_of(whole, 128, 1)), without(512),
             mean_over(pools, best_k_of(whole, 512, 1)),
             correlation([&, what = what](const Scored& pool) { return pool.ablated.at(what); }),
             correlation([&](const Scored& pool) { return pool.predicted.at(whole).ns; }))});
  }
  return rows;
}

}  // namespace

std::vector<Row> quality_rows(const DraftBenchOptions& options) {
  fmt::print("Best-1, Best-5 and Best-20 of drafts of several sizes:\n");
  std::vector<Row> rows;
  std::map<std::string, std::vector<Scored>> classes;
  for (const NamedPool& named : read_pools(options.pools)) {
    Scored pool = score(named, options.seed);
    if (pool.measured_ns.empty()) continue;
    print_pool(pool);
    const Measure ours = best_k_of("prunerc", 128, 1);
    rows.push_back({"best1_at_128/task/" + pool.name, mean_over({&pool, 1}, ours), "",
                    goal_of(128, 1), interval_of({&pool, 1}, options, ours)});
    classes[pool.op_class].push_back(std::move(pool));
  }
  const auto add = [&](std::vector<Row> more) {
    for (Row& row : more) rows.push_back(std::move(row));
  };
  for (const auto& [name, pools] : classes) {
    add(best_rows(name, pools, options));
    add(space_rows(name, pools));
    add(penalty_rows(name, pools));
  }
  return rows;
}

}  // namespace prunerc::bench
