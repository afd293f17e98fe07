// Searches on this machine, by the wall clock.
#include "ir/support/check.h"
#include "runtime/cpu/limits.h"
#include "tests/bench/draft/curve.h"
#include "tests/bench/draft/pools.h"
#include "tests/bench/draft/rows.h"
#include "tools/driver/prunerc.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

namespace prunerc::bench {
namespace {

using search::StrategyKind;

/// The operators and fractions of the multiply-add limit that reference measurements of Ansor are
/// for: 256 trials with two threads.
struct AnsorCase {
  const char* name;
  const char* text;
  double flops;
  double fraction;  // what Ansor reached
  double seconds;   // that it took
};
constexpr AnsorCase kAnsorCases[] = {
    {"gemm_512",
     "op gemm_512(A: f32[512,512], B: f32[512,512]) -> (C: f32[512,512]) {\n"
     "  C[i,j] = sum[k] A[i,k] * B[k,j];\n}\n",
     2.0 * 512 * 512 * 512, 0.78, 356},
    {"gemm_1024",
     "op gemm_1024(A: f32[1024,1024], B: f32[1024,1024]) -> (C: f32[1024,1024]) {\n"
     "  C[i,j] = sum[k] A[i,k] * B[k,j];\n}\n",
     2.0 * 1024 * 1024 * 1024, 0.82, 478},
    {"conv2d_64x56",
     "op conv2d_64x56(X: f32[1,64,56,56], F: f32[64,64,3,3]) -> (Y: f32[1,64,56,56]) {\n"
     "  Y[n,co,oh,ow] = sum[ci,kh,kw] (X[n, ci, oh + kh - 1, ow + kw - 1] or 0) * "
     "F[co,ci,kh,kw];\n}\n",
     2.0 * 56 * 56 * 64 * 64 * 9, 0.86, 434},
    {"conv2d_nhwc_64x56",
     "op conv2d_nhwc_64x56(X: f32[1,56,56,64], F: f32[3,3,64,64]) -> (Y: f32[1,56,56,64]) {\n"
     "  Y[n,oh,ow,co] = sum[kh,kw,ci] (X[n, oh + kh - 1, ow + kw - 1, ci] or 0) * "
     "F[kh,kw,ci,co];\n}\n",
     2.0 * 56 * 56 * 64 * 64 * 9, 0.86, 434},
};
constexpr int kAnsorThreads = 2;
/// A fifth of the seconds is asked for.
constexpr double kFasterThanAnsor = 5;

/// Tasks of the pools on which strategies are compared live.
constexpr const char* kComparedTasks[] = {"conv_3x3", "gemm_bias_relu"};

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

// Empty if the search failed, which is said.
std::optional<Curve> search_live(std::span<const Operator> ops, StrategyKind kind, int threads,
                                 int64_t trials, int64_t total_trials, uint64_t seed,
                                 const std::string& checkpoint = "") {
  Session session = open_session(threads);
  search::TuneOptions options;
  options.strategy = kind;
  options.trials = trials;
  options.total_trials = total_trials;
  options.seed = seed;
  options.checkpoint = checkpoint;
  const Result<search::TuneReport> report = session.tune(ops, options);
  if (!report.ok()) {
    fmt::print("  {}: {}\n", search::to_string(kind), report.error().message());
    return std::nullopt;
  }
  return curve_of(*report);
}

// The largest of short samples: other work lowers a limit, nothing raises it.
double fma_limit() {
  constexpr int kSamples = 20;
  constexpr int64_t kSampleNs = 2'000'000;
  double most = 0;
  for (int i = 0; i < kSamples; ++i) {
    most = std::max(most, runtime::measure_fma_gflops(kAnsorThreads, kSampleNs));
  }
  return most;
}

// `limit`: the largest so far, in GFLOP/s.
std::vector<Row> tvm_rows(const AnsorCase& c, const DraftBenchOptions& options, double* limit) {
  OperatorRequest request;
  request.text = c.text;
  request.file = c.name;
  const Operator op = load_operator(request).value();
  std::vector<Curve> curves;
  for (int seed = 0; seed < options.live_seeds; ++seed) {
    const std::optional<Curve> curve =
        search_live({&op, 1}, StrategyKind::kPruner, kAnsorThreads, options.live_trials, 0,
                    options.live_first_seed + static_cast<uint64_t>(seed));
    if (!curve) return {};
    curves.push_back(*curve);
    // What a kernel reached is evidence too: nothing is more than all of the limit.
    *limit = std::max({*limit, fma_limit(), c.flops / curve->final_ns});
  }
  std::vector<double> seconds, fractions;
  std::string ends;
  int never = 0;
  for (const Curve& curve : curves) {
    const Reached there = reach(curve, c.flops / (c.fraction * *limit));
    never += there.ever ? 0 : 1;
    seconds.push_back(there.seconds);
    fractions.push_back(c.flops / curve.final_ns / *limit);
    ends += fmt::format(" {:.2f}", fractions.back());
  }
  return {{fmt::format("seconds_to_tvm_ansor/{}", c.name), median(seconds), "s",
           c.seconds / kFasterThanAnsor,
           fmt::format("to {:.0f} % of the limit, {} seeds, {} never", 100 * c.fraction,
                       options.live_seeds, never),
           true},
          {fmt::format("fraction_of_limit/{}", c.name), median(fractions), "", c.fraction,
           fmt::format("after {} trials; by seed{}; limit {:.0f} GFLOP/s", options.live_trials,
                       ends, *limit)}};
}

// A trained model that learns nothing is compared with ours that learns nothing.
bool is_offline(const DraftBenchOptions& options) {
  return options.live_baseline == search::to_string(StrategyKind::kTensetOffline) ||
         options.live_baseline == search::to_string(StrategyKind::kTlpOffline);
}

// What is asked for beside ansor, and what is published beside trained models without updates
// (Pruner, ASPLOS'25, abstract).
double wanted_beside(StrategyKind baseline) {
  if (baseline == StrategyKind::kTensetOffline) return 4.75;
  if (baseline == StrategyKind::kTlpOffline) return 4.05;
  return 3.0;
}

/// Of Pruner's compile time in Ansor's, equal trials (Pruner, ASPLOS'25).
constexpr double kPublishedShare = 0.841;

/// One seed's searches by the baseline and by one of ours.
struct Pair {
  Curve theirs, ours;
  Gain gain;
};

// Medians over seeds; notes say what each seed gave.
std::vector<Row> pair_rows(const std::string& row, std::string_view other, double wanted,
                           const std::string& final_name, std::span<const Pair> pairs) {
  const auto by_seed = [&](auto value) {
    std::vector<double> out;
    for (const Pair& pair : pairs) out.push_back(value(pair));
    return out;
  };
  // "1.2 to 3.4 by seed (1.2 2 3.4)", or nothing for a single seed.
  const auto listed = [](const std::vector<double>& values) -> std::string {
    if (values.size() < 2) return "";
    std::string all;
    for (const double v : values) all += fmt::format("{}{:.4g}", all.empty() ? "" : " ", v);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return fmt::format("{:.4g} to {:.4g} by seed ({})", *low, *high, all);
  };
  int never = 0;
  for (const Pair& pair : pairs) never += pair.gain.ever ? 0 : 1;
  const auto ends = [](const Curve& curve) { return fmt::format(" {:.4g}", curve.final_ns / 1e3); };
  std::string our_ends, their_ends;
  for (const Pair& pair : pairs) {
    our_ends += ends(pair.ours);
    their_ends += ends(pair.theirs);
  }
  const std::string note = fmt::format(
      "{} trials, {} seed{}, {} never; ends at{} us, {}'s at{} us", pairs.front().ours.trials,
      pairs.size(), pairs.size() == 1 ? "" : "s", never, our_ends, other, their_ends);
  const std::string near = "both to within 1 % of that end";
  const search::PhaseSeconds& last = pairs.back().ours.seconds;
  std::vector<Row> out;
  const auto add = [&](const std::string& name, auto value, const char* unit,
                       std::optional<double> goal, const std::string& words, bool at_most = false) {
    const std::vector<double> values = by_seed(value);
    std::string text = listed(values);
    if (!text.empty() && !words.empty()) text += "; ";
    out.push_back({name, median(values), unit, goal, text + words, at_most});
  };
  const auto to = [&](const char* what, const char* which) {
    return fmt::format("live_{}_to_{}{}/{}", what, other, which, row);
  };
  add(
      to("trials", ""), [](const Pair& p) { return p.gain.trials; }, "x fewer", wanted, note);
  add(
      to("time", ""), [](const Pair& p) { return p.gain.seconds; }, "x fewer", wanted,
      to_text(pairs.back().theirs.seconds) + fmt::format(" for {}", other));
  add(
      to("trials", "_own"), [](const Pair& p) { return p.gain.own_trials; }, "x fewer", {}, "");
  add(
      to("time", "_own"), [](const Pair& p) { return p.gain.own_seconds; }, "x fewer", {}, "");
  add(
      to("trials", "_near"), [](const Pair& p) { return p.gain.near_trials; }, "x fewer", {}, near);
  add(
      to("time", "_near"), [](const Pair& p) { return p.gain.near_seconds; }, "x fewer", {}, near);
  add(
      final_name + row, [](const Pair& p) { return p.gain.final; }, "x faster", 1.0, "");
  add(
      fmt::format("compile_time_share_of_{}/{}", other, row),
      [](const Pair& p) { return p.ours.seconds.total / p.theirs.seconds.total; }, "",
      other == search::to_string(StrategyKind::kAnsor) ? std::optional(kPublishedShare)
                                                       : std::nullopt,
      "wall time of as many trials", true);
  add(
      "live_overhead_fraction/" + row, [](const Pair& p) { return overhead_of(p.ours.seconds); },
      "", 0.1, to_text(last), true);
  add(
      "live_unhidden_fraction/" + row, [](const Pair& p) { return unhidden_of(p.ours.seconds); },
      "", 0.1,
      fmt::format("nothing built or measured for {:.1f} of {:.1f} s", last.total - last.busy,
                  last.total),
      true);
  fmt::print("  {}: {:.2f} x fewer trials, {:.2f} x fewer s; {}\n", row, out[0].value, out[1].value,
             note);
  return out;
}

// Each of `kinds` beside searches by the baseline. The first one's rows have no suffix.
std::vector<Row> compared_rows(const std::string& name, std::span<const Operator> ops,
                               std::span<const StrategyKind> kinds, int threads, int seeds,
                               int64_t trials, int64_t total_trials,
                               const DraftBenchOptions& options) {
  const std::optional<StrategyKind> baseline = search::strategy_from_string(options.live_baseline);
  if (!baseline) {
    fmt::print("  no strategy '{}'\n", options.live_baseline);
    return {};
  }
  const std::string_view other = search::to_string(*baseline);
  std::map<StrategyKind, std::vector<Pair>> pairs;
  for (int i = 0; i < seeds; ++i) {
    const uint64_t seed = options.live_first_seed + static_cast<uint64_t>(i);
    const auto theirs =
        search_live(ops, *baseline, threads, trials, total_trials, seed, options.live_checkpoint);
    if (!theirs) return {};
    for (const StrategyKind kind : kinds) {
      const auto ours = search_live(ops, kind, threads, trials, total_trials, seed);
      if (ours) pairs[kind].push_back({*theirs, *ours, gain_over(*theirs, *ours)});
    }
  }
  const std::string final_name = *baseline == StrategyKind::kAnsor
                                     ? std::string("live_final/")
                                     : fmt::format("live_final_{}/", other);
  std::vector<Row> out;
  for (const StrategyKind kind : kinds) {
    if (pairs[kind].empty()) continue;
    const std::string row =
        kind == kinds.front() ? name : fmt::format("{}@{}", name, search::to_string(kind));
    for (Row& made : pair_rows(row, other, wanted_beside(*baseline), final_name, pairs[kind])) {
      out.push_back(std::move(made));
    }
  }
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
      (param.role == codegen::ParamRole::kInput ? inputs_ : outputs_).push_back(floats);
    }
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
  std::vector<void*> inputs_, outputs_;
};

// The answer without measuring and the tuned one, in turns on one thread.
std::vector<Row> o1_rows(const DraftBenchOptions& options) {
  constexpr int kTurns = 15;
  constexpr double kGoal = 1.5;
  std::vector<Row> rows;
  int good = 0;
  const std::vector<Operator> ops = operators_of(options.pools + "/tasks.prn");
  for (const Operator& op : ops) {
    Session session = open_session(/*threads=*/1);
    const Choice instant = session.choose(op, Effort::kO1).value();
    search::TuneOptions tuning;
    tuning.trials = options.o1_trials;
    if (!session.tune({&op, 1}, tuning).ok()) continue;
    Timed a(session, instant), b(session, session.choose(op).value());
    std::vector<double> ratios;
    for (int turn = 0; turn < kTurns; ++turn) {
      const double instant_ns = a.sample_ns();
      ratios.push_back(instant_ns / b.sample_ns());
    }
    std::sort(ratios.begin(), ratios.end());
    good += median(ratios) <= kGoal ? 1 : 0;
    rows.push_back(
        {"o1_ratio/" + op.name, median(ratios), "x tuned", kGoal,
         fmt::format("{} trials; quartiles of {} turns {:.2f} and {:.2f}", options.o1_trials,
                     kTurns, ratios[kTurns / 4], ratios[3 * kTurns / 4]),
         true});
  }
  rows.push_back({"o1_good", static_cast<double>(good), fmt::format("of {}", ops.size()), 10.0,
                  "tasks within 1.5 x of the tuned latency"});
  return rows;
}

}  // namespace

