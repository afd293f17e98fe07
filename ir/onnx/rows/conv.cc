// Convolutions over any number of axes, [N, C, axes...].
#include "ir/onnx/rows/conv.h"

#include "ir/onnx/text/conv.h"
#include "ir/onnx/text/pointwise.h"
#include "ir/onnx/text/product.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

std::string stem_of(const ConvText& c) {
  std::string stem = c.groups > 1 && c.groups == c.channels ? "depthwise" : "conv";
  for (std::size_t i = 0; i < c.window.rank(); ++i)
    stem += fmt::format("{}{}", i == 0 ? "_" : "x", c.window.kernel[i]);
  return stem;
}

Result<void> conv(Row& row) { return conv_with(row, nullptr, {}); }

constexpr RowEntry kRows[] = {
    {"Conv", conv}, {"ConvInteger", conv_integer}, {"ConvTranspose", conv_transpose}};

}  // namespace

std::span<const RowEntry> conv_rows() { return kRows; }

Result<void> conv_with(Row& row, const Value* added, std::string_view activation) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const f, row.need(1));
  const Value* const bias = row.in(2);
  if (x->dtype != f->dtype || !ir::is_float(x->dtype))
    return row.unsupported("operands of these types");
  PRUNERC_TRY(const ConvText c, conv_text_of(row, *x, *f));
  const std::string read = c.leaves_image ? fmt::format("({} or 0)", c.x) : c.x;
  std::string value = fmt::format("{}[{}] {} * {}", sum_of(x->dtype), c.reduced, read, c.f);
  std::vector<Arg> args = {{"X", x}, {"F", f}};
  std::string body;
  const auto name = [&](std::string_view step) {
    const std::string here = fmt::format("{}[{}]", step, c.target);
    body += fmt::format("let {} = {};\n  ", here, value);
    value = here;
  };
  if (bias != nullptr || added != nullptr) name("acc");
  if (bias != nullptr) {
    if (bias->shape != std::vector<int64_t>{c.channels} || bias->dtype != x->dtype)
      return row.unsupported("a bias of another shape");
    args.push_back({"b", bias});
    value += " + b[co]";
  }
  if (added != nullptr) {
    if (added->shape != c.shape || added->dtype != x->dtype)
      return row.unsupported("what is added has another shape or type");
    args.push_back({"Z", added});
    value += fmt::format(" + Z[{}]", c.target);
  }
  if (!activation.empty()) {
    name("v");
    value = put(activation, value);
  }
  body += fmt::format("Y[{}] = {};", c.target, rounded(x->dtype, value));
  PRUNERC_TRY(const Value* const y, row.call(stem_of(c), std::move(args), x->dtype, c.shape, body));
  row.set(0, y);
  return {};
}

}  // namespace prunerc::onnx
