// Searches on this machine, by the wall clock.
#include "ir/support/check.h"
#include "tests/bench/draft/curve.h"
#include "tests/bench/draft/kept_curve.h"
#include "tests/bench/draft/over_network.h"
#include "tests/bench/draft/pools.h"
#include "tests/bench/draft/rows.h"
#include "tools/driver/prunerc.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

namespace prunerc::bench {
namespace {

using search::StrategyKind;

/// Of searches of a net.
constexpr int kNetThreads = 2;
/// Trials of a round, of every strategy: as published for Pruner, so that each learns often enough.
constexpr int kBatch = 10;

Session open_session(int threads) {
  SessionOptions options;
  options.threads = threads;
  options.database = ":memory:";
  return Session::open(options).value();
}

std::vector<Operator> operators_of(const std::string& file) {
  OperatorRequest request;
  request.file = file;
  return load_operators(request).value();
}

/// Who searches; all of them measure the sketches' heuristic schedules first.
struct Contestant {
  const char* name;
  StrategyKind kind;
  const char* checkpoint;  // as of TuneOptions
  /// Ansor's genetic algorithm over the network of `kind`.
  bool over_network = false;
};
constexpr Contestant kBaseline = {"ansor", StrategyKind::kAnsor, ""};
constexpr Contestant kBesideIt[] = {{"pruner", StrategyKind::kPruner, ""},
                                    {"ansor+checkpoint", StrategyKind::kPruner, "", true},
                                    {"pruner-untrained", StrategyKind::kPruner, "none"}};

// Empty if the search failed, which is said.
std::optional<Curve> search_net(std::span<const Operator> ops, const Contestant& who, uint64_t seed,
                                const DraftBenchOptions& options) {
  const std::string net = std::filesystem::path(options.net).stem().string();
  KeptCurve kept(options.net_keep,
                 fmt::format("{}-{}-{}-{}", who.name, net, seed, options.net_trials));
  if (const std::optional<Curve> done = kept.read()) return done;
  Session session = open_session(kNetThreads);
  search::TuneOptions tuning;
  tuning.strategy = who.kind;
  tuning.checkpoint = who.checkpoint;
  if (who.over_network) tuning.make_strategy = ansor_over_network(who.kind, who.checkpoint);
  tuning.heuristics = true;
  tuning.batch = tuning.first_batch = kBatch;
  tuning.trials = 0;
  tuning.total_trials = options.net_trials;
  tuning.seed = seed;
  const Result<search::TuneReport> report = session.tune(ops, tuning);
  if (!report.ok()) {
    fmt::print("  {}: {}\n", who.name, report.error().message());
    return std::nullopt;
  }
  Curve curve = curve_of(*report);
  kept.write(curve);
  std::fprintf(stderr, "%s, seed %llu: %.1f us after %.0f s\n", who.name,
               static_cast<unsigned long long>(seed), curve.final_ns / 1e3, curve.seconds.total);
  return curve;
}

/// One seed's searches by the baseline and by another.
struct Pair {
  Curve theirs, ours;
  Gain gain;
};

// Medians over seeds; notes say what each seed gave, and how many have no search.
std::vector<Row> pair_rows(const Contestant& who, std::span<const Pair> pairs, int num_seeds) {
  std::vector<Row> out;
  const auto add = [&](const std::string& name, auto value, const char* unit, std::string words) {
    std::vector<double> values;
    for (const Pair& pair : pairs) values.push_back(value(pair));
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    if (values.size() > 1) words = fmt::format("{:.4g} to {:.4g} by seed; {}", *low, *high, words);
    out.push_back({fmt::format("{}/{}", name, who.name), median(values), unit, {}, words});
  };
  int never = 0;
  std::string ends;
  for (const Pair& pair : pairs) {
    never += pair.gain.ever ? 0 : 1;
    ends += fmt::format("{}{:.4g} and {:.4g}", ends.empty() ? "" : ", ", pair.ours.final_ns / 1e3,
                        pair.theirs.final_ns / 1e3);
  }
  std::string note = fmt::format("{} trials, {} of {} searches never; ends at {} us",
                                 pairs.front().ours.trials, never, pairs.size(), ends);
  const int num_failed = num_seeds - static_cast<int>(pairs.size());
  if (num_failed > 0) note += fmt::format("; {} of {} seeds failed", num_failed, num_seeds);
  const std::string near = "both to within 1 % of that end";
  add(
      "net_time_own", [](const Pair& p) { return p.gain.own_seconds; }, "x fewer s", note);
  add(
      "net_trials_own", [](const Pair& p) { return p.gain.own_trials; }, "x fewer", "");
  add(
      "net_time_near", [](const Pair& p) { return p.gain.near_seconds; }, "x fewer s", near);
  add(
      "net_trials_near", [](const Pair& p) { return p.gain.near_trials; }, "x fewer", near);
  add(
      "net_time", [](const Pair& p) { return p.gain.seconds; }, "x fewer s",
      to_text(pairs.back().theirs.seconds) + " for ansor");
  add(
      "net_trials", [](const Pair& p) { return p.gain.trials; }, "x fewer", "");
  add(
      "net_final", [](const Pair& p) { return p.gain.final; }, "x faster", "");
  add(
      "net_wall", [](const Pair& p) { return p.ours.seconds.total / p.theirs.seconds.total; },
      "of ansor's",
      "equal trials; published: 0.841 (Pruner, ASPLOS'25, arXiv 2402.02361, Table 7)");
  const search::PhaseSeconds& last = pairs.back().ours.seconds;
  add(
      "net_overhead", [](const Pair& p) { return overhead_of(p.ours.seconds); }, "", to_text(last));
  add(
      "net_unhidden", [](const Pair& p) { return unhidden_of(p.ours.seconds); }, "",
      fmt::format("nothing built or measured for {:.1f} of {:.1f} s", last.total - last.busy,
                  last.total));
  return out;
}

struct FreeAligned {
  void operator()(void* p) const { std::free(p); }
};
using Array = std::unique_ptr<void, FreeAligned>;

/// A kernel of f32 arrays with arrays of its own, which hold ones.
class Timed {
 public:
  Timed(const Session& session, const Choice& choice)
      : kernel_(Kernel::load(session.compile(choice).value(), /*num_threads=*/1).value()) {
    for (const codegen::ArtifactParam& param : kernel_.artifact().params) {
      std::size_t size = 1;
      for (const int64_t extent : param.shape) size *= static_cast<std::size_t>(extent);
      arrays_.emplace_back(std::aligned_alloc(64, (size * sizeof(float) / 64 + 1) * 64));
      auto* const floats = static_cast<float*>(arrays_.back().get());
      std::fill(floats, floats + size, 1.0F);
      const bool is_input = param.role == codegen::ParamRole::kInput;
      (param.is_const ? constants_ : is_input ? inputs_ : outputs_).push_back(floats);
    }
    if (constants_.empty()) return;
    const std::vector<const void*> constants(constants_.begin(), constants_.end());
    PRUNERC_CHECK(kernel_.prepare(constants).ok(), "constants are prepared");
  }

