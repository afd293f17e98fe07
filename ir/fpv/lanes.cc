#include "ir/fpv/lanes.h"

#include <immintrin.h>

#include <algorithm>

namespace prunerc::ir {
namespace {

constexpr int kStep = 8;  // 32-bit lanes of a 256-bit register

__m256i load(const uint32_t* at) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(at)); }
void store(uint32_t* at, __m256i v) { _mm256_store_si256(reinterpret_cast<__m256i*>(at), v); }

struct VectorModulus {
  __m256i m, minus_inverse;
  explicit VectorModulus(const Modulus& of)
      : m(_mm256_set1_epi32(static_cast<int>(of.m))),
        minus_inverse(_mm256_set1_epi32(static_cast<int>(of.minus_inverse))) {}

  // x or x - m, whichever is in [0, m), for x < 2m: the other one is larger as an unsigned number.
  __m256i once(__m256i x) const { return _mm256_min_epu32(x, _mm256_sub_epi32(x, m)); }
  __m256i add(__m256i a, __m256i b) const { return once(_mm256_add_epi32(a, b)); }
  __m256i sub(__m256i a, __m256i b) const {
    const __m256i d = _mm256_sub_epi32(a, b);
    return _mm256_min_epu32(d, _mm256_add_epi32(d, m));
  }
  __m256i half(__m256i a, __m256i b) const {
    const __m256i t = _mm256_mul_epu32(a, b);
    const __m256i k = _mm256_mul_epu32(t, minus_inverse);
    return _mm256_add_epi64(t, _mm256_mul_epu32(k, m));
  }
  __m256i mul(__m256i a, __m256i b) const {
    const __m256i even = half(a, b);
    const __m256i odd = half(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return once(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA));
  }
};

enum class FieldOp { kAdd, kSub, kMul };

template <FieldOp op>
__m256i apply(const VectorModulus& f, __m256i a, __m256i b) {
  if (op == FieldOp::kAdd) return f.add(a, b);
  if (op == FieldOp::kSub) return f.sub(a, b);
  return f.mul(a, b);
}

template <FieldOp op>
FpValue apply(FpWorld& world, FpValue a, FpValue b) {
  if (op == FieldOp::kAdd) return world.add(a, b);
  if (op == FieldOp::kSub) return world.sub(a, b);
  return world.mul(a, b);
}

template <FieldOp op>
void apply_all(const Modulus& modulus, uint32_t* a, const uint32_t* b, int n) {
  const VectorModulus f(modulus);
  for (int i = 0; i < n; i += kStep) store(a + i, apply<op>(f, load(a + i), load(b + i)));
}

// q residues where some lanes have none: those stay lost.
template <FieldOp op>
void apply_lost(const Modulus& modulus, uint32_t* a, const uint32_t* b, int n) {
  const VectorModulus f(modulus);
  const __m256i lost = _mm256_set1_epi32(static_cast<int>(kLost));
  for (int i = 0; i < n; i += kStep) {
    const __m256i x = load(a + i);
    const __m256i y = load(b + i);
    const __m256i is_lost = _mm256_and_si256(_mm256_or_si256(x, y), lost);
    const __m256i r = apply<op>(f, _mm256_andnot_si256(lost, x), _mm256_andnot_si256(lost, y));
    const __m256i all = _mm256_srai_epi32(is_lost, 31);
    store(a + i, _mm256_or_si256(_mm256_andnot_si256(all, r), is_lost));
  }
}

template <FieldOp op>
void apply_q(const Modulus& modulus, bool may_be_lost, uint32_t* a, const uint32_t* b, int n) {
  if (may_be_lost) return apply_lost<op>(modulus, a, b, n);
  apply_all<op>(modulus, a, b, n);
}

template <FieldOp op>
void binary(FpWorld& world, FloatLanes& a, FloatLanes& b, int n) {
  const bool is_uniform = a.is_uniform && b.is_uniform;
  if (is_uniform) {
    a.set_uniform(apply<op>(world, a.at(0), b.at(0)));
    return;
  }
  a.spread(n);
  b.spread(n);
  a.may_be_lost |= b.may_be_lost;
  if (a.may_be_special || b.may_be_special) {
    for (int i = 0; i < n; ++i) a.set(i, apply<op>(world, a.at(i), b.at(i)));
    a.find_flags(n);
    return;
  }
  apply_all<op>(world.p(), a.p, b.p, n);
  apply_q<op>(world.q(), a.may_be_lost, a.q, b.q, n);
  if (!world.is_wide()) return;
  apply_all<op>(world.p2(), a.p2, b.p2, n);
  apply_q<op>(world.q2(), a.may_be_lost, a.q2, b.q2, n);
}

