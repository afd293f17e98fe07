#include "search/tune/tuner.h"

#include "ir/support/parallel.h"
#include "search/model/calibrator.h"
#include "search/space/space.h"
#include "search/strategy/network_use.h"
#include "search/tune/inbox.h"
#include "search/tune/proofs.h"
#include "search/tune/referee.h"
#include "search/tune/task_scheduler.h"
#include "search/tune/task_state.h"
#include "search/tune/time_budget.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

namespace prunerc::search {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Wall time of a trial before one was seen.
constexpr double kGuessTrialS = 0.15;

struct Batch {
  std::size_t task = 0;
  std::vector<Candidate> candidates;
  std::vector<std::optional<Measurement>> answers;
  std::vector<ir::FpvVerdict> verdicts;  // of the first check
  std::size_t num_answers = 0;
  bool complete() const { return num_answers == candidates.size(); }
};

class Tuner {
 public:
  Tuner(std::span<const Task> tasks, Measurer& measurer, Database& database,
        const TuneOptions& options)
      : tasks_(tasks),
        inbox_(measurer, options.cancel),
        database_(database),
        options_(with_rhythm(options)),
        pool_(options.num_threads),
        start_(Clock::now()),
        busy_before_(inbox_.busy_seconds()),
        // Recorded answers come at once, and nothing comes after a search among them.
        budget_(options_.clock == TuneClock::kWall ? options_.time_s : 0,
                [this] { return elapsed(); }),
        proofs_(options_.check, options_.seed, pool_),
        referee_(inbox_, database_, options_, proofs_, budget_, states_) {}

  Result<TuneReport> run() {
    PRUNERC_TRY_VOID(prepare());
    while (!inbox_.has_ended()) {
      while (!inbox_.has_ended() && has_room() && submit_batch()) {
      }
      if (in_flight_.empty()) break;
      inbox_.wait_until(
          [this] { return in_flight_.front().complete() || (is_late() && has_result()); });
      if (!in_flight_.front().complete()) break;
      PRUNERC_TRY_VOID(settle(in_flight_.front()));
      in_flight_.pop_front();
    }
    // Something is missing, and neither the user nor the device has ended it.
    const bool is_time_over = !in_flight_.empty() && !inbox_.has_ended();
    // What was asked for and answered is kept, also when time is up or the user has had enough.
    inbox_.withdraw();
    for (Batch& batch : in_flight_) PRUNERC_TRY_VOID(settle(batch));
    in_flight_.clear();
    if (is_time_over) end_all(StopReason::kTime);
    if (!inbox_.has_ended()) PRUNERC_TRY_VOID(referee_.run_finals());
    return finish();
  }

 private:
  static TuneOptions with_rhythm(TuneOptions options) {
    const StrategyRhythm own = rhythm_of(options.strategy);
    if (options.batch <= 0) options.batch = own.batch;
    if (options.batches_in_flight <= 0) options.batches_in_flight = own.in_flight;
    // A strategy whose first batch is as large as the others has none of its own.
    const int first = own.first < own.batch ? own.first : options.batch;
    if (options.first_batch <= 0) options.first_batch = first;
    options.first_batch = std::min(options.first_batch, options.batch);
    return options;
  }

  Result<void> prepare() {
    const std::optional<NetworkUse> use = network_use(options_.strategy);
    std::map<ir::TargetKind, std::shared_ptr<OnlineModel>> networks;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      const auto began = Clock::now();
      std::shared_ptr<OnlineModel>& network = networks[tasks_[i].target.kind];
      if (use && !options_.make_strategy && network == nullptr) {
        PRUNERC_TRY(network,
                    open_network(*use, options_.checkpoint, tasks_[i].target.kind, options_.seed));
        // Small first batches are for candidates that somebody trained has chosen.
        if (!network->came_trained()) options_.first_batch = options_.batch;
      }
      Calibrator& calibrator =
          calibrators_
              .try_emplace(target_key(tasks_[i].target), tasks_[i].target.kind, options_.seed)
              .first->second;
      PRUNERC_TRY(TaskState state, TaskState::make(tasks_[i], database_, pool_, options_,
                                                   /*stream=*/i, &calibrator, network));
      state.report.seconds.search += seconds_since(began);
      states_.push_back(std::move(state));
    }
    // Under a limit at the end, if then it still matters.
    for (std::size_t i = 0; i < states_.size() && !budget_.is_limited(); ++i) {
      PRUNERC_TRY_VOID(referee_.verify_best(i));
    }
    for (std::size_t i = 0; i < states_.size(); ++i) submit_claims(i);
    return {};
  }

