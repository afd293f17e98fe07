// Convolutions over any number of axes, [N, C, axes...].
#include "ir/onnx/conv_rows.h"
#include "ir/onnx/conv_text.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

std::string stem_of(const ConvText& c) {
  std::string stem = c.groups > 1 && c.groups == c.channels ? "depthwise" : "conv";
  for (std::size_t i = 0; i < c.window.rank(); ++i)
    stem += fmt::format("{}{}", i == 0 ? "_" : "x", c.window.kernel[i]);
  return stem;
}

Result<void> conv(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const f, row.need(1));
  const Value* const bias = row.in(2);
  if (x->dtype != f->dtype || !ir::is_float(x->dtype))
    return row.unsupported("operands of these types");
  PRUNERC_TRY(const ConvText c, conv_text_of(row, *x, *f));
  const bool is_narrow = ir::byte_size(x->dtype) == 2;
  const std::string read = c.leaves_image ? fmt::format("({} or 0)", c.x) : c.x;
  const std::string sum =
      fmt::format("{}[{}] {} * {}", is_narrow ? "sum:f32" : "sum", c.reduced, read, c.f);
  const std::string_view type = ir::to_string(x->dtype);
  std::vector<Arg> args = {{"X", x}, {"F", f}};
  std::string body;
  if (bias == nullptr) {
    body = is_narrow ? fmt::format("Y[{}] = {}({});", c.target, type, sum)
                     : fmt::format("Y[{}] = {};", c.target, sum);
  } else {
    if (bias->shape != std::vector<int64_t>{c.channels} || bias->dtype != x->dtype)
      return row.unsupported("a bias of another shape");
    args.push_back({"b", bias});
    body = fmt::format("let acc[{0}] = {1};\n  Y[{0}] = ", c.target, sum);
    body += is_narrow ? fmt::format("{}(acc[{}] + b[co]);", type, c.target)
                      : fmt::format("acc[{}] + b[co];", c.target);
  }
  PRUNERC_TRY(const Value* const y, row.call(stem_of(c), std::move(args), x->dtype, c.shape, body));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {
    {"Conv", conv}, {"ConvInteger", conv_integer}, {"ConvTranspose", conv_transpose}};

}  // namespace

std::span<const RowEntry> conv_rows() { return kRows; }

}  // namespace prunerc::onnx
