#include "search/algebra/fingerprint.h"

#include "ir/support/check.h"
#include "ir/support/rng.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace prunerc::search::algebra {
namespace {

// The top bit of q: no residue there. The top bit of p: an infinity.
constexpr uint32_t kTop = uint32_t{1} << 31;
constexpr Residues kPlusInfinity = {kTop | 1, 0};
constexpr Residues kMinusInfinity = {kTop | 2, 0};

bool is_infinite(Residues a) { return (a.p & kTop) != 0; }
bool is_lost(Residues a) { return (a.q & kTop) != 0; }

uint32_t below(uint64_t hash, uint32_t m) {
  return static_cast<uint32_t>((hash >> 32) * uint64_t{m} >> 32);
}

// Names of hashed functions that are no intrinsics.
enum : uint64_t { kConstantName = 1000, kCastName, kMaxName, kMinName };

// Beyond, a constant is an opaque number.
constexpr int kMaxExponent = 200;

std::vector<AxisId> axes_in(AxisSet set) {
  std::vector<AxisId> out;
  for (; set != 0; set &= set - 1) out.push_back(static_cast<AxisId>(std::countr_zero(set)));
  return out;
}

int64_t value_at(const Subscript& s, const std::vector<int64_t>& place) {
  int64_t value = s.base;
  for (const Digit& d : s.digits) {
    int64_t part = place[static_cast<std::size_t>(d.axis)] / d.lower;
    if (d.extent != 0) part %= d.extent;
    value += part * d.scale;
  }
  return value;
}

bool holds(const Condition& c, const std::vector<int64_t>& place) {
  const int64_t value = value_at(c.value, place);
  switch (c.kind) {
    case Condition::Kind::kAtMostZero: return value <= 0;
    case Condition::Kind::kZero: return value == 0;
    case Condition::Kind::kNotZero: return value != 0;
  }
  PRUNERC_UNREACHABLE("condition");
}

}  // namespace

PrintWorld::PrintWorld(uint64_t seed) : key_(mix64(seed + 1)) {
  Rng rng(seed, 1);
  p_ = ir::Modulus(ir::random_safe_prime(rng));
  q_ = ir::Modulus((p_.m - 1) / 2);
  // Squares other than 1 generate the subgroup of order q, which is prime.
  uint32_t generator = p_.one;
  while (generator == p_.one || generator == 0) {
    const auto root = static_cast<uint32_t>(1 + rng.below(p_.m - 1));
    generator = p_.mul(root, root);
  }
  for (std::array<uint32_t, 256>& row : powers_) {
    row[0] = p_.one;
    for (std::size_t i = 1; i < row.size(); ++i) row[i] = p_.mul(row[i - 1], generator);
    generator = p_.mul(row.back(), generator);
  }
}

Residues PrintWorld::input(uint64_t name) const {
  const uint64_t h = hash_combine(key_, name);
  return {below(h, p_.m), below(mix64(h ^ key_), q_.m)};
}

Residues PrintWorld::constant(double value) const {
  if (std::isinf(value)) return value > 0 ? kPlusInfinity : kMinusInfinity;
  int exponent = 0;
  auto numerator = static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  exponent -= 53;
  while (numerator != 0 && numerator % 2 == 0) {
    numerator /= 2;
    ++exponent;
  }
  if (std::isnan(value) || std::abs(exponent) > kMaxExponent) {
    return input(hash_combine(kConstantName, hash_double(value)));
  }
  return {p_.of_dyadic(numerator, exponent), q_.of_dyadic(numerator, exponent)};
}

Residues PrintWorld::add(Residues a, Residues b) {
  if (is_infinite(a) || is_infinite(b)) {
    if (is_infinite(a) && is_infinite(b) && a != b) return fail();
    return is_infinite(a) ? a : b;
  }
  return {p_.add(a.p, b.p), is_lost(a) || is_lost(b) ? kTop : q_.add(a.q, b.q)};
}

Residues PrintWorld::negate(Residues a) const {
  if (is_infinite(a)) return a == kPlusInfinity ? kMinusInfinity : kPlusInfinity;
  return {p_.sub(0, a.p), is_lost(a) ? kTop : q_.sub(0, a.q)};
}

Residues PrintWorld::mul(Residues a, Residues b) {
  if (is_infinite(a) || is_infinite(b)) return fail();
  return {p_.mul(a.p, b.p), is_lost(a) || is_lost(b) ? kTop : q_.mul(a.q, b.q)};
}

Residues PrintWorld::inverse(Residues a) {
  if (is_infinite(a)) return {};
  if (a.p == 0 || a.q == 0) return fail();
  return {p_.inverse(a.p), is_lost(a) ? kTop : q_.inverse(a.q)};
}