  // What files say is fast is measured and verified before anything else.
  void submit_claims(std::size_t task) {
    TaskState& state = states_[task];
    std::vector<Candidate> claims = std::move(state.claims);
    auto most = static_cast<int64_t>(claims.size());
    if (options_.trials > 0) most = std::min(most, options_.trials);
    if (options_.total_trials > 0) {
      most = std::min({most, trials_share(), options_.total_trials - num_asked()});
    }
    claims.resize(static_cast<std::size_t>(std::max<int64_t>(0, most)));
    if (!claims.empty()) submit(task, std::move(claims));
  }

  double search_left_s() const { return budget_.left_s() - referee_.reserve_s() - trial_s(); }
  bool is_late() const { return budget_.is_limited() && search_left_s() <= 0; }
  bool is_search_over() const {
    return is_late() || (options_.time_s > 0 && elapsed() >= options_.time_s);
  }
  // Something that can win: without, even a search that is over waits for its first answer.
  bool has_result() const {
    for (const TaskState& state : states_) {
      if (state.report.best_ns > 0 || !state.leaders(1).empty()) return true;
    }
    for (const Batch& batch : in_flight_) {
      for (const std::optional<Measurement>& answer : batch.answers) {
        if (answer && answer->ok()) return true;
      }
    }
    return false;
  }
  // Wall time of one trial, by those so far; 0 before the first.
  double trial_s() const {
    int64_t answered = 0;
    for (const Batch& batch : in_flight_) answered += static_cast<int64_t>(batch.num_answers);
    for (const TaskState& state : states_) answered += state.report.trials;
    return answered == 0 ? 0 : busy() / static_cast<double>(answered);
  }
  double elapsed() const {
    if (options_.clock == TuneClock::kWall) return seconds_since(start_);
    double total = 0;
    for (const TaskState& state : states_) {
      const PhaseSeconds& s = state.report.seconds;
      total += s.build + s.measure + s.search + s.learn + s.verify;
    }
    return total;
  }
  double busy() const {
    if (options_.clock == TuneClock::kWall) return inbox_.busy_seconds() - busy_before_;
    double total = 0;
    for (const TaskState& state : states_) {
      total += state.report.seconds.build + state.report.seconds.measure;
    }
    return total;
  }
  // Asking and telling a strategy, with the time that it takes.
  template <typename F>
  static void timed(TaskState& state, F&& work) {
    const auto began = Clock::now();
    const double learned = state.strategy->learn_seconds();
    work(*state.strategy);
    const double learn = state.strategy->learn_seconds() - learned;
    state.report.seconds.learn += learn;
    state.report.seconds.search += std::max(0.0, seconds_since(began) - learn);
  }

  // First batches of several tasks know nothing of each other's answers anyway: as long as these
  // are small and come next, there are as many trials on their way as otherwise.
  bool has_room() const {
    if (static_cast<int>(in_flight_.size()) < options_.batches_in_flight) return true;
    if (options_.first_batch >= options_.batch) return false;
    const bool is_first = std::any_of(states_.begin(), states_.end(), [](const TaskState& state) {
      return !state.ended && state.rounds_asked == 0;
    });
    std::size_t trials = static_cast<std::size_t>(options_.first_batch);
    for (const Batch& batch : in_flight_) trials += batch.candidates.size();
    const auto most = static_cast<std::size_t>(options_.batches_in_flight) *
                      static_cast<std::size_t>(options_.batch);
    return is_first && trials <= most;
  }

  // Those that have ended keep their reasons.
  void end_all(StopReason reason) {
    for (TaskState& state : states_) state.end(reason);
  }

  // Asks the task that promises most; false if none wants more.
  bool submit_batch() {
    if (is_search_over()) end_all(StopReason::kTime);
    const TaskChooser::Turn turn = choose();
    if (turn.task < 0) return false;
    const auto chosen = static_cast<std::size_t>(turn.task);
    TaskState& state = states_[chosen];
    if (!has_time_for(state)) {
      state.end(StopReason::kTime);
      return true;  // another task may need less
    }
    std::vector<Candidate> candidates;
    tell_phase(options_, "drafting candidates of " + state.task->name);
    const double began_s = elapsed();
    timed(state,
          [&](Strategy& strategy) { candidates = strategy.ask(batch_size(state, turn.most)); });
    state.ask_cost.add(elapsed() - began_s);
    state.report.drafted = state.strategy->num_drafted();
    if (candidates.empty()) {
      state.end(StopReason::kExhausted);
      return true;  // another task may have some
    }
    submit(chosen, std::move(candidates));
    return true;
  }

