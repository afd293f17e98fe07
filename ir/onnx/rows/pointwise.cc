// Functions of one element, with broadcasting.
#include "ir/onnx/text/pointwise.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

template <typename... Numbers>
std::string with(std::string_view text, Numbers... numbers) {
  return fmt::format(fmt::runtime(text), number_text(ir::DType::kF32, numbers)...);
}

struct UnaryRow {
  std::string_view op, text;
};
constexpr UnaryRow kUnary[] = {
    {"Sigmoid", "sigmoid($)"},
    {"Tanh", "tanh($)"},
    {"Exp", "exp($)"},
    {"Log", "log($)"},
    {"Sqrt", "sqrt($)"},
    {"Reciprocal", "1 / $"},
    {"Floor", "floor($)"},
    {"Ceil", "ceil($)"},
    {"Round", "round($)"},
    {"Erf", "erf($)"},
    {"Sin", "sin($)"},
    {"Cos", "cos($)"},
    {"Tan", "sin($) / cos($)"},
    {"Cosh", "(exp($) + exp(-$)) / 2"},
    {"Softplus", "max($, 0) + log(1 + exp(-abs($)))"},
    {"Softsign", "$ / (1 + abs($))"},
    {"HardSwish", "$ * clamp($ / 6 + 0.5, 0, 1)"},
    {"Mish", "$ * tanh(max($, 0) + log(1 + exp(-abs($))))"},
};

Result<void> table(Row& row) { return unary(row, std::string(unary_text(row.node().op))); }

Result<void> relu(Row& row) { return unary(row, std::string(kReluText), false); }
Result<void> neg(Row& row) { return unary(row, "-$", false); }
Result<void> abs(Row& row) { return unary(row, "if $ < 0 then -$ else $", false); }
Result<void> sign(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (x->dtype == ir::DType::kU8) return unary(row, "min($, 1)", false);
  return unary(row, "if $ > 0 then 1 else if $ < 0 then -1 else $", false);
}
Result<void> leaky_relu(Row& row) {
  return unary(row, leaky_relu_text(row.attr_float("alpha", 0.01F)));
}
Result<void> elu(Row& row) {
  return unary(row, with("if $ < 0 then {} * (exp($) - 1) else $", row.attr_float("alpha", 1)));
}
Result<void> selu(Row& row) {
  // Until set 6 the numbers had fewer digits.
  const bool is_short = row.opset() < 6;
  return unary(row, with("{1} * (if $ > 0 then $ else {0} * (exp($) - 1))",
                         row.attr_float("alpha", is_short ? 1.6732F : 1.67326319217681884765625),
                         row.attr_float("gamma", is_short ? 1.0507F : 1.05070102214813232421875)));
}
Result<void> celu(Row& row) {
  return unary(row,
               with("max($, 0) + min(0, {0} * (exp($ / {0}) - 1))", row.attr_float("alpha", 1)));
}
Result<void> thresholded_relu(Row& row) {
  return unary(row, with("if $ > {} then $ else 0", row.attr_float("alpha", 1)));
}
Result<void> hard_sigmoid(Row& row) {
  return unary(row, hard_sigmoid_text(row.attr_float("alpha", 0.2F), row.attr_float("beta", 0.5)));
}
Result<void> swish(Row& row) { return unary(row, swish_text(row.attr_float("alpha", 1))); }
Result<void> shrink(Row& row) {
  return unary(row, with("if $ < -{0} then $ + {1} else if $ > {0} then $ - {1} else 0",
                         row.attr_float("lambd", 0.5), row.attr_float("bias", 0)));
}
Result<void> gelu(Row& row) {
  PRUNERC_TRY(const std::string how, row.attr_choice("approximate", {"none", "tanh"}));
  return unary(row, std::string(how == "tanh" ? kTanhGeluText : kGeluText));
}

