#include "ir/onnx/text/resize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace prunerc::onnx {
namespace {

// Source: ONNX operators, Resize, coordinate_transformation_mode.
template <typename Number>
std::optional<Number> coordinate(const ResizeAxis& axis, const std::string& mode, int64_t element) {
  const auto in = static_cast<Number>(axis.in), out = static_cast<Number>(axis.out),
             scale = static_cast<Number>(axis.scale), o = static_cast<Number>(element);
  // The scale is a rounded quotient where it follows from sizes: times one size it is to be the other.
  const double product = axis.scale * static_cast<double>(axis.in);
  const bool is_out = std::fabs(product - static_cast<double>(axis.out)) < 1e-6 * product;
  const Number width = is_out ? out : static_cast<Number>(product);
  constexpr auto kHalf = static_cast<Number>(0.5);
  const Number half = (o + kHalf) / scale - kHalf;
  if (mode == "half_pixel") return half;
  if (mode == "asymmetric") return o / scale;
  if (mode == "pytorch_half_pixel") return axis.out == 1 ? 0 : half;
  if (mode == "align_corners") return width == 1 ? 0 : o * (in - 1) / (width - 1);
  if (mode == "half_pixel_symmetric") return in / 2 * (1 - out / width) + half;
  if (mode == "tf_half_pixel_for_nn") return (o + kHalf) / scale;
  if (mode == "tf_crop_and_resize") {
    // As floats: regions are often ones of a tenth, and ties are to fall as they do elsewhere.
    const auto first = static_cast<float>(axis.roi_first), last = static_cast<float>(axis.roi_last);
    const auto places = static_cast<float>(in - 1), wide = static_cast<float>(width);
    const float along = wide == 1 ? 0.5F * (last - first) * places
                                  : static_cast<float>(o) * (last - first) * places / (wide - 1);
    return static_cast<Number>(first * places + along);
  }
  return std::nullopt;
}

// A float for the nearest element: 1 / 0.1 is whole, and is to stay so.
std::optional<double> place_of(const ResizeAxis& axis, const ResizeMode& mode, int64_t element) {
  if (mode.mode != "nearest") return coordinate<double>(axis, mode.coordinates, element);
  const std::optional<float> place = coordinate<float>(axis, mode.coordinates, element);
  return place ? std::optional<double>(*place) : std::nullopt;
}

std::optional<int64_t> nearest(double x, const std::string& rounding) {
  const double low = std::floor(x);
  double chosen = 0;
  if (rounding == "floor") {
    chosen = low;
  } else if (rounding == "ceil") {
    chosen = std::ceil(x);
  } else if (rounding == "round_prefer_floor") {
    chosen = x - low <= 0.5 ? low : low + 1;
  } else if (rounding == "round_prefer_ceil") {
    chosen = x - low < 0.5 ? low : low + 1;
  } else {
    return std::nullopt;
  }
  return static_cast<int64_t>(chosen);
}

double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Taps that weigh nothing anywhere go.
void trim(ResizeTaps& plan) {
  const auto weighs = [&](int64_t tap) {
    for (std::size_t o = 0; o < plan.first.size(); ++o) {
      if (plan.weights[o * static_cast<std::size_t>(plan.taps) + static_cast<std::size_t>(tap)] !=
          0)
        return true;
    }
    return false;
  };
  int64_t begin = 0, end = plan.taps;
  while (end - begin > 1 && !weighs(end - 1)) --end;
  while (end - begin > 1 && !weighs(begin)) ++begin;
  if (end - begin == plan.taps) return;
  std::vector<double> kept;
  for (std::size_t o = 0; o < plan.first.size(); ++o) {
    for (int64_t t = begin; t < end; ++t)
      kept.push_back(
          plan.weights[o * static_cast<std::size_t>(plan.taps) + static_cast<std::size_t>(t)]);
    plan.first[o] += begin;
  }
  plan.weights = std::move(kept);
  plan.taps = end - begin;
}

std::vector<double> weights_at(double ratio, double scale, const ResizeMode& mode, int64_t start,
                               int64_t taps) {
  std::vector<double> weights;
  for (int64_t t = 0; t < taps; ++t) {
    const double distance = (static_cast<double>(start + t) - ratio) * scale;
    weights.push_back(mode.mode == "linear" ? std::clamp(1 - std::fabs(distance), 0.0, 1.0)
                                            : cubic(distance, mode.cubic_a));
  }
  return weights;
}

void normalize(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sum == 0) return;
  for (double& weight : weights) weight /= sum;
}

}  // namespace

