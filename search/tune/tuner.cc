#include "search/tune/tuner.h"

#include "ir/support/parallel.h"
#include "search/model/calibrator.h"
#include "search/space/space.h"
#include "search/strategy/network_use.h"
#include "search/tune/equality.h"
#include "search/tune/finals.h"
#include "search/tune/inbox.h"
#include "search/tune/task_scheduler.h"
#include "search/tune/task_state.h"

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
        busy_before_(inbox_.busy_seconds()) {}

  Result<TuneReport> run() {
    PRUNERC_TRY_VOID(prepare());
    while (!inbox_.has_ended()) {
      while (has_room() && submit_batch()) {
      }
      if (in_flight_.empty()) break;
      inbox_.wait_until([this] { return in_flight_.front().complete(); });
      PRUNERC_TRY_VOID(settle(in_flight_.front()));
      in_flight_.pop_front();
    }
    // What was asked for and answered is kept, also when the user has had enough.
    for (Batch& batch : in_flight_) PRUNERC_TRY_VOID(settle(batch));
    in_flight_.clear();
    if (!inbox_.has_ended()) PRUNERC_TRY_VOID(run_finals());
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
    for (std::size_t i = 0; i < states_.size(); ++i) PRUNERC_TRY_VOID(verify_best(i));
    for (std::size_t i = 0; i < states_.size(); ++i) submit_claims(i);
    return {};
  }

  // What files say is fast is measured and verified before anything else.
  void submit_claims(std::size_t task) {
    TaskState& state = states_[task];
    std::vector<Candidate> claims = std::move(state.claims);
    if (options_.trials > 0) {
      claims.resize(std::min(claims.size(), static_cast<std::size_t>(options_.trials)));
    }
    if (!claims.empty()) submit(task, std::move(claims));
  }

  bool out_of_time() const { return options_.time_s > 0 && elapsed() >= options_.time_s; }
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

  // Asks the task that promises most; false if none wants more.
  bool submit_batch() {
    if (out_of_time()) {
      for (TaskState& state : states_) state.end(StopReason::kTime);
    }
    const int chosen = choose();
    if (chosen < 0) return false;
    TaskState& state = states_[static_cast<std::size_t>(chosen)];
    std::vector<Candidate> candidates;
    timed(state, [&](Strategy& strategy) { candidates = strategy.ask(batch_size(state)); });
    state.report.drafted = state.strategy->num_drafted();
    if (candidates.empty()) {
      state.end(StopReason::kExhausted);
      return true;  // another task may have some
    }
    submit(static_cast<std::size_t>(chosen), std::move(candidates));
    return true;
  }

  void submit(std::size_t task, std::vector<Candidate> candidates) {
    TaskState& state = states_[task];
    Batch batch;
    batch.task = task;
    batch.candidates = std::move(candidates);
    batch.answers.resize(batch.candidates.size());
    batch.verdicts.resize(batch.candidates.size());
    state.asked += static_cast<int64_t>(batch.candidates.size());
    ++state.rounds_asked;
    in_flight_.push_back(std::move(batch));
    refute(in_flight_.back());
    for (std::size_t i = 0; i < in_flight_.back().candidates.size(); ++i) {
      submit_candidate(in_flight_.back(), i);
    }
  }

  int choose() const {
    if (options_.claims_only) return -1;
    std::vector<TaskProgress> progress;
    for (const TaskState& state : states_) progress.push_back(state.progress(options_));
    if (options_.total_trials > 0 && num_asked() >= options_.total_trials) return -1;
    return choose_task(progress);
  }

  int64_t num_asked() const {
    int64_t total = 0;
    for (const TaskState& state : states_) total += state.asked;
    return total;
  }

  // Every task gets its first batch from a budget that they share. It is small where the strategy
  // knows what is good before anything is measured: so the sum is known early, and the rest goes
  // where it gains most.
  std::size_t batch_size(const TaskState& state) const {
    auto size = static_cast<int64_t>(state.batch_size(options_));
    if (states_.size() > 1 && state.rounds_asked == 0) {
      size = std::min<int64_t>(size, options_.first_batch);
    }
    if (options_.total_trials <= 0) return static_cast<std::size_t>(size);
    const auto share =
        std::max<int64_t>(1, options_.total_trials / static_cast<int64_t>(states_.size()));
    return static_cast<std::size_t>(std::min({size, share, options_.total_trials - num_asked()}));
  }

  // Candidates that nothing is known of and that do not compute the task are answered at once.
  void refute(Batch& batch) {
    TaskState& state = states_[batch.task];
    std::vector<EqualityQuestion> questions;
    for (std::size_t i = 0; i < batch.candidates.size() && options_.check; ++i) {
      const bool is_new = state.known(batch.candidates[i].fingerprint) == nullptr;
      if (is_new) questions.push_back({i, kDraftLog2Error});
    }
    const std::vector<EqualityResult> results = check_candidates(
        options_.check, *state.task, batch.candidates, questions, 0, options_.seed, pool_);
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const ir::FpvVerdict& verdict = results[i].verdict;
      const std::size_t at = questions[i].candidate;
      state.report.seconds.verify += results[i].seconds;
      if (verdict.kind == ir::VerdictKind::kUnsupported) ++state.report.unchecked;
      if (is_refuted(verdict)) answer(batch, at, refutation(verdict));
      batch.verdicts[at] = verdict;
    }
  }

  static Measurement refutation(const ir::FpvVerdict& verdict) {
    Measurement m;
    m.status = MeasureStatus::kNotEqual;
    m.detail = to_string(verdict);
    return m;
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
      answer(batch, idx, std::move(m));
      progress(batch.task);
    });
  }

  static void answer(Batch& batch, std::size_t idx, Measurement measurement) {
    if (batch.answers[idx]) return;
    batch.answers[idx] = std::move(measurement);
    ++batch.num_answers;
  }

  // One request whose answer is needed now; other answers are kept meanwhile. Nullopt if stopped.
  std::optional<Measurement> ask_single(std::size_t task, const Candidate& candidate,
                                        MeasureKind kind, uint64_t seed) {
    MeasureInput input;
    input.kind = kind;
    input.task = states_[task].task;
    input.program = candidate.program;
    input.trace = candidate.trace;
    input.seed = seed;
    std::optional<Measurement> answer;
    const int64_t id =
        inbox_.submit(std::move(input), [&](Measurement m) { answer = std::move(m); });
    inbox_.wait_until([&] { return answer.has_value(); });
    inbox_.forget(id);
    if (answer) states_[task].count_time(*answer);
    return answer;
  }

  // Records a batch: verifies what would be a new best, tells the strategy, stores.
  Result<void> settle(Batch& batch) {
    TaskState& state = states_[batch.task];
    std::vector<Candidate> candidates;
    std::vector<Measurement> answers;
    std::vector<ir::FpvVerdict> verdicts;
    for (std::size_t i = 0; i < batch.candidates.size(); ++i) {
      if (!batch.answers[i]) continue;  // stopped before it was measured
      verdicts.push_back(batch.verdicts[i]);
      candidates.push_back(std::move(batch.candidates[i]));
      answers.push_back(*std::move(batch.answers[i]));
    }
    prove(batch.task, candidates, verdicts, answers);
    verify_winners(batch.task, candidates, answers);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      log("tell " + std::to_string(batch.task) + " " + candidates[i].fingerprint.to_string() + " " +
          std::string(to_string(answers[i].status)) + " " + std::to_string(answers[i].median_ns));
    }
    PRUNERC_TRY_VOID(state.store(database_, candidates, answers, options_));
    timed(state, [&](Strategy& strategy) { strategy.tell(candidates, answers); });
    int64_t of_others = -state.report.trials;
    for (const TaskState& s : states_) of_others += s.report.trials;
    state.update(candidates, answers, options_, elapsed(), of_others);
    progress(batch.task);
    return {};
  }

  // What is about to be stored as a result is checked once more, with other primes and inputs: at
  // least as far as before, and until both verdicts together are as sure as wanted.
  void prove(std::size_t task, std::span<const Candidate> candidates,
             std::span<const ir::FpvVerdict> before, std::span<Measurement> answers) {
    TaskState& state = states_[task];
    std::vector<EqualityQuestion> questions;
    for (std::size_t i = 0; i < answers.size() && options_.check; ++i) {
      const bool is_new = state.known(candidates[i].fingerprint) == nullptr;
      const double known = before[i].ok() ? before[i].log2_error : 0;
      const double wanted = std::min(kDraftLog2Error, kStoredLog2Error - known);
      if (answers[i].ok() && is_new) questions.push_back({i, wanted});
    }
    const std::vector<EqualityResult> results = check_candidates(
        options_.check, *state.task, candidates, questions, 1, options_.seed, pool_);
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const std::size_t at = questions[i].candidate;
      ir::FpvVerdict verdict = results[i].verdict;
      state.report.seconds.verify += results[i].seconds;
      answers[at].verify_s += results[i].seconds;
      if (verdict.ok() && before[at].ok()) {
        verdict.log2_error += before[at].log2_error;
        verdict.tests += before[at].tests;
      }
      note_proof(candidates[at].fingerprint, verdict);
      if (is_refuted(verdict)) answers[at] = refutation(verdict);
    }
  }

  // What is said of a winner beside the values that were compared.
  void note_proof(const Fingerprint& candidate, const ir::FpvVerdict& verdict) {
    proofs_[candidate] =
        verdict.ok() ? "; on a twin " + to_string(verdict)
                     : "; these values alone: finite fields gave no verdict (" + verdict.text + ")";
  }

  void add_proof(const Candidate& candidate, Measurement* m) const {
    const auto at = proofs_.find(candidate.fingerprint);
    if (m->ok() && at != proofs_.end()) m->evidence += at->second;
  }

  void verify_winners(std::size_t task, std::span<const Candidate> candidates,
                      std::span<Measurement> answers) {
    TaskState& state = states_[task];
    std::vector<std::size_t> order(answers.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return answers[a].median_ns < answers[b].median_ns;
    });
    for (const std::size_t i : order) {
      if (!answers[i].ok()) continue;
      if (state.report.best_ns > 0 && answers[i].median_ns >= state.report.best_ns) return;
      if (answers[i].evidence.empty()) {
        const std::optional<Measurement> verdict =
            ask_single(task, candidates[i], MeasureKind::kVerify, options_.seed + next_seed_++);
        // Out of time, or verification itself failed: it stays a record, but wins nothing.
        if (!verdict || verdict->status == MeasureStatus::kRunError) return;
        apply_verdict(answers[i], *verdict);
        add_proof(candidates[i], &answers[i]);
      }
      if (!answers[i].ok()) continue;
      state.set_best(candidates[i], answers[i]);
      return;
    }
  }

  // A stored best from an older session may lack a verdict.
  Result<void> verify_best(std::size_t task) {
    TaskState& state = states_[task];
    std::vector<KnownCandidate> leaders = state.unverified_leaders();
    for (KnownCandidate& known : leaders) {
      PRUNERC_TRY_VOID(verify(task, known));
      if (!known.measurement.ok() || known.measurement.evidence.empty()) continue;
      state.set_best(known.candidate, known.measurement);
      return {};
    }
    return {};
  }

  // The best few once more, in turns, so that one lucky sample does not decide, and neither does a
  // moment in which the machine had other work.
  Result<void> run_finals() {
    for (std::size_t t = 0; t < states_.size() && options_.finals > 1; ++t) {
      TaskState& state = states_[t];
      if (state.report.trials == 0) continue;
      std::vector<KnownCandidate> finalists = state.leaders(options_.finals);
      if (finalists.size() < 2) continue;
      std::vector<double> before;
      for (const KnownCandidate& f : finalists) before.push_back(f.measurement.median_ns);
      std::vector<FinalTurn> turns;
      while (!is_decided(turns, before)) {
        FinalTurn turn;
        for (const KnownCandidate& finalist : finalists) {
          const std::optional<Measurement> m =
              ask_single(t, finalist.candidate, MeasureKind::kTime, options_.seed);
          if (!m) return {};
          turn.push_back(m->ok() ? m->median_ns : 0);
        }
        turns.push_back(std::move(turn));
      }
      std::vector<std::vector<double>> medians(finalists.size());
      for (const std::size_t turn : quiet_turns(turns, before)) {
        for (std::size_t i = 0; i < finalists.size(); ++i) {
          if (turns[turn][i] > 0) medians[i].push_back(turns[turn][i]);
        }
      }
      PRUNERC_TRY_VOID(crown(t, finalists, medians));
    }
    return {};
  }

  Result<void> crown(std::size_t task, std::vector<KnownCandidate>& finalists,
                     const std::vector<std::vector<double>>& medians) {
    TaskState& state = states_[task];
    for (std::size_t i = 0; i < finalists.size(); ++i) {
      Measurement& m = finalists[i].measurement;
      if (medians[i].empty()) {
        m.status = MeasureStatus::kNoisy;
        continue;
      }
      m.samples_ns = medians[i];
      summarize_samples(m);
    }
    std::stable_sort(finalists.begin(), finalists.end(),
                     [](const KnownCandidate& a, const KnownCandidate& b) {
                       return a.measurement.median_ns < b.measurement.median_ns;
                     });
    bool crowned = false;
    std::vector<Record> records;
    for (KnownCandidate& finalist : finalists) {
      Measurement& m = finalist.measurement;
      if (!m.ok()) continue;
      if (!crowned && m.evidence.empty()) PRUNERC_TRY_VOID(verify(task, finalist));
      if (!m.ok()) continue;
      // Losers are stored as well: their latest times rank them from now on, not their luckiest.
      records.push_back(state.make_record(finalist.candidate, m, options_));
      if (crowned || m.evidence.empty()) continue;
      log("final " + std::to_string(task) + " " + finalist.candidate.fingerprint.to_string() + " " +
          std::to_string(m.median_ns));
      state.set_best(finalist.candidate, m);
      crowned = true;
    }
    return database_.put_records(state.task_id, records);
  }

  // Has a known candidate verified and keeps the verdict; nothing changes if it could not be
  // verified.
  Result<void> verify(std::size_t task, KnownCandidate& known) {
    const std::optional<Measurement> verdict =
        ask_single(task, known.candidate, MeasureKind::kVerify, options_.seed + next_seed_++);
    if (!verdict || verdict->status == MeasureStatus::kRunError) return {};
    apply_verdict(known.measurement, *verdict);
    add_proof(known.candidate, &known.measurement);
    return database_.put_verdict(states_[task].task_id, known.candidate.fingerprint.to_string(),
                                 known.measurement);
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
  std::map<Fingerprint, std::string> proofs_;  // what is said of each that was asked about
  uint64_t next_seed_ = 1;
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
