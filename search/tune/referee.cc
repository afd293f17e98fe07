#include "search/tune/referee.h"

#include "search/record/standing.h"
#include "search/tune/finals.h"

#include <algorithm>

namespace prunerc::search {
namespace {

/// Of a limited time, while searching, for verifying what later candidates may beat.
constexpr double kVerifyShare = 0.2;
/// What a verification gets past a deadline: enough to run most programs as they are written.
constexpr double kLeastVerifyS = 2;

// What several turns say of a candidate that was known; noisy if there are none.
Measurement joined(Measurement known, const std::vector<Measurement>& turns) {
  if (turns.empty()) {
    known.status = MeasureStatus::kNoisy;
    return known;
  }
  known.samples_ns.clear();
  std::vector<double> references, clocks, loads;
  std::size_t num_disturbed = 0;
  for (const Measurement& turn : turns) {
    known.samples_ns.push_back(turn.median_ns);
    references.push_back(turn.machine.reference_ns);
    clocks.push_back(turn.machine.clock_ghz);
    loads.push_back(turn.machine.load);
    num_disturbed += turn.disturbed ? 1 : 0;
  }
  summarize_samples(known);
  known.machine = {median_of(references), median_of(clocks), median_of(loads)};
  known.disturbed = 2 * num_disturbed > turns.size();
  return known;
}

}  // namespace

// One request whose answer is needed now; other answers are kept meanwhile. Nullopt if stopped.
std::optional<Measurement> Referee::ask_single(std::size_t task, const Candidate& candidate,
                                               MeasureKind kind, uint64_t seed) {
  TaskState& state = states_[task];
  MeasureInput input;
  input.kind = kind;
  input.task = state.task;
  input.program = candidate.program;
  input.trace = candidate.trace;
  input.seed = seed;
  if (kind == MeasureKind::kVerify && budget_.is_limited()) {
    input.within_s = std::max(kLeastVerifyS, budget_.left_s());
  }
  const double began_s = budget_.elapsed_s();
  std::optional<Measurement> answer;
  const int64_t id = inbox_.submit(std::move(input), [&](Measurement m) { answer = std::move(m); });
  inbox_.wait_until([&] { return answer.has_value(); });
  inbox_.forget(id);
  if (answer) {
    state.count_time(*answer);
    if (kind == MeasureKind::kTime) state.final_cost.add(budget_.elapsed_s() - began_s);
  }
  return answer;
}

// Proves a candidate if that was left out, and compares it. False if that could not be done: then
// it stays a record, but wins nothing.
bool Referee::verify_one(std::size_t task, const Candidate& candidate, Measurement* m) {
  if (inbox_.has_ended()) return false;
  TaskState& state = states_[task];
  tell_phase(options_, "verifying " + state.task->name);
  const double began_s = budget_.elapsed_s();
  proofs_.prove_winner(state, candidate, m);
  std::optional<Measurement> verdict;
  if (m->ok()) {
    verdict = ask_single(task, candidate, MeasureKind::kVerify, options_.seed + next_seed_++);
    if (!verdict || verdict->status == MeasureStatus::kRunError ||
        verdict->status == MeasureStatus::kDeviceLost) {
      return false;
    }
    apply_verdict(*m, *verdict);
    proofs_.add_to(state, candidate, m);
  }
  const double took_s = budget_.elapsed_s() - began_s;
  state.verify_cost.add(took_s);
  verified_s_ += took_s;
  return true;
}

bool Referee::may_verify(const TaskState& state) const {
  if (!budget_.is_limited()) return true;
  const double cost_s = held_back_s(budget_, state.verify_cost);
  return cost_s <= budget_.left_s() - reserve_s() &&
         verified_s_ + cost_s <= kVerifyShare * budget_.limit_s();
}

void Referee::verify_winners(std::size_t task, std::span<const Candidate> candidates,
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
      if (!may_verify(state) || !verify_one(task, candidates[i], &answers[i])) return;
    }
    if (!answers[i].ok()) continue;
    state.set_best(candidates[i], answers[i]);
    return;
  }
}

