// A convolution as pieces of text.
#ifndef PRUNERC_IR_ONNX_TEXT_CONV_H_
#define PRUNERC_IR_ONNX_TEXT_CONV_H_

#include "ir/onnx/text/window.h"

#include <string>
#include <vector>

namespace prunerc::onnx {

struct ConvText {
  Window window;
  int64_t groups = 1, channels = 0;  ///< channels of the output
  std::vector<int64_t> shape;
  std::string target, x, f, reduced;  ///< "n,co,o0", "X[..]", "F[..]", "ci,k0"
  bool leaves_image = false;
};

/// Of the node's attributes, the image X and the filter F. Errors: OnnxNode.
Result<ConvText> conv_text_of(Row& row, const Value& x, const Value& f);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_TEXT_CONV_H_