Result<void> is_nan(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (!ir::is_float(x->dtype)) return row.unsupported("whole numbers in a function of floats");
  return pointwise(row, "is_nan", {x}, ir::DType::kBool,
                   [](std::vector<std::string>& r) { return r[0] + " != " + r[0]; });
}
Result<void> is_inf(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (!ir::is_float(x->dtype)) return row.unsupported("whole numbers in a function of floats");
  const bool low = row.attr_int("detect_negative", 1) != 0,
             high = row.attr_int("detect_positive", 1) != 0;
  return pointwise(row, "is_inf", {x}, ir::DType::kBool, [&](std::vector<std::string>& r) {
    const std::string is_high = r[0] + " == inf", is_low = r[0] + " == -inf";
    if (low && high) return is_high + " || " + is_low;
    return high ? is_high : low ? is_low : std::string("false");
  });
}
Result<void> logical_not(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (!ir::is_bool(x->dtype)) return row.unsupported("an operand that is not bool");
  return pointwise(row, "not", {x}, x->dtype,
                   [](std::vector<std::string>& r) { return "!" + r[0]; });
}
Result<void> identity(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  row.set(0, x);
  return {};
}
Result<void> dropout(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (row.in(2) != nullptr) {
    PRUNERC_TRY(const std::vector<double> training, row.known_numbers(2));
    double ratio = 0.5;
    if (row.in(1) != nullptr) {
      PRUNERC_TRY(const std::vector<double> given, row.known_numbers(1));
      ratio = given.empty() ? 0.5 : given[0];
    }
    if (!training.empty() && training[0] != 0 && ratio != 0) return row.unsupported("training");
  }
  row.set(0, x);
  if (row.wants_output(1)) {
    PRUNERC_TRY(
        const Value* const mask,
        row.call("mask", {}, row.opset() < 10 ? x->dtype : ir::DType::kBool, x->shape,
                 fmt::format("{} = {};", target(x->rank()), row.opset() < 10 ? "1" : "true")));
    row.set(1, mask);
  }
  return {};
}

Result<void> cast_to(Row& row, const Value& x, ir::DType to) {
  if (x.dtype == to) {
    row.set(0, &x);
    return {};
  }
  return pointwise(row, fmt::format("to_{}", ir::to_string(to)), {&x}, to,
                   [&](std::vector<std::string>& r) {
                     return ir::is_bool(to) ? r[0] + " != 0" : cast(to, r[0]);
                   });
}
Result<void> cast_row(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const auto number = static_cast<int32_t>(row.attr_int("to", 0));
  const std::optional<ir::DType> to = dtype_of(number);
  if (!to) return row.unsupported("the type " + type_name(number));
  return cast_to(row, *x, *to);
}
Result<void> cast_like(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const like, row.need(1));
  return cast_to(row, *x, like->dtype);
}

// --- two and more operands

Result<std::vector<const Value*>> operands_of(Row& row) {
  std::vector<const Value*> operands;
  for (std::size_t i = 0; i < row.num_inputs(); ++i) {
    PRUNERC_TRY(const Value* const operand, row.need(i));
    operands.push_back(operand);
  }
  if (operands.empty()) return row.unsupported("no operand");
  return operands;
}

// Until operator set 6 the second operand's place was an attribute.
Result<const Value*> placed(Row& row, const Value& a, const Value& b) {
  if (row.opset() >= 7 || row.attr_int("broadcast", 0) == 0 || !row.has("axis")) return &b;
  const std::optional<int> axis = axis_of(row.attr_int("axis", 0), a.rank());
  if (!axis || *axis + b.rank() > a.rank()) return row.unsupported("an axis that is none");
  std::vector<int64_t> shape = b.shape;
  shape.resize(static_cast<std::size_t>(a.rank() - *axis), 1);
  if (shape == b.shape) return &b;
  std::vector<std::string> reads = index_list(b.rank());
  return row.call("unsqueeze", {{"X", &b}}, b.dtype, shape,
                  fmt::format("{} = {};", target(static_cast<int>(shape.size())), at("X", reads)));
}

struct BinaryRow {
  std::string_view op, text;
  bool gives_bool = false;
};
constexpr BinaryRow kBinary[] = {
    {"Add", "{0} + {1}"},
    {"Sub", "{0} - {1}"},
    {"Mul", "{0} * {1}"},
    {"Equal", "{0} == {1}", true},
    {"Less", "{0} < {1}", true},
    {"Greater", "{0} > {1}", true},
    {"LessOrEqual", "{0} <= {1}", true},
    {"GreaterOrEqual", "{0} >= {1}", true},
};

Result<void> binary(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* b, row.need(1));
  PRUNERC_TRY_VOID([&]() -> Result<void> {
    PRUNERC_TRY(b, placed(row, *a, *b));
    return {};
  }());
  for (const BinaryRow& entry : kBinary) {
    if (entry.op != row.node().op) continue;
    if (a->dtype != b->dtype) return row.unsupported("operands of two types");
    if (ir::is_bool(a->dtype) && entry.op != "Equal") return row.unsupported("bool operands");
    const ir::DType out = entry.gives_bool ? ir::DType::kBool : a->dtype;
    return pointwise(row, stem_of(entry.op), {a, b}, out, [&](std::vector<std::string>& r) {
      std::string body = fmt::format(fmt::runtime(entry.text), r[0], r[1]);
      // Narrow whole numbers are computed wide; the result wraps.
      return entry.gives_bool || ir::is_float(a->dtype) ? body : cast(a->dtype, body);
    });
  }
  return row.unsupported("there is no such function");
}

