#include "ir/onnx/row.h"

namespace prunerc::onnx {

std::span<const RowEntry> conv_rows() { return {}; }

}  // namespace prunerc::onnx
