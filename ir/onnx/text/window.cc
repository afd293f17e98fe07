#include "ir/onnx/text/window.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

/// Larger ones are a lie, and would overflow.
constexpr int64_t kMost = int64_t{1} << 31;

bool all_in(const std::vector<int64_t>& values, std::size_t size, int64_t low) {
  if (values.size() != size) return false;
  for (const int64_t value : values) {
    if (value < low || value > kMost) return false;
  }
  return true;
}

}  // namespace

bool Window::pads(std::size_t axis) const {
  const int64_t last =
      (out[axis] - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] - before[axis];
  return before[axis] > 0 || last >= in[axis];
}

bool Window::leaves_image() const {
  for (std::size_t i = 0; i < rank(); ++i) {
    if (pads(i)) return true;
  }
  return false;
}

std::string Window::subscript(std::size_t axis) const {
  std::string text = out[axis] == 1 ? std::string("0") : fmt::format("o{}", axis);
  if (stride[axis] != 1 && out[axis] != 1) text += fmt::format("*{}", stride[axis]);
  if (kernel[axis] != 1) {
    const std::string k = dilation[axis] == 1 ? fmt::format("k{}", axis)
                                              : fmt::format("k{}*{}", axis, dilation[axis]);
    text = text == "0" ? k : text + " + " + k;
  }
  if (before[axis] != 0) return text + fmt::format(" - {}", before[axis]);
  // An index that stands alone says the image's extent.
  const bool is_alone = text == fmt::format("o{}", axis) || text == fmt::format("k{}", axis);
  const int64_t extent = text[0] == 'o' ? out[axis] : kernel[axis];
  if (is_alone && extent != in[axis]) text += " + 0";
  return text;
}

std::vector<std::string> Window::subscripts() const {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < rank(); ++i) list.push_back(subscript(i));
  return list;
}

std::string Window::kernel_ranges() const {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (kernel[i] != 1) list.push_back(fmt::format("k{} in 0..{}", i, kernel[i]));
  }
  return fmt::format("{}", fmt::join(list, ","));
}

Result<std::string> auto_pad_of(const Row& row) {
  return row.attr_choice("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
}

Result<Window> window_of(Row& row, const Value& x, std::vector<int64_t> kernel) {
  if (x.rank() < 3) return row.unsupported("an operand without axes to slide over");
  Window w;
  w.in.assign(x.shape.begin() + 2, x.shape.end());
  const std::size_t n = w.in.size();
  w.kernel = std::move(kernel);
  w.stride = row.attr_ints("strides");
  w.dilation = row.attr_ints("dilations");
  if (w.stride.empty()) w.stride.assign(n, 1);
  if (w.dilation.empty()) w.dilation.assign(n, 1);
  std::vector<int64_t> pads = row.attr_ints("pads");
  PRUNERC_TRY(const std::string automatic, auto_pad_of(row));
  if (pads.empty() || automatic != "NOTSET") pads.assign(2 * n, 0);
  if (!all_in(w.kernel, n, 1) || !all_in(w.stride, n, 1) || !all_in(w.dilation, n, 1) ||
      !all_in(w.in, n, 1) || !all_in(pads, 2 * n, 0))
    return row.unsupported("attributes of another rank, or out of range");
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
  w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
  const bool rounds_up = row.attr_int("ceil_mode", 0) != 0;
  for (std::size_t i = 0; i < n; ++i) {
    const int64_t span = w.dilation[i] * (w.kernel[i] - 1) + 1;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const int64_t out = (w.in[i] + w.stride[i] - 1) / w.stride[i];
      const int64_t pad = std::max<int64_t>(0, (out - 1) * w.stride[i] + span - w.in[i]);
      const int64_t small = pad / 2, large = pad - small;
      w.before[i] = automatic == "SAME_UPPER" ? small : large;
      w.after[i] = pad - w.before[i];
      w.out.push_back(out);
      continue;
    }
    const int64_t room = w.in[i] + w.before[i] + w.after[i] - span;
    if (room < 0) return row.unsupported("a window larger than its image");
    int64_t out = room / w.stride[i] + 1;
    if (rounds_up && room % w.stride[i] != 0) {
      // A window that starts in the padding behind the image is none.
      if (out * w.stride[i] < w.in[i] + w.before[i]) ++out;
    }
    w.out.push_back(out);
  }
  return w;
}

}  // namespace prunerc::onnx
