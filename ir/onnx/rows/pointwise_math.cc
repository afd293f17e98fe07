// Functions that the language has not, written with those it has: within some units in the last place.
// Source: the polynomials are those of Cephes' single precision (S. Moshier), netlib.org/cephes.
#include "ir/onnx/row.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace prunerc::onnx {
namespace {

/// `lets` are steps "name = value;", in which $ is the operand and every name stands for an element.
struct MathRow {
  std::string_view op;
  std::vector<std::pair<std::string_view, std::string_view>> lets;
  std::string_view result;
};

constexpr std::string_view kAsinPolynomial =
    "((((4.2163199048e-2 * @z + 2.4181311049e-2) * @z + 4.5470025998e-2) * @z + 7.4953002686e-2) * "
    "@z"
    " + 1.6666752422e-1) * @z * @r + @r";

const std::vector<MathRow>& table() {
  static const std::vector<MathRow> rows = {
      {"Atan",
       {{"a", "abs($)"},
        {"r",
         "if @a > 2.41421356 then -1 / @a else if @a > 0.41421356 then (@a - 1) / (@a + 1) else "
         "@a"},
        {"z", "@r * @r"},
        {"p",
         "(if @a > 2.41421356 then 1.57079633 else if @a > 0.41421356 then 0.785398163 else 0)"
         " + ((((8.05374449538e-2 * @z - 1.38776856032e-1) * @z + 1.99777106478e-1) * @z"
         " - 3.33329491539e-1) * @z * @r + @r)"}},
       "if $ < 0 then -@p else @p"},
      {"Asin",
       {{"a", "abs($)"},
        {"z", "if @a > 0.5 then 0.5 * (1 - @a) else @a * @a"},
        {"r", "if @a > 0.5 then sqrt(@z) else @a"},
        {"p", kAsinPolynomial},
        {"q", "if @a > 0.5 then 1.57079633 - 2 * @p else @p"}},
       "if $ < 0 then -@q else @q"},
      {"Acos",
       {{"a", "abs($)"},
        {"z", "if @a > 0.5 then 0.5 * (1 - @a) else @a * @a"},
        {"r", "if @a > 0.5 then sqrt(@z) else $"},
        {"p", kAsinPolynomial}},
       "if $ > 0.5 then 2 * @p else if $ < -0.5 then 3.14159265 - 2 * @p else 1.57079633 - @p"},
      {"Sinh",
       {{"z", "$ * $"}},
       "if abs($) > 1 then (exp($) - exp(-$)) / 2 else ((2.03721912945e-4 * @z + 8.33028376239e-3)"
       " * @z + 1.66667160211e-1) * @z * $ + $"},
      {"Asinh",
       {{"a", "abs($)"},
        {"z", "@a * @a"},
        {"p",
         "if @a > 1500 then log(@a) + 0.693147181 else if @a < 0.5 then (((2.0122003309e-2 * @z"
         " - 4.2699340972e-2) * @z + 7.4847586088e-2) * @z - 1.6666288134e-1) * @z * @a + @a"
         " else log(@a + sqrt(@z + 1))"}},
       "if $ < 0 then -@p else @p"},
      {"Acosh",
       {{"z", "$ - 1"}},
       "if $ > 1500 then log($) + 0.693147181 else if @z < 0.5 then ((((1.7596881071e-3 * @z"
       " - 7.5272886713e-3) * @z + 2.6454905019e-2) * @z - 1.1784741703e-1) * @z + 1.4142135263)"
       " * sqrt(@z) else log($ + sqrt(@z * ($ + 1)))"},
      {"Atanh",
       {{"z", "$ * $"}},
       "if abs($) < 0.5 then ((((1.81740078349e-1 * @z + 8.24370301058e-2) * @z + 1.46691431730e-1)"
       " * @z + 1.99782164500e-1) * @z + 3.33337300303e-1) * @z * $ + $"
       " else 0.5 * log((1 + $) / (1 - $))"},
  };
  return rows;
}

std::string lower(std::string_view op) {
  std::string out;
  for (const char c : op) out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

Result<void> math(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (!ir::is_float(x->dtype)) return row.unsupported("whole numbers in a function of floats");
  if (x->dtype == ir::DType::kF64) return row.unsupported("this function of f64");
  const std::vector<std::string> index = index_list(x->rank());
  const std::string read =
      ir::byte_size(x->dtype) < 4 ? fmt::format("f32({})", at("X", index)) : at("X", index);
  const auto put = [&](std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '$') {
        out += read;
      } else if (text[i] == '@') {
        out += at(text.substr(++i, 1), index);
      } else {
        out += text[i];
      }
    }
    return out;
  };
  for (const MathRow& entry : table()) {
    if (entry.op != row.node().op) continue;
    std::string body;
    for (const auto& [name, value] : entry.lets)
      body += fmt::format("let {} = {};\n  ", at(name, index), put(value));
    std::string result = put(entry.result);
    if (ir::byte_size(x->dtype) < 4)
      result = fmt::format("{}({})", ir::to_string(x->dtype), result);
    body += fmt::format("{} = {};", at("Y", index), result);
    PRUNERC_TRY(const Value* const y,
                row.call(lower(entry.op), {{"X", x}}, x->dtype, x->shape, body));
    row.set(0, y);
    return {};
  }
  return row.unsupported("there is no such function");
}

// Every bit of a whole number turned is the number below its negative.
Result<void> bitwise_not(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  if (!ir::is_int(x->dtype)) return row.unsupported("operands of this type");
  const std::vector<std::string> index = index_list(x->rank());
  PRUNERC_TRY(const Value* const y, row.call("bitwise_not", {{"X", x}}, x->dtype, x->shape,
                                             fmt::format("{} = {}(-1 - i64({}));", at("Y", index),
                                                         ir::to_string(x->dtype), at("X", index))));
  row.set(0, y);
  return {};
}

// Windows of a known size are constants.
Result<void> window(Row& row) {
  constexpr int64_t kMost = int64_t{1} << 24;
  PRUNERC_TRY(const std::vector<int64_t> sizes, row.known_ints(0));
  const auto type = static_cast<int32_t>(row.attr_int("output_datatype", 1));
  const std::optional<ir::DType> dtype = dtype_of(type);
  if (sizes.size() != 1 || sizes[0] < 1 || sizes[0] > kMost)
    return row.unsupported("a size like this");
  if (!dtype || !ir::is_float(*dtype)) return row.unsupported("the type " + type_name(type));
  const int64_t periods = row.attr_int("periodic", 1) != 0 ? sizes[0] : sizes[0] - 1;
  const std::string_view op = row.node().op;
  ir::Tensor tensor(*dtype, {sizes[0]});
  for (int64_t i = 0; i < sizes[0]; ++i) {
    const double angle =
        periods == 0 ? 0
                     : 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(periods);
    double value = 0.5 - 0.5 * std::cos(angle);
    if (op == "HammingWindow") value = 25.0 / 46 - 21.0 / 46 * std::cos(angle);
    if (op == "BlackmanWindow") value = 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle);
    tensor.set(i, value);
  }
  row.set(0, row.constant(tensor));
  return {};
}

const std::vector<RowEntry>& rows() {
  static const std::vector<RowEntry> all = [] {
    std::vector<RowEntry> list = {{"BitwiseNot", bitwise_not},
                                  {"HannWindow", window},
                                  {"HammingWindow", window},
                                  {"BlackmanWindow", window}};
    for (const MathRow& entry : table()) list.push_back({entry.op, math});
    return list;
  }();
  return all;
}

}  // namespace

std::span<const RowEntry> math_rows() { return rows(); }

}  // namespace prunerc::onnx
