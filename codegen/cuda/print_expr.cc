// Values and indices as C++ text.
#include "codegen/cuda/printer.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/analysis/vectorization.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/int_math.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace prunerc::codegen {

using namespace ir;

std::string within(const Text& t, Prec at_least) {
  return t.prec < at_least ? "(" + t.text + ")" : t.text;
}

std::string_view memory_type(DType t) {
  switch (t) {
    case DType::kF64: return "double";
    case DType::kF32: return "float";
    case DType::kF16: return "pr_f16";
    case DType::kBF16: return "pr_bf16";
    case DType::kI64: return "pr_i64";
    case DType::kI32: return "int";
    case DType::kI8: return "signed char";
    case DType::kU8: return "unsigned char";
    case DType::kBool: return "bool";
  }
  PRUNERC_UNREACHABLE("dtype");
}

std::string_view register_type(DType t) {
  switch (t) {
    case DType::kF64: return "double";
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16: return "float";
    case DType::kI64: return "pr_i64";
    case DType::kBool: return "bool";
    default: return "int";
  }
}

namespace {

std::string function(std::string_view name, std::initializer_list<std::string> args) {
  return fmt::format("{}({})", name, fmt::join(args, ", "));
}

std::string int_text(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
  if (value > std::numeric_limits<int32_t>::max() || value <= std::numeric_limits<int32_t>::min()) {
    return fmt::format("{}ll", value);
  }
  return std::to_string(value);
}

Text integer(int64_t value) { return {int_text(value), value < 0 ? Prec::kUnary : Prec::kAtom}; }

// The shortest text that reads back to the same value.
Text floating(double value, DType dtype) {
  const bool is_double = dtype == DType::kF64;
  if (std::isnan(value))
    return {is_double ? "pr_f64_from_bits(0x7ff8000000000000ull)"
                      : "pr_f32_from_bits(0x7fc00000u)"};
  if (std::isinf(value)) {
    if (is_double)
      return {value > 0 ? "pr_f64_from_bits(0x7ff0000000000000ull)"
                        : "pr_f64_from_bits(0xfff0000000000000ull)"};
    return {value > 0 ? "pr_f32_from_bits(0x7f800000u)" : "pr_f32_from_bits(0xff800000u)"};
  }
  std::string text =
      is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!is_double) text += "f";
  return {text, std::signbit(value) ? Prec::kUnary : Prec::kAtom};
}

Text infix(const Text& a, std::string_view op, const Text& b, Prec prec) {
  const Prec right = static_cast<Prec>(static_cast<int>(prec) + 1);
  return {fmt::format("{} {} {}", within(a, prec), op, within(b, right)), prec};
}

}  // namespace

// Where nothing jumps, 2 ulp of a quotient stay as small as what the functions are off by. A test
// or a whole number could make more of them.
bool KernelPrinter::is_continuous(const Program& program) {
  bool out = true;
  const auto jumps = [](Expr e) {
    const Call* call = e.as<Call>();
    if (call != nullptr) {
      return call->intrinsic == Intrinsic::kFloor || call->intrinsic == Intrinsic::kCeil ||
             call->intrinsic == Intrinsic::kRound;
    }
    const Cast* cast = e.as<Cast>();
    if (cast != nullptr) return is_float(cast->operand.dtype()) && !is_float(cast->dtype);
    const BinaryNode* node = as_binary(e);
    return node != nullptr && is_bool(e.dtype()) && is_float(node->lhs.dtype());
  };
  walk(
      program.root(), [&](Stmt) { return out; },
      [&](Expr top) {
        walk(top, [&](Expr e) {
          out = out && !jumps(e);
          return out;
        });
      });
  return out;
}

bool KernelPrinter::fits_int(Expr e) const {
  bool fits = true;
  walk(e, [&](Expr x) {
    if (x.dtype() != DType::kI64 || x.as<Load>() != nullptr || x.as<Cast>() != nullptr) {
      fits = fits && x.dtype() == DType::kBool;
      return fits;
    }
    const Interval range = interval_of(x, ranges_);
    fits = fits && range.lo >= std::numeric_limits<int32_t>::min() &&
           range.hi <= std::numeric_limits<int32_t>::max();
    return fits;
  });
  return fits;
}

