// The wrappers that emitted kernels are written in, for NVRTC: CUDA C without any header.
// prelude_host.cuh has the same names in C++. Nothing here is mentioned in a kernel but PR_* and pr_*.
#define PR_KERNEL(threads, min_blocks) \
  extern "C" __global__ __launch_bounds__(threads, min_blocks)
#define PR_CLUSTER_KERNEL(threads, min_blocks, blocks) \
  extern "C" __global__ __cluster_dims__(blocks, 1, 1) __launch_bounds__(threads, min_blocks)
#define PR_RESTRICT __restrict__
#define PR_GRID_CONSTANT __grid_constant__
#define PR_ALIGN(n) __align__(n)
#define PR_FN static __device__ __forceinline__
#define PR_SHARED(name, bytes) extern __shared__ PR_ALIGN(1024) unsigned char name[]

typedef long long pr_i64;
typedef unsigned long long pr_u64;
struct PR_ALIGN(2) pr_f16 { unsigned short bits; };
struct PR_ALIGN(2) pr_bf16 { unsigned short bits; };
struct pr_tf32 {};
struct PR_ALIGN(64) pr_tensor_map { unsigned char opaque[128]; };

PR_FN int pr_block_x() { return blockIdx.x; }
PR_FN int pr_block_y() { return blockIdx.y; }
PR_FN int pr_block_z() { return blockIdx.z; }
PR_FN int pr_thread_x() { return threadIdx.x; }
PR_FN int pr_thread_y() { return threadIdx.y; }
PR_FN int pr_thread_z() { return threadIdx.z; }

// ---- Meeting points. ----
PR_FN void pr_sync() { __syncthreads(); }
PR_FN void pr_sync_warp() { __syncwarp(); }
PR_FN void pr_bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
PR_FN void pr_bar_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
template <class T> PR_FN T pr_shfl_down(T v, int n) { return __shfl_down_sync(~0u, v, n); }
template <class T> PR_FN T pr_shfl_xor(T v, int n) { return __shfl_xor_sync(~0u, v, n); }
template <class T> PR_FN T pr_shfl(T v, int lane) { return __shfl_sync(~0u, v, lane); }
#define PR_SHFL_16(T, name, shfl) \
  PR_FN T name(T v, int n) { return T{(unsigned short)shfl(~0u, (unsigned)v.bits, n)}; }
PR_SHFL_16(pr_f16, pr_shfl_down, __shfl_down_sync)
PR_SHFL_16(pr_f16, pr_shfl_xor, __shfl_xor_sync)
PR_SHFL_16(pr_f16, pr_shfl, __shfl_sync)
PR_SHFL_16(pr_bf16, pr_shfl_down, __shfl_down_sync)
PR_SHFL_16(pr_bf16, pr_shfl_xor, __shfl_xor_sync)
PR_SHFL_16(pr_bf16, pr_shfl, __shfl_sync)

// ---- Conversions. ----
PR_FN unsigned pr_bits_(float v) { return __float_as_uint(v); }
PR_FN float pr_f32_from_bits(unsigned bits) { return __uint_as_float(bits); }
PR_FN double pr_f64_from_bits(pr_u64 bits) { return __longlong_as_double((pr_i64)bits); }
PR_FN float pr_to_f32(pr_f16 v) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v.bits));
  return r;
}
PR_FN float pr_to_f32(pr_bf16 v) { return __uint_as_float((unsigned)v.bits << 16); }
PR_FN pr_f16 pr_to_f16(float v) {
  pr_f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
  return r;
}
PR_FN pr_bf16 pr_to_bf16(float v) {
  pr_bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
  return r;
}
PR_FN unsigned pr_to_tf32(float v) {
  unsigned r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
  return r;
}
// What rounds to 16 bits as x does: towards zero, and odd if that is not x.
PR_FN float pr_odd(double x) {
  const float r = __double2float_rz(x);
  return (double)r == x || x != x ? r : __uint_as_float(__float_as_uint(r) | 1);
}
// N registers of a larger array, as the instruction wants them.
template <class T, int N, class U> PR_FN T (&pr_regs(U* first))[N] { return *(T(*)[N])first; }
template <int N> PR_FN void pr_to_tf32(unsigned (&to)[N], const float* from) {
  for (int i = 0; i < N; ++i) to[i] = pr_to_tf32(from[i]);
}
// Two 16-bit values as one register of a fragment; `lo` has the lower index.
PR_FN unsigned pr_pack(pr_f16 lo, pr_f16 hi) { return lo.bits | (unsigned)hi.bits << 16; }
PR_FN unsigned pr_pack(pr_bf16 lo, pr_bf16 hi) { return lo.bits | (unsigned)hi.bits << 16; }