Residues PrintWorld::power(Residues a, int64_t exponent) {
  if (is_infinite(a)) return fail();
  const auto e = static_cast<uint64_t>(exponent);
  return {p_.pow(a.p, e), is_lost(a) ? kTop : q_.pow(a.q, e)};
}

Residues PrintWorld::exp(Residues a) const {
  if (a == kMinusInfinity) return {0, kTop};
  if (a == kPlusInfinity) return a;
  if (is_lost(a)) {
    return {hash(static_cast<uint64_t>(ir::Intrinsic::kExp), std::span(&a, 1)).p, kTop};
  }
  const uint32_t e = q_.residue(a.q);
  uint32_t out = p_.one;
  for (std::size_t byte = 0; byte < powers_.size(); ++byte) {
    out = p_.mul(out, powers_[byte][e >> (8 * byte) & 255]);
  }
  return {out, kTop};
}

// By residues modulo p alone, so that what was lost on the way makes no difference.
Residues PrintWorld::hash(uint64_t function, std::span<const Residues> args) const {
  uint64_t h = hash_combine(key_, function);
  for (const Residues& arg : args) h = hash_combine(h, arg.p);
  return {below(h, p_.m), below(mix64(h + key_), q_.m)};
}

Residues PrintWorld::call(ir::Intrinsic intrinsic, std::span<const Residues> args) {
  const Residues x = args[0];
  const Residues one = whole(1);
  switch (intrinsic) {
    case ir::Intrinsic::kExp: return exp(x);
    case ir::Intrinsic::kSigmoid: return inverse(add(one, exp(negate(x))));
    case ir::Intrinsic::kTanh: {
      // 1 - 2 / (1 + e^2x).
      const Residues two = add(one, one);
      return add(one, negate(mul(two, inverse(add(one, exp(add(x, x)))))));
    }
    case ir::Intrinsic::kSqrt:
      if (x.p == 0 || x.p == one.p || x == kPlusInfinity) return x;
      return hash(static_cast<uint64_t>(intrinsic), args);
    case ir::Intrinsic::kRsqrt: return inverse(call(ir::Intrinsic::kSqrt, args));
    case ir::Intrinsic::kFma: return add(mul(x, args[1]), args[2]);
    default: return hash(static_cast<uint64_t>(intrinsic), args);
  }
}

Residues PrintWorld::extreme(bool is_max, Residues a, Residues b) {
  const Residues neutral = is_max ? kMinusInfinity : kPlusInfinity;
  if (a.p == b.p || b == neutral) return a;
  if (a == neutral) return b;
  if (is_infinite(a) || is_infinite(b)) return is_infinite(a) ? a : b;
  auto& sets = sets_[is_max ? 0 : 1];
  std::vector<Residues> joined;
  for (const Residues& x : {a, b}) {
    const auto at = sets.find(x.p);
    if (at == sets.end()) {
      joined.push_back(x);
    } else {
      joined.insert(joined.end(), at->second.begin(), at->second.end());
    }
  }
  std::sort(joined.begin(), joined.end(), [](Residues x, Residues y) { return x.p < y.p; });
  joined.erase(
      std::unique(joined.begin(), joined.end(), [](Residues x, Residues y) { return x.p == y.p; }),
      joined.end());
  const Residues out = hash(is_max ? kMaxName : kMinName, joined);
  sets.try_emplace(out.p, std::move(joined));
  return out;
}

Fingerprints::Fingerprints(std::span<const Axis> axes, uint64_t seed)
    : axes_(axes.begin(), axes.end()) {
  for (const Axis& axis : axes_) {
    if (axis.extent < 2) {
      places_.push_back({0});
      weights_of_.push_back({axis.extent});
      continue;
    }
    Rng rng(seed, 2, static_cast<uint64_t>(axis.extent));
    const int64_t first = rng.between(1, axis.extent - 1);
    places_.push_back({0, rng.between(1, axis.extent - 1)});
    weights_of_.push_back({first, axis.extent - first});
  }
  for (uint64_t i = 0; i < kNumWorlds; ++i) worlds_.emplace_back(hash_combine(seed, i));
}

std::size_t Fingerprints::size_of(AxisSet axes) const {
  std::size_t size = 1;
  for (const AxisId a : axes_in(axes)) size *= places_[static_cast<std::size_t>(a)].size();
  return size;
}

