// Images made larger and smaller: one axis after the other, unless single elements are copied.
#include "ir/onnx/row.h"
#include "ir/onnx/text/resize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prunerc::onnx {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 24;
/// Sums of so few taps are written out.
constexpr int64_t kFewTaps = 4;

const Value* weight_table(Row& row, const ResizeTaps& plan, ir::DType dtype) {
  ir::Tensor tensor(dtype, {static_cast<int64_t>(plan.first.size()), plan.taps});
  for (std::size_t i = 0; i < plan.weights.size(); ++i)
    tensor.set(static_cast<int64_t>(i), plan.weights[i]);
  return row.constant(tensor);
}

bool is_identity(const ResizeTaps& plan, const ResizeAxis& axis) {
  if (axis.in != axis.out || plan.taps != 1 || plan.has_outside) return false;
  for (std::size_t i = 0; i < plan.first.size(); ++i) {
    if (plan.first[i] != static_cast<int64_t>(i) || plan.weights[i] != 1) return false;
  }
  return true;
}

// All axes at once: each element is a copy of one.
Result<const Value*> copied(Row& row, const Value& x, const std::vector<ResizeAxis>& axes,
                            const std::vector<ResizeTaps>& plans, double outside) {
  std::vector<Arg> args = {{"X", &x}};
  std::vector<std::string> reads;
  std::vector<int64_t> shape;
  bool may_leave = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    shape.push_back(axes[i].out);
    const std::string index = fmt::format("i{}", i);
    if (is_identity(plans[i], axes[i])) {
      reads.push_back(index);
      continue;
    }
    if (axes[i].in == 1 && !plans[i].has_outside) {
      reads.push_back("0");
      continue;
    }
    if (!plans[i].has_outside) {
      if (const auto text = affine_text(plans[i].first, axes[i], index, false)) {
        reads.push_back(*text);
        continue;
      }
      if (const auto text = affine_text(plans[i].first, axes[i], index, true)) {
        reads.push_back(fmt::format("clamp({}, 0, {})", *text, axes[i].in - 1));
        continue;
      }
    }
    args.push_back({fmt::format("T{}", i), row.int_vector(plans[i].first)});
    reads.push_back(fmt::format("T{}[{}]", i, index));
    may_leave = true;
  }
  return row.call("resize", std::move(args), x.dtype, shape,
                  fmt::format("{} = {}{};", at("Y", index_list(x.rank())), at("X", reads),
                              may_leave ? " or " + number_text(x.dtype, outside) : ""));
}

/// One axis as weighted sums, in f64 where the image is.
Result<const Value*> summed(Row& row, const Value& x, std::size_t axis, const ResizeAxis& sizes,
                            const ResizeTaps& plan, ir::DType dtype, double outside) {
  const ir::DType wide = x.dtype == ir::DType::kF64 ? x.dtype : ir::DType::kF32;
  std::vector<Arg> args = {{"X", &x}, {"W", weight_table(row, plan, wide)}};
  const std::string index = fmt::format("i{}", axis);
  std::string first;
  bool may_leave = false;
  if (const auto text = affine_text(plan.first, sizes, index, false)) {
    first = *text;
  } else {
    args.push_back({"T", row.int_vector(plan.first)});
    first = fmt::format("T[{}]", index);
    may_leave = true;
  }
  const auto [low, high] = std::minmax_element(plan.first.begin(), plan.first.end());
  const bool clamps = *low < 0 || *high + plan.taps > sizes.in;
  std::vector<std::string> reads = index_list(x.rank());
  const auto element = [&](const std::string& tap) {
    const std::string place = tap == "0" ? first : fmt::format("{} + {}", first, tap);
    reads[axis] = sizes.in == 1 ? "0"
                  : clamps      ? fmt::format("clamp({}, 0, {})", place, sizes.in - 1)
                                : place;
    std::string read = at("X", reads);
    if (may_leave && sizes.in != 1) read = fmt::format("({} or 0)", read);
    if (dtype != x.dtype && ir::byte_size(x.dtype) < 4) read = fmt::format("f32({})", read);
    return fmt::format("{} * W[{},{}]", read, index, tap);
  };
  std::string sum;
  if (plan.taps <= kFewTaps) {
    for (int64_t t = 0; t < plan.taps; ++t)
      sum += (t == 0 ? "" : " + ") + element(std::to_string(t));
  } else {
    sum = fmt::format("(sum:{}[t in 0..{}] {})", ir::to_string(wide), plan.taps, element("t"));
  }
  if (plan.has_outside) {
    ir::Tensor added(wide, {sizes.out});
    for (std::size_t i = 0; i < plan.is_outside.size(); ++i)
      added.set(static_cast<int64_t>(i), plan.is_outside[i] ? outside : 0);
    args.push_back({"E", row.constant(added)});
    sum += fmt::format(" + E[{}]", index);
  }
  std::vector<int64_t> shape = x.shape;
  shape[axis] = sizes.out;
  if (ir::byte_size(dtype) < 4) sum = fmt::format("{}({})", ir::to_string(dtype), sum);
  return row.call("resize", std::move(args), dtype, shape,
                  fmt::format("{} = {};", at("Y", index_list(x.rank())), sum));
}

