#include "search/tune/task_state.h"

#include "ir/equal.h"
#include "search/record/restore.h"
#include "search/record/standing.h"
#include "search/strategy/strategies.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace prunerc::search {
namespace {

/// A gain below this is noise and does not postpone an early stop.
constexpr double kGain = 0.995;
/// So many imported candidates are tried: the rest of a file is slower by its own account.
constexpr std::size_t kMaxClaims = 8;

// The record's candidate; nullopt, and one more left aside, if this build makes another program of its
// trace, or none.
std::optional<Candidate> restore(const Task& task, const SearchSpace& space, const Record& record,
                                 LeftAside* left) {
  Result<RestoredRecord> restored = restore_record(task.base, record);
  if (!restored.ok()) {
    left->add(restored.error());
    return std::nullopt;
  }
  Candidate candidate;
  // Not with the arenas of each primitive: a network's store has thousands.
  candidate.program = ir::compact(restored->program);
  candidate.fingerprint = ir::fingerprint(candidate.program);
  candidate.sketch = find_sketch(space, restored->trace);
  candidate.trace = std::move(restored->trace);
  return candidate;
}
/// Seconds that a kernel is timed, filling its inputs and running it twice to check it included.
constexpr double kGuessMeasureS = 0.3;

}  // namespace

Result<TaskState> TaskState::make(const Task& task, Database& database, ThreadPool& pool,
                                  const TuneOptions& options, uint64_t stream,
                                  Calibrator* calibrator, std::shared_ptr<OnlineModel> network) {
  TaskState state;
  state.task = &task;
  state.group = similarity_group(task);
  state.verify_cost = StepCost(guess_verify_s(task));
  state.final_cost = StepCost(kGuessMeasureS);
  state.report.name = task.name;
  state.report.target = ir::to_string(task.target);
  state.report.timer = options.timer;
  state.report.seed = options.seed;
  state.report.weight = task.weight;
  state.report.work = task.work;
  PRUNERC_TRY(SearchSpace space, options.space ? options.space(task) : make_space(task));
  // A space that is given is taken as it is.
  if (!options.space && !options.make_strategy) {
    space = space_of(options.strategy, task, std::move(space));
  }
  state.space = std::make_unique<SearchSpace>(std::move(space));
  PRUNERC_TRY(state.task_id, database.put_task(task));
  const StrategyContext context = {task,
                                   *state.space,
                                   pool,
                                   options.seed,
                                   stream,
                                   calibrator,
                                   std::move(network),
                                   options.heuristics};
  PRUNERC_TRY(state.strategy, options.make_strategy ? options.make_strategy(context)
                                                    : make_strategy(options.strategy, context));
  if (!options.fresh) PRUNERC_TRY_VOID(state.load(database));
  return state;
}

// One row for each candidate: of its measurements the one that counts, else its last failure. In
// the order of storing.
std::vector<Record> TaskState::standing_of(std::vector<Record> records) {
  std::map<std::string, std::vector<std::size_t>> candidates;
  double quiet = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    candidates[records[i].fingerprint].push_back(i);
    quiet = quieter(quiet, records[i].measurement.machine.reference_ns);
  }
  std::vector<std::size_t> chosen;
  for (const auto& [fingerprint, rows] : candidates) {
    std::vector<std::size_t> ran;
    std::vector<Measurement> measurements;
    for (const std::size_t row : rows) {
      if (!records[row].measurement.ok()) continue;
      ran.push_back(row);
      measurements.push_back(records[row].measurement);
    }
    chosen.push_back(ran.empty() ? rows.back() : ran[standing(measurements, quiet)]);
    Record& counts = records[chosen.back()];
    if (!counts.verified()) counts.measurement.evidence = evidence_of(measurements);
  }
  std::sort(chosen.begin(), chosen.end());
  std::vector<Record> out;
  for (const std::size_t row : chosen) out.push_back(std::move(records[row]));
  return out;
}

