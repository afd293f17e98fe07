#include "tests/bench/draft/pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

namespace prunerc::bench {

std::vector<NamedPool> read_pools(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    if (entry.path().extension() == ".pool") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) fmt::print("no pools in {}\n", folder);
  std::vector<NamedPool> out;
  for (const std::filesystem::path& file : files) {
    const std::string name = file.stem().string();
    out.push_back({name, name.substr(0, name.find('_')), search::read_pool(file.string()).value()});
  }
  return out;
}

double best_of(const search::Pool& pool) {
  double best = std::numeric_limits<double>::infinity();
  for (const search::PoolRow& row : pool.rows) {
    if (row.ok()) best = std::min(best, row.median_ns);
  }
  return best;
}

double mean(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace prunerc::bench
