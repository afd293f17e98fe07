#include "tools/driver/algebra.h"

#include "ir/support/check.h"
#include "ir/support/hash.h"
#include "search/tune/inbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace prunerc {
namespace {

using search::algebra::Alternative;

/// Of a limited time, for deriving.
constexpr double kDeriveShare = 0.1;
/// What a search that begins late gets: 0 would be no limit.
constexpr double kLeastS = 0.05;

/// An operator's derived programs and what is to be told of them.
struct Forms {
  std::vector<Alternative> alternatives;
  std::string note;
};

bool is_wanted(const search::algebra::Derived& form, const search::algebra::DeriveReport& report,
               AlgebraMode mode) {
  return mode == AlgebraMode::kOn || form.limit_ns <= kWorthwhile * report.spec_limit_ns;
}

void note_refusal(const search::algebra::Derived& form, const std::string& why, std::string* note) {
  *note += fmt::format("{}'{}' is refused: {}", note->empty() ? "" : "; ", form.recipe, why);
}

Forms forms_of(const search::Task& task, const AlgebraOptions& algebra, uint64_t seed,
               double seconds) {
  Forms forms;
  if (!algebra.derive) {
    forms.note = "this build derives no programs";
    return forms;
  }
  search::algebra::DeriveOptions options;
  options.seed = seed;
  if (seconds > 0) options.seconds = std::min(options.seconds, seconds);
  const Result<search::algebra::DeriveReport> report =
      algebra.derive(task.base, task.target, options);
  if (!report.ok()) {
    forms.note = report.error().message();
    return forms;
  }
  for (const search::algebra::Derived& form : report->forms) {
    if (forms.alternatives.size() >= search::algebra::kMostAlternatives) break;
    if (!is_wanted(form, *report, algebra.mode)) continue;
    // Other primes and inputs than the deriver's.
    search::algebra::Judged judged =
        search::algebra::judge(task, form, hash_combine(seed, hash_bytes(form.recipe)));
    if (!judged.alternative) {
      note_refusal(form, judged.refusal, &forms.note);
      continue;
    }
    const bool is_known = std::any_of(
        forms.alternatives.begin(), forms.alternatives.end(),
        [&](const Alternative& one) { return one.task.key == judged.alternative->task.key; });
    if (!is_known) forms.alternatives.push_back(*std::move(judged.alternative));
  }
  return forms;
}

void add(const search::PhaseSeconds& more, search::PhaseSeconds* sum) {
  sum->build += more.build;
  sum->measure += more.measure;
  sum->search += more.search;
  sum->learn += more.learn;
  sum->verify += more.verify;
  sum->total += more.total;
  sum->busy += more.busy;
}

/// One call's operators: those with alternatives one after the other, then the rest together.
class Tuning {
 public:
  Tuning(std::span<const search::Task> tasks, search::Measurer& measurer,
         search::Database& database, const search::TuneOptions& options,
         const AlgebraOptions& algebra)
      : tasks_(tasks),
        measurer_(measurer),
        database_(database),
        options_(options),
        algebra_(algebra),
        rows_(tasks.size()) {}

  Result<AlgebraTuneReport> run() {
    derive();
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (!forms_[i].alternatives.empty()) PRUNERC_TRY_VOID(tune_alternatives(i));
    }
    PRUNERC_TRY_VOID(tune_rest());
    search::TuneReport& tune = report_.tune;
    tune.tasks = rows_;
    tune.seconds = spent_;
    tune.seconds.total = elapsed_s();
    for (const search::TaskReport& row : rows_) tune.total_weighted_ns += row.weight * row.best_ns;
    return std::move(report_);
  }