// Whole operands as wide as needed, and the size of the second, at least 1 for all to see.
struct Whole {
  std::string a, b, size_b;
  Whole(const Value& x, const std::vector<std::string>& reads) {
    const ir::DType wide = x.dtype == ir::DType::kI64 ? ir::DType::kI64 : ir::DType::kI32;
    a = cast(wide, reads[0]);
    b = cast(wide, reads[1]);
    size_b = fmt::format("max(max({0}, -{0}), 1)", b);
  }
};

Result<void> divide(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* b, row.need(1));
  PRUNERC_TRY_VOID([&]() -> Result<void> {
    PRUNERC_TRY(b, placed(row, *a, *b));
    return {};
  }());
  if (a->dtype != b->dtype || ir::is_bool(a->dtype))
    return row.unsupported("operands of these types");
  return pointwise(row, "div", {a, b}, a->dtype, [&](std::vector<std::string>& r) {
    if (ir::is_float(a->dtype)) return fmt::format("{} / {}", r[0], r[1]);
    // ONNX divides towards zero, ours is the floor. The least number has no opposite, so it is divided as it
    // is. What a division by zero gives is nobody's to say: as by one.
    const Whole w(*a, r);
    const std::string quotient =
        fmt::format("(if {0} < 0 then ({0} + ({1} - 1)) / {1} else {0} / {1})", w.a, w.size_b);
    return cast(a->dtype, fmt::format("if {0} < 0 then -{1} else {1}", w.b, quotient));
  });
}

// The rest of a division towards zero, with the sign of the dividend. The quotient in f64 may be 1 too large, which shows
// in the rest, exact by fma. Beyond 2^52 it may be worse: NaN, as for a divisor of 0.
std::string rest_text(ir::DType dtype, const std::string& a, const std::string& b) {
  const auto wide = [&](const std::string& text) {
    return dtype == ir::DType::kF64 ? text : cast(ir::DType::kF64, text);
  };
  const std::string x = fmt::format("abs({})", wide(a)), y = fmt::format("abs({})", wide(b));
  const std::string quotient = fmt::format("floor({} / {})", x, y);
  const std::string rest = fmt::format("fma(-{}, {}, {})", quotient, y, x);
  const std::string value = fmt::format(
      "(if {0} < 0 then f64(-1) else f64(1)) * (if {1} < 4503599627370496 then (if {2} < 0 then "
      "{2} + "
      "{3} else {2}) else sqrt(-{1}))",
      a, quotient, rest, y);
  return fmt::format("if abs({0}) < abs({1}) then {0} else {2}", a, b,
                     dtype == ir::DType::kF64 ? value : cast(dtype, value));
}

// Of floats: with `fmod` as C has it, else with the sign of the divisor, as ONNX's reference has it.
Result<void> float_modulo(Row& row, const Value& a, const Value& b, bool is_fmod) {
  PRUNERC_TRY(const Value* const rest,
              elementwise(row, "fmod", {&a, &b}, a.dtype, [&](std::vector<std::string>& r) {
                return rest_text(a.dtype, r[0], r[1]);
              }));
  if (is_fmod) {
    row.set(0, rest);
    return {};
  }
  return pointwise(row, "mod", {rest, &b}, a.dtype, [](std::vector<std::string>& r) {
    return fmt::format("if {0} < 0 && {1} > 0 || {0} > 0 && {1} < 0 then {0} + {1} else {0}", r[0],
                       r[1]);
  });
}

Result<void> modulo(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  const bool is_fmod = row.attr_int("fmod", 0) != 0;
  if (a->dtype != b->dtype || ir::is_bool(a->dtype))
    return row.unsupported("operands of these types");
  if (ir::is_float(a->dtype)) return float_modulo(row, *a, *b, is_fmod);
  return pointwise(row, "mod", {a, b}, a->dtype, [&](std::vector<std::string>& r) {
    const Whole w(*a, r);
    // The rest has the sign of the one operand or of the other; ours is never below 0.
    const std::string rest = fmt::format("({} % {})", w.a, w.size_b);
    return cast(a->dtype, fmt::format("if {0} < 0 && {1} != 0 then {1} - {2} else {1}",
                                      is_fmod ? w.a : w.b, rest, w.size_b));
  });
}