Result<void> TaskState::load(Database& database) {
  PRUNERC_TRY(std::vector<Record> records, database.records(task_id));
  std::erase_if(records, [](const Record& record) { return record.imported; });
  for (const Record& record : records) {
    quiet_ns = quieter(quiet_ns, record.measurement.machine.reference_ns);
  }
  // Of a new task nothing is known as wrong that could be chosen, and asking reads all tasks.
  std::set<std::string> wrong;
  if (!records.empty()) {
    PRUNERC_TRY(wrong, database.refuted(task_id));
  }
  std::vector<Candidate> candidates;
  std::vector<Measurement> measurements;
  for (Record& record : standing_of(std::move(records))) {
    // Known as wrong, also where it was timed once more since: it is neither best nor tried again.
    if (wrong.contains(record.fingerprint) && record.measurement.ok())
      record.measurement.status = MeasureStatus::kWrongResult;
    // A record of an older build whose trace no longer replays is history, not knowledge.
    std::optional<Candidate> candidate = restore(*task, *space, record, &report.left_aside);
    if (!candidate) continue;
    add_known(*candidate, record.measurement);
    if (record.verified() &&
        (report.best_ns == 0 || record.measurement.median_ns < report.best_ns)) {
      set_best(*candidate, record.measurement);
      report.best.sketch = record.sketch;
    }
    candidates.push_back(*std::move(candidate));
    measurements.push_back(record.measurement);
  }
  strategy->tell(candidates, measurements);
  report.reused = static_cast<int64_t>(known_.size());
  PRUNERC_TRY(const std::vector<Record> imported, database.claims(task_id, kMostClaimsRead));
  for (const Record& record : imported) {
    if (claims.size() >= kMaxClaims) break;
    std::optional<Candidate> claim = restore(*task, *space, record, &report.left_aside);
    if (claim) claims.push_back(*std::move(claim));
  }
  return {};
}

void TaskState::add_known(const Candidate& candidate, const Measurement& measurement) {
  quiet_ns = quieter(quiet_ns, measurement.machine.reference_ns);
  known_[candidate.fingerprint] = {candidate, measurement};
}

const Measurement* TaskState::known(const Fingerprint& fingerprint) const {
  const auto at = known_.find(fingerprint);
  return at != known_.end() ? &at->second.measurement : nullptr;
}

std::vector<KnownCandidate> TaskState::leaders(int n) const {
  std::vector<const KnownCandidate*> ok;
  for (const auto& [fingerprint, known] : known_) {
    if (known.measurement.ok() && known.measurement.median_ns > 0) ok.push_back(&known);
  }
  std::stable_sort(ok.begin(), ok.end(), [](const KnownCandidate* a, const KnownCandidate* b) {
    return a->measurement.median_ns < b->measurement.median_ns;
  });
  std::vector<KnownCandidate> out;
  for (const KnownCandidate* known : ok) {
    if (static_cast<int>(out.size()) >= n) break;
    out.push_back(*known);
  }
  return out;
}

std::vector<KnownCandidate> TaskState::unverified_leaders() const {
  constexpr int kMostTried = 8;
  std::vector<KnownCandidate> out;
  for (KnownCandidate& known : leaders(kMostTried)) {
    if (report.best_ns > 0 && known.measurement.median_ns >= report.best_ns) break;
    if (known.measurement.evidence.empty()) out.push_back(std::move(known));
  }
  return out;
}

std::size_t TaskState::batch_size(const TuneOptions& options) const {
  int64_t size = std::max(1, options.batch);
  if (options.trials > 0) size = std::min(size, options.trials - asked);
  return static_cast<std::size_t>(std::max<int64_t>(0, size));
}

void TaskState::count_time(const Measurement& measurement) {
  report.seconds.build += measurement.build_s;
  report.seconds.measure += measurement.measure_s;
  report.seconds.verify += measurement.verify_s;
}

void TaskState::set_best(const Candidate& candidate, const Measurement& measurement) {
  report.best_ns = measurement.median_ns;
  report.verified = !measurement.evidence.empty();
  report.evidence = measurement.evidence;
  report.slowed = is_slowed(measurement, quiet_ns);
  report.gflops = task->flops / measurement.median_ns;
  report.gops = task->work.rated_ops() / measurement.median_ns;
  report.gbps = task->work.bytes / measurement.median_ns;
  report.best_program = candidate.program;
  report.best.fingerprint = candidate.fingerprint.to_string();
  report.best.trace = schedule::print(candidate.trace);
  report.best.measurement = measurement;
  if (candidate.sketch >= 0) {
    report.best.sketch = space->sketches[static_cast<std::size_t>(candidate.sketch)].name;
  }
}

