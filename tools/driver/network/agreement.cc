#include "tools/driver/network/agreement.h"

#include "ir/support/rng.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

namespace prunerc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Runs of the reference with moved floats: a value that a rounding decides is turned only by those that
/// move it in the right direction.
constexpr uint64_t kNumMoved = 8;
/// A network's kernels round at other places and more often than moved floats do.
constexpr double kOfDeviation = 4;
/// Above this part of a tensor's largest value, what is allowed hides wrong kernels.
constexpr double kMostAllowed = 0.25;

/// Largest difference that is allowed, as a part of the tensor's largest value: errors of one call are
/// inputs of the next.
double allowed(ir::DType dtype) {
  constexpr double kWide = 1e-3, kNarrow = 4e-2;
  if (dtype == ir::DType::kF16 || dtype == ir::DType::kBF16) return kNarrow;
  return ir::is_float(dtype) ? kWide : 0;
}

// As a part of a float.
double step_of(ir::DType dtype, bool narrow) {
  switch (dtype) {
    case ir::DType::kF64: return 0x1p-51;
    case ir::DType::kF32: return 0x1p-22;
    case ir::DType::kF16: return narrow ? 0x1p-10 : 0;
    case ir::DType::kBF16: return narrow ? 0x1p-7 : 0;
    case ir::DType::kI64:
    case ir::DType::kI32:
    case ir::DType::kI8:
    case ir::DType::kU8:
    case ir::DType::kBool: return 0;
  }
  return 0;
}

ir::Tensor tensor_of(const net::Tensor& tensor, std::string_view bytes) {
  ir::Tensor out(tensor.dtype, tensor.shape);
  std::memcpy(out.data.data(), bytes.data(), bytes.size());
  return out;
}

// Of element `i`. Infinite: one is no number, or infinite, and the other is not.
double difference(const ir::Tensor& a, const ir::Tensor& b, int64_t i) {
  const double x = a.get(i), y = b.get(i);
  // Large whole numbers that differ may be the same as doubles.
  if (!ir::is_float(a.dtype))
    return a.get_int(i) == b.get_int(i) ? 0 : std::max(1.0, std::fabs(x - y));
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  const double apart = std::fabs(x - y);
  return std::isnan(apart) ? kInfinity : apart;
}

/// Of a tensor in a run with moved floats: of one element, and of all together.
struct Deviation {
  double largest = 0, total = 0;
};

void compare_tensor(const NetValues& values, std::size_t k, const Deviation& deviation,
                    NetComparison* found) {
  const net::Tensor& tensor = values.tensors[k];
  const ir::Tensor got = tensor_of(tensor, values.got[k]), want = tensor_of(tensor, values.want[k]);
  const int64_t n = want.num_elements();
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (std::isfinite(want.get(i))) largest = std::max(largest, std::fabs(want.get(i)));
  }
  const double usual = allowed(tensor.dtype) * largest;
  const double bound = std::max(usual, kOfDeviation * deviation.largest);
  double beyond = 0;
  for (int64_t i = 0; i < n && found->what.empty(); ++i) {
    const double error = difference(got, want, i);
    if (error > usual) beyond += error;
    if (error > bound) {
      found->what = fmt::format("{}[{}] is {:.9g}, {} {:.9g} (allowed: {:.3g}{})", tensor.name, i,
                                got.get(i), values.whose, want.get(i), bound,
                                bound > usual ? ", four times its sensitivity" : "");
    } else if (bound > 0 && std::isfinite(bound)) {
      found->worst = std::max(found->worst, error / bound);
    }
    found->num_elems += std::isnan(want.get(i)) ? 0 : 1;
  }
  if (beyond == 0) return;
  // Few elements that flip say nothing of the others.
  const double most = kOfDeviation * (deviation.total + deviation.largest);
  if (found->what.empty() && beyond > most) {
    found->what = fmt::format(
        "{} differs by {:.3g} in all its elements together (allowed: {:.3g}, four times its "
        "sensitivity)",
        tensor.name, beyond, most);
  }
  const double of_largest = largest > 0 ? deviation.largest / largest : kInfinity;
  found->sensitivity.push_back(
      {tensor.name, deviation.largest, deviation.largest > 0 ? of_largest : 0});
}

NetComparison compare_all(const NetValues& values, const std::vector<Deviation>& deviations) {
  NetComparison found;
  for (std::size_t k = 0; k < values.tensors.size() && found.what.empty(); ++k)
    compare_tensor(values, k, deviations[k], &found);
  return found;
}

Deviation deviation_of(const ir::Tensor& as_is, const ir::Tensor& moved) {
  Deviation all;
  for (int64_t i = 0; i < as_is.num_elements(); ++i) {
    const double one = difference(as_is, moved, i);
    all.largest = std::max(all.largest, one);
    all.total += one;
  }
  return all;
}

