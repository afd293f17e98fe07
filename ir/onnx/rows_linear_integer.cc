// Products of matrices of 8-bit numbers.
#include "ir/onnx/integer_text.h"
#include "ir/onnx/product_text.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

enum class Side { kRows, kColumns };

// A read of one number for all, for each row or for each column of the result; with more axes it is
// broadcast to the result.
Result<std::string> by_side(Row& row, std::string_view name, const Value& value,
                            const ProductText& p, Side side) {
  if (value.num_elements() == 1) return single_read(name, value);
  const bool has_side = side == Side::kRows ? p.has_row : p.has_column;
  const std::size_t place = p.target.size() - (side == Side::kRows && p.has_column ? 2 : 1);
  if (value.rank() == 1 && has_side && value.shape[0] == p.shape[place])
    return at(name, {p.target[place]});
  if (value.rank() < 2 || broadcast_shape(p.shape, value.shape) != p.shape)
    return row.unsupported("scales or zero points of another shape");
  std::vector<std::string> reads;
  const std::size_t ahead = p.shape.size() - value.shape.size();
  for (std::size_t i = 0; i < value.shape.size(); ++i)
    reads.push_back(value.shape[i] == 1 ? "0" : p.target[ahead + i]);
  return at(name, reads);
}

Result<IntegerSum> summed(Row& row, const ProductText& p, const Value& b, const Value* a_zero,
                          const Value* b_zero) {
  IntegerProduct q;
  q.target = fmt::format("{}", fmt::join(p.target, ","));
  q.reduced = "k";
  q.left = p.left;
  q.right = p.right;
  q.right_value = &b;
  q.right_name = "B";
  q.left_zero = a_zero;
  q.right_zero = b_zero;
  if (a_zero != nullptr) {
    PRUNERC_TRY(q.left_zero_read, by_side(row, "ZA", *a_zero, p, Side::kRows));
  }
  if (b_zero != nullptr) {
    PRUNERC_TRY(q.right_zero_read, by_side(row, "ZB", *b_zero, p, Side::kColumns));
  }
  if (b.rank() <= 2) {
    q.column_range = "k";
    q.column = p.has_column ? "j" : "";
    if (p.has_column) q.column_shape = {b.shape[1]};
  }
  return integer_sum(row, q, nullptr);
}

}  // namespace

Result<void> matmul_integer(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  if (!is_byte(*a) || !is_byte(*b)) return row.unsupported("operands of these types");
  PRUNERC_TRY(const ProductText p, product_text_of(row, *a, *b));
  PRUNERC_TRY(const IntegerSum sum, summed(row, p, *b, row.in(2), row.in(3)));
  std::vector<Arg> args = {{"A", a}, {"B", b}};
  args.insert(args.end(), sum.args.begin(), sum.args.end());
  PRUNERC_TRY(
      const Value* const y,
      row.call("matmul_integer", std::move(args), ir::DType::kI32, p.shape,
               fmt::format("{}\n  {} = {};", sum.statement, at("Y", p.target), with_more(sum))));
  row.set(0, y);
  return {};
}

Result<void> qlinear_matmul(Row& row) {
  const Value* operands[8] = {};
  for (std::size_t i = 0; i < 8; ++i) {
    PRUNERC_TRY(operands[i], row.need(i));
  }
  const auto [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero] = operands;
  if (!is_byte(*a) || !is_byte(*b) || !is_byte(*y_zero))
    return row.unsupported("operands of these types");
  for (const Value* scale : {a_scale, b_scale, y_scale}) {
    if (!ir::is_float(scale->dtype) || scale->dtype == ir::DType::kF64)
      return row.unsupported("scales of this type");
  }
  PRUNERC_TRY(const ProductText p, product_text_of(row, *a, *b));
  PRUNERC_TRY(const IntegerSum sum, summed(row, p, *b, a_zero, b_zero));
  std::vector<Arg> args = {{"A", a}, {"B", b}};
  args.insert(args.end(), sum.args.begin(), sum.args.end());
  PRUNERC_TRY(const std::string of_a, by_side(row, "sa", *a_scale, p, Side::kRows));
  PRUNERC_TRY(const std::string of_b, by_side(row, "sb", *b_scale, p, Side::kColumns));
  PRUNERC_TRY(const std::string of_y, by_side(row, "sy", *y_scale, p, Side::kRows));
  const std::vector<Arg> scales = {{"sa", a_scale}, {"sb", b_scale}, {"sy", y_scale}};
  std::string factor = fmt::format("(f32({}) * f32({}) / f32({}))", of_a, of_b, of_y);
  if (a_scale->num_elements() == 1 && y_scale->num_elements() == 1 && b_scale->rank() <= 1) {
    // One factor for each column, which is known before any run.
    const bool is_one = b_scale->num_elements() == 1;
    PRUNERC_TRY(const Value* const m,
                row.call("requantize_scale", scales, ir::DType::kF32,
                         is_one ? std::vector<int64_t>{} : b_scale->shape,
                         fmt::format("Y{} = {};", is_one ? "" : "[j]", factor)));
    args.push_back({"m", m});
    factor = is_one ? "m" : "m[j]";
  } else {
    args.insert(args.end(), scales.begin(), scales.end());
  }
  std::string zero;
  if (!is_zero(y_zero)) {
    PRUNERC_TRY(zero, by_side(row, "ZY", *y_zero, p, Side::kRows));
    args.push_back({"ZY", y_zero});
  }
  PRUNERC_TRY(
      const Value* const y,
      row.call("qlinear_matmul", std::move(args), y_zero->dtype, p.shape,
               fmt::format("{}\n  {} = {};", sum.statement, at("Y", p.target),
                           quantized(y_zero->dtype,
                                     fmt::format("f32({}) * {}", with_more(sum), factor), zero))));
  row.set(0, y);
  return {};
}

}  // namespace prunerc::onnx