// Where the element of `part` lies that belongs to each of `whole`.
const Fingerprints::Offsets& Fingerprints::offsets(AxisSet whole, AxisSet part) {
  Offsets& out = offsets_[hash_combine(whole, part)];
  if (!out.empty()) return out;
  out.assign(1, 0);
  for (const AxisId a : axes_in(whole)) {
    const std::size_t n = places_[static_cast<std::size_t>(a)].size();
    const bool is_in = (part & axis_bit(a)) != 0;
    Offsets next;
    for (const uint16_t offset : out) {
      for (std::size_t i = 0; i < n; ++i) {
        next.push_back(static_cast<uint16_t>(is_in ? offset * n + i : offset));
      }
    }
    out = std::move(next);
  }
  return out;
}

// For how many elements each of `whole` stands along the axes that a sum ends.
const std::vector<int64_t>& Fingerprints::weights(AxisSet whole, AxisSet bound) {
  std::vector<int64_t>& out = weights_[hash_combine(whole, bound)];
  if (!out.empty()) return out;
  out.assign(1, 1);
  for (const AxisId a : axes_in(whole)) {
    const auto at = static_cast<std::size_t>(a);
    std::vector<int64_t> next;
    for (const int64_t weight : out) {
      for (const int64_t w : weights_of_[at]) {
        next.push_back((bound & axis_bit(a)) != 0 ? weight * w : weight);
      }
    }
    out = std::move(next);
  }
  return out;
}

std::vector<int64_t> Fingerprints::places_at(AxisSet whole, std::size_t index) const {
  std::vector<int64_t> place(axes_.size(), 0);
  const std::vector<AxisId> axes = axes_in(whole);
  for (auto a = axes.rbegin(); a != axes.rend(); ++a) {
    const Places& places = places_[static_cast<std::size_t>(*a)];
    place[static_cast<std::size_t>(*a)] = places[index % places.size()];
    index /= places.size();
  }
  return place;
}

std::optional<TermValues> Fingerprints::of(const TermGraph& graph, TermId id) {
  if (const auto at = known_.find(id); at != known_.end()) return at->second;
  const Term& term = graph[id];
  std::vector<std::optional<TermValues>> values;
  std::vector<const TermValues*> args;
  for (const TermId arg : term.args) {
    values.push_back(of(graph, arg));
    if (!values.back()) return known_[id] = std::nullopt;
  }
  for (const std::optional<TermValues>& v : values) args.push_back(&*v);
  return known_[id] = apply(term, args);
}

std::optional<TermValues> Fingerprints::checked(TermValues values) {
  bool undefined = false;
  for (PrintWorld& world : worlds_) {
    undefined = undefined || world.undefined();
    world.forget_undefined();
  }
  return undefined ? std::nullopt : std::optional(std::move(values));
}

template <typename F>
TermValues Fingerprints::map(AxisSet free, std::span<const TermValues* const> args, F f) {
  const std::size_t size = size_of(free);
  std::vector<const Offsets*> at;
  std::vector<std::size_t> strides;
  for (const TermValues* arg : args) {
    at.push_back(&offsets(free, arg->free));
    strides.push_back(arg->values.size() / kNumWorlds);
  }
  TermValues out{free, {}};
  out.values.reserve(size * kNumWorlds);
  std::array<Residues, 3> x;
  for (std::size_t w = 0; w < kNumWorlds; ++w) {
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t a = 0; a < args.size(); ++a) {
        x[a] = args[a]->values[w * strides[a] + (*at[a])[i]];
      }
      out.values.push_back(f(worlds_[w], std::span<const Residues>(x.data(), args.size())));
    }
  }
  return out;
}

// Each denominator is inverted once.
TermValues Fingerprints::divide(const TermValues& a, const TermValues& b) {
  const TermValues* denominator = &b;
  const TermValues inverse =
      map(b.free, std::span(&denominator, 1),
          [](PrintWorld& world, std::span<const Residues> x) { return world.inverse(x[0]); });
  const std::array<const TermValues*, 2> args = {&a, &inverse};
  return map(a.free | b.free, args,
             [](PrintWorld& world, std::span<const Residues> x) { return world.mul(x[0], x[1]); });
}

TermValues Fingerprints::reduce(const Term& term, const TermValues& arg) {
  const AxisSet whole = arg.free | term.bound;
  const AxisSet free = arg.free & ~term.bound;
  const std::size_t size = size_of(free);
  const std::size_t stride = arg.values.size() / kNumWorlds;
  const std::vector<int64_t>& weight = weights(whole, term.bound);
  const Offsets& from = offsets(whole, arg.free);
  const Offsets& to = offsets(whole, free);
  TermValues out{free, std::vector<Residues>(size * kNumWorlds)};
  std::vector<char> begun(size * kNumWorlds, 0);
  for (std::size_t w = 0; w < kNumWorlds; ++w) {
    PrintWorld& world = worlds_[w];
    for (std::size_t i = 0; i < weight.size(); ++i) {
      Residues x = arg.values[w * stride + from[i]];
      const std::size_t at = w * size + to[i];
      Residues& sum = out.values[at];
      if (term.kind == ir::ExprKind::kAdd && !is_infinite(x)) {
        x = world.mul(x, world.whole(weight[i]));
      } else if (term.kind == ir::ExprKind::kMul) {
        x = world.power(x, weight[i]);
      }
      if (begun[at] == 0) {
        sum = x;
      } else if (term.kind == ir::ExprKind::kAdd) {
        sum = world.add(sum, x);
      } else if (term.kind == ir::ExprKind::kMul) {
        sum = world.mul(sum, x);
      } else {
        sum = world.extreme(term.kind == ir::ExprKind::kMax, sum, x);
      }
      begun[at] = 1;
    }
  }
  return out;
}

