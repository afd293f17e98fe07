#include "ir/onnx/row.h"

namespace prunerc::onnx {

std::span<const RowEntry> recurrent_rows() { return {}; }

}  // namespace prunerc::onnx