  /// ns of one run, over a sample of some ms.
  double sample_ns() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kSample(3);
    int64_t runs = 0;
    const auto start = Clock::now();
    do {
      std::vector<const void*> inputs(inputs_.begin(), inputs_.end());
      PRUNERC_CHECK(kernel_.run(inputs, outputs_).ok(), "it ran before");
      ++runs;
    } while (Clock::now() - start < kSample);
    const std::chrono::duration<double, std::nano> spent = Clock::now() - start;
    return spent.count() / static_cast<double>(runs);
  }

 private:
  Kernel kernel_;
  std::vector<Array> arrays_;
  std::vector<void*> inputs_, outputs_, constants_;
};

// Of the search's end, the best after so many trials.
double part_after(const search::TaskReport& task, int64_t trials) {
  double ns = 0;
  for (const search::CurvePoint& point : task.curve) {
    if (point.trial <= trials) ns = point.best_ns;
  }
  return ns > 0 ? task.curve.back().best_ns / ns : 0;
}

}  // namespace

std::vector<Row> o1_ratio_rows(const DraftBenchOptions& options) {
  static constexpr int kTurns = 15;
  constexpr int64_t kFewTrials = 8;
  std::vector<Row> rows;
  std::map<std::string, std::vector<double>> all;
  const auto add = [&](const std::string& what, const std::string& op, double value,
                       const std::string& note) {
    rows.push_back({what + "/" + op, value, "of tuned", {}, note});
    all[what].push_back(value);
  };
  const std::vector<Operator> ops = operators_of(options.o1_operators);
  for (const Operator& op : ops) {
    Session session = open_session(/*threads=*/1);
    const Choice instant = session.choose(op, Effort::kO1).value();
    search::TuneOptions tuning;
    tuning.trials = options.o1_trials;
    const Result<search::TuneReport> report = session.tune({&op, 1}, tuning);
    // A batch of the search above is larger.
    Session brief = open_session(/*threads=*/1);
    tuning.trials = kFewTrials;
    if (!report.ok() || report->tasks[0].curve.empty() || !brief.tune({&op, 1}, tuning).ok()) {
      std::fprintf(stderr, "%s: a search failed: it has no row\n", op.name.c_str());
      continue;
    }
    Timed a(session, instant), b(session, session.choose(op).value()),
        c(brief, brief.choose(op).value());
    std::vector<double> speeds, few;
    for (int turn = 0; turn < kTurns; ++turn) {
      const double instant_ns = a.sample_ns(), tuned_ns = b.sample_ns();
      speeds.push_back(tuned_ns / instant_ns);
      few.push_back(tuned_ns / c.sample_ns());
    }
    for (std::vector<double>* of : {&speeds, &few}) std::sort(of->begin(), of->end());
    const auto quartiles = [](const std::vector<double>& of) {
      return fmt::format("{:.3f} to {:.3f}, quartiles of {} turns", of[kTurns / 4],
                         of[3 * kTurns / 4], kTurns);
    };
    add("o1_speed", op.name, median(speeds),
        fmt::format("{}; {} trials", quartiles(speeds), options.o1_trials));
    add("first8", op.name, median(few), quartiles(few) + "; a search of so many trials");
    add("first64", op.name, part_after(report->tasks[0], 64),
        "of the same search's end, by its own times");
    std::fprintf(stderr, "%s: -O1 %.3f of tuned\n", op.name.c_str(), median(speeds));
  }
  for (const auto& [what, values] : all) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    // What is asked for.
    const double goal = what == "o1_speed" ? 0.95 : what == "first8" ? 0.99 : 1 / 1.022;
    rows.push_back({"geomean/" + what, geometric_mean(values), "of tuned", goal,
                    fmt::format("{:.3f} to {:.3f}, {} of {} operators", *low, *high, values.size(),
                                ops.size())});
  }
  return rows;
}

std::vector<Row> net_rows(const DraftBenchOptions& options) {
  const std::vector<Operator> ops = operators_of(options.net);
  std::map<std::string, std::vector<Pair>> pairs;
  for (int i = 0; i < options.net_seeds; ++i) {
    const uint64_t seed = options.net_first_seed + static_cast<uint64_t>(i);
    const auto theirs = search_net(ops, kBaseline, seed, options);
    if (!theirs) continue;
    for (const Contestant& who : kBesideIt) {
      if (!is_listed(options.net_who, who.name)) continue;
      const auto ours = search_net(ops, who, seed, options);
      if (ours) pairs[who.name].push_back({*theirs, *ours, gain_over(*theirs, *ours)});
    }
  }
  std::vector<Row> out;
  for (const Contestant& who : kBesideIt) {
    if (pairs[who.name].empty()) continue;
    for (Row& row : pair_rows(who, pairs[who.name], options.net_seeds))
      out.push_back(std::move(row));
  }
  return out;
}

}  // namespace prunerc::bench
