#include "ir/onnx/text/integer.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::onnx {

bool is_byte(const Value& value) {
  return value.dtype == ir::DType::kI8 || value.dtype == ir::DType::kU8;
}

bool is_zero(const Value* zero) {
  if (zero == nullptr) return true;
  constexpr int64_t kMost = 1 << 20;
  if (!zero->known || zero->num_elements() > kMost) return false;
  for (int64_t i = 0; i < zero->num_elements(); ++i) {
    if (zero->element(i) != 0) return false;
  }
  return true;
}

std::string single_read(std::string_view name, const Value& value) {
  return at(name, std::vector<std::string>(value.shape.size(), "0"));
}

std::string quantized(ir::DType dtype, std::string_view value, std::string_view zero) {
  const bool is_signed = dtype == ir::DType::kI8;
  return quantized(dtype, value, zero, is_signed ? -128 : 0, is_signed ? 127 : 255);
}

std::string quantized(ir::DType dtype, std::string_view value, std::string_view zero, int64_t low,
                      int64_t high) {
  return fmt::format("{}(clamp(round({}){}, {}, {}))", ir::to_string(dtype), value,
                     zero.empty() ? "" : fmt::format(" + f32({})", zero), low, high);
}

namespace {

/// Products of so many rows take as long as it takes to read the right operand.
constexpr int64_t kMaxFewRows = 8;

std::string column_of(const IntegerProduct& p) {
  return p.column.empty() ? "" : fmt::format("[{}]", p.column);
}

// Sums of the right's columns times the left's zero point, taken from the bias.
Result<const Value*> bias_by_columns(Row& row, const IntegerProduct& p, const Value* bias) {
  std::vector<Arg> args = {{p.right_name, p.right_value}, {"ZA", p.left_zero}};
  const std::string here = column_of(p);
  if (bias != nullptr) args.push_back({"b", bias});
  return row.call(
      "column_sums", std::move(args), ir::DType::kI32, p.column_shape,
      fmt::format("let s{0} = sum:i32[{1}] {2};\n  Y{0} = {3} - i32({4}) * s{0};", here,
                  p.column_range, p.right, bias != nullptr ? "b" + here : "0", p.left_zero_read));
}

// Sums of the right's columns alone, made once: the left's zero point is another in each run.
Result<const Value*> column_sums(Row& row, const IntegerProduct& p) {
  return row.call("column_sums", {{p.right_name, p.right_value}}, ir::DType::kI32, p.column_shape,
                  fmt::format("Y{} = sum:i32[{}] {};", column_of(p), p.column_range, p.right));
}

// What is added to the sum by columns: the bias, less what the left's zero point brings.
Result<void> add_by_columns(Row& row, const IntegerProduct& p, const Value* bias, bool by_columns,
                            IntegerSum& out) {
  if (by_columns && p.left_zero->known) {
    PRUNERC_TRY(bias, bias_by_columns(row, p, bias));
  }
  const std::string here = column_of(p);
  if (bias != nullptr) {
    out.args.push_back({"c", bias});
    out.more = "c" + here;
  }
  if (!by_columns || p.left_zero->known) return {};
  PRUNERC_TRY(const Value* const sums, column_sums(row, p));
  if (!p.leaves_left) out.args.push_back({"ZA", p.left_zero});
  out.args.push_back({"cs", sums});
  out.more +=
      fmt::format("{}(0 - i32({})) * cs{}", out.more.empty() ? "" : " + ", p.left_zero_read, here);
  return {};
}

/// Sums of an operand along the reduced index, and how they are read where the product reads the operand.
struct DepthSums {
  const Value* values;
  std::string read;
  int64_t depth;
};

// `read` is the operand's: "B[b0,k,j]".
Result<DepthSums> depth_sums(Row& row, const IntegerProduct& p, const Value& operand,
                             const std::string& read, std::string_view name) {
  std::vector<std::string> subscripts = {""};
  for (const char c : std::string_view(read).substr(read.find('[') + 1)) {
    if (c == ']') break;
    if (c == ',') {
      subscripts.emplace_back();
    } else {
      subscripts.back() += c;
    }
  }
  const auto k = std::find(subscripts.begin(), subscripts.end(), p.reduced) - subscripts.begin();
  subscripts.erase(subscripts.begin() + k);
  std::vector<int64_t> shape = operand.shape;
  const int64_t depth = shape[static_cast<std::size_t>(k)];
  shape.erase(shape.begin() + k);
  std::vector<std::string> reads = index_list(operand.rank()), target = reads;
  reads[static_cast<std::size_t>(k)] = "k";
  target.erase(target.begin() + k);
  PRUNERC_TRY(const Value* const sums,
              row.call("depth_sums", {{"X", &operand}}, ir::DType::kI32, std::move(shape),
                       fmt::format("{} = sum:i32[k] {};", at("Y", target), at("X", reads))));
  return DepthSums{sums, at(name, subscripts), depth};
}

// (a - ZA) * (b - ZB), summed: a * b, less ZB for each a and ZA for each b, and ZA * ZB each time. What wraps on the way
// comes back.
Result<void> add_by_depth(Row& row, const IntegerProduct& p, bool has_left, bool has_right,
                          IntegerSum& out) {
  const auto add = [&](const std::string& term) {
    out.more += (out.more.empty() ? "" : " + ") + term;
  };
  int64_t depth = 0;
  if (has_left) {
    PRUNERC_TRY(const DepthSums b, depth_sums(row, p, *p.right_value, p.right, "kb"));
    out.args.push_back({"kb", b.values});
    add(fmt::format("(0 - i32({})) * {}", p.left_zero_read, b.read));
  }
  if (has_right) {
    PRUNERC_TRY(const DepthSums a, depth_sums(row, p, *p.left_value, p.left, "ka"));
    out.args.push_back({"ka", a.values});
    add(fmt::format("(0 - i32({})) * {}", p.right_zero_read, a.read));
    depth = a.depth;
  }
  if (has_left && has_right)
    add(fmt::format("{} * i32({}) * i32({})", whole_text(static_cast<int32_t>(depth)),
                    p.left_zero_read, p.right_zero_read));
  return {};
}

}  // namespace

