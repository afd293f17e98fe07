#include "ir/fpv/world.h"

#include "ir/support/check.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace prunerc::ir {
namespace {

// Streams of the seed, and names of hashed functions that are no intrinsics.
enum : uint64_t {
  kPrimes = 1,
  kKeys,
  kInputs,
  kIntInputs,
  kConstant = 100,
  kNarrow,
  kToInt,
  kOrder,
};
// Exact up to here; what is beyond is an opaque constant.
constexpr int kMaxExponent = 200;

uint32_t prime_for(uint64_t seed, const PrimeRange& range, uint64_t pair) {
  Rng rng(seed, kPrimes, pair);
  return random_safe_prime(rng, range);
}

}  // namespace

FpWorld::FpWorld(uint64_t seed, const PrimeRange& range, OrderModel order, InputModel inputs,
                 WorldWidth width)
    : seed_(seed),
      key_(Rng(seed, kKeys).next()),
      p_(prime_for(seed, range, 0)),
      q_((p_.m - 1) / 2),
      p2_(width == WorldWidth::kTwo ? prime_for(seed, range, 1) : p_.m),
      q2_((p2_.m - 1) / 2),
      primes_(width == WorldWidth::kTwo ? FpPrimes{p_.m, q_.m, p2_.m, q2_.m}
                                        : FpPrimes{p_.m, q_.m, 0, 0}),
      order_(order),
      inputs_(inputs),
      small_limit_(p_.m > (1 << 20) ? 256 : 1),
      max_sets_(key_ + 1, primes_),
      min_sets_(key_ + 2, primes_) {
  Rng rng(seed, kKeys, 1);
  set_powers(rng, p_, &powers_);
  for (FpValue& low : lowest_) {
    low.p = static_cast<uint32_t>(rng.below(p_.m));
    low.q = static_cast<uint32_t>(rng.below(q_.m));
  }
  if (!is_wide()) return;
  Rng second(seed, kKeys, 2);
  set_powers(second, p2_, &powers2_);
  for (FpValue& low : lowest_) {
    low.p2 = static_cast<uint32_t>(second.below(p2_.m));
    low.q2 = static_cast<uint32_t>(second.below(q2_.m));
  }
}

// Of a random omega: squares other than 1 generate the subgroup of order q, which is prime.
void FpWorld::set_powers(Rng& rng, const Modulus& p, Powers* powers) {
  uint32_t omega = p.one;
  while (omega == p.one) {
    const auto root = static_cast<uint32_t>(1 + rng.below(p.m - 1));
    omega = p.mul(root, root);
  }
  for (std::array<uint32_t, 1 << kWindow>& row : *powers) {
    row[0] = p.one;
    for (std::size_t i = 1; i < row.size(); ++i) row[i] = p.mul(row[i - 1], omega);
    omega = p.mul(row.back(), omega);
  }
}

uint32_t FpWorld::power(const Powers& powers, const Modulus& p, uint32_t exponent) {
  constexpr uint32_t kMask = (1 << kWindow) - 1;
  const uint32_t low = p.mul(powers[0][exponent & kMask], powers[1][exponent >> kWindow & kMask]);
  return p.mul(low, powers[2][exponent >> (2 * kWindow)]);
}

// op(modulus, residue, residue) of all residues that there are.
template <typename Op>
FpValue FpWorld::each(FpValue a, FpValue b, const Op& op) const {
  const bool is_lost = a.is_lost() || b.is_lost();
  FpValue out = {op(p_, a.p, b.p), is_lost ? kLost : op(q_, a.q, b.q)};
  if (!is_wide()) return out;
  out.p2 = op(p2_, a.p2, b.p2);
  out.q2 = is_lost ? kLost : op(q2_, a.q2, b.q2);
  return out;
}

FpValue FpWorld::add(FpValue a, FpValue b) {
  if (a.is_special() || b.is_special()) {
    if (a.is_special() && b.is_special() && a != b) return undefined_value();
    return a.is_special() ? a : b;
  }
  return each(a, b, [](const Modulus& m, uint32_t x, uint32_t y) { return m.add(x, y); });
}

FpValue FpWorld::negate(FpValue a) const {
  if (a == kPlusInfinity) return kMinusInfinity;
  if (a == kMinusInfinity) return kPlusInfinity;
  return each({}, a, [](const Modulus& m, uint32_t x, uint32_t y) { return m.sub(x, y); });
}

FpValue FpWorld::mul(FpValue a, FpValue b) {
  if (a.is_special() || b.is_special()) return undefined_value();
  return each(a, b, [](const Modulus& m, uint32_t x, uint32_t y) { return m.mul(x, y); });
}