std::optional<ResizeTaps> taps_of(const ResizeAxis& axis, const ResizeMode& mode) {
  ResizeTaps plan;
  const bool is_nearest = mode.mode == "nearest";
  if (!is_nearest && mode.mode != "linear" && mode.mode != "cubic") return std::nullopt;
  const double scale = mode.is_antialiased ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = std::floor(-(mode.mode == "cubic" ? 2 : 1) / scale) + 1;
  if (reach < static_cast<double>(-kMaxTaps)) return std::nullopt;
  const std::string rounding = !mode.rounds_by_scale ? mode.rounding
                               : axis.scale < 1      ? "ceil"
                                                     : "floor";
  const auto start = is_nearest ? 0 : static_cast<int64_t>(reach);
  plan.taps = is_nearest ? 1 : 2 - 2 * start;
  if (plan.taps > kMaxTaps || axis.out > kMaxTapWeights / plan.taps) return std::nullopt;
  for (int64_t o = 0; o < axis.out; ++o) {
    const std::optional<double> x = place_of(axis, mode, o);
    if (!x || !(std::fabs(*x) < 1e15)) return std::nullopt;
    const bool is_outside = mode.coordinates == "tf_crop_and_resize" &&
                            (*x < 0 || *x > static_cast<double>(axis.in - 1));
    plan.is_outside.push_back(is_outside);
    plan.has_outside |= is_outside;
    if (is_nearest) {
      const std::optional<int64_t> chosen = nearest(*x, rounding);
      if (!chosen) return std::nullopt;
      plan.first.push_back(is_outside ? -1 : std::clamp<int64_t>(*chosen, 0, axis.in - 1));
      plan.weights.push_back(is_outside ? 0 : 1);
      continue;
    }
    const double left = std::ceil(*x) - 1;
    const int64_t first = static_cast<int64_t>(left) + start;
    std::vector<double> weights = weights_at(*x - left, scale, mode, start, plan.taps);
    if (mode.excludes_outside) {
      for (int64_t t = 0; t < plan.taps; ++t) {
        if (first + t < 0 || first + t >= axis.in) weights[static_cast<std::size_t>(t)] = 0;
      }
    }
    if (mode.excludes_outside || mode.is_antialiased) normalize(weights);
    if (is_outside) std::fill(weights.begin(), weights.end(), 0.0);
    plan.first.push_back(first);
    plan.weights.insert(plan.weights.end(), weights.begin(), weights.end());
  }
  trim(plan);
  return plan;
}

std::optional<std::string> affine_text(const std::vector<int64_t>& first, const ResizeAxis& axis,
                                       const std::string& o, bool may_clamp) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (axis.in > kMost || axis.out > kMost) return std::nullopt;
  // floor((o*p + q)/r): every element says between which numbers q lies.
  const auto fits = [&](int64_t p, int64_t r) -> std::optional<std::string> {
    int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (std::abs(first[i]) > kMost) return std::nullopt;
      const int64_t at = static_cast<int64_t>(i) * p;
      if (!may_clamp || first[i] > 0) low = std::max(low, first[i] * r - at);
      if (!may_clamp || first[i] < axis.in - 1) high = std::min(high, (first[i] + 1) * r - 1 - at);
    }
    if (low > high) return std::nullopt;
    const int64_t q = low <= 0 && high >= 0 ? 0 : low > 0 ? low : high;
    const std::string scaled = p == 1 ? o : fmt::format("{}*{}", o, p);
    const std::string sum = q == 0  ? scaled
                            : q > 0 ? fmt::format("{} + {}", scaled, q)
                                    : fmt::format("{} - {}", scaled, -q);
    if (r == 1) return q == 0 && p == 1 ? o + " + 0" : sum;
    return q == 0 && p == 1 ? fmt::format("{}/{}", o, r) : fmt::format("({})/{}", sum, r);
  };
  const int64_t common = std::gcd(axis.in, axis.out);
  if (auto text = fits(axis.in / common, axis.out / common)) return text;
  for (int64_t r = 1; r <= 8; ++r) {
    const double p = std::round(static_cast<double>(r) / axis.scale);
    if (p < 1 || p > 1e6 || std::fabs(p * axis.scale - static_cast<double>(r)) > 1e-6) continue;
    if (auto text = fits(static_cast<int64_t>(p), r)) return text;
  }
  return std::nullopt;
}

}  // namespace prunerc::onnx
