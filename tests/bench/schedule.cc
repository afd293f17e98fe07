// The schedule language in numbers: ./dev bench schedule [--only PREFIX] [--json OUT]
#include "tests/bench/schedule_rows.h"

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
  std::string_view name;  // its rows' names start with it, or are listed in the header
  std::vector<Row> (*measure)();
};

constexpr Group kGroups[] = {
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

int run(std::string_view only, const std::string& json) {
  const std::string where = machine();
  fmt::print("{}\n{:<32} {:>14} {:<12} {:>10}\n", where, "row", "value", "unit", "goal");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Group& group : kGroups) {
    if (!only.empty() && group.name != only) continue;
    for (const Row& row : group.measure()) {
      fmt::print("{:<32} {:>14.4g} {:<12} {:>10} {}\n", row.name, row.value, row.unit,
                 row.goal ? fmt::format("{:.4g}", *row.goal) : "", row.note);
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
  std::string only;
  std::string json;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--only") only = argv[i + 1];
    if (option == "--json") json = argv[i + 1];
  }
  return prunerc::bench::run(only, json);
}
