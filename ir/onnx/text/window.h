// Windows that slide over the axes of an image: what convolutions and pools have in common.
#ifndef PRUNERC_IR_ONNX_TEXT_WINDOW_H_
#define PRUNERC_IR_ONNX_TEXT_WINDOW_H_

#include "ir/onnx/row.h"

#include <string>
#include <vector>

namespace prunerc::onnx {

/// By axis of the image, without batch and channel.
struct Window {
  std::vector<int64_t> in, kernel, stride, dilation, before, after, out;

  std::size_t rank() const { return in.size(); }
  bool pads(std::size_t axis) const;
  /// "o0*2 + k0 - 1": where element k of the window at o lies.
  std::string subscript(std::size_t axis) const;
  std::vector<std::string> subscripts() const;
  std::string kernel_ranges() const;  ///< "k0 in 0..3,k1 in 0..3"
  /// Whether some window leaves the image.
  bool leaves_image() const;
};

/// What auto_pad says: "NOTSET", "SAME_UPPER", "SAME_LOWER" or "VALID". Errors: OnnxNode.
Result<std::string> auto_pad_of(const Row& row);
/// Of the node's attributes (strides, dilations, pads, auto_pad, ceil_mode). Errors: OnnxNode.
Result<Window> window_of(Row& row, const Value& x, std::vector<int64_t> kernel);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_TEXT_WINDOW_H_
