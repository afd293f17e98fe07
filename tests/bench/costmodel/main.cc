// The learned models in numbers: ./dev bench costmodel [--only
// accuracy|ablation|frozen|speed|prune|transfer|tuning]
#include "tests/bench/costmodel/rows.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace prunerc::bench {
namespace {

int run(std::string_view only, const std::string& json, const ModelOptions& options) {
  const auto splits = seeds_from(static_cast<uint64_t>(options.first_seed), options.seeds);
  const Group groups[] = {
      {"accuracy", [&] { return accuracy_rows(options); }, splits},
      {"ablation", [&] { return model_ablation_rows(options); }, splits},
      {"frozen", [&] { return frozen_rows(options); }, splits, true},
      {"speed", [&] { return speed_rows(options); }, {1}},
      {"prune", [&] { return prune_rows(options); }, splits},
      {"transfer", [&] { return transfer_rows(options); }, splits},
      {"tuning", [&] { return tuning_rows(options); }, seeds_from(0, options.seeds)},
  };
  return report("costmodel", groups, only, json);
}

}  // namespace
}  // namespace prunerc::bench

int main(int argc, char** argv) {
  prunerc::bench::ModelOptions options;
  std::string only;
  std::string json;
  CLI::App app("the learned models in numbers");
  app.add_option("--only", only,
                 "one group: accuracy, ablation, frozen, speed, prune, transfer, tuning");
  app.add_option("--pools", options.pools, "folder of the pools");
  app.add_option("--models", options.models,
                 "which models, or methods of `transfer` (default: all)")
      ->delimiter(',');
  app.add_option("--seeds", options.seeds, "splits and initial values");
  app.add_option("--first-seed", options.first_seed, "the others follow");
  app.add_option("--epochs", options.epochs, "of each training (default: the recipe's)");
  app.add_option("--test-share", options.test_share, "tasks of each class that are held out");
  app.add_option("--test-pools", options.test_pools,
                 "pools that have this in their paths are judged, the others only train");
  app.add_option("--frozen-pools", options.frozen_pools, "folder of the frozen operators' pools");
  app.add_option("--frozen-rows", options.frozen_rows, "that each model learns from there");
  app.add_option("--volumes", options.volumes, "parts of the training rows")->delimiter(',');
  app.add_option("--ablation-part", options.ablation_part, "of all rows, of the ablation");
  app.add_option("--bootstrap", options.bootstrap, "resamplings for each interval");
  app.add_option("--searched", options.searched, "pools that replayed searches are on")
      ->delimiter(',');
  app.add_option("--strategies", options.strategies, "of replayed searches (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(prunerc::bench::contestant_names()));
  app.add_option("--trials", options.trials, "of replayed searches");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  if (!std::filesystem::is_directory(options.pools)) {
    std::fprintf(stderr, "%s is no folder of pools\n", options.pools.c_str());
    return 2;
  }
  return prunerc::bench::run(only, json, options);
}
