#include "tests/bench/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <thread>

namespace prunerc::bench {
namespace {

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

}  // namespace

int report(const std::string& bench, std::span<const Group> groups, std::string_view only,
           const std::string& json) {
  const std::string where = machine();
  fmt::print("{}\n{:<44} {:>14} {:<12} {:>10}\n", where, "row", "value", "unit", "goal");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Group& group : groups) {
    if (only.empty() ? group.on_request : group.name != only) continue;
    for (const Row& row : group.measure()) {
      fmt::print("{:<44} {:>14.4g} {:<12} {:>10} {}{}\n", row.name, row.value, row.unit,
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
  out << nlohmann::ordered_json{{"bench", bench}, {"machine", where}, {"rows", rows}}.dump(1)
      << "\n";
  return out.good() ? 0 : 1;
}

}  // namespace prunerc::bench
