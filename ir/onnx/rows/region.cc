// Regions of an image, sampled on a grid of their own.
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <cmath>

namespace prunerc::onnx {
namespace {

struct Regions {
  int64_t height = 1, width = 1, samples = 1;
  double scale = 1;
  bool is_half_pixel = true;
};

// Lets by region, bin and sample: the lower pixel l, the upper one u, the weight w of the upper one, and
// v, which is 0 outside of the image. They are named after the axis.
std::string places_text(const Regions& r, std::string_view axis, int64_t extent, int64_t bins,
                        int first) {
  const std::string scale = number_text(ir::DType::kF32, r.scale);
  const std::string range = fmt::format("r, p in 0..{}, a in 0..{}", bins, r.samples);
  const std::string size =
      fmt::format("(R[r, {}] * {} - R[r, {}] * {})", first + 2, scale, first, scale);
  std::string text;
  text += fmt::format("let h{}[r] = {} / {};\n  ", axis,
                      r.is_half_pixel ? size : fmt::format("max({}, 1)", size), bins);
  text += fmt::format(
      "let s{0}[{1}] = R[r, {2}] * {3} - {4} + (f32(p) + (f32(a) + 0.5) / {5}) * h{0}[r];\n  ",
      axis, range, first, scale, r.is_half_pixel ? "0.5" : "0.0", r.samples);
  text += fmt::format(
      "let v{0}[r, p, a] = if s{0}[r, p, a] < -1 || s{0}[r, p, a] > {1} then f32(0) else f32(1);\n "
      " ",
      axis, extent);
  text += fmt::format("let c{0}[r, p, a] = clamp(s{0}[r, p, a], 0, {1});\n  ", axis, extent - 1);
  text += fmt::format("let l{0}[r, p, a] = i64(floor(c{0}[r, p, a]));\n  ", axis);
  text += fmt::format("let u{0}[r, p, a] = min(l{0}[r, p, a] + 1, {1});\n  ", axis, extent - 1);
  text += fmt::format("let w{0}[r, p, a] = c{0}[r, p, a] - floor(c{0}[r, p, a]);\n  ", axis);
  return text;
}

Result<void> roi_align(Row& row) {
  constexpr int64_t kMost = 1 << 16;
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const rois, row.need(1));
  PRUNERC_TRY(const Value* const batches, row.need(2));
  Regions r;
  r.height = row.attr_int("output_height", 1);
  r.width = row.attr_int("output_width", 1);
  r.samples = row.attr_int("sampling_ratio", 0);
  r.scale = row.attr_float("spatial_scale", 1);
  PRUNERC_TRY(const std::string places, row.attr_choice("coordinate_transformation_mode",
                                                        {"half_pixel", "output_half_pixel"}));
  r.is_half_pixel = row.opset() >= 16 && places == "half_pixel";
  PRUNERC_TRY(const std::string mode, row.attr_choice("mode", {"avg", "max"}));
  if (x->rank() != 4 || rois->rank() != 2 || rois->shape[1] != 4 || x->dtype != ir::DType::kF32 ||
      rois->dtype != x->dtype || !ir::is_int(batches->dtype) ||
      batches->shape != std::vector<int64_t>{rois->shape[0]} || x->num_elements() == 0)
    return row.unsupported("operands of these shapes or types");
  if (r.samples == 0) return row.unsupported("as many samples as a region is large");
  if (r.height < 1 || r.width < 1 || r.height > kMost || r.width > kMost || r.samples < 0 ||
      r.samples > kMost || !std::isfinite(r.scale))
    return row.unsupported("attributes like these");
  std::string body =
      places_text(r, "y", x->shape[2], r.height, 1) + places_text(r, "x", x->shape[3], r.width, 0);
  std::vector<std::string> terms;
  for (const bool upper_y : {false, true}) {
    for (const bool upper_x : {false, true}) {
      terms.push_back(fmt::format("{} * {} * (X[B[r], c, {}y[r, i, a], {}x[r, j, b]] or 0)",
                                  upper_y ? "wy[r, i, a]" : "(1 - wy[r, i, a])",
                                  upper_x ? "wx[r, j, b]" : "(1 - wx[r, j, b])",
                                  upper_y ? "u" : "l", upper_x ? "u" : "l"));
    }
  }
  const std::string seen = "vy[r, i, a] * vx[r, j, b]";
  const std::string over = fmt::format("a in 0..{0}, b in 0..{0}", r.samples);
  body +=
      mode == "avg"
          ? fmt::format(
                "let t[r, c, i, j] = sum[{}] ({} * ({}));\n  Y[r, c, i, j] = t[r, c, i, j] / {};",
                over, seen, fmt::join(terms, " + "), r.samples * r.samples)
          : fmt::format("Y[r, c, i, j] = max[{}] ({} * max(max({}, {}), max({}, {})));", over, seen,
                        terms[0], terms[1], terms[2], terms[3]);
  PRUNERC_TRY(const Value* const y,
              row.call("roi_align", {{"X", x}, {"R", rois}, {"B", batches}}, x->dtype,
                       {rois->shape[0], x->shape[1], r.height, r.width}, body));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {{"RoiAlign", roi_align}};

}  // namespace

std::span<const RowEntry> region_rows() { return kRows; }

}  // namespace prunerc::onnx