// Of each tensor, over some runs.
Result<std::vector<Deviation>> deviations_of(const NetValues& values, const MovedRun& run) {
  const std::vector<net::Tensor>& tensors = values.tensors;
  std::vector<std::string> own;
  if (!values.is_own) {
    PRUNERC_TRY(own, run(0));
  }
  const std::vector<std::string>& as_is = values.is_own ? values.want : own;
  std::vector<Deviation> deviations(tensors.size());
  for (uint64_t seed = 1; seed <= kNumMoved; ++seed) {
    PRUNERC_TRY(const std::vector<std::string> moved, run(seed));
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      const Deviation one =
          deviation_of(tensor_of(tensors[k], as_is[k]), tensor_of(tensors[k], moved[k]));
      deviations[k].largest = std::max(deviations[k].largest, one.largest);
      deviations[k].total = std::max(deviations[k].total, one.total);
    }
  }
  return deviations;
}

// What was found wrong, unless moved floats of 16 bits change as much: then it is not verifiable.
Result<NetComparison> unless_narrow(const NetValues& values, const NetComparison& wrong,
                                    const MovedRun& run) {
  PRUNERC_TRY(const std::vector<Deviation> deviations, deviations_of(values, run));
  NetComparison unsure = compare_all(values, deviations);
  if (!unsure.what.empty()) return wrong;
  unsure.agreement = Agreement::kNotVerifiable;
  unsure.what = fmt::format(
      "floats of 16 bits moved by a unit change as much, and a wrong kernel could hide in that; {}",
      wrong.what);
  return unsure;
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::fabs(std::frexp(x, &exponent)) == 0.5;
}

}  // namespace

bool has_narrow_floats(const net::Net& net) {
  return std::any_of(net.tensors.begin(), net.tensors.end(), [](const net::Tensor& tensor) {
    return (tensor.role == net::Role::kInput || tensor.role == net::Role::kConst) &&
           step_of(tensor.dtype, false) != step_of(tensor.dtype, true);
  });
}

void move_floats(uint64_t seed, ir::Tensor* tensor, bool narrow) {
  const double step = step_of(tensor->dtype, narrow);
  if (step == 0) return;
  Rng rng(seed);
  for (int64_t i = 0; i < tensor->num_elements(); ++i) {
    const double by = rng.chance(0.5) ? 1 + step : 1 - step, x = tensor->get(i);
    // No fraction is near the largest float: none becomes infinite.
    if (x != std::round(x) && !is_power_of_two(x)) tensor->set(i, x * by);
  }
}

std::string_view to_string(Agreement agreement) {
  switch (agreement) {
    case Agreement::kRight: return "right";
    case Agreement::kSensitive: return "within sensitivity";
    case Agreement::kNotVerifiable: return "not verifiable";
    case Agreement::kWrong: return "wrong";
  }
  return "";
}

void NetComparison::add(const NetComparison& other) {
  if (other.agreement > agreement) what = other.what;
  agreement = std::max(agreement, other.agreement);
  num_elems += other.num_elems;
  worst = std::max(worst, other.worst);
  for (const Sensitivity& one : other.sensitivity) {
    const auto same = std::find_if(sensitivity.begin(), sensitivity.end(),
                                   [&](const auto& known) { return known.tensor == one.tensor; });
    if (same == sensitivity.end()) {
      sensitivity.push_back(one);
    } else if (one.deviation > same->deviation) {
      *same = one;
    }
  }
}

Result<NetComparison> compare_net(const NetValues& values, const MovedRun& run,
                                  const MovedRun& narrow_run) {
  NetComparison usual = compare_all(values, std::vector<Deviation>(values.tensors.size()));
  if (usual.what.empty()) return usual;
  PRUNERC_TRY(const std::vector<Deviation> deviations, deviations_of(values, run));
  NetComparison found = compare_all(values, deviations);
  found.agreement = found.what.empty() ? Agreement::kSensitive : Agreement::kWrong;
  if (!found.what.empty()) return narrow_run ? unless_narrow(values, found, narrow_run) : found;
  for (const Sensitivity& one : found.sensitivity) {
    if (kOfDeviation * one.of_largest <= kMostAllowed) continue;
    found.agreement = Agreement::kNotVerifiable;
    found.what = fmt::format(
        "floats moved by a rounding change {} by {:.3g}, {:.2g}% of its largest value, and a wrong "
        "kernel could hide in that; {}",
        one.tensor, one.deviation, 100 * one.of_largest, usual.what);
    break;
  }
  return found;
}

}  // namespace prunerc
