// Normalisations: of batches, of rows, and softmax.
#include "ir/onnx/text/norm.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

// Until set 14 who asks for what training updates means training; until set 7 "is_test" says so.
bool trains(const Row& row) {
  if (row.attr_int("training_mode", 0) != 0) return true;
  bool wants_more = false;
  for (std::size_t i = 1; i < 5; ++i) wants_more |= row.wants_output(i);
  if (!wants_more || row.opset() >= 14) return false;
  return row.opset() >= 7 || row.attr_int("is_test", 0) == 0;
}

// X * s + t, by channels, of a scale and a shift of one type: two calls, which passes move into weights. Of
// 16 bits one, rounded once.
Result<const Value*> normed_channels(Row& row, const Value& x, const Value& scale,
                                     const Value& shift) {
  const std::vector<std::string> index = index_list(x.rank());
  const std::string here = fmt::format("{}", fmt::join(index, ","));
  const std::string type(ir::to_string(x.dtype));
  if (is_narrow(x.dtype)) {
    return row.call("norm_channels", {{"X", &x}, {"s", &scale}, {"t", &shift}}, x.dtype, x.shape,
                    fmt::format("Y[{0}] = {1}({2}(X[{0}]) * s[i1] + t[i1]);", here, type,
                                ir::to_string(scale.dtype)));
  }
  const auto made = [&](std::string text) {
    return x.dtype == scale.dtype ? text : fmt::format("{}({})", type, text);
  };
  PRUNERC_TRY(
      const Value* const scaled,
      row.call("scale_channels", {{"X", &x}, {"s", &scale}}, x.dtype, x.shape,
               fmt::format("Y[{0}] = {1};", here, made(fmt::format("X[{}] * s[i1]", here)))));
  return row.call("shift_channels", {{"X", scaled}, {"t", &shift}}, x.dtype, x.shape,
                  fmt::format("Y[{0}] = {1};", here, made(fmt::format("X[{}] + t[i1]", here))));
}

// Y = X * s + t. Scale and shift are calls of their own: they follow from constants, and passes move
// them into weights. Of 16 bits both stay wide, and the result is rounded once.
Result<void> batch_norm(Row& row) {
  const Value* operands[5] = {};
  for (std::size_t i = 0; i < 5; ++i) {
    PRUNERC_TRY(operands[i], row.need(i));
  }
  const auto [x, gamma, beta, mean, variance] = operands;
  if (trains(row)) return row.unsupported("training");
  if (x->rank() < 2 || !ir::is_float(x->dtype))
    return row.unsupported("an operand of this rank or type");
  for (const Value* item : {gamma, beta, mean, variance}) {
    if (item->shape != std::vector<int64_t>{x->shape[1]})
      return row.unsupported("parameters of another shape");
    if (!ir::is_float(item->dtype)) return row.unsupported("parameters of this type");
  }
  if (row.opset() < 9 && row.attr_int("spatial", 1) == 0)
    return row.unsupported("a mean for each place");
  const std::string epsilon = number_text(ir::DType::kF32, row.attr_float("epsilon", 1e-5F));
  const bool is_uniform =
      beta->dtype == gamma->dtype && mean->dtype == gamma->dtype && variance->dtype == gamma->dtype;
  const bool keeps_type = is_uniform && !is_narrow(gamma->dtype);
  const ir::DType wide = keeps_type                    ? gamma->dtype
                         : x->dtype == ir::DType::kF64 ? ir::DType::kF64
                                                       : ir::DType::kF32;
  const std::string wide_type(ir::to_string(wide));
  PRUNERC_TRY(const Value* const scale,
              row.call("norm_scale", {{"g", gamma}, {"v", variance}}, wide, gamma->shape,
                       fmt::format("Y[c] = {0}({1} / sqrt({0}(v[c]) + {2}));", wide_type,
                                   keeps_type ? "g[c]" : wide_type + "(g[c])", epsilon)));
  PRUNERC_TRY(
      const Value* const shift,
      row.call("norm_shift", {{"b", beta}, {"m", mean}, {"s", scale}}, wide, gamma->shape,
               keeps_type ? std::string("Y[c] = b[c] - m[c] * s[c];")
                          : fmt::format("Y[c] = {0}(b[c]) - {0}(m[c]) * s[c];", wide_type)));
  row.set(1, mean);
  row.set(2, variance);
  row.set(3, mean);
  row.set(4, variance);
  PRUNERC_TRY(const Value* const y, normed_channels(row, *x, *scale, *shift));
  row.set(0, y);
  return {};
}

