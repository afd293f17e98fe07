// Products of matrices of 8-bit numbers.
#include "ir/onnx/text/integer.h"
#include "ir/onnx/text/product.h"

#include <fmt/format.h>

#include <initializer_list>

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

// Rows of the result that one matrix of the right gives, which may serve several of the left.
int64_t rows_of(const ProductText& p, const Value& b) {
  const std::size_t end = p.shape.size() - (p.has_column ? 1 : 0);
  const std::size_t batch = end - (p.has_row ? 1 : 0);
  const std::size_t ahead = batch - (b.rank() <= 2 ? 0 : b.shape.size() - 2);
  int64_t rows = p.has_row ? p.shape[batch] : 1;
  for (std::size_t i = 0; i < batch; ++i)
    if (i < ahead || b.shape[i - ahead] == 1) rows *= p.shape[i];
  return rows;
}

Result<IntegerSum> summed(Row& row, const ProductText& p, const Value& a, const Value& b,
                          const Value* a_zero, const Value* b_zero, const Value* bias = nullptr) {
  if ((a_zero != nullptr && a_zero->dtype != a.dtype) ||
      (b_zero != nullptr && b_zero->dtype != b.dtype))
    return row.unsupported("a zero point of another type");
  IntegerProduct q;
  q.target = fmt::format("{}", fmt::join(p.target, ","));
  q.reduced = "k";
  q.left = p.left;
  q.right = p.right;
  q.left_value = &a;
  q.rows = rows_of(p, b);
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
    if (p.has_column) q.column_shape = {p.shape.back()};
  }
  return integer_sum(row, q, bias);
}

/// What makes the sum a number, or one in 8 bits.
struct Factor {
  std::vector<Arg> args;
  std::string text;
};

// alpha * a * b / y; no y: as if it were 1.
Result<Factor> factor_of(Row& row, const ProductText& p, const Value& a, const Value& b,
                         const Value* y, double alpha = 1) {
  for (const Value* scale : {&a, &b, y}) {
    if (scale != nullptr && (!ir::is_float(scale->dtype) || scale->dtype == ir::DType::kF64))
      return row.unsupported("scales of this type");
  }
  PRUNERC_TRY(const std::string of_a, by_side(row, "sa", a, p, Side::kRows));
  PRUNERC_TRY(const std::string of_b, by_side(row, "sb", b, p, Side::kColumns));
  Factor out;
  std::vector<Arg> scales = {{"sa", &a}, {"sb", &b}};
  out.text = fmt::format("f32({}) * f32({})", of_a, of_b);
  if (alpha != 1) out.text = fmt::format("{} * {}", number_text(ir::DType::kF32, alpha), out.text);
  if (y != nullptr) {
    PRUNERC_TRY(const std::string of_y, by_side(row, "sy", *y, p, Side::kRows));
    scales.push_back({"sy", y});
    out.text += fmt::format(" / f32({})", of_y);
  }
  out.text = fmt::format("({})", out.text);
  if (a.num_elements() != 1 || (y != nullptr && y->num_elements() != 1) || b.rank() > 1) {
    out.args = std::move(scales);
    return out;
  }
  // One factor for each column, which is known before any run.
  const bool is_one = b.num_elements() == 1;
  PRUNERC_TRY(const Value* const m,
              row.call("requantize_scale", std::move(scales), ir::DType::kF32,
                       is_one ? std::vector<int64_t>{} : b.shape,
                       fmt::format("Y{} = {};", is_one ? "" : "[j]", out.text)));
  out.args = {{"m", m}};
  out.text = is_one ? "m" : "m[j]";
  return out;
}

}  // namespace

namespace {

// The result of f16 scales would be f16.
Result<void> check_single(Row& row, std::initializer_list<const Value*> scales) {
  for (const Value* const scale : scales) {
    if (scale != nullptr && scale->dtype != ir::DType::kF32)
      return row.unsupported("scales of another type than f32");
  }
  return {};
}

}  // namespace

