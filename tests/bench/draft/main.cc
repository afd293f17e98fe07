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
  const std::vector<uint64_t> default_seed = {search::TuneOptions{}.seed};
  const std::vector<uint64_t> net = seeds_from(options.net_first_seed, options.net_seeds);
  constexpr bool kOnRequest = true;
  const Group groups[] = {
      {"rate", [&] { return rate_rows(options); }, one},
      {"features", [&] { return feature_rows(options); }, one},
      {"quality", [&] { return quality_rows(options); }, one},
      {"ablation", [&] { return ablation_rows(options); }, replays},
      {"many", [&] { return many_cost_rows(options); }, one},
      {"rhythm", [&] { return rhythm_rows(options); }, replays},
      {"o1", [&] { return o1_ratio_rows(options); }, default_seed, kOnRequest},
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
  app.add_option("--only", only,
                 "one group: rate, features, quality, ablation, many, rhythm, or one that runs "
                 "on request alone, on a quiet machine: o1, net");
  app.add_option("--seconds", options.seconds, "CPU seconds for each rate");
  app.add_option("--pools", options.pools, "folder of the pools");
  app.add_option("--bootstrap", options.bootstrap, "resamplings for each interval");
  app.add_option("--seeds", options.seeds, "of replayed searches");
  app.add_option("--ablation-trials", options.ablation_trials, "of each ablation's searches");
  app.add_option("--variants", options.variants, "of the ablation, comma-separated (all)");
  app.add_option("--net-seeds", options.net_seeds, "of live searches of the net");
  app.add_option("--net-first-seed", options.net_first_seed, "the others follow");
  app.add_option("--net-trials", options.net_trials, "of each live search of the net");
  app.add_option("--net-who", options.net_who, "beside ansor, comma-separated (all)");
  app.add_option(
      "--net-keep", options.net_keep,
      "folder: a live search that is there, by this commit and machine, is not made again");
  app.add_option("--o1-operators", options.o1_operators, "file of the operators for o1");
  app.add_option("--o1-trials", options.o1_trials, "of what -O1 is compared with");
  app.add_option("--net", options.net, "file of the net");
  app.add_option("--seed", options.seed, "of everything random");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  return prunerc::bench::run(only, json, options);
}
