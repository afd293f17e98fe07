// Searches of many tasks: what choosing costs, and where the trials go.
#include "costmodel/latency/roofline.h"
#include "ir/equal.h"
#include "search/strategy/strategies.h"
#include "search/tune/replay.h"
#include "tests/bench/draft/curve.h"
#include "tests/bench/draft/pools.h"
#include "tests/bench/draft/rows.h"
#include "tools/driver/prunerc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>

namespace prunerc::bench {
namespace {

using namespace search;  // NOLINT: a benchmark of search

constexpr int kThreads = 2;

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Answers at once with what the analyzer says, off by a factor that depends on the program alone:
/// all time is the search's own.
class AtOnce : public Measurer {
 public:
  void submit(MeasureInput input) override { pending_.push_back(std::move(input)); }
  std::optional<MeasureOutcome> next(Deadline) override {
    if (pending_.empty()) return std::nullopt;
    const MeasureInput input = std::move(pending_.front());
    pending_.pop_front();
    constexpr double kSpread = 0.5;
    const double luck = static_cast<double>(ir::fingerprint(input.program).low % 1024) / 1024;
    Measurement m;
    m.status = MeasureStatus::kOk;
    m.samples_ns = {costmodel::estimate_latency(input.program, input.task->target).total_ns *
                    std::exp(kSpread * luck)};
    if (input.kind == MeasureKind::kVerify) m.evidence = "compared";
    summarize_samples(m);
    return MeasureOutcome{input.id, std::move(m)};
  }

 private:
  std::deque<MeasureInput> pending_;
};

std::vector<Task> tasks_of(const std::string& net) {
  OperatorRequest request;
  request.file = net;
  ir::Target target = ir::target_from_string("cpu:znver4").value();
  target.num_threads = kThreads;
  std::vector<Task> tasks;
  const std::vector<Operator> ops = load_operators(request).value();
  for (const Operator& op : ops) {
    tasks.push_back(make_task(op.name, op.program, target));
    tasks.back().weight = op.weight;
  }
  return tasks;
}

std::vector<Row> cost_rows(std::span<const Task> tasks, StrategyKind kind, bool check,
                           const DraftBenchOptions& options) {
  AtOnce measurer;
  Database database = Database::open(":memory:").value();
  TuneOptions tuning;
  tuning.strategy = kind;
  tuning.trials = 0;
  tuning.total_trials = options.net_trials;
  tuning.seed = options.seed;
  tuning.num_threads = kThreads;
  tuning.finals = 0;
  if (!check) tuning.check = {};
  const double start = process_seconds();
  const Result<TuneReport> report = tune(tasks, measurer, database, tuning);
  const double spent = process_seconds() - start;
  if (!report.ok()) {
    fmt::print("  {}: {}\n", to_string(kind), report.error().message());
    return {};
  }
  const Curve curve = curve_of(*report);
  const std::string known =
      curve.points.empty() ? "never" : fmt::format("after {} trials", curve.points.front().trial);
  return {{fmt::format("net_cpu_ms_a_trial/{}{}", to_string(kind), check ? "+check" : ""),
           1e3 * spent / static_cast<double>(std::max<int64_t>(1, curve.trials)),
           "ms",
           {},
           fmt::format("{} trials; sum known {}, at the end {:.4g} us; {}", curve.trials, known,
                       curve.final_ns / 1e3, to_text(report->seconds))}};
}

/// So near the best possible sum.
constexpr double kNear = 1.05;
/// A row of the rhythm: the first batch of each task.
constexpr int kFirst[] = {2, 4, 8, 16};

// The pools as the tasks of one net, each with the same part of the sum.
std::vector<ReplayTask> replayed_net(const std::string& folder) {
  ThreadPool threads(0);
  std::vector<ReplayTask> tasks;
  for (const NamedPool& pool : read_pools(folder)) {
    Result<ReplayTask> task = ReplayTask::make(pool.pool, threads);
    if (!task.ok()) continue;
    task->task.weight = 1 / best_of(pool.pool);
    tasks.push_back(std::move(task).value());
  }
  return tasks;
}

// Mean over trials of log2 of the sum over the best possible, from the trial on where it may first
// be known; before it is known it counts as it then is.
double regret_of(const Curve& curve, double best, int64_t trials) {
  double sum = 0;
  double now = curve.points.front().best_ns;
  std::size_t next = 0;
  for (int64_t t = 1; t <= trials; ++t) {
    while (next < curve.points.size() && curve.points[next].trial <= t) {
      now = curve.points[next++].best_ns;
    }
    sum += std::log2(now / best);
  }
  return sum / static_cast<double>(trials);
}

}  // namespace

std::vector<Row> many_cost_rows(const DraftBenchOptions& options) {
  const std::vector<Task> tasks = tasks_of(options.net);
  std::vector<Row> rows;
  for (const StrategyKind kind : {StrategyKind::kPruner, StrategyKind::kAnsor}) {
    for (const bool check : {false, true}) {
      if (check && kind != StrategyKind::kPruner) continue;
      for (Row& row : cost_rows(tasks, kind, check, options)) rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<Row> rhythm_rows(const DraftBenchOptions& options) {
  constexpr int64_t kTrialsEach = 20;
  const std::vector<ReplayTask> tasks = replayed_net(options.pools);
  const auto num_tasks = static_cast<double>(tasks.size());
  const int64_t trials = kTrialsEach * static_cast<int64_t>(tasks.size());
  std::vector<Row> rows;
  for (const int first : kFirst) {
    std::vector<double> regrets, ends, known, near;
    for (int seed = 0; seed < options.seeds; ++seed) {
      TuneOptions tuning;
      tuning.strategy = StrategyKind::kPruner;
      tuning.trials = 0;
      tuning.total_trials = trials;
      tuning.seed = static_cast<uint64_t>(seed);
      tuning.first_batch = first;
      const Result<TuneReport> report = replay(tasks, tuning);
      if (!report.ok()) return {};
      const Curve curve = curve_of(*report);
      if (curve.points.empty()) continue;
      regrets.push_back(regret_of(curve, num_tasks, trials));
      ends.push_back(curve.final_ns / num_tasks);
      near.push_back(reach(curve, kNear * num_tasks).trials);
      known.push_back(static_cast<double>(curve.points.front().trial));
    }
    const std::string note = fmt::format(
        "{} tasks, {} trials, {} seeds; sum known after {:.0f}, within 5 % of the best "
        "after {:.0f}, at the end {:.4f} of it (means)",
        tasks.size(), trials, options.seeds, mean(known), mean(near), mean(ends));
    rows.push_back({fmt::format("net_regret/first_{}", first), mean(regrets), "log2", {}, note});
  }
  return rows;
}

}  // namespace prunerc::bench
