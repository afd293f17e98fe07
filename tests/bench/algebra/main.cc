// Algebra: what its search tries and spares: ./dev bench algebra [--only GROUP] [--json OUT]
#include "tests/bench/algebra/prune.h"

#include <CLI/CLI.hpp>

#include <string>

int main(int argc, char** argv) {
  using namespace prunerc::bench;  // NOLINT: a benchmark
  PruneOptions prune;
  std::string only, json;
  CLI::App app("what the search for other forms tries and spares");
  app.add_option("--only", only, "one group: prune");
  app.add_option("--prune-seconds", prune.seconds, "at which a search without the filter ends");
  app.add_option("--prune-ops", prune.max_ops, "of the largest search");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  const Group groups[] = {
      {"prune", [&] { return prune_rows(prune); }, {kPruneSeed}},
  };
  return report("algebra", groups, only, json);
}
