#include "ir/onnx/row.h"

namespace prunerc::onnx {

std::span<const RowEntry> index_rows() { return {}; }

}  // namespace prunerc::onnx
