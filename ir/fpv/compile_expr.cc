#include "ir/fpv/compiler.h"
#include "ir/int_math.h"
#include "ir/support/hash.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

FpOp binary_op(ExprKind kind, bool floats) {
  switch (kind) {
    case ExprKind::kAdd: return floats ? FpOp::kAddF : FpOp::kAddI;
    case ExprKind::kSub: return floats ? FpOp::kSubF : FpOp::kSubI;
    case ExprKind::kMul: return floats ? FpOp::kMulF : FpOp::kMulI;
    case ExprKind::kDiv: return FpOp::kDivF;
    case ExprKind::kFloorDiv: return FpOp::kFloorDiv;
    case ExprKind::kFloorMod: return FpOp::kFloorMod;
    case ExprKind::kMin: return floats ? FpOp::kMinF : FpOp::kMinI;
    case ExprKind::kMax: return floats ? FpOp::kMaxF : FpOp::kMaxI;
    case ExprKind::kEq: return floats ? FpOp::kEqF : FpOp::kEqI;
    case ExprKind::kNe: return floats ? FpOp::kNeF : FpOp::kNeI;
    case ExprKind::kLt: return floats ? FpOp::kLtF : FpOp::kLtI;
    case ExprKind::kLe: return floats ? FpOp::kLeF : FpOp::kLeI;
    case ExprKind::kAnd: return FpOp::kAnd;
    case ExprKind::kOr: return FpOp::kOr;
    case ExprKind::kVar:
    case ExprKind::kTileParam:
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kNot:
    case ExprKind::kSelect:
    case ExprKind::kCast:
    case ExprKind::kLoad:
    case ExprKind::kCall: break;
  }
  PRUNERC_UNREACHABLE("binary kind");
}

// Every value of `from` is one of `to`.
bool widens(DType from, DType to) {
  if (from == to || to == DType::kF64) return true;
  return to == DType::kF32 && from != DType::kF64;
}

void add_term(std::vector<FpAffine::Term>* terms, int32_t of, int64_t coefficient) {
  const auto at =
      std::lower_bound(terms->begin(), terms->end(), of,
                       [](const FpAffine::Term& term, int32_t wanted) { return term.of < wanted; });
  if (at == terms->end() || at->of != of) {
    if (coefficient != 0) terms->insert(at, {of, coefficient});
    return;
  }
  at->coefficient = wrapping_add(at->coefficient, coefficient);
  if (at->coefficient == 0) terms->erase(at);
}

}  // namespace

// Equal expressions are one node, so that differences of addresses cancel.
int32_t FpCompiler::put(const FpExpr& node, int depth) {
  code_.depth = std::max(code_.depth, depth + 1);
  uint64_t h = hash_combine(static_cast<uint64_t>(node.op), static_cast<uint64_t>(node.dtype));
  h = hash_combine(h, static_cast<uint64_t>(node.intrinsic));
  for (int64_t part : {int64_t{node.a}, int64_t{node.b}, int64_t{node.c}, node.value}) {
    h = hash_combine(h, static_cast<uint64_t>(part));
  }
  const auto [first, last] = known_.equal_range(h);
  for (auto at = first; at != last; ++at) {
    if (code_.exprs[static_cast<std::size_t>(at->second)] == node) return at->second;
  }
  code_.exprs.push_back(node);
  const auto id = static_cast<int32_t>(code_.exprs.size()) - 1;
  known_.emplace(h, id);
  return id;
}

int32_t FpCompiler::expr(Expr e, int depth) {
  // Index arithmetic is put together as one sum.
  const bool is_index = e.dtype() == DType::kI64;
  const ExprKind kind = e.kind();
  if (is_index && (kind == ExprKind::kVar || kind == ExprKind::kAdd || kind == ExprKind::kSub ||
                   kind == ExprKind::kMul || kind == ExprKind::kTileParam)) {
    return affine_node(affine(e, depth), depth);
  }
  return node_of(e, depth);
}

