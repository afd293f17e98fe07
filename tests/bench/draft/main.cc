// The draft in numbers: ./dev bench draft [--only GROUP] [--json OUT]
#include "tests/bench/draft/rows.h"
#include "tools/driver/prunerc.h"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace prunerc::bench {
namespace {

int run(std::string_view only, const std::string& json, const DraftBenchOptions& options) {
  const std::vector<uint64_t> one = {options.seed};
  const std::vector<uint64_t> replays = seeds_from(0, options.seeds);
  const std::vector<uint64_t> live = seeds_from(options.live_first_seed, options.live_seeds);
  const std::vector<uint64_t> default_seed = {search::TuneOptions{}.seed};
  const std::vector<uint64_t> net = {options.live_first_seed};
  constexpr bool kOnRequest = true;
  const Group groups[] = {
      {"rate", [&] { return rate_rows(options); }, one},
      {"features", [&] { return feature_rows(options); }, one},
      {"quality", [&] { return quality_rows(options); }, one},
      {"replay", [&] { return replay_rows(options); }, replays},
      {"ablation", [&] { return ablation_rows(options); }, replays},
      {"many", [&] { return many_cost_rows(options); }, one},
      {"rhythm", [&] { return rhythm_rows(options); }, replays},
      {"o1", [&] { return o1_ratio_rows(options); }, default_seed, kOnRequest},
      {"tvm", [&] { return tvm_ansor_rows(options); }, live, kOnRequest},
      {"live", [&] { return live_rows(options); }, live, kOnRequest},
      {"net", [&] { return net_rows(options); }, net, kOnRequest},
  };
  return report("draft", groups, only, json);
}

}  // namespace
}  // namespace prunerc::bench

int main(int argc, char** argv) {
  if (const auto status = prunerc::serve_worker(argc, argv)) return *status;
  prunerc::bench::DraftBenchOptions options;
  std::string only;
  std::string json;
  CLI::App app("the draft in numbers");
  app.add_option(
      "--only", only,
      "one group: rate, features, quality, replay, ablation, many, rhythm, or one that runs "
      "on request alone, on a quiet machine: o1, tvm, live, net");
  app.add_option("--seconds", options.seconds, "CPU seconds for each rate");
  app.add_option("--pools", options.pools, "folder of the pools");
  app.add_option("--bootstrap", options.bootstrap, "resamplings for each interval");
  app.add_option("--seeds", options.seeds, "of replayed searches");
  app.add_option("--trials", options.trials, "of replayed searches");
  app.add_option("--ablation-trials", options.ablation_trials, "of each ablation's searches");
  app.add_option("--variants", options.variants, "of the ablation, comma-separated (all)");
  app.add_option("--live-seeds", options.live_seeds,
                 "of searches beside TVM's figures and live ones of one task");
  app.add_option("--live-first-seed", options.live_first_seed, "of live searches");
  app.add_option("--live-trials", options.live_trials, "of each live search of one task");
  app.add_option("--net-trials", options.net_trials, "of each live search of the net");
  app.add_option("--live-baseline", options.live_baseline,
                 "strategy that live searches are compared with (default: ansor)");
  app.add_option("--live-strategies", options.live_strategies,
                 "of live searches of one task, beside the default one")
      ->delimiter(',');
  app.add_option("--live-checkpoint", options.live_checkpoint, "that the baseline starts from");
  app.add_option("--o1-trials", options.o1_trials, "of what -O1 is compared with");
  app.add_option("--net", options.net, "file of the net");
  app.add_option("--seed", options.seed, "of everything random");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  return prunerc::bench::run(only, json, options);
}
