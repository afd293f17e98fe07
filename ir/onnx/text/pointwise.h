// Functions of one element, with broadcasting, as calls and as pieces of text.
#ifndef PRUNERC_IR_ONNX_TEXT_POINTWISE_H_
#define PRUNERC_IR_ONNX_TEXT_POINTWISE_H_

#include "ir/onnx/row.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::onnx {

/// One number for all elements, known now: it stands in the text instead of a tensor.
std::optional<std::string> literal(const Value& value);
/// "f32(x)".
std::string cast(ir::DType to, std::string_view text);
/// "Y[i0,i1]".
std::string target(int rank);
/// "HardSwish" gives "hard_swish".
std::string stem_of(std::string_view op);

/// The body of what is computed for each element, of the reads of the operands.
using Body = std::function<std::string(std::vector<std::string>&)>;
/// Of operands that are broadcast to each other. Errors: OnnxNode.
Result<const Value*> elementwise(Row& row, std::string_view stem,
                                 const std::vector<const Value*>& operands, ir::DType dtype,
                                 const Body& body);
/// The same as the node's first result.
Result<void> pointwise(Row& row, std::string_view stem, const std::vector<const Value*>& operands,
                       ir::DType dtype, const Body& body);

/// "max(a, max(b, c))", or of "min": NaN where any operand is. `reads` are those of the operands, of which there is
/// at least one. Numbers known now go first, and cost no check.
std::string extreme_text(std::string_view name, const std::vector<const Value*>& operands,
                         const std::vector<std::string>& reads);

/// The text with the operand for each $.
std::string put(std::string_view text, std::string_view operand);
/// A function of the first input, which $ stands for. 16-bit floats are computed wide, as other runtimes do.
Result<void> unary(Row& row, std::string text, bool floats_only = true);
/// The text of an operator of ONNX that has neither attributes nor more operands; empty: there is none.
std::string_view unary_text(std::string_view op);
std::string leaky_relu_text(double alpha);
std::string hard_sigmoid_text(double alpha, double beta);
std::string swish_text(double alpha);
/// The number stands first: max and min give their second operand where either is NaN.
inline constexpr std::string_view kReluText = "max(0, $)";
inline constexpr std::string_view kGeluText = "0.5 * $ * (1 + erf($ * 0.7071067812))";
inline constexpr std::string_view kTanhGeluText =
    "0.5 * $ * (1 + tanh(0.7978845608 * ($ + 0.044715 * $ * $ * $)))";

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_TEXT_POINTWISE_H_
