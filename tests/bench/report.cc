#include "tests/bench/report.h"

#include "runtime/cpu/host.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <system_error>

namespace prunerc::bench {
namespace {

// "2026-11-23", UTC.
std::string today() {
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::chrono::year_month_day day{now};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

std::string joined_names(std::span<const Group> groups) {
  std::string out;
  for (const Group& group : groups) {
    out += out.empty() ? "" : ", ";
    out += group.name;
  }
  return out;
}

bool misses(const Row& row) {
  return row.goal && (row.at_most ? row.value > *row.goal : row.value < *row.goal);
}

std::string commit() {
  const char* const given = std::getenv("PRUNERC_COMMIT");
  return given != nullptr && *given != '\0' ? given : "unknown";
}

nlohmann::ordered_json to_json(const Row& row) {
  nlohmann::ordered_json out{
      {"name", row.name}, {"value", row.value}, {"unit", row.unit}, {"goal", nullptr}};
  if (row.goal) out["goal"] = *row.goal;
  out["note"] = row.note;
  if (row.at_most) out["at_most"] = true;
  return out;
}

// A line for each row, so that a new measurement of one row changes one line. Whole, or what is there
// stays.
bool write(const std::string& path, const nlohmann::ordered_json& facts,
           std::span<const nlohmann::ordered_json> rows) {
  const std::string draft = path + ".draft";
  std::ofstream out(draft);
  out << "{\n";
  for (const auto& [name, value] : facts.items()) {
    out << " " << nlohmann::ordered_json(name).dump() << ": " << value.dump() << ",\n";
  }
  out << " \"rows\": [";
  std::string_view separator = "\n";
  for (const nlohmann::ordered_json& row : rows) {
    out << separator << "  " << row.dump();
    separator = ",\n";
  }
  out << "\n ]\n}\n";
  out.close();
  std::error_code code;
  if (out.good()) std::filesystem::rename(draft, path, code);
  return out.good() && !code;
}

void print(const Row& row) {
  fmt::print("{:<44} {:>14.4g} {:<12} {:>10} {}{}\n", row.name, row.value, row.unit,
             row.goal ? fmt::format("{:.4g}", *row.goal) : "", row.note,
             misses(row) ? " MISSES ITS GOAL" : "");
  std::fflush(stdout);
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return values.empty() ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

std::vector<uint64_t> seeds_from(uint64_t first, int count) {
  std::vector<uint64_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

int report(const std::string& bench, std::span<const Group> groups, std::string_view only,
           const std::string& json) {
  if (!only.empty() && std::none_of(groups.begin(), groups.end(),
                                    [&](const Group& group) { return group.name == only; })) {
    fmt::print(stderr, "{}: --only names no group: '{}'; there are {}\n", bench, only,
               joined_names(groups));
    return 2;
  }
  const std::string where = runtime::host_name();
  fmt::print("{}\n{:<44} {:>14} {:<12} {:>10}\n", where, "row", "value", "unit", "goal");
  std::vector<nlohmann::ordered_json> rows;
  std::set<uint64_t> seeds;
  int status = 0;
  for (const Group& group : groups) {
    if (only.empty() ? group.on_request : group.name != only) continue;
    seeds.insert(group.seeds.begin(), group.seeds.end());
    const std::vector<Row> found = group.measure();
    if (found.empty()) fmt::print(stderr, "{}: the group '{}' gives no rows\n", bench, group.name);
    for (const Row& row : found) {
      print(row);
      rows.push_back(to_json(row));
      if (std::isfinite(row.value)) continue;
      fmt::print(stderr, "{}: the value of '{}' is no number\n", bench, row.name);
      status = 1;
    }
  }
  if (rows.empty()) return 1;
  if (json.empty()) return status;
  const nlohmann::ordered_json facts{{"bench", bench},
                                     {"machine", where},
                                     {"date", today()},
                                     {"commit", commit()},
                                     {"seeds", seeds}};
  if (write(json, facts, rows)) return status;
  fmt::print(stderr, "{}: {} cannot be written\n", bench, json);
  return 1;
}

}  // namespace prunerc::bench