Result<void> power(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* b, row.need(1));
  PRUNERC_TRY_VOID([&]() -> Result<void> {
    PRUNERC_TRY(b, placed(row, *a, *b));
    return {};
  }());
  if (b->known && literal(*b)) {
    const double by = b->element(0);
    const bool is_float = ir::is_float(a->dtype);
    const char* const text = by == 2      ? "$ * $"
                             : by == 3    ? "$ * $ * $"
                             : by == 0.5  ? "sqrt($)"
                             : by == -0.5 ? "rsqrt($)"
                                          : nullptr;
    // Products of whole numbers are exact, powers of doubles are not.
    const bool fits = is_float || (ir::byte_size(a->dtype) >= 4 && (by == 2 || by == 3));
    if (text != nullptr && fits && broadcast_shape(a->shape, b->shape) == a->shape)
      return unary(row, text, is_float);
  }
  const ir::DType wide =
      a->dtype == ir::DType::kF64 || b->dtype == ir::DType::kF64 || !ir::is_float(a->dtype)
          ? ir::DType::kF64
          : ir::DType::kF32;
  return pointwise(row, "pow", {a, b}, a->dtype, [&](std::vector<std::string>& r) {
    std::string text = fmt::format("pow({}, {})", cast(wide, r[0]), cast(wide, r[1]));
    return a->dtype == wide ? text : cast(a->dtype, text);
  });
}

Result<void> logical(Row& row) {
  PRUNERC_TRY(std::vector<const Value*> operands, operands_of(row));
  if (operands.size() != 2) return row.unsupported("a number of operands that is not 2");
  PRUNERC_TRY(operands[1], placed(row, *operands[0], *operands[1]));
  for (const Value* operand : operands) {
    if (!ir::is_bool(operand->dtype)) return row.unsupported("an operand that is not bool");
  }
  const std::string_view op = row.node().op;
  return pointwise(
      row, stem_of(op) + "_", operands, ir::DType::kBool, [&](std::vector<std::string>& r) {
        return fmt::format("{} {} {}", r[0], op == "And" ? "&&" : op == "Or" ? "||" : "!=", r[1]);
      });
}

Result<void> variadic(Row& row) {
  PRUNERC_TRY(std::vector<const Value*> operands, operands_of(row));
  const std::string_view op = row.node().op;
  const ir::DType dtype = operands[0]->dtype;
  for (const Value* operand : operands) {
    if (operand->dtype != dtype || ir::is_bool(dtype))
      return row.unsupported("operands of these types");
  }
  const std::size_t count = operands.size();
  const auto joined = [&](const std::vector<const Value*>& group,
                          const std::vector<std::string>& r) {
    if (op == "Min" || op == "Max") return extreme_text(op == "Min" ? "min" : "max", group, r);
    return fmt::format("{}", fmt::join(r, " + "));
  };
  const auto typed = [&](std::string text) {
    return ir::is_float(dtype) ? text : cast(dtype, text);
  };
  PRUNERC_TRY(
      operands, joined_in_groups(std::move(operands), [&](const std::vector<const Value*>& group) {
        return elementwise(row, op == "Mean" ? "sum" : stem_of(op), group, dtype,
                           [&](std::vector<std::string>& r) { return typed(joined(group, r)); });
      }));
  return pointwise(row, stem_of(op), operands, dtype, [&](std::vector<std::string>& r) {
    const std::string text = joined(operands, r);
    return typed(op == "Mean" ? fmt::format("({}) / {}", text, count) : text);
  });
}

Result<void> where(Row& row) {
  PRUNERC_TRY(const std::vector<const Value*> operands, operands_of(row));
  if (operands.size() != 3) return row.unsupported("a number of operands that is not 3");
  if (!ir::is_bool(operands[0]->dtype) || operands[1]->dtype != operands[2]->dtype)
    return row.unsupported("operands of these types");
  return pointwise(row, "where_", operands, operands[1]->dtype, [&](std::vector<std::string>& r) {
    return fmt::format("if {} then {} else {}", r[0], r[1], r[2]);
  });
}