int32_t FpCompiler::node_of(Expr e, int depth) {
  if (const BinaryNode* b = as_binary(e)) return binary(*b, depth);
  FpExpr out;
  out.dtype = e.dtype();
  if (const IntImm* i = e.as<IntImm>()) {
    out.value = i->value;
  } else if (const FloatImm* f = e.as<FloatImm>()) {
    return constant(f->value, f->dtype, depth);
  } else if (const Not* n = e.as<Not>()) {
    out.op = FpOp::kNot;
    out.a = expr(n->operand, depth);
  } else if (const Select* s = e.as<Select>()) {
    out.op = is_float(s->dtype) ? FpOp::kSelectF : FpOp::kSelectI;
    out.a = expr(s->condition, depth);
    out.b = expr(s->on_true, depth + 1);
    out.c = expr(s->on_false, depth + 2);
  } else if (const Cast* c = e.as<Cast>()) {
    return cast(*c, depth);
  } else if (const Load* l = e.as<Load>()) {
    out.op = is_float(l->dtype) ? FpOp::kLoadF : FpOp::kLoadI;
    out.a = access(l->buffer, l->indices, /*is_store=*/false, depth);
    const FpAccess& a = code_.accesses[static_cast<std::size_t>(out.a)];
    out.varies = a.flat.lane_coefficient != 0 || !a.flat.varying.empty();
    out.has_load = true;
    return put(out, depth);
  } else if (const Call* call_node = e.as<Call>()) {
    return call(*call_node, depth);
  } else {
    PRUNERC_CHECK(e.kind() == ExprKind::kVar || e.kind() == ExprKind::kTileParam, "expression");
    return affine_node(affine(e, depth), depth);
  }
  for (int32_t operand : {out.a, out.b, out.c}) {
    if (operand < 0) continue;
    out.varies |= code_.exprs[static_cast<std::size_t>(operand)].varies;
    out.has_load |= code_.exprs[static_cast<std::size_t>(operand)].has_load;
  }
  return put(out, depth);
}

int32_t FpCompiler::constant(double value, DType dtype, int depth) {
  FpExpr out;
  out.op = FpOp::kConstF;
  out.dtype = dtype;
  const FpConstant wanted = {value, dtype};
  const auto at = std::find(code_.constants.begin(), code_.constants.end(), wanted);
  out.value = at - code_.constants.begin();
  if (at == code_.constants.end()) code_.constants.push_back(wanted);
  return put(out, depth);
}

int32_t FpCompiler::binary(const BinaryNode& n, int depth) {
  FpExpr out;
  const bool floats = is_float(n.lhs.dtype());
  out.op = binary_op(n.kind, floats);
  out.dtype = n.dtype;
  out.a = expr(n.lhs, depth);
  out.b = expr(n.rhs, depth + 1);
  const FpExpr& a = code_.exprs[static_cast<std::size_t>(out.a)];
  const FpExpr& b = code_.exprs[static_cast<std::size_t>(out.b)];
  out.varies = a.varies || b.varies;
  out.has_load = a.has_load || b.has_load;
  code_.compares_floats |=
      out.op == FpOp::kEqF || out.op == FpOp::kNeF || out.op == FpOp::kLtF || out.op == FpOp::kLeF;
  return put(out, depth);
}

int32_t FpCompiler::cast(const Cast& n, int depth) {
  const bool from_float = is_float(n.operand.dtype());
  if (is_float(n.dtype) && from_float) {
    // A value that was only widened is still one of its first type.
    const Cast* inner = n.operand.as<Cast>();
    if (inner != nullptr && is_float(inner->operand.dtype()) &&
        widens(inner->operand.dtype(), inner->dtype) && widens(inner->operand.dtype(), n.dtype)) {
      return expr(inner->operand, depth);
    }
    if (widens(n.operand.dtype(), n.dtype)) return expr(n.operand, depth);
    if (roundings_ == Roundings::kIgnored) {
      code_.ignores_roundings = true;
      return expr(n.operand, depth);
    }
  }
  FpExpr out;
  out.dtype = n.dtype;
  out.a = expr(n.operand, depth);
  out.varies = code_.exprs[static_cast<std::size_t>(out.a)].varies;
  out.has_load = code_.exprs[static_cast<std::size_t>(out.a)].has_load;
  if (is_float(n.dtype)) {
    out.op = from_float ? FpOp::kNarrow : FpOp::kOfInt;
  } else if (is_bool(n.dtype)) {
    out.op = from_float ? FpOp::kTruth : FpOp::kToBool;
    code_.compares_floats |= from_float;
  } else {
    out.op = from_float ? FpOp::kToInt : FpOp::kWrap;
  }
  return put(out, depth);
}

