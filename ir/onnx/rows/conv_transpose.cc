// Transposed convolutions.
#include "ir/onnx/rows/conv.h"
#include "ir/onnx/text/window.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::onnx {

// Y[o] = sum of X[i] * F[k] where o = i*stride + k*dilation - before.
Result<void> conv_transpose(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const f, row.need(1));
  const Value* const bias = row.in(2);
  if (x->dtype != f->dtype || !ir::is_float(x->dtype) || x->rank() < 3 || f->rank() != x->rank())
    return row.unsupported("operands of these types or ranks");
  if (x->num_elements() == 0 || f->num_elements() == 0) return row.unsupported("an empty tensor");
  const std::size_t n = x->shape.size() - 2;
  const std::vector<int64_t> kernel(f->shape.begin() + 2, f->shape.end());
  const int64_t groups = row.attr_int("group", 1);
  if (groups < 1 || x->shape[1] % groups != 0 || f->shape[0] != x->shape[1])
    return row.unsupported("groups that do not divide the channels");
  const int64_t in_per_group = x->shape[1] / groups, out_per_group = f->shape[1];
  const auto or_all = [&](std::vector<int64_t> values, int64_t otherwise) {
    if (values.empty()) values.assign(n, otherwise);
    return values;
  };
  const std::vector<int64_t> stride = or_all(row.attr_ints("strides"), 1),
                             dilation = or_all(row.attr_ints("dilations"), 1),
                             more = or_all(row.attr_ints("output_padding"), 0),
                             asked = row.attr_ints("output_shape");
  std::vector<int64_t> pads = row.attr_ints("pads");
  PRUNERC_TRY(const std::string automatic, auto_pad_of(row));
  if (pads.empty() || automatic != "NOTSET") pads.assign(2 * n, 0);
  constexpr int64_t kMost = int64_t{1} << 30;
  for (const std::vector<int64_t>* list : std::initializer_list<const std::vector<int64_t>*>{
           &stride, &dilation, &more, &kernel, &pads}) {
    if (list->size() != (list == &pads ? 2 * n : n))
      return row.unsupported("attributes of another rank");
    for (const int64_t value : *list) {
      if (value < (list == &pads || list == &more ? 0 : 1) || value > kMost)
        return row.unsupported("attributes out of range");
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (x->shape[i + 2] > kMost) return row.unsupported("an image of this size");
  }
  std::vector<int64_t> shape = {x->shape[0], groups * out_per_group}, before;
  for (std::size_t i = 0; i < n; ++i) {
    const int64_t full =
        stride[i] * (x->shape[i + 2] - 1) + more[i] + (kernel[i] - 1) * dilation[i] + 1;
    int64_t out = full - pads[i] - pads[i + n], ahead = pads[i];
    const bool is_same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (!asked.empty() || is_same) {
      // The last n of an output_shape that may be whole.
      if (!asked.empty() && asked.size() < n)
        return row.unsupported("an output_shape of another rank");
      out = asked.empty() ? x->shape[i + 2] * stride[i] : asked[asked.size() - n + i];
      if (out < 1 || out > kMost) return row.unsupported("an output that is empty");
      const int64_t pad = std::max<int64_t>(0, full - out);
      ahead = automatic == "SAME_UPPER" ? pad / 2 : pad - pad / 2;
    }
    if (out < 1 || out > kMost) return row.unsupported("an output that is empty");
    before.push_back(ahead);
    shape.push_back(out);
  }
  std::vector<std::string> target = {"n", "co"}, reads = {"n"}, filter, reduced, facts;
  const std::string channel = groups == 1 ? "ci"
                              : in_per_group == 1
                                  ? fmt::format("co/{}", out_per_group)
                                  : fmt::format("co/{}*{} + ci", out_per_group, in_per_group);
  if (groups == 1 || in_per_group > 1) reduced.push_back(fmt::format("ci in 0..{}", in_per_group));
  reads.push_back(channel);
  filter = {channel, groups == 1 ? "co" : fmt::format("co%{}", out_per_group)};
  for (std::size_t i = 0; i < n; ++i) {
    target.push_back(fmt::format("o{}", i));
    reduced.push_back(fmt::format("k{} in 0..{}", i, kernel[i]));
    filter.push_back(fmt::format("k{}", i));
    const std::string place = fmt::format("o{} + {} - k{}*{}", i, before[i], i, dilation[i]);
    if (stride[i] != 1) facts.push_back(fmt::format("({}) % {} == 0", place, stride[i]));
    reads.push_back(stride[i] == 1 ? place : fmt::format("({})/{}", place, stride[i]));
  }
  const bool is_narrow = ir::byte_size(x->dtype) == 2;
  const std::string condition = facts.empty() ? "" : fmt::format(" | {}", fmt::join(facts, " && "));
  const std::string sum =
      fmt::format("{}[{}{}] ({} or 0) * {}", is_narrow ? "sum:f32" : "sum", fmt::join(reduced, ","),
                  condition, at("X", reads), at("F", filter));
  std::vector<Arg> args = {{"X", x}, {"F", f}};
  const std::string y_at = fmt::format("{}", fmt::join(target, ","));
  std::string body = fmt::format(
      "Y[{}] = {};", y_at, is_narrow ? fmt::format("{}({})", ir::to_string(x->dtype), sum) : sum);
  if (bias != nullptr) {
    if (bias->shape != std::vector<int64_t>{shape[1]} || bias->dtype != x->dtype)
      return row.unsupported("a bias of another shape");
    args.push_back({"b", bias});
    const std::string value = fmt::format("acc[{}] + b[co]", y_at);
    body = fmt::format("let acc[{}] = {};\n  Y[{}] = {};", y_at, sum, y_at,
                       is_narrow ? fmt::format("{}({})", ir::to_string(x->dtype), value) : value);
  }
  PRUNERC_TRY(const Value* const y,
              row.call("conv_transpose", std::move(args), x->dtype, shape, body));
  row.set(0, y);
  return {};
}

}  // namespace prunerc::onnx