std::optional<TermValues> Fingerprints::contract(AxisSet bound, const TermValues& a,
                                                 const TermValues& b) {
  Term product;
  product.op = TermOp::kBinary;
  product.kind = ir::ExprKind::kMul;
  const std::array<const TermValues*, 2> args = {&a, &b};
  const std::optional<TermValues> whole = apply(product, args);
  if (!whole) return std::nullopt;
  Term sum;
  sum.op = TermOp::kReduce;
  sum.bound = bound;
  return checked(reduce(sum, *whole));
}

std::vector<Residues> Fingerprints::load(const Term& term) const {
  const std::size_t size = size_of(term.free);
  std::vector<Residues> out;
  for (const PrintWorld& world : worlds_) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::vector<int64_t> place = places_at(term.free, i);
      uint64_t name = static_cast<uint64_t>(term.buffer.value);
      for (const Subscript& s : term.index) {
        name = hash_combine(name, static_cast<uint64_t>(value_at(s, place)));
      }
      out.push_back(world.input(name));
    }
  }
  return out;
}

std::vector<Residues> Fingerprints::mask(const Term& term) const {
  const std::size_t size = size_of(term.free);
  std::vector<Residues> out;
  for (const PrintWorld& world : worlds_) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::vector<int64_t> place = places_at(term.free, i);
      const bool all = std::all_of(term.conditions.begin(), term.conditions.end(),
                                   [&](const Condition& c) { return holds(c, place); });
      out.push_back(world.whole(all ? 1 : 0));
    }
  }
  return out;
}

std::optional<TermValues> Fingerprints::apply(const Term& term,
                                              std::span<const TermValues* const> args) {
  AxisSet free = args.empty() ? term.free : 0;
  for (const TermValues* arg : args) free |= arg->free;
  if (std::popcount(free | term.bound) > kMaxFreeAxes) return std::nullopt;
  switch (term.op) {
    case TermOp::kLoad: return TermValues{free, load(term)};
    case TermOp::kMask: return TermValues{free, mask(term)};
    case TermOp::kConst:
      return map(0, args, [&](PrintWorld& world, auto) { return world.constant(term.value); });
    case TermOp::kBinary:
      if (term.kind == ir::ExprKind::kDiv) return checked(divide(*args[0], *args[1]));
      return checked(map(free, args, [&](PrintWorld& world, std::span<const Residues> x) {
        switch (term.kind) {
          case ir::ExprKind::kAdd: return world.add(x[0], x[1]);
          case ir::ExprKind::kSub: return world.add(x[0], world.negate(x[1]));
          case ir::ExprKind::kMul: return world.mul(x[0], x[1]);
          default: return world.extreme(term.kind == ir::ExprKind::kMax, x[0], x[1]);
        }
      }));
    case TermOp::kCall:
      return checked(map(free, args, [&](PrintWorld& world, std::span<const Residues> x) {
        return world.call(term.intrinsic, x);
      }));
    case TermOp::kSelect:
      return checked(map(free, args, [](PrintWorld&, std::span<const Residues> x) {
        return x[0].p != 0 ? x[1] : x[2];
      }));
    case TermOp::kCast: {
      // Of any kind: a sum of products in a wider type is not one in the narrow type, widened.
      const uint64_t name = hash_combine(kCastName, static_cast<uint64_t>(term.dtype));
      return checked(map(free, args, [&](PrintWorld& world, std::span<const Residues> x) {
        return world.hash(name, x);
      }));
    }
    case TermOp::kReduce: return checked(reduce(term, *args[0]));
  }
  PRUNERC_UNREACHABLE("term op");
}

Fingerprint Fingerprints::print(const TermValues& values) {
  FingerprintBuilder builder;
  builder.add(values.free);
  for (std::size_t i = 0; i + 1 < values.values.size(); i += 2) {
    builder.add(uint64_t{values.values[i].p} << 32 | values.values[i + 1].p);
  }
  return builder.finish();
}

}  // namespace prunerc::search::algebra
