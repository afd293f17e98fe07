#include "search/algebra/alternatives.h"

#include "ir/canonical.h"
#include "ir/parser.h"
#include "ir/support/hash.h"
#include "ir/verify.h"
#include "search/algebra/form_check.h"
#include "search/tune/inbox.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace prunerc::search::algebra {
namespace {

/// Spreads count as noise up to this; what differs by more is no matter of noise.
constexpr double kMostNoise = 0.2;

// Task::spec_error of what a link says of numbers: the strictest where nobody knows it.
double spec_error_of(std::string_view numerics) {
  if (numerics == to_string(NumericClass::kNormal)) return kNormalFactor;
  return numerics == to_string(NumericClass::kLoose) ? kLooseFactor : 1;
}

std::string text_of(const ir::FpvAssumptions& assumes) {
  std::string out;
  if (assumes.private_exponents) out = "private exponents";
  if (assumes.orders) out += out.empty() ? "orders" : ", orders";
  if (assumes.roundings) out += out.empty() ? "roundings" : ", roundings";
  return out;
}

}  // namespace

Task task_of_link(const Task& spec, const ir::Program& program, const DerivedLink& link) {
  Task task = derived_task(spec, program, link.recipe);
  task.spec_error = spec_error_of(link.numerics);
  return task;
}

namespace {

SampledVerdict compare(const Task& spec, const Task& derived, uint64_t seed) {
  SampleOptions options;
  options.log2_error = kStoredLog2Error;
  options.seed = seed;
  return check_programs(spec.base, derived.base, options);
}

// At two sizes: what is equal by chance of one, as a constant that is its extent, is not at the other.
std::optional<SampledVerdict> at_small_extents(const Task& spec, const Task& derived,
                                               uint64_t seed) {
  SampledVerdict small;
  small.at_small_extents = true;
  for (const int64_t scale : {1, 2}) {
    const Result<SmallPair> pair = shrink_programs(spec.base, derived.base, scale);
    if (!pair.ok()) return std::nullopt;
    const ir::FpvVerdict verdict =
        check_form(*pair, kStoredLog2Error, hash_combine(seed, static_cast<uint64_t>(scale)));
    if (!verdict.ok()) return std::nullopt;
    if (scale == 1 || verdict.log2_error > small.verdict.log2_error) small.verdict = verdict;
  }
  return small;
}

}  // namespace

SampledVerdict check_link(const Task& spec, const Task& derived, uint64_t seed) {
  SampledVerdict found = compare(spec, derived, seed);
  if (!is_shown(found) || found.is_whole || at_small_extents(spec, derived, seed)) return found;
  found.verdict.kind = ir::VerdictKind::kUnsupported;
  found.verdict.text = "equal on sampled tiles alone, which is not enough of a program of others";
  return found;
}

SampledVerdict check_own_link(const Task& spec, const Task& derived, uint64_t seed) {
  const SampledVerdict found = compare(spec, derived, seed);
  if (is_shown(found) || is_refuted(found.verdict)) return found;
  return at_small_extents(spec, derived, seed).value_or(found);
}

bool is_shown(const SampledVerdict& found) {
  return found.verdict.ok() && found.verdict.log2_error <= kStoredLog2Error;
}

DerivedLink with_verdict(DerivedLink link, const ir::FpvVerdict& verdict) {
  link.log2_error = verdict.log2_error;
  link.tests = verdict.tests;
  link.assumes = text_of(verdict.assumes);
  link.imported = false;
  return link;
}

Judged judge(const Task& spec, const Derived& derived, uint64_t seed) {
  const auto refuse = [](std::string why) { return Judged{std::nullopt, std::move(why)}; };
  if (derived.recipe.empty()) return refuse("it has no recipe");
  if (!derived.verdict.ok()) return refuse("derived as " + ir::to_string(derived.verdict));
  if (!ir::same_parameters(spec.base, derived.program)) {
    return refuse("its parameters are not the operator's");
  }
  DerivedLink link;
  link.recipe = derived.recipe;
  link.rules = derived.rules;
  link.numerics = to_string(derived.numerics);
  link.flops = derived.flops;
  link.limit_ns = derived.limit_ns;
  Task task = task_of_link(spec, derived.program, link);
  if (task.key == spec.key) return refuse("it is the operator as written");
  const SampledVerdict found = check_own_link(spec, task, seed);
  if (!is_shown(found)) return refuse(to_string(found));
  return {Alternative{std::move(task), with_verdict(std::move(link), found.verdict)}, ""};
}