/// Softmax and its kin over axes [first, end), which a row spans.
Result<void> softmax(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (!ir::is_float(x->dtype)) return row.unsupported("whole numbers");
  const bool flattens = row.opset() < 13;
  const std::optional<int> axis = axis_of(row.attr_int("axis", flattens ? 1 : -1), x->rank());
  if (!axis) return row.unsupported("an axis that is none");
  std::vector<std::string> index = index_list(x->rank()), read = index, row_index, over;
  for (int i = 0; i < x->rank(); ++i) {
    const auto at_i = static_cast<std::size_t>(i);
    if (i == *axis || (flattens && i > *axis)) {
      read[at_i] = fmt::format("k{}", i);
      over.push_back(read[at_i]);
    } else {
      row_index.push_back(index[at_i]);
    }
  }
  const std::string k = fmt::format("{}", fmt::join(over, ","));
  const std::string x_here = at("X", index), x_k = at("X", read), m = at("m", row_index),
                    s = at("s", row_index), e = at("e", index), e_k = at("e", read),
                    y = at("Y", index);
  const std::string type(ir::to_string(x->dtype));
  const bool narrow = is_narrow(x->dtype);
  const auto wide = [&](const std::string& text) {
    return narrow ? fmt::format("f32({})", text) : text;
  };
  const auto made = [&](const std::string& text) {
    return narrow ? fmt::format("{}({})", type, text) : text;
  };
  std::string body, stem = "softmax";
  if (row.node().op == "Softmax") {
    body = fmt::format(
        "let {0} = max[{1}] {2};\n  let {3} = exp({4} - {5});\n  let {6} = sum[{1}] {7};\n  {8} = "
        "{9};",
        m, k, x_k, e, wide(x_here), wide(m), s, e_k, y, made(e + " / " + s));
  } else if (row.node().op == "LogSoftmax") {
    stem = "log_softmax";
    body = fmt::format(
        "let {0} = max[{1}] {2};\n  let {3} = sum[{1}] exp({4} - {5});\n  {6} = {7};", m, k, x_k, s,
        wide(x_k), wide(m), y, made(fmt::format("{} - {} - log({})", wide(x_here), wide(m), s)));
  } else {
    stem = "hardmax";
    // argmax counts over the axes in row-major order.
    const auto first = static_cast<std::size_t>(*axis);
    std::string place = index[first];
    for (std::size_t i = first + 1; i < first + over.size(); ++i)
      place = fmt::format("({})*{} + {}", place, x->shape[i], index[i]);
    body = fmt::format("let {0} = argmax[{1}] {2};\n  {3} = if i64({4}) == {0} then {5} else {6};",
                       m, k, x_k, y, place, number_text(x->dtype, 1), number_text(x->dtype, 0));
  }
  PRUNERC_TRY(const Value* const result, row.call(stem, {{"X", x}}, x->dtype, x->shape, body));
  row.set(0, result);
  return {};
}

Result<void> layer_norm(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const std::optional<int> axis = axis_of(row.attr_int("axis", -1), x->rank());
  if (!axis || !ir::is_float(x->dtype))
    return row.unsupported("an axis that is none, or this type");
  RowNorm n;
  n.first = static_cast<std::size_t>(*axis);
  n.has_mean = row.node().op == "LayerNormalization";
  n.epsilon = number_text(ir::DType::kF32, row.attr_float("epsilon", 1e-5F));
  for (std::size_t i = 1; i < 3; ++i) {
    const Value* const value = row.in(i);
    if (value == nullptr) continue;
    if (broadcast_shape(x->shape, value->shape) != x->shape)
      return row.unsupported("parameters of another shape");
    if (value->dtype != x->dtype && !(is_narrow(x->dtype) && value->dtype == ir::DType::kF32))
      return row.unsupported("parameters of another type");
    const std::string name = i == 1 ? "g" : "b";
    if (i == 1 && !n.has_mean) n.result = value->dtype;
    n.more.push_back({name, value});
    (i == 1 ? n.scale : n.shift) = parameter(*value, name, x->rank(), is_narrow(x->dtype));
  }
  return norm_rows_of(row, *x, n, n.has_mean ? "layer_norm" : "rms_norm");
}

