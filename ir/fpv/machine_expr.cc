#include "ir/fpv/machine.h"
#include "ir/int_math.h"
#include "ir/support/check.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

int64_t integer_op(FpOp op, int64_t a, int64_t b) {
  switch (op) {
    case FpOp::kAddI: return wrapping_add(a, b);
    case FpOp::kSubI: return wrapping_sub(a, b);
    case FpOp::kMulI: return wrapping_mul(a, b);
    case FpOp::kFloorDiv: return floor_div(a, b);
    case FpOp::kFloorMod: return floor_mod(a, b);
    case FpOp::kMinI: return std::min(a, b);
    case FpOp::kMaxI: return std::max(a, b);
    case FpOp::kEqI: return a == b ? 1 : 0;
    case FpOp::kNeI: return a != b ? 1 : 0;
    case FpOp::kLtI: return a < b ? 1 : 0;
    case FpOp::kLeI: return a <= b ? 1 : 0;
    default: break;  // NOLINT: the caller has chosen
  }
  PRUNERC_UNREACHABLE("integer operation");
}

template <FpOp op>
void integer_lanes(const IntLanes& b, DType dtype, int n, IntLanes* a) {
  for (int l = 0; l < n; ++l) a->v[l] = integer_op(op, a->v[l], b.v[l]);
  if (dtype == DType::kI32) {
    for (int l = 0; l < n; ++l) a->v[l] = static_cast<int32_t>(a->v[l]);
  } else if (dtype != DType::kI64) {
    for (int l = 0; l < n; ++l) a->v[l] = wrap_to(dtype, a->v[l]);
  }
}

}  // namespace

int64_t FpMachine::slot_value(int32_t slot, int d) {
  const auto at = static_cast<std::size_t>(slot);
  const FpSlot& s = code_.slots[at];
  if (s.node < 0 || (!s.is_volatile && versions_[at] == version_)) return vars_[at];
  const uint64_t now = version_;
  eval_int(s.node, d);
  vars_[at] = i_[static_cast<std::size_t>(d)].v[0];
  versions_[at] = now;
  return vars_[at];
}

int64_t FpMachine::base_of(const FpAffine& a, int d) {
  int64_t value = a.constant;
  for (const FpAffine::Term& t : a.terms) {
    value = wrapping_add(value, wrapping_mul(t.coefficient, slot_value(t.of, d)));
  }
  return value;
}

void FpMachine::eval_affine(const FpAffine& a, int d) {
  const int64_t base = base_of(a, d);
  if (a.lane_coefficient == 0 && a.varying.empty()) {
    return i_[static_cast<std::size_t>(d)].set_uniform(base);
  }
  {
    IntLanes& out = i_[static_cast<std::size_t>(d)];
    out.is_uniform = false;
    for (int l = 0; l < n_; ++l) {
      out.v[l] = wrapping_add(base, wrapping_mul(a.lane_coefficient, l));
    }
  }
  for (const FpAffine::Term& t : a.varying) {
    eval_int(t.of, d + 1);
    if (failed()) return;
    IntLanes& out = i_[static_cast<std::size_t>(d)];
    const IntLanes& x = i_[static_cast<std::size_t>(d) + 1];
    for (int l = 0; l < n_; ++l) {
      out.v[l] = wrapping_add(out.v[l], wrapping_mul(t.coefficient, x.at(l)));
    }
  }
}

void FpMachine::eval_arithmetic(const FpExpr& n, int d) {
  eval_int(n.a, d);
  eval_int(n.b, d + 1);
  if (failed()) return;
  IntLanes& a = i_[static_cast<std::size_t>(d)];
  IntLanes& b = i_[static_cast<std::size_t>(d) + 1];
  const bool is_uniform = a.is_uniform && b.is_uniform;
  const int lanes = is_uniform ? 1 : n_;
  if (!is_uniform) {
    a.spread(n_);
    b.spread(n_);
  }
  if (n.op == FpOp::kFloorDiv || n.op == FpOp::kFloorMod) {
    for (int l = 0; l < lanes; ++l) {
      if (b.v[l] != 0) continue;
      b.v[l] = 1;
      if (is_uniform || is_on(l))
        fail(FpFailure::kInvalid, "integer division or remainder by zero");
    }
  }
  switch (n.op) {
    case FpOp::kAddI: integer_lanes<FpOp::kAddI>(b, n.dtype, lanes, &a); break;
    case FpOp::kSubI: integer_lanes<FpOp::kSubI>(b, n.dtype, lanes, &a); break;
    case FpOp::kMulI: integer_lanes<FpOp::kMulI>(b, n.dtype, lanes, &a); break;
    case FpOp::kFloorDiv: integer_lanes<FpOp::kFloorDiv>(b, n.dtype, lanes, &a); break;
    case FpOp::kFloorMod: integer_lanes<FpOp::kFloorMod>(b, n.dtype, lanes, &a); break;
    case FpOp::kMinI: integer_lanes<FpOp::kMinI>(b, DType::kI64, lanes, &a); break;
    case FpOp::kMaxI: integer_lanes<FpOp::kMaxI>(b, DType::kI64, lanes, &a); break;
    case FpOp::kEqI: integer_lanes<FpOp::kEqI>(b, DType::kI64, lanes, &a); break;
    case FpOp::kNeI: integer_lanes<FpOp::kNeI>(b, DType::kI64, lanes, &a); break;
    case FpOp::kLtI: integer_lanes<FpOp::kLtI>(b, DType::kI64, lanes, &a); break;
    case FpOp::kLeI: integer_lanes<FpOp::kLeI>(b, DType::kI64, lanes, &a); break;
    default: PRUNERC_UNREACHABLE("integer operation");  // NOLINT: eval_int has chosen
  }
  a.is_uniform = is_uniform;
}

