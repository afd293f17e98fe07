#include "ir/onnx/text/pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace prunerc::onnx {

std::optional<std::string> literal(const Value& value) {
  constexpr int64_t kMost = 4096;
  const int64_t n = value.num_elements();
  if (!value.known || n == 0 || n > kMost) return std::nullopt;
  const bool is_float = ir::is_float(value.dtype);
  const double first = value.element(0);
  if (is_float ? std::isnan(first) : std::fabs(first) > 1e15) return std::nullopt;
  for (int64_t i = 1; i < n; ++i) {
    if (value.element(i) != first || std::signbit(value.element(i)) != std::signbit(first))
      return std::nullopt;
  }
  return number_text(value.dtype, first);
}

std::string cast(ir::DType to, std::string_view text) {
  return fmt::format("{}({})", ir::to_string(to), text);
}

namespace {

/// Y = expression over broadcast operands; `formula` names them {0}, {1}, ...
struct Broadcast {
  std::vector<int64_t> shape;
  std::vector<Arg> args;
  std::vector<std::string> reads;  // by operand
};

Result<Broadcast> broadcast(Row& row, const std::vector<const Value*>& operands) {
  Broadcast out;
  for (const Value* operand : operands) {
    const auto common = broadcast_shape(out.shape, operand->shape);
    if (!common) return row.unsupported("shapes that do not fit together");
    out.shape = *common;
  }
  const int rank = static_cast<int>(out.shape.size());
  constexpr std::string_view kNames = "ABCDEFGHJKLMNOPQRSTUVWXZ";
  for (const Value* operand : operands) {
    if (const auto number = literal(*operand); number && operands.size() > 1) {
      // A cast gives the number its type where nothing else does.
      out.reads.push_back(cast(operand->dtype, *number));
      continue;
    }
    const auto known = std::find_if(out.args.begin(), out.args.end(),
                                    [&](const Arg& arg) { return arg.value == operand; });
    const std::string name = known != out.args.end() ? known->name
                             : out.args.size() < kNames.size()
                                 ? std::string(1, kNames[out.args.size()])
                                 : fmt::format("A{}", out.args.size());
    if (known == out.args.end()) out.args.push_back({name, operand});
    out.reads.push_back(broadcast_read(name, operand->shape, rank));
  }
  return out;
}

}  // namespace

std::string target(int rank) { return at("Y", index_list(rank)); }

Result<const Value*> elementwise(Row& row, std::string_view stem,
                                 const std::vector<const Value*>& operands, ir::DType dtype,
                                 const Body& body) {
  PRUNERC_TRY(Broadcast all, broadcast(row, operands));
  const std::string text =
      fmt::format("{} = {};", target(static_cast<int>(all.shape.size())), body(all.reads));
  return row.call(stem, all.args, dtype, all.shape, text);
}

Result<void> pointwise(Row& row, std::string_view stem, const std::vector<const Value*>& operands,
                       ir::DType dtype, const Body& body) {
  PRUNERC_TRY(const Value* const result, elementwise(row, stem, operands, dtype, body));
  row.set(0, result);
  return {};
}

std::string stem_of(std::string_view op) {
  std::string stem;
  for (const char c : op) {
    if (c >= 'A' && c <= 'Z' && !stem.empty()) stem += '_';
    stem += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return stem;
}

namespace {

// Known now, and no element is NaN.
bool has_only_numbers(const Value& value) {
  constexpr int64_t kMost = 1 << 16;
  if (!ir::is_float(value.dtype)) return true;
  if (!value.known || value.num_elements() > kMost) return false;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    if (std::isnan(value.element(i))) return false;
  }
  return true;
}

// "max(a, max(b, last))"
std::string nested(std::string_view name, const std::vector<std::string>& before,
                   std::string text) {
  for (std::size_t i = before.size(); i-- > 0;)
    text = fmt::format("{}({}, {})", name, before[i], text);
  return text;
}

}  // namespace

std::string extreme_text(std::string_view name, const std::vector<const Value*>& operands,
                         const std::vector<std::string>& reads) {
  std::vector<std::string> numbers, others, tables;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const bool is_number = has_only_numbers(*operands[i]);
    (is_number ? numbers : others).push_back(reads[i]);
    if (is_number && !literal(*operands[i])) tables.push_back(reads[i]);
  }
  // The last operand needs no check: it goes through all calls.
  std::string checks;
  for (std::size_t i = 0; i + 1 < others.size(); ++i) {
    std::string all = others[i];
    if (i == 0) {
      // What the first condition reads no condition hides: vectors are read whole. It is NaN where its last operand is.
      std::vector<std::string> rest(others.begin() + 1, others.end());
      rest.insert(rest.end(), tables.begin(), tables.end());
      all = nested(name, rest, all);
    }
    checks += fmt::format("if {0} != {0} then {1} else ", all, others[i]);
  }
  numbers.insert(numbers.end(), others.begin(), others.end());
  std::string last = std::move(numbers.back());
  numbers.pop_back();
  return checks + nested(name, numbers, std::move(last));
}

std::string put(std::string_view text, std::string_view operand) {
  std::string out;
  for (const char c : text) out += c == '$' ? std::string(operand) : std::string(1, c);
  return out;
}

Result<void> unary(Row& row, std::string text, bool floats_only) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  const bool is_narrow = x->dtype == ir::DType::kF16 || x->dtype == ir::DType::kBF16;
  if (ir::is_bool(x->dtype)) return row.unsupported("a bool operand");
  if (text.find("nan") != std::string::npos) return row.unsupported("an attribute of NaN");
  if (floats_only && !ir::is_float(x->dtype))
    return row.unsupported("whole numbers in a function of floats");
  return pointwise(
      row, stem_of(row.node().op), {x}, x->dtype, [&](std::vector<std::string>& reads) {
        const std::string read = is_narrow ? cast(ir::DType::kF32, reads[0]) : reads[0];
        const std::string out = put(text, read);
        return is_narrow ? cast(x->dtype, out) : out;
      });
}

}  // namespace prunerc::onnx