// Does a part of e that is printed in int leave int?
bool KernelPrinter::leaves_int(Expr e) const {
  bool leaves = false;
  walk(e, [&](Expr x) {
    if (x.as<Load>() != nullptr || x.as<Cast>() != nullptr) return false;
    if (x.dtype() == DType::kI64 && !has_load(x)) leaves = leaves || !fits_int(x);
    return !leaves;
  });
  return leaves;
}

Text KernelPrinter::value(Expr e) {
  const bool is_index =
      e.as<Var>() != nullptr || e.as<IntImm>() != nullptr || as_binary(e) != nullptr;
  if (is_index && e.dtype() == DType::kI64 && fits_int(e)) return index_value(e);
  if (const auto it = loaded_.find(e.node()); it != loaded_.end()) return {it->second};
  return visit(
      e,
      Overload{
          [&](const Var& n) -> Text { return {vars_.at(n.id)}; },
          [&](const TileParam&) -> Text {
            failed_ =
                prunerc::error(Diag::kUnsupported, "compiling a program with tile parameters");
            return {"0"};
          },
          [&](const IntImm& n) -> Text {
            if (n.dtype == DType::kBool) return {n.value != 0 ? "true" : "false"};
            return integer(n.value);
          },
          [&](const FloatImm& n) -> Text { return floating(n.value, n.dtype); },
          [&](const Not& n) -> Text {
            return {"!" + within(value(n.operand), Prec::kUnary), Prec::kUnary};
          },
          [&](const Select& n) -> Text {
            return {fmt::format("{} ? {} : {}", within(value(n.condition), Prec::kOr),
                                within(value(n.on_true), Prec::kOr),
                                within(value(n.on_false), Prec::kOr)),
                    Prec::kSelect};
          },
          [&](const Cast& n) -> Text { return cast(n.operand.dtype(), n.dtype, rounded(n)); },
          [&](const Load& n) -> Text { return load(n); },
          [&](const Call& n) -> Text { return call(n); },
          [&](const Eq& n) -> Text { return compare(n); },
          [&](const Ne& n) -> Text { return compare(n); },
          [&](const Lt& n) -> Text { return compare(n); },
          [&](const Le& n) -> Text { return compare(n); },
          [&](const And& n) -> Text { return infix(value(n.lhs), "&&", value(n.rhs), Prec::kAnd); },
          [&](const Or& n) -> Text { return infix(value(n.lhs), "||", value(n.rhs), Prec::kOr); },
          [&](const FloorDiv& n) -> Text { return division(n); },
          [&](const FloorMod& n) -> Text { return division(n); },
          [&](const auto& n) -> Text {
            return arithmetic(n.kind, n.dtype, value(n.lhs), value(n.rhs));
          },
      });
}

// Index arithmetic in int; only what fits_int has seen comes here, or all of it as 64-bit numbers.
Text KernelPrinter::index_value(Expr e) {
  if (const Var* v = e.as<Var>()) {
    if (wide_index_) return {"(pr_i64)" + vars_.at(v->id), Prec::kUnary};
    return {vars_.at(v->id)};
  }
  if (const IntImm* n = e.as<IntImm>(); n != nullptr && n->dtype == DType::kI64) {
    return integer(n->value);
  }
  const BinaryNode* node = as_binary(e);
  if (node == nullptr || e.dtype() != DType::kI64) {
    const Text v = value(e);
    const bool may_be_int = e.as<Select>() != nullptr || e.as<Call>() != nullptr;
    return wide_index_ && may_be_int ? cast(DType::kI32, DType::kI64, v) : v;
  }
  switch (e.kind()) {
    case ExprKind::kAdd: {
      const IntImm* right = node->rhs.as<IntImm>();
      if (right != nullptr && right->value < 0 && right->value > -(int64_t{1} << 31)) {
        return infix(index_value(node->lhs), "-", integer(-right->value), Prec::kAdd);
      }
      return infix(index_value(node->lhs), "+", index_value(node->rhs), Prec::kAdd);
    }
    case ExprKind::kSub:
      return infix(index_value(node->lhs), "-", index_value(node->rhs), Prec::kAdd);
    case ExprKind::kMul:
      return infix(index_value(node->lhs), "*", index_value(node->rhs), Prec::kMul);
    case ExprKind::kMin:
    case ExprKind::kMax:
      // Typed where one side may be pr_i64 and the other int.
      return {function(fmt::format("{}{}", e.kind() == ExprKind::kMin ? "pr_min" : "pr_max",
                                   wide_index_ || !fits_int(e) ? "<pr_i64>" : ""),
                       {index_value(node->lhs).text, index_value(node->rhs).text})};
    case ExprKind::kFloorDiv:
    case ExprKind::kFloorMod: return division(*node);
    default: return value(e);
  }
}

