#include "tools/driver/network/network_rank.h"

#include "ir/equal.h"
#include "ir/support/parallel.h"
#include "ir/support/rng.h"
#include "runtime/clock.h"
#include "runtime/measure.h"
#include "tools/driver/backend.h"
#include "tools/driver/stored.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace prunerc {
namespace {

constexpr int kRounds = 3;
/// Of a round for each contender of the task that has most.
constexpr std::size_t kMixturesEach = 3;
constexpr int kWarmRuns = 2;
/// A mixture runs so often, and as often as this takes; the first one once, if the time is over.
constexpr int kLeastRuns = 5, kMostRuns = 31;
constexpr double kRunsNs = 50e6;
/// Turns of the winners and of what they are to replace, and what they must gain.
constexpr int kTurns = 7;
constexpr double kLeastGain = 0.003;
/// What was so much slower than the best alone is no contender.
constexpr double kFarSlower = 1.5;

// By task: which of its contenders.
using Mixture = std::vector<std::size_t>;

struct Contender {
  Choice choice;
  codegen::Artifact artifact;
  bool ok = false;
  std::vector<double> costs_ns;  // of the round: one of each mixture that it was in
};

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Of a task, besides what is chosen now: the fastest stored ones of the operator and of its derived
// programs, verified or not, and what the model chooses.
Result<std::vector<Choice>> contenders_of(Session& session, const Operator& op, int most) {
  struct Stored {
    double ns = 0;
    Choice choice;
  };
  search::Database& database = session.database();
  std::vector<Stored> stored;
  PRUNERC_TRY(std::vector<StoredTask> tasks, stored_tasks(database, session.task(op)));
  for (StoredTask& task : tasks) {
    PRUNERC_TRY(const bool shown, show_link(database, tasks[0], task, 0));
    if (!shown) continue;
    PRUNERC_TRY(const std::vector<search::Record> records, database.top_k(task.id, most - 1));
    for (const search::Record& record : records) {
      if (Result<Choice> choice = choice_of(task, record); choice.ok())
        stored.push_back({record.measurement.median_ns, *std::move(choice)});
    }
  }
  std::stable_sort(stored.begin(), stored.end(),
                   [](const Stored& a, const Stored& b) { return a.ns < b.ns; });
  std::vector<Choice> found;
  for (Stored& one : stored) {
    if (static_cast<int>(found.size()) >= most - 1 || one.ns > kFarSlower * stored[0].ns) break;
    found.push_back(std::move(one.choice));
  }
  PRUNERC_TRY(Choice model, session.choose(op, Effort::kO1));
  found.push_back(std::move(model));
  return found;
}

// Whether the kernel was found wrong, alone or in a network.
Result<bool> was_wrong(Session& session, const Operator& op, const Choice& choice) {
  for (const search::Task& place : {session.task(op, choice), session.network_task(op, choice)}) {
    PRUNERC_TRY(const std::optional<int64_t> stored, session.database().find_task(place.key));
    // One asks for the other.
    if (stored)
      return session.database().is_refuted(*stored, ir::fingerprint(choice.program).to_string());
  }
  return false;
}

// The task of a choice within the network, linked to the operator's there if it is derived.
Result<int64_t> put_network_task(Session& session, const Operator& op, const Choice& choice) {
  PRUNERC_TRY(const int64_t id, session.database().put_task(session.network_task(op, choice)));
  if (!choice.derivation) return id;
  PRUNERC_TRY(const int64_t spec, session.database().put_task(session.network_task(op)));
  PRUNERC_TRY_VOID(session.database().put_derived(spec, id, choice.derivation->link));
  return id;
}

// Stores what a call took within the network. Verified first unless it was before; false if it is not
// right, was not once, or could not be compared.
Result<bool> put_network_time(Session& session, const Operator& op, const Choice& choice,
                              const std::vector<double>& samples_ns) {
  const search::Task within = session.network_task(op, choice), alone = session.task(op, choice);
  const std::string fingerprint = ir::fingerprint(choice.program).to_string();
  search::Record record;
  PRUNERC_TRY(const bool is_wrong, was_wrong(session, op, choice));
  if (is_wrong) return false;
  for (const search::Task* place : {&within, &alone}) {
    PRUNERC_TRY(const std::optional<search::Record> known,
                record_of(session.database(), *place, fingerprint, true));
    if (!known) continue;
    record.measurement.evidence = known->measurement.evidence;
    record.sketch = known->sketch;
  }
  if (record.measurement.evidence.empty()) {
    PRUNERC_TRY(const search::Measurement verdict, session.verify(op, choice));
    if (!verdict.ok() || verdict.evidence.empty()) return false;
    record.measurement.evidence = verdict.evidence;
  }
  record.fingerprint = fingerprint;
  record.trace = schedule::print(choice.trace);
  record.measurement.status = MeasureStatus::kOk;
  record.measurement.samples_ns = samples_ns;
  search::summarize_samples(record.measurement);
  record.platform = ir::to_string(within.target);
  record.timer = "CLOCK_MONOTONIC around the call in runs of its network";
  record.version = kVersion;
  PRUNERC_TRY(const int64_t id, put_network_task(session, op, choice));
  PRUNERC_TRY_VOID(session.database().put_records(id, {&record, 1}));
  return true;
}

class Ranking {
 public:
  Ranking(Session& session, const net::Net& net, const WeightSource& weights,
          const TimedNetworkRun& run, const RankOptions& options)
      : session_(session),
        net_(net),
        weights_(weights),
        run_(run),
        options_(options),
        rng_(options.seed),
        tasks_(operators_of(net)),
        contenders_(tasks_.size()) {}

