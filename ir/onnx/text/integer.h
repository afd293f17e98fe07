// Sums of products of 8-bit numbers that have zero points, and what makes 8 bits of them again.
#ifndef PRUNERC_IR_ONNX_TEXT_INTEGER_H_
#define PRUNERC_IR_ONNX_TEXT_INTEGER_H_

#include "ir/onnx/row.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::onnx {

/// What a product sums: left[..] * right[..] over `reduced`.
struct IntegerProduct {
  std::string target;       ///< indices of the result: "i,j"
  std::string reduced;      ///< "k"
  std::string left, right;  ///< reads "A[i,k]" and "B[k,j]"
  bool leaves_left = false;
  const Value* right_value = nullptr;
  std::string right_name;
  /// "A", if left and right are reads of whole tensors with the one reduced index: then what zero points bring is
  /// taken off by sums of either, and the products are of the bytes as they are.
  const Value* left_value = nullptr;
  int64_t rows = 1;  ///< with `left_value`: of the result, that read the same of the right
  const Value *left_zero = nullptr, *right_zero = nullptr;  ///< null: none
  std::string left_zero_read, right_zero_read;  ///< of "ZA" and "ZB", where there are any
  /// Index and extent of the results that one column of the right gives, if each has one of its
  /// own: then the left's zero point is taken off once, by sums of the right.
  std::string column, column_range;
  std::vector<int64_t> column_shape;
};

/// The sum in 32 bits: a statement, the read of what it gives and of what is still to be added to
/// it ("" if nothing is), and the arguments beside left and right.
struct IntegerSum {
  std::string statement, read, more;
  std::vector<Arg> args;
};
/// `bias` has `column_shape`, or is null. Errors: OnnxNode.
Result<IntegerSum> integer_sum(Row& row, const IntegerProduct& p, const Value* bias);
/// "acc[i,j] + c[j]": all of the sum.
std::string with_more(const IntegerSum& sum);

bool is_byte(const Value& value);
/// Whether no zero point is given, or one that is known to be 0 everywhere.
bool is_zero(const Value* zero);
/// "S" or "S[0,0]", of a tensor of one element.
std::string single_read(std::string_view name, const Value& value);
/// round(value) + zero as 8 bits, saturated. `zero` may be empty.
std::string quantized(ir::DType dtype, std::string_view value, std::string_view zero);
/// The same between two other numbers.
std::string quantized(ir::DType dtype, std::string_view value, std::string_view zero, int64_t low,
                      int64_t high);

/// Numbers of u8 that stand for (values - zero) * scale.
struct Quantized {
  const Value *values, *scale, *zero;
};
/// The scale spreads what is there, and 0, over 0 to 255. Errors: OnnxNode.
Result<Quantized> dynamically_quantized(Row& row, const Value& x);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_TEXT_INTEGER_H_