  void submit(std::size_t task, std::vector<Candidate> candidates) {
    TaskState& state = states_[task];
    Batch batch;
    batch.task = task;
    batch.candidates = std::move(candidates);
    batch.answers.resize(batch.candidates.size());
    state.asked += static_cast<int64_t>(batch.candidates.size());
    ++state.rounds_asked;
    in_flight_.push_back(std::move(batch));
    refute(in_flight_.back());
    for (std::size_t i = 0; i < in_flight_.back().candidates.size(); ++i) {
      submit_candidate(in_flight_.back(), i);
    }
  }

  // Whether a batch of the task, and what must follow it, can be done in time. Something is always
  // tried.
  bool has_time_for(const TaskState& state) const {
    if (!budget_.is_limited() || num_asked() == 0) return true;
    const double end_s = state.asked == 0 ? referee_.begin_s(state) : 0;
    return state.ask_cost.seconds() + end_s + trial_s() < search_left_s();
  }
  // Trials that fit before the search must end, besides those that are on their way.
  int64_t affordable_trials() const {
    const double each_s = trial_s() > 0 ? trial_s() : kGuessTrialS;
    int64_t open = 0;
    for (const Batch& batch : in_flight_) {
      open += static_cast<int64_t>(batch.candidates.size() - batch.num_answers);
    }
    const auto fits = static_cast<int64_t>(std::max(0.0, search_left_s()) / each_s);
    return std::max<int64_t>(1, fits - open);
  }

  TaskChooser::Turn choose() const {
    if (options_.claims_only) return {};
    if (options_.total_trials > 0 && num_asked() >= options_.total_trials) return {};
    if (options_.chooser != nullptr) return options_.chooser->next(standings_of(states_));
    std::vector<TaskProgress> progress;
    for (const TaskState& state : states_) progress.push_back(state.progress(options_));
    return {choose_task(progress), options_.batch};
  }

  int64_t num_asked() const {
    int64_t total = 0;
    for (const TaskState& state : states_) total += state.asked;
    return total;
  }

  // A task's part of what all have together.
  int64_t trials_share() const {
    return std::max<int64_t>(1, options_.total_trials / static_cast<int64_t>(states_.size()));
  }

  // Every task gets its first batch from a budget that they share. It is small where the strategy
  // knows what is good before anything is measured: so the sum is known early, and the rest goes
  // where it gains most.
  std::size_t batch_size(const TaskState& state, int64_t most) const {
    auto size = std::min(static_cast<int64_t>(state.batch_size(options_)), most);
    const bool is_sum = options_.chooser == nullptr;
    if (is_sum && states_.size() > 1 && state.rounds_asked == 0) {
      size = std::min<int64_t>(size, options_.first_batch);
    }
    if (budget_.is_limited()) size = std::min(size, affordable_trials());
    if (options_.total_trials <= 0) return static_cast<std::size_t>(size);
    const int64_t share = is_sum ? trials_share() : size;
    return static_cast<std::size_t>(std::min({size, share, options_.total_trials - num_asked()}));
  }

  // Candidates that do not compute the task are answered at once.
  void refute(Batch& batch) {
    batch.verdicts = proofs_.draft(states_[batch.task], batch.candidates);
    for (std::size_t i = 0; i < batch.verdicts.size(); ++i) {
      if (is_refuted(batch.verdicts[i])) answer(batch, i, refutation(batch.verdicts[i]));
    }
  }

  void submit_candidate(Batch& batch, std::size_t idx) {
    const Candidate& candidate = batch.candidates[idx];
    TaskState& state = states_[batch.task];
    log("ask " + std::to_string(batch.task) + " " + candidate.fingerprint.to_string() + " " +
        describe_choice(candidate));
    if (batch.answers[idx]) return;
    if (const Measurement* known = state.known(candidate.fingerprint)) {
      answer(batch, idx, *known);
      ++state.report.reused;
      return;
    }
    MeasureInput input;
    input.task = state.task;
    input.program = candidate.program;
    input.trace = candidate.trace;
    input.best_ns = state.report.best_ns;
    input.seed = options_.seed;
    inbox_.submit(std::move(input), [this, &batch, idx](Measurement m) {
      states_[batch.task].count_time(m);
      if (m.ok() && budget_.is_limited()) states_[batch.task].final_cost.add(m.measure_s);
      answer(batch, idx, std::move(m));
      progress(batch.task);
    });
  }

  static void answer(Batch& batch, std::size_t idx, Measurement measurement) {
    if (batch.answers[idx]) return;
    batch.answers[idx] = std::move(measurement);
    ++batch.num_answers;
  }

