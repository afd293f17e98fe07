#include "search/pool.h"
#include "search/replay.h"
#include "search/strategies.h"
#include "tests/bench/draft_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace prunerc::bench {
namespace {

using namespace search;  // NOLINT: a benchmark of search

struct Run {
  double final_ns = 0;
  std::vector<CurvePoint> curve;
  double explore_s = 0;  // search and learning
  double total_s = 0;
};

std::optional<Run> run(const ReplayTask& task, StrategyKind kind, int64_t trials, uint64_t seed) {
  TuneOptions options;
  options.strategy = kind;
  options.trials = trials;
  options.seed = seed;
  options.finals = 0;
  options.check = {};
  const Result<TuneReport> report = replay({&task, 1}, options);
  if (!report.ok()) {
    fmt::print("  {}: {}\n", to_string(kind), report.error().message());
    return std::nullopt;
  }
  const TaskReport& row = report->tasks[0];
  const PhaseSeconds& s = row.seconds;
  return Run{row.best_ns, row.curve, s.search + s.learn, s.search + s.learn + s.build + s.measure};
}

/// Where a run first was at most this slow; its whole budget if it never was.
struct Reached {
  double trials = 0, seconds = 0;
  bool ever = false;
};
Reached reach(const Run& run, double ns, int64_t trials) {
  for (const CurvePoint& point : run.curve) {
    if (point.best_ns <= ns) return {static_cast<double>(point.trial), point.seconds, true};
  }
  return {static_cast<double>(trials), run.total_s, false};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

std::vector<Row> rows_of(const std::string& name, const ReplayTask& task,
                         const DraftOptions& options) {
  // A pool cannot give more trials than it holds; half of it is a hard enough target.
  const int64_t trials = std::min(options.trials, static_cast<int64_t>(task.rows.size()) / 2);
  double best = std::numeric_limits<double>::infinity();
  for (const PoolRow& row : task.rows) {
    if (row.ok()) best = std::min(best, row.median_ns);
  }
  std::vector<double> fewer_trials, fewer_seconds, quality, ours_quality, overhead;
  int never = 0;
  for (int seed = 0; seed < options.seeds; ++seed) {
    const auto s = static_cast<uint64_t>(seed);
    const std::optional<Run> ansor = run(task, StrategyKind::kAnsor, trials, s);
    const std::optional<Run> ours = run(task, StrategyKind::kPruner, trials, s);
    if (!ansor || !ours) return {};
    const Reached theirs = reach(*ansor, ansor->final_ns, trials);
    const Reached mine = reach(*ours, ansor->final_ns, trials);
    never += mine.ever ? 0 : 1;
    fewer_trials.push_back(theirs.trials / std::max(1.0, mine.trials));
    fewer_seconds.push_back(theirs.seconds / std::max(1e-9, mine.seconds));
    quality.push_back(best / ansor->final_ns);
    ours_quality.push_back(best / ours->final_ns);
    overhead.push_back(ours->explore_s / ours->total_s);
  }
  const std::string note =
      fmt::format("{} trials, {} seeds, {} never", trials, options.seeds, never);
  return {
      {"trials_to_ansor/" + name, median(fewer_trials), "x fewer", 3.0, note},
      {"time_to_ansor/" + name, median(fewer_seconds), "x fewer", 3.0, note},
      {"ansor_final/" + name, median(quality), "of best", 0.97, "the pool's best over its"},
      {"pruner_final/" + name, median(ours_quality), "of best", {}, "the pool's best over ours"},
      {"overhead_fraction/" + name, median(overhead), "", 0.1,
       "searching and learning of all seconds", true}};
}

}  // namespace

std::vector<Row> replay_rows(const DraftOptions& options) {
  std::vector<std::filesystem::path> files;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(options.pools, missing)) {
    if (entry.path().extension() == ".pool") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ThreadPool threads(0);
  std::vector<Row> rows;
  for (const std::filesystem::path& file : files) {
    const Pool pool = read_pool(file.string()).value();
    const Result<ReplayTask> task = ReplayTask::make(pool, threads);
    if (!task.ok()) {
      fmt::print("  {}: {}\n", file.stem().string(), task.error().message());
      continue;
    }
    for (Row& row : rows_of(file.stem().string(), *task, options)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace prunerc::bench