void FpMachine::eval_comparison(const FpExpr& n, int d) {
  eval_float(n.a, d);
  eval_float(n.b, d + 1);
  const FloatLanes& a = f_[static_cast<std::size_t>(d)];
  const FloatLanes& b = f_[static_cast<std::size_t>(d) + 1];
  IntLanes& out = i_[static_cast<std::size_t>(d)];
  out.is_uniform = a.is_uniform && b.is_uniform;
  const int lanes = out.is_uniform ? 1 : n_;
  for (int l = 0; l < lanes; ++l) {
    const FpValue x = a.at(l);
    const FpValue y = b.at(l);
    bool holds = agree(x, y);
    if (n.op == FpOp::kNeF) holds = !holds;
    if (n.op == FpOp::kLtF) holds = world_.less(x, y);
    if (n.op == FpOp::kLeF) holds = !world_.less(y, x);
    out.v[l] = holds ? 1 : 0;
  }
}

// && and ||: the right side only in the lanes that the left one does not decide.
void FpMachine::eval_logic(const FpExpr& n, int d) {
  const auto at = static_cast<std::size_t>(d);
  const int64_t decides = n.op == FpOp::kOr ? 1 : 0;
  eval_int(n.a, d);
  if (failed()) return;
  if (i_[at].is_uniform) {
    if ((i_[at].v[0] != 0 ? 1 : 0) == decides) {
      i_[at].v[0] = decides;
      return;
    }
    eval_int(n.b, d);
    for (int l = 0; l < n_; ++l) i_[at].v[l] = i_[at].v[l] != 0 ? 1 : 0;
    return;
  }
  Mask open;
  int count = 0;
  for (int l = 0; l < n_; ++l) {
    const bool on = is_on(l) && (i_[at].v[l] != 0 ? 1 : 0) != decides;
    open.on[l] = on ? 1 : 0;
    count += on ? 1 : 0;
  }
  for (int l = 0; l < n_; ++l) i_[at].v[l] = decides;
  if (count == 0) return;
  const Mask* saved = mask_;
  mask_ = &open;
  eval_int(n.b, d + 1);
  mask_ = saved;
  for (int l = 0; l < n_; ++l) {
    if (open.on[l] != 0) i_[at].v[l] = i_[at + 1].at(l) != 0 ? 1 : 0;
  }
}

template <typename Lanes, typename Eval>
void FpMachine::eval_select(const FpExpr& n, int d, std::vector<Lanes>& lanes, Eval eval) {
  eval_int(n.a, d);
  if (failed()) return;
  const auto at = static_cast<std::size_t>(d);
  if (i_[at].is_uniform) return eval(i_[at].v[0] != 0 ? n.b : n.c, d);
  Mask yes;
  Mask no;
  int num_yes = 0;
  int num_no = 0;
  for (int l = 0; l < n_; ++l) {
    const bool holds = i_[at].v[l] != 0;
    yes.on[l] = is_on(l) && holds ? 1 : 0;
    no.on[l] = is_on(l) && !holds ? 1 : 0;
    num_yes += static_cast<int>(yes.on[l]);
    num_no += static_cast<int>(no.on[l]);
  }
  if (num_no == 0) return eval(n.b, d);
  if (num_yes == 0) return eval(n.c, d);
  const Mask* saved = mask_;
  mask_ = &yes;
  eval(n.b, d + 1);
  mask_ = &no;
  if (!failed()) eval(n.c, d + 2);
  mask_ = saved;
  Lanes& out = lanes[at];
  const Lanes& x = lanes[at + 1];
  const Lanes& y = lanes[at + 2];
  out.is_uniform = false;
  if constexpr (std::is_same_v<Lanes, FloatLanes>) {
    for (int l = 0; l < n_; ++l)
      out.set(l, yes.on[l] != 0 ? x.at(l) : no.on[l] != 0 ? y.at(l) : FpValue{});
    out.cone = cones_.made_of(FpConeOp::kJoin, x.cone, y.cone);
    out.find_flags(n_);
  } else {
    for (int l = 0; l < n_; ++l) out.v[l] = yes.on[l] != 0 ? x.at(l) : y.at(l);
  }
}

