#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>

namespace prunerc::cli {
namespace {

std::atomic<bool> interrupted{false};

// The first Ctrl-C ends the search in order; the second one is the system's.
void on_interrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);
}

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
  std::string strategy = "evolution";
};

int64_t default_trials(int effort) { return effort >= 3 ? 1000 : 64; }

std::string repro(const TuneVerb& verb, int64_t trials) {
  std::string out = fmt::format("prunerc tune {} --target {} --trials {} --seed {}",
                                verb.op.repro(), verb.machine.target, trials, verb.seed);
  if (verb.machine.threads > 0) out += fmt::format(" --threads {}", verb.machine.threads);
  if (!verb.time.empty()) out += " --time " + verb.time;
  if (verb.strategy != "evolution") out += " --strategy " + verb.strategy;
  return out + " --fresh";
}

void print_results(const search::TuneReport& report) {
  for (const search::TaskReport& t : report.tasks) {
    fmt::print("{}: {} ({:.2f} GFLOP/s, {:.2f} GB/s, {:.0f}% of the limit), {}\n", t.name,
               time_text(t.best_ns), t.gflops, t.gbps, 100 * t.limit_fraction,
               t.verified ? "verified: " + t.evidence : "not verified");
  }
  if (report.tasks.size() > 1) fmt::print("total: {}\n", time_text(report.total_weighted_ns));
}

int without_measuring(const TuneVerb& verb, Session& session, const std::vector<Operator>& ops) {
  for (const Operator& op : ops) {
    const Result<Choice> choice = session.choose(op, verb.effort == 0 ? Effort::kO0 : Effort::kO1);
    if (!choice.ok()) return fail(choice.error(), kNoCandidate);
    fmt::print("{}: {} schedule, not measured\n", op.name, to_string(choice->origin));
    if (verb.verbose) fmt::print(stderr, "{}", schedule::print(choice->trace));
  }
  return kSuccess;
}

int tune(const TuneVerb& verb) {
  Result<OperatorRequest> request = verb.op.request();
  if (!request.ok()) return fail(request.error(), kUsage);
  const Result<std::vector<Operator>> ops = load_operators(*request);
  if (!ops.ok()) return fail(ops.error(), exit_code(ops.error()));
  for (const Operator& op : *ops) fmt::print(stderr, "{}", op.warnings);
  search::TuneOptions options;
  options.trials =
      verb.trials >= 0 ? verb.trials : (verb.time.empty() ? default_trials(verb.effort) : 0);
  if (!verb.time.empty()) {
    const Result<double> seconds = parse_duration(verb.time);
    if (!seconds.ok()) return fail(seconds.error(), kUsage);
    options.time_s = *seconds;
  }
  options.seed = verb.seed;
  options.early_stop = verb.early_stop;
  options.fresh = verb.fresh;
  options.strategy =
      verb.strategy == "random" ? search::StrategyKind::kRandom : search::StrategyKind::kEvolution;
  Result<Session> session =
      Session::open({verb.machine.target, verb.machine.threads, verb.machine.database, {}});
  if (!session.ok()) return fail(session.error(), exit_code(session.error()));
  if (verb.effort <= 1) return without_measuring(verb, *session, *ops);
  fmt::print(stderr, "target: {}\n", describe(session->target()));
  Display display(verb.machine.target);
  options.on_progress = [&](const search::TuneProgress& p) { display.show(p); };
  if (verb.verbose) options.log = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  options.cancel = &interrupted;
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  const Result<search::TuneReport> report = session->tune(*ops, options);
  if (!report.ok()) return fail(report.error(), exit_code(report.error()));
  display.finish(*report);
  const std::string again = repro(verb, options.trials);
  print_results(*report);
  fmt::print(stderr, "repro: {}\n", again);
  if (verb.json) fmt::print("{}\n", tune_json(*report, again));
  if (report->cancelled) {
    fmt::print(stderr, "interrupted; what was measured is kept: run the same command to go on\n");
    return kInterrupted;
  }
  for (const search::TaskReport& t : report->tasks) {
    if (t.best_ns > 0) continue;
    fmt::print(stderr, "error: no candidate of '{}' ran and gave the right result: {}{}\n", t.name,
               counts_text(t.counts), t.failure.empty() ? "" : " (" + t.failure + ")");
    return kNoCandidate;
  }
  return kSuccess;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("tune", "search for a fast schedule and store it");
  auto args = std::make_shared<TuneVerb>();
  args->op.add_to(*verb, true);
  args->machine.add_to(*verb);
  verb->add_option("--trials", args->trials,
                   "measured candidates per operator (-O2: 64, -O3: 1000)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--time", args->time, "stop after this long: 90s, 10m, 1h");
  verb->add_option("-O", args->effort, "effort: 0 heuristic, 1 cost model, 2 and 3 measure")
      ->check(CLI::Range(0, 3));
  verb->add_option("--seed", args->seed, "of every random choice")->capture_default_str();
  verb->add_option("--early-stop", args->early_stop,
                   "end an operator after so many trials without a gain")
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("--fresh", args->fresh, "ignore stored records (they are kept)");
  verb->add_option("--strategy", args->strategy, "evolution or random")
      ->check(CLI::IsMember({"evolution", "random"}));
  verb->add_flag("--json", args->json, "one JSON object as the last line on stdout");
  verb->add_flag("-v,--verbose", args->verbose, "log every choice and answer");
  verb->callback([args, &action] { action = [args] { return tune(*args); }; });
}

}  // namespace prunerc::cli
