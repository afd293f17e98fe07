// Activations of ONNX Runtime's own domain, with a bias or without.
#include "ir/onnx/text/pointwise.h"

#include <fmt/format.h>

namespace prunerc::onnx {
namespace {

// The function, as `text` says it of $, of the operand and a bias for its last axis.
Result<void> biased(Row& row, std::string_view text) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const Value* const bias = row.in(1);
  if (bias == nullptr) return unary(row, std::string(text));
  if (!ir::is_float(x->dtype) || bias->dtype != x->dtype)
    return row.unsupported("operands of these types");
  if (x->rank() < 1 || bias->shape != std::vector<int64_t>{x->shape.back()})
    return row.unsupported("a bias of another shape");
  const std::vector<std::string> index = index_list(x->rank());
  const bool is_narrow = ir::byte_size(x->dtype) == 2;
  const auto wide = [&](const std::string& read) {
    return is_narrow ? cast(ir::DType::kF32, read) : read;
  };
  const std::string sum = at("v", index), value = put(text, sum);
  PRUNERC_TRY(const Value* const y,
              row.call(stem_of(row.node().op), {{"X", x}, {"b", bias}}, x->dtype, x->shape,
                       fmt::format("let {} = {} + {};\n  {} = {};", sum, wide(at("X", index)),
                                   wide(at("b", {index.back()})), target(x->rank()),
                                   is_narrow ? cast(x->dtype, value) : value)));
  row.set(0, y);
  return {};
}

Result<void> gelu(Row& row) { return unary(row, std::string(kGeluText)); }
Result<void> bias_gelu(Row& row) {
  PRUNERC_TRY_VOID(row.need(1));
  return biased(row, kGeluText);
}
Result<void> fast_gelu(Row& row) { return biased(row, kTanhGeluText); }
Result<void> quick_gelu(Row& row) {
  return unary(row, swish_text(row.attr_float("alpha", 1.702F)));
}

constexpr RowEntry kRows[] = {{"com.microsoft.Gelu", gelu},
                              {"com.microsoft.BiasGelu", bias_gelu},
                              {"com.microsoft.FastGelu", fast_gelu},
                              {"com.microsoft.QuickGelu", quick_gelu}};

}  // namespace

std::span<const RowEntry> contrib_pointwise_rows() { return kRows; }

}  // namespace prunerc::onnx