  Result<RankReport> rank() {
    PRUNERC_TRY_VOID(open());
    std::vector<std::vector<std::size_t>> in_play(tasks_.size(), {0});
    for (const std::size_t task : heaviest()) {
      if (is_over(3)) break;
      PRUNERC_TRY_VOID(add_contenders(task));
      in_play[task].resize(contenders_[task].size());
      std::iota(in_play[task].begin(), in_play[task].end(), std::size_t{0});
      if (in_play[task].size() > 1)
        report_.num_contenders += static_cast<int>(in_play[task].size());
    }
    for (int round = 0; round < kRounds && !is_over(3); ++round) {
      PRUNERC_TRY_VOID(play(in_play));
      for (std::size_t task = 0; task < tasks_.size(); ++task) keep_third(task, &in_play[task]);
    }
    if (!is_cancelled()) PRUNERC_TRY_VOID(decide(in_play));
    return report_;
  }

 private:
  bool is_cancelled() const {
    return options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed);
  }
  // Whether so many more mixtures would end after the time: of a round one, and the two that decide.
  bool is_over(int mixtures = 0) const {
    if (is_cancelled()) return true;
    const double to_come_ns = mixtures * (kWarmRuns + kLeastRuns) * report_.before_ns;
    return options_.time_s > 0 &&
           static_cast<double>(runtime::now_ns() - began_ns_) + to_come_ns > options_.time_s * 1e9;
  }

  // The network as it is chosen now: contender 0 of each task.
  Result<void> open() {
    std::size_t next = 0;
    const auto schedule = [&](const Operator& op) -> Result<ir::Program> {
      PRUNERC_TRY(Choice choice, session_.choose(op));
      Contender& first = contenders_[next++].emplace_back();
      first.choice = std::move(choice);
      first.ok = true;
      return first.choice.program;
    };
    PRUNERC_TRY(Network network,
                Network::build(net_, {session_.target(), session_.num_threads()}, schedule));
    network_.emplace(std::move(network));
    now_.assign(tasks_.size(), 0);
    for (std::size_t task = 0; task < tasks_.size(); ++task)
      contenders_[task][0].artifact = network_->artifact(task);
    PRUNERC_TRY_VOID(network_->prepare(weights_));
    PRUNERC_TRY_VOID(time_mixture(&report_.before_ns, true));
    report_.after_ns = report_.before_ns;
    return {};
  }

