#include "search/strategy/network_use.h"
#include "search/tune/replay.h"
#include "tools/driver/algebra.h"
#include "tools/driver/backend.h"
#include "tools/driver/platform.h"
#include "tools/driver/reference.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/json.h"
#include "tools/prunerc/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

namespace prunerc::cli {
namespace {

struct TuneVerb {
  OperatorOptions op;
  MachineOptions machine;
  int64_t trials = -1;
  std::string time;
  int effort = 2;
  uint64_t seed = 0;
  int64_t early_stop = 0;
  bool fresh = false;
  bool json = false;
  bool verbose = false;
  bool quiet = false;
  std::string strategy = "pruner";
  std::string checkpoint;
  std::string heuristics;
  std::string algebra = "off";
  std::vector<std::string> replay;
  std::vector<double> weights;
};

int64_t default_trials(int effort) { return effort >= 3 ? 1000 : 64; }

int64_t trials_of(const TuneVerb& verb) {
  if (verb.trials >= 0) return verb.trials;
  return verb.time.empty() ? default_trials(verb.effort) : 0;
}

std::string repro(const TuneVerb& verb) {
  std::string out = "prunerc tune";
  if (verb.replay.empty()) {
    out += fmt::format(" {} --target {}", verb.op.repro(), verb.machine.target);
  } else {
    out += fmt::format(" --replay {}", fmt::join(verb.replay, " "));
  }
  out += fmt::format(" --trials {} --seed {}", trials_of(verb), verb.seed);
  if (!verb.weights.empty()) out += fmt::format(" --weights {}", fmt::join(verb.weights, ","));
  if (verb.machine.threads > 0) out += fmt::format(" --threads {}", verb.machine.threads);
  if (!verb.time.empty()) out += " --time " + verb.time;
  if (verb.strategy != "pruner") out += " --strategy " + verb.strategy;
  if (!verb.checkpoint.empty()) out += " --checkpoint " + verb.checkpoint;
  if (!verb.heuristics.empty()) out += " --heuristics " + verb.heuristics;
  if (verb.algebra != "off") out += " --algebra " + verb.algebra;
  if (verb.early_stop > 0) out += fmt::format(" --early-stop {}", verb.early_stop);
  return verb.replay.empty() ? out + " --fresh" : out;
}

Result<search::TuneOptions> options_of(const TuneVerb& verb, std::size_t num_tasks) {
  search::TuneOptions options;
  options.trials = trials_of(verb);
  // Several operators share what they have together, so that it goes where it gains most.
  if (num_tasks > 1) {
    options.total_trials = options.trials * static_cast<int64_t>(num_tasks);
    options.trials = 0;
  }
  if (!verb.time.empty()) {
    PRUNERC_TRY(options.time_s, parse_duration(verb.time));
  }
  options.seed = verb.seed;
  options.early_stop = verb.early_stop;
  options.fresh = verb.fresh;
  options.strategy = *search::strategy_from_string(verb.strategy);
  options.checkpoint = verb.checkpoint;
  if (!verb.heuristics.empty()) options.heuristics = verb.heuristics == "on";
  const std::optional<search::NetworkUse> use = search::network_use(options.strategy);
  if (!verb.checkpoint.empty() && (!use || use->start == search::NetworkStart::kUntrained)) {
    return error(Diag::kUsageOption, "--checkpoint",
                 fmt::format("the strategy {} starts from none", verb.strategy));
  }
  return options;
}

Result<void> check_weights(const std::vector<double>& weights, std::size_t num_operators) {
  if (!weights.empty() && weights.size() != num_operators) {
    return error(Diag::kUsageOption, "--weights",
                 fmt::format("needs a number for each of {} operators, found {}", num_operators,
                             weights.size()));
  }
  for (const double weight : weights) {
    if (std::isfinite(weight)) continue;
    return error(Diag::kUsageOption, "--weights", fmt::format("needs numbers, found {}", weight));
  }
  return {};
}

void print_results(const search::TuneReport& report, std::span<const LimitShare> shares) {
  for (std::size_t i = 0; i < report.tasks.size(); ++i) {
    const search::TaskReport& t = report.tasks[i];
    const std::string share =
        shares[i].fraction <= 0 ? ""
                                : fmt::format(", {:.0f}% of the limit{}", 100 * shares[i].fraction,
                                              shares[i].note.empty() ? "" : ", " + shares[i].note);
    const std::string rate =
        t.work.rated_ops() > 0 ? rate_text(t.work, t.best_ns) + ", " : std::string();
    fmt::print("{}: {} ({}{:.2f} GB/s{}), {}\n", t.name, time_text(t.best_ns), rate, t.gbps, share,
               t.verified ? "verified: " + t.evidence : "not verified");
  }
  if (report.tasks.size() > 1) fmt::print("total: {}\n", time_text(report.total_weighted_ns));
}

// Which of an operator's programs won, and by how much.
void print_outcome(const std::string& name, const AlgebraOutcome& outcome) {
  if (!outcome.note.empty()) fmt::print(stderr, "algebra of {}: {}\n", name, outcome.note);
  if (outcome.link) {
    const std::string beside =
        outcome.spec_ns > 0
            ? fmt::format(", {:.2f} times as fast as the best as written ({})",
                          outcome.spec_ns / outcome.winner_ns, time_text(outcome.spec_ns))
            : ", as written nothing ran";
    fmt::print("  by '{}'{}; {}\n", outcome.link->recipe, beside, proof_text(*outcome.link));
  } else if (outcome.num_tuned > 0) {
    fmt::print("  as written; {} derived program{} no faster\n", outcome.num_tuned,
               outcome.num_tuned == 1 ? " was" : "s were");
  } else {
    fmt::print("  as written; nothing derived was worth tuning\n");
  }
}

void print_outcomes(const TuneVerb& verb, const AlgebraTuneReport& report) {
  if (verb.algebra == "off") return;
  for (std::size_t i = 0; i < report.outcomes.size(); ++i) {
    print_outcome(report.tune.tasks[i].name, report.outcomes[i]);
  }
}

int without_measuring(const TuneVerb& verb, Session& session, const std::vector<Operator>& ops) {
  for (const Operator& op : ops) {
    const Result<Choice> choice = session.choose(op, verb.effort == 0 ? Effort::kO0 : Effort::kO1);
    if (!choice.ok()) return fail(choice.error(), kNoCandidate);
    fmt::print("{}: {} schedule, not measured\n", op.name, to_string(choice->origin));
    if (!verb.quiet) print_left_aside(op.name, choice->left_aside);
    if (verb.verbose) fmt::print(stderr, "{}", schedule::print(choice->trace));
  }
  if (!verb.quiet) {
    fmt::print(stderr,
               "nothing is stored: without a record `prunerc bench` and compile, run, verify, "
               "explain and show choose the same schedule{}\n",
               verb.effort == 0 ? "" : " by -O1");
  }
  return kSuccess;
}

// What an interrupted search leaves.
std::string left_text(const TuneVerb& verb, const std::string& database) {
  if (!verb.replay.empty()) return "";
  if (database == ":memory:") {
    return "; what was measured ends with this command, --db FILE keeps it";
  }
  return fmt::format("; what was measured is kept: run the same command{} to go on",
                     verb.fresh ? " without --fresh" : "");
}

int show_report(const TuneVerb& verb, const search::TuneReport& report,
                std::span<const LimitShare> shares, const std::string& database,
                const std::optional<RankReport>* ranked = nullptr,
                std::span<const AlgebraOutcome> outcomes = {}) {
  const std::string again = repro(verb);
  if (!verb.quiet) fmt::print(stderr, "repro: {}\n", again);
  if (verb.json) fmt::print("{}\n", tune_json(report, shares, again, ranked, outcomes));
  if (report.cancelled) {
    fmt::print(stderr, "interrupted{}\n", left_text(verb, database));
    return kInterrupted;
  }
  for (const search::TaskReport& t : report.tasks) {
    if (t.best_ns > 0) continue;
    if (t.trials == 0 && t.stop == search::StopReason::kTime) {
      return fail(fmt::format("the time was over before a candidate of '{}' was measured", t.name),
                  "more --time; the same command goes on", kNoCandidate);
    }
    return fail(fmt::format("no candidate of '{}' ran and gave the right result: {}{}", t.name,
                            counts_text(t.counts), t.failure.empty() ? "" : " (" + t.failure + ")"),
                t.trials == 0 ? "more --trials or --time"
                              : "smaller sizes (-D) need less memory and time; `prunerc doctor` "
                                "checks that kernels run here",
                kNoCandidate);
  }
  return kSuccess;
}

// Rows that this build makes other programs of.
std::string stale_text(const search::ReplayTask& task) {
  const int stale = task.space.members->num_stale();
  return stale == 0 ? "" : fmt::format(", {} left out: this build makes others of them", stale);
}

int replay(const TuneVerb& verb) {
  const Result<void> weighed = check_weights(verb.weights, verb.replay.size());
  if (!weighed.ok()) return fail(weighed.error());
  ThreadPool threads(0);
  std::vector<search::ReplayTask> tasks;
  for (const std::string& path : verb.replay) {
    const Result<search::Pool> pool = search::read_pool(path);
    if (!pool.ok()) return fail(pool.error());
    Result<search::ReplayTask> task = search::ReplayTask::make(*pool, threads);
    if (!task.ok()) return fail(task.error());
    if (!verb.quiet) {
      fmt::print(stderr, "{}: {} candidates of {}{}\n", path, task->space.members->size(), pool->op,
                 stale_text(*task));
    }
    tasks.push_back(std::move(task).value());
    if (!verb.weights.empty()) tasks.back().task.weight = verb.weights[tasks.size() - 1];
  }
  Result<search::TuneOptions> options = options_of(verb, tasks.size());
  if (!options.ok()) return fail(options.error());
  if (verb.verbose) options->log = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  options->cancel = &catch_interrupts();
  const Result<search::TuneReport> report = search::replay(tasks, *options);
  if (!report.ok()) return fail(report.error());
  std::vector<search::Task> measured;
  for (const search::ReplayTask& task : tasks) measured.push_back(task.task);
  const std::vector<LimitShare> shares = shares_of_limits(measured, report->tasks, nullptr);
  if (!verb.quiet) Display("replay", {}).finish(*report, shares);
  print_results(*report, shares);
  return show_report(verb, *report, shares, ":memory:");
}

// --- the plan, before anything is measured

std::string clock_estimate(double seconds) {
  if (seconds < 100) return fmt::format("about {:.0f} s", std::max(1.0, seconds));
  if (seconds < 5400) return fmt::format("about {:.0f} min", seconds / 60);
  return fmt::format("about {:.1f} h", seconds / 3600);
}

// What one trial takes here: a kernel built and timed as the search does it. 0: it cannot be told.
// Cost: one trial.
double trial_seconds(Session& session, const Operator& op) {
  const auto start = std::chrono::steady_clock::now();
  const StillAt working("building and timing one candidate of " + op.name);
  const Result<Choice> choice = session.choose(op);
  if (!choice.ok()) return 0;
  const Result<codegen::Artifact> artifact = build_kernel(choice->program, session.target());
  if (!artifact.ok()) return 0;
  const Result<std::unique_ptr<runtime::Device>> device =
      open_device(session.target(), session.num_threads());
  if (!device.ok()) return 0;
  runtime::Job job;
  job.artifact = &*artifact;
  job.inputs = References::inputs(op.program, 0);
  job.timing = runtime::TimingOptions{};
  if (!(*device)->run(job).measurement.ok()) return 0;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string budget_text(const TuneVerb& verb, int64_t num_trials, Session& session,
                        const Operator& op) {
  if (!verb.time.empty() && num_trials == 0) return "it ends after " + verb.time;
  if (num_trials == 0) return "it ends once nothing new is found";
  const double trial = trial_seconds(session, op);
  if (trial == 0) return "how long it takes cannot be told beforehand";
  const std::string all = clock_estimate(trial * static_cast<double>(num_trials));
  return fmt::format("{}: one trial of {} takes {:.2f} s{}", all, op.name, trial,
                     verb.time.empty() ? "" : ", and it ends after " + verb.time);
}

void print_plan(const TuneVerb& verb, const std::vector<Operator>& ops, Session& session) {
  const int64_t num_trials = trials_of(verb) * static_cast<int64_t>(ops.size());
  const std::string what =
      ops.size() == 1 ? ops[0].name + (ops[0].bindings.empty() ? "" : " " + ops[0].bindings)
                      : fmt::format("{} operators", ops.size());
  const std::string& path = session.database().path();
  // As --db says, or since there is no cache folder.
  const bool is_kept = path != ":memory:";
  fmt::print(stderr, "plan: {} by strategy {}, {}; records go to {}\n", what, verb.strategy,
             num_trials > 0      ? fmt::format("{} trials", num_trials)
             : verb.time.empty() ? "as many trials as there are candidates"
                                 : "as many trials as the time allows",
             is_kept ? path : "memory and end with this command; --db FILE keeps them");
  fmt::print(stderr, "time: {}; Ctrl-C ends it{}\n", budget_text(verb, num_trials, session, ops[0]),
             is_kept ? " and keeps what was measured" : "");
}

// The time of the whole command, of which what comes before and after the search has its part.
class CommandTime {
 public:
  explicit CommandTime(double limit_s) : limit_s_(limit_s) {}
  bool is_limited() const { return limit_s_ > 0; }
  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// What the search may take; 0 without a limit.
  double for_search_s() const {
    // Opening files, the last lines, and ending the worker.
    constexpr double kRest = 0.2;
    constexpr double kLeast = 0.05;
    return is_limited() ? std::max(kLeast, limit_s_ - elapsed_s() - kRest) : 0;
  }
  bool has(double seconds) const { return !is_limited() || limit_s_ - elapsed_s() > seconds; }
  /// Units: s; not positive in time, and without a limit.
  double late_s() const { return is_limited() ? elapsed_s() - limit_s_ : 0; }

 private:
  double limit_s_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void print_lateness(const TuneVerb& verb, const CommandTime& time) {
  constexpr double kWorthALine = 0.5;
  if (verb.quiet || time.late_s() < kWorthALine) return;
  fmt::print(stderr,
             "time: {:.1f} s past the {} of --time: what was found is compared with the "
             "unscheduled program also when that takes longer than was left\n",
             time.late_s(), verb.time);
}

// One by its name, several by their number.
std::string named(const std::vector<std::string>& names, std::size_t num_tasks) {
  return names.size() == 1 ? fmt::format("'{}'", names[0])
                           : fmt::format("{} of {} tasks", names.size(), num_tasks);
}

void print_notes(const TuneVerb& verb, const search::TuneReport& report) {
  if (verb.quiet) return;
  std::vector<std::string> slowed, unmeasured, stale;
  std::string why;  // of the first that is stale
  for (const search::TaskReport& t : report.tasks) {
    // Upper bounds, which the next quiet run replaces.
    if (t.slowed) slowed.push_back(t.name);
    if (t.stop == search::StopReason::kTime && t.trials == 0 && t.best_ns > 0)
      unmeasured.push_back(t.name);
    if (t.left_aside.num == 0) continue;
    if (stale.empty()) why = search::to_string(t.left_aside);
    stale.push_back(t.name);
  }
  const std::size_t num_tasks = report.tasks.size();
  if (!slowed.empty())
    fmt::print(stderr, "note: other work slowed this machine down while {} {} timed\n",
               named(slowed, num_tasks), slowed.size() == 1 ? "was" : "were");
  if (!unmeasured.empty())
    fmt::print(stderr, "note: no time was left to measure {} anew: give more --time\n",
               named(unmeasured, num_tasks));
  if (stale.size() == 1) print_left_aside(stale[0], why);
  if (stale.size() > 1)
    fmt::print(stderr, "note: {} have records that are not used; of the first, {}\n",
               named(stale, num_tasks), printable_line(why));
}

// Whether the operators are the tasks of one net with ports, or of one that is a net for each of several
// sizes.
bool is_net(const std::vector<Operator>& ops, const OperatorRequest& request) {
  return std::all_of(ops.begin(), ops.end(), [&](const Operator& op) {
    return !op.network.empty() && (!request.lists.empty() || op.network == ops[0].network);
  });
}

/// Ranking within a network is not begun for less.
constexpr double kLeastRankS = 3;

// Nothing where `rank_s`, its part of a limited time, or what is left of the time is too short.
Result<std::optional<RankReport>> rank_net(const TuneVerb& verb, Session& session,
                                           const OperatorRequest& request, const CommandTime& time,
                                           double rank_s, const std::atomic<bool>* cancel) {
  if ((time.is_limited() && rank_s < kLeastRankS) || !time.has(kLeastRankS / 2)) {
    if (!verb.quiet) {
      fmt::print(stderr,
                 "note: no time was left to rank schedules within the network: give more --time\n");
    }
    return std::optional<RankReport>();
  }
  RankOptions options;
  options.seed = verb.seed;
  options.cancel = cancel;
  // Less where the search took longer than its part.
  if (time.is_limited()) options.time_s = std::min(rank_s, time.for_search_s());
  return rank_network(session, request, options);
}

// What needs measurements, and is asked for without any.
Result<void> check_measuring(const TuneVerb& verb) {
  const bool measures = verb.effort > 1 || !verb.replay.empty();
  if (verb.json && !measures)
    return error(Diag::kUsageOption, "--json", "is of what was measured: not with -O0 and -O1");
  if (verb.algebra == "off" || (verb.replay.empty() && measures)) return {};
  return error(Diag::kUsageOption, "--algebra",
               "needs measurements of its own: neither --replay nor -O0 and -O1");
}

// What is measured has to be kept, which a file of lines cannot.
Result<void> check_kept(Session& session) {
  if (!search::is_export(session.database().path())) return {};
  return error(Diag::kUsageOption, "--db",
               "names a file of exported records, which are only read: `prunerc db import` puts "
               "them into a database");
}

int tune(const TuneVerb& verb) {
  if (const Result<void> usable = check_measuring(verb); !usable.ok()) return fail(usable.error());
  if (!verb.replay.empty()) return replay(verb);
  Result<std::vector<Operator>> ops = verb.op.load();
  if (!ops.ok()) return fail(ops.error());
  if (const Result<void> weighed = check_weights(verb.weights, ops->size()); !weighed.ok()) {
    return fail(weighed.error());
  }
  for (std::size_t i = 0; i < verb.weights.size(); ++i) (*ops)[i].weight = verb.weights[i];
  for (const Operator& op : *ops) fmt::print(stderr, "{}", op.warnings);
  Result<search::TuneOptions> wanted = options_of(verb, ops->size());
  if (!wanted.ok()) return fail(wanted.error());
  search::TuneOptions options = *std::move(wanted);
  const CommandTime time(options.time_s);
  Result<Session> session = verb.machine.open();
  if (!session.ok()) return fail(session.error());
  if (verb.effort <= 1) return without_measuring(verb, *session, *ops);
  if (const Result<void> kept = check_kept(*session); !kept.ok()) return fail(kept.error());
  const Result<void> here = check_runs_here(session->target());
  if (!here.ok()) return fail(here.error());
  if (!verb.quiet) {
    fmt::print(stderr, "target: {}\n", describe(session->target()));
    print_plan(verb, *ops, *session);
  }
  std::vector<search::Task> tasks;
  for (const Operator& op : *ops) tasks.push_back(session->task(op));
  // Of a limited time a part is for the network as a whole.
  constexpr double kRankShare = 0.12, kMostRankS = 60;
  const double rank_s = std::min(kMostRankS, kRankShare * time.for_search_s());
  const Result<OperatorRequest> request = verb.op.request();
  // Nets run as a whole on CPUs alone.
  const bool is_whole_net = session->target().kind == ir::TargetKind::kCpu &&
                            verb.op.more_files.empty() && is_net(*ops, *request);
  options.time_s = time.for_search_s() - (is_whole_net && rank_s >= kLeastRankS ? rank_s : 0);
  std::optional<Display> display;
  if (!verb.quiet) {
    display.emplace(verb.machine.target, tasks, options.time_s);
    options.on_progress = [&](const search::TuneProgress& p) { display->show(p); };
    options.on_phase = [&](std::string_view phase) { display->begin(phase); };
  }
  if (verb.verbose) options.log = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  options.cancel = &catch_interrupts();
  AlgebraOptions algebra;
  algebra.mode = *algebra_mode_from_string(verb.algebra);
  Result<AlgebraTuneReport> found = session->tune(*ops, options, algebra);
  if (!found.ok()) return fail(found.error());
  search::TuneReport* const report = &found->tune;
  // What measuring the limits anew takes.
  constexpr double kLimitsS = 3;
  const Remeasure remeasure =
      time.has(kLimitsS) ? remeasure_here(session->target()) : Remeasure(nullptr);
  // Of what won: another program has another limit.
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i] = found->outcomes[i].task;
  const std::vector<LimitShare> shares = shares_of_limits(tasks, report->tasks, remeasure);
  if (display) display->finish(*report, shares);
  print_results(*report, shares);
  print_outcomes(verb, *found);
  std::optional<RankReport> ranked;
  if (is_whole_net && !report->cancelled) {
    Result<std::optional<RankReport>> done =
        rank_net(verb, *session, *request, time, rank_s, options.cancel);
    if (!done.ok()) return fail(done.error());
    ranked = *done;
    report->cancelled |= options.cancel->load();
  }
  print_lateness(verb, time);
  print_notes(verb, *report);
  return show_report(verb, *report, shares, session->database().path(),
                     is_whole_net ? &ranked : nullptr,
                     verb.algebra == "off" ? std::span<const AlgebraOutcome>() : found->outcomes);
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (int i = 0; i < search::kNumStrategies; ++i) {
    names.emplace_back(to_string(static_cast<search::StrategyKind>(i)));
  }
  return names;
}

std::string strategy_help() {
  std::string help = "how candidates are chosen:";
  for (int i = 0; i < search::kNumStrategies; ++i) {
    const auto kind = static_cast<search::StrategyKind>(i);
    help += fmt::format("{} {} ({})", i == 0 ? "" : ";", to_string(kind), describe(kind));
  }
  return help;
}

}  // namespace

void add_tune(CLI::App& verb, Action& action) {
  auto args = std::make_shared<TuneVerb>();
  args->op.add_several_to(verb);
  args->machine.add_to(verb);
  verb.add_option("--trials", args->trials,
                  "measured candidates per operator (-O2: 64, -O3: 1000; 0: no limit); several "
                  "operators share them")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  verb.add_option(
          "--time", args->time,
          "end after this long, measuring the winner and verifying it included, or one long "
          "verification later: 90s, 10m, 1h")
      ->type_name("DURATION");
  verb.add_option("--early-stop", args->early_stop,
                  "end an operator after so many trials without a gain")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  verb.add_option("-O", args->effort, "effort: 0 heuristic, 1 cost model, 2 and 3 measure")
      ->type_name("N")
      ->check(CLI::Range(0, 3));
  in_group(verb, "Budget");
  verb.add_option("--strategy", args->strategy, strategy_help())
      ->type_name("NAME")
      ->check(CLI::IsMember(strategy_names()))
      ->capture_default_str();
  verb.add_option("--checkpoint", args->checkpoint,
                  "model of `prunerc model train` to start from; none: an untrained one (default: "
                  "the built-in one)")
      ->type_name("FILE.model");
  verb.add_option(
          "--heuristics", args->heuristics,
          "whether each sketch's heuristic schedule is measured first: on, off (default: as "
          "the strategy does)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"on", "off"}));
  verb.add_option("--algebra", args->algebra,
                  "other programs that compute the same, tuned beside the operator with the same "
                  "trials: auto, those whose limit is clearly lower; on, all that are found")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  verb.add_option("--seed", args->seed, "of every random choice")
      ->type_name("N")
      ->capture_default_str();
  verb.add_flag("--fresh", args->fresh, "ignore stored records (they are kept)");
  verb.add_option("--weights", args->weights,
                  "how much each operator counts in the sum, as in 3,1 (default: as its net says)")
      ->type_name("NUMBER")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::PositiveNumber);
  verb.add_option("--replay", args->replay,
                  "search against the recorded times of these pools; no device is used")
      ->type_name("FILE.pool");
  in_group(verb, "Search");
  verb.add_flag("--json", args->json, "one JSON object as the last line on stdout");
  verb.add_flag("-v,--verbose", args->verbose, "log every choice and answer");
  verb.add_flag("-q,--quiet", args->quiet, "on stderr nothing but warnings and errors");
  in_group(verb, "Output");
  verb.callback([args, &action] { action = [args] { return tune(*args); }; });
}

}  // namespace prunerc::cli
