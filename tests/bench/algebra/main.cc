// Algebra: what is found, how fast, and what it gains: ./dev bench algebra [--only GROUP] [--json OUT]
#include "tests/bench/algebra/groups.h"
#include "tests/bench/algebra/prune.h"
#include "tools/driver/prunerc.h"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

int main(int argc, char** argv) {
  using namespace prunerc::bench;  // NOLINT: a benchmark
  if (const std::optional<int> status = prunerc::serve_worker(argc, argv)) return *status;
  PruneOptions prune;
  std::string only, json;
  CLI::App app("what algebra finds, how fast, and what it gains");
  app.add_option("--only", only, "find, prune, bound, speed, networks");
  app.add_option("--prune-seconds", prune.seconds, "at which a search without the filter ends");
  app.add_option("--prune-ops", prune.max_ops, "of the largest search");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  const Group groups[] = {
      {"find", find_rows, {1}},
      {"prune", [&] { return prune_rows(prune); }, {kPruneSeed}},
      {"bound", bound_rows, {kBoundSeed}},
      {"speed", speed_rows, {kSpeedSeed}, true},
      {"networks", network_rows, seeds_from(kSpeedSeed, kNetworkSeeds), true},
  };
  return report("algebra", groups, only, json);
}
