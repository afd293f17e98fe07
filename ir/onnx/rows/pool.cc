// Pools: reductions over windows, and over whole images.
#include "ir/onnx/text/pool.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

std::string lowest(ir::DType dtype) {
  return ir::is_float(dtype) ? "-inf" : fmt::format("lowest({})", ir::to_string(dtype));
}

// What is compared for positions. Below all numbers of 8 bits is padding, which would tie with the least.
std::string position_read(const Value& x, const Pool& p) {
  if (!p.leaves_image || ir::byte_size(x.dtype) != 1) return or_else(p, lowest(x.dtype));
  std::string inside;
  for (std::size_t i = 0; i < p.window.rank(); ++i) {
    if (!p.window.pads(i)) continue;
    inside += fmt::format("{0}({1}) >= 0 && ({1}) < {2}", inside.empty() ? "" : " && ",
                          p.window.subscript(i), p.window.in[i]);
  }
  return fmt::format("(if {} then i32({}) else -129)", inside, or_else(p, "0"));
}

// The position of the largest element in the whole tensor, as ONNX numbers it.
Result<const Value*> max_positions(Row& row, const Value& x, const Pool& p) {
  const Window& w = p.window;
  PRUNERC_TRY(
      const Value* const best,
      row.call("max_pool_at", {{"X", &x}}, ir::DType::kI64, p.shape,
               fmt::format("Y[{}] = argmax[{}] {};", p.target, p.over, position_read(x, p))));
  // argmax counts over the axes of the window that are not 1.
  std::string left = "B[" + p.target + "]";
  std::vector<std::string> places(w.rank());
  for (std::size_t i = w.rank(); i-- > 0;) {
    const std::string k = w.kernel[i] == 1 ? "0" : fmt::format("({} % {})", left, w.kernel[i]);
    if (w.kernel[i] != 1) left = fmt::format("({} / {})", left, w.kernel[i]);
    places[i] =
        fmt::format("(i64(o{}*{} - {}) + {}*{})", i, w.stride[i], w.before[i], k, w.dilation[i]);
  }
  const bool by_columns = row.attr_int("storage_order", 0) != 0;
  std::string place;
  int64_t image = 1;
  for (std::size_t i = 0; i < w.rank(); ++i) {
    const std::size_t axis = by_columns ? w.rank() - 1 - i : i;
    place = i == 0 ? places[axis] : fmt::format("({} * {} + {})", place, w.in[axis], places[axis]);
    image *= w.in[axis];
  }
  return row.call(
      "max_pool_index", {{"B", best}}, ir::DType::kI64, p.shape,
      fmt::format("Y[{}] = {} + i64((n*{} + c)*{});", p.target, place, x.shape[1], image));
}

Result<void> max_pool(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (ir::is_bool(x->dtype)) return row.unsupported("bool elements");
  PRUNERC_TRY(const Pool p, pool_of(row, *x));
  PRUNERC_TRY(const Value* const y, row.call("max_pool", {{"X", x}}, x->dtype, p.shape,
                                             fmt::format("Y[{}] = max[{}] {};", p.target, p.over,
                                                         or_else(p, lowest(x->dtype)))));
  row.set(0, y);
  if (row.wants_output(1)) {
    PRUNERC_TRY(const Value* const at_values, max_positions(row, *x, p));
    row.set(1, at_values);
  }
  return {};
}

Result<void> average_pool(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (!ir::is_float(x->dtype)) return row.unsupported("whole numbers");
  PRUNERC_TRY(const Pool p, pool_of(row, *x));
  const std::string count = counted(p.window, row.attr_int("count_include_pad", 0) != 0);
  const bool is_narrow = ir::byte_size(x->dtype) == 2;
  const std::string wide = x->dtype == ir::DType::kF64 ? "f64" : "f32";
  const bool is_number = count.find('o') == std::string::npos;
  std::string body;
  if (is_number) {
    body = fmt::format("{}[{}] {} / ({})", is_narrow ? "sum:f32" : "sum", p.over, or_else(p, "0"),
                       count);
    body = is_narrow ? fmt::format("Y[{}] = {}({});", p.target, ir::to_string(x->dtype), body)
                     : fmt::format("Y[{}] = {};", p.target, body);
  } else {
    body = fmt::format(
        "let s[{0}] = {1}[{2}] {3};\n  let num[{0}] = {4};\n  Y[{0}] = {5}(s[{0}] / "
        "{6}(num[{0}]));",
        p.target, is_narrow ? "sum:f32" : "sum", p.over, or_else(p, "0"), count,
        ir::to_string(x->dtype), wide);
  }
  PRUNERC_TRY(const Value* const y, row.call("average_pool", {{"X", x}}, x->dtype, p.shape, body));
  row.set(0, y);
  return {};
}