// ---- Vector accesses: one instruction on each memory side. ----
template <int BYTES> struct pr_vec_;
template <> struct pr_vec_<1> { typedef unsigned char type; };
template <> struct pr_vec_<2> { typedef unsigned short type; };
template <> struct pr_vec_<4> { typedef unsigned type; };
template <> struct pr_vec_<8> { typedef uint2 type; };
template <> struct pr_vec_<16> { typedef uint4 type; };
template <int BYTES> PR_FN void pr_copy(void* dst, const void* src) {
  typedef typename pr_vec_<BYTES>::type V;
  *(V*)dst = *(const V*)src;
}
template <int BYTES> PR_FN void pr_copy_zfill(void* dst, const void* src, bool valid) {
  typedef typename pr_vec_<BYTES>::type V;
  V v = {};
  if (valid) v = *(const V*)src;
  *(V*)dst = v;
}
template <int BYTES> PR_FN void pr_load(void* local, const void* src) {
  const typename pr_vec_<BYTES>::type v = *(const typename pr_vec_<BYTES>::type*)src;
  memcpy(local, &v, BYTES);
}
template <int BYTES> PR_FN void pr_store(void* dst, const void* local) {
  typename pr_vec_<BYTES>::type v;
  memcpy(&v, local, BYTES);
  *(typename pr_vec_<BYTES>::type*)dst = v;
}

// Byte j of word i becomes byte i of word j.
PR_FN void pr_transpose_4x4(unsigned (&v)[4]) {
  const unsigned a = __byte_perm(v[0], v[1], 0x5140), b = __byte_perm(v[2], v[3], 0x5140);
  const unsigned c = __byte_perm(v[0], v[1], 0x7362), d = __byte_perm(v[2], v[3], 0x7362);
  v[0] = __byte_perm(a, b, 0x5410);
  v[1] = __byte_perm(a, b, 0x7632);
  v[2] = __byte_perm(c, d, 0x5410);
  v[3] = __byte_perm(c, d, 0x7632);
}

// ---- Shared memory without bank conflicts. ----
// Where element `i` of a swizzled buffer is: pieces of 16 bytes change places with the row.
template <int W, int BYTES> PR_FN int pr_swizzled(int i) {
  return i ^ (int)((unsigned)i / (128 / BYTES) & (W / 16 - 1)) * (16 / BYTES);
}

// ---- Asynchronous copies from global to shared memory. ----
PR_FN unsigned pr_smem_(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
#if __CUDA_ARCH__ < 800
// Threads copy before they go on; the barrier behind a wait makes that known.
template <int BYTES> PR_FN void pr_cp_async_zfill(void* dst, const void* src, bool valid) {
  pr_copy_zfill<BYTES>(dst, src, valid);
}
template <int BYTES> PR_FN void pr_cp_async(void* dst, const void* src) { pr_copy<BYTES>(dst, src); }
PR_FN void pr_cp_async_commit() {}
template <int N> PR_FN void pr_cp_async_wait() {}
#else
template <int BYTES> PR_FN void pr_cp_async_zfill(void* dst, const void* src, bool valid) {
  const int size = valid ? BYTES : 0;
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(pr_smem_(dst)), "l"(src),
                 "r"(size)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(pr_smem_(dst)), "l"(src),
                 "r"(size), "n"(BYTES)
                 : "memory");
}
template <int BYTES> PR_FN void pr_cp_async(void* dst, const void* src) {
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(pr_smem_(dst)), "l"(src)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(pr_smem_(dst)), "l"(src),
                 "n"(BYTES)
                 : "memory");
}
PR_FN void pr_cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> PR_FN void pr_cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#endif

