// Numbers of 8 bits: to them, from them, and operators on them.
#include "ir/onnx/rows/conv.h"
#include "ir/onnx/text/integer.h"
#include "ir/onnx/text/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace prunerc::onnx {
namespace {

// How the scale (or zero point) of an element is read: one for all, one for each place of an axis, or
// one for each block of places.
Result<std::string> scale_read(Row& row, std::string_view name, const Value& scale,
                               const Value& x) {
  if (scale.num_elements() == 1) return single_read(name, scale);
  const std::optional<int> axis = axis_of(row.attr_int("axis", 1), x.rank());
  if (!axis) return row.unsupported("an axis that is none");
  const auto k = static_cast<std::size_t>(*axis);
  const int64_t block = row.attr_int("block_size", 0);
  if (block == 0) {
    if (scale.shape != std::vector<int64_t>{x.shape[k]})
      return row.unsupported("a scale of another shape");
    return fmt::format("{}[i{}]", name, k);
  }
  std::vector<int64_t> shape = x.shape;
  if (block < 1) return row.unsupported("blocks of no elements");
  shape[k] = (shape[k] - 1) / block + 1;
  if (scale.shape != shape) return row.unsupported("a scale of another shape");
  std::vector<std::string> reads = index_list(x.rank());
  reads[k] += fmt::format("/{}", block);
  return at(name, reads);
}

/// A type of ONNX that floats are quantised to, what holds it here, and its least and largest number.
struct Bits {
  int32_t onnx_type;
  ir::DType dtype;
  int64_t low, high;
};
constexpr Bits kBits[] = {{2, ir::DType::kU8, 0, 255},    {3, ir::DType::kI8, -128, 127},
                          {4, ir::DType::kI32, 0, 65535}, {5, ir::DType::kI32, -32768, 32767},
                          {21, ir::DType::kU8, 0, 15},    {22, ir::DType::kI8, -8, 7}};

// Null: there are no such numbers.
const Bits* bits_of(int32_t onnx_type) {
  const auto* const found = std::find_if(std::begin(kBits), std::end(kBits), [&](const Bits& item) {
    return item.onnx_type == onnx_type;
  });
  return found == std::end(kBits) ? nullptr : found;
}
const Bits* bits_of(const Value& zero) {
  if (zero.stands_for != 0) return bits_of(zero.stands_for);
  return is_byte(zero) ? bits_of(zero.dtype == ir::DType::kU8 ? 2 : 3) : nullptr;
}

Result<void> quantize(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const scale, row.need(1));
  const Value* const zero = row.in(2);
  const auto number = static_cast<int32_t>(row.attr_int("output_dtype", 0));
  const Bits* const said = bits_of(number == 0 ? 2 : number);
  if (said == nullptr) return row.unsupported("the type " + type_name(number));
  const Bits* const bits = zero != nullptr ? bits_of(*zero) : said;
  if (bits == nullptr || (number != 0 && bits != said))
    return row.unsupported("a zero point of this type");
  const bool is_number = ir::is_float(x->dtype) || x->dtype == ir::DType::kI32;
  if (!is_number || x->stands_for != 0 || x->dtype == ir::DType::kF64 ||
      !ir::is_float(scale->dtype))
    return row.unsupported("operands of these types");
  // The quotient has the type that `precision` says, or else the scale's.
  const auto precise = static_cast<int32_t>(row.attr_int("precision", 0));
  const std::optional<ir::DType> quotient = precise == 0 ? scale->dtype : dtype_of(precise);
  if (!quotient || !ir::is_float(*quotient)) return row.unsupported("such a precision");
  PRUNERC_TRY(const std::string by, scale_read(row, "s", *scale, *x));
  std::vector<Arg> args = {{"X", x}, {"s", scale}};
  std::string zero_read;
  if (!is_zero(zero)) {
    PRUNERC_TRY(zero_read, scale_read(row, "z", *zero, *x));
    args.push_back({"z", zero});
  }
  const std::vector<std::string> index = index_list(x->rank());
  std::string value = fmt::format("f32({}) / f32({})", at("X", index), by);
  if (ir::byte_size(*quotient) == 2)
    value = fmt::format("f32({}({}))", ir::to_string(*quotient), value);
  PRUNERC_TRY(
      const Value* const y,
      row.call("quantize", std::move(args), bits->dtype, x->shape,
               fmt::format("{} = {};", at("Y", index),
                           quantized(bits->dtype, value, zero_read, bits->low, bits->high))));
  const bool is_own = ir::byte_size(bits->dtype) == 1 && bits->high > 15;
  row.set(0, row.standing_for(y, is_own ? 0 : bits->onnx_type));
  return {};
}

