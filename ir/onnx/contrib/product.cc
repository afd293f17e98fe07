// Products and convolutions of ONNX Runtime's own domain: turned, of packed weights, with an activation.
#include "ir/onnx/text/product.h"

#include "ir/onnx/rows/conv.h"
#include "ir/onnx/text/pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace prunerc::onnx {
namespace {

Result<void> fused_matmul(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  if (a->dtype != b->dtype || !ir::is_float(a->dtype))
    return row.unsupported("operands of these types");
  const Turned turned_a{row.attr_int("transA", 0) != 0, row.attr_int("transBatchA", 0) != 0};
  const Turned turned_b{row.attr_int("transB", 0) != 0, row.attr_int("transBatchB", 0) != 0};
  PRUNERC_TRY(const ProductText p, product_text_of(row, *a, *b, turned_a, turned_b));
  const double alpha = row.attr_float("alpha", 1);
  const std::string y_at = at("Y", p.target), acc = at("acc", p.target),
                    sum = fmt::format("{}[k] {} * {}", sum_of(a->dtype), p.left, p.right);
  const std::string body =
      alpha == 1 ? fmt::format("{} = {};", y_at, rounded(a->dtype, sum))
                 : fmt::format("let {} = {};\n  {} = {};", acc, sum, y_at,
                               rounded(a->dtype,
                                       fmt::format("{} * {}", number_text(a->dtype, alpha), acc)));
  PRUNERC_TRY(const Value* const y,
              row.call("matmul", {{"A", a}, {"B", b}}, a->dtype, p.shape, body));
  row.set(0, y);
  return {};
}

/// Weights of few bits, [N, blocks, bytes of a block], that stand for numbers [N, K]. A product reads them as [parts, part, N]
/// with a scale for each [part, N]: a part is a block, or what divides both blocks and K.
struct Packed {
  int64_t n = 0, k = 0, block = 0, bits = 0, blocks = 0, part = 0;

