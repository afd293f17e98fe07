// The draft in numbers: ./dev bench draft [--only rate|quality|replay] [--json OUT]
#include "tests/bench/draft_rows.h"

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
  std::vector<Row> (*measure)(const DraftOptions&);
};

constexpr Group kGroups[] = {
    {"rate", rate_rows},
    {"quality", quality_rows},
    {"replay", replay_rows},
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

int run(std::string_view only, const std::string& json, const DraftOptions& options) {
  const std::string where = machine();
  fmt::print("{}\n{:<44} {:>12} {:<6} {:>8}\n", where, "row", "value", "unit", "goal");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Group& group : kGroups) {
    if (!only.empty() && group.name != only) continue;
    for (const Row& row : group.measure(options)) {
      fmt::print("{:<44} {:>12.4g} {:<6} {:>8} {}{}\n", row.name, row.value, row.unit,
                 row.goal ? fmt::format("{:.4g}", *row.goal) : "", row.note,
                 misses(row) ? " MISSES ITS GOAL" : "");
      std::fflush(stdout);
      rows.push_back({{"name", row.name},
                      {"value", row.value},
                      {"unit", row.unit},
                      {"goal", row.goal ? nlohmann::ordered_json(*row.goal) : nullptr},
                      {"note", row.note}});
    }
  }
  if (json.empty()) return 0;
  std::ofstream out(json);
  out << nlohmann::ordered_json{{"bench", "draft"}, {"machine", where}, {"rows", rows}}.dump(1)
      << "\n";
  return out.good() ? 0 : 1;
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