std::optional<Task> stored_task(const Task& spec, const DerivedRow& row) {
  const Result<ir::Program> program = ir::parse(row.task.key.program);
  if (!program.ok() || !ir::verify(*program).ok()) return std::nullopt;
  if (!ir::same_parameters(spec.base, *program)) return std::nullopt;
  Task task = task_of_link(spec, *program, row.link);
  if (task.key != row.task.key) return std::nullopt;
  return task;
}

bool is_faster(const Measurement& derived, const Measurement& spec) {
  if (!derived.ok() || derived.median_ns <= 0) return false;
  if (!spec.ok() || spec.median_ns <= 0) return true;
  const double noise = std::clamp(std::max(derived.spread, spec.spread), kLeastGain, kMostNoise);
  return derived.median_ns < (1 - noise) * spec.median_ns;
}

namespace {

/// Of the published halving: trials of each, then of so many of the best.
constexpr int64_t kFirst = 8, kSecond = 24;
constexpr std::size_t kSecondTasks = 3;
/// Of a small number of trials so much at most is for finding out who is fastest.
constexpr double kExploreShare = 2.0 / 3;

// The operator is the first of the tasks.
class Halving : public TaskChooser {
 public:
  Halving(std::size_t num_tasks, int64_t total) : plan_(plan_halving(num_tasks, total)) {}

  Turn next(std::span<const TaskStanding> tasks) override {
    if (survivors_.empty()) {
      std::vector<std::size_t> all;
      for (std::size_t i = 0; i < tasks.size(); ++i) all.push_back(i);
      if (const std::optional<Turn> turn = stage(tasks, all, plan_.first)) return *turn;
      survivors_ = best_few(tasks);
    }
    if (const std::optional<Turn> turn = stage(tasks, survivors_, plan_.first + plan_.second)) {
      return *turn;
    }
    return last_stage(tasks);
  }

  std::vector<std::size_t> finalists(std::span<const TaskStanding> tasks) override {
    const std::vector<std::size_t> order = by_time(tasks);
    std::vector<std::size_t> out = {0};
    const auto derived =
        std::find_if(order.begin(), order.end(), [](std::size_t task) { return task != 0; });
    if (derived != order.end() && tasks[*derived].best_ns > 0) out.push_back(*derived);
    return out;
  }

 private:
  // Brings each of these to so many trials; empty once they are all there and answered.
  static std::optional<Turn> stage(std::span<const TaskStanding> tasks,
                                   std::span<const std::size_t> whom, int64_t quota) {
    bool all_answered = true;
    for (const std::size_t task : whom) {
      const TaskStanding& t = tasks[task];
      if (t.is_open && t.asked < quota) return Turn{static_cast<int>(task), quota - t.asked};
      all_answered &= t.answered >= t.asked;
    }
    return all_answered ? std::nullopt : std::optional<Turn>(Turn{});
  }

  // What is left goes to the fastest that is open, of the best few while one of them is.
  Turn last_stage(std::span<const TaskStanding> tasks) const {
    constexpr int64_t kAll = std::numeric_limits<int32_t>::max();
    const std::vector<std::size_t> order = by_time(tasks);
    for (const bool of_few : {true, false}) {
      for (const std::size_t task : order) {
        const bool is_of_few =
            std::find(survivors_.begin(), survivors_.end(), task) != survivors_.end();
        if (is_of_few == of_few && tasks[task].is_open) return {static_cast<int>(task), kAll};
      }
    }
    return {};
  }

  // Fastest first; those that did not run last.
  static std::vector<std::size_t> by_time(std::span<const TaskStanding> tasks) {
    std::vector<std::size_t> order(tasks.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto time = [&](std::size_t i) {
      return tasks[i].best_ns > 0 ? tasks[i].best_ns : std::numeric_limits<double>::infinity();
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return time(a) < time(b); });
    return order;
  }

  static std::vector<std::size_t> best_few(std::span<const TaskStanding> tasks) {
    std::vector<std::size_t> few = by_time(tasks);
    few.resize(std::min(few.size(), kSecondTasks));
    if (std::find(few.begin(), few.end(), std::size_t{0}) == few.end()) few.back() = 0;
    return few;
  }

