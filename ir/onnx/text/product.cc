#include "ir/onnx/text/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace prunerc::onnx {

// 16-bit floats are summed in f32, 8-bit numbers in i32.
std::string sum_of(ir::DType dtype) {
  if (ir::byte_size(dtype) >= 4) return "sum";
  return ir::is_float(dtype) ? "sum:f32" : "sum:i32";
}

std::string rounded(ir::DType dtype, const std::string& sum) {
  return ir::byte_size(dtype) < 4 ? fmt::format("{}({})", ir::to_string(dtype), sum) : sum;
}

namespace {

// Which axis of the operand each of [batch.., rows, columns] is.
std::vector<std::size_t> axes_of(const Value& x, const Turned& turned) {
  std::vector<std::size_t> axes(x.shape.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  if (axes.size() < 2) return axes;
  if (turned.batch) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
  if (turned.matrix) std::swap(axes[axes.size() - 2], axes.back());
  return axes;
}

std::string read_of(std::string_view name, const std::vector<std::string>& subscripts,
                    const std::vector<std::size_t>& axes) {
  std::vector<std::string> reads(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) reads[axes[i]] = subscripts[i];
  return at(name, reads);
}

std::vector<int64_t> shape_of(const Value& x, const std::vector<std::size_t>& axes) {
  std::vector<int64_t> shape;
  for (const std::size_t axis : axes) shape.push_back(x.shape[axis]);
  return shape;
}

}  // namespace

Result<ProductText> product_text_of(Row& row, const Value& a, const Value& b,
                                    const Turned& turned_a, const Turned& turned_b) {
  if (a.rank() == 0 || b.rank() == 0) return row.unsupported("a product of scalars");
  const std::vector<std::size_t> axes_a = axes_of(a, turned_a), axes_b = axes_of(b, turned_b);
  const std::vector<int64_t> shape_a = shape_of(a, axes_a), shape_b = shape_of(b, axes_b);
  const std::vector<int64_t> batch_a(shape_a.begin(), shape_a.end() - std::min(a.rank(), 2));
  const std::vector<int64_t> batch_b(shape_b.begin(), shape_b.end() - std::min(b.rank(), 2));
  const int64_t depth_a = shape_a.back();
  const int64_t depth_b = shape_b[shape_b.size() - (b.rank() == 1 ? 1 : 2)];
  const auto batch = broadcast_shape(batch_a, batch_b);
  if (!batch || depth_a != depth_b) return row.unsupported("matrices that do not fit together");
  ProductText out;
  out.shape = *batch;
  std::vector<std::string> target = index_list(static_cast<int>(batch->size()), "b");
  const auto batch_reads = [&](const std::vector<int64_t>& own) {
    std::vector<std::string> reads;
    const std::size_t ahead = batch->size() - own.size();
    for (std::size_t i = 0; i < own.size(); ++i)
      reads.push_back(own[i] == 1 ? "0" : fmt::format("b{}", ahead + i));
    return reads;
  };
  std::vector<std::string> left = batch_reads(batch_a), right = batch_reads(batch_b);
  if (a.rank() > 1) {
    out.shape.push_back(shape_a[shape_a.size() - 2]);
    target.push_back("i");
    left.push_back("i");
  }
  left.push_back("k");
  right.push_back("k");
  if (b.rank() > 1) {
    out.shape.push_back(shape_b.back());
    target.push_back("j");
    right.push_back("j");
  }
  out.has_row = a.rank() > 1;
  out.has_column = b.rank() > 1;
  out.target = std::move(target);
  out.left = read_of("A", left, axes_a);
  out.right = read_of("B", right, axes_b);
  return out;
}

}  // namespace prunerc::onnx
