// Where the elements of a resized axis come from.
#ifndef PRUNERC_IR_ONNX_TEXT_RESIZE_PLAN_H_
#define PRUNERC_IR_ONNX_TEXT_RESIZE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::onnx {

struct ResizeMode {
  std::string mode = "nearest", coordinates = "half_pixel", rounding = "round_prefer_floor";
  /// Nearest of operator set 10: up along axes that become smaller, down along others.
  bool rounds_by_scale = false;
  double cubic_a = -0.75;
  bool excludes_outside = false, is_antialiased = false;
};

/// One axis. `scale` is what the model says, or the quotient of the sizes.
struct ResizeAxis {
  int64_t in = 0, out = 0;
  double scale = 1, roi_first = 0, roi_last = 1;
};

/// Element o of the result is the sum over t of weights[o * taps + t] * x[clamp(first[o] + t)].
struct ResizeTaps {
  int64_t taps = 1;
  std::vector<int64_t> first;
  std::vector<double> weights;
  std::vector<bool> is_outside;  ///< by element of the result: it is the extrapolation value
  bool has_outside = false;
};

/// The largest number of taps, and of weights of one axis.
inline constexpr int64_t kMaxTaps = 1024, kMaxTapWeights = int64_t{1} << 22;

/// nullopt: a mode that there is not, or more taps than kMaxTaps.
std::optional<ResizeTaps> taps_of(const ResizeAxis& axis, const ResizeMode& mode);

/// The subscript for first[o], written in the index's name `o`: "(o*2 + 1)/3". nullopt if no such
/// text gives these numbers; `may_clamp`: numbers at the ends may lie beyond them.
std::optional<std::string> affine_text(const std::vector<int64_t>& first, const ResizeAxis& axis,
                                       const std::string& o, bool may_clamp);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_TEXT_RESIZE_PLAN_H_
