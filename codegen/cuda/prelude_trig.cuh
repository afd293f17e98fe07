// f32 sine and cosine, the same text on the device and on the host. CUDA's own keep an array in the
// thread's memory for arguments beyond 10^5, whether or not one comes.

// Word i of 0 and the first bits of 2 / pi; no table, which a thread would keep as an array.
PR_FN unsigned pr_two_over_pi_(int i) {
  const unsigned a = i < 2 ? (i < 1 ? 0u : 0xa2f9836eu) : (i < 3 ? 0x4e441529u : 0xfc2757d1u);
  const unsigned b = i < 6 ? (i < 5 ? 0xf534ddc0u : 0xdb629599u) : (i < 7 ? 0x3c439041u : 0xfe5163abu);
  return i < 4 ? a : b;
}
// |x| = m 2^e, m of 24 bits. Bits of 2 / pi whose products with it are whole turns are left out, the
// next 96 give the quadrant and 62 bits of what is left. Source: Payne and Hanek 1983.
PR_FN float pr_large_angle_(float x, int& quadrant) {
  const unsigned bits = pr_bits_(x);
  const unsigned m = (bits & 0x7fffff) | 0x800000;
  const int at = (int)(bits >> 23 & 255) - 150 + 30;
  const int i = at >> 5, shift = at & 31;
  const unsigned w0 = pr_two_over_pi_(i), w1 = pr_two_over_pi_(i + 1);
  const unsigned w2 = pr_two_over_pi_(i + 2), w3 = pr_two_over_pi_(i + 3);
  const unsigned high = (unsigned)(((pr_u64)w0 << 32 | w1) << shift >> 32);
  const unsigned middle = (unsigned)(((pr_u64)w1 << 32 | w2) << shift >> 32);
  const unsigned low = (unsigned)(((pr_u64)w2 << 32 | w3) << shift >> 32);
  const pr_u64 turn =
      ((pr_u64)(m * high) << 32) + (pr_u64)m * middle + ((pr_u64)m * low >> 32);
  const int q = (int)(turn >> 62) + (int)(turn >> 61 & 1);
  const float r = (float)((double)(pr_i64)(turn << 2) * 8.515303950216386e-20);  // pi / 2^65
  quadrant = (int)bits < 0 ? -q : q;
  return (int)bits < 0 ? -r : r;
}
// x = quadrant pi / 2 + what is returned.
PR_FN float pr_angle_(float x, int& quadrant) {
  const float a = pr_abs(x);
  if (!(a < 65536.0f)) {
    if (!(a <= 3.4028235e38f)) return x - x;
    return pr_large_angle_(x, quadrant);
  }
  const float n = pr_round(x * 0.63661977f);
  quadrant = (int)n;
  // pi / 2 in three parts.
  const float r = pr_fma(n, 4.3711388e-8f, pr_fma(n, -1.5707964f, x));
  return pr_fma(n, 1.7151245e-15f, r);
}
PR_FN float pr_by_quadrant_(float r, int quadrant) {
  const float z = r * r;
  float s = pr_fma(z, 2.7557319e-6f, -1.9841270e-4f);
  s = pr_fma(z, s, 8.3333333e-3f);
  s = pr_fma(z, s, -1.6666667e-1f);
  s = pr_fma(r * z, s, r);
  float c = pr_fma(z, -2.7557319e-7f, 2.4801587e-5f);
  c = pr_fma(z, c, -1.3888889e-3f);
  c = pr_fma(z, c, 4.1666667e-2f);
  c = pr_fma(z, c, -0.5f);
  c = pr_fma(z, c, 1.0f);
  const float value = quadrant & 1 ? c : s;
  return quadrant & 2 ? -value : value;
}
PR_FN float pr_sin(float x) {
  int quadrant = 0;
  const float r = pr_angle_(x, quadrant);
  return x == 0.0f ? x : pr_by_quadrant_(r, quadrant);
}
PR_FN float pr_cos(float x) {
  int quadrant = 0;
  const float r = pr_angle_(x, quadrant);
  return pr_by_quadrant_(r, quadrant + 1);
}