 private:
  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  bool is_limited() const { return options_.time_s > 0; }
  bool is_cancelled() const {
    return options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed);
  }
  // An operator's part of the time that is left.
  double share_s(std::size_t num_left) const {
    if (!is_limited()) return 0;
    return std::max(kLeastS, (options_.time_s - elapsed_s()) / static_cast<double>(num_left));
  }
  // Of an operator alone; 0: no limit.
  int64_t trials_each() const {
    if (options_.trials > 0) return options_.trials;
    const auto num = static_cast<int64_t>(tasks_.size());
    return options_.total_trials > 0 ? std::max<int64_t>(1, options_.total_trials / num) : 0;
  }

  void derive() {
    const double each_s = kDeriveShare * options_.time_s /
                          static_cast<double>(std::max<std::size_t>(1, tasks_.size()));
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const search::Task& task = tasks_[i];
      search::tell_phase(options_, "deriving programs of " + task.name);
      forms_.push_back(is_cancelled() ? Forms{} : forms_of(task, algebra_, options_.seed, each_s));
      AlgebraOutcome& outcome = report_.outcomes.emplace_back();
      outcome.task = task;
      outcome.note = forms_.back().note;
      outcome.num_tuned = static_cast<int>(forms_.back().alternatives.size());
      rows_[i].name = task.name;
      rows_[i].target = ir::to_string(task.target);
      rows_[i].weight = task.weight;
      rows_[i].work = task.work;
      if (!forms_.back().alternatives.empty()) continue;
      rest_.push_back(i);
    }
  }

  Result<void> tune_alternatives(std::size_t i) {
    const std::vector<Alternative>& alternatives = forms_[i].alternatives;
    search::TuneOptions options = options_;
    options.trials = trials_each();
    options.total_trials = 0;
    options.time_s = share_s(tasks_.size() - num_done_);
    options.on_progress = [&](const search::TuneProgress& p) {
      rows_[i] = search::algebra::joined(tasks_[i], p.tasks, search::algebra::fastest(p.tasks));
      progress(p, i);
    };
    PRUNERC_TRY(
        const search::algebra::AlternativesReport found,
        search::algebra::tune_alternatives(tasks_[i], alternatives, measurer_, database_, options));
    const std::vector<search::TaskReport>& arms = found.tune.tasks;
    rows_[i] = search::algebra::joined(tasks_[i], arms, found.winner);
    AlgebraOutcome& outcome = report_.outcomes[i];
    outcome.spec_ns = arms[0].best_ns;
    outcome.winner_ns = arms[found.winner].best_ns;
    if (found.winner > 0) {
      outcome.task = alternatives[found.winner - 1].task;
      outcome.link = alternatives[found.winner - 1].link;
    }
    finish(found.tune, rows_[i].trials, 1);
    return {};
  }

  Result<void> tune_rest() {
    if (rest_.empty()) return {};
    std::vector<search::Task> tasks;
    for (const std::size_t i : rest_) tasks.push_back(tasks_[i]);
    search::TuneOptions options = options_;
    const auto num_others = static_cast<int64_t>(tasks_.size() - rest_.size());
    if (options.total_trials > 0) {
      options.total_trials =
          std::max<int64_t>(1, options.total_trials - num_others * trials_each());
    }
    options.time_s = share_s(1);
    options.on_progress = [&](const search::TuneProgress& p) {
      for (std::size_t j = 0; j < rest_.size(); ++j) rows_[rest_[j]] = p.tasks[j];
      progress(p, rest_[static_cast<std::size_t>(p.current_task)]);
    };
    Result<search::TuneReport> tuned = search::tune(tasks, measurer_, database_, options);
    search::drain(measurer_);
    PRUNERC_TRY(search::TuneReport found, std::move(tuned));
    int64_t trials = 0;
    for (std::size_t j = 0; j < rest_.size(); ++j) {
      trials += found.tasks[j].trials;
      report_.outcomes[rest_[j]].spec_ns = found.tasks[j].best_ns;
      report_.outcomes[rest_[j]].winner_ns = found.tasks[j].best_ns;
      rows_[rest_[j]] = std::move(found.tasks[j]);
    }
    finish(found, trials, rest_.size());
    return {};
  }

  void finish(const search::TuneReport& found, int64_t trials, std::size_t num_tasks) {
    add(found.seconds, &spent_);
    trials_done_ += trials;
    num_done_ += num_tasks;
    report_.tune.cancelled |= found.cancelled;
  }

  void progress(const search::TuneProgress& of_call, std::size_t current) const {
    if (!options_.on_progress) return;
    search::TuneProgress p;
    p.tasks = rows_;
    p.current_task = static_cast<int>(current);
    p.trials_done = trials_done_ + of_call.trials_done;
    p.trials_total = trials_each() * static_cast<int64_t>(tasks_.size());
    p.elapsed_s = elapsed_s();
    p.seconds = spent_;
    add(of_call.seconds, &p.seconds);
    options_.on_progress(p);
  }

  std::span<const search::Task> tasks_;
  search::Measurer& measurer_;
  search::Database& database_;
  const search::TuneOptions& options_;
  const AlgebraOptions& algebra_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<Forms> forms_;
  std::vector<std::size_t> rest_;         // operators without alternatives
  std::vector<search::TaskReport> rows_;  // by operator
  search::PhaseSeconds spent_;
  int64_t trials_done_ = 0;
  std::size_t num_done_ = 0;
  AlgebraTuneReport report_;
};

}  // namespace

std::string_view to_string(AlgebraMode mode) {
  switch (mode) {
    case AlgebraMode::kOff: return "off";
    case AlgebraMode::kAuto: return "auto";
    case AlgebraMode::kOn: return "on";
  }
  PRUNERC_UNREACHABLE("algebra mode");
}

std::optional<AlgebraMode> algebra_mode_from_string(std::string_view text) {
  for (const AlgebraMode mode : {AlgebraMode::kOff, AlgebraMode::kAuto, AlgebraMode::kOn}) {
    if (to_string(mode) == text) return mode;
  }
  return std::nullopt;
}

Deriver default_deriver() { return search::algebra::derive; }

Result<AlgebraTuneReport> tune_with_algebra(std::span<const search::Task> tasks,
                                            search::Measurer& measurer, search::Database& database,
                                            const search::TuneOptions& options,
                                            const AlgebraOptions& algebra) {
  if (algebra.mode == AlgebraMode::kOff) {
    AlgebraTuneReport report;
    PRUNERC_TRY(report.tune, search::tune(tasks, measurer, database, options));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const double best_ns = report.tune.tasks[i].best_ns;
      report.outcomes.push_back({tasks[i], 0, best_ns, best_ns, {}, ""});
    }
    return report;
  }
  return Tuning(tasks, measurer, database, options, algebra).run();
}

}  // namespace prunerc