// Integers from one operand.
void FpMachine::eval_unary(const FpExpr& n, int d) {
  const bool from_float = n.op == FpOp::kToInt || n.op == FpOp::kTruth;
  if (from_float) {
    eval_float(n.a, d);
  } else {
    eval_int(n.a, d);
  }
  const FloatLanes& f = f_[static_cast<std::size_t>(d)];
  IntLanes& out = i_[static_cast<std::size_t>(d)];
  if (from_float) out.is_uniform = f.is_uniform;
  const int lanes = out.is_uniform ? 1 : n_;
  if (n.op == FpOp::kToInt)
    points_ =
        points_ + (out.is_uniform ? 1 : num_on()) * call_point(cones_.at(f.cone), kinds_of(f));
  for (int l = 0; l < lanes; ++l) {
    const int64_t x = out.v[l];
    switch (n.op) {
      case FpOp::kNot: out.v[l] = x == 0 ? 1 : 0; break;
      case FpOp::kWrap: out.v[l] = wrap_to(n.dtype, x); break;
      case FpOp::kToBool: out.v[l] = x != 0 ? 1 : 0; break;
      case FpOp::kAbsI: out.v[l] = x < 0 ? wrap_to(n.dtype, wrapping_sub(0, x)) : x; break;
      case FpOp::kToInt: out.v[l] = is_on(l) ? world_.to_int(n.dtype, f.at(l)) : 0; break;
      case FpOp::kTruth: out.v[l] = FpWorld::is_nonzero(f.at(l)) ? 1 : 0; break;
      default: PRUNERC_UNREACHABLE("unary operation");  // NOLINT: eval_int has chosen
    }
  }
}

void FpMachine::eval_int(int32_t e, int d) {
  const FpExpr& n = code_.exprs[static_cast<std::size_t>(e)];
  const auto at = static_cast<std::size_t>(d);
  if (at + 3 >= i_.size()) {
    fail(FpFailure::kUnsupported, "so deep an expression");
    return;
  }
  switch (n.op) {
    case FpOp::kConstI: return i_[at].set_uniform(n.value);
    case FpOp::kAffine: return eval_affine(code_.affines[static_cast<std::size_t>(n.a)], d);
    case FpOp::kAddI:
    case FpOp::kSubI:
    case FpOp::kMulI:
    case FpOp::kFloorDiv:
    case FpOp::kFloorMod:
    case FpOp::kMinI:
    case FpOp::kMaxI:
    case FpOp::kEqI:
    case FpOp::kNeI:
    case FpOp::kLtI:
    case FpOp::kLeI: return eval_arithmetic(n, d);
    case FpOp::kEqF:
    case FpOp::kNeF:
    case FpOp::kLtF:
    case FpOp::kLeF: return eval_comparison(n, d);
    case FpOp::kAnd:
    case FpOp::kOr: return eval_logic(n, d);
    case FpOp::kSelectI:
      return eval_select(n, d, i_, [this](int32_t x, int at_depth) { eval_int(x, at_depth); });
    case FpOp::kNot:
    case FpOp::kWrap:
    case FpOp::kToBool:
    case FpOp::kToInt:
    case FpOp::kTruth:
    case FpOp::kAbsI: return eval_unary(n, d);
    case FpOp::kLoadI: return load_ints(n.a, d);
    case FpOp::kConstF:
    case FpOp::kAddF:
    case FpOp::kSubF:
    case FpOp::kMulF:
    case FpOp::kDivF:
    case FpOp::kMinF:
    case FpOp::kMaxF:
    case FpOp::kSelectF:
    case FpOp::kOfInt:
    case FpOp::kNarrow:
    case FpOp::kLoadF:
    case FpOp::kCallF: break;
  }
  PRUNERC_UNREACHABLE("a float where an integer is wanted");
}

void FpMachine::eval_field(const FpExpr& n, int d) {
  eval_float(n.a, d);
  eval_float(n.b, d + 1);
  if (failed()) return;
  FloatLanes& a = f_[static_cast<std::size_t>(d)];
  FloatLanes& b = f_[static_cast<std::size_t>(d) + 1];
  if (n.op == FpOp::kMulF) {
    a.cone = cones_.made_of(FpConeOp::kProduct, a.cone, b.cone);
    return mul_lanes(world_, a, b, n_);
  }
  if (n.op == FpOp::kDivF) {
    a.cone = cones_.made_of(FpConeOp::kQuotient, a.cone, b.cone);
    return div_lanes(world_, a, b, mask_, n_);
  }
  const bool is_sum = n.op == FpOp::kAddF;
  a.cone = cones_.made_of(is_sum ? FpConeOp::kSum : FpConeOp::kDifference, a.cone, b.cone);
  if (is_sum) return add_lanes(world_, a, b, n_);
  return sub_lanes(world_, a, b, n_);
}