FpValue FpWorld::div(FpValue a, FpValue b) {
  if (b.is_special() && !a.is_special()) return {};
  if (a.is_special()) return undefined_value();
  if (b.p == 0 || b.q == 0 || (is_wide() && (b.p2 == 0 || b.q2 == 0))) {
    divided_by_zero_ = true;
    return {};
  }
  return each(a, b,
              [](const Modulus& m, uint32_t x, uint32_t y) { return m.mul(x, m.inverse(y)); });
}

FpValue FpWorld::of_int(int64_t value) const {
  FpValue out = {p_.of(value), q_.of(value)};
  if (!is_wide()) return out;
  out.p2 = p2_.of(value);
  out.q2 = q2_.of(value);
  return out;
}

bool FpWorld::is_opaque(double value, DType dtype) {
  return !std::isfinite(value) || std::fabs(value) == max_finite(dtype) ||
         std::abs(dyadic_of(value).exponent) > kMaxExponent;
}

FpValue FpWorld::of_float(double value, DType dtype) {
  if (std::isinf(value)) return value > 0 ? kPlusInfinity : kMinusInfinity;
  // The identities of max and min over finite values.
  if (value == -max_finite(dtype)) return lowest(dtype);
  if (value == max_finite(dtype)) return highest(dtype);
  if (is_opaque(value, dtype)) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    return hash(kConstant, {static_cast<uint32_t>(bits >> 32), static_cast<uint32_t>(bits)}, {});
  }
  const auto [odd, exponent] = dyadic_of(value);
  FpValue out = {p_.of_dyadic(odd, exponent), q_.of_dyadic(odd, exponent)};
  if (!is_wide()) return out;
  out.p2 = p2_.of_dyadic(odd, exponent);
  out.q2 = q2_.of_dyadic(odd, exponent);
  return out;
}

FpValue FpWorld::input(uint64_t buffer, int64_t position) const {
  constexpr uint64_t kFew = 3;
  uint64_t h = hash_combine(hash_combine(key_ + kInputs, buffer), static_cast<uint64_t>(position));
  if (inputs_ == InputModel::kFewValues) {
    if (common_ && h % kFew == 0) return *common_;
    h = hash_combine(key_, h % kFew);
  }
  return residues(h, mix64(h ^ key_), primes_);
}

int64_t FpWorld::int_input(DType dtype, uint64_t buffer, int64_t position, int64_t small) const {
  const uint64_t h =
      hash_combine(hash_combine(key_ + kIntInputs, buffer), static_cast<uint64_t>(position));
  if (!common_ints_.empty() && !is_bool(dtype) && (h >> 61) < 2) {
    return wrap_to(dtype, common_ints_[(h >> 8) % common_ints_.size()]);
  }
  if (dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kBool) {
    return wrap_to(dtype, static_cast<int64_t>(dtype == DType::kBool ? h & 1 : h));
  }
  // Wide integers may be positions: half of them are near the extents of the program. A quarter may
  // be any, so that sums and products wrap.
  if ((h & 1) != 0) return static_cast<int64_t>((h >> 1) % static_cast<uint64_t>(small + 3)) - 1;
  if ((h & 2) != 0) return wrap_to(dtype, static_cast<int64_t>(mix64(h)));
  return static_cast<int64_t>(h >> 43) - (int64_t{1} << 20);
}

FpValue FpWorld::hash(uint64_t function, FpValue x, FpValue y) const {
  const uint64_t h = y.hash(x.hash(key_ ^ function * 0x9E3779B97F4A7C15ULL));
  return residues(h, mix64(h + key_), primes_);
}

FpValue FpWorld::exp(FpValue x) {
  if (x == kMinusInfinity) return {};
  if (x == kPlusInfinity) return kPlusInfinity;
  if (x.is_lost()) {
    const bool is_zero = x.p == 0 && x.p2 == 0;
    const FpValue one = of_int(1);
    const FpValue h = is_zero ? one : hash(static_cast<uint64_t>(Intrinsic::kExp), x, {});
    return lost(h.p, h.p2);
  }
  return lost(power(powers_, p_, q_.residue(x.q)),
              is_wide() ? power(powers2_, p2_, q2_.residue(x.q2)) : 0);
}

FpValue FpWorld::call(Intrinsic intrinsic, FpValue x, FpValue y) {
  const FpValue one = of_int(1);
  int64_t whole = 0;
  switch (intrinsic) {
    case Intrinsic::kExp: return exp(x);
    case Intrinsic::kSigmoid: return div(one, add(one, exp(negate(x))));
    case Intrinsic::kTanh:
      // 1 - 2 / (1 + e^2x).
      return sub(one, div(add(one, one), add(one, exp(add(x, x)))));
    case Intrinsic::kRsqrt: return div(one, call(Intrinsic::kSqrt, x, y));
    case Intrinsic::kSqrt:
      if (!is_nonzero(x) || x == one || x == kPlusInfinity) return x;
      return hash(static_cast<uint64_t>(intrinsic), x, {});
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kRound:
      if (x.is_special() || small_int(x, &whole)) return x;
      return hash(static_cast<uint64_t>(intrinsic), x, {});
    case Intrinsic::kAbs:
      if (x.is_special()) return kPlusInfinity;
      if (small_int(x, &whole)) return of_int(std::abs(whole));
      return hash(static_cast<uint64_t>(intrinsic), x, {});
    case Intrinsic::kLog:
    case Intrinsic::kErf:
    case Intrinsic::kSin:
    case Intrinsic::kCos: return hash(static_cast<uint64_t>(intrinsic), x, {});
    case Intrinsic::kPow: return hash(static_cast<uint64_t>(intrinsic), x, y);
    case Intrinsic::kFma: break;  // compiled to a product and a sum
  }
  PRUNERC_UNREACHABLE("intrinsic");
}