int32_t FpCompiler::call(const Call& n, int depth) {
  FpExpr out;
  out.op = is_float(n.dtype) ? FpOp::kCallF : FpOp::kAbsI;
  out.dtype = n.dtype;
  out.intrinsic = n.intrinsic;
  std::array<int32_t, 3> args = {-1, -1, -1};
  for (std::size_t i = 0; i < n.args.size(); ++i) {
    args[i] = expr(n.args[i], depth + static_cast<int>(i));
    out.varies |= code_.exprs[static_cast<std::size_t>(args[i])].varies;
    out.has_load |= code_.exprs[static_cast<std::size_t>(args[i])].has_load;
  }
  out.a = args[0];
  out.b = args[1];
  code_.has_exp |= n.intrinsic == Intrinsic::kExp || n.intrinsic == Intrinsic::kSigmoid ||
                   n.intrinsic == Intrinsic::kTanh;
  if (n.intrinsic != Intrinsic::kFma) return put(out, depth);
  // One rounding or two: a product and a sum.
  out.op = FpOp::kMulF;
  const int32_t product = put(out, depth);
  out.op = FpOp::kAddF;
  out.a = product;
  out.b = args[2];
  // The product is in the first register, so the addend must be in the second.
  out.b = expr(n.args[2], depth + 1);
  return put(out, depth);
}

FpAffine FpCompiler::scaled(FpAffine a, int64_t factor) const {
  FpAffine out;
  out.constant = wrapping_mul(a.constant, factor);
  out.lane_coefficient = wrapping_mul(a.lane_coefficient, factor);
  for (const FpAffine::Term& t : a.terms)
    add_term(&out.terms, t.of, wrapping_mul(t.coefficient, factor));
  for (const FpAffine::Term& t : a.varying) {
    add_term(&out.varying, t.of, wrapping_mul(t.coefficient, factor));
  }
  return out;
}

FpAffine FpCompiler::sum(const FpAffine& a, const FpAffine& b) const {
  FpAffine out = a;
  out.constant = wrapping_add(a.constant, b.constant);
  out.lane_coefficient = wrapping_add(a.lane_coefficient, b.lane_coefficient);
  for (const FpAffine::Term& t : b.terms) add_term(&out.terms, t.of, t.coefficient);
  for (const FpAffine::Term& t : b.varying) add_term(&out.varying, t.of, t.coefficient);
  return out;
}

FpAffine FpCompiler::opaque(Expr e, int depth) {
  const int32_t node = node_of(e, depth);
  const FpExpr& compiled = code_.exprs[static_cast<std::size_t>(node)];
  FpAffine out;
  if (compiled.op == FpOp::kConstI) {
    out.constant = compiled.value;
  } else if (compiled.varies) {
    out.varying.push_back({node, 1});
  } else {
    FpSlot slot;
    slot.node = node;
    slot.is_volatile = compiled.has_load;
    const auto at = temps_.find(node);
    if (at != temps_.end()) {
      out.terms.push_back({at->second, 1});
      return out;
    }
    const std::optional<Interval> known = range(node);
    slot_ranges_.push_back(known.value_or(Interval{1, 0}));
    code_.slots.push_back(slot);
    const auto id = static_cast<int32_t>(code_.slots.size()) - 1;
    temps_.emplace(node, id);
    out.terms.push_back({id, 1});
  }
  return out;
}

FpAffine FpCompiler::affine(Expr e, int depth) {
  FpAffine out;
  if (const Var* v = e.as<Var>()) return vars_.at(v->id.value);
  if (const IntImm* i = e.as<IntImm>()) {
    out.constant = i->value;
    return out;
  }
  if (const TileParam* p = e.as<TileParam>()) {
    out.constant = params_[static_cast<std::size_t>(p->id.value)];
    return out;
  }
  if (const Add* add = e.as<Add>())
    return sum(affine(add->lhs, depth), affine(add->rhs, depth + 1));
  if (const Sub* sub = e.as<Sub>()) {
    return sum(affine(sub->lhs, depth), scaled(affine(sub->rhs, depth + 1), -1));
  }
  if (const Mul* mul = e.as<Mul>()) {
    const FpAffine a = affine(mul->lhs, depth);
    const FpAffine b = affine(mul->rhs, depth + 1);
    const auto is_constant = [](const FpAffine& x) {
      return x.terms.empty() && x.varying.empty() && x.lane_coefficient == 0;
    };
    if (is_constant(a)) return scaled(b, a.constant);
    if (is_constant(b)) return scaled(a, b.constant);
  }
  return opaque(e, depth + 1);
}

