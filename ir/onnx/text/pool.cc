#include "ir/onnx/text/pool.h"

#include <fmt/format.h>

namespace prunerc::onnx {

Result<Pool> pool_of(Row& row, const Value& x) {
  Pool p;
  PRUNERC_TRY(p.window, window_of(row, x, row.attr_ints("kernel_shape")));
  for (std::size_t i = 0; i < p.window.rank(); ++i) {
    const int64_t span = (p.window.kernel[i] - 1) * p.window.dilation[i] + 1;
    if (p.window.before[i] >= span || p.window.after[i] >= span)
      return row.unsupported("windows that lie beside the image");
  }
  p.shape = {x.shape[0], x.shape[1]};
  p.shape.insert(p.shape.end(), p.window.out.begin(), p.window.out.end());
  std::vector<std::string> target = {"n", "c"}, reads = {"n", "c"};
  for (std::size_t i = 0; i < p.window.rank(); ++i) {
    target.push_back(fmt::format("o{}", i));
    reads.push_back(p.window.subscript(i));
  }
  p.target = fmt::format("{}", fmt::join(target, ","));
  p.read = at("X", reads);
  p.over = p.window.kernel_ranges();
  if (p.over.empty()) p.over = "r in 0..1";
  p.leaves_image = p.window.leaves_image();
  return p;
}

std::string or_else(const Pool& p, std::string_view otherwise) {
  return p.leaves_image ? fmt::format("({} or {})", p.read, otherwise) : p.read;
}

std::string counted(const Window& w, bool with_padding) {
  std::string text;
  for (std::size_t i = 0; i < w.rank(); ++i) {
    const int64_t end = with_padding ? w.in[i] + w.after[i] : w.in[i];
    const int64_t begin = with_padding ? -w.before[i] : 0;
    const int64_t last =
        (w.out[i] - 1) * w.stride[i] - w.before[i] + (w.kernel[i] - 1) * w.dilation[i];
    const bool is_full = last < end && -w.before[i] >= begin;
    std::string one = fmt::format("{}", w.kernel[i]);
    const std::string first = fmt::format("o{}*{} - {}", i, w.stride[i], w.before[i]);
    if (!is_full && w.dilation[i] == 1) {
      one = fmt::format("(min(i64({0} + {1}), {2}) - max(i64({0}), {3}))", first, w.kernel[i], end,
                        begin);
    } else if (!is_full) {
      one = fmt::format(
          "(sum:i64[q{0} in 0..{1}] (if o{0}*{2} + q{0}*{3} - {4} >= {5} && o{0}*{2} + q{0}*{3} - "
          "{4} < {6} then i64(1) else i64(0)))",
          i, w.kernel[i], w.stride[i], w.dilation[i], w.before[i], begin, end);
    }
    text += (i == 0 ? "" : " * ") + one;
  }
  return text;
}

}  // namespace prunerc::onnx
