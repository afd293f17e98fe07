// A product of matrices as pieces of text.
#ifndef PRUNERC_IR_ONNX_TEXT_PRODUCT_H_
#define PRUNERC_IR_ONNX_TEXT_PRODUCT_H_

#include "ir/onnx/row.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::onnx {

/// Batched product A[.., i, k] * B[.., k, j] over k; operands of rank 1 are a row and a column.
struct ProductText {
  std::vector<int64_t> shape;
  std::vector<std::string> target;  ///< b0, .., i, j
  std::string left, right;          ///< "A[b0,i,k]", "B[k,j]"
  bool has_row = false, has_column = false;
};
/// How a matrix lies in its operand, beside [batch.., rows, columns]: with its last two axes exchanged, and with what
/// stands for the rows then before the batch. Operands of rank 1 have neither.
struct Turned {
  bool matrix = false, batch = false;
};
/// Errors: OnnxNode.
Result<ProductText> product_text_of(Row& row, const Value& a, const Value& b,
                                    const Turned& turned_a = {}, const Turned& turned_b = {});

/// How the sum over products of this type is written, and what it gives as one of its elements.
std::string sum_of(ir::DType dtype);
std::string rounded(ir::DType dtype, const std::string& sum);

/// A product of 8-bit numbers whose result is of f32. Zero points and the bias may be null.
struct ToFloat {
  const Value *a, *a_scale, *a_zero, *b, *b_scale, *b_zero, *bias;
};
/// Errors: OnnxNode.
Result<const Value*> integer_to_float(Row& row, const ToFloat& o);

/// Gemm, of whose result `activation` is taken, a text of $ (empty: none).
Result<void> gemm_with(Row& row, std::string_view activation);
Result<void> matmul_integer(Row& row);
Result<void> qlinear_matmul(Row& row);
Result<void> einsum(Row& row);
Result<void> qgemm(Row& row);
Result<void> matmul_integer_to_float(Row& row);
Result<void> dynamic_quantize_matmul(Row& row);
Result<void> dynamic_quantize_lstm(Row& row);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_TEXT_PRODUCT_H_
