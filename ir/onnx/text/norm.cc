#include "ir/onnx/text/norm.h"

#include <fmt/format.h>

namespace prunerc::onnx {

bool is_narrow(ir::DType dtype) { return dtype == ir::DType::kF16 || dtype == ir::DType::kBF16; }

std::string parameter(const Value& value, std::string_view name, int rank, bool narrow) {
  const std::string read = broadcast_read(name, value.shape, rank);
  return narrow ? fmt::format("f32({})", read) : read;
}

Result<std::vector<const Value*>> norm_of(Row& row, const Value& x, const RowNorm& n,
                                          std::string_view stem) {
  const std::vector<std::string> index = index_list(x.rank());
  std::vector<std::string> read = index, of_row, over;
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (i < n.first) {
      of_row.push_back(index[i]);
    } else {
      read[i] = fmt::format("k{}", i);
      over.push_back(read[i]);
    }
  }
  const int64_t count = product(x.shape, n.first, x.shape.size());
  const bool narrow = is_narrow(x.dtype);
  const ir::DType dtype = n.result.value_or(x.dtype);
  const std::string k = fmt::format("{}", fmt::join(over, ",")), sum = narrow ? "sum:f32" : "sum",
                    type(ir::to_string(dtype));
  const auto wide = [&](const std::string& text) {
    return narrow ? fmt::format("f32({})", text) : text;
  };
  const std::string mu = at("mu", of_row), var = at("var", of_row), inv = at("inv", of_row),
                    d = at("d", index), d_k = at("d", read), sums = at("total", of_row),
                    y = at("Y", index);
  std::string body;
  if (n.has_mean) {
    body = fmt::format(
        "let {0} = {1}[{2}] {3};\n  let {4} = {0} / {5};\n  let {6} = {7} - {4};\n  let {8} = "
        "sum[{2}] {9} * {9};\n  let {10} = rsqrt({8} / {5} + {11});\n  ",
        sums, sum, k, at("X", read), mu, count, d, wide(at("X", index)), var, d_k, inv, n.epsilon);
  } else {
    body = fmt::format("let {0} = {1}[{2}] {3} * {3};\n  let {4} = rsqrt({0} / {5} + {6});\n  ",
                       var, sum, k, at("X", read), inv, count, n.epsilon);
  }
  std::string value = fmt::format("{} * {}", n.has_mean ? d : wide(at("X", index)), inv);
  if (!n.scale.empty()) value += " * " + n.scale;
  if (!n.shift.empty()) value += " + " + n.shift;
  body += fmt::format("{} = {};", y, is_narrow(dtype) ? fmt::format("{}({})", type, value) : value);
  std::vector<Arg> args = {{"X", &x}};
  args.insert(args.end(), n.more.begin(), n.more.end());
  std::vector<Out> outs = {{"Y", dtype, x.shape}};
  std::vector<int64_t> stat_shape = x.shape;
  std::vector<std::string> stat_index = index;
  for (std::size_t i = n.first; i < stat_shape.size(); ++i) stat_shape[i] = 1;
  const auto stat = [&](std::string_view name, const std::string& text) {
    outs.push_back({std::string(name), ir::DType::kF32, stat_shape});
    body += fmt::format("\n  {} = {};", at(name, stat_index),
                        x.dtype == ir::DType::kF64 ? fmt::format("f32({})", text) : text);
  };
  if (n.gives_stats && n.has_mean) stat("M", mu);
  if (n.gives_stats) stat("I", inv);
  return row.call(stem, std::move(args), std::move(outs), body);
}

Result<void> norm_rows_of(Row& row, const Value& x, RowNorm n, std::string_view stem) {
  n.gives_stats = row.wants_output(1) || row.wants_output(2);
  if (!n.has_mean && row.wants_output(2))
    return row.unsupported("the mean of a normalisation without one");
  PRUNERC_TRY(const std::vector<const Value*> results, norm_of(row, x, n, stem));
  for (std::size_t i = 0; i < results.size(); ++i) row.set(i, results[i]);
  return {};
}

}  // namespace prunerc::onnx