Result<IntegerSum> integer_sum(Row& row, const IntegerProduct& p, const Value* bias) {
  for (const Value* zero : {p.left_zero, p.right_zero}) {
    if (zero != nullptr && !is_byte(*zero)) return row.unsupported("zero points of this type");
  }
  if (bias != nullptr && (bias->dtype != ir::DType::kI32 || bias->shape != p.column_shape))
    return row.unsupported("a bias of another shape or type");
  const bool has_left = !is_zero(p.left_zero), has_right = !is_zero(p.right_zero);
  const bool by_columns = has_left && !has_right && p.right_value->known &&
                          !p.column_range.empty() && p.left_zero->num_elements() == 1;
  // Sums of a right operand that changes read it once more.
  const bool by_depth = !by_columns && p.left_value != nullptr &&
                        (!has_left || p.right_value->known || p.rows > kMaxFewRows);
  IntegerSum out;
  std::string left = p.left, right = p.right;
  if (has_left && (p.leaves_left || !by_columns)) out.args.push_back({"ZA", p.left_zero});
  if (p.leaves_left) left = fmt::format("({} or {})", left, has_left ? p.left_zero_read : "0");
  if (has_left && !by_columns && !by_depth)
    left = fmt::format("(i32({}) - i32({}))", left, p.left_zero_read);
  if (has_right) {
    out.args.push_back({"ZB", p.right_zero});
    if (!by_depth) right = fmt::format("(i32({}) - i32({}))", right, p.right_zero_read);
  }
  const std::string target = p.target.empty() ? "" : fmt::format("[{}]", p.target);
  out.read = "acc" + target;
  out.statement = fmt::format("let {} = sum:i32[{}] {} * {};", out.read, p.reduced, left, right);
  PRUNERC_TRY_VOID(add_by_columns(row, p, bias, by_columns, out));
  if (by_depth) PRUNERC_TRY_VOID(add_by_depth(row, p, has_left, has_right, out));
  return out;
}

std::string with_more(const IntegerSum& sum) {
  return sum.more.empty() ? sum.read : fmt::format("{} + {}", sum.read, sum.more);
}

}  // namespace prunerc::onnx