void TaskState::update(std::span<const Candidate> candidates, std::span<const Measurement> answers,
                       const TuneOptions& options, double seconds, int64_t trials_of_others) {
  const double before = report.curve.empty() ? 0 : report.curve.back().best_ns;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    add_known(candidates[i], answers[i]);
    ++report.counts[static_cast<std::size_t>(answers[i].status)];
    if (!answers[i].ok() && report.failure.empty()) report.failure = answers[i].detail;
    ++report.trials;
    ++answered;
  }
  if (report.best_ns > 0 && (before == 0 || report.best_ns < before)) {
    report.curve.push_back(
        {report.trials, report.best_ns, seconds, trials_of_others + report.trials});
  }
  // Under a limit of time winners may wait for their verification: they are gains all the same.
  const double known_before = best_by_round.empty() ? 0 : best_by_round.back().best_ns;
  const double fastest = fastest_ns();
  const bool is_gain = fastest > 0 && (known_before == 0 || fastest < known_before * kGain);
  if (is_gain) report.last_gain = report.trials;
  best_by_round.push_back({answered, fastest});
  if (options.trials > 0 && answered >= options.trials) end(StopReason::kTrials);
  if (options.early_stop > 0 && report.trials - report.last_gain >= options.early_stop) {
    end(StopReason::kEarly);
  }
}

TaskProgress TaskState::progress(const TuneOptions& options) const {
  TaskProgress out;
  out.is_open = !ended && (options.trials <= 0 || asked < options.trials);
  out.weight = report.weight;
  out.flops = task->flops;
  out.rounds = rounds_asked;
  const auto efforts = [&](int64_t trials) {
    return static_cast<double>(trials) / std::max(1, options.batch);
  };
  out.effort = efforts(asked);
  for (const CurvePoint& point : best_by_round) {
    out.history.push_back({efforts(point.trial), point.best_ns});
  }
  out.group = group;
  return out;
}

void TaskState::end(StopReason reason) {
  if (!ended) report.stop = reason;
  ended = true;
}

Record TaskState::make_record(const Candidate& candidate, const Measurement& measurement,
                              const TuneOptions& options) const {
  Record record;
  record.fingerprint = candidate.fingerprint.to_string();
  if (candidate.sketch >= 0) {
    record.sketch = space->sketches[static_cast<std::size_t>(candidate.sketch)].name;
  }
  record.trace = schedule::print(candidate.trace);
  record.measurement = measurement;
  record.platform = ir::to_string(task->target);
  record.timer = options.timer;
  record.seed = options.seed;
  record.version = options.version;
  return record;
}

Result<void> TaskState::store(Database& database, std::span<const Candidate> candidates,
                              std::span<const Measurement> answers, const TuneOptions& options) {
  std::vector<Record> records;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (known(candidates[i].fingerprint) != nullptr) continue;  // came from the store
    records.push_back(make_record(candidates[i], answers[i], options));
  }
  PRUNERC_TRY_VOID(database.put_records(task_id, records));
  // What was right once and is wrong now is not right: of no measurement of it.
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const MeasureStatus status = answers[i].status;
    if (status != MeasureStatus::kNotEqual && status != MeasureStatus::kWrongResult) continue;
    PRUNERC_TRY_VOID(
        database.put_verdict(task_id, candidates[i].fingerprint.to_string(), answers[i]));
  }
  return {};
}

void TaskState::count_lost(const Measurement& answer) {
  ++report.counts[static_cast<std::size_t>(answer.status)];
  if (report.failure.empty()) report.failure = answer.detail;
  --asked;
}

double TaskState::fastest_ns() const {
  double fastest = 0;
  for (const auto& [fingerprint, known] : known_) {
    const Measurement& m = known.measurement;
    if (m.ok() && m.median_ns > 0 && (fastest == 0 || m.median_ns < fastest)) fastest = m.median_ns;
  }
  return fastest;
}

std::vector<TaskStanding> standings_of(std::span<const TaskState> states) {
  std::vector<TaskStanding> out;
  for (const TaskState& state : states) {
    const std::vector<KnownCandidate> fastest = state.leaders(1);
    out.push_back({!state.ended, state.asked, state.answered,
                   fastest.empty() ? 0 : fastest[0].measurement.median_ns});
  }
  return out;
}

std::string describe_choice(const Candidate& candidate) {
  std::string out = "sketch " + std::to_string(candidate.sketch) + " [";
  for (const schedule::Decision& decision : candidate.trace.decisions) {
    out += out.back() == '[' ? "" : " ";
    for (std::size_t i = 0; i < decision.size(); ++i) {
      out += (i > 0 ? "x" : "") + std::to_string(decision[i]);
    }
  }
  return out + "]";
}

void apply_verdict(Measurement& measurement, const Measurement& verdict) {
  measurement.verify_s += verdict.verify_s;
  if (verdict.ok()) {
    measurement.evidence = verdict.evidence.empty() ? "verified" : verdict.evidence;
    return;
  }
  measurement.status = verdict.status;
  measurement.detail = verdict.detail;
  measurement.evidence.clear();
}

}  // namespace prunerc::search