  HalvingPlan plan_;
  std::vector<std::size_t> survivors_;  // of the first stage; empty: it is not over
};

}  // namespace

HalvingPlan plan_halving(std::size_t num_tasks, int64_t total) {
  const auto explored =
      static_cast<double>(kFirst * static_cast<int64_t>(num_tasks) +
                          kSecond * static_cast<int64_t>(std::min(num_tasks, kSecondTasks)));
  const double most = kExploreShare * static_cast<double>(total);
  if (total <= 0 || explored <= most) return {kFirst, kSecond};
  const double scale = most / explored;
  return {std::max<int64_t>(1, static_cast<int64_t>(scale * kFirst)),
          static_cast<int64_t>(scale * kSecond)};
}

std::size_t fastest(std::span<const TaskReport> rows) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const bool is_first = rows[best].best_ns <= 0;
    if (rows[i].best_ns > 0 && (is_first || rows[i].best_ns < rows[best].best_ns)) best = i;
  }
  return best;
}

Result<AlternativesReport> tune_alternatives(const Task& spec,
                                             std::span<const Alternative> alternatives,
                                             Measurer& measurer, Database& database,
                                             const TuneOptions& options) {
  std::vector<Task> tasks = {spec};
  PRUNERC_TRY(const int64_t spec_id, database.put_task(spec));
  for (const Alternative& one : alternatives) {
    PRUNERC_TRY(const int64_t id, database.put_task(one.task));
    PRUNERC_TRY_VOID(database.put_derived(spec_id, id, one.link));
    tasks.push_back(one.task);
  }
  TuneOptions shared = options;
  if (options.trials > 0) shared.total_trials = options.trials;
  shared.trials = 0;
  Halving halving(tasks.size(), shared.total_trials);
  shared.chooser = &halving;
  Result<TuneReport> found = tune(tasks, measurer, database, shared);
  drain(measurer);
  AlternativesReport report;
  PRUNERC_TRY(report.tune, std::move(found));
  const std::span<const TaskReport> rows = report.tune.tasks;
  // Among the derived ones the time decides; beside the operator it must be clearly better.
  const std::size_t derived = rows.size() < 2 ? 0 : 1 + fastest(rows.subspan(1));
  if (derived > 0 && is_faster(rows[derived].best.measurement, rows[0].best.measurement)) {
    report.winner = derived;
  }
  return report;
}

TaskReport joined(const Task& spec, std::span<const TaskReport> rows, std::size_t winner) {
  TaskReport out = rows[winner];
  out.name = spec.name;
  out.trials = out.reused = out.drafted = out.unchecked = 0;
  out.left_aside = {};
  out.counts = {};
  out.failure.clear();
  out.seconds = {};
  std::vector<CurvePoint> points;
  for (const TaskReport& row : rows) {
    out.trials += row.trials;
    out.reused += row.reused;
    out.left_aside.add(row.left_aside);
    out.drafted += row.drafted;
    out.unchecked += row.unchecked;
    for (std::size_t i = 0; i < out.counts.size(); ++i) out.counts[i] += row.counts[i];
    if (out.failure.empty()) out.failure = row.failure;
    out.seconds.build += row.seconds.build;
    out.seconds.measure += row.seconds.measure;
    out.seconds.search += row.seconds.search;
    out.seconds.learn += row.seconds.learn;
    out.seconds.verify += row.seconds.verify;
    out.seconds.total = std::max(out.seconds.total, row.seconds.total);
    out.seconds.busy = std::max(out.seconds.busy, row.seconds.busy);
    points.insert(points.end(), row.curve.begin(), row.curve.end());
  }
  std::stable_sort(points.begin(), points.end(), [](const CurvePoint& a, const CurvePoint& b) {
    return a.call_trial < b.call_trial;
  });
  out.curve.clear();
  for (CurvePoint point : points) {
    if (!out.curve.empty() && point.best_ns >= out.curve.back().best_ns) continue;
    point.trial = point.call_trial;
    out.curve.push_back(point);
  }
  out.last_gain = out.curve.empty() ? 0 : out.curve.back().trial;
  return out;
}

}  // namespace prunerc::search::algebra
