#include "ir/onnx/text/conv.h"

#include <fmt/format.h>

namespace prunerc::onnx {

Result<ConvText> conv_text_of(Row& row, const Value& x, const Value& f) {
  ConvText c;
  if (x.rank() < 3 || f.rank() != x.rank()) return row.unsupported("operands of these ranks");
  std::vector<int64_t> kernel(f.shape.begin() + 2, f.shape.end());
  if (const std::vector<int64_t> said = row.attr_ints("kernel_shape");
      !said.empty() && said != kernel)
    return row.unsupported("a kernel_shape that is not the filter's");
  PRUNERC_TRY(c.window, window_of(row, x, kernel));
  c.groups = row.attr_int("group", 1);
  c.channels = f.shape[0];
  const int64_t per_group = f.shape[1];
  if (c.groups < 1 || x.shape[1] % c.groups != 0 || x.shape[1] / c.groups != per_group ||
      c.channels % c.groups != 0)
    return row.unsupported("groups that do not divide the channels");
  c.shape = {x.shape[0], c.channels};
  c.shape.insert(c.shape.end(), c.window.out.begin(), c.window.out.end());
  std::vector<std::string> target = {"n", "co"}, reads = {"n"}, filter = {"co"};
  const int64_t out_per_group = c.channels / c.groups;
  if (c.groups == 1) {
    reads.push_back("ci");
  } else if (per_group == 1) {
    reads.push_back(out_per_group == 1 ? "co" : fmt::format("co/{}", out_per_group));
  } else {
    reads.push_back(fmt::format("co/{}*{} + ci", out_per_group, per_group));
  }
  filter.push_back(c.groups > 1 && per_group == 1 ? "0" : "ci");
  std::vector<std::string> reduced;
  if (filter[1] == "ci") reduced.push_back("ci");
  for (std::size_t i = 0; i < c.window.rank(); ++i) {
    target.push_back(fmt::format("o{}", i));
    reads.push_back(c.window.subscript(i));
    filter.push_back(kernel[i] == 1 ? "0" : fmt::format("k{}", i));
    if (kernel[i] != 1) reduced.push_back(fmt::format("k{}", i));
  }
  c.leaves_image = c.window.leaves_image();
  c.target = fmt::format("{}", fmt::join(target, ","));
  c.x = at("X", reads);
  c.f = at("F", filter);
  // A reduction needs an index.
  if (reduced.empty()) reduced.push_back("r in 0..1");
  c.reduced = fmt::format("{}", fmt::join(reduced, ","));
  return c;
}

}  // namespace prunerc::onnx
