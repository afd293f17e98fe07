// The draft in numbers: ./dev bench draft [--only rate|quality|replay] [--json OUT]
#include "tests/bench/draft_rows.h"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace prunerc::bench {
namespace {

int run(std::string_view only, const std::string& json, const DraftOptions& options) {
  const Group groups[] = {
      {"rate", [&] { return rate_rows(options); }},
      {"quality", [&] { return quality_rows(options); }},
      {"replay", [&] { return replay_rows(options); }},
  };
  return report("draft", groups, only, json);
}

}  // namespace
}  // namespace prunerc::bench

int main(int argc, char** argv) {
  prunerc::bench::DraftOptions options;
  std::string only;
  std::string json;
  CLI::App app("the draft in numbers");
  app.add_option("--only", only, "one group: rate, quality, replay");
  app.add_option("--seconds", options.seconds, "CPU seconds for each rate");
  app.add_option("--pools", options.pools, "folder of the pools");
  app.add_option("--bootstrap", options.bootstrap, "resamplings for each interval");
  app.add_option("--seeds", options.seeds, "of replayed searches");
  app.add_option("--trials", options.trials, "of replayed searches");
  app.add_option("--seed", options.seed, "of everything random");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  return prunerc::bench::run(only, json, options);
}