  // Records a batch: verifies what would be a new best, tells the strategy, stores.
  Result<void> settle(Batch& batch) {
    TaskState& state = states_[batch.task];
    std::vector<Candidate> candidates;
    std::vector<Measurement> answers;
    std::vector<ir::FpvVerdict> verdicts;
    for (std::size_t i = 0; i < batch.candidates.size(); ++i) {
      if (!batch.answers[i]) continue;  // stopped before it was measured
      // Not the candidate's fault: neither stored nor learned from, so that a later call asks for it.
      if (batch.answers[i]->status == MeasureStatus::kDeviceLost) {
        state.count_lost(*batch.answers[i]);
        continue;
      }
      verdicts.push_back(batch.verdicts[i]);
      candidates.push_back(std::move(batch.candidates[i]));
      answers.push_back(*std::move(batch.answers[i]));
    }
    tell_phase(options_, "proving candidates of " + state.task->name);
    proofs_.prove(state, candidates, verdicts, answers,
                  [this] { return !inbox_.is_cancelled() && !is_late(); });
    referee_.verify_winners(batch.task, candidates, answers);
    PRUNERC_TRY_VOID(state.store(database_, candidates, answers, options_));
    // Only now: who reads the log may rely on what it says was told.
    for (std::size_t i = 0; i < answers.size(); ++i) {
      log("tell " + std::to_string(batch.task) + " " + candidates[i].fingerprint.to_string() + " " +
          std::string(to_string(answers[i].status)) + " " + std::to_string(answers[i].median_ns));
    }
    // A search that is over learns nothing more.
    if (!is_late() && !inbox_.has_ended()) {
      timed(state, [&](Strategy& strategy) { strategy.tell(candidates, answers); });
    }
    int64_t of_others = -state.report.trials;
    for (const TaskState& s : states_) of_others += s.report.trials;
    state.update(candidates, answers, options_, elapsed(), of_others);
    progress(batch.task);
    return {};
  }

  Result<TuneReport> finish() {
    TuneReport report;
    report.cancelled = inbox_.is_cancelled();
    for (TaskState& state : states_) {
      if (report.cancelled) state.end(StopReason::kCancelled);
      if (inbox_.has_lost_device()) state.end(StopReason::kDeviceLost);
      state.report.seconds.total = elapsed();
      state.report.seconds.busy = busy();
      report.total_weighted_ns += state.report.weight * state.report.best_ns;
      report.tasks.push_back(std::move(state.report));
    }
    report.seconds = sum_of(report.tasks);
    return report;
  }

  PhaseSeconds sum_of(std::span<const TaskReport> rows) const {
    PhaseSeconds sum;
    for (const TaskReport& row : rows) {
      sum.build += row.seconds.build;
      sum.measure += row.seconds.measure;
      sum.search += row.seconds.search;
      sum.learn += row.seconds.learn;
      sum.verify += row.seconds.verify;
    }
    sum.total = options_.clock == TuneClock::kWall
                    ? seconds_since(start_)
                    : sum.build + sum.measure + sum.search + sum.learn + sum.verify;
    sum.busy = busy();
    return sum;
  }

  void progress(std::size_t current) {
    if (!options_.on_progress) return;
    std::vector<TaskReport> rows;
    TuneProgress p;
    for (const TaskState& state : states_) {
      rows.push_back(state.report);
      p.trials_done += state.answered;
    }
    for (TaskReport& row : rows) row.best_program = {};
    p.tasks = rows;
    p.current_task = static_cast<int>(current);
    p.trials_total = options_.total_trials > 0
                         ? options_.total_trials
                         : options_.trials * static_cast<int64_t>(states_.size());
    p.elapsed_s = elapsed();
    p.seconds = sum_of(rows);
    options_.on_progress(p);
  }

  void log(const std::string& line) {
    if (options_.log) options_.log(line);
  }

  std::span<const Task> tasks_;
  Inbox inbox_;
  Database& database_;
  TuneOptions options_;
  ThreadPool pool_;
  Clock::time_point start_;
  double busy_before_;
  std::map<std::string, Calibrator> calibrators_;  // by target; states_ refer to them
  std::vector<TaskState> states_;
  std::deque<Batch> in_flight_;  // a deque: what waits for answers refers to its batch
  TimeBudget budget_;
  Proofs proofs_;
  Referee referee_;
};

}  // namespace

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kTrials: return "trials";
    case StopReason::kTime: return "time";
    case StopReason::kEarly: return "early";
    case StopReason::kExhausted: return "exhausted";
    case StopReason::kCancelled: return "cancelled";
    case StopReason::kDeviceLost: return "device_lost";
  }
  PRUNERC_UNREACHABLE("stop reason");
}

Result<TuneReport> tune(std::span<const Task> tasks, Measurer& measurer, Database& database,
                        const TuneOptions& options) {
  return Tuner(tasks, measurer, database, options).run();
}

}  // namespace prunerc::search