Result<void> Referee::verify_best(std::size_t task) {
  TaskState& state = states_[task];
  // Where one is refuted slower ones may lead.
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (KnownCandidate& known : state.unverified_leaders()) {
      // An answer that is right is worth being late; a better one is not.
      const double need_s = held_back_s(budget_, state.verify_cost);
      if (state.report.best_ns > 0 && need_s > budget_.left_s()) return {};
      PRUNERC_TRY_VOID(verify(task, known));
      goes_on |= !known.measurement.ok();
      if (!known.measurement.ok() || known.measurement.evidence.empty()) continue;
      state.set_best(known.candidate, known.measurement);
      return {};
    }
  }
  return {};
}

// Has a known candidate verified and keeps the verdict; nothing changes if it could not be
// verified.
Result<void> Referee::verify(std::size_t task, KnownCandidate& known) {
  if (!verify_one(task, known.candidate, &known.measurement)) return {};
  TaskState& state = states_[task];
  state.add_known(known.candidate, known.measurement);
  return database_.put_verdict(state.task_id, known.candidate.fingerprint.to_string(),
                               known.measurement);
}

double Referee::end_s(const TaskState& state, double verify_s) const {
  const double turn_s = options_.finals * state.final_cost.seconds();
  return end_cost(budget_, verify_s, turn_s, states_.size()).sum_s();
}

double Referee::reserve_s() const {
  if (!budget_.is_limited()) return 0;
  double sum = 0;
  for (const TaskState& state : states_) {
    if (state.asked > 0) sum += end_s(state, held_back_s(budget_, state.verify_cost));
  }
  return sum;
}

double Referee::begin_s(const TaskState& state) const {
  if (!budget_.is_limited()) return 0;
  double sum = end_s(state, state.verify_cost.seconds());
  for (const TaskState& begun : states_) {
    if (begun.asked == 0) continue;
    sum += begun.verify_cost.seconds() - held_back_s(budget_, begun.verify_cost);
  }
  return sum;
}

int Referee::num_finalists(std::size_t task) const {
  if (!budget_.is_limited()) return options_.finals;
  double verify_s = 0;
  std::size_t num_left = 0;
  for (std::size_t t = task; t < states_.size(); ++t) {
    if (states_[t].report.trials == 0) continue;
    verify_s += held_back_s(budget_, states_[t].verify_cost);
    ++num_left;
  }
  const double share_s =
      (budget_.left_s() - verify_s) / static_cast<double>(std::max<std::size_t>(1, num_left));
  return affordable_finalists(options_.finals, share_s, states_[task].final_cost.seconds());
}

Result<void> Referee::run_finals() {
  std::vector<std::vector<std::size_t>> groups;
  if (options_.chooser != nullptr) {
    groups.push_back(options_.chooser->finalists(standings_of(states_)));
  } else {
    for (std::size_t t = 0; t < states_.size(); ++t) groups.push_back({t});
  }
  for (const std::vector<std::size_t>& group : groups) {
    PRUNERC_TRY(const std::vector<std::size_t> undecided, run_finals_of(group));
    if (inbox_.has_ended() || !budget_.is_limited()) continue;
    // No time for turns: the times of the search stand.
    for (const std::size_t t : undecided) PRUNERC_TRY_VOID(verify_best(t));
  }
  return {};
}

/// The candidates of some finals and what their turns said.
struct Referee::Field {
  std::vector<std::size_t> tasks;  // of each finalist
  std::vector<KnownCandidate> finalists;
  std::vector<double> before;
  std::vector<FinalTurn> turns;
  std::vector<std::vector<Measurement>> taken;  // by turn

  // What the turns that count say of one.
  Measurement fresh(std::size_t finalist) const {
    std::vector<std::size_t> quiet = quiet_turns(turns, before);
    // None was, and time is up: what there is decides between the few, all under the same load.
    for (std::size_t i = 0; quiet.empty() && i < turns.size(); ++i) quiet.push_back(i);
    std::vector<Measurement> own;
    for (const std::size_t turn : quiet) {
      if (turns[turn][finalist] > 0) own.push_back(taken[turn][finalist]);
    }
    return joined(finalists[finalist].measurement, own);
  }
};

