// Normalisations of rows as calls.
#ifndef PRUNERC_IR_ONNX_TEXT_NORM_H_
#define PRUNERC_IR_ONNX_TEXT_NORM_H_

#include "ir/onnx/row.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::onnx {

/// Whether it is summed in f32.
bool is_narrow(ir::DType dtype);

/// Mean and deviation over axes from `first` on; scale and shift are read as their texts say.
struct RowNorm {
  std::size_t first = 0;
  bool has_mean = true;
  std::string epsilon;
  std::vector<Arg> more;            ///< scale and shift
  std::string scale, shift;         ///< reads; may be empty
  std::optional<ir::DType> result;  ///< the operand's, if it is not said
  bool gives_stats = false;
};
/// The rows, normalised, and if they are asked for the mean (where there is one) and the inverse deviation. Errors:
/// OnnxNode.
Result<std::vector<const Value*>> norm_of(Row& row, const Value& x, const RowNorm& n,
                                          std::string_view stem);
/// The same as the node's results; those after the first are given if any of them is wanted.
Result<void> norm_rows_of(Row& row, const Value& x, RowNorm n, std::string_view stem);
/// A read of a parameter that is broadcast to the trailing axes of `rank`.
std::string parameter(const Value& value, std::string_view name, int rank, bool narrow);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_TEXT_NORM_H_