// 1/a modulo the prime of f, by Fermat, in lanes that are not 0.
void invert(const Modulus& f, const uint32_t* a, uint32_t* out, int n) {
  const VectorModulus v(f);
  for (int i = 0; i < n; i += kStep) {
    __m256i base = load(a + i);
    __m256i result = _mm256_set1_epi32(static_cast<int>(f.one));
    for (uint32_t e = f.m - 2; e > 0; e >>= 1) {
      if ((e & 1) != 0) result = v.mul(result, base);
      base = v.mul(base, base);
    }
    store(out + i, result);
  }
}

// The same of q residues, some of which may be lost and stay so.
void invert_q(const Modulus& f, const uint32_t* a, bool may_be_lost, uint32_t* out, int n) {
  if (!may_be_lost) return invert(f, a, out, n);
  for (int i = 0; i < n; ++i) out[i] = a[i] >> 31 != 0 ? kLost : f.inverse(a[i]);
}

// The sum of n residues, lost if one of them is.
uint32_t sum_residues(const Modulus& f, const uint32_t* a, int n) {
  uint64_t sum = 0;
  uint32_t any = 0;
  for (int i = 0; i < n; ++i) {
    sum += a[i];
    any |= a[i];
  }
  return (any & kLost) != 0 ? kLost : static_cast<uint32_t>(sum % f.m);
}

}  // namespace

void FloatLanes::spread(int n) {
  if (!is_uniform) return;
  std::fill(p + 1, p + n, p[0]);
  std::fill(q + 1, q + n, q[0]);
  std::fill(p2 + 1, p2 + n, p2[0]);
  std::fill(q2 + 1, q2 + n, q2[0]);
  is_uniform = false;
}

void FloatLanes::find_flags(int n) {
  uint32_t any_p = 0;
  uint32_t any_q = 0;
  for (int i = 0; i < n; ++i) {
    any_p |= p[i];
    any_q |= q[i];
  }
  may_be_special = (any_p & kLost) != 0;
  may_be_lost = (any_q & kLost) != 0;
}

void IntLanes::spread(int n) {
  if (!is_uniform) return;
  std::fill(v + 1, v + n, v[0]);
  is_uniform = false;
}

void add_lanes(FpWorld& world, FloatLanes& a, FloatLanes& b, int n) {
  binary<FieldOp::kAdd>(world, a, b, n);
}
void sub_lanes(FpWorld& world, FloatLanes& a, FloatLanes& b, int n) {
  binary<FieldOp::kSub>(world, a, b, n);
}
void mul_lanes(FpWorld& world, FloatLanes& a, FloatLanes& b, int n) {
  binary<FieldOp::kMul>(world, a, b, n);
}

void div_lanes(FpWorld& world, FloatLanes& a, FloatLanes& b, const Mask* mask, int n) {
  if (a.is_uniform && b.is_uniform) {
    a.set_uniform(world.div(a.at(0), b.at(0)));
    return;
  }
  const bool is_wide = world.is_wide();
  const auto divides = [&](int i) {
    return b.p[i] != 0 && b.q[i] != 0 && (!is_wide || (b.p2[i] != 0 && b.q2[i] != 0));
  };
  bool plain = !a.may_be_special && !b.may_be_special && !b.is_uniform;
  for (int i = 0; plain && i < n; ++i) {
    plain = divides(i) && (mask == nullptr || mask->on[i] != 0);
  }
  if (!plain) {
    if (b.is_uniform && !b.may_be_special && divides(0) && !b.may_be_lost) {
      b.set_uniform(world.div(world.of_int(1), b.at(0)));
      return binary<FieldOp::kMul>(world, a, b, n);
    }
    a.spread(n);
    for (int i = 0; i < n; ++i) {
      const bool counts = mask == nullptr || mask->on[i] != 0;
      a.set(i, counts ? world.div(a.at(i), b.at(i)) : FpValue{});
    }
    return a.find_flags(n);
  }
  FloatLanes inverse;
  invert(world.p(), b.p, inverse.p, n);
  invert_q(world.q(), b.q, b.may_be_lost, inverse.q, n);
  if (is_wide) {
    invert(world.p2(), b.p2, inverse.p2, n);
    invert_q(world.q2(), b.q2, b.may_be_lost, inverse.q2, n);
  }
  inverse.may_be_lost = b.may_be_lost;
  binary<FieldOp::kMul>(world, a, inverse, n);
}

FpValue sum_lanes(FpWorld& world, const FloatLanes& a, const Mask* mask, int n) {
  if (a.may_be_special || mask != nullptr || a.is_uniform) {
    FpValue sum;
    for (int i = 0; i < n; ++i) {
      if (mask == nullptr || mask->on[i] != 0) sum = world.add(sum, a.at(i));
    }
    return sum;
  }
  FpValue out = {sum_residues(world.p(), a.p, n), sum_residues(world.q(), a.q, n)};
  if (!world.is_wide()) return out;
  out.p2 = sum_residues(world.p2(), a.p2, n);
  out.q2 = sum_residues(world.q2(), a.q2, n);
  return out;
}

}  // namespace prunerc::ir