// ---- Fragments: 8x8 matrices of 16-bit elements; lane 8*i + j gives row j of matrix i. ----
// A row is at (row ^ flip) + more. Units: bytes.
#define PR_LDMATRIX(suffix, mods)                                                              \
  PR_FN void pr_ldmatrix_x1##suffix(unsigned(&r)[1], const void* row, int flip = 0,            \
                                    int more = 0) {                                            \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" mods ".shared.b16 {%0}, [%1];"                \
                 : "=r"(r[0]) : "r"((pr_smem_(row) ^ flip) + more) : "memory");                \
  }                                                                                            \
  PR_FN void pr_ldmatrix_x2##suffix(unsigned(&r)[2], const void* row, int flip = 0,            \
                                    int more = 0) {                                            \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" mods ".shared.b16 {%0, %1}, [%2];"            \
                 : "=r"(r[0]), "=r"(r[1]) : "r"((pr_smem_(row) ^ flip) + more) : "memory");    \
  }                                                                                            \
  PR_FN void pr_ldmatrix_x4##suffix(unsigned(&r)[4], const void* row, int flip = 0,            \
                                    int more = 0) {                                            \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" mods ".shared.b16 {%0, %1, %2, %3}, [%4];"    \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                              \
                 : "r"((pr_smem_(row) ^ flip) + more) : "memory");                             \
  }
PR_LDMATRIX(, "")
PR_LDMATRIX(_trans, ".trans")

// d += a * b in one warp. Before sm_80 a product is two or four of half its k and rows: their
// fragments are parts of its own.
#if __CUDA_ARCH__ < 800
PR_FN void pr_mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  for (int k = 0; k < 2; ++k) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
        " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
  }
}
PR_FN void pr_mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  for (int i = 0; i < 4; ++i) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+r"(d[i % 2 * 2]), "+r"(d[i % 2 * 2 + 1])
                 : "r"(a[i]), "r"(b[i / 2]));
  }
}
#else
#define PR_MMA_16816(name, types)                                                              \
  PR_FN void name(float(&d)[4], const unsigned(&a)[4], const unsigned(&b)[2]) {                \
    asm volatile("mma.sync.aligned.m16n8k16.row.col." types                                    \
                 " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                      \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                              \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));          \
  }
PR_MMA_16816(pr_mma_m16n8k16_f16, "f32.f16.f16.f32")
PR_MMA_16816(pr_mma_m16n8k16_bf16, "f32.bf16.bf16.f32")
PR_FN void pr_mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
      " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
PR_FN void pr_mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
      " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// ---- wmma 16x16x16: which lane holds what is not to be known. `ld` counts elements. ----
#define PR_OUT2(r) "=r"(r[0]), "=r"(r[1])
#define PR_OUT4(r) PR_OUT2(r), "=r"(r[2]), "=r"(r[3])
#define PR_OUT8(r) PR_OUT4(r), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
#define PR_FROM2 "{%0,%1}, [%2], %3"
#define PR_FROM4 "{%0,%1,%2,%3}, [%4], %5"
#define PR_FROM8 "{%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9"
#define PR_WMMA_LOAD(name, side, T, ptx, N)                                                    \
  PR_FN void name(unsigned(&r)[N], const T* p, int ld) {                                       \
    asm volatile("wmma.load." side ".m16n16k16." ptx " " PR_FROM##N ";"                        \
                 : PR_OUT##N(r) : "l"(p), "r"(ld) : "memory");                                 \
  }
#define PR_WMMA_LOADS(T, ptx, N)                                          \
  PR_WMMA_LOAD(pr_wmma_load_a, "a.sync.aligned.row", T, ptx, N)           \
  PR_WMMA_LOAD(pr_wmma_load_b, "b.sync.aligned.row", T, ptx, N)           \
  PR_WMMA_LOAD(pr_wmma_load_b_col, "b.sync.aligned.col", T, ptx, N)
PR_WMMA_LOADS(pr_f16, "f16", 8)
PR_WMMA_LOADS(pr_bf16, "bf16", 4)
PR_WMMA_LOADS(signed char, "s8", 2)
#define PR_ACC(c) c(d[0]), c(d[1]), c(d[2]), c(d[3]), c(d[4]), c(d[5]), c(d[6]), c(d[7])
#define PR_IN2(v) "r"(v[0]), "r"(v[1])
#define PR_IN4(v) PR_IN2(v), "r"(v[2]), "r"(v[3])
#define PR_IN8(v) PR_IN4(v), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7])
#define PR_D8 "{%0,%1,%2,%3,%4,%5,%6,%7}"
#define PR_AB8 "{%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19,%20,%21,%22,%23}"
#define PR_AB4 "{%8,%9,%10,%11}, {%12,%13,%14,%15}"
#define PR_AB2 "{%8,%9}, {%10,%11}"
// T repeats what the number of registers says, for readers.
#define PR_WMMA(name, layout, D, C, ptx, N)                                                    \
  template <class T> PR_FN void name(D(&d)[8], const unsigned(&a)[N], const unsigned(&b)[N]) { \
    asm volatile("wmma.mma.sync.aligned.row." layout ".m16n16k16." ptx " " PR_D8 ", " PR_AB##N \
                 ", " PR_D8 ";" : PR_ACC(C) : PR_IN##N(a), PR_IN##N(b));                       \
  }
#define PR_PLUSF(x) "+f"(x)
#define PR_PLUSR(x) "+r"(x)
#define PR_WMMAS(D, C, ptx, N)                    \
  PR_WMMA(pr_wmma_mma, "row", D, C, ptx, N)       \
  PR_WMMA(pr_wmma_mma_col, "col", D, C, ptx, N)
PR_WMMAS(float, PR_PLUSF, "f32.f32", 8)
PR_WMMAS(float, PR_PLUSF, "f32.bf16.bf16.f32", 4)
PR_WMMAS(int, PR_PLUSR, "s32.s8.s8.s32", 2)
#define PR_INF(x) "f"(x)
#define PR_INR(x) "r"(x)
PR_FN void pr_wmma_store(float* p, const float (&d)[8], int ld) {
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.f32 [%8], " PR_D8 ", %9;" ::PR_ACC(PR_INF),
               "l"(p), "r"(ld)
               : "memory");
}
PR_FN void pr_wmma_store(int* p, const int (&d)[8], int ld) {
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.s32 [%8], " PR_D8 ", %9;" ::PR_ACC(PR_INR),
               "l"(p), "r"(ld)
               : "memory");
}

// ---- Arithmetic as the language defines it. ----
#define PR_MATH1(name, f, d)                  \
  PR_FN float name(float x) { return f(x); }  \
  PR_FN double name(double x) { return d(x); }
PR_MATH1(pr_exp, expf, exp)
PR_MATH1(pr_log, logf, log)
PR_MATH1(pr_sqrt, sqrtf, sqrt)
PR_MATH1(pr_rsqrt, rsqrtf, rsqrt)
PR_MATH1(pr_tanh, tanhf, tanh)
PR_MATH1(pr_erf, erff, erf)
PR_MATH1(pr_floor, floorf, floor)
PR_MATH1(pr_ceil, ceilf, ceil)
PR_MATH1(pr_round, rintf, rint)  // half to even
PR_MATH1(pr_abs, fabsf, fabs)
// Within 2 ulp of the quotient.
PR_FN float pr_div_approx(float a, float b) {
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
// For values that are rounded to 16 bits then, within 2^-18 and 2^-16 of the exponential.
PR_FN float pr_exp_f16(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x * 1.44269504f));
  return r;
}
PR_FN float pr_exp_bf16(float x) {
  float r;
  asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x * 1.44269504f));
  return r;
}
// Of a reduction, as if what is no number came last.
#if __CUDA_ARCH__ >= 800
PR_FN float pr_max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
PR_FN float pr_min_nan(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
#else
PR_FN float pr_max_nan(float a, float b) { return a > b || a != a ? a : b; }
PR_FN float pr_min_nan(float a, float b) { return a < b || a != a ? a : b; }
#endif
PR_FN double pr_max_nan(double a, double b) { return a > b || a != a ? a : b; }
PR_FN double pr_min_nan(double a, double b) { return a < b || a != a ? a : b; }
PR_FN float pr_sigmoid(float x) { return pr_div_approx(1.0f, 1.0f + expf(-x)); }
PR_FN double pr_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
PR_FN double pr_sin(double x) { return sin(x); }  // of f32: prelude_trig.cuh
PR_FN double pr_cos(double x) { return cos(x); }
PR_FN float pr_pow(float x, float y) { return powf(x, y); }
PR_FN double pr_pow(double x, double y) { return pow(x, y); }
PR_FN float pr_fma(float x, float y, float z) { return fmaf(x, y, z); }
PR_FN double pr_fma(double x, double y, double z) { return fma(x, y, z); }
// Of 16-bit values, rounded once.
PR_FN float pr_fma_f16(float x, float y, float z) {
  pr_f16 r;
  asm("fma.rn.f16 %0, %1, %2, %3;"
      : "=h"(r.bits)
      : "h"(pr_to_f16(x).bits), "h"(pr_to_f16(y).bits), "h"(pr_to_f16(z).bits));
  return pr_to_f32(r);
}
PR_FN float pr_fma_bf16(float x, float y, float z) {
  pr_bf16 r;
  asm("fma.rn.bf16 %0, %1, %2, %3;"
      : "=h"(r.bits)
      : "h"(pr_to_bf16(x).bits), "h"(pr_to_bf16(y).bits), "h"(pr_to_bf16(z).bits));
  return pr_to_f32(r);
}
PR_FN int pr_abs(int x) { return x < 0 ? (int)(0u - (unsigned)x) : x; }
PR_FN pr_i64 pr_abs(pr_i64 x) { return x < 0 ? (pr_i64)(0ull - (pr_u64)x) : x; }
template <class T> PR_FN T pr_min(T a, T b) { return a < b ? a : b; }
template <class T> PR_FN T pr_max(T a, T b) { return a > b ? a : b; }
template <class T> PR_FN T pr_floordiv(T a, T b) {
  if (b == -1) return T(0) - a;
  const T q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
template <class T> PR_FN T pr_floormod(T a, T b) {
  if (b == -1) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <class T> struct pr_int_;
template <> struct pr_int_<signed char> { static const pr_i64 lo = -128, hi = 127; };
template <> struct pr_int_<unsigned char> { static const pr_i64 lo = 0, hi = 255; };
template <> struct pr_int_<int> { static const pr_i64 lo = -2147483647LL - 1, hi = 2147483647LL; };
template <> struct pr_int_<pr_i64> {
  static const pr_i64 lo = -9223372036854775807LL - 1, hi = 9223372036854775807LL;
};
// Truncates and saturates; NaN gives 0.
template <class T, class F> PR_FN T pr_f2i(F x) {
  if (x != x) return 0;
  if (x <= (F)pr_int_<T>::lo) return (T)pr_int_<T>::lo;
  return x >= (F)pr_int_<T>::hi ? (T)pr_int_<T>::hi : (T)x;
}