bool Referee::run_turns(Field& field) {
  while (!is_decided(field.turns, field.before)) {
    double turn_s = 0, verify_s = 0;
    for (const std::size_t task : field.tasks) {
      turn_s += states_[task].final_cost.seconds();
      verify_s = std::max(verify_s, held_back_s(budget_, states_[task].verify_cost));
    }
    if (!field.turns.empty() && turn_s + verify_s > budget_.left_s()) break;
    FinalTurn turn;
    field.taken.emplace_back();
    for (std::size_t i = 0; i < field.tasks.size(); ++i) {
      std::optional<Measurement> m = ask_single(field.tasks[i], field.finalists[i].candidate,
                                                MeasureKind::kTime, options_.seed);
      if (!m) return false;
      turn.push_back(m->ok() ? m->median_ns : 0);
      field.taken.back().push_back(*std::move(m));
    }
    field.turns.push_back(std::move(turn));
  }
  return true;
}

Result<std::vector<std::size_t>> Referee::run_finals_of(const std::vector<std::size_t>& tasks) {
  const bool any_trials = std::any_of(tasks.begin(), tasks.end(), [&](std::size_t task) {
    return states_[task].report.trials > 0;
  });
  if (options_.finals < 2 || !any_trials) return tasks;
  Field field;
  for (const std::size_t task : tasks) {
    for (KnownCandidate& known : states_[task].leaders(num_finalists(task))) {
      field.before.push_back(known.measurement.median_ns);
      field.finalists.push_back(std::move(known));
      field.tasks.push_back(task);
    }
  }
  if (field.finalists.size() < 2) return tasks;
  tell_phase(options_, "finals of " + states_[tasks[0]].task->name);
  if (!run_turns(field)) return tasks;
  std::vector<std::size_t> undecided;
  for (const std::size_t task : tasks) {
    std::vector<KnownCandidate> finalists;
    std::vector<Measurement> fresh;
    for (std::size_t i = 0; i < field.tasks.size(); ++i) {
      if (field.tasks[i] != task) continue;
      fresh.push_back(field.fresh(i));
      finalists.push_back(field.finalists[i]);
    }
    PRUNERC_TRY(const bool crowned, crown(task, finalists, fresh));
    if (!crowned) undecided.push_back(task);
  }
  return undecided;
}

Result<bool> Referee::crown(std::size_t task, std::vector<KnownCandidate>& finalists,
                            std::vector<Measurement>& fresh) {
  TaskState& state = states_[task];
  for (const Measurement& m : fresh)
    state.quiet_ns = quieter(state.quiet_ns, m.machine.reference_ns);
  // Losers are stored as well: their latest times rank them from now on, not their luckiest. Unless
  // the machine was busy now and was not before.
  std::vector<std::size_t> order;
  std::vector<double> times;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    times.push_back(0);
    if (!fresh[i].ok()) continue;
    const std::vector<Measurement> both = {finalists[i].measurement, fresh[i]};
    times.back() = both[standing(both, state.quiet_ns)].median_ns;
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
  bool crowned = false;
  std::vector<Record> records;
  for (const std::size_t i : order) {
    KnownCandidate& finalist = finalists[i];
    if (!crowned && finalist.measurement.evidence.empty()) {
      PRUNERC_TRY_VOID(verify(task, finalist));
    }
    if (!finalist.measurement.ok()) continue;
    fresh[i].evidence = finalist.measurement.evidence;
    records.push_back(state.make_record(finalist.candidate, fresh[i], options_));
    if (crowned || fresh[i].evidence.empty()) continue;
    const bool is_fresh = times[i] == fresh[i].median_ns;
    const Measurement& counts = is_fresh ? fresh[i] : finalist.measurement;
    if (options_.log) {
      options_.log("final " + std::to_string(task) + " " +
                   finalist.candidate.fingerprint.to_string() + " " +
                   std::to_string(counts.median_ns));
    }
    state.set_best(finalist.candidate, counts);
    crowned = true;
  }
  PRUNERC_TRY_VOID(database_.put_records(state.task_id, records));
  return crowned;
}

}  // namespace prunerc::search