  // Tasks by what their steps took in the mixture that ran last.
  std::vector<std::size_t> heaviest() const {
    std::vector<std::size_t> order(tasks_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return task_ns_[a] > task_ns_[b]; });
    double rest = options_.share * sum_of(task_ns_);
    std::size_t count = 0;
    while (count < order.size() && rest > 0) rest -= task_ns_[order[count++]];
    order.resize(count);
    return order;
  }

  Result<void> add_contenders(std::size_t task) {
    std::vector<Contender>& list = contenders_[task];
    PRUNERC_TRY(std::vector<Choice> choices,
                contenders_of(session_, tasks_[task], options_.contenders));
    for (Choice& choice : choices) {
      if (static_cast<int>(list.size()) >= options_.contenders) break;
      if (choice.recipe == list[0].choice.recipe &&
          schedule::print(choice.trace) == schedule::print(list[0].choice.trace)) {
        continue;
      }
      PRUNERC_TRY(const bool is_wrong, was_wrong(session_, tasks_[task], choice));
      if (!is_wrong) list.emplace_back().choice = std::move(choice);
    }
    ThreadPool pool(0);
    pool.for_each(list.size() - 1, [&](std::size_t i) {
      Contender& one = list[i + 1];
      prunerc::Candidate built = build_candidate(one.choice.program, session_.target());
      one.ok = built.status == MeasureStatus::kOk;
      one.artifact = std::move(built.artifact);
    });
    std::erase_if(list, [](const Contender& one) { return !one.ok; });
    return {};
  }

  // Runs the network as it stands; costs go to the contenders in it. The whole's time, if asked for.
  // `is_only`: nothing is decided by these times, so fewer runs do once the time is over.
  Result<void> time_mixture(double* whole_ns, bool is_only = false) {
    const std::vector<std::size_t> calls = net::run_calls(net_);
    std::vector<std::vector<double>> samples(calls.size());
    std::vector<double> wholes;
    const int64_t begin = runtime::now_ns();
    for (int i = 0; i < kWarmRuns + kMostRuns; ++i) {
      std::vector<int64_t> times;
      PRUNERC_TRY_VOID(run_(*network_, &times));
      if (i < kWarmRuns) continue;
      for (std::size_t s = 0; s < times.size(); ++s)
        samples[s].push_back(static_cast<double>(times[s]));
      wholes.push_back(
          static_cast<double>(std::accumulate(times.begin(), times.end(), int64_t{0})));
      const bool is_long = static_cast<double>(runtime::now_ns() - begin) > kRunsNs;
      const bool is_enough = is_cancelled() || (is_only && is_over());
      if (is_long && (i + 1 >= kWarmRuns + kLeastRuns || is_enough)) break;
    }
    task_ns_.assign(tasks_.size(), 0);
    for (std::size_t s = 0; s < calls.size(); ++s)
      task_ns_[network_->task_of_call(calls[s])] += runtime::median(samples[s]);
    if (whole_ns != nullptr) *whole_ns = runtime::median(wholes);
    return {};
  }

  Result<void> become(const Mixture& mixture) {
    bool changed = false;
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      if (mixture[task] == now_[task]) continue;
      PRUNERC_TRY_VOID(network_->replace(task, contenders_[task][mixture[task]].artifact));
      changed = true;
    }
    now_ = mixture;
    return changed ? network_->prepare(weights_) : Result<void>();
  }

  // Each mixture has the next contender of every task, from a place that is anew drawn once all had
  // their turn: so all meet as often, and not always the same neighbours.
  Result<void> play(const std::vector<std::vector<std::size_t>>& in_play) {
    for (std::vector<Contender>& list : contenders_) {
      for (Contender& one : list) one.costs_ns.clear();
    }
    std::size_t most = 1;
    for (const auto& list : in_play) most = std::max(most, list.size());
    if (most == 1) return {};
    std::vector<std::vector<std::size_t>> order = in_play;
    for (std::size_t m = 0; m < kMixturesEach * most && !is_over(3); ++m) {
      Mixture mixture;
      for (std::vector<std::size_t>& list : order) {
        if (m % list.size() == 0) shuffle(list);
        mixture.push_back(list[m % list.size()]);
      }
      PRUNERC_TRY_VOID(become(mixture));
      PRUNERC_TRY_VOID(time_mixture(nullptr));
      for (std::size_t task = 0; task < tasks_.size(); ++task)
        contenders_[task][mixture[task]].costs_ns.push_back(task_ns_[task]);
    }
    return {};
  }

  void shuffle(std::vector<std::size_t>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[rng_.below(i)]);
  }

  // The fastest third, and always what is chosen now; those that had no turn are out.
  void keep_third(std::size_t task, std::vector<std::size_t>* in_play) {
    if (in_play->size() <= 2) return;
    const auto cost = [&](std::size_t i) {
      const std::vector<double>& costs = contenders_[task][i].costs_ns;
      return costs.empty() ? std::numeric_limits<double>::infinity() : runtime::median(costs);
    };
    std::stable_sort(in_play->begin(), in_play->end(),
                     [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
    const std::size_t kept = (in_play->size() + 2) / 3;
    const bool has_first =
        std::find(in_play->begin(), in_play->begin() + static_cast<std::ptrdiff_t>(kept), 0) !=
        in_play->begin() + static_cast<std::ptrdiff_t>(kept);
    in_play->resize(kept);
    if (!has_first) in_play->push_back(0);
  }

  // Of each task the fastest of the round that ran last.
  Mixture winners(const std::vector<std::vector<std::size_t>>& in_play) const {
    Mixture mixture(tasks_.size(), 0);
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      double best = std::numeric_limits<double>::infinity();
      for (const std::size_t i : in_play[task]) {
        const std::vector<double>& costs = contenders_[task][i].costs_ns;
        if (costs.empty() || runtime::median(costs) >= best) continue;
        best = runtime::median(costs);
        mixture[task] = i;
      }
    }
    return mixture;
  }

  // The winners in turns with what is chosen now.
  Result<void> decide(const std::vector<std::vector<std::size_t>>& in_play) {
    const Mixture before(tasks_.size(), 0), after = winners(in_play);
    if (after == before) {
      if (is_over(1)) return {};
      PRUNERC_TRY_VOID(become(before));
      PRUNERC_TRY_VOID(time_mixture(&report_.before_ns));
      report_.after_ns = report_.before_ns;
      return {};
    }
    std::vector<double> before_ns, after_ns;
    std::vector<std::vector<double>> after_tasks(tasks_.size());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (const bool is_after : {turn % 2 == 0, turn % 2 != 0}) {
        double whole = 0;
        PRUNERC_TRY_VOID(become(is_after ? after : before));
        PRUNERC_TRY_VOID(time_mixture(&whole));
        (is_after ? after_ns : before_ns).push_back(whole);
        for (std::size_t task = 0; is_after && task < tasks_.size(); ++task)
          after_tasks[task].push_back(task_ns_[task]);
      }
      if (is_over(2)) break;
    }
    report_.before_ns = runtime::median(before_ns);
    report_.after_ns = runtime::median(after_ns);
    if (is_cancelled() || report_.after_ns > report_.before_ns * (1 - kLeastGain)) {
      report_.after_ns = report_.before_ns;
      return {};
    }
    return store(after, std::move(after_tasks));
  }

  // Stores the winners. A task whose winner is not right stays as it was, and then the time that is told is
  // that of what is left.
  Result<void> store(const Mixture& after, std::vector<std::vector<double>> after_tasks) {
    Mixture left = after;
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      if (after[task] == 0) continue;
      for (double& ns : after_tasks[task]) ns /= tasks_[task].weight;
      PRUNERC_TRY(const bool is_right,
                  put_network_time(session_, tasks_[task], contenders_[task][after[task]].choice,
                                   after_tasks[task]));
      report_.num_changed += is_right ? 1 : 0;
      if (!is_right) left[task] = 0;
    }
    if (left == after) return {};
    report_.after_ns = report_.before_ns;
    if (report_.num_changed == 0) return {};
    PRUNERC_TRY_VOID(become(left));
    return time_mixture(&report_.after_ns, true);
  }

  Session& session_;
  const net::Net& net_;
  const WeightSource& weights_;
  const TimedNetworkRun& run_;
  const RankOptions& options_;
  const int64_t began_ns_ = runtime::now_ns();
  Rng rng_;
  std::vector<Operator> tasks_;
  std::vector<std::vector<Contender>> contenders_;  // by task; the first is what is chosen now
  std::optional<Network> network_;
  Mixture now_;
  std::vector<double> task_ns_;  // in the mixture that ran last: all steps of a task
  RankReport report_;
};

}  // namespace

Result<RankReport> rank_in_network(Session& session, const net::Net& net,
                                   const WeightSource& weights, const TimedNetworkRun& run,
                                   const RankOptions& options) {
  return Ranking(session, net, weights, run, options).rank();
}

}  // namespace prunerc
