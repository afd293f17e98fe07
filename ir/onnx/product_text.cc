#include "ir/onnx/product_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::onnx {

// 16-bit floats are summed in f32, 8-bit numbers in i32.
std::string sum_of(ir::DType dtype) {
  if (ir::byte_size(dtype) >= 4) return "sum";
  return ir::is_float(dtype) ? "sum:f32" : "sum:i32";
}

std::string rounded(ir::DType dtype, const std::string& sum) {
  return ir::byte_size(dtype) < 4 ? fmt::format("{}({})", ir::to_string(dtype), sum) : sum;
}

Result<ProductText> product_text_of(Row& row, const Value& a, const Value& b) {
  if (a.rank() == 0 || b.rank() == 0) return row.unsupported("a product of scalars");
  std::vector<int64_t> batch_a(a.shape.begin(), a.shape.end() - std::min(a.rank(), 2));
  std::vector<int64_t> batch_b(b.shape.begin(), b.shape.end() - std::min(b.rank(), 2));
  const int64_t depth_a = a.shape.back();
  const int64_t depth_b = b.shape[b.shape.size() - (b.rank() == 1 ? 1 : 2)];
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
    out.shape.push_back(a.shape[a.shape.size() - 2]);
    target.push_back("i");
    left.push_back("i");
  }
  left.push_back("k");
  right.push_back("k");
  if (b.rank() > 1) {
    out.shape.push_back(b.shape.back());
    target.push_back("j");
    right.push_back("j");
  }
  out.has_row = a.rank() > 1;
  out.has_column = b.rank() > 1;
  out.target = std::move(target);
  out.left = at("A", left);
  out.right = at("B", right);
  return out;
}

}  // namespace prunerc::onnx
