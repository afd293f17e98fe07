// The schedule language in numbers: ./dev bench schedule [--only GROUP] [--json OUT]
#include "tests/bench/schedule_rows.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace prunerc::bench {
namespace {

struct Group {
  std::string_view name;
  std::vector<Row> (*measure)(const Options&);
};

constexpr Group kGroups[] = {
    {"replay", [](const Options&) { return replay_rows(); }},
    {"dot", [](const Options&) { return dot_rows(); }},
    {"rate", rate_rows},
    {"twin", twin_rows},
    {"traces", trace_rows},
    {"mutants", mutant_rows},
};

std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return fmt::format("{}, {} threads", line.substr(colon + 2),
                         std::thread::hardware_concurrency());
    }
  }
  return "unknown";
}

bool misses(const Row& row) {
  return row.goal && (row.at_most ? row.value > *row.goal : row.value < *row.goal);
}

int run(std::string_view only, const std::string& json, const Options& options) {
  const std::string where = machine();
  fmt::print("{}\n{:<32} {:>14} {:<12} {:>10}\n", where, "row", "value", "unit", "goal");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Group& group : kGroups) {
    if (!only.empty() && group.name != only) continue;
    for (const Row& row : group.measure(options)) {
      fmt::print("{:<32} {:>14.4g} {:<12} {:>10} {}{}\n", row.name, row.value, row.unit,
                 row.goal ? fmt::format("{:.4g}", *row.goal) : "", row.note,
                 misses(row) ? " MISSES ITS GOAL" : "");
      std::fflush(stdout);
      rows.push_back({{"name", row.name},
                      {"value", row.value},
                      {"unit", row.unit},
                      {"goal", row.goal ? nlohmann::ordered_json(*row.goal) : nullptr}});
    }
  }
  if (json.empty()) return 0;
  std::ofstream out(json);
  out << nlohmann::ordered_json{{"bench", "schedule"}, {"machine", where}, {"rows", rows}}.dump(1)
      << "\n";
  return out.good() ? 0 : 1;
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
