// Products of matrices.
#include "ir/onnx/text/pointwise.h"
#include "ir/onnx/text/product.h"

#include <fmt/format.h>

#include <cmath>

namespace prunerc::onnx {
namespace {

Result<void> matmul(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  if (a->dtype != b->dtype || ir::is_bool(a->dtype))
    return row.unsupported("operands of these types");
  PRUNERC_TRY(const ProductText p, product_text_of(row, *a, *b));
  PRUNERC_TRY(const Value* const y,
              row.call("matmul", {{"A", a}, {"B", b}}, a->dtype, p.shape,
                       fmt::format("{} = {};", at("Y", p.target),
                                   rounded(a->dtype, fmt::format("{}[k] {} * {}", sum_of(a->dtype),
                                                                 p.left, p.right)))));
  row.set(0, y);
  return {};
}

Result<void> gemm(Row& row) { return gemm_with(row, {}); }

constexpr RowEntry kRows[] = {
    {"MatMul", matmul}, {"MatMulInteger", matmul_integer}, {"Gemm", gemm}, {"Einsum", einsum}};

}  // namespace

std::span<const RowEntry> linear_rows() { return kRows; }

Result<void> gemm_with(Row& row, std::string_view activation) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  const Value* const c = row.in(2);
  const bool turn_a = row.attr_int("transA", 0) != 0, turn_b = row.attr_int("transB", 0) != 0;
  const double alpha = row.attr_float("alpha", 1), beta = row.attr_float("beta", 1);
  if (a->rank() != 2 || b->rank() != 2 || a->dtype != b->dtype || ir::is_bool(a->dtype))
    return row.unsupported("operands that are no matrices of one type");
  const auto is_whole = [](double by) { return std::trunc(by) == by && std::fabs(by) < 1e9; };
  if (!ir::is_float(a->dtype) && !(is_whole(alpha) && is_whole(beta)))
    return row.unsupported("factors of whole numbers that are not whole");
  const int64_t m = a->shape[turn_a ? 1 : 0], n = b->shape[turn_b ? 0 : 1];
  if (a->shape[turn_a ? 0 : 1] != b->shape[turn_b ? 1 : 0])
    return row.unsupported("matrices that do not fit together");
  std::vector<Arg> args = {{"A", a}, {"B", b}};
  const std::string sum = fmt::format("{}[k] {} * {}", sum_of(a->dtype),
                                      turn_a ? "A[k,i]" : "A[i,k]", turn_b ? "B[j,k]" : "B[k,j]");
  std::string body;
  const auto scaled = [&](double by, std::string text) {
    return by == 1 ? text : fmt::format("{} * {}", number_text(a->dtype, by), text);
  };
  std::string result = scaled(alpha, "acc[i,j]");
  if (c != nullptr && beta != 0) {
    if (broadcast_shape({m, n}, c->shape) != std::vector<int64_t>{m, n} || c->dtype != a->dtype)
      return row.unsupported("a third operand that does not fit");
    std::vector<std::string> reads;
    const std::string names[] = {"i", "j"};
    for (std::size_t i = 0; i < c->shape.size(); ++i)
      reads.push_back(c->shape[i] == 1 ? "0" : names[2 - c->shape.size() + i]);
    args.push_back({"C", c});
    result += " + " + scaled(beta, at("C", reads));
  }
  const auto name = [&](const std::string& here, const std::string& value) {
    body += fmt::format("let {} = {};\n  ", here, value);
    return here;
  };
  const std::string acc = "acc[i,j]";
  if (result == acc && activation.empty()) {
    result = sum;
  } else {
    name(acc, sum);
  }
  if (!activation.empty()) result = put(activation, result == acc ? acc : name("v[i,j]", result));
  body += fmt::format("Y[i,j] = {};", rounded(a->dtype, result));
  PRUNERC_TRY(const Value* const y, row.call("gemm", std::move(args), a->dtype, {m, n}, body));
  row.set(0, y);
  return {};
}

}  // namespace prunerc::onnx