Result<void> instance_norm(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const scale, row.need(1));
  PRUNERC_TRY(const Value* const shift, row.need(2));
  if (x->rank() < 3 || !ir::is_float(x->dtype) ||
      scale->shape != std::vector<int64_t>{x->shape[1]} || shift->shape != scale->shape ||
      scale->dtype != x->dtype || shift->dtype != x->dtype)
    return row.unsupported("operands of these shapes or types");
  RowNorm n;
  n.first = 2;
  n.epsilon = number_text(ir::DType::kF32, row.attr_float("epsilon", 1e-5F));
  n.more = {{"g", scale}, {"b", shift}};
  n.scale = is_narrow(x->dtype) ? "f32(g[i1])" : "g[i1]";
  n.shift = is_narrow(x->dtype) ? "f32(b[i1])" : "b[i1]";
  return norm_rows_of(row, *x, n, "instance_norm");
}

Result<void> group_norm(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const scale, row.need(1));
  PRUNERC_TRY(const Value* const shift, row.need(2));
  const int64_t groups = row.attr_int("num_groups", 0);
  if (x->rank() < 2 || !ir::is_float(x->dtype) || groups < 1 || x->shape[1] % groups != 0 ||
      scale->dtype != x->dtype || shift->dtype != x->dtype)
    return row.unsupported("operands of these shapes or types");
  const int64_t per_group = x->shape[1] / groups;
  // Until set 21 there was one scale for each group.
  const bool by_group =
      row.opset() < 21 && scale->shape == std::vector<int64_t>{groups} && groups != x->shape[1];
  if (!by_group && scale->shape != std::vector<int64_t>{x->shape[1]})
    return row.unsupported("parameters of another shape");
  if (shift->shape != scale->shape) return row.unsupported("parameters of another shape");
  const std::vector<std::string> index = index_list(x->rank());
  std::vector<std::string> read = index, over = {fmt::format("k1 in 0..{}", per_group)};
  read[1] = fmt::format("g*{} + k1", per_group);
  for (std::size_t i = 2; i < read.size(); ++i) {
    read[i] = fmt::format("k{}", i);
    over.push_back(fmt::format("k{} in 0..{}", i, x->shape[i]));
  }
  const int64_t count = per_group * product(x->shape, 2, x->shape.size());
  const std::string k = fmt::format("{}", fmt::join(over, ","));
  const std::string channel = by_group ? fmt::format("i1/{}", per_group) : "i1";
  const bool narrow = is_narrow(x->dtype);
  const auto wide = [&](const std::string& text) {
    return narrow ? fmt::format("f32({})", text) : text;
  };
  const std::string body = fmt::format(
      "let mu[i0,g in 0..{0}] = sum[{1}] {2};\n  let var[i0,g in 0..{0}] = sum[{1}] ({2} - "
      "mu[i0,g] / {3}) * ({2} - mu[i0,g] / {3});\n"
      "  {4} = {8}(({5} - mu[i0,i1/{6}] / {3}) * rsqrt(var[i0,i1/{6}] / {3} + {7}) * {9} + {10});",
      groups, k, wide(at("X", read)), count, at("Y", index), wide(at("X", index)), per_group,
      number_text(ir::DType::kF32, row.attr_float("epsilon", 1e-5F)),
      narrow ? ir::to_string(x->dtype) : "", wide(at("s", {channel})), wide(at("b", {channel})));
  PRUNERC_TRY(const Value* const y, row.call("group_norm", {{"X", x}, {"s", scale}, {"b", shift}},
                                             x->dtype, x->shape, body));
  row.set(0, y);
  return {};
}