Result<const Value*> integer_to_float(Row& row, const ToFloat& o) {
  if (!is_byte(*o.a) || !is_byte(*o.b)) return row.unsupported("operands of these types");
  PRUNERC_TRY_VOID(check_single(row, {o.a_scale, o.b_scale}));
  if (o.a_scale->num_elements() != 1 || (o.a_zero != nullptr && o.a_zero->num_elements() != 1))
    return row.unsupported("several scales or zero points of the left matrix");
  PRUNERC_TRY(const ProductText p, product_text_of(row, *o.a, *o.b));
  PRUNERC_TRY(const IntegerSum sum, summed(row, p, *o.a, *o.b, o.a_zero, o.b_zero));
  PRUNERC_TRY(const Factor factor, factor_of(row, p, *o.a_scale, *o.b_scale, nullptr));
  std::vector<Arg> args = {{"A", o.a}, {"B", o.b}};
  args.insert(args.end(), sum.args.begin(), sum.args.end());
  args.insert(args.end(), factor.args.begin(), factor.args.end());
  std::string value = fmt::format("f32({}) * {}", with_more(sum), factor.text);
  if (o.bias != nullptr) {
    if (!p.has_column || o.bias->shape != std::vector<int64_t>{p.shape.back()} ||
        o.bias->dtype != ir::DType::kF32)
      return row.unsupported("a bias of another shape or type");
    args.push_back({"d", o.bias});
    value += " + d[j]";
  }
  return row.call("matmul_integer_to_float", std::move(args), ir::DType::kF32, p.shape,
                  fmt::format("{}\n  {} = {};", sum.statement, at("Y", p.target), value));
}

Result<void> matmul_integer(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  if (!is_byte(*a) || !is_byte(*b)) return row.unsupported("operands of these types");
  PRUNERC_TRY(const ProductText p, product_text_of(row, *a, *b));
  PRUNERC_TRY(const IntegerSum sum, summed(row, p, *a, *b, row.in(2), row.in(3)));
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
  PRUNERC_TRY(const ProductText p, product_text_of(row, *a, *b));
  PRUNERC_TRY(const IntegerSum sum, summed(row, p, *a, *b, a_zero, b_zero));
  std::vector<Arg> args = {{"A", a}, {"B", b}};
  args.insert(args.end(), sum.args.begin(), sum.args.end());
  PRUNERC_TRY(const Factor factor, factor_of(row, p, *a_scale, *b_scale, y_scale));
  args.insert(args.end(), factor.args.begin(), factor.args.end());
  std::string zero;
  if (!is_zero(y_zero)) {
    PRUNERC_TRY(zero, by_side(row, "ZY", *y_zero, p, Side::kRows));
    args.push_back({"ZY", y_zero});
  }
  PRUNERC_TRY(
      const Value* const y,
      row.call(
          "qlinear_matmul", std::move(args), y_zero->dtype, p.shape,
          fmt::format("{}\n  {} = {};", sum.statement, at("Y", p.target),
                      quantized(y_zero->dtype,
                                fmt::format("f32({}) * {}", with_more(sum), factor.text), zero))));
  row.set(0, y);
  return {};
}

Result<void> matmul_integer_to_float(Row& row) {
  ToFloat o{};
  PRUNERC_TRY(o.a, row.need(0));
  PRUNERC_TRY(o.b, row.need(1));
  PRUNERC_TRY(o.a_scale, row.need(2));
  PRUNERC_TRY(o.b_scale, row.need(3));
  o.a_zero = row.in(4);
  o.b_zero = row.in(5);
  o.bias = row.in(6);
  PRUNERC_TRY(const Value* const y, integer_to_float(row, o));
  row.set(0, y);
  return {};
}

