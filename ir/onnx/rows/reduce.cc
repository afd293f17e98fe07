// Reductions over whole axes.
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::onnx {
namespace {

struct ReduceRow {
  std::string_view op;
  std::string_view reducer;
  std::string_view element;  // of $
  std::string_view result;   // of $, the reduced; empty: it is the result
};
constexpr ReduceRow kReductions[] = {
    {"ReduceSum", "sum", "$", ""},           {"ReduceMean", "sum", "$", "$ / #"},
    {"ReduceMax", "max", "$", ""},           {"ReduceMin", "min", "$", ""},
    {"ReduceProd", "prod", "$", ""},         {"ReduceL1", "sum", "abs($)", ""},
    {"ReduceL2", "sum", "$ * $", "sqrt($)"}, {"ReduceSumSquare", "sum", "$ * $", ""},
    {"ReduceLogSum", "sum", "$", "log($)"},  {"ReduceLogSumExp", "sum", "exp($)", "log($)"},
};

std::string put(std::string_view text, std::string_view value, int64_t count = 0) {
  std::string out;
  for (const char c : text) {
    if (c == '$') {
      out += value;
    } else if (c == '#') {
      out += std::to_string(count);
    } else {
      out += c;
    }
  }
  return out;
}

/// Which axes go, and the texts that follow from that.
struct Reduced {
  std::vector<bool> goes;
  std::vector<int64_t> shape;
  std::vector<std::string> target, reads, over;
  int64_t count = 1;
};

Result<Reduced> reduced_of(Row& row, const Value& x, const std::vector<int64_t>& axes, bool keeps,
                           bool keeps_all = false) {
  Reduced r;
  r.goes.assign(x.shape.size(), axes.empty() && !keeps_all);
  for (const int64_t axis : axes) {
    const std::optional<int> known = axis_of(axis, x.rank());
    if (!known) return row.unsupported("an axis that is none");
    r.goes[static_cast<std::size_t>(*known)] = true;
  }
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    const std::string index = fmt::format("{}{}", r.goes[i] ? "k" : "i", i);
    r.reads.push_back(index);
    if (r.goes[i]) {
      r.over.push_back(index);
      if (x.num_elements() != 0) r.count *= x.shape[i];
      if (!keeps) continue;
    }
    r.shape.push_back(r.goes[i] ? 1 : x.shape[i]);
    r.target.push_back(fmt::format("i{}", i));
  }
  return r;
}

// What remains of no elements at all: sums are 0, products 1, extremes of whole numbers have no text here.
std::optional<double> of_nothing(std::string_view op) {
  if (op == "ReduceProd") return 1;
  if (op == "ReduceSum" || op == "ReduceL1" || op == "ReduceL2" || op == "ReduceSumSquare")
    return 0;
  if (op == "ReduceLogSum" || op == "ReduceLogSumExp" || op == "ReduceMax")
    return -std::numeric_limits<double>::infinity();
  if (op == "ReduceMin") return std::numeric_limits<double>::infinity();
  return std::nullopt;
}

Result<void> reduce(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> axes, row.ints(1, "axes"));
  const bool keeps = row.attr_int("keepdims", 1) != 0;
  // Without axes, each element is reduced by itself, as a scalar is.
  const bool keeps_all =
      axes.empty() && (x->rank() == 0 || row.attr_int("noop_with_empty_axes", 0) != 0);
  const std::string_view op = row.node().op;
  if (keeps_all && (op == "ReduceSum" || op == "ReduceMean" || op == "ReduceMax" ||
                    op == "ReduceMin" || op == "ReduceProd" || op == "ReduceLogSumExp")) {
    row.set(0, x);
    return {};
  }
  PRUNERC_TRY(const Reduced r, reduced_of(row, *x, axes, keeps, keeps_all));
  const auto* entry = std::find_if(std::begin(kReductions), std::end(kReductions),
                                   [&](const ReduceRow& item) { return item.op == row.node().op; });
  if (x->num_elements() == 0) {
    const std::optional<double> value = of_nothing(entry->op);
    if (!value || (!ir::is_float(x->dtype) && std::abs(*value) > 1))
      return row.unsupported("an empty tensor");
    PRUNERC_TRY(const Value* const y, row.call("fill", {}, x->dtype, r.shape,
                                               fmt::format("{} = {};", at("Y", r.target),
                                                           number_text(x->dtype, *value))));
    row.set(0, y);
    return {};
  }
  const std::string read = at("X", r.reads), target = at("Y", r.target);
  const bool is_narrow = x->dtype == ir::DType::kF16 || x->dtype == ir::DType::kBF16;
  const bool is_extreme = entry->reducer == "max" || entry->reducer == "min";
  const std::string type(ir::to_string(x->dtype));
  if (ir::is_bool(x->dtype)) {
    if (!is_extreme) return row.unsupported("bool elements");
    const std::string body = r.over.empty() ? fmt::format("{} = {};", target, read)
                                            : fmt::format("{} = {}[{}] {};", target,
                                                          entry->reducer == "max" ? "any" : "all",
                                                          fmt::join(r.over, ","), read);
    PRUNERC_TRY(const Value* const y, row.call("reduce", {{"X", x}}, x->dtype, r.shape, body));
    row.set(0, y);
    return {};
  }
  const bool is_int = !ir::is_float(x->dtype);
  if (is_int &&
      (entry->op == "ReduceLogSum" || entry->op == "ReduceLogSumExp" || entry->op == "ReduceL2"))
    return row.unsupported("whole numbers");
  const bool is_small = x->dtype == ir::DType::kI8 || x->dtype == ir::DType::kU8;
  const std::string element =
      put(is_int && entry->op == "ReduceL1" ? "(if $ < 0 then -$ else $)" : entry->element, read);
  std::string value = element;
  if (!r.over.empty()) {
    const std::string_view accumulator = is_extreme  ? ""
                                         : is_narrow ? ":f32"
                                         : is_small  ? ":i32"
                                                     : "";
    value =
        fmt::format("{}{}[{}] {}", entry->reducer, accumulator, fmt::join(r.over, ","), element);
  }
  // The largest exponent is taken out, or sums of exp overflow.
  const bool is_log_sum_exp = entry->op == "ReduceLogSumExp" && !r.over.empty();
  std::string body;
  const std::string m = at("m", r.target), s = at("s", r.target);
  if (is_log_sum_exp) {
    const std::string over = fmt::format("{}", fmt::join(r.over, ","));
    // Of -inf alone it is not a number to take out.
    const std::string wide = is_narrow ? fmt::format("f32({})", read) : read;
    const std::string_view of = x->dtype == ir::DType::kF64 ? "f64" : "f32";
    body = fmt::format(
        "let {0} = clamp(max[{1}] {2}, lowest({5}), highest({5}));\n  let {3} = sum[{1}] exp({2} - "
        "{0});\n  {4} = {6}(log({3}) + {0});",
        m, over, wide, s, target, of, is_narrow ? type : "");
  } else if (entry->result.empty()) {
    body = fmt::format(
        "{} = {};", target,
        (is_narrow || is_small) && !is_extreme ? fmt::format("{}({})", type, value) : value);
  } else {
    // Whole numbers are divided towards zero.
    const bool divides = is_int && entry->op == "ReduceMean";
    const std::string result =
        divides ? fmt::format("if {0} < 0 then -((-{0}) / {1}) else {0} / {1}", s, r.count)
                : put(entry->result, s, r.count);
    body = fmt::format("let {} = {};\n  {} = {};", s, value, target,
                       is_narrow || is_small ? fmt::format("{}({})", type, result) : result);
    if (is_narrow && r.over.empty()) return row.unsupported("no axes of 16-bit floats");
  }
  std::string stem;
  for (const char c : row.node().op) {
    if (c >= 'A' && c <= 'Z' && !stem.empty()) stem += '_';
    stem += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  PRUNERC_TRY(const Value* const y, row.call(stem, {{"X", x}}, x->dtype, r.shape, body));
  row.set(0, y);
  return {};
}

Result<void> arg_extreme(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const std::optional<int> axis = axis_of(row.attr_int("axis", 0), x->rank());
  if (!axis || ir::is_bool(x->dtype)) return row.unsupported("an axis that is none, or this type");
  PRUNERC_TRY(Reduced r, reduced_of(row, *x, {*axis}, row.attr_int("keepdims", 1) != 0));
  const std::string reducer = row.node().op == "ArgMax" ? "argmax" : "argmin";
  const bool takes_last = row.attr_int("select_last_index", 0) != 0;
  const auto k = static_cast<std::size_t>(*axis);
  const int64_t extent = x->shape[k];
  std::string value = fmt::format("{}[k{} in 0..{}] ", reducer, *axis, extent);
  if (takes_last) {
    // Ties go to the lowest: counted from the end.
    r.reads[k] = fmt::format("{} - k{}", extent - 1, *axis);
    const std::string best = at("b", r.target);
    const std::string body = fmt::format("let {0} = {1}{2};\n  {3} = {4} - {0};", best, value,
                                         at("X", r.reads), at("Y", r.target), extent - 1);
    PRUNERC_TRY(const Value* const y,
                row.call(reducer, {{"X", x}}, ir::DType::kI64, r.shape, body));
    row.set(0, y);
    return {};
  }
  PRUNERC_TRY(const Value* const y,
              row.call(reducer, {{"X", x}}, ir::DType::kI64, r.shape,
                       fmt::format("{} = {}{};", at("Y", r.target), value, at("X", r.reads))));
  row.set(0, y);
  return {};
}

// Each element sums what stands before it: a triangle of conditions.
Result<void> cumulative_sum(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const std::vector<int64_t> axes, row.known_ints(1));
  const std::optional<int> axis = axes.size() == 1 ? axis_of(axes[0], x->rank()) : std::nullopt;
  if (!axis || ir::is_bool(x->dtype)) return row.unsupported("an axis that is none, or this type");
  const bool is_exclusive = row.attr_int("exclusive", 0) != 0,
             is_reverse = row.attr_int("reverse", 0) != 0;
  std::vector<std::string> reads = index_list(x->rank());
  const std::string here = reads[static_cast<std::size_t>(*axis)];
  reads[static_cast<std::size_t>(*axis)] = "k";
  const std::string order = is_reverse ? (is_exclusive ? ">" : ">=") : (is_exclusive ? "<" : "<=");
  const bool is_narrow = ir::byte_size(x->dtype) < 4;
  const std::string sum = fmt::format("sum{}[k | k {} {}] {}",
                                      !is_narrow               ? ""
                                      : ir::is_float(x->dtype) ? ":f32"
                                                               : ":i32",
                                      order, here, at("X", reads));
  PRUNERC_TRY(
      const Value* const y,
      row.call("cumsum", {{"X", x}}, x->dtype, x->shape,
               fmt::format("{} = {};", at("Y", index_list(x->rank())),
                           is_narrow ? fmt::format("{}({})", ir::to_string(x->dtype), sum) : sum)));
  row.set(0, y);
  return {};
}

const std::vector<RowEntry>& rows() {
  static const std::vector<RowEntry> all = [] {
    std::vector<RowEntry> list = {
        {"ArgMax", arg_extreme}, {"ArgMin", arg_extreme}, {"CumSum", cumulative_sum}};
    for (const ReduceRow& entry : kReductions) list.push_back({entry.op, reduce});
    return list;
  }();
  return all;
}

}  // namespace

std::span<const RowEntry> reduce_rows() { return rows(); }

}  // namespace prunerc::onnx