// C++ truncates; where neither side is negative that is the same.
Text KernelPrinter::division(const BinaryNode& node) {
  const bool is_div = node.kind == ExprKind::kFloorDiv;
  const bool is_long = node.dtype == DType::kI64;
  const bool is_index = is_long && (wide_index_ || fits_int(&node));
  const Text a = is_index ? index_value(node.lhs) : value(node.lhs);
  const Text b = is_index ? index_value(node.rhs) : value(node.rhs);
  if (is_long && interval_of(node.lhs, ranges_).lo >= 0 && interval_of(node.rhs, ranges_).lo > 0) {
    return infix(a, is_div ? "/" : "%", b, Prec::kMul);
  }
  const std::string_view type = is_index && !wide_index_ ? "int" : register_type(node.dtype);
  const Text r{function(fmt::format("{}<{}>", is_div ? "pr_floordiv" : "pr_floormod", type),
                        {a.text, b.text})};
  // Of the smallest number and -1 the quotient wraps.
  return is_long ? r : cast(DType::kI32, node.dtype, r);
}

Text KernelPrinter::compare(const BinaryNode& node) {
  const Text a = value(node.lhs);
  const Text b = value(node.rhs);
  switch (node.kind) {
    case ExprKind::kEq: return infix(a, "==", b, Prec::kEqual);
    case ExprKind::kNe: return infix(a, "!=", b, Prec::kEqual);
    case ExprKind::kLt: return infix(a, "<", b, Prec::kLess);
    default: return infix(a, "<=", b, Prec::kLess);
  }
}

Text KernelPrinter::arithmetic(ExprKind kind, DType dtype, const Text& a, const Text& b) {
  if (kind == ExprKind::kMin || kind == ExprKind::kMax) {
    const char* plain = kind == ExprKind::kMin ? "pr_min" : "pr_max";
    // Both lanes of an exchange must come to the same, whatever is no number. Else typed, so that an index in int meets
    // one in pr_i64.
    const std::string name = exchanges_ && is_float(dtype)
                                 ? fmt::format("{}_nan", plain)
                                 : fmt::format("{}<{}>", plain, register_type(dtype));
    return {function(name, {a.text, b.text})};
  }
  const bool is_product = kind == ExprKind::kMul || kind == ExprKind::kDiv;
  const char* op = kind == ExprKind::kAdd   ? "+"
                   : kind == ExprKind::kSub ? "-"
                   : kind == ExprKind::kMul ? "*"
                                            : "/";
  const Prec prec = is_product ? Prec::kMul : Prec::kAdd;
  if (kind == ExprKind::kDiv && dtype == DType::kF32 && is_continuous_) {
    return {function("pr_div_approx", {a.text, b.text})};
  }
  switch (dtype) {
    case DType::kF64:
    case DType::kF32: return infix(a, op, b, prec);
    case DType::kF16:
    case DType::kBF16: return cast(DType::kF32, dtype, infix(a, op, b, prec));
    default: break;
  }
  // Unsigned arithmetic wraps, as the language says; signed overflow would be undefined.
  const std::string_view type = dtype == DType::kI64 ? "pr_u64" : "unsigned";
  const Text ua{fmt::format("({}){}", type, within(a, Prec::kUnary)), Prec::kUnary};
  const Text ub{fmt::format("({}){}", type, within(b, Prec::kUnary)), Prec::kUnary};
  return {fmt::format("({})({})", memory_type(dtype), infix(ua, op, ub, prec).text), Prec::kUnary};
}

