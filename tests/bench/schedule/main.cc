// The schedule language in numbers: ./dev bench schedule [--only GROUP] [--json OUT]
#include "tests/bench/schedule/rows.h"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace prunerc::bench {
namespace {

int run(std::string_view only, const std::string& json, const Options& options) {
  constexpr uint64_t kFillSeed = 7;  // of the operands of dot_fraction.cc
  const Group groups[] = {
      {"replay", replay_rows, {options.seed}},
      {"dot", dot_rows, {kFillSeed}},
      {"rate", [&] { return rate_rows(options); }, {options.seed}},
      {"twin", [&] { return twin_rows(options); }, {options.seed}},
      {"traces", [&] { return trace_rows(options); }, {options.seed}},
      {"mutants", [&] { return mutant_rows(options); }, {options.seed}},
  };
  return report("schedule", groups, only, json);
}

}  // namespace
}  // namespace prunerc::bench

int main(int argc, char** argv) {
  prunerc::bench::Options options;
  std::string only;
  std::string json;
  CLI::App app("the schedule language in numbers");
  app.add_option("--only", only, "one group: replay, dot, rate, twin, traces, mutants");
  app.add_option("--traces", options.traces, "random legal traces");
  app.add_option("--mutants", options.mutants, "mutants that count");
  app.add_option("--candidates", options.candidates, "candidates of each operator");
  app.add_option("--seed", options.seed, "of everything random");
  app.add_option("--json", json, "write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  return prunerc::bench::run(only, json, options);
}
