// Counts the instances of a block that a mask leaves.
#include "ir/analysis/masks/masks.h"
#include "ir/int_math.h"
#include "ir/query.h"

#include <algorithm>

namespace prunerc::ir {

std::optional<double> share_where(const Block& block, std::span<const Linear> conditions) {
  constexpr int64_t kMostPoints = int64_t{1} << 16;
  struct Axis {
    VarId var;
    int64_t extent;
    std::vector<int64_t> coefs;  // by condition
  };
  std::vector<Axis> axes;
  for (const IterVar& iter : block.iters) {
    const std::optional<int64_t> extent = constant_value(iter.extent);
    if (!extent || *extent < 1) return std::nullopt;
    axes.push_back({iter.var->id, *extent, std::vector<int64_t>(conditions.size(), 0)});
  }
  for (std::size_t c = 0; c < conditions.size(); ++c) {
    for (const Term& term : conditions[c].terms) {
      const Var* var = term.degree == 1 ? term.atoms[0].as<Var>() : nullptr;
      const auto axis = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) {
        return var != nullptr && a.var == var->id;
      });
      if (axis == axes.end()) return std::nullopt;
      axis->coefs[c] = term.coef;
    }
  }
  std::erase_if(axes, [](const Axis& a) {
    return std::all_of(a.coefs.begin(), a.coefs.end(), [](int64_t k) { return k == 0; });
  });
  // The longest axis by arithmetic, the others point by point.
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return a.extent < b.extent; });
  const Axis inner =
      axes.empty() ? Axis{{}, 1, std::vector<int64_t>(conditions.size(), 0)} : axes.back();
  if (!axes.empty()) axes.pop_back();
  int64_t points = 1;
  for (const Axis& axis : axes) {
    if (axis.extent > kMostPoints / points) return std::nullopt;
    points *= axis.extent;
  }
  double holds = 0;
  for (int64_t i = 0; i < points; ++i) {
    int64_t low = 0, high = inner.extent - 1;
    for (std::size_t c = 0; c < conditions.size(); ++c) {
      int64_t value = conditions[c].constant, rest = i;
      for (const Axis& axis : axes) {
        value += axis.coefs[c] * (rest % axis.extent);
        rest /= axis.extent;
      }
      const int64_t k = inner.coefs[c];
      if (k > 0) high = std::min(high, floor_div(-value, k));
      if (k < 0) low = std::max(low, -floor_div(-value, -k));
      if (k == 0 && value > 0) high = -1;
    }
    holds += static_cast<double>(std::max<int64_t>(0, high - low + 1));
  }
  return holds / (static_cast<double>(points) * static_cast<double>(inner.extent));
}

}  // namespace prunerc::ir