Result<std::vector<std::size_t>> axes_of(Row& row, const Value& x) {
  std::vector<std::size_t> axes;
  for (const int64_t given : row.attr_ints("axes")) {
    const std::optional<int> axis = axis_of(given, x.rank());
    if (!axis || std::find(axes.begin(), axes.end(), static_cast<std::size_t>(*axis)) != axes.end())
      return row.unsupported("an axis that is none, or twice");
    axes.push_back(static_cast<std::size_t>(*axis));
  }
  for (std::size_t i = 0; axes.size() < x.shape.size() && !row.has("axes"); ++i) axes.push_back(i);
  return axes;
}

// Where sizes keep the aspect ratio one scale holds for all of them.
Result<void> keep_aspect(Row& row, std::vector<ResizeAxis>& sizes,
                         const std::vector<std::size_t>& axes) {
  const std::string policy = row.attr_string("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || axes.empty()) return {};
  if (policy != "not_larger" && policy != "not_smaller")
    return row.unsupported("the aspect ratio's policy");
  double scale = sizes[axes[0]].scale;
  for (const std::size_t axis : axes) {
    scale = policy == "not_larger" ? std::min(scale, sizes[axis].scale)
                                   : std::max(scale, sizes[axis].scale);
  }
  for (const std::size_t axis : axes) {
    const double extent = std::floor(scale * static_cast<double>(sizes[axis].in) + 0.5);
    if (!(extent >= 1 && extent <= static_cast<double>(kMaxExtent)))
      return row.unsupported("sizes out of range");
    sizes[axis].out = static_cast<int64_t>(extent);
    sizes[axis].scale = scale;
  }
  return {};
}

Result<void> set_scales(Row& row, std::vector<ResizeAxis>& sizes,
                        const std::vector<std::size_t>& axes, const std::vector<double>& scales) {
  if (scales.size() != axes.size()) return row.unsupported("scales of another rank");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = sizes[axes[i]];
    // As floats, as the runtimes compute it.
    const float extent = std::floor(static_cast<float>(scales[i]) * static_cast<float>(axis.in));
    if (!(scales[i] > 0) || !(extent >= 1 && extent <= static_cast<float>(kMaxExtent)))
      return row.unsupported("scales out of range");
    axis.scale = scales[i];
    axis.out = static_cast<int64_t>(extent);
  }
  return {};
}

Result<void> set_sizes(Row& row, std::vector<ResizeAxis>& sizes,
                       const std::vector<std::size_t>& axes, const std::vector<int64_t>& given) {
  if (given.size() != axes.size()) return row.unsupported("sizes of another rank");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = sizes[axes[i]];
    if (given[i] < 1 || given[i] > kMaxExtent) return row.unsupported("sizes out of range");
    axis.out = given[i];
    axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
  }
  return keep_aspect(row, sizes, axes);
}

bool is_given(const Value* value) { return value != nullptr && value->num_elements() > 0; }