std::vector<Row> o1_ratio_rows(const DraftBenchOptions& options) { return o1_rows(options); }

std::vector<Row> tvm_ansor_rows(const DraftBenchOptions& options) {
  double limit = fma_limit();
  std::vector<Row> rows;
  for (const AnsorCase& c : kAnsorCases) {
    for (Row& row : tvm_rows(c, options, &limit)) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> live_rows(const DraftBenchOptions& options) {
  std::vector<Row> rows;
  const std::vector<Operator> ops = operators_of(options.pools + "/tasks.prn");
  for (const char* name : kComparedTasks) {
    const auto op =
        std::find_if(ops.begin(), ops.end(), [&](const Operator& o) { return o.name == name; });
    if (op == ops.end()) continue;
    std::vector<StrategyKind> ours = {is_offline(options) ? StrategyKind::kPrunerOffline
                                                          : StrategyKind::kPruner};
    for (const std::string& more : options.live_strategies) {
      if (const auto kind = search::strategy_from_string(more)) ours.push_back(*kind);
    }
    for (Row& row : compared_rows(name, {&*op, 1}, ours, /*threads=*/1, options.live_seeds,
                                  options.live_trials, 0, options)) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<Row> net_rows(const DraftBenchOptions& options) {
  constexpr StrategyKind kOurs[] = {StrategyKind::kPruner, StrategyKind::kMoaPruner,
                                    StrategyKind::kPrunerOffline};
  const auto ours = std::span(kOurs).subspan(is_offline(options) ? 2 : 0);
  return compared_rows("resnet50", operators_of(options.net), ours, kAnsorThreads, /*seeds=*/1, 0,
                       options.net_trials, options);
}

}  // namespace prunerc::bench
