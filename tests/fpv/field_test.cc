// Residues against 64-bit arithmetic, primes against trial division, and the laws of values.
#include "ir/fpv/field.h"

#include "ir/fpv/world.h"

#include <catch2/catch.hpp>

#include <set>

namespace prunerc::ir {
namespace {

bool prime_by_division(uint32_t n) {
  if (n < 2) return false;
  for (uint32_t d = 2; uint64_t{d} * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

TEST_CASE("residues agree with 64-bit arithmetic") {
  Rng rng(1);
  for (uint32_t m : {3U, 23U, 11U, 2147481143U, 1073740571U}) {
    const Modulus f(m);
    for (int i = 0; i < 2000; ++i) {
      const auto x = static_cast<int64_t>(rng.below(m));
      const auto y = static_cast<int64_t>(rng.below(m));
      const uint32_t a = f.of(x);
      const uint32_t b = f.of(y);
      REQUIRE(f.residue(a) == static_cast<uint32_t>(x));
      REQUIRE(f.residue(f.add(a, b)) == static_cast<uint32_t>((x + y) % m));
      REQUIRE(f.residue(f.sub(a, b)) == static_cast<uint32_t>((x + m - y) % m));
      REQUIRE(f.residue(f.mul(a, b)) ==
              static_cast<uint32_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y) % m));
      REQUIRE(f.of(x - static_cast<int64_t>(m)) == a);
      if (x != 0 && prime_by_division(m)) REQUIRE(f.mul(a, f.inverse(a)) == f.one);
    }
  }
}

TEST_CASE("dyadic fractions are exact") {
  const Modulus f(2147481143U);
  CHECK(f.mul(f.of_dyadic(3, -5), f.of(32)) == f.of(3));
  CHECK(f.of_dyadic(3, 5) == f.of(96));
  CHECK(f.of_dyadic(-1, -1) == f.sub(0, f.inverse(f.of(2))));
}

TEST_CASE("a finite number is odd times a power of two") {
  CHECK(dyadic_of(-96).odd == -3);
  CHECK(dyadic_of(-96).exponent == 5);
  CHECK(dyadic_of(0.15625).odd == 5);
  CHECK(dyadic_of(0.15625).exponent == -5);
  CHECK(dyadic_of(0).odd == 0);
}

TEST_CASE("the primality test agrees with trial division") {
  for (uint32_t n = 0; n < 20000; ++n) REQUIRE(is_prime(n) == prime_by_division(n));
  // Strong pseudoprimes to several of the bases.
  for (uint32_t n : {2047U, 1373653U, 25326001U, 3215031751U, 4294967295U})
    CHECK_FALSE(is_prime(n));
  CHECK(is_prime(4294967291U));
  CHECK(is_prime(2147483647U));
}

TEST_CASE("random primes are safe, leave 7 modulo 8, and come from many") {
  std::set<uint32_t> seen;
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    const uint32_t p = random_safe_prime(rng);
    REQUIRE(p % 8 == 7);
    REQUIRE(p >= uint32_t{1} << 30);
    REQUIRE(prime_by_division(p));
    REQUIRE(prime_by_division((p - 1) / 2));
    seen.insert(p);
  }
  CHECK(seen.size() >= 198);
  Rng first(9);
  Rng second(9);
  CHECK(random_safe_prime(first) == random_safe_prime(second));
}

TEST_CASE("the pool of primes is as large as the bound says") {
  // Every 257th number of the right form: the count is within five standard deviations.
  int64_t found = 0;
  int64_t tried = 0;
  for (uint64_t p = (uint64_t{1} << 30) + 7; p < (uint64_t{1} << 31); p += 8 * 257) {
    ++tried;
    found += is_prime(static_cast<uint32_t>(p)) && is_prime(static_cast<uint32_t>(p / 2)) ? 1 : 0;
  }
  const double expected = kNumSafePrimes / 257;
  CHECK(tried > 500'000);
  CHECK(static_cast<double>(found) > expected - 5 * 57);
  CHECK(static_cast<double>(found) < expected + 5 * 57);
}

struct Laws {
  FpWorld world{42, {}, OrderModel::kSets};
  FpValue x = world.input(0, 0);
  FpValue y = world.input(0, 1);
  FpValue z = world.input(0, 2);
};

TEST_CASE("values obey the laws of fields") {
  Laws l;
  FpWorld& w = l.world;
  CHECK(w.add(l.x, w.add(l.y, l.z)) == w.add(w.add(l.x, l.y), l.z));
  CHECK(w.mul(l.x, w.add(l.y, l.z)) == w.add(w.mul(l.x, l.y), w.mul(l.x, l.z)));
  CHECK(w.mul(w.div(l.x, l.y), l.y) == l.x);
  CHECK(w.sub(l.x, l.x) == FpValue{});
  CHECK(w.mul(w.of_float(0.375, DType::kF32), w.of_int(8)) == w.of_int(3));
}

TEST_CASE("residues of hashes are as many for each residue") {
  // Of numbers of 32 bits some residues would have one and some two.
  const uint32_t m = 3221225471;
  const uint64_t step = ~uint64_t{0} / m;
  for (const uint64_t r : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    CHECK(hash_below(r * step + r + 1, m) == r);
    CHECK(hash_below(r * step + step - 8, m) == r);
  }
  CHECK(hash_below(~uint64_t{0}, m) == m - 1);
}

TEST_CASE("wide worlds obey the laws of fields modulo both pairs of primes") {
  FpWorld w(42, {}, OrderModel::kSets, InputModel::kAllDifferent, WorldWidth::kTwo);
  const FpWorld narrow(42, {}, OrderModel::kSets);
  CHECK(w.is_wide());
  CHECK_FALSE(narrow.is_wide());
  CHECK(w.p().m == narrow.p().m);
  CHECK(w.p2().m != w.p().m);
  const FpValue x = w.input(0, 0);
  const FpValue y = w.input(0, 1);
  const FpValue z = w.input(0, 2);
  CHECK(x.p == narrow.input(0, 0).p);
  CHECK(x.p2 < w.p2().m);
  CHECK(x.q2 < w.q2().m);
  CHECK(w.mul(x, w.add(y, z)) == w.add(w.mul(x, y), w.mul(x, z)));
  CHECK(w.mul(w.div(x, y), y) == x);
  CHECK(w.sub(x, x) == FpValue{});
  CHECK(w.mul(w.of_float(0.375, DType::kF32), w.of_int(8)) == w.of_int(3));
  CHECK(w.exp(w.add(x, y)) == w.mul(w.exp(x), w.exp(y)));
  CHECK(w.exp(w.sub(x, x)).p2 == w.p2().one);
  CHECK(w.exp(w.exp(x)) != w.exp(w.exp(y)));
  CHECK(w.narrow(DType::kF16, w.of_int(7)) == w.of_int(7));
  CHECK(w.narrow(DType::kF16, x).p2 != x.p2);
  // Equal modulo one pair alone is not equal.
  FpValue other = x;
  other.p2 = y.p2;
  CHECK(w.narrow(DType::kF16, other) != w.narrow(DType::kF16, x));
  CHECK(w.max(DType::kF32, other, x) != x);
  const FpValue all = w.max(DType::kF32, w.max(DType::kF32, x, y), z);
  CHECK(w.max(DType::kF32, z, w.max(DType::kF32, y, x)) == all);
  CHECK(w.max(DType::kF32, all, y) == all);
}

TEST_CASE("exponentials of sums are products") {
  Laws l;
  FpWorld& w = l.world;
  CHECK(w.exp(w.add(l.x, l.y)).p == w.mul(w.exp(l.x), w.exp(l.y)).p);
  CHECK(w.exp(w.sub(l.x, l.x)).p == w.p().one);
  CHECK(w.exp(l.x).p != w.exp(l.y).p);
  CHECK(w.exp(l.x).is_lost());
  CHECK(w.exp(kMinusInfinity) == FpValue{});
  // The sigmoid of -x is one minus that of x.
  const FpValue one = w.of_int(1);
  CHECK(w.call(Intrinsic::kSigmoid, w.negate(l.x), {}).p ==
        w.sub(one, w.call(Intrinsic::kSigmoid, l.x, {})).p);
  // tanh is odd.
  CHECK(w.call(Intrinsic::kTanh, w.negate(l.x), {}).p ==
        w.negate(w.call(Intrinsic::kTanh, l.x, {})).p);
}

TEST_CASE("an exponential of an exponential depends on its argument") {
  Laws l;
  FpWorld& w = l.world;
  CHECK(w.exp(w.exp(l.x)) == w.exp(w.exp(l.x)));
  CHECK(w.exp(w.exp(l.x)).p != w.exp(w.exp(l.y)).p);
}

TEST_CASE("maxima do not depend on order, grouping or repetition") {
  Laws l;
  FpWorld& w = l.world;
  const auto max = [&](FpValue a, FpValue b) { return w.max(DType::kF32, a, b); };
  const FpValue all = max(max(l.x, l.y), l.z);
  CHECK(all == max(l.z, max(l.y, l.x)));
  CHECK(max(all, l.y) == all);
  CHECK(max(l.y, all) == all);
  CHECK(max(max(l.x, l.y), max(l.y, l.z)) == all);
  CHECK(max(l.x, l.x) == l.x);
  CHECK(max(l.x, kMinusInfinity) == l.x);
  CHECK(max(w.of_float(-max_finite(DType::kF32), DType::kF32), l.x) == l.x);
  CHECK(max(l.x, l.y) != all);
  CHECK(max(l.x, l.y) != l.x);
  CHECK(max(l.x, l.y) != w.min(DType::kF32, l.x, l.y));
}

TEST_CASE("sets of thousands of values are told apart by one") {
  FpWorld w(3, {}, OrderModel::kSets);
  const auto over = [&](int from, int to, int without) {
    FpValue m = kMinusInfinity;
    for (int i = from; i < to; ++i) {
      if (i != without) m = w.max(DType::kF32, m, w.input(0, i));
    }
    return m;
  };
  const FpValue all = over(0, 3000, -1);
  CHECK(w.max(DType::kF32, over(1000, 3000, -1), over(0, 1200, -1)) == all);
  for (int i : {0, 1, 1500, 2999}) CHECK(over(0, 3000, i) != all);
}

TEST_CASE("one order rules comparisons and maxima") {
  FpWorld w(5, {}, OrderModel::kOrdered);
  for (int i = 0; i < 200; ++i) {
    const FpValue a = w.input(0, i);
    const FpValue b = w.input(0, i + 1);
    const FpValue c = w.input(0, i + 2);
    REQUIRE(w.less(a, b) != w.less(b, a));
    if (w.less(a, b) && w.less(b, c)) REQUIRE(w.less(a, c));
    REQUIRE(w.max(DType::kF32, a, b) == (w.less(a, b) ? b : a));
    REQUIRE(w.less(kMinusInfinity, a));
    REQUIRE(w.less(w.of_float(-max_finite(DType::kF16), DType::kF16), a));
    REQUIRE(w.less(a, kPlusInfinity));
  }
}

TEST_CASE("small whole numbers survive conversions, others are hashed") {
  Laws l;
  FpWorld& w = l.world;
  for (int v : {-256, -1, 0, 1, 7, 256}) {
    CHECK(w.narrow(DType::kBF16, w.of_int(v)) == w.of_int(v));
    CHECK(w.to_int(DType::kI32, w.of_int(v)) == v);
    CHECK(w.call(Intrinsic::kRound, w.of_int(v), {}) == w.of_int(v));
  }
  CHECK(w.call(Intrinsic::kAbs, w.of_int(-3), {}) == w.of_int(3));
  CHECK(w.to_int(DType::kU8, w.of_int(-3)) == 0);
  CHECK(w.narrow(DType::kF16, l.x) == w.narrow(DType::kF16, l.x));
  CHECK(w.narrow(DType::kF16, l.x) != l.x);
  CHECK(w.narrow(DType::kF16, l.x) != w.narrow(DType::kBF16, l.x));
}

TEST_CASE("infinities whose sign would matter make a world undefined") {
  Laws l;
  CHECK_FALSE(l.world.undefined());
  CHECK(l.world.add(kMinusInfinity, l.x) == kMinusInfinity);
  CHECK(l.world.div(l.x, kPlusInfinity) == FpValue{});
  CHECK_FALSE(l.world.undefined());
  (void)l.world.mul(kMinusInfinity, l.x);
  CHECK(l.world.undefined());
}

TEST_CASE("constants are exact but for the extremes of their type and what is far from 1") {
  for (const double x : {0.0, -3.0, 65504.0, 0.1, 1e30}) {
    CHECK_FALSE(FpWorld::is_opaque(x, DType::kF32));
  }
  CHECK(FpWorld::is_opaque(65504, DType::kF16));
  CHECK(FpWorld::is_opaque(-max_finite(DType::kF32), DType::kF32));
  for (const double x : {1e200, 1e-200}) CHECK(FpWorld::is_opaque(x, DType::kF64));
}

TEST_CASE("division by zero is noted") {
  Laws l;
  CHECK_FALSE(l.world.divided_by_zero());
  (void)l.world.div(l.x, FpValue{});
  CHECK(l.world.divided_by_zero());
}

}  // namespace
}  // namespace prunerc::ir