int32_t FpCompiler::affine_node(const FpAffine& a, int depth) {
  FpExpr out;
  out.varies = a.lane_coefficient != 0 || !a.varying.empty();
  for (const FpAffine::Term& t : a.terms) {
    out.has_load |= code_.slots[static_cast<std::size_t>(t.of)].is_volatile;
  }
  for (const FpAffine::Term& t : a.varying) {
    out.has_load |= code_.exprs[static_cast<std::size_t>(t.of)].has_load;
  }
  if (!out.varies && a.terms.empty()) {
    out.value = a.constant;
    return put(out, depth);
  }
  out.op = FpOp::kAffine;
  const auto at = std::find(code_.affines.begin(), code_.affines.end(), a);
  out.a = static_cast<int32_t>(at - code_.affines.begin());
  if (at == code_.affines.end()) code_.affines.push_back(a);
  return put(out, depth + 2);  // its parts may need registers of their own
}

std::optional<FpCompiler::Interval> FpCompiler::range(const FpAffine& a) const {
  if (!a.varying.empty()) return std::nullopt;
  __int128 low = a.constant;
  __int128 high = a.constant;
  const auto widen = [&](int64_t coefficient, int32_t slot) {
    const Interval r = slot_ranges_[static_cast<std::size_t>(slot)];
    if (r.low > r.high) return false;
    const __int128 x = static_cast<__int128>(coefficient) * r.low;
    const __int128 y = static_cast<__int128>(coefficient) * r.high;
    low += std::min(x, y);
    high += std::max(x, y);
    return true;
  };
  for (const FpAffine::Term& t : a.terms) {
    if (t.of != lane_slot_ && !widen(t.coefficient, t.of)) return std::nullopt;
  }
  if (a.lane_coefficient != 0 && !widen(a.lane_coefficient, lane_slot_)) return std::nullopt;
  constexpr __int128 kMax = int64_t{1} << 62;
  if (low < -kMax || high > kMax) return std::nullopt;
  return Interval{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

// Of integer expressions that indices are made of.
std::optional<FpCompiler::Interval> FpCompiler::range(int32_t node) const {
  const FpExpr& n = code_.exprs[static_cast<std::size_t>(node)];
  if (n.op == FpOp::kConstI) return Interval{n.value, n.value};
  if (n.op == FpOp::kAffine) return range(code_.affines[static_cast<std::size_t>(n.a)]);
  if (n.op != FpOp::kFloorDiv && n.op != FpOp::kFloorMod && n.op != FpOp::kMinI &&
      n.op != FpOp::kMaxI) {
    return std::nullopt;
  }
  const std::optional<Interval> a = range(n.a);
  const std::optional<Interval> b = range(n.b);
  if (!a || !b) return std::nullopt;
  if (n.op == FpOp::kMinI) return Interval{std::min(a->low, b->low), std::min(a->high, b->high)};
  if (n.op == FpOp::kMaxI) return Interval{std::max(a->low, b->low), std::max(a->high, b->high)};
  if (b->low != b->high || b->low <= 0) return std::nullopt;
  if (n.op == FpOp::kFloorMod) return Interval{0, b->low - 1};
  return Interval{floor_div(a->low, b->low), floor_div(a->high, b->low)};
}

int32_t FpCompiler::access(BufferId buffer, std::span<const Expr> indices, bool is_store,
                           int depth) {
  const FpBuffer& info = code_.buffers[static_cast<std::size_t>(buffer.value)];
  FpAccess out;
  out.buffer = buffer.value;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const FpAffine index = affine(indices[d], depth + 3);
    const int64_t extent = info.shape[d];
    const std::optional<Interval> known = range(index);
    if (!known || known->low < 0 || known->high >= extent) {
      out.checks.push_back({static_cast<int32_t>(d), index, extent});
    }
    for (const FpAffine::Term& t : index.terms) {
      code_.indexes_by_data |= code_.slots[static_cast<std::size_t>(t.of)].is_volatile;
    }
    for (const FpAffine::Term& t : index.varying) {
      code_.indexes_by_data |= code_.exprs[static_cast<std::size_t>(t.of)].has_load;
    }
    out.flat = sum(scaled(out.flat, extent), index);
  }
  out.may_race = races(buffer);
  find_owners(buffer, &out);
  code_.buffers[static_cast<std::size_t>(buffer.value)].may_race |=
      out.may_race[0] || out.may_race[1];
  code_.accesses.push_back(std::move(out));
  const auto id = static_cast<int32_t>(code_.accesses.size()) - 1;
  if (lane_slot_ >= 0) touches_.push_back({id, is_store, in_init_, -1});
  return id;
}

}  // namespace prunerc::ir