Result<void> prelu(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* slope, row.need(1));
  if (slope->dtype != x->dtype || ir::is_bool(x->dtype))
    return row.unsupported("operands of these types");
  // Until set 6 a vector of slopes was one for each channel.
  if (row.opset() < 7 && slope->rank() == 1 && x->rank() > 1 && slope->shape[0] == x->shape[1]) {
    std::vector<int64_t> shape(static_cast<std::size_t>(x->rank() - 1), 1);
    shape[0] = slope->shape[0];
    PRUNERC_TRY(slope,
                row.call("unsqueeze", {{"X", slope}}, slope->dtype, shape,
                         fmt::format("{} = X[i0];", target(static_cast<int>(shape.size())))));
  }
  return pointwise(row, "prelu", {x, slope}, x->dtype, [&](std::vector<std::string>& r) {
    std::string text = fmt::format("if {0} < 0 then {0} * {1} else {0}", r[0], r[1]);
    return ir::is_float(x->dtype) ? text : cast(x->dtype, text);
  });
}

Result<void> clip(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  std::vector<const Value*> operands = {x};
  const bool by_attributes = row.opset() < 11;
  const Value* low = by_attributes ? nullptr : row.in(1);
  const Value* high = by_attributes ? nullptr : row.in(2);
  if (by_attributes && row.has("min")) low = row.scalar(x->dtype, row.attr_float("min", 0));
  if (by_attributes && row.has("max")) high = row.scalar(x->dtype, row.attr_float("max", 0));
  if (low != nullptr) operands.push_back(low);
  if (high != nullptr) operands.push_back(high);
  for (const Value* operand : operands) {
    if (operand->dtype != x->dtype || ir::is_bool(x->dtype))
      return row.unsupported("operands of these types");
  }
  if (operands.size() == 1) {
    row.set(0, x);
    return {};
  }
  return pointwise(row, "clip", operands, x->dtype, [&](std::vector<std::string>& r) {
    std::string text = r[0];
    if (low != nullptr) text = fmt::format("max({}, {})", r[1], text);
    if (high != nullptr) text = fmt::format("min({}, {})", r.back(), text);
    return ir::is_float(x->dtype) ? text : cast(x->dtype, text);
  });
}

const std::vector<RowEntry>& rows() {
  static const std::vector<RowEntry> all = [] {
    std::vector<RowEntry> list = {{"Relu", relu},
                                  {"Neg", neg},
                                  {"Abs", abs},
                                  {"Sign", sign},
                                  {"LeakyRelu", leaky_relu},
                                  {"Elu", elu},
                                  {"Selu", selu},
                                  {"Celu", celu},
                                  {"ThresholdedRelu", thresholded_relu},
                                  {"HardSigmoid", hard_sigmoid},
                                  {"Swish", swish},
                                  {"Shrink", shrink},
                                  {"Gelu", gelu},
                                  {"IsNaN", is_nan},
                                  {"IsInf", is_inf},
                                  {"Not", logical_not},
                                  {"Identity", identity},
                                  {"Dropout", dropout},
                                  {"Cast", cast_row},
                                  {"CastLike", cast_like},
                                  {"Add", binary},
                                  {"Sub", binary},
                                  {"Mul", binary},
                                  {"Div", divide},
                                  {"Mod", modulo},
                                  {"Pow", power},
                                  {"Equal", binary},
                                  {"Less", binary},
                                  {"Greater", binary},
                                  {"LessOrEqual", binary},
                                  {"GreaterOrEqual", binary},
                                  {"And", logical},
                                  {"Or", logical},
                                  {"Xor", logical},
                                  {"Min", variadic},
                                  {"Max", variadic},
                                  {"Sum", variadic},
                                  {"Mean", variadic},
                                  {"Where", where},
                                  {"PRelu", prelu},
                                  {"Clip", clip}};
    for (const UnaryRow& entry : kUnary) list.push_back({entry.op, table});
    return list;
  }();
  return all;
}

}  // namespace

std::span<const RowEntry> pointwise_rows() { return rows(); }

std::string_view unary_text(std::string_view op) {
  for (const UnaryRow& entry : kUnary) {
    if (entry.op == op) return entry.text;
  }
  return {};
}
std::string leaky_relu_text(double alpha) { return with("if $ < 0 then {} * $ else $", alpha); }
std::string hard_sigmoid_text(double alpha, double beta) {
  return with("min(1, max(0, {} * $ + {}))", alpha, beta);
}
std::string swish_text(double alpha) { return with("$ * sigmoid({} * $)", alpha); }

}  // namespace prunerc::onnx
