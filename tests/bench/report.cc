#include "tests/bench/report.h"

#include "runtime/cpu/host.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>

namespace prunerc::bench {
namespace {

// "AMD EPYC, 2 threads (znver5)": virtual machines often hide which EPYC they are.
std::string machine() {
  return fmt::format("{} ({})", runtime::host_model_name(), runtime::host_isa().llvm_cpu);
}

// "2026-11-23", UTC.
std::string today() {
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::chrono::year_month_day day{now};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
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
  const nlohmann::ordered_json all{
      {"bench", bench}, {"machine", where}, {"date", today()}, {"rows", rows}};
  out << all.dump(1) << "\n";
  return out.good() ? 0 : 1;
}

}  // namespace prunerc::bench