Result<void> lp_pool(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (!ir::is_float(x->dtype) || ir::byte_size(x->dtype) == 2) return row.unsupported("this type");
  PRUNERC_TRY(const Pool p, pool_of(row, *x));
  const int64_t power = row.attr_int("p", 2);
  if (power < 1) return row.unsupported("such a power");
  const std::string read = or_else(p, "0");
  std::string body;
  if (power == 1) {
    body = fmt::format("Y[{}] = sum[{}] abs({});", p.target, p.over, read);
  } else if (power == 2) {
    body = fmt::format("let s[{0}] = sum[{1}] {2} * {2};\n  Y[{0}] = sqrt(s[{0}]);", p.target,
                       p.over, read);
  } else {
    body = fmt::format("let s[{0}] = sum[{1}] pow(abs({2}), {3});\n  Y[{0}] = pow(s[{0}], {4});",
                       p.target, p.over, read, number_text(x->dtype, static_cast<double>(power)),
                       number_text(x->dtype, 1.0 / static_cast<double>(power)));
  }
  PRUNERC_TRY(const Value* const y, row.call("lp_pool", {{"X", x}}, x->dtype, p.shape, body));
  row.set(0, y);
  return {};
}

Result<void> global_pool(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (x->rank() < 3 || !ir::is_float(x->dtype))
    return row.unsupported("an operand of this rank or type");
  if (x->num_elements() == 0) return row.unsupported("an empty tensor");
  const std::string_view op = row.node().op;
  std::vector<int64_t> shape = x->shape;
  std::vector<std::string> target = {"n", "c"}, reads = {"n", "c"}, over;
  int64_t count = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) {
    count *= shape[i];
    shape[i] = 1;
    target.push_back(fmt::format("o{}", i));
    reads.push_back(fmt::format("k{}", i));
    over.push_back(reads.back());
  }
  const std::string y_at = at("Y", target), read = at("X", reads);
  const std::string axes = fmt::format("{}", fmt::join(over, ","));
  const bool is_narrow = ir::byte_size(x->dtype) == 2;
  const std::string type(ir::to_string(x->dtype));
  std::string body;
  if (op == "GlobalMaxPool") {
    body = fmt::format("{} = max[{}] {};", y_at, axes, read);
  } else if (op == "GlobalAveragePool") {
    body = is_narrow ? fmt::format("{} = {}(sum:f32[{}] {} / {});", y_at, type, axes, read, count)
                     : fmt::format("{} = sum[{}] {} / {};", y_at, axes, read, count);
  } else {
    if (row.attr_int("p", 2) != 2 || is_narrow) return row.unsupported("this power or type");
    const std::string s = fmt::format("s[{}]", fmt::join(target, ","));
    body = fmt::format("let {0} = sum[{1}] {2} * {2};\n  {3} = sqrt({0});", s, axes, read, y_at);
  }
  PRUNERC_TRY(const Value* const y, row.call("global_pool", {{"X", x}}, x->dtype, shape, body));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {{"MaxPool", max_pool},
                              {"AveragePool", average_pool},
                              {"LpPool", lp_pool},
                              {"GlobalMaxPool", global_pool},
                              {"GlobalAveragePool", global_pool},
                              {"GlobalLpPool", global_pool}};

}  // namespace

std::span<const RowEntry> pool_rows() { return kRows; }

}  // namespace prunerc::onnx
