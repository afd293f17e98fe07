// The wrappers that emitted kernels are written in, for a C++17 compiler: the same names as in
// prelude_device.cuh and prelude_hopper.cuh. runtime/cuda_host/abi.h is pasted in front.
#define PR_KERNEL(threads, min_blocks) extern "C"
#define PR_CLUSTER_KERNEL(threads, min_blocks, blocks) extern "C"
#define PR_RESTRICT __restrict__
#define PR_GRID_CONSTANT
#define PR_ALIGN(n) __attribute__((aligned(n)))
// A race checker names the calls that lead to an access; a wrapper that is not inlined is one.
#ifdef PR_CHECKED
#define PR_FN static __attribute__((noinline))
#else
#define PR_FN static inline __attribute__((always_inline))
#endif
#define PR_SHARED(name, bytes) unsigned char* const name = pr_shared_(bytes)

typedef long long pr_i64;
typedef unsigned long long pr_u64;
typedef __UINTPTR_TYPE__ pr_address_;
struct pr_f16 { unsigned short bits; };
struct pr_bf16 { unsigned short bits; };
struct pr_tf32 {};
typedef PrHostTensorMap pr_tensor_map;

static const PrHostApi* pr_api_;
extern "C" __attribute__((visibility("default"))) void PR_HOST_ATTACH(const PrHostApi* api) {
  pr_api_ = api;
}
PR_FN PrHostThread* pr_self_() {
  const pr_address_ frame = (pr_address_)__builtin_frame_address(0);
  return (PrHostThread*)((frame | (kPrHostStackBytes - 1)) + 1) - 1;
}
PR_FN unsigned char* pr_shared_(long long bytes) {
  PrHostThread* const self = pr_self_();
  if (self->shared_bytes < bytes)
    pr_api_->fault(self, "the kernel declares more shared memory than the launch gives it");
  return self->shared;
}
PR_FN int pr_block_x() { return pr_self_()->block[0]; }
PR_FN int pr_block_y() { return pr_self_()->block[1]; }
PR_FN int pr_block_z() { return pr_self_()->block[2]; }
PR_FN int pr_thread_x() { return pr_self_()->thread[0]; }
PR_FN int pr_thread_y() { return pr_self_()->thread[1]; }
PR_FN int pr_thread_z() { return pr_self_()->thread[2]; }

// ---- Meeting points. ----
PR_FN void pr_sync() { pr_api_->barrier(pr_self_(), 0, 0, 1); }
PR_FN void pr_bar_sync(int id, int threads) { pr_api_->barrier(pr_self_(), id, threads, 1); }
PR_FN void pr_bar_arrive(int id, int threads) { pr_api_->barrier(pr_self_(), id, threads, 0); }
PR_FN void pr_warp_(PrHostOp op, int size, int arg, const void* in0, const void* in1, void* out) {
  const PrHostCollective c = {op, size, arg, in0, in1, out};
  pr_api_->warp(pr_self_(), &c);
}
PR_FN void pr_sync_warp() { pr_warp_(kPrHostSyncWarp, 0, 0, nullptr, nullptr, nullptr); }
template <class T> PR_FN T pr_shfl_from_(T v, int lane) {
  T result = v;
  pr_warp_(kPrHostShuffle, sizeof(T), lane, &v, nullptr, &result);
  return result;
}
template <class T> PR_FN T pr_shfl_down(T v, int n) { return pr_shfl_from_(v, pr_self_()->lane + n); }
template <class T> PR_FN T pr_shfl_xor(T v, int n) { return pr_shfl_from_(v, pr_self_()->lane ^ n); }
template <class T> PR_FN T pr_shfl(T v, int lane) { return pr_shfl_from_(v, lane & 31); }