Result<void> resized(Row& row, const Value& x, const std::vector<ResizeAxis>& sizes,
                     const ResizeMode& mode) {
  const double outside = row.attr_float("extrapolation_value", 0);
  std::vector<ResizeTaps> plans;
  bool copies = true, leaves = false;
  for (const ResizeAxis& axis : sizes) {
    auto plan = taps_of(axis, mode);
    if (!plan) return row.unsupported("a mode like this");
    copies = copies && (mode.mode == "nearest" || is_identity(*plan, axis));
    leaves |= plan->has_outside;
    plans.push_back(std::move(*plan));
  }
  if (leaves && !std::isfinite(outside)) return row.unsupported("this extrapolation value");
  if (copies) {
    bool is_same = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) is_same &= is_identity(plans[i], sizes[i]);
    if (is_same) {
      row.set(0, &x);
      return {};
    }
    PRUNERC_TRY(const Value* const y, copied(row, x, sizes, plans, outside));
    row.set(0, y);
    return {};
  }
  if (!ir::is_float(x.dtype)) return row.unsupported("interpolation of whole numbers");
  std::vector<std::size_t> moving;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!is_identity(plans[i], sizes[i])) moving.push_back(i);
  }
  // What makes the tensor smallest comes first.
  std::stable_sort(moving.begin(), moving.end(), [&](std::size_t a, std::size_t b) {
    return static_cast<double>(sizes[a].out) / static_cast<double>(sizes[a].in) <
           static_cast<double>(sizes[b].out) / static_cast<double>(sizes[b].in);
  });
  const ir::DType wide = ir::byte_size(x.dtype) < 4 ? ir::DType::kF32 : x.dtype;
  const Value* y = &x;
  for (std::size_t i = 0; i < moving.size(); ++i) {
    const std::size_t axis = moving[i];
    PRUNERC_TRY(y, summed(row, *y, axis, sizes[axis], plans[axis],
                          i + 1 == moving.size() ? x.dtype : wide, outside));
  }
  row.set(0, y);
  return {};
}

std::vector<ResizeAxis> unchanged(const Value& x) {
  std::vector<ResizeAxis> sizes;
  for (const int64_t extent : x.shape) sizes.push_back({extent, extent, 1, 0, 1});
  return sizes;
}

Result<void> resize(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (x->num_elements() == 0 || x->rank() == 0) return row.unsupported("an empty tensor");
  const bool is_first = row.opset() < 11;
  ResizeMode mode;
  mode.mode = row.attr_string("mode", "nearest");
  mode.coordinates =
      row.attr_string("coordinate_transformation_mode", is_first ? "asymmetric" : "half_pixel");
  mode.rounding = row.attr_string("nearest_mode", "round_prefer_floor");
  mode.rounds_by_scale = is_first;
  mode.cubic_a = row.attr_float("cubic_coeff_a", -0.75);
  mode.excludes_outside = row.attr_int("exclude_outside", 0) != 0;
  mode.is_antialiased = row.attr_int("antialias", 0) != 0;
  PRUNERC_TRY(const std::vector<std::size_t> axes, axes_of(row, *x));
  std::vector<ResizeAxis> sizes = unchanged(*x);
  const std::size_t scales_at = is_first ? 1 : 2;
  if (!is_first && is_given(row.in(3))) {
    PRUNERC_TRY(const std::vector<int64_t> given, row.known_ints(3));
    PRUNERC_TRY_VOID(set_sizes(row, sizes, axes, given));
  } else {
    if (!is_given(row.in(scales_at))) return row.unsupported("no scales and no sizes");
    PRUNERC_TRY(const std::vector<double> given, row.known_numbers(scales_at));
    PRUNERC_TRY_VOID(set_scales(row, sizes, axes, given));
  }
  if (mode.coordinates == "tf_crop_and_resize") {
    PRUNERC_TRY(const std::vector<double> roi, row.known_numbers(1));
    if (roi.size() != 2 * axes.size()) return row.unsupported("a region of another rank");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      sizes[axes[i]].roi_first = roi[i];
      sizes[axes[i]].roi_last = roi[axes.size() + i];
    }
  }
  return resized(row, *x, sizes, mode);
}

Result<void> upsample(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (x->num_elements() == 0 || x->rank() == 0) return row.unsupported("an empty tensor");
  ResizeMode mode;
  mode.mode = row.attr_string("mode", "nearest");
  if (mode.mode == "bilinear") mode.mode = "linear";
  mode.coordinates = "asymmetric";
  mode.rounding = "floor";
  std::vector<double> scales = row.attr_floats("scales");
  if (row.opset() >= 9) {
    PRUNERC_TRY(scales, row.known_numbers(1));
  }
  std::vector<ResizeAxis> sizes = unchanged(*x);
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < sizes.size(); ++i) axes.push_back(i);
  PRUNERC_TRY_VOID(set_scales(row, sizes, axes, scales));
  return resized(row, *x, sizes, mode);
}

constexpr RowEntry kRows[] = {{"Resize", resize}, {"Upsample", upsample}};

}  // namespace

std::span<const RowEntry> resize_rows() { return kRows; }

}  // namespace prunerc::onnx
