// Operators on numbers of 8 bits of ONNX Runtime's own domain. Rounding is as its kernels do it: which of them take the
// zero point before and which after they round, and in which order they scale.
#include "ir/onnx/text/integer.h"
#include "ir/onnx/text/pointwise.h"
#include "ir/onnx/text/pool.h"
#include "ir/onnx/text/product.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

namespace prunerc::onnx {
namespace {

/// A tensor of 8 bits with its scale and zero point, or those of a result alone.
struct Scaled {
  const Value *values = nullptr, *scale = nullptr, *zero = nullptr;  ///< no zero: 0
};

// A scale in f32 and a zero point of the type, both one for all.
Result<void> check_scale(const Row& row, const Scaled& item, ir::DType dtype) {
  if (item.scale->dtype != ir::DType::kF32 || (item.zero != nullptr && item.zero->dtype != dtype))
    return row.unsupported("a scale or zero point of another type");
  for (const Value* value : {item.scale, item.zero}) {
    if (value != nullptr && (value->num_elements() != 1 || value->rank() > 1))
      return row.unsupported("several scales or zero points");
  }
  return {};
}

// Three inputs from `first` on.
Result<Scaled> operand_at(Row& row, std::size_t first) {
  Scaled out;
  PRUNERC_TRY(out.values, row.need(first));
  PRUNERC_TRY(out.scale, row.need(first + 1));
  out.zero = row.in(first + 2);
  if (!is_byte(*out.values)) return row.unsupported("an operand of this shape or type");
  PRUNERC_TRY_VOID(check_scale(row, out, out.values->dtype));
  return out;
}
// The same of what is no scalar.
Result<Scaled> scaled_at(Row& row, std::size_t first) {
  PRUNERC_TRY(const Scaled out, operand_at(row, first));
  if (out.values->rank() == 0) return row.unsupported("an operand of this shape or type");
  return out;
}

// The scale and zero point of the result.
Result<Scaled> result_at(Row& row, std::size_t first, ir::DType dtype) {
  Scaled out;
  PRUNERC_TRY(out.scale, row.need(first));
  out.zero = row.in(first + 1);
  PRUNERC_TRY_VOID(check_scale(row, out, dtype));
  return out;
}

// A zero point as a number; 0 if there is none.
std::string zero_text(std::string_view name, const Value* zero) {
  return fmt::format("f32({})", zero == nullptr ? "0" : single_read(name, *zero));
}

// What an element is above its zero point, as a whole number.
std::string centred(const std::string& read, const std::string& zero) {
  return zero.empty() ? fmt::format("i32({})", read)
                      : fmt::format("(i32({}) - i32({}))", read, zero);
}

std::vector<Arg> with_zeros(std::vector<Arg> args,
                            std::initializer_list<std::pair<const char*, const Value*>> zeros) {
  for (const auto& [name, zero] : zeros) {
    if (zero != nullptr) args.push_back({name, zero});
  }
  return args;
}

Result<void> qlinear_add(Row& row) {
  PRUNERC_TRY(const Scaled a, scaled_at(row, 0));
  PRUNERC_TRY(const Scaled b, scaled_at(row, 3));
  if (a.values->dtype != b.values->dtype) return row.unsupported("operands of two types");
  const ir::DType dtype = a.values->dtype;
  PRUNERC_TRY(const Scaled c, result_at(row, 6, dtype));
  PRUNERC_TRY(
      const std::vector<const Value*> how,
      row.call("add_scales",
               with_zeros({{"sa", a.scale}, {"sb", b.scale}, {"sc", c.scale}},
                          {{"za", a.zero}, {"zb", b.zero}, {"zc", c.zero}}),
               {{"P", ir::DType::kF32, {}}, {"Q", ir::DType::kF32, {}}, {"R", ir::DType::kF32, {}}},
               fmt::format("P = {0} / {2};\n  Q = {1} / {2};\n  R = {5} - fma(P, {3}, Q * {4});",
                           single_read("sa", *a.scale), single_read("sb", *b.scale),
                           single_read("sc", *c.scale), zero_text("za", a.zero),
                           zero_text("zb", b.zero), zero_text("zc", c.zero))));
  return pointwise(row, "qlinear_add", {a.values, b.values, how[0], how[1], how[2]}, dtype,
                   [&](std::vector<std::string>& r) {
                     return quantized(dtype,
                                      fmt::format("fma(f32({}), {}, fma(f32({}), {}, {}))", r[0],
                                                  r[2], r[1], r[3], r[4]),
                                      "");
                   });
}

Result<void> qlinear_mul(Row& row) {
  PRUNERC_TRY(const Scaled a, scaled_at(row, 0));
  PRUNERC_TRY(const Scaled b, scaled_at(row, 3));
  if (a.values->dtype != b.values->dtype) return row.unsupported("operands of two types");
  const ir::DType dtype = a.values->dtype;
  PRUNERC_TRY(const Scaled c, result_at(row, 6, dtype));
  PRUNERC_TRY(const Value* const factor,
              row.call("requantize_scale", {{"sa", a.scale}, {"sb", b.scale}, {"sc", c.scale}},
                       ir::DType::kF32, {},
                       fmt::format("Y = {} * {} / {};", single_read("sa", *a.scale),
                                   single_read("sb", *b.scale), single_read("sc", *c.scale))));
  std::vector<const Value*> operands = {a.values, b.values, factor};
  for (const Value* zero : {a.zero, b.zero, c.zero}) {
    if (zero != nullptr) operands.push_back(zero);
  }
  return pointwise(row, "qlinear_mul", operands, dtype, [&](std::vector<std::string>& r) {
    std::size_t next = 3;
    const std::string za = a.zero != nullptr ? r[next++] : "";
    const std::string zb = b.zero != nullptr ? r[next++] : "";
    std::string value =
        fmt::format("f32({} * {}) * {}", centred(r[0], za), centred(r[1], zb), r[2]);
    if (c.zero != nullptr) value += fmt::format(" + f32({})", r[next]);
    return quantized(dtype, value, "");
  });
}

// Of numbers with one scale those with another, through a function of $.
Result<const Value*> through(Row& row, std::string_view stem, const Scaled& x, const Scaled& y,
                             std::string_view text) {
  std::vector<const Value*> operands = {x.values, x.scale, y.scale};
  for (const Value* zero : {x.zero, y.zero}) {
    if (zero != nullptr) operands.push_back(zero);
  }
  const ir::DType dtype = x.values->dtype;
  return elementwise(row, stem, operands, dtype, [&](std::vector<std::string>& r) {
    const std::string number =
        fmt::format("(f32({}) * {})", centred(r[0], x.zero != nullptr ? r[3] : ""), r[1]);
    return quantized(dtype, fmt::format("({}) / {}", put(text, number), r[2]),
                     y.zero != nullptr ? r.back() : "");
  });
}

Result<void> qlinear_unary(Row& row, std::string_view stem, std::string_view text) {
  PRUNERC_TRY(const Scaled x, scaled_at(row, 0));
  PRUNERC_TRY(const Scaled y, result_at(row, 3, x.values->dtype));
  PRUNERC_TRY(const Value* const result, through(row, stem, x, y, text));
  row.set(0, result);
  return {};
}
Result<void> qlinear_sigmoid(Row& row) {
  return qlinear_unary(row, "qlinear_sigmoid", unary_text("Sigmoid"));
}
Result<void> qlinear_leaky_relu(Row& row) {
  return qlinear_unary(row, "qlinear_leaky_relu", leaky_relu_text(row.attr_float("alpha", 0.01F)));
}

// Whether both are known to be the same number.
bool is_same(const Value* a, const Value* b) {
  const auto number = [](const Value* value) { return value == nullptr ? 0 : value->element(0); };
  return (a == nullptr || a->known) && (b == nullptr || b->known) && number(a) == number(b);
}

// As `y` has them; the same bytes where x is so already.
Result<const Value*> rescaled(Row& row, const Scaled& x, const Scaled& y) {
  if (is_same(x.scale, y.scale) && is_same(x.zero, y.zero)) return x.values;
  return through(row, "requantize", x, y, "$");
}

Result<void> qlinear_where(Row& row) {
  PRUNERC_TRY(const Value* const condition, row.need(0));
  PRUNERC_TRY(const Scaled x, operand_at(row, 1));
  PRUNERC_TRY(const Scaled y, operand_at(row, 4));
  const ir::DType dtype = x.values->dtype;
  PRUNERC_TRY(const Scaled z, result_at(row, 7, dtype));
  if (!ir::is_bool(condition->dtype) || y.values->dtype != dtype)
    return row.unsupported("operands of these types");
  PRUNERC_TRY(const Value* const chosen, rescaled(row, x, z));
  PRUNERC_TRY(const Value* const other, rescaled(row, y, z));
  return pointwise(row, "where_", {condition, chosen, other}, dtype,
                   [](std::vector<std::string>& r) {
                     return fmt::format("if {} then {} else {}", r[0], r[1], r[2]);
                   });
}

Result<void> qlinear_concat(Row& row) {
  if (row.num_inputs() < 5 || (row.num_inputs() - 2) % 3 != 0)
    return row.unsupported("parts without a scale and a zero point each");
  if (!row.has("axis")) return row.unsupported("no axis");
  PRUNERC_TRY(const Scaled first, scaled_at(row, 2));
  PRUNERC_TRY(const Scaled y, result_at(row, 0, first.values->dtype));
  std::vector<const Value*> parts;
  for (std::size_t i = 2; i < row.num_inputs(); i += 3) {
    PRUNERC_TRY(const Scaled part, scaled_at(row, i));
    if (part.values->dtype != first.values->dtype) return row.unsupported("parts of two types");
    PRUNERC_TRY(const Value* const same, rescaled(row, part, y));
    parts.push_back(same);
  }
  PRUNERC_TRY(const Value* const all, concatenated(row, parts, row.attr_int("axis", 1)));
  row.set(0, all);
  return {};
}

Result<void> qlinear_global_average_pool(Row& row) {
  PRUNERC_TRY(const Scaled x, scaled_at(row, 0));
  PRUNERC_TRY(const Scaled y, result_at(row, 3, x.values->dtype));
  const std::size_t rank = x.values->shape.size();
  if (rank < 3 || x.values->num_elements() == 0)
    return row.unsupported("an operand without axes to average over");
  const std::size_t channel = row.attr_int("channels_last", 0) != 0 ? rank - 1 : 1;
  std::vector<int64_t> shape = x.values->shape;
  std::vector<std::string> target = index_list(static_cast<int>(rank)), reads = target, over;
  int64_t count = 1;
  for (std::size_t i = 1; i < rank; ++i) {
    if (i == channel) continue;
    count *= shape[i];
    shape[i] = 1;
    reads[i] = fmt::format("k{}", i);
    over.push_back(reads[i]);
  }
  if (count > std::numeric_limits<int32_t>::max() / 255)
    return row.unsupported("sums that may leave 32 bits");
  PRUNERC_TRY(const Value* const factor,
              row.call("pool_scale", {{"sx", x.scale}, {"sy", y.scale}}, ir::DType::kF32, {},
                       fmt::format("Y = {} / ({} * {});", single_read("sx", *x.scale),
                                   single_read("sy", *y.scale), count)));
  const std::string total = at("s", target);
  const std::string zero_x = x.zero != nullptr ? single_read("zx", *x.zero) : "",
                    zero_y = y.zero != nullptr ? single_read("zy", *y.zero) : "";
  const std::string body =
      fmt::format("let {} = sum:i32[{}] {};\n  {} = {};", total, fmt::join(over, ","),
                  centred(at("X", reads), zero_x), at("Y", target),
                  quantized(x.values->dtype, fmt::format("f32({}) * m", total), zero_y));
  PRUNERC_TRY(const Value* const result, row.call("qlinear_global_average_pool",
                                                  with_zeros({{"X", x.values}, {"m", factor}},
                                                             {{"zx", x.zero}, {"zy", y.zero}}),
                                                  x.values->dtype, shape, body));
  row.set(0, result);
  return {};
}

/// Windows of so many elements are written out: then no schedule adds them in another order or leaves a product unrounded,
/// as it may in a reduction, and results half way between two numbers fall as they do in ONNX Runtime.
constexpr int64_t kMaxWritten = 64;
/// The same of windows that leave the image: each condition that an element brings doubles the code.
constexpr int64_t kMaxWrittenPadded = 9;

bool is_written(const Pool& p) {
  int64_t count = 1;
  for (const int64_t extent : p.window.kernel) {
    count *= extent;
    if (count > (p.leaves_image ? kMaxWrittenPadded : kMaxWritten)) return false;
  }
  return true;
}

// Over the window, of an element as text in k0, k1, ...
std::string window_sum(const Pool& p, const std::string& element) {
  const Window& w = p.window;
  if (!is_written(p)) return fmt::format("sum[{}] {}", p.over, element);
  std::string sum;
  for (int64_t i = 0; i < product(w.kernel); ++i) {
    std::string tap = element;
    int64_t left = i;
    // The last axis is the fastest, and k10 is not taken for k1.
    for (std::size_t axis = w.rank(); axis-- > 0;) {
      const std::string name = fmt::format("k{}", axis),
                        place = std::to_string(left % w.kernel[axis]);
      for (std::size_t from = tap.find(name); from != std::string::npos; from = tap.find(name))
        tap.replace(from, name.size(), place);
      left /= w.kernel[axis];
    }
    sum += (i == 0 ? "" : " + ") + tap;
  }
  return sum;
}

Result<void> qlinear_average_pool(Row& row) {
  PRUNERC_TRY(const Scaled x, scaled_at(row, 0));
  PRUNERC_TRY(const Scaled y, result_at(row, 3, x.values->dtype));
  if (row.attr_int("channels_last", 0) != 0) return row.unsupported("channels_last");
  if (row.attr_int("ceil_mode", 0) != 0) return row.unsupported("ceil_mode");
  PRUNERC_TRY(const Pool p, pool_of(row, *x.values));
  const std::string count = counted(p.window, row.attr_int("count_include_pad", 0) != 0);
  const std::string zero = x.zero != nullptr ? single_read("zx", *x.zero) : "";
  std::string value =
      fmt::format("s[{0}] / f32(num[{0}]) / {1}", p.target, single_read("sy", *y.scale));
  if (y.zero != nullptr) value += fmt::format(" + f32({})", single_read("zy", *y.zero));
  const std::string element =
      fmt::format("(f32({}) * {})", centred(or_else(p, zero.empty() ? "0" : zero), zero),
                  single_read("sx", *x.scale));
  const std::string body =
      fmt::format("let s[{0}] = {1};\n  let num[{0}] = i64({2});\n  Y[{0}] = {3};", p.target,
                  window_sum(p, element), count, quantized(x.values->dtype, value, ""));
  PRUNERC_TRY(const Value* const result,
              row.call("qlinear_average_pool",
                       with_zeros({{"X", x.values}, {"sx", x.scale}, {"sy", y.scale}},
                                  {{"zx", x.zero}, {"zy", y.zero}}),
                       x.values->dtype, p.shape, body));
  row.set(0, result);
  return {};
}

constexpr RowEntry kRows[] = {
    {"com.microsoft.QLinearAdd", qlinear_add},
    {"com.microsoft.QLinearMul", qlinear_mul},
    {"com.microsoft.QLinearSigmoid", qlinear_sigmoid},
    {"com.microsoft.QLinearLeakyRelu", qlinear_leaky_relu},
    {"com.microsoft.QLinearConcat", qlinear_concat},
    {"com.microsoft.QLinearWhere", qlinear_where},
    {"com.microsoft.QLinearGlobalAveragePool", qlinear_global_average_pool},
    {"com.microsoft.QLinearAveragePool", qlinear_average_pool},
    {"com.microsoft.QGemm", qgemm},
    {"com.microsoft.MatMulIntegerToFloat", matmul_integer_to_float},
    {"com.microsoft.DynamicQuantizeMatMul", dynamic_quantize_matmul},
    {"com.microsoft.DynamicQuantizeLSTM", dynamic_quantize_lstm}};

}  // namespace

std::span<const RowEntry> contrib_quant_rows() { return kRows; }

}  // namespace prunerc::onnx