bool FpWorld::small_int(FpValue x, int64_t* value) const {
  if (x.is_special()) return false;
  // Of what has one residue few are taken for small ones by chance.
  const int64_t limit = x.is_lost() ? 1 : small_limit_;
  const auto r = static_cast<int64_t>(p_.residue(x.p));
  const int64_t v = r <= limit ? r : r - static_cast<int64_t>(p_.m);
  if (v < -limit) return false;
  *value = v;
  const FpValue whole = of_int(v);
  return x.p2 == whole.p2 && (x.is_lost() || (x.q == whole.q && x.q2 == whole.q2));
}

FpValue FpWorld::narrow(DType to, FpValue x) {
  int64_t whole = 0;
  if (x.is_special() || small_int(x, &whole)) return x;
  return hash(hash_combine(kNarrow, static_cast<uint64_t>(to)), x, {});
}

int64_t FpWorld::to_int(DType to, FpValue x) {
  if (x == kPlusInfinity) return max_int(to);
  if (x == kMinusInfinity) return min_int(to);
  int64_t whole = 0;
  if (small_int(x, &whole)) return saturate_to(to, static_cast<double>(whole));
  const FpValue h = hash(hash_combine(kToInt, static_cast<uint64_t>(to)), x, {});
  return wrap_to(to, static_cast<int32_t>(h.p * 2 + (h.q & 1)));
}

uint64_t FpWorld::rank(FpValue x) const {
  constexpr uint64_t kStep = uint64_t{1} << 61;
  if (x == kMinusInfinity) return 0;
  if (x == kPlusInfinity) return 4 * kStep;
  uint64_t nearer = 0;
  for (DType t : {DType::kF64, DType::kF32, DType::kBF16, DType::kF16}) {  // largest range first
    if (agree(x, lowest(t))) return kStep + nearer;
    if (agree(x, highest(t))) return 3 * kStep - nearer;
    ++nearer;
  }
  // Equals have one rank, with and without residues modulo q.
  const FpValue seen = {x.p, kLost, x.p2, 0};
  return 2 * kStep - kStep / 2 + (seen.hash(key_ + kOrder) >> 5);
}

bool FpWorld::less(FpValue a, FpValue b) const {
  const uint64_t x = rank(a), y = rank(b);
  if (x != y) return x < y;
  return !agree(a, b) && std::pair(a.q, a.q2) < std::pair(b.q, b.q2);
}

FpValue FpWorld::max(DType dtype, FpValue a, FpValue b) {
  if (a == b || b == kMinusInfinity || a == kPlusInfinity) return a;
  if (a == kMinusInfinity || b == kPlusInfinity) return b;
  if (order_ == OrderModel::kOrdered) return less(a, b) ? b : a;
  const FpValue low = lowest(dtype);
  if (a == low) return b;
  if (b == low) return a;
  return max_sets_.join(a, b);
}

FpValue FpWorld::min(DType dtype, FpValue a, FpValue b) {
  if (a == b || b == kPlusInfinity || a == kMinusInfinity) return a;
  if (a == kPlusInfinity || b == kMinusInfinity) return b;
  if (order_ == OrderModel::kOrdered) return less(b, a) ? b : a;
  const FpValue high = highest(dtype);
  if (a == high) return b;
  if (b == high) return a;
  return min_sets_.join(a, b);
}

FpValue FpWorld::extreme(Extreme which, DType dtype, FpValue a, std::span<const FpValue> values) {
  const bool is_max = which == Extreme::kMax;
  const auto one = [&](FpValue x, FpValue y) {
    return is_max ? max(dtype, x, y) : min(dtype, x, y);
  };
  const FpValue neutral = is_max ? lowest(dtype) : highest(dtype);
  bool plain = order_ == OrderModel::kSets && !a.is_special() && a != neutral;
  for (const FpValue& v : values) plain = plain && !v.is_special() && v != neutral;
  if (plain) return (is_max ? max_sets_ : min_sets_).join(a, values);
  for (const FpValue& v : values) a = one(a, v);
  return a;
}

}  // namespace prunerc::ir
