#include "search/tune/replay.h"

#include "search/strategy/strategies.h"
#include "tests/bench/draft/curve.h"
#include "tests/bench/draft/pools.h"
#include "tests/bench/draft/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace prunerc::bench {
namespace {

using namespace search;  // NOLINT: a benchmark of search

std::optional<Curve> run(const ReplayTask& task, StrategyKind kind, int64_t trials, uint64_t seed) {
  TuneOptions options;
  options.strategy = kind;
  options.trials = trials;
  options.seed = seed;
  const Result<TuneReport> report = replay({&task, 1}, options);
  if (!report.ok()) {
    fmt::print("  {}: {}\n", to_string(kind), report.error().message());
    return std::nullopt;
  }
  return curve_of(*report);
}

std::vector<Row> rows_of(const NamedPool& pool, const ReplayTask& task,
                         const DraftBenchOptions& options) {
  // A pool cannot give more trials than it holds; half of it is a hard enough target.
  const int64_t trials = std::min(options.trials, static_cast<int64_t>(task.rows.size()) / 2);
  const double best = best_of(pool.pool);
  std::vector<Gain> gains;
  std::vector<double> quality, ours_quality, overhead;
  int never = 0;
  std::string split;
  for (int seed = 0; seed < options.seeds; ++seed) {
    const auto s = static_cast<uint64_t>(seed);
    const std::optional<Curve> ansor = run(task, StrategyKind::kAnsor, trials, s);
    const std::optional<Curve> ours = run(task, StrategyKind::kPrunerTrees, trials, s);
    if (!ansor || !ours) return {};
    gains.push_back(gain_over(*ansor, *ours));
    never += gains.back().ever ? 0 : 1;
    quality.push_back(best / ansor->final_ns);
    ours_quality.push_back(best / ours->final_ns);
    overhead.push_back(overhead_of(ours->seconds));
    split = to_text(ours->seconds);
  }
  const std::string note =
      fmt::format("{} trials, {} seeds, {} never", trials, options.seeds, never);
  const Gain gain = median_of(gains);
  return {
      {"trials_to_ansor/" + pool.name, gain.trials, "x fewer", 3.0, note},
      {"time_to_ansor/" + pool.name, gain.seconds, "x fewer", 3.0, note},
      {"trials_to_ansor_own/" + pool.name, gain.own_trials, "x fewer", {}, note},
      {"time_to_ansor_own/" + pool.name, gain.own_seconds, "x fewer", {}, note},
      {"trials_to_ansor_near/" + pool.name, gain.near_trials, "x fewer", {}, note},
      {"time_to_ansor_near/" + pool.name, gain.near_seconds, "x fewer", {}, note},
      {"ansor_final/" + pool.name, median(quality), "of best", 0.97, "the pool's best over its"},
      {"pruner_final/" + pool.name,
       median(ours_quality),
       "of best",
       {},
       "the pool's best over ours"},
      {"overhead_fraction/" + pool.name, median(overhead), "", 0.1,
       "searching and learning of all seconds; last seed: " + split, true}};
}

}  // namespace

std::vector<Row> replay_rows(const DraftBenchOptions& options) {
  ThreadPool threads(0);
  std::vector<Row> rows;
  for (const NamedPool& pool : read_pools(options.pools)) {
    const Result<ReplayTask> task = ReplayTask::make(pool.pool, threads);
    if (!task.ok()) {
      fmt::print("  {}: {}\n", pool.name, task.error().message());
      continue;
    }
    for (Row& row : rows_of(pool, *task, options)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace prunerc::bench