// ---- Conversions. ----
PR_FN float pr_from_bits_(unsigned bits) {
  float v;
  __builtin_memcpy(&v, &bits, 4);
  return v;
}
PR_FN unsigned pr_bits_(float v) {
  unsigned bits;
  __builtin_memcpy(&bits, &v, 4);
  return bits;
}
typedef short pr_v8hi_ __attribute__((vector_size(16)));
typedef float pr_v4sf_ __attribute__((vector_size(16)));
PR_FN float pr_f32_from_bits(unsigned bits) { return pr_from_bits_(bits); }
PR_FN double pr_f64_from_bits(pr_u64 bits) {
  double v;
  __builtin_memcpy(&v, &bits, 8);
  return v;
}
PR_FN float pr_to_f32(pr_f16 v) {
  const pr_v8hi_ bits = {(short)v.bits, 0, 0, 0, 0, 0, 0, 0};
  return __builtin_ia32_vcvtph2ps(bits)[0];
}
PR_FN float pr_to_f32(pr_bf16 v) { return pr_from_bits_((unsigned)v.bits << 16); }
PR_FN pr_f16 pr_to_f16(float v) {
  const pr_v4sf_ x = {v, 0, 0, 0};
  return pr_f16{(unsigned short)__builtin_ia32_vcvtps2ph(x, 0)[0]};
}
PR_FN pr_bf16 pr_to_bf16(float v) {
  const unsigned bits = pr_bits_(v);
  if (v != v) return pr_bf16{0x7fff};
  return pr_bf16{(unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
// To nearest, halves away from zero.
PR_FN unsigned pr_to_tf32(float v) {
  const unsigned bits = pr_bits_(v);
  return v != v ? 0x7fffffffu : (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu;
}
// What rounds to 16 bits as x does: towards zero, and odd if that is not x.
PR_FN float pr_odd(double x) {
  const float r = (float)x;
  if ((double)r == x || x != x) return r;
  const bool is_beyond = __builtin_fabs((double)r) > __builtin_fabs(x);
  return pr_from_bits_((pr_bits_(r) - is_beyond) | 1);
}
// N registers of a larger array, as the instruction wants them.
template <class T, int N, class U> PR_FN T (&pr_regs(U* first))[N] { return *(T(*)[N])first; }
template <int N> PR_FN void pr_to_tf32(unsigned (&to)[N], const float* from) {
  for (int i = 0; i < N; ++i) to[i] = pr_to_tf32(from[i]);
}
PR_FN unsigned pr_pack(pr_f16 lo, pr_f16 hi) { return lo.bits | (unsigned)hi.bits << 16; }
PR_FN unsigned pr_pack(pr_bf16 lo, pr_bf16 hi) { return lo.bits | (unsigned)hi.bits << 16; }
PR_FN unsigned pr_pack_f16(float lo, float hi) { return pr_pack(pr_to_f16(lo), pr_to_f16(hi)); }
PR_FN unsigned pr_pack_bf16(float lo, float hi) { return pr_pack(pr_to_bf16(lo), pr_to_bf16(hi)); }

// ---- Vector accesses: a GPU faults if they are not aligned. ----
template <int BYTES> struct pr_vec_;
template <> struct pr_vec_<1> { typedef unsigned char type; };
template <> struct pr_vec_<2> { typedef unsigned short type; };
template <> struct pr_vec_<4> { typedef unsigned type; };
template <> struct pr_vec_<8> { typedef pr_u64 type; };
template <> struct pr_vec_<16> { typedef unsigned type __attribute__((vector_size(16))); };
template <int BYTES> PR_FN void pr_aligned_(const void* p) {
  if (((pr_address_)p & (BYTES - 1)) != 0)
    pr_api_->fault(pr_self_(), "a vector access is not aligned to its size");
}
template <int BYTES> PR_FN void pr_copy(void* dst, const void* src) {
  typedef typename pr_vec_<BYTES>::type V __attribute__((may_alias));
  pr_aligned_<BYTES>(dst);
  pr_aligned_<BYTES>(src);
  *(V*)dst = *(const V*)src;
}
template <int BYTES> PR_FN void pr_copy_zfill(void* dst, const void* src, bool valid) {
  typedef typename pr_vec_<BYTES>::type V __attribute__((may_alias));
  pr_aligned_<BYTES>(dst);
  V v = {};
  if (valid) {
    pr_aligned_<BYTES>(src);
    v = *(const V*)src;
  }
  *(V*)dst = v;
}
template <int BYTES> PR_FN void pr_load(void* local, const void* src) {
  typedef typename pr_vec_<BYTES>::type V __attribute__((may_alias));
  pr_aligned_<BYTES>(src);
  const V v = *(const V*)src;
  __builtin_memcpy(local, &v, BYTES);
}
template <int BYTES> PR_FN void pr_store(void* dst, const void* local) {
  typedef typename pr_vec_<BYTES>::type V __attribute__((may_alias));
  pr_aligned_<BYTES>(dst);
  V v;
  __builtin_memcpy(&v, local, BYTES);
  *(V*)dst = v;
}
// Byte j of word i becomes byte i of word j.
PR_FN void pr_transpose_4x4(unsigned (&v)[4]) {
  unsigned turned[4] = {0, 0, 0, 0};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) turned[j] |= ((v[i] >> (8 * j)) & 255u) << (8 * i);
  for (int i = 0; i < 4; ++i) v[i] = turned[i];
}

// ---- Shared memory without bank conflicts. ----
template <int W, int BYTES> PR_FN int pr_swizzled(int i) {
  return i ^ (int)((unsigned)i / (128 / BYTES) & (W / 16 - 1)) * (16 / BYTES);
}

// ---- Asynchronous copies from global to shared memory. ----
// The copy is made by code without checks: these reads are what the bounds checker sees of it.
PR_FN void pr_check_source_(const void* src, int bytes, bool valid) {
#ifdef PR_BOUNDS
  if (valid) (void)(((const volatile char*)src)[0] + ((const volatile char*)src)[bytes - 1]);
#endif
}
template <int BYTES> PR_FN void pr_cp_async(void* dst, const void* src) {
  pr_check_source_(src, BYTES, true);
  pr_api_->cp_async(pr_self_(), dst, src, BYTES, 1);
}
template <int BYTES> PR_FN void pr_cp_async_zfill(void* dst, const void* src, bool valid) {
  pr_check_source_(src, BYTES, valid);
  pr_api_->cp_async(pr_self_(), dst, src, BYTES, valid);
}
PR_FN void pr_cp_async_commit() { pr_api_->cp_async_commit(pr_self_()); }
template <int N> PR_FN void pr_cp_async_wait() { pr_api_->cp_async_wait(pr_self_(), N); }

// ---- Fragments. ----
// A row is at (row ^ flip) + more. Units: bytes.
#define PR_LDMATRIX(suffix, op, n)                                                       \
  PR_FN void pr_ldmatrix_x##n##suffix(unsigned(&r)[n], const void* row, int flip = 0,    \
                                      int more = 0) {                                    \
    pr_warp_(op, n, 0, (const char*)((pr_address_)row ^ flip) + more, nullptr, r);       \
  }
PR_LDMATRIX(, kPrHostLdMatrix, 1)
PR_LDMATRIX(, kPrHostLdMatrix, 2)
PR_LDMATRIX(, kPrHostLdMatrix, 4)
PR_LDMATRIX(_trans, kPrHostLdMatrixTrans, 1)
PR_LDMATRIX(_trans, kPrHostLdMatrixTrans, 2)
PR_LDMATRIX(_trans, kPrHostLdMatrixTrans, 4)
PR_FN void pr_stmatrix_x2(void* row, const unsigned (&r)[2]) {
  pr_warp_(kPrHostStMatrix, 2, 0, r, nullptr, row);
}
PR_FN void pr_stmatrix_x4(void* row, const unsigned (&r)[4]) {
  pr_warp_(kPrHostStMatrix, 4, 0, r, nullptr, row);
}
#define PR_MMA(name, op, D)                                                         \
  PR_FN void name(D(&d)[4], const unsigned(&a)[4], const unsigned(&b)[2]) {         \
    pr_warp_(op, 0, 0, a, b, d);                                                    \
  }
PR_MMA(pr_mma_m16n8k16_f16, kPrHostMma16816F16, float)
PR_MMA(pr_mma_m16n8k16_bf16, kPrHostMma16816BF16, float)
PR_MMA(pr_mma_m16n8k8_tf32, kPrHostMma1688TF32, float)
PR_MMA(pr_mma_m16n8k32_s8, kPrHostMma16832S8, int)

// ---- wmma 16x16x16. Any places will do if all wrappers agree; these are the registry's. ----
struct pr_place_ { int row, col; };
PR_FN pr_place_ pr_wmma_ac_(int i) {
  const int lane = pr_self_()->lane;
  return {(lane >> 2) + (i >> 1 & 1) * 8, (i >> 2) * 8 + (lane & 3) * 2 + (i & 1)};
}
PR_FN pr_place_ pr_wmma_b_(int i) {
  const int lane = pr_self_()->lane;
  return {(i >> 1 & 1) * 8 + (lane & 3) * 2 + (i & 1), (i >> 2) * 8 + (lane >> 2)};
}
PR_FN void pr_wmma_aligned_(const void* p, long ld_bytes) {
  if (((pr_address_)p & 31) != 0 || (ld_bytes & 15) != 0)
    pr_api_->fault(pr_self_(), "a matrix of wmma is not aligned");
}
template <class T, int N> PR_FN void pr_wmma_take_(unsigned (&r)[N], const T (&own)[8]) {
  __builtin_memcpy(r, own, sizeof own);
}
template <class T> struct pr_wmma_op_;
#define PR_WMMA_LOAD(name, T, N, place, row_stride, col_stride)                                  \
  PR_FN void name(unsigned(&r)[N], const T* p, int ld) {                                         \
    pr_wmma_aligned_(p, ld * (long)sizeof(T));                                                   \
    T own[8];                                                                                    \
    for (int i = 0; i < 8; ++i)                                                                  \
      own[i] = p[place(i).row * (row_stride) + place(i).col * (col_stride)];                     \
    pr_wmma_take_(r, own);                                                                       \
  }
#define PR_WMMA(T, N, code)                                                                      \
  template <> struct pr_wmma_op_<T> { static constexpr PrHostOp op = code; };                    \
  PR_WMMA_LOAD(pr_wmma_load_a, T, N, pr_wmma_ac_, ld, 1)                                         \
  PR_WMMA_LOAD(pr_wmma_load_b, T, N, pr_wmma_b_, ld, 1)                                          \
  PR_WMMA_LOAD(pr_wmma_load_b_col, T, N, pr_wmma_b_, 1, ld)
PR_WMMA(pr_f16, 8, kPrHostWmmaF16)
PR_WMMA(pr_bf16, 4, kPrHostWmmaBF16)
PR_WMMA(signed char, 2, kPrHostWmmaS8)
template <class T, class D, int N>
PR_FN void pr_wmma_mma(D (&d)[8], const unsigned (&a)[N], const unsigned (&b)[N]) {
  pr_warp_(pr_wmma_op_<T>::op, 0, 0, a, b, d);
}
template <class T, class D, int N>
PR_FN void pr_wmma_mma_col(D (&d)[8], const unsigned (&a)[N], const unsigned (&b)[N]) {
  pr_warp_(pr_wmma_op_<T>::op, 0, 0, a, b, d);
}
template <class D> PR_FN void pr_wmma_store(D* p, const D (&d)[8], int ld) {
  pr_wmma_aligned_(p, ld * (long)sizeof(D));
  for (int i = 0; i < 8; ++i) p[pr_wmma_ac_(i).row * ld + pr_wmma_ac_(i).col] = d[i];
}

// ---- Hopper. ----
PR_FN void pr_mbar_init(pr_u64* bar, int count) { pr_api_->mbar_init(pr_self_(), bar, count); }
PR_FN void pr_mbar_expect_tx(pr_u64* bar, int bytes) {
  pr_api_->mbar_expect_tx(pr_self_(), bar, bytes);
}
PR_FN void pr_mbar_arrive(pr_u64* bar) { pr_api_->mbar_arrive(pr_self_(), bar); }
PR_FN void pr_mbar_wait(pr_u64* bar, int parity) { pr_api_->mbar_wait(pr_self_(), bar, parity); }
PR_FN void pr_mbar_arrive_at(pr_u64* bar, int rank) {
  pr_api_->mbar_arrive_at(pr_self_(), bar, rank);
}
PR_FN void pr_cluster_sync() { pr_api_->cluster_barrier(pr_self_()); }
PR_FN void pr_fence_mbar_init() {}
PR_FN void pr_fence_proxy_async() {}
PR_FN void pr_tma_load_2d(void* dst, const pr_tensor_map* map, int x, int y, pr_u64* bar) {
  pr_api_->tma_load(pr_self_(), dst, map, x, y, bar);
}
PR_FN void pr_tma_load_2d_multicast(void* dst, const pr_tensor_map* map, int x, int y, pr_u64* bar,
                                    int mask) {
  pr_api_->tma_load_multicast(pr_self_(), dst, map, x, y, bar, mask);
}
PR_FN void pr_tma_load_im2col(void* dst, const pr_tensor_map* map, int c, int w, int h, int n,
                              int offset_w, int offset_h, pr_u64* bar) {
  const PrHostPixel at = {w, h, n, offset_w, offset_h};
  pr_api_->tma_load_im2col(pr_self_(), dst, map, c, &at, bar);
}
PR_FN void pr_tma_store_2d(const pr_tensor_map* map, const void* src, int x, int y) {
  pr_api_->tma_store(pr_self_(), map, src, x, y);
}
PR_FN void pr_tma_store_commit() { pr_api_->tma_store_commit(pr_self_()); }
template <int N> PR_FN void pr_tma_store_wait() { pr_api_->tma_store_wait(pr_self_(), N); }
PR_FN void pr_wgmma_fence() {}
PR_FN void pr_wgmma_commit() { pr_api_->wgmma_commit(pr_self_()); }
template <int N> PR_FN void pr_wgmma_wait() { pr_api_->wgmma_wait(pr_self_(), N); }
// An address in shared memory is the offset in the block's.
PR_FN pr_u64 pr_wgmma_desc(const void* p, int lead, int stride, int swizzle) {
  const pr_u64 layout = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  const pr_u64 offset = (pr_u64)((const unsigned char*)p - pr_self_()->shared);
  return (offset & 0x3ffff) >> 4 | (pr_u64)(lead >> 4) << 16 | (pr_u64)(stride >> 4) << 32 |
         layout << 62;
}
template <class T> struct pr_mma_type_;
template <> struct pr_mma_type_<pr_f16> { static constexpr PrHostMmaType type = kPrHostF16; };
template <> struct pr_mma_type_<pr_bf16> { static constexpr PrHostMmaType type = kPrHostBF16; };
template <> struct pr_mma_type_<pr_tf32> { static constexpr PrHostMmaType type = kPrHostTF32; };
template <> struct pr_mma_type_<signed char> { static constexpr PrHostMmaType type = kPrHostS8; };
template <int N, class T, int TA = 0, int TB = 0, class D>
PR_FN void pr_wgmma(D (&d)[N / 2], pr_u64 a, pr_u64 b, int scale_d) {
  const PrHostWgmma op = {pr_mma_type_<T>::type, N, TA, TB, scale_d, a, b, d};
  pr_api_->wgmma(pr_self_(), &op);
}
template <int N> PR_FN void pr_reg_dec() {}
template <int N> PR_FN void pr_reg_inc() {}

// ---- Arithmetic as the language defines it. ----
#define PR_MATH1(name, f, d)                            \
  PR_FN float name(float x) { return __builtin_##f(x); } \
  PR_FN double name(double x) { return __builtin_##d(x); }
PR_MATH1(pr_exp, expf, exp)
PR_MATH1(pr_log, logf, log)
PR_MATH1(pr_sqrt, sqrtf, sqrt)
PR_MATH1(pr_tanh, tanhf, tanh)
PR_MATH1(pr_erf, erff, erf)
PR_MATH1(pr_floor, floorf, floor)
PR_MATH1(pr_ceil, ceilf, ceil)
PR_MATH1(pr_round, rintf, rint)  // half to even
PR_MATH1(pr_abs, fabsf, fabs)
PR_FN float pr_rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
PR_FN double pr_rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
PR_FN float pr_div_approx(float a, float b) { return a / b; }
PR_FN float pr_exp_f16(float x) { return __builtin_expf(x); }
PR_FN float pr_exp_bf16(float x) { return __builtin_expf(x); }
PR_FN float pr_max_nan(float a, float b) { return a > b || a != a ? a : b; }
PR_FN float pr_min_nan(float a, float b) { return a < b || a != a ? a : b; }
PR_FN double pr_max_nan(double a, double b) { return a > b || a != a ? a : b; }
PR_FN double pr_min_nan(double a, double b) { return a < b || a != a ? a : b; }
PR_FN float pr_sigmoid(float x) { return 1.0f / (1.0f + __builtin_expf(-x)); }
PR_FN double pr_sigmoid(double x) { return 1.0 / (1.0 + __builtin_exp(-x)); }
PR_FN double pr_sin(double x) { return __builtin_sin(x); }  // of f32: prelude_trig.cuh
PR_FN double pr_cos(double x) { return __builtin_cos(x); }
PR_FN float pr_pow(float x, float y) { return __builtin_powf(x, y); }
PR_FN double pr_pow(double x, double y) { return __builtin_pow(x, y); }
PR_FN float pr_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
PR_FN double pr_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
// Of 16-bit values: the exact product and what its sum in f64 is short of (Knuth), rounded to odd.
PR_FN float pr_fma_odd_(double x, double y, double z) {
  const double product = x * y, sum = product + z, of_z = sum - product;
  const double rest = (product - (sum - of_z)) + (z - of_z);
  const float r = pr_odd(sum);
  if ((double)r != sum || !(__builtin_fabs(rest) > 0)) return r;
  return pr_from_bits_((pr_bits_(r) - ((rest < 0) != (sum < 0))) | 1);
}
PR_FN float pr_fma_f16(float x, float y, float z) {
  return pr_to_f32(pr_to_f16(pr_fma_odd_(x, y, z)));
}
PR_FN float pr_fma_bf16(float x, float y, float z) {
  return pr_to_f32(pr_to_bf16(pr_fma_odd_(x, y, z)));
}
PR_FN int pr_abs(int x) { return x < 0 ? (int)(0u - (unsigned)x) : x; }
PR_FN pr_i64 pr_abs(pr_i64 x) { return x < 0 ? (pr_i64)(0ull - (pr_u64)x) : x; }
template <class T> PR_FN T pr_min(T a, T b) { return a < b ? a : b; }
template <class T> PR_FN T pr_max(T a, T b) { return a > b ? a : b; }
template <class T> PR_FN T pr_floordiv(T a, T b) {
  if (b == 0) pr_api_->fault(pr_self_(), "an integer is divided by zero");
  if (b == -1) return T(0) - a;
  const T q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
template <class T> PR_FN T pr_floormod(T a, T b) {
  if (b == 0) pr_api_->fault(pr_self_(), "an integer is divided by zero");
  if (b == -1) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <class T> struct pr_int_;
template <> struct pr_int_<signed char> { static constexpr pr_i64 lo = -128, hi = 127; };
template <> struct pr_int_<unsigned char> { static constexpr pr_i64 lo = 0, hi = 255; };
template <> struct pr_int_<int> {
  static constexpr pr_i64 lo = -2147483647LL - 1, hi = 2147483647LL;
};
template <> struct pr_int_<pr_i64> {
  static constexpr pr_i64 lo = -9223372036854775807LL - 1, hi = 9223372036854775807LL;
};
// Truncates and saturates; NaN gives 0.
template <class T, class F> PR_FN T pr_f2i(F x) {
  if (x != x) return 0;
  if (x <= (F)pr_int_<T>::lo) return (T)pr_int_<T>::lo;
  return x >= (F)pr_int_<T>::hi ? (T)pr_int_<T>::hi : (T)x;
}

// A kernel is started through its type, whatever its parameters are.
template <int... I> struct pr_indices_ {};
template <int N, int... I> struct pr_count_ : pr_count_<N - 1, N - 1, I...> {};
template <int... I> struct pr_count_<0, I...> { typedef pr_indices_<I...> type; };
template <class... A, int... I>
PR_FN void pr_start_(void (*kernel)(A...), void** args, pr_indices_<I...>) {
  kernel(*(A*)args[I]...);
}
template <class... A> PR_FN void pr_call_(void (*kernel)(A...), void** args) {
  pr_start_(kernel, args, typename pr_count_<sizeof...(A)>::type());
}
#define PR_HOST_GLUE2(prefix, name)                                                          \
  extern "C" __attribute__((visibility("default"))) void prefix##name(void** args) {         \
    pr_call_(&name, args);                                                                   \
  }
#define PR_HOST_GLUE1(prefix, name) PR_HOST_GLUE2(prefix, name)
// Behind the kernels: PR_HOST_ENTRY(name) makes the symbol that the runtime looks up.
#define PR_HOST_ENTRY(name) PR_HOST_GLUE1(PR_HOST_KERNEL_PREFIX, name)
