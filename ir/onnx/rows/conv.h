// Rows of convolutions that have files of their own.
#ifndef PRUNERC_IR_ONNX_ROWS_CONV_H_
#define PRUNERC_IR_ONNX_ROWS_CONV_H_

#include "ir/onnx/row.h"

#include <string_view>

namespace prunerc::onnx {

/// A convolution, to which `added` of its shape is added (null: nothing), and of which `activation` is taken, a text of
/// $ (empty: none).
Result<void> conv_with(Row& row, const Value* added, std::string_view activation);
Result<void> conv_transpose(Row& row);
Result<void> conv_integer(Row& row);
Result<void> qlinear_conv(Row& row);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_ROWS_CONV_H_