Text KernelPrinter::cast(DType from, DType to, const Text& v) {
  if (from == to) return v;
  if (to == DType::kF16 || to == DType::kBF16) {
    // Rounded to an f32 first, an f64 would be rounded twice.
    std::string wide =
        from == DType::kF64 ? "pr_odd(" + v.text + ")" : cast(from, DType::kF32, v).text;
    return {"pr_to_f32(" + to_memory(to, {wide}).text + ")", Prec::kAtom, std::move(wide)};
  }
  const bool narrow = from == DType::kF16 || from == DType::kBF16;
  if (to == DType::kF32 && narrow) return v;  // held as one
  if (is_bool(to)) return {within(v, Prec::kLess) + " != 0", Prec::kEqual};
  if (is_float(from) && is_int(to)) {
    return {fmt::format("pr_f2i<{}>({})", memory_type(to), v.text)};
  }
  return {fmt::format("({}){}", memory_type(to), within(v, Prec::kUnary)), Prec::kUnary};
}

// What a cast rounds: of an exponential less than all bits.
Text KernelPrinter::rounded(const Cast& node) {
  const Call* power = node.operand.as<Call>();
  const bool narrow = node.dtype == DType::kF16 || node.dtype == DType::kBF16;
  if (!narrow || power == nullptr || power->intrinsic != Intrinsic::kExp ||
      power->dtype != DType::kF32) {
    return value(node.operand);
  }
  return {fmt::format("pr_exp_{}({})", to_string(node.dtype), value(power->args[0]).text)};
}

Text KernelPrinter::call(const Call& node) {
  std::vector<std::string> args;
  for (Expr arg : node.args) args.push_back(value(arg).text);
  const bool narrow = node.dtype == DType::kF16 || node.dtype == DType::kBF16;
  if (narrow && node.intrinsic == Intrinsic::kFma) {
    return {fmt::format("pr_fma_{}({})", to_string(node.dtype), fmt::join(args, ", "))};
  }
  const Text r{fmt::format("pr_{}({})", to_string(node.intrinsic), fmt::join(args, ", "))};
  if (narrow) return cast(DType::kF32, node.dtype, r);
  const bool small = node.dtype == DType::kI8 || node.dtype == DType::kU8;
  return small ? cast(DType::kI32, node.dtype, r) : r;
}

Text KernelPrinter::to_register(DType dtype, const Text& memory) {
  const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
  return narrow ? Text{"pr_to_f32(" + memory.text + ")"} : memory;
}

Text KernelPrinter::to_memory(DType dtype, const Text& reg) {
  const std::string& wide = reg.unrounded.empty() ? reg.text : reg.unrounded;
  if (dtype == DType::kF16) return {"pr_to_f16(" + wide + ")"};
  if (dtype == DType::kBF16) return {"pr_to_bf16(" + wide + ")"};
  return reg;
}

Text KernelPrinter::load(const Load& node) {
  const Text memory{element(node.buffer, node.indices)};
  const bool is_value =
      buffer(node.buffer).scope == Scope::kLocal && fragments_.count(node.buffer) == 0;
  return is_value ? memory : to_register(node.dtype, memory);
}

// element = element + a * b is one fused operation, here and on the CPU; of registers element * f + a * b, too. Others round
// as written. Maxima of registers over a fragment's elements take one instruction, for which no order counts.
std::optional<Text> KernelPrinter::contracted(const Store& store) {
  const std::optional<Accumulation> sum = accumulation(store);
  const DType dtype = store.value.dtype();
  if (dtype != DType::kF32 && dtype != DType::kF64) return std::nullopt;
  const bool is_local = buffer(store.buffer).scope == Scope::kLocal;
  if (!sum) return is_local ? rescaled(store) : std::nullopt;
  if (register_.defined() && is_local && fragments_.count(store.buffer) == 0 &&
      dtype == DType::kF32 && (sum->kind == ExprKind::kMax || sum->kind == ExprKind::kMin)) {
    const char* name = sum->kind == ExprKind::kMax ? "pr_max_nan" : "pr_min_nan";
    return Text{function(name, {element(store.buffer, store.indices), value(sum->term).text})};
  }
  if (sum->kind != ExprKind::kAdd) return std::nullopt;
  const Mul* product = sum->term.as<Mul>();
  if (product == nullptr) return std::nullopt;
  const BinaryNode* node = as_binary(store.value);
  Expr rest = sum->term.is(node->rhs) ? node->lhs : node->rhs;
  return Text{
      function("pr_fma", {value(product->lhs).text, value(product->rhs).text, value(rest).text})};
}

