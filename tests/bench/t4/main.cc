// Analyzers judged by other people's GPUs: ./dev bench t4 [--json OUT]
#include "tests/bench/t4/rows.h"

#include <CLI/CLI.hpp>

#include <string>

int main(int argc, char** argv) {
  using namespace prunerc::bench;  // NOLINT: a benchmark
  T4BenchOptions options;
  std::string json;
  int seeds = 16;
  CLI::App app("analyzers judged by what others measured on their GPUs");
  app.add_option("--pools", options.pools, "folder of the pools");
  app.add_option("--fit", options.fit, "pools whose times fit the coefficients, comma-separated")
      ->delimiter(',');
  app.add_option("--seeds", seeds, "of how ties are broken")->check(CLI::PositiveNumber);
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  options.seeds = seeds_from(1, seeds);
  const Group groups[] = {
      {"t4", [&] { return t4_rows(read_pools(options.pools), options); }, options.seeds}};
  return report("t4", groups, "", json);
}
