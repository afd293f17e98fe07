#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace prunerc::onnx {

std::vector<std::string> index_list(int rank, std::string_view stem) {
  std::vector<std::string> list;
  for (int i = 0; i < rank; ++i) list.push_back(fmt::format("{}{}", stem, i));
  return list;
}

std::string indices(int rank, std::string_view stem) {
  return fmt::format("{}", fmt::join(index_list(rank, stem), ","));
}

std::string at(std::string_view name, const std::vector<std::string>& subscripts) {
  if (subscripts.empty()) return std::string(name);
  return fmt::format("{}[{}]", name, fmt::join(subscripts, ","));
}

std::string broadcast_read(std::string_view name, const std::vector<int64_t>& shape, int out_rank) {
  std::vector<std::string> subscripts;
  const int ahead = out_rank - static_cast<int>(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i)
    subscripts.push_back(shape[i] == 1 ? "0" : fmt::format("i{}", ahead + static_cast<int>(i)));
  return at(name, subscripts);
}

std::optional<std::vector<int64_t>> broadcast_shape(const std::vector<int64_t>& a,
                                                    const std::vector<int64_t>& b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()), 1);
  for (const std::vector<int64_t>* shape : {&a, &b}) {
    const std::size_t ahead = out.size() - shape->size();
    for (std::size_t i = 0; i < shape->size(); ++i) {
      const int64_t extent = (*shape)[i];
      int64_t& common = out[ahead + i];
      if (extent == 1 || extent == common) continue;
      if (common != 1) return std::nullopt;
      common = extent;
    }
  }
  return out;
}

std::string number_text(ir::DType dtype, double value) {
  if (ir::is_bool(dtype)) return value != 0 ? "true" : "false";
  if (!ir::is_float(dtype)) {
    constexpr double kEnd = 9223372036854775808.0;
    return whole_text(value >= kEnd   ? std::numeric_limits<int64_t>::max()
                      : value < -kEnd ? std::numeric_limits<int64_t>::min()
                                      : static_cast<int64_t>(value));
  }
  if (std::isinf(value)) return value > 0 ? "inf" : "(-inf)";
  std::string text = fmt::format("{:.{}g}", value, dtype == ir::DType::kF64 ? 17 : 9);
  // The language wants digits on both sides of a point, and "1e+20" is a number of it.
  return value < 0 || (value == 0 && std::signbit(value)) ? "(" + text + ")" : text;
}

std::string whole_text(int64_t value) {
  // A sign is no part of a number, and the number alone would not fit.
  if (value == std::numeric_limits<int64_t>::min())
    return fmt::format("({} - 1)", std::numeric_limits<int64_t>::min() + 1);
  return value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
}

std::optional<int> axis_of(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace prunerc::onnx
