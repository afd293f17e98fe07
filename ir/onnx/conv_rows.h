// Rows of convolutions that have files of their own.
#ifndef PRUNERC_IR_ONNX_CONV_ROWS_H_
#define PRUNERC_IR_ONNX_CONV_ROWS_H_

#include "ir/onnx/row.h"

namespace prunerc::onnx {

Result<void> conv_transpose(Row& row);
Result<void> conv_integer(Row& row);
Result<void> qlinear_conv(Row& row);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_CONV_ROWS_H_
