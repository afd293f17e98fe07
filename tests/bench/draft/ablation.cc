#include "search/strategy/draft.h"
#include "search/tune/replay.h"
#include "tests/bench/draft/pools.h"
#include "tests/bench/draft/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prunerc::bench {
namespace {

using namespace search;  // NOLINT: a benchmark of search

/// How near the pool's best counts as found.
constexpr double kFound = 1.01;

/// The default strategy with one thing changed.
struct Variant {
  const char* name;
  void (*change)(search::DraftOptions&);
};

constexpr Variant kVariants[] = {
    {"all", [](DraftOptions&) {}},
    {"no_calibration", [](DraftOptions& o) { o.calibrate = false; }},
    {"no_quotas", [](DraftOptions& o) { o.stratified_share = 0; }},
    {"no_children_of_measured", [](DraftOptions& o) { o.measured_share = 0; }},
    {"no_analyzer_rank", [](DraftOptions& o) { o.blend = false; }},
    {"no_random", [](DraftOptions& o) { o.random_share = 0; }},
};

struct Outcome {
  double regret = 0;  // mean over trials of log2(best so far / best of the pool)
  double found = 0;   // trials until kFound; the budget if never
};

std::optional<Outcome> run(const ReplayTask& task, const Variant& variant, int64_t trials,
                           uint64_t seed, double best_ns) {
  TuneOptions options;
  options.trials = trials;
  options.seed = seed;
  options.make_strategy = [&](const StrategyContext& context) -> Result<std::unique_ptr<Strategy>> {
    DraftOptions draft;
    variant.change(draft);
    PRUNERC_TRY(std::unique_ptr<Scorer> trees, make_scorer(StrategyKind::kPrunerTrees, context));
    return Result<std::unique_ptr<Strategy>>(make_draft_strategy(context, std::move(trees), draft));
  };
  const Result<TuneReport> report = replay({&task, 1}, options);
  if (!report.ok()) {
    fmt::print("  {}: {}\n", variant.name, report.error().message());
    return std::nullopt;
  }
  Outcome out;
  out.found = static_cast<double>(trials);
  const std::vector<CurvePoint>& curve = report->tasks[0].curve;
  if (curve.empty()) {
    fmt::print("  {}: nothing ran\n", variant.name);
    return std::nullopt;
  }
  for (std::size_t i = 0; i < curve.size(); ++i) {
    // Before the first gain is known it counts as it then is.
    const int64_t from = i == 0 ? 1 : curve[i].trial;
    const int64_t until = i + 1 < curve.size() ? curve[i + 1].trial : trials + 1;
    out.regret += static_cast<double>(until - from) * std::log2(curve[i].best_ns / best_ns);
    if (curve[i].best_ns <= kFound * best_ns) {
      out.found = std::min(out.found, static_cast<double>(curve[i].trial));
    }
  }
  out.regret /= static_cast<double>(trials);
  return out;
}

}  // namespace

std::vector<Row> ablation_rows(const DraftBenchOptions& options) {
  ThreadPool threads(0);
  const std::vector<NamedPool> pools = read_pools(options.pools);
  std::vector<Variant> variants;
  for (const Variant& v : kVariants) {
    const std::string name = v.name;
    if (is_listed(options.variants, name)) {
      variants.push_back(v);
    }
  }
  const std::size_t num_variants = variants.size();
  std::vector<Row> rows;
  std::vector<double> regret(num_variants), found(num_variants);
  int num_pools = 0;
  for (const NamedPool& pool : pools) {
    const Result<ReplayTask> task = ReplayTask::make(pool.pool, threads);
    if (!task.ok()) {
      fmt::print("{} is left out: {}\n", pool.name, task.error().message());
      continue;
    }
    ++num_pools;
    const double best_ns = best_of(pool.pool);
    for (std::size_t v = 0; v < num_variants; ++v) {
      std::vector<double> regrets, founds;
      for (int seed = 0; seed < options.seeds; ++seed) {
        const std::optional<Outcome> outcome =
            run(*task, variants[v], options.ablation_trials, static_cast<uint64_t>(seed), best_ns);
        if (!outcome) return {};
        regrets.push_back(outcome->regret);
        founds.push_back(outcome->found);
      }
      regret[v] += mean(regrets);
      found[v] += median(founds);
      rows.push_back(
          {fmt::format("regret/{}/{}", pool.name, variants[v].name),
           mean(regrets),
           "log2",
           {},
           fmt::format("within 1 % of the best after {:.0f} trials (median)", median(founds))});
    }
  }
  for (std::size_t v = 0; v < num_variants && num_pools > 0; ++v) {
    rows.push_back(
        {fmt::format("regret/{}", variants[v].name),
         regret[v] / num_pools,
         "log2",
         {},
         fmt::format("{} pools, {} seeds, {} trials; within 1 % after {:.0f} (mean)", num_pools,
                     options.seeds, options.ablation_trials, found[v] / num_pools)});
  }
  return rows;
}

}  // namespace prunerc::bench
