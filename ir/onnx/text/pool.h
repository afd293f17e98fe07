// A pool as pieces of text.
#ifndef PRUNERC_IR_ONNX_TEXT_POOL_H_
#define PRUNERC_IR_ONNX_TEXT_POOL_H_

#include "ir/onnx/text/window.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::onnx {

/// The text around a pool: Y[n,c,o0,..] and X[n,c,..].
struct Pool {
  Window window;
  std::vector<int64_t> shape;
  std::string target, read, over;  ///< "n,c,o0", "X[n,c,o0 + k0]", "k0 in 0..3"
  bool leaves_image = false;
};
/// Of the node's attributes and the image. Errors: OnnxNode.
Result<Pool> pool_of(Row& row, const Value& x);
/// The read, with what stands around the image.
std::string or_else(const Pool& p, std::string_view otherwise);
/// How many elements of the window count, as text over the output's indices.
std::string counted(const Window& w, bool with_padding);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_TEXT_POOL_H_