// acc = acc*f + a*b
std::optional<Text> KernelPrinter::rescaled(const Store& store) {
  const Add* sum = store.value.as<Add>();
  const Mul* scaled = sum == nullptr ? nullptr : sum->lhs.as<Mul>();
  const Mul* product = sum == nullptr ? nullptr : sum->rhs.as<Mul>();
  const Load* own = scaled == nullptr ? nullptr : scaled->lhs.as<Load>();
  if (product == nullptr || own == nullptr || own->buffer != store.buffer ||
      !structural_equal(own->indices, store.indices)) {
    return std::nullopt;
  }
  return Text{function("pr_fma",
                       {value(product->lhs).text, value(product->rhs).text, value(sum->lhs).text})};
}

bool KernelPrinter::is_wide(BufferId id) const {
  int64_t elems = 1;
  for (Expr extent : buffer(id).shape) elems *= extent.as<IntImm>()->value;
  return elems > std::numeric_limits<int32_t>::max();
}

Expr KernelPrinter::flat(BufferId id, std::span<const Expr> indices) {
  if (fragments_.count(id) != 0) return fragment_flat(id, indices);
  if (const auto it = storage_.swizzles.find(id); it != storage_.swizzles.end()) {
    return flat_in_panels(id, indices, it->second);
  }
  const Buffer& target = buffer(id);
  Expr sum = b_.int_imm(0);
  int64_t stride = 1;
  const std::size_t first = num_lane_dims(id);
  for (std::size_t d = indices.size(); d-- > first;) {
    sum = b_.add(sum, b_.mul(indices[d], b_.int_imm(stride)));
    stride *= target.shape[d].as<IntImm>()->value;
  }
  return simplify(b_, sum, ranges_);
}

std::string KernelPrinter::unswizzled_index_text(BufferId id, Expr flat_index) {
  const bool saved =
      std::exchange(wide_index_, wide_index_ || is_wide(id) || leaves_int(flat_index));
  const std::string text = index_value(flat_index).text;
  wide_index_ = saved;
  return text;
}

namespace {

// Bits that the value of a term may have; all if there is no telling.
uint64_t bits_of(const Term& term, const VarRanges& ranges) {
  const Interval range = interval_of(Linear::of(term), ranges);
  if (range.lo < 0 || range.hi > std::numeric_limits<int32_t>::max()) return ~uint64_t{0};
  const uint64_t step = static_cast<uint64_t>(term.coef & -term.coef);
  return (std::bit_ceil(static_cast<uint64_t>(range.hi) + 1) - 1) & ~(step - 1);
}

}  // namespace

bool depends_only_on(const Term& term, const std::set<VarId>& vars) {
  bool only = true;
  for (Expr atom : term.factors()) {
    walk(atom, [&](Expr e) {
      const Var* var = e.as<Var>();
      only = only && (var == nullptr || vars.count(var->id) != 0);
      return only;
    });
  }
  return only;
}

// Takes out of an index what loops add to it that are whole pieces of one row, in bits that nothing
// else has: the swizzle of such a sum is that of the rest, XORed with them. 0 if a carry is possible.
Linear KernelPrinter::take_pieces(Linear* index, int64_t row, int64_t piece) const {
  const uint64_t of_row = static_cast<uint64_t>(row) - 1;
  const uint64_t of_pieces = static_cast<uint64_t>(row - piece);
  uint64_t seen = static_cast<uint64_t>(index->constant);
  Linear rest = Linear::of(index->constant), pieces;
  for (const Term& term : index->terms) {
    const uint64_t bits = term.coef % row == 0 ? 0 : bits_of(term, ranges_);
    if ((bits & seen & of_row) != 0) return {};
    seen |= bits;
    const bool moves =
        bits != 0 && (bits & ~of_pieces) == 0 && !depends_only_on(term, thread_vars_);
    (moves ? pieces : rest).terms.push_back(term);
  }
  *index = std::move(rest);
  return pieces;
}