Result<void> dequantize(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const scale, row.need(1));
  const Value* const zero = row.in(2);
  const auto number = static_cast<int32_t>(row.attr_int("output_dtype", 0));
  const std::optional<ir::DType> dtype = number == 0 ? scale->dtype : dtype_of(number);
  if (!dtype || !ir::is_float(*dtype)) return row.unsupported("the type " + type_name(number));
  if ((!is_byte(*x) && x->dtype != ir::DType::kI32) || !ir::is_float(scale->dtype) ||
      (zero != nullptr && (zero->dtype != x->dtype || zero->stands_for != x->stands_for)))
    return row.unsupported("operands of these types");
  PRUNERC_TRY(const std::string by, scale_read(row, "s", *scale, *x));
  std::vector<Arg> args = {{"X", x}, {"s", scale}};
  const std::vector<std::string> index = index_list(x->rank());
  std::string value = at("X", index);
  if (!is_zero(zero)) {
    PRUNERC_TRY(const std::string zero_read, scale_read(row, "z", *zero, *x));
    args.push_back({"z", zero});
    const std::string_view wide = is_byte(*x) ? "i32" : "i64";
    value = fmt::format("{0}({1}) - {0}({2})", wide, value, zero_read);
  }
  const bool is_narrow = ir::byte_size(*dtype) == 2 || scale->dtype == ir::DType::kF64;
  value = fmt::format("f32({}) * {}", value, is_narrow ? fmt::format("f32({})", by) : by);
  if (*dtype != ir::DType::kF32 || ir::byte_size(scale->dtype) == 8)
    value = fmt::format("{}({})", ir::to_string(*dtype), value);
  PRUNERC_TRY(const Value* const y, row.call("dequantize", std::move(args), *dtype, x->shape,
                                             fmt::format("{} = {};", at("Y", index), value)));
  row.set(0, y);
  return {};
}

Result<void> dynamic_quantize(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Quantized q, dynamically_quantized(row, *x));
  row.set(0, q.values);
  row.set(1, q.scale);
  row.set(2, q.zero);
  return {};
}

constexpr RowEntry kRows[] = {{"QuantizeLinear", quantize},
                              {"DequantizeLinear", dequantize},
                              {"DynamicQuantizeLinear", dynamic_quantize},
                              {"QLinearConv", qlinear_conv},
                              {"QLinearMatMul", qlinear_matmul},
                              // ONNX Runtime's tools write them with types that ONNX had not yet.
                              {"com.microsoft.QuantizeLinear", quantize},
                              {"com.microsoft.DequantizeLinear", dequantize}};

}  // namespace

std::span<const RowEntry> quant_rows() { return kRows; }

bool takes_stand_ins(std::string_view op) {
  return op == "QuantizeLinear" || op == "DequantizeLinear" || op == "GatherBlockQuantized";
}

Result<Quantized> dynamically_quantized(Row& row, const Value& x) {
  if (x.dtype != ir::DType::kF32) return row.unsupported("an operand of this type");
  const std::vector<std::string> over = index_list(x.rank(), "k"), index = index_list(x.rank());
  const auto extreme = [&](std::string_view reducer) {
    if (over.empty()) return std::string("X");
    return fmt::format("{}[{}] {}", reducer, fmt::join(over, ","), at("X", over));
  };
  // Of zeros alone any scale is right.
  PRUNERC_TRY(const std::vector<const Value*> how,
              row.call("dynamic_scale", {{"X", &x}},
                       {{"S", ir::DType::kF32, {}}, {"Z", ir::DType::kU8, {}}},
                       fmt::format("let high = {};\n  let low = {};\n  let span = (max(high, 0) - "
                                   "min(low, 0)) / 255;\n  S = if span > 0 then span else 1;\n  Z "
                                   "= u8(clamp(round(-min(low, 0) / S), 0, 255));",
                                   extreme("max"), extreme("min"))));
  PRUNERC_TRY(
      const Value* const y,
      row.call("quantize", {{"X", &x}, {"s", how[0]}, {"z", how[1]}}, ir::DType::kU8, x.shape,
               fmt::format("{} = {};", at("Y", index),
                           quantized(ir::DType::kU8, at("X", index) + " / s", "z"))));
  return Quantized{y, how[0], how[1]};
}

}  // namespace prunerc::onnx
