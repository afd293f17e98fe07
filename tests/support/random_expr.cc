#include "tests/support/random_expr.h"

#include "ir/query.h"
#include "ir/visit.h"

namespace prunerc::ir {
namespace {

constexpr int64_t kConstants[] = {0,  1,  2,  3,   4,  5,  7,  8,  12, 16,
                                  17, 32, 64, 255, -1, -2, -3, -4, -16};
constexpr int64_t kDivisors[] = {1, 2, 3, 4, 5, 6, 8, 16, 17, 32, 64, -1, -2, -3, -4};

std::optional<int64_t> checked(ExprKind kind, int64_t a, int64_t b) {
  int64_t out = 0;
  const bool overflow = kind == ExprKind::kAdd   ? __builtin_add_overflow(a, b, &out)
                        : kind == ExprKind::kSub ? __builtin_sub_overflow(a, b, &out)
                                                 : __builtin_mul_overflow(a, b, &out);
  if (overflow) return std::nullopt;
  return out;
}

// Floor division from the definition: the largest q with q*b <= a (b > 0), by truncation and a
// correction.
std::optional<int64_t> floor_quotient(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return b == 0 ? std::nullopt : checked(ExprKind::kSub, 0, a);
  int64_t q = a / b;
  if (q * b != a && (a < 0) != (b < 0)) --q;
  return q;
}

}  // namespace

ExprMaker::ExprMaker(uint64_t seed) : rng(seed) {
  for (const int64_t extent : {8, 16, 5, 12, 1}) {
    vars.push_back(b.fresh_var("v" + std::to_string(vars.size())));
    extents.push_back(extent);
  }
  params = {b.param(b.add_param("T0")), b.param(b.add_param("T1")), b.param(b.add_param("T2"))};
  const Expr shape[] = {b.int_imm(1000)};
  bytes_ = b.add_buffer("bytes", DType::kI8, shape, Scope::kGlobal, BufferRole::kInput);
  words_ = b.add_buffer("words", DType::kI64, shape, Scope::kGlobal, BufferRole::kInput);
}

VarRanges ExprMaker::ranges() const {
  VarRanges out;
  IrBuilder& builder = const_cast<IrBuilder&>(b);
  for (std::size_t i = 0; i < vars.size(); ++i) out.bind(vars[i], builder.int_imm(extents[i]));
  return out;
}

Expr ExprMaker::leaf() {
  const uint64_t choice = rng.below(10);
  if (choice < 6) return vars[rng.below(vars.size())];
  if (choice < 8 && with_params) return params[rng.below(params.size())];
  return b.int_imm(kConstants[rng.below(std::size(kConstants))]);
}

Expr ExprMaker::data(int depth) {
  const Expr at[] = {b.max(index(depth - 2), b.int_imm(0))};
  if (rng.chance(0.3)) return b.load(words_, at);
  return b.cast(DType::kI64, b.load(bytes_, at));
}

Expr ExprMaker::index(int depth) {
  if (depth <= 0) return leaf();
  if (with_data && rng.chance(0.1)) return data(depth);
  switch (rng.below(12)) {
    case 0:
    case 1:
    case 2: return b.add(index(depth - 1), index(depth - 1));
    case 3: return b.sub(index(depth - 1), index(depth - 1));
    case 4:
    case 5: return b.mul(index(depth - 1), b.int_imm(kConstants[rng.below(std::size(kConstants))]));
    case 6:
    case 7: {
      const ExprKind kind = rng.chance(0.5) ? ExprKind::kFloorDiv : ExprKind::kFloorMod;
      const bool symbolic = with_params && rng.chance(0.4);
      const Expr divisor = symbolic ? params[rng.below(params.size())]
                                    : b.int_imm(kDivisors[rng.below(std::size(kDivisors))]);
      return b.binary(kind, index(depth - 1), divisor);
    }
    case 8: return b.min(index(depth - 1), index(depth - 1));
    case 9: return b.max(index(depth - 1), index(depth - 1));
    case 10: return b.select(condition(depth - 1), index(depth - 1), index(depth - 1));
    default:
      return with_params || rng.chance(0.3) ? b.mul(index(depth - 1), leaf()) : index(depth - 1);
  }
}

Expr ExprMaker::condition(int depth) {
  if (depth > 1 && rng.chance(0.4)) {
    switch (rng.below(3)) {
      case 0: return b.logical_and(condition(depth - 1), condition(depth - 1));
      case 1: return b.logical_or(condition(depth - 1), condition(depth - 1));
      default: return b.logical_not(condition(depth - 1));
    }
  }
  constexpr ExprKind kKinds[] = {ExprKind::kEq, ExprKind::kNe, ExprKind::kLt, ExprKind::kLe};
  return b.binary(kKinds[rng.below(4)], index(depth - 1), index(depth - 1));
}

Expr ExprMaker::any(int depth) {
  switch (rng.below(4)) {
    case 0: return condition(depth);
    case 1: {
      const DType types[] = {DType::kI8, DType::kU8, DType::kI32};
      const DType type = types[rng.below(3)];
      const Expr x = b.cast(type, index(depth - 2));
      const Expr y = b.cast(type, index(depth - 2));
      constexpr ExprKind kKinds[] = {ExprKind::kAdd, ExprKind::kSub, ExprKind::kMul, ExprKind::kMin,
                                     ExprKind::kMax, ExprKind::kLt,  ExprKind::kEq};
      return b.binary(kKinds[rng.below(std::size(kKinds))], x, y);
    }
    default: return index(depth);
  }
}

std::optional<int64_t> value_of(Expr e, const Env& env) {
  if (const Var* v = e.as<Var>()) return env.vars.at(v->id.value);
  if (const TileParam* p = e.as<TileParam>()) return env.params.at(p->id.value);
  if (const IntImm* c = e.as<IntImm>()) return c->value;
  if (const Load* l = e.as<Load>()) {
    const std::optional<int64_t> at = value_of(l->indices[0], env);
    if (!at.has_value()) return std::nullopt;
    Rng r(env.data_seed, static_cast<uint64_t>(l->buffer.value), static_cast<uint64_t>(*at));
    return wrap_to(e.dtype(), static_cast<int64_t>(r.next()));
  }
  if (const Cast* c = e.as<Cast>()) {
    const std::optional<int64_t> a = value_of(c->operand, env);
    if (!a.has_value()) return std::nullopt;
    return wrap_to(c->dtype, *a);
  }
  if (const Not* n = e.as<Not>()) {
    const std::optional<int64_t> a = value_of(n->operand, env);
    if (!a.has_value()) return std::nullopt;
    return *a == 0;
  }
  if (const Select* s = e.as<Select>()) {
    const std::optional<int64_t> c = value_of(s->condition, env);
    if (!c.has_value()) return std::nullopt;
    return value_of(*c != 0 ? s->on_true : s->on_false, env);
  }
  const BinaryNode* n = as_binary(e);
  const std::optional<int64_t> a = value_of(n->lhs, env);
  if (!a.has_value()) return std::nullopt;
  if (n->kind == ExprKind::kAnd && *a == 0) return 0;
  if (n->kind == ExprKind::kOr && *a != 0) return 1;
  const std::optional<int64_t> b = value_of(n->rhs, env);
  if (!b.has_value()) return std::nullopt;
  const auto wrapped = [&](uint64_t v) { return wrap_to(n->dtype, static_cast<int64_t>(v)); };
  const bool may_wrap = n->dtype != DType::kI64 || has_load(e);
  switch (n->kind) {
    case ExprKind::kAdd:
      return may_wrap ? wrapped(static_cast<uint64_t>(*a) + static_cast<uint64_t>(*b))
                      : checked(n->kind, *a, *b);
    case ExprKind::kSub:
      return may_wrap ? wrapped(static_cast<uint64_t>(*a) - static_cast<uint64_t>(*b))
                      : checked(n->kind, *a, *b);
    case ExprKind::kMul:
      return may_wrap ? wrapped(static_cast<uint64_t>(*a) * static_cast<uint64_t>(*b))
                      : checked(n->kind, *a, *b);
    case ExprKind::kFloorDiv: {
      const std::optional<int64_t> q = floor_quotient(*a, *b);
      if (!q.has_value() && may_wrap && *b == -1) return *a;  // the least integer wraps to itself
      return q;
    }
    case ExprKind::kFloorMod: {
      if (*b == -1) return 0;
      const std::optional<int64_t> q = floor_quotient(*a, *b);
      if (!q.has_value()) return std::nullopt;
      return *a - *q * *b;
    }
    case ExprKind::kMin: return std::min(*a, *b);
    case ExprKind::kMax: return std::max(*a, *b);
    case ExprKind::kEq: return *a == *b;
    case ExprKind::kNe: return *a != *b;
    case ExprKind::kLt: return *a < *b;
    case ExprKind::kLe: return *a <= *b;
    default: return *b;  // the left side of && and || did not decide
  }
}

Env random_env(const ExprMaker& maker, Rng& rng) {
  Env env;
  for (std::size_t i = 0; i < maker.vars.size(); ++i) {
    env.vars[maker.vars[i]->id.value] = rng.between(0, maker.extents[i] - 1);
  }
  for (std::size_t i = 0; i < maker.params.size(); ++i) {
    env.params[static_cast<int32_t>(i)] = rng.chance(0.2) ? 1 : rng.between(1, 20);
  }
  env.data_seed = rng.next();
  return env;
}

std::string show(Expr e) {
  if (!e.defined()) return "null";
  if (const Var* v = e.as<Var>()) return std::string(v->name);
  if (const TileParam* p = e.as<TileParam>()) return "T" + std::to_string(p->id.value);
  if (const IntImm* c = e.as<IntImm>()) return std::to_string(c->value);
  if (const FloatImm* c = e.as<FloatImm>()) return std::to_string(c->value) + "f";
  std::string out = "(";
  if (const BinaryNode* n = as_binary(e)) {
    return "(" + show(n->lhs) + " " + std::string(to_string(n->kind)) + " " + show(n->rhs) + ")";
  }
  out = std::string(to_string(e.kind()));
  if (e.kind() == ExprKind::kCast) out = std::string(to_string(e.dtype()));
  out += "(";
  for_each_child(e, [&](Expr child) { out += (out.back() == '(' ? "" : ", ") + show(child); });
  return out + ")";
}

}  // namespace prunerc::ir