  int64_t per_byte() const { return 8 / bits; }
  int64_t parts() const { return k / part; }
  /// The block of part b, and the place of its number q there.
  std::string block_text() const { return part == block ? "b" : fmt::format("b/{}", block / part); }
  std::string place_text() const {
    return part == block ? "q" : fmt::format("(b%{}*{} + q)", block / part, part);
  }
};

Result<Packed> packed_of(Row& row, const Value& a, const Value& b) {
  Packed p;
  p.n = row.attr_int("N", 0);
  p.k = row.attr_int("K", 0);
  p.block = row.attr_int("block_size", 0);
  p.bits = row.attr_int("bits", 4);
  if (p.bits != 2 && p.bits != 4 && p.bits != 8)
    return row.unsupported(fmt::format("weights of {} bits", p.bits));
  if (p.block < 16 || p.block > (int64_t{1} << 31) || (p.block & (p.block - 1)) != 0)
    return row.unsupported(fmt::format("blocks of {} weights", p.block));
  if (row.attr_int("weight_prepacked", 0) != 0)
    return row.unsupported("weights that are packed for one machine");
  if (row.in(4) != nullptr) return row.unsupported("groups by an index (g_idx)");
  if (a.rank() < 1 || p.n < 1 || p.k < 1 || a.shape.back() != p.k)
    return row.unsupported("an operand that does not fit K and N");
  p.blocks = (p.k - 1) / p.block + 1;
  p.part = std::gcd(p.k, p.block);
  if (b.dtype != ir::DType::kU8 ||
      b.shape != std::vector<int64_t>{p.n, p.blocks, p.block / p.per_byte()})
    return row.unsupported("weights of another shape or type");
  return p;
}

// Number `place` of those that lie in a byte, the first in its lowest bits.
std::string unpacked(const Packed& p, const std::string& byte, const std::string& place) {
  if (p.bits == 8) return byte;
  const auto shifted = [&](int64_t by) {
    return by == 0 ? byte : fmt::format("{}/{}", byte, int64_t{1} << (by * p.bits));
  };
  std::string text = shifted(p.per_byte() - 1);
  for (int64_t i = p.per_byte() - 2; i >= 0; --i)
    text = fmt::format("if {}%{} == {} then {} else {}", place, p.per_byte(), i, shifted(i), text);
  return fmt::format("({}) % {}", text, int64_t{1} << p.bits);
}

// What is there once for each block (or for so many blocks as a byte holds): [N, count], or all in one row.
Result<std::string> of_block(Row& row, std::string_view name, const Value& value, const Packed& p,
                             int64_t per) {
  const int64_t count = (p.blocks - 1) / per + 1;
  const std::string place = per == 1 ? p.block_text() : fmt::format("{}/{}", p.block_text(), per);
  if (value.shape == std::vector<int64_t>{p.n, count}) return fmt::format("{}[j,{}]", name, place);
  if (value.shape == std::vector<int64_t>{p.n * count})
    return fmt::format("{}[j*{} + {}]", name, count, place);
  return row.unsupported("scales or zero points of another shape");
}

// The whole number, or the float of this type, that a weight is counted from.
Result<std::string> zero_of(Row& row, const Value* zero, const Packed& p, ir::DType dtype) {
  if (zero == nullptr) return fmt::format("{}", int64_t{1} << (p.bits - 1));
  if (zero->dtype == ir::DType::kU8) {
    PRUNERC_TRY(const std::string byte, of_block(row, "Z", *zero, p, p.per_byte()));
    return unpacked(p, fmt::format("i32({})", byte), p.block_text());
  }
  if (zero->dtype != dtype) return row.unsupported("zero points of another type");
  return of_block(row, "Z", *zero, p, 1);
}

/// The factor that stands for weights in the product, and its arguments, made once of constants.
struct Unpacked {
  std::vector<Arg> args;
  std::string text;
};

// The whole number of weight q of part b, column j.
std::string number_of(const Packed& p) {
  const std::string place = p.place_text();
  const std::string byte =
      fmt::format("i32(B[j,{},{}])", p.block_text(),
                  p.bits == 8 ? place : fmt::format("{}/{}", place, p.per_byte()));
  return unpacked(p, byte, place);
}

// Floats: a run computes nothing but the product.
Result<Unpacked> floats_of(Row& row, const Packed& p, const Value& b, const Value& scales,
                           const Value* zero, ir::DType dtype) {
  PRUNERC_TRY(const std::string scale, of_block(row, "s", scales, p, 1));
  PRUNERC_TRY(const std::string from, zero_of(row, zero, p, dtype));
  std::vector<Arg> args = {{"B", &b}, {"s", &scales}};
  if (zero != nullptr) args.push_back({"Z", zero});
  PRUNERC_TRY(const Value* const weights,
              row.call("float_weights", std::move(args), ir::DType::kF32, {p.parts(), p.part, p.n},
                       fmt::format("Y[b,q,j] = (f32({}) - f32({})) * f32({});", number_of(p), from,
                                   scale)));
  return Unpacked{{{"W", weights}}, "W[b,q,j]"};
}

// Whole numbers and a scale for each part: a run reads a byte for each weight.
Result<Unpacked> bytes_of(Row& row, const Packed& p, const Value& b, const Value& scales,
                          const Value* zero, ir::DType dtype) {
  PRUNERC_TRY(const std::string scale, of_block(row, "s", scales, p, 1));
  PRUNERC_TRY(const std::string from, zero_of(row, zero, p, dtype));
  // Differences of two numbers of 8 bits do not fit into 8.
  const bool is_centred = zero == nullptr || (zero->dtype == ir::DType::kU8 && p.bits < 8);
  std::vector<Arg> args = {{"B", &b}};
  if (is_centred && zero != nullptr) args.push_back({"Z", zero});
  const ir::DType whole = is_centred ? ir::DType::kI8 : ir::DType::kU8;
  const std::vector<int64_t> by_part = {p.parts(), p.n};
  Unpacked out;
  PRUNERC_TRY(const Value* const weights,
              row.call("unpacked_weights", std::move(args), whole, {p.parts(), p.part, p.n},
                       fmt::format("Y[b,q,j] = {}({}{});", ir::to_string(whole), number_of(p),
                                   is_centred ? fmt::format(" - ({})", from) : "")));
  PRUNERC_TRY(const Value* const factors,
              row.call("scales_of_parts", {{"s", &scales}}, ir::DType::kF32, by_part,
                       fmt::format("Y[b,j] = f32({});", scale)));
  out.args = {{"W", weights}, {"S", factors}};
  out.text = "f32(W[b,q,j])";
  if (!is_centred) {
    PRUNERC_TRY(const Value* const zeros,
                row.call("zeros_of_parts", {{"Z", zero}}, ir::DType::kF32, by_part,
                         fmt::format("Y[b,j] = f32({});", from)));
    out.args.push_back({"Z", zeros});
    out.text = fmt::format("({} - Z[b,j])", out.text);
  }
  out.text = fmt::format("({} * S[b,j])", out.text);
  return out;
}

/// With more rows a product takes longer to make floats of bytes again and again than to read floats.
constexpr int64_t kMaxRowsOfBytes = 16;
/// Of shorter parts the scales are as long as the floats would be.
constexpr int64_t kMinPart = 8;

Result<void> matmul_n_bits(Row& row) {
  PRUNERC_TRY(const Value* const a, row.need(0));
  PRUNERC_TRY(const Value* const b, row.need(1));
  PRUNERC_TRY(const Value* const scales, row.need(2));
  const Value* const bias = row.in(5);
  if (!ir::is_float(a->dtype) || a->dtype == ir::DType::kF64 || scales->dtype != a->dtype)
    return row.unsupported("operands of these types");
  PRUNERC_TRY(const Packed p, packed_of(row, *a, *b));
  const bool reads_bytes = a->num_elements() / p.k <= kMaxRowsOfBytes && p.part >= kMinPart;
  PRUNERC_TRY(Unpacked weights,
              (reads_bytes ? bytes_of : floats_of)(row, p, *b, *scales, row.in(3), a->dtype));
  std::vector<Arg> args = std::move(weights.args);
  args.insert(args.begin(), Arg{"A", a});
  std::vector<std::string> target = index_list(a->rank() - 1), left = target;
  target.push_back("j");
  left.push_back(fmt::format("b*{} + q", p.part));
  std::string result = at("acc", target);
  if (bias != nullptr) {
    if (bias->shape != std::vector<int64_t>{p.n} || bias->dtype != a->dtype)
      return row.unsupported("a bias of another shape or type");
    args.push_back({"c", bias});
    result += " + c[j]";
  }
  const std::string body =
      fmt::format("let {} = {}[b,q] {} * {};\n  {} = {};", at("acc", target), sum_of(a->dtype),
                  at("A", left), weights.text, at("Y", target), rounded(a->dtype, result));
  std::vector<int64_t> shape = a->shape;
  shape.back() = p.n;
  PRUNERC_TRY(const Value* const y, row.call(fmt::format("matmul_{}bits", p.bits), std::move(args),
                                             a->dtype, shape, body));
  row.set(0, y);
  return {};
}

/// A table of few bits, [rows, K], from which rows are taken. Bytes of u8 hold several numbers, other types are unpacked.
struct Table {
  Packed packed;
  int64_t rows = 0, per = 1;  ///< numbers of a byte
  bool is_packed = false;
};

Result<Table> table_of(Row& row, const Value& x, const Value& scales, const Value* zero) {
  Table t;
  t.packed.bits = row.attr_int("bits", 4);
  t.packed.block = row.attr_int("block_size", 128);
  t.is_packed = x.stands_for == 0;
  const int64_t bits = t.packed.bits, block = t.packed.block;
  if (bits != 4 && !(t.is_packed && (bits == 2 || bits == 8)))
    return row.unsupported(fmt::format("weights of {} bits", bits));
  if (block < 16 || block > (int64_t{1} << 31) || (block & (block - 1)) != 0)
    return row.unsupported(fmt::format("blocks of {} weights", block));
  if (x.rank() != 2 || ir::byte_size(x.dtype) != 1 || (t.is_packed && x.dtype != ir::DType::kU8) ||
      x.num_elements() == 0 || axis_of(row.attr_int("gather_axis", 0), 2) != 0 ||
      axis_of(row.attr_int("quantize_axis", 1), 2) != 1)
    return row.unsupported("a table of this shape or type, or these axes");
  if (t.is_packed) t.per = t.packed.per_byte();
  t.rows = x.shape[0];
  t.packed.k = x.shape[1] * t.per;
  t.packed.blocks = (t.packed.k - 1) / block + 1;
  if (scales.shape != std::vector<int64_t>{t.rows, t.packed.blocks} ||
      (zero != nullptr &&
       (zero->shape != std::vector<int64_t>{t.rows, (t.packed.blocks - 1) / t.per + 1} ||
        zero->dtype != x.dtype || zero->stands_for != x.stands_for)))
    return row.unsupported("scales or zero points of another shape");
  return t;
}

Result<void> gather_block_quantized(Row& row) {
  PRUNERC_TRY(const Value* const x, row.need(0));
  PRUNERC_TRY(const Value* const ids, row.need(1));
  PRUNERC_TRY(const Value* const scales, row.need(2));
  const Value* const zero = row.in(3);
  PRUNERC_TRY(const Table t, table_of(row, *x, *scales, zero));
  if (!ir::is_int(ids->dtype) || ids->stands_for != 0 || !ir::is_float(scales->dtype) ||
      scales->dtype == ir::DType::kF64)
    return row.unsupported("operands of these types");
  std::vector<std::string> target = index_list(ids->rank() + 1);
  const std::string id = at("I", index_list(ids->rank())), element = target.back(),
                    block = fmt::format("{}/{}", element, t.packed.block),
                    line = fmt::format("(if {0} < 0 then {0} + {1} else {0})", id, t.rows);
  // The number at a place of this line.
  const auto number = [&](std::string_view name, const std::string& place) {
    const std::string where = t.per == 1 ? place : fmt::format("{}/{}", place, t.per);
    const std::string byte = fmt::format("i32({}[{},{}] or 0)", name, line, where);
    return t.is_packed ? fmt::format("({})", unpacked(t.packed, byte, place)) : byte;
  };
  std::vector<Arg> args = {{"B", x}, {"I", ids}, {"s", scales}};
  std::string from = t.is_packed ? std::to_string(int64_t{1} << (t.packed.bits - 1)) : "0";
  if (zero != nullptr) {
    args.push_back({"Z", zero});
    from = number("Z", block);
  }
  const std::string value =
      fmt::format("f32({} - {}) * f32(s[{},{}] or 0)", number("B", element), from, line, block);
  std::vector<int64_t> shape = ids->shape;
  shape.push_back(t.packed.k);
  PRUNERC_TRY(const Value* const y,
              row.call("gather_rows", std::move(args), scales->dtype, shape,
                       fmt::format("{} = {};", at("Y", target), rounded(scales->dtype, value))));
  row.set(0, y);
  return {};
}

// The text of an activation, of $; `by` are its parameters.
Result<std::string> activation_text(Row& row, std::string_view name,
                                    const std::vector<double>& by) {
  const std::size_t wanted = name == "LeakyRelu"                       ? 1
                             : name == "Clip" || name == "HardSigmoid" ? 2
                                                                       : 0;
  if (by.size() < wanted)
    return row.unsupported(fmt::format("{} with {} parameters", name, by.size()));
  if (std::any_of(by.begin(), by.end(), [](double value) { return std::isnan(value); }))
    return row.unsupported("an activation parameter that is not a number");
  if (name == "Relu") return std::string(kReluText);
  if (name == "LeakyRelu") return leaky_relu_text(by[0]);
  if (name == "HardSigmoid") return hard_sigmoid_text(by[0], by[1]);
  if (name == "Clip") {
    return fmt::format("min({}, max({}, $))", number_text(ir::DType::kF32, by[1]),
                       number_text(ir::DType::kF32, by[0]));
  }
  return std::string(unary_text(name));
}

Result<void> fused_conv(Row& row) {
  if (!row.has("activation")) return conv_with(row, row.in(3), {});
  PRUNERC_TRY(const std::string name,
              row.attr_choice("activation", {"Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip",
                                             "HardSigmoid", "HardSwish"}));
  PRUNERC_TRY(const std::string text,
              activation_text(row, name, row.attr_floats("activation_params")));
  return conv_with(row, row.in(3), text);
}

Result<void> fused_gemm(Row& row) {
  if (!row.has("activation")) return gemm_with(row, {});
  PRUNERC_TRY(const std::string name, row.attr_choice("activation", {"Relu", "Tanh", "Sigmoid",
                                                                     "LeakyRelu", "HardSigmoid"}));
  std::vector<double> by;
  for (const std::string_view parameter : {"activation_alpha", "activation_beta"}) {
    if (!row.has(parameter)) break;
    by.push_back(row.attr_float(parameter, 0));
  }
  PRUNERC_TRY(const std::string text, activation_text(row, name, by));
  PRUNERC_TRY(const Value* const a, row.need(0));
  if (!ir::is_float(a->dtype)) return row.unsupported("operands of this type");
  return gemm_with(row, text);
}

constexpr RowEntry kRows[] = {{"com.microsoft.FusedMatMul", fused_matmul},
                              {"com.microsoft.MatMulNBits", matmul_n_bits},
                              {"com.microsoft.GatherBlockQuantized", gather_block_quantized},
                              {"com.microsoft.FusedConv", fused_conv},
                              {"com.microsoft.FusedGemm", fused_gemm}};

}  // namespace

std::span<const RowEntry> contrib_product_rows() { return kRows; }

}  // namespace prunerc::onnx