Result<void> dynamic_quantize_matmul(Row& row) {
  ToFloat o{};
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(o.b, row.need(1));
  PRUNERC_TRY(o.b_scale, row.need(2));
  PRUNERC_TRY(const Quantized q, dynamically_quantized(row, *x));
  o.a = q.values;
  o.a_scale = q.scale;
  o.a_zero = q.zero;
  o.b_zero = row.in(3);
  o.bias = row.in(4);
  PRUNERC_TRY(const Value* const y, integer_to_float(row, o));
  row.set(0, y);
  return {};
}

// Of the third operand, which has the scale of the sum: how it is read.
Result<std::string> added_read(Row& row, const Value& c, const ProductText& p) {
  if (c.dtype != ir::DType::kI32 || broadcast_shape(p.shape, c.shape) != p.shape)
    return row.unsupported("a bias of another shape or type");
  std::vector<std::string> reads;
  for (std::size_t i = 0; i < c.shape.size(); ++i)
    reads.push_back(c.shape[i] == 1 ? "0" : p.target[p.target.size() - c.shape.size() + i]);
  return at("C", reads);
}

Result<void> qgemm(Row& row) {
  const Value* operands[6] = {};
  for (std::size_t i = 0; i < 6; ++i) {
    PRUNERC_TRY(operands[i], row.need(i));
  }
  const auto [a, a_scale, a_zero, b, b_scale, b_zero] = operands;
  const Value *const c = row.in(6), *const y_scale = row.in(7), *const y_zero = row.in(8);
  if (!is_byte(*a) || !is_byte(*b) || a->rank() != 2 || b->rank() != 2)
    return row.unsupported("operands that are no matrices of 8 bits");
  if (y_zero != nullptr && y_zero->dtype != a->dtype)
    return row.unsupported("a zero point of another type");
  PRUNERC_TRY_VOID(check_single(row, {a_scale, b_scale, y_scale}));
  if ((y_scale == nullptr) != (y_zero == nullptr))
    return row.unsupported("a scale of the result without its zero point, or the other way round");
  for (const Value* item : {a_scale, a_zero, y_scale, y_zero}) {
    if (item != nullptr && item->num_elements() != 1)
      return row.unsupported("several scales or zero points of the left matrix or the result");
  }
  PRUNERC_TRY(const ProductText p,
              product_text_of(row, *a, *b, {row.attr_int("transA", 0) != 0, false},
                              {row.attr_int("transB", 0) != 0, false}));
  const bool is_by_column = c != nullptr && c->shape == std::vector<int64_t>{p.shape.back()};
  PRUNERC_TRY(const IntegerSum sum,
              summed(row, p, *a, *b, a_zero, b_zero, is_by_column ? c : nullptr));
  PRUNERC_TRY(const Factor factor,
              factor_of(row, p, *a_scale, *b_scale, y_scale, row.attr_float("alpha", 1)));
  std::vector<Arg> args = {{"A", a}, {"B", b}};
  args.insert(args.end(), sum.args.begin(), sum.args.end());
  args.insert(args.end(), factor.args.begin(), factor.args.end());
  std::string all = with_more(sum);
  if (c != nullptr && !is_by_column) {
    PRUNERC_TRY(const std::string read, added_read(row, *c, p));
    args.push_back({"C", c});
    all += " + " + read;
  }
  std::string value = fmt::format("f32({}) * {}", all, factor.text);
  if (y_zero != nullptr) {
    const bool has_zero = !is_zero(y_zero);
    if (has_zero) args.push_back({"ZY", y_zero});
    value = quantized(a->dtype, value, has_zero ? single_read("ZY", *y_zero) : "");
  }
  PRUNERC_TRY(
      const Value* const y,
      row.call("qgemm", std::move(args), y_zero != nullptr ? a->dtype : ir::DType::kF32, p.shape,
               fmt::format("{}\n  {} = {};", sum.statement, at("Y", p.target), value)));
  row.set(0, y);
  return {};
}

}  // namespace prunerc::onnx
