#include "ir/interp/elements.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace prunerc::ir {

std::vector<int64_t> sample_positions(std::span<const int64_t> shape, int64_t count, Rng& rng) {
  int64_t total = 1;
  for (int64_t extent : shape) total *= extent;
  std::vector<int64_t> out;
  if (total <= count) {
    for (int64_t i = 0; i < total; ++i) out.push_back(i);
    return out;
  }
  std::unordered_set<int64_t> seen;
  const auto add = [&](const std::vector<int64_t>& at) {
    int64_t flat = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + at[d];
    if (static_cast<int64_t>(out.size()) < count && seen.insert(flat).second) out.push_back(flat);
  };
  const auto random_point = [&] {
    std::vector<int64_t> at;
    for (int64_t extent : shape) at.push_back(rng.between(0, extent - 1));
    return at;
  };
  const std::size_t num_corners = std::size_t{1} << std::min<std::size_t>(shape.size(), 6);
  for (std::size_t corner = 0; corner < num_corners; ++corner) {
    std::vector<int64_t> at;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      at.push_back(((corner >> std::min<std::size_t>(d, 6)) & 1) != 0 ? shape[d] - 1 : 0);
    }
    add(at);
  }
  // Edges of each dimension, where tails and guards go wrong.
  const int64_t per_edge = std::max<int64_t>(1, count / (8 * static_cast<int64_t>(shape.size())));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    for (int64_t edge : {int64_t{0}, shape[d] - 1, std::max<int64_t>(0, shape[d] - 2)}) {
      for (int64_t i = 0; i < per_edge; ++i) {
        std::vector<int64_t> at = random_point();
        at[d] = edge;
        add(at);
      }
    }
  }
  while (static_cast<int64_t>(out.size()) < count) add(random_point());
  return out;
}

bool accepts(const Reference& reference, DType dtype, double found) {
  const double value = is_float(dtype) ? reference.value : static_cast<double>(reference.integer);
  if (std::isnan(value) || std::isnan(found)) return std::isnan(value) && std::isnan(found);
  if (std::isinf(value) || std::isinf(found)) {
    return value == found || std::isinf(reference.bound);
  }
  return std::fabs(found - value) <= reference.bound;
}

}  // namespace prunerc::ir