// Local response over `size` channels.
Result<void> lrn(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const int64_t size = row.attr_int("size", 0);
  if (x->rank() < 2 || !ir::is_float(x->dtype) || is_narrow(x->dtype) || size < 1 ||
      size > (int64_t{1} << 31))
    return row.unsupported("operands or a size like these");
  std::vector<std::string> read = index_list(x->rank());
  const std::string here = fmt::format("{}", fmt::join(read, ","));
  read[1] = fmt::format("i1 + k - {}", (size - 1) / 2);
  const std::string body = fmt::format(
      "let s[{0}] = sum[k in 0..{1}] ({2} or 0) * ({2} or 0);\n  Y[{0}] = X[{0}] / pow({3} + "
      "s[{0}] * {4}, {5});",
      here, size, at("X", read), number_text(x->dtype, row.attr_float("bias", 1)),
      number_text(x->dtype, row.attr_float("alpha", 1e-4F) / static_cast<double>(size)),
      number_text(x->dtype, row.attr_float("beta", 0.75)));
  PRUNERC_TRY(const Value* const y, row.call("lrn", {{"X", x}}, x->dtype, x->shape, body));
  row.set(0, y);
  return {};
}

Result<void> lp_norm(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const std::optional<int> axis = axis_of(row.attr_int("axis", -1), x->rank());
  const int64_t power = row.attr_int("p", 2);
  if (!axis || !ir::is_float(x->dtype) || is_narrow(x->dtype) || (power != 1 && power != 2))
    return row.unsupported("an axis that is none, this type or this power");
  const std::vector<std::string> index = index_list(x->rank());
  std::vector<std::string> read = index, of_row = index;
  read[static_cast<std::size_t>(*axis)] = "k";
  of_row.erase(of_row.begin() + *axis);
  const std::string s = at("s", of_row), r = at("X", read);
  const std::string length = power == 1 ? s : fmt::format("sqrt({})", s);
  const std::string body =
      // Of zeros alone the result is zeros.
      fmt::format("let {0} = sum[k] {1};\n  {2} = if {0} == 0 then {0} else {3} / {4};", s,
                  power == 1 ? fmt::format("abs({})", r) : fmt::format("{0} * {0}", r),
                  at("Y", index), at("X", index), length);
  PRUNERC_TRY(const Value* const y, row.call("lp_norm", {{"X", x}}, x->dtype, x->shape, body));
  row.set(0, y);
  return {};
}

Result<void> mean_variance_norm(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  std::vector<int64_t> axes = row.attr_ints("axes");
  if (!row.has("axes")) axes = {0, 2, 3};
  if (x->num_elements() == 0) return row.unsupported("an empty tensor");
  if (!ir::is_float(x->dtype) || is_narrow(x->dtype)) return row.unsupported("this type");
  const std::vector<std::string> index = index_list(x->rank());
  std::vector<std::string> read = index, over, of_row;
  int64_t count = 1;
  for (const int64_t given : axes) {
    const std::optional<int> axis = axis_of(given, x->rank());
    if (!axis) return row.unsupported("an axis that is none");
    const auto i = static_cast<std::size_t>(*axis);
    if (read[i][0] == 'k') continue;
    read[i] = fmt::format("k{}", i);
    over.push_back(read[i]);
    count *= x->shape[i];
  }
  if (over.empty()) return row.unsupported("no axes");
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i][0] == 'i') of_row.push_back(index[i]);
  }
  const std::string k = fmt::format("{}", fmt::join(over, ",")), mu = at("mu", of_row),
                    sq = at("sq", of_row);
  const std::string body = fmt::format(
      "let {0} = sum[{1}] {2};\n  let {3} = sum[{1}] ({2} - {0} / {4}) * ({2} - {0} / {4});\n  {5} "
      "= ({6} - {0} / {4}) / (sqrt({3} / {4}) + 1e-9);",
      mu, k, at("X", read), sq, count, at("Y", index), at("X", index));
  PRUNERC_TRY(const Value* const y,
              row.call("mean_variance_norm", {{"X", x}}, x->dtype, x->shape, body));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {{"BatchNormalization", batch_norm},
                              {"Softmax", softmax},
                              {"LogSoftmax", softmax},
                              {"Hardmax", softmax},
                              {"LayerNormalization", layer_norm},
                              {"RMSNormalization", layer_norm},
                              // ONNX Runtime writes it without a domain.
                              {"SimplifiedLayerNormalization", layer_norm},
                              {"InstanceNormalization", instance_norm},
                              {"GroupNormalization", group_norm},
                              {"LRN", lrn},
                              {"LpNormalization", lp_norm},
                              {"MeanVarianceNormalization", mean_variance_norm}};

}  // namespace

std::span<const RowEntry> norm_rows() { return kRows; }

}  // namespace prunerc::onnx
