// Convolutions of 8-bit numbers.
#include "ir/onnx/rows/conv.h"
#include "ir/onnx/text/conv.h"
#include "ir/onnx/text/integer.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

struct Operands {
  const Value *x, *f, *x_zero, *f_zero, *bias;
};

struct Summed {
  ConvText conv;
  IntegerSum sum;
  std::vector<Arg> args;
};

// A read of a value for the whole filter or for each channel of the output.
Result<std::string> by_channel(Row& row, std::string_view name, const Value& value,
                               int64_t channels) {
  if (value.num_elements() == 1) return single_read(name, value);
  if (value.shape != std::vector<int64_t>{channels})
    return row.unsupported("scales or zero points of another shape");
  return fmt::format("{}[co]", name);
}

Result<Summed> summed(Row& row, const Operands& o) {
  if (!is_byte(*o.x) || !is_byte(*o.f)) return row.unsupported("operands of these types");
  if ((o.x_zero != nullptr && o.x_zero->dtype != o.x->dtype) ||
      (o.f_zero != nullptr && o.f_zero->dtype != o.f->dtype))
    return row.unsupported("a zero point of another type");
  Summed out;
  PRUNERC_TRY(out.conv, conv_text_of(row, *o.x, *o.f));
  const ConvText& c = out.conv;
  IntegerProduct p;
  p.target = c.target;
  p.reduced = c.reduced;
  p.left = c.x;
  p.right = c.f;
  p.leaves_left = c.leaves_image;
  p.right_value = o.f;
  p.right_name = "F";
  p.left_zero = o.x_zero;
  p.right_zero = o.f_zero;
  if (o.x_zero != nullptr) {
    if (o.x_zero->num_elements() != 1) return row.unsupported("several zero points of the image");
    p.left_zero_read = single_read("ZA", *o.x_zero);
  }
  if (o.f_zero != nullptr) {
    PRUNERC_TRY(p.right_zero_read, by_channel(row, "ZB", *o.f_zero, c.channels));
  }
  p.column = "co";
  p.column_range = c.reduced;
  p.column_shape = {c.channels};
  PRUNERC_TRY(out.sum, integer_sum(row, p, o.bias));
  out.args = {{"X", o.x}, {"F", o.f}};
  out.args.insert(out.args.end(), out.sum.args.begin(), out.sum.args.end());
  return out;
}

}  // namespace

Result<void> conv_integer(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const f, row.need(1));
  PRUNERC_TRY(const Summed s, summed(row, {x, f, row.in(2), row.in(3), nullptr}));
  PRUNERC_TRY(const Value* const y, row.call("conv_integer", s.args, ir::DType::kI32, s.conv.shape,
                                             fmt::format("{}\n  Y[{}] = {};", s.sum.statement,
                                                         s.conv.target, with_more(s.sum))));
  row.set(0, y);
  return {};
}

Result<void> qlinear_conv(Row& row) {
  const Value* operands[8] = {};
  for (std::size_t i = 0; i < 8; ++i) {
    PRUNERC_TRY(operands[i], row.need(i));
  }
  const auto [x, x_scale, x_zero, f, f_scale, f_zero, y_scale, y_zero] = operands;
  if (x_scale->num_elements() != 1 || y_scale->num_elements() != 1 || y_zero->num_elements() != 1)
    return row.unsupported("several scales or zero points of an image");
  for (const Value* scale : {x_scale, f_scale, y_scale}) {
    if (scale->dtype != ir::DType::kF32) return row.unsupported("scales of this type");
  }
  if (!is_byte(*y_zero)) return row.unsupported("a zero point of this type");
  PRUNERC_TRY(Summed s, summed(row, {x, f, x_zero, f_zero, row.in(8)}));
  PRUNERC_TRY(const std::string f_read, by_channel(row, "sf", *f_scale, s.conv.channels));
  // One factor for each channel, which is known before any run.
  PRUNERC_TRY(const Value* const factor,
              row.call("requantize_scale", {{"sx", x_scale}, {"sf", f_scale}, {"sy", y_scale}},
                       ir::DType::kF32, {s.conv.channels},
                       fmt::format("Y[co] = {} * {} / {};", single_read("sx", *x_scale), f_read,
                                   single_read("sy", *y_scale))));
  s.args.push_back({"m", factor});
  std::string zero;
  if (!is_zero(y_zero)) {
    s.args.push_back({"ZY", y_zero});
    zero = single_read("ZY", *y_zero);
  }
  const std::string value = fmt::format("f32({}) * m[co]", with_more(s.sum));
  PRUNERC_TRY(const Value* const y,
              row.call("qlinear_conv", s.args, y_zero->dtype, s.conv.shape,
                       fmt::format("{}\n  Y[{}] = {};", s.sum.statement, s.conv.target,
                                   quantized(y_zero->dtype, value, zero))));
  row.set(0, y);
  return {};
}

}  // namespace prunerc::onnx
