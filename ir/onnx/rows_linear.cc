// Products of matrices.
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace prunerc::onnx {
namespace {

std::string sum_of(ir::DType dtype) {
  return dtype == ir::DType::kF16 || dtype == ir::DType::kBF16 ? "sum:f32" : "sum";
}

// What a sum of this accumulator gives, as an element of `dtype`.
std::string rounded(ir::DType dtype, const std::string& sum) {
  const bool is_narrow = dtype == ir::DType::kF16 || dtype == ir::DType::kBF16;
  return is_narrow ? fmt::format("{}({})", ir::to_string(dtype), sum) : sum;
}

/// Batched product A[.., i, k] * B[.., k, j]; operands of rank 1 are a row and a column.
struct Product {
  std::vector<int64_t> shape;
  std::string left, right, target;
};

Result<Product> product_of(Row& row, const Value& a, const Value& b) {
  if (a.rank() == 0 || b.rank() == 0) return row.unsupported("a product of scalars");
  std::vector<int64_t> batch_a(a.shape.begin(), a.shape.end() - std::min(a.rank(), 2));
  std::vector<int64_t> batch_b(b.shape.begin(), b.shape.end() - std::min(b.rank(), 2));
  const int64_t depth_a = a.shape.back();
  const int64_t depth_b = b.shape[b.shape.size() - (b.rank() == 1 ? 1 : 2)];
  const auto batch = broadcast_shape(batch_a, batch_b);
  if (!batch || depth_a != depth_b) return row.unsupported("matrices that do not fit together");
  Product out;
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
  out.target = at("Y", target);
  out.left = at("A", left);
  out.right = at("B", right);
  return out;
}

Result<void> matmul(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  if (a->dtype != b->dtype || ir::is_bool(a->dtype))
    return row.unsupported("operands of these types");
  PRUNERC_TRY(const Product p, product_of(row, *a, *b));
  PRUNERC_TRY(const Value* const y,
              row.call("matmul", {{"A", a}, {"B", b}}, a->dtype, p.shape,
                       fmt::format("{} = {};", p.target,
                                   rounded(a->dtype, fmt::format("{}[k] {} * {}", sum_of(a->dtype),
                                                                 p.left, p.right)))));
  row.set(0, y);
  return {};
}

Result<void> matmul_integer(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  PRUNERC_TRY(const Product p, product_of(row, *a, *b));
  std::vector<Arg> args = {{"A", a}, {"B", b}};
  std::string left = "i32(" + p.left + ")", right = "i32(" + p.right + ")";
  for (std::size_t i = 2; i < 4; ++i) {
    const Value* const zero = row.in(i);
    if (zero == nullptr) continue;
    const std::string name = i == 2 ? "ZA" : "ZB";
    // One for each row of A, one for each column of B.
    std::string read = name;
    if (zero->rank() > 0 && zero->num_elements() == 1) {
      read = at(name, std::vector<std::string>(zero->shape.size(), "0"));
    } else if (zero->rank() == 1) {
      read = at(name, {i == 2 ? "i" : "j"});
    } else if (zero->rank() > 1) {
      return row.unsupported("zero points of several dimensions");
    }
    args.push_back({name, zero});
    std::string& side = i == 2 ? left : right;
    side = fmt::format("({} - i32({}))", side, read);
  }
  PRUNERC_TRY(const Value* const y,
              row.call("matmul_integer", std::move(args), ir::DType::kI32, p.shape,
                       fmt::format("{} = sum[k] {} * {};", p.target, left, right)));
  row.set(0, y);
  return {};
}

Result<void> gemm(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  const Value* const c = row.in(2);
  const bool turn_a = row.attr_int("transA", 0) != 0, turn_b = row.attr_int("transB", 0) != 0;
  const double alpha = row.attr_float("alpha", 1), beta = row.attr_float("beta", 1);
  if (a->rank() != 2 || b->rank() != 2 || a->dtype != b->dtype || ir::is_bool(a->dtype))
    return row.unsupported("operands that are no matrices of one type");
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
    if (broadcast_shape({m, n}, c->shape) != std::vector<int64_t>{m, n})
      return row.unsupported("a third operand that does not fit");
    std::vector<std::string> reads;
    const std::string names[] = {"i", "j"};
    for (std::size_t i = 0; i < c->shape.size(); ++i)
      reads.push_back(c->shape[i] == 1 ? "0" : names[2 - c->shape.size() + i]);
    args.push_back({"C", c});
    result += " + " + scaled(beta, at("C", reads));
  }
  if (result == "acc[i,j]") {
    body = fmt::format("Y[i,j] = {};", rounded(a->dtype, sum));
  } else {
    body = fmt::format("let acc[i,j] = {};\n  Y[i,j] = {};", sum, rounded(a->dtype, result));
  }
  PRUNERC_TRY(const Value* const y, row.call("gemm", std::move(args), a->dtype, {m, n}, body));
  row.set(0, y);
  return {};
}

// "bij,bjk->bik": the language says the same with other signs.
Result<void> einsum(Row& row) {
  std::string equation = row.attr_string("equation", "");
  std::erase(equation, ' ');
  if (equation.find('.') != std::string::npos) return row.unsupported("an ellipsis");
  const std::size_t arrow = equation.find("->");
  const std::string inputs = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (const char c : inputs) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (terms.size() != row.num_inputs()) return row.unsupported("an equation of other operands");
  std::map<char, int64_t> extents;
  std::map<char, int> uses;
  std::vector<Arg> args;
  std::string product;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    PRUNERC_TRY(const Value* const x, row.need(t));
    if (static_cast<int>(terms[t].size()) != x->rank() || ir::is_bool(x->dtype) ||
        x->dtype != row.in(0)->dtype)
      return row.unsupported("an equation of other operands");
    std::vector<std::string> reads;
    for (std::size_t i = 0; i < terms[t].size(); ++i) {
      const char c = terms[t][i];
      const auto [known, is_new] = extents.emplace(c, x->shape[i]);
      if (!is_new && known->second != x->shape[i]) return row.unsupported("extents that differ");
      ++uses[c];
      reads.push_back(fmt::format("x{}", static_cast<int>(c)));
    }
    args.push_back({fmt::format("A{}", t), x});
    product += (t == 0 ? "" : " * ") + at(args.back().name, reads);
  }
  std::string output;
  if (arrow != std::string::npos) {
    output = equation.substr(arrow + 2);
  } else {
    for (const auto& [c, n] : uses) output += n == 1 ? std::string(1, c) : "";
  }
  std::vector<std::string> target;
  std::vector<int64_t> shape;
  std::map<char, bool> kept;
  for (const char c : output) {
    if (!extents.contains(c) || kept[c]) return row.unsupported("such an output");
    kept[c] = true;
    shape.push_back(extents[c]);
    target.push_back(fmt::format("x{}", static_cast<int>(c)));
  }
  std::vector<std::string> summed;
  for (const auto& [c, extent] : extents) {
    if (!kept[c]) summed.push_back(fmt::format("x{}", static_cast<int>(c)));
  }
  const ir::DType dtype = row.in(0)->dtype;
  const std::string value =
      summed.empty() ? product
                     : fmt::format("{}[{}] {}", sum_of(dtype), fmt::join(summed, ","), product);
  PRUNERC_TRY(const Value* const y,
              row.call("einsum", std::move(args), dtype, shape,
                       fmt::format("{} = {};", at("Y", target), rounded(dtype, value))));
  row.set(0, y);
  return {};
}

constexpr RowEntry kRows[] = {
    {"MatMul", matmul}, {"MatMulInteger", matmul_integer}, {"Gemm", gemm}, {"Einsum", einsum}};

}  // namespace

std::span<const RowEntry> linear_rows() { return kRows; }

}  // namespace prunerc::onnx