// A swizzle repeats itself: what moves by whole periods stands outside, so that the rest is one value
// for all copies of unrolled loops and all stages. So is that of all pieces of a row.
KernelPrinter::SwizzledIndex KernelPrinter::swizzled_index(BufferId id, Expr flat_index) {
  const int64_t bytes = storage_.swizzles.at(id), elem_bytes = byte_size(buffer(id).dtype);
  const int64_t period = bytes / kSwizzlePiece * kSwizzleLine / elem_bytes;
  const Linear all = to_linear(b_, flat_index, ranges_);
  Linear inside = Linear::of(floor_mod(all.constant, period));
  Linear outside = Linear::of(all.constant - inside.constant);
  for (const Term& term : all.terms) {
    (term.coef % period == 0 ? outside : inside).terms.push_back(term);
  }
  if (all.overflow || interval_of(inside, ranges_).lo < 0) return {all, {}, {}};
  Linear pieces = take_pieces(&inside, bytes / elem_bytes, kSwizzlePiece / elem_bytes);
  return {std::move(inside), std::move(pieces), std::move(outside)};
}

std::string KernelPrinter::swizzled_index_text(BufferId id, const SwizzledIndex& index) {
  const auto text_of = [&](const Linear& part) {
    return unswizzled_index_text(id, to_expr(b_, part));
  };
  std::string text = fmt::format("pr_swizzled<{}, {}>({})", storage_.swizzles.at(id),
                                 byte_size(buffer(id).dtype), text_of(index.inside));
  if (!index.pieces.is_constant(0)) text = fmt::format("({} ^ ({}))", text, text_of(index.pieces));
  if (index.outside.is_constant(0)) return text;
  return text + " + " + text_of(index.outside);
}

std::string KernelPrinter::index_text(BufferId id, Expr flat_index) {
  if (storage_.swizzles.count(id) == 0) return unswizzled_index_text(id, flat_index);
  return swizzled_index_text(id, swizzled_index(id, flat_index));
}

// Rows as wide as the swizzle follow each other, panel by panel: what TMA and wgmma take, and what
// makes eight rows meet no bank twice however long the tile's rows are.
Expr KernelPrinter::flat_in_panels(BufferId id, std::span<const Expr> indices, int64_t bytes) {
  const Buffer& target = buffer(id);
  const auto extent = [&](std::size_t d) { return target.shape[d].as<IntImm>()->value; };
  const std::size_t rank = indices.size();
  const int64_t width = bytes / byte_size(target.dtype);
  Expr tile = b_.int_imm(0);
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    tile = b_.add(b_.mul(tile, b_.int_imm(extent(d))), indices[d]);
  }
  Expr panel = b_.add(b_.mul(tile, b_.int_imm(extent(rank - 1) / width)),
                      b_.floordiv(indices[rank - 1], b_.int_imm(width)));
  Expr row = b_.add(b_.mul(panel, b_.int_imm(extent(rank - 2))), indices[rank - 2]);
  Expr at =
      b_.add(b_.mul(row, b_.int_imm(width)), b_.floormod(indices[rank - 1], b_.int_imm(width)));
  return simplify(b_, at, ranges_);
}

std::string KernelPrinter::element(BufferId id, std::span<const Expr> indices) {
  return fmt::format("{}[{}]", buffers_.at(id), index_text(id, flat(id, indices)));
}

std::string KernelPrinter::address(BufferId id, Expr flat_index) {
  const IntImm* constant = flat_index.as<IntImm>();
  if (constant != nullptr && constant->value == 0) return buffers_.at(id);
  return fmt::format("{} + {}", buffers_.at(id), index_text(id, flat_index));
}

std::string KernelPrinter::unswizzled_address(BufferId id, Expr flat_index) {
  const IntImm* constant = flat_index.as<IntImm>();
  if (constant != nullptr && constant->value == 0) return buffers_.at(id);
  return fmt::format("{} + {}", buffers_.at(id), unswizzled_index_text(id, flat_index));
}

}  // namespace prunerc::codegen