// Operations that go lane by lane.
void FpMachine::eval_scalar_calls(const FpExpr& n, int d) {
  const bool is_binary =
      n.op == FpOp::kMinF || n.op == FpOp::kMaxF || (n.op == FpOp::kCallF && n.b >= 0);
  const auto at = static_cast<std::size_t>(d);
  if (n.op == FpOp::kOfInt) {
    eval_int(n.a, d);
    f_[at].is_uniform = i_[at].is_uniform;
  } else {
    eval_float(n.a, d);
  }
  if (is_binary) eval_float(n.b, d + 1);
  if (failed()) return;
  FloatLanes& a = f_[at];
  const FloatLanes& b = f_[at + 1];
  const bool is_uniform = a.is_uniform && (!is_binary || b.is_uniform);
  const int lanes = is_uniform ? 1 : n_;
  const FpCone cone =
      n.op == FpOp::kOfInt ? integer_cone(i_[at]) : call_cone(n, a, b, is_uniform ? 1 : num_on());
  a.spread(is_uniform || n.op == FpOp::kOfInt ? 1 : n_);
  for (int l = 0; l < lanes; ++l) {
    if (!is_uniform && !is_on(l)) {
      a.set(l, {});
      continue;
    }
    const FpValue x = a.at(l);
    const FpValue y = is_binary ? b.at(l) : FpValue{};
    switch (n.op) {
      case FpOp::kOfInt: a.set(l, world_.of_int(i_[at].v[l])); break;
      case FpOp::kNarrow: a.set(l, world_.narrow(n.dtype, x)); break;
      case FpOp::kMinF: a.set(l, world_.min(n.dtype, x, y)); break;
      case FpOp::kMaxF: a.set(l, world_.max(n.dtype, x, y)); break;
      case FpOp::kCallF: a.set(l, world_.call(n.intrinsic, x, y)); break;
      default: PRUNERC_UNREACHABLE("call");  // NOLINT: eval_float has chosen
    }
  }
  a.is_uniform = is_uniform;
  a.cone = cones_.id_of(cone);
  a.find_flags(lanes);
}

void FpMachine::eval_float(int32_t e, int d) {
  const FpExpr& n = code_.exprs[static_cast<std::size_t>(e)];
  const auto at = static_cast<std::size_t>(d);
  if (at + 3 >= f_.size()) {
    fail(FpFailure::kUnsupported, "so deep an expression");
    return;
  }
  switch (n.op) {
    case FpOp::kConstF:
      f_[at].cone = constant_cones_[static_cast<std::size_t>(n.value)];
      return f_[at].set_uniform(constants_[static_cast<std::size_t>(n.value)]);
    case FpOp::kAddF:
    case FpOp::kSubF:
    case FpOp::kMulF:
    case FpOp::kDivF: return eval_field(n, d);
    case FpOp::kSelectF:
      return eval_select(n, d, f_, [this](int32_t x, int at_depth) { eval_float(x, at_depth); });
    case FpOp::kMinF:
    case FpOp::kMaxF:
    case FpOp::kOfInt:
    case FpOp::kNarrow:
    case FpOp::kCallF: return eval_scalar_calls(n, d);
    case FpOp::kLoadF: return load_floats(n.a, d);
    case FpOp::kConstI:
    case FpOp::kAffine:
    case FpOp::kAddI:
    case FpOp::kSubI:
    case FpOp::kMulI:
    case FpOp::kFloorDiv:
    case FpOp::kFloorMod:
    case FpOp::kMinI:
    case FpOp::kMaxI:
    case FpOp::kEqI:
    case FpOp::kNeI:
    case FpOp::kLtI:
    case FpOp::kLeI:
    case FpOp::kEqF:
    case FpOp::kNeF:
    case FpOp::kLtF:
    case FpOp::kLeF:
    case FpOp::kAnd:
    case FpOp::kOr:
    case FpOp::kNot:
    case FpOp::kSelectI:
    case FpOp::kWrap:
    case FpOp::kToBool:
    case FpOp::kToInt:
    case FpOp::kTruth:
    case FpOp::kLoadI:
    case FpOp::kAbsI: break;
  }
  PRUNERC_UNREACHABLE("an integer where a float is wanted");
}

}  // namespace prunerc::ir
