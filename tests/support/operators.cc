#include "tests/support/operators.h"

#include "ir/lang/lang.h"
#include "ir/support/check.h"

#include <cstdio>
#include <span>
#include <sstream>

namespace prunerc::testing {
namespace {

struct Row {
  const char* file;  // of the standard library; null: kOwn
  const char* op;
  const char* bindings;  // "M=5 N=7"
};

// Operators that the library lacks.
constexpr const char* kOwn = R"(
op two_results<M=6, N=9>(X: f32[M,N]) -> (S: f32[M], Q: f32[M]) {
  S[i] = sum[j] X[i,j];
  Q[i] = sum[j] X[i,j] * X[i,j];
}
op three_results<N=13>(X: f32[N], Y: f32[N]) -> (A: f32[N], B: f32[N], C: f32) {
  A[i] = X[i] + Y[i];
  B[i] = A[i] * X[i];
  C    = sum[i] B[i];
}
op chain<M=7, N=5, K=11>(A: f32[M,K], B: f32[K,N], D: f32[N,M]) -> (E: f32[M,M]) {
  let T[i,j] = sum[k] A[i,k] * B[k,j];
  let R[i,j] = max(T[i,j], 0);
  E[i,j] = sum[k] R[i,k] * D[k,j];
}
op residual_norm<M=6, N=10>(X: f32[M,N], R: f32[M,N]) -> (Y: f32[M,N], Z: f32[M,N]) {
  Z[i,j] = X[i,j] + R[i,j];
  let ms[i] = (sum[j] Z[i,j] * Z[i,j]) / N;
  Y[i,j] = Z[i,j] * rsqrt(ms[i] + 0.00001);
}
op gelu_mlp<M=5, N=7, K=6>(X: f32[M,K], W: f32[K,N], V: f32[N,K]) -> (Y: f32[M,K]) {
  let H[i,j] = sum[k] X[i,k] * W[k,j];
  let G[i,j] = H[i,j] * 0.5 * (1 + erf(H[i,j] * 0.7071));
  Y[i,k] = sum[j] G[i,j] * V[j,k];
}
op row_argmax_and_max<M=6, N=11>(X: f32[M,N]) -> (I: i64[M], V: f32[M]) {
  I[i] = argmax[j] X[i,j];
  V[i] = max[j] X[i,j];
}
op scale_shift<M=6, N=8>(X: f32[M,N], s: f32[N]) -> (Y: f32[M,N]) {
  let A[i,j] = X[i,j] * s[j];
  let B[i,j] = exp(A[i,j]);
  Y[i,j] = B[i,j] + 1;
}
op matvec_residual<M=14, K=9>(A: f32[M,K], x: f32[K], r: f32[M]) -> (Y: f32[M]) {
  let T[i] = sum[k] A[i,k] * x[k];
  Y[i] = T[i] + r[i];
}
op blur<N=19>(X: f32[N]) -> (Y: f32[N]) {
  let A[i] = (X[i-1] or 0) + X[i] + (X[i+1] or 0);
  Y[i] = (A[i-1] or 0) + A[i] + (A[i+1] or 0);
}
)";

constexpr Row kRows[] = {
    {"std/gemm.prn", "gemm_nn", "M=7 N=10 K=13"},
    {"std/gemm.prn", "gemm_nn", "M=16 N=16 K=16"},
    {"std/gemm.prn", "gemm_nt", "M=9 N=6 K=11"},
    {"std/gemm.prn", "gemm_tn", "M=8 N=12 K=5"},
    {"std/gemm.prn", "gemm_alpha_beta", "M=6 N=7 K=8"},
    {"std/gemm.prn", "gemm_bias", "M=6 N=10 K=7"},
    {"std/gemm.prn", "gemm_bias", "M=8 N=8 K=12"},
    {"std/gemm.prn", "gemm_bias_relu", "M=11 N=8 K=6"},
    {"std/gemm.prn", "gemm_bias_gelu", "M=5 N=9 K=7"},
    {"std/gemm.prn", "gemm_silu", "M=6 N=6 K=10"},
    {"std/gemm.prn", "gemm_f16", "M=7 N=8 K=9"},
    {"std/gemm.prn", "gemm_f16_bias_gelu", "M=6 N=5 K=12"},
    {"std/gemm.prn", "gemm_bf16", "M=8 N=7 K=10"},
    {"std/gemm.prn", "gemm_f64", "M=5 N=11 K=6"},
    {"std/gemm.prn", "batch_matmul", "B=3 M=5 N=6 K=7"},
    {"std/gemm.prn", "batch_matmul_nt", "B=2 M=7 N=4 K=9"},
    {"std/gemm.prn", "matvec", "M=13 K=17"},
    {"std/gemm.prn", "outer", "M=11 N=13"},
    {"std/gemm.prn", "dot", "N=67"},
    {"std/conv.prn", "conv1d", "N=2 CI=4 W=13 CO=6 KW=3 S=2 P=1 D=2 G=2"},
    {"std/conv.prn", "conv2d", "CI=4 H=7 W=9 CO=5 KH=3 KW=3"},
    {"std/conv.prn", "conv2d", "CI=4 H=9 W=8 CO=6 KH=3 KW=2 S=2 P=1 D=2 G=2"},
    {"std/conv.prn", "conv2d_bias_relu", "CI=3 H=7 W=6 CO=4 KH=3 KW=3"},
    {"std/conv.prn", "conv2d_nhwc", "H=6 W=7 CI=3 CO=5 KH=3 KW=3 S=2"},
    {"std/conv.prn", "conv2d_f16_nhwc", "H=5 W=6 CI=4 CO=3 KH=3 KW=3"},
    {"std/conv.prn", "conv3d", "CI=2 L=4 H=5 W=5 CO=3 KL=2 KH=3 KW=2 P=1"},
    {"std/conv.prn", "depthwise_conv2d", "C=5 H=9 W=7 S=2"},
    {"std/conv.prn", "depthwise_conv2d_nhwc", "H=7 W=6 C=5"},
    {"std/conv.prn", "conv_transpose2d", "CI=3 H=4 W=5 CO=2 KH=4 KW=3"},
    {"std/norm.prn", "softmax", "M=5 N=11"},
    {"std/norm.prn", "log_softmax", "M=6 N=7"},
    {"std/norm.prn", "layer_norm", "M=5 N=9"},
    {"std/norm.prn", "rms_norm", "M=7 N=8"},
    {"std/norm.prn", "rms_norm_f16", "M=5 N=10"},
    {"std/norm.prn", "batch_norm2d", "C=3 H=4 W=5"},
    {"std/attention.prn", "attention", "H=2 T=5 S=6 E=4"},
    {"std/attention.prn", "causal_attention", "H=2 T=6 E=3"},
    {"std/attention.prn", "attention_f16", "H=1 T=5 S=4 E=4"},
    {"std/attention.prn", "grouped_query_attention", "H=4 G=2 T=3 S=5 E=4"},
    {"std/pool.prn", "max_pool2d", "C=3 H=9 W=7"},
    {"std/pool.prn", "max_pool2d_nhwc", "H=7 W=8 C=3"},
    {"std/pool.prn", "avg_pool2d", "C=2 H=8 W=9"},
    {"std/pool.prn", "global_avg_pool2d", "C=5"},
    {"std/pool.prn", "global_max_pool2d", "C=6 H=5 W=7"},
    {"std/reduce.prn", "row_sum", "M=9 N=14"},
    {"std/reduce.prn", "col_sum", "M=14 N=9"},
    {"std/reduce.prn", "row_min", "M=6 N=13"},
    {"std/reduce.prn", "row_prod", "M=5 N=6"},
    {"std/reduce.prn", "row_argmax", "M=6 N=11"},
    {"std/reduce.prn", "row_argmin", "M=7 N=9"},
    {"std/reduce.prn", "total_sum", "M=7 N=11"},
    {"std/reduce.prn", "frobenius", "M=6 N=8"},
    {"std/reduce.prn", "all_finite", "N=37"},
    {"std/reduce.prn", "count_positive", "M=6 N=9"},
    {"std/reduce.prn", "row_mean", "M=8 N=12"},
    {"std/reduce.prn", "row_variance", "M=6 N=10"},
    {"std/reduce.prn", "cumsum", "M=4 N=11"},
    {"std/elementwise.prn", "add_gelu", "M=7 N=9"},
    {"std/elementwise.prn", "add_gelu_tanh", "M=6 N=7"},
    {"std/elementwise.prn", "silu_mul", "M=8 N=9"},
    {"std/elementwise.prn", "axpy", "N=61"},
    {"std/elementwise.prn", "transpose2d", "M=9 N=12"},
    {"std/elementwise.prn", "rope", "T=5 H=2 D=3"},
    {"std/indexing.prn", "embedding", "V=17 D=5 T=7"},
    {"std/indexing.prn", "gather_rows", "M=9 N=6 K=8"},
    {"std/indexing.prn", "one_hot", "N=6 C=9"},
    {"std/indexing.prn", "nll", "N=7 C=9"},
    {"std/quantized.prn", "qgemm", "M=6 N=9 K=8"},
    {"std/quantized.prn", "gemm_i8", "M=7 N=8 K=12"},
    {"std/quantized.prn", "gemm_u8_zero_points", "M=6 N=5 K=9"},
    {"std/quantized.prn", "quantize", "N=45"},
    {"std/quantized.prn", "dequantize", "N=45"},
    {nullptr, "two_results", ""},
    {nullptr, "three_results", ""},
    {nullptr, "chain", ""},
    {nullptr, "residual_norm", ""},
    {nullptr, "gelu_mlp", ""},
    {nullptr, "row_argmax_and_max", ""},
    {nullptr, "scale_shift", ""},
    {nullptr, "matvec_residual", ""},
    {nullptr, "blur", ""},
};

// What tensor instructions compute: sizes of a few tiles, even, ragged and prime; small rows.
constexpr const char* kProducts = R"(
op batched<B=3, M=40, N=48, K=32>(X: f16[B,M,K], Y: f16[B,N,K]) -> (Z: f16[B,M,N]) {
  Z[b,i,j] = f16(sum:f32[k] X[b,i,k] * Y[b,j,k]);
}
op transposed<M=40, N=56, K=48>(A: f16[K,M], B: f16[N,K]) -> (C: f32[M,N]) {
  C[i,j] = sum:f32[k] A[k,i] * B[j,k];
}
op turned<M=40, N=56, K=48>(A: f16[M,K], B: f16[K,N]) -> (C: f32[N,M]) {
  C[j,i] = sum:f32[k] A[i,k] * B[k,j];
}
op bias_relu<M=64, N=64, K=64>(A: f16[M,K], B: f16[K,N], bias: f32[N]) -> (C: f16[M,N]) {
  let T[i,j] = sum:f32[k] A[i,k] * B[k,j];
  C[i,j] = f16(max(T[i,j] + bias[j], 0));
}
op residual<M=48, N=40, K=32>(A: bf16[M,K], B: bf16[K,N], R: f32[M,N]) -> (C: f32[M,N]) {
  let T[i,j] = sum:f32[k] A[i,k] * B[k,j];
  C[i,j] = T[i,j] * 0.5 + R[i,j];
}
op activated<M=48, N=40, K=32>(A: f16[M,K], B: f16[K,N]) -> (C: f32[M,N]) {
  let T[i,k] = max(A[i,k], 0);
  C[i,j] = sum:f32[k] T[i,k] * B[k,j];
}
op weights_8bit<M=32, N=48, K=64>(A: f16[M,K], W: i8[N,K], s: f16[N]) -> (C: f16[M,N]) {
  let F[j,k] = f16(W[j,k]) * s[j];
  C[i,j] = f16(sum:f32[k] A[i,k] * F[j,k]);
}
op requantised<M=48, N=40, K=96>(A: i8[M,K], B: i8[N,K], bias: i32[N], scale: f32[N])
   -> (C: i8[M,N]) {
  let T[i,j] = sum:i32[k] A[i,k] * B[j,k];
  C[i,j] = i8(clamp(round(f32(T[i,j] + bias[j]) * scale[j]), -128, 127));
}
op bytes_across<M=48, N=64, K=96>(A: i8[K,M], B: i8[K,N]) -> (C: i32[M,N]) {
  C[i,j] = sum:i32[k] A[k,i] * B[k,j];
}
op two_products<M=32, N=48, K=32, L=40>(A: f16[M,K], B: f16[K,N], D: f16[N,L]) -> (E: f32[M,L]) {
  let T[i,j] = f16(max(sum:f32[k] A[i,k] * B[k,j], 0));
  E[i,l] = sum:f32[j] T[i,j] * D[j,l];
}
op conv_bias_relu<N=2, H=9, W=8, CI=16, CO=24, KH=3, KW=3, S=1, P=1>
   (X: f16[N,H,W,CI], F: f16[KH,KW,CI,CO], b: f32[CO]) -> (Y: f16[N,OH,OW,CO])
   where OH = (H + 2*P - KH)/S + 1, OW = (W + 2*P - KW)/S + 1 {
  let T[n,oh,ow,co] = sum:f32[kh,kw,ci] (X[n, oh*S + kh - P, ow*S + kw - P, ci] or 0) * F[kh,kw,ci,co];
  Y[n,oh,ow,co] = f16(max(T[n,oh,ow,co] + b[co], 0));
}
op conv_nchw<N=1, CI=8, H=8, W=8, CO=16, KH=3, KW=3, P=1>
   (X: f16[N,CI,H,W], F: f16[CO,CI,KH,KW]) -> (Y: f32[N,CO,OH,OW])
   where OH = H + 2*P - KH + 1, OW = W + 2*P - KW + 1 {
  Y[n,co,oh,ow] = sum:f32[ci,kh,kw] (X[n,ci, oh + kh - P, ow + kw - P] or 0) * F[co,ci,kh,kw];
}
)";

constexpr Row kTensorRows[] = {
    {"std/gemm.prn", "gemm_f16", "M=64 N=64 K=64"},
    {"std/gemm.prn", "gemm_f16", "M=104 N=72 K=88"},
    {"std/gemm.prn", "gemm_f16", "M=67 N=53 K=71"},
    {"std/gemm.prn", "gemm_f16", "M=1 N=64 K=64"},
    {"std/gemm.prn", "gemm_f16", "M=8 N=40 K=64"},
    {"std/gemm.prn", "gemm_f16", "M=17 N=33 K=40"},
    {"std/gemm.prn", "gemm_f16_nt", "M=40 N=48 K=80"},
    {"std/gemm.prn", "gemm_f16_bias_gelu", "M=48 N=64 K=32"},
    {"std/gemm.prn", "gemm_bf16", "M=48 N=32 K=64"},
    {"std/gemm.prn", "gemm_nn", "M=40 N=48 K=24"},
    {"std/gemm.prn", "gemm_nt", "M=31 N=20 K=29"},
    {"std/quantized.prn", "gemm_i8", "M=48 N=40 K=64"},
    {"std/quantized.prn", "gemm_i8", "M=33 N=17 K=50"},
    {"std/quantized.prn", "gemm_i8", "M=20 N=8 K=37"},
    {"std/conv.prn", "conv2d_f16_nhwc", "N=1 H=8 W=8 CI=16 CO=32 KH=3 KW=3"},
    {"std/conv.prn", "conv2d_f16_nhwc", "N=2 H=11 W=9 CI=8 CO=20 KH=3 KW=3 S=2"},
    {"std/conv.prn", "conv2d_f16_nhwc", "N=1 H=7 W=9 CI=16 CO=24 KH=1 KW=1 P=0"},
    {nullptr, "conv_bias_relu", ""},
    {nullptr, "conv_nchw", ""},
    {nullptr, "batched", ""},
    {nullptr, "batched", "B=2 M=19 N=23 K=29"},
    {nullptr, "transposed", ""},
    {nullptr, "turned", ""},
    {nullptr, "bias_relu", ""},
    {nullptr, "residual", ""},
    {nullptr, "activated", ""},
    {nullptr, "weights_8bit", ""},
    {nullptr, "requantised", ""},
    {nullptr, "requantised", "M=33 N=17 K=50"},
    {nullptr, "bytes_across", ""},
    {nullptr, "two_products", ""},
};

// Two products and rows between them: weights in the type that tensor instructions multiply.
constexpr const char* kChains = R"(
op attention<H=2, T=64, S=64, E=32>(Q: f16[H,T,E], K: f16[H,S,E], V: f16[H,S,E]) -> (O: f16[H,T,E]) {
  let a[h,t,s] = (sum:f32[e] Q[h,t,e] * K[h,s,e]) * (1 / sqrt(E));
  let m[h,t]   = max[s] a[h,t,s];
  let p[h,t,s] = f16(exp(a[h,t,s] - m[h,t]));
  let l[h,t]   = sum:f32[s] p[h,t,s];
  let o[h,t,e] = sum:f32[s] p[h,t,s] * V[h,s,e];
  O[h,t,e]     = f16(o[h,t,e] / l[h,t]);
}
op causal<H=2, T=80, E=32>(Q: bf16[H,T,E], K: bf16[H,T,E], V: bf16[H,T,E]) -> (O: bf16[H,T,E]) {
  let a[h,t,s] = (sum:f32[e] Q[h,t,e] * K[h,s,e]) * (1 / sqrt(E));
  let m[h,t]   = max[s | s <= t] a[h,t,s];
  let p[h,t,s] = if s <= t then bf16(exp(a[h,t,s] - m[h,t])) else bf16(0);
  let l[h,t]   = sum:f32[s] p[h,t,s];
  let o[h,t,e] = sum:f32[s] p[h,t,s] * V[h,s,e];
  O[h,t,e]     = bf16(o[h,t,e] / l[h,t]);
}
op windowed<H=1, T=128, E=16, W=24>(Q: f16[H,T,E], K: f16[H,T,E], V: f16[H,T,E]) -> (O: f16[H,T,E]) {
  let a[h,t,s] = (sum:f32[e] Q[h,t,e] * K[h,s,e]) * (1 / sqrt(E));
  let m[h,t]   = max[s | s <= t && t < s + W] a[h,t,s];
  let p[h,t,s] = if s <= t && t < s + W then f16(exp(a[h,t,s] - m[h,t])) else f16(0);
  let l[h,t]   = sum:f32[s] p[h,t,s];
  let o[h,t,e] = sum:f32[s] p[h,t,s] * V[h,s,e];
  O[h,t,e]     = f16(o[h,t,e] / l[h,t]);
}
op grouped<H=4, G=2, T=48, S=32, E=16>(Q: f16[H,T,E], K: f16[H/G,S,E], V: f16[H/G,S,E])
   -> (O: f16[H,T,E]) where H % G == 0 {
  let a[h,t,s] = (sum:f32[e] Q[h,t,e] * K[h/G,s,e]) * (1 / sqrt(E));
  let m[h,t]   = max[s] a[h,t,s];
  let p[h,t,s] = f16(exp(a[h,t,s] - m[h,t]));
  let l[h,t]   = sum:f32[s] p[h,t,s];
  let o[h,t,e] = sum:f32[s] p[h,t,s] * V[h/G,s,e];
  O[h,t,e]     = f16(o[h,t,e] / l[h,t]);
}
op biased<T=32, S=48, E=16>(Q: f16[T,E], K: f16[S,E], V: f16[S,E], B: f32[T,S]) -> (O: f32[T,E]) {
  let a[t,s] = (sum:f32[e] Q[t,e] * K[s,e]) * (1 / sqrt(E)) + B[t,s];
  let m[t]   = max[s] a[t,s];
  let w[t,s] = exp(a[t,s] - m[t]);
  let l[t]   = sum[s] w[t,s];
  let p[t,s] = f16(w[t,s] / l[t]);
  O[t,e]     = sum:f32[s] p[t,s] * V[s,e];
}
op mlp<M=48, K=32, N=96, L=40>(A: f16[M,K], B: f16[K,N], D: f16[N,L]) -> (E: f32[M,L]) {
  let T[i,j] = f16(max(sum:f32[k] A[i,k] * B[k,j], 0));
  E[i,l] = sum:f32[j] T[i,j] * D[j,l];
}
op byte_chain<H=2, T=64, S=64, E=32>(Q: i8[H,T,E], K: i8[H,S,E], V: i8[H,S,E]) -> (O: i32[H,T,E]) {
  let a[h,t,s] = sum:i32[e] Q[h,t,e] * K[h,s,e];
  let p[h,t,s] = i8(clamp(a[h,t,s], -128, 127));
  O[h,t,e]     = sum:i32[s] p[h,t,s] * V[h,s,e];
}
op byte_chain_across<H=2, T=64, S=64, E=32>(Q: i8[H,T,E], K: i8[H,S,E], V: i8[H,S,E]) -> (O: i32[H,T,E]) {
  let a[h,t,s] = sum:i32[e] Q[h,t,e] * K[h,s,e];
  let p[h,s,t] = i8(clamp(a[h,t,s], -128, 127));
  O[h,t,e]     = sum:i32[s] p[h,s,t] * V[h,s,e];
}
)";

// Keys in tiles, each with its own maximum, which a later kernel combines.
constexpr const char* kSplitChains = R"(
op split_attention<H=2, T=64, S=96, E=32, B=32>(Q: f16[H,T,E], K: f16[H,S,E], V: f16[H,S,E])
   -> (O: f16[H,T,E]) where S % B == 0 {
  let a[h,t,c in 0..S/B,s in 0..B] = (sum:f32[e] Q[h,t,e] * K[h,c*B + s,e]) * (1 / sqrt(E));
  let m[h,t,c]   = max[s] a[h,t,c,s];
  let p[h,t,c,s] = f16(exp(a[h,t,c,s] - m[h,t,c]));
  let l[h,t,c]   = sum:f32[s] p[h,t,c,s];
  let o[h,t,c,e] = sum:f32[s] p[h,t,c,s] * V[h,c*B + s,e];
  let M[h,t]     = max[c] m[h,t,c];
  let L[h,t]     = sum[c] exp(m[h,t,c] - M[h,t]) * l[h,t,c];
  let w[h,t,c]   = exp(m[h,t,c] - M[h,t]) / L[h,t];
  O[h,t,e]       = f16(sum[c] w[h,t,c] * o[h,t,c,e]);
}
op split_causal_attention<H=2, T=96, E=16, B=32>(Q: bf16[H,T,E], K: bf16[H,T,E], V: bf16[H,T,E])
   -> (O: bf16[H,T,E]) where T % B == 0 {
  let a[h,t,c in 0..T/B,s in 0..B] = (sum:f32[e] Q[h,t,e] * K[h,c*B + s,e]) * (1 / sqrt(E));
  let m[h,t,c]   = max[s | c*B + s <= t] a[h,t,c,s];
  let p[h,t,c,s] = if c*B + s <= t then bf16(exp(a[h,t,c,s] - m[h,t,c])) else bf16(0);
  let l[h,t,c]   = sum:f32[s] p[h,t,c,s];
  let o[h,t,c,e] = sum:f32[s] p[h,t,c,s] * V[h,c*B + s,e];
  let M[h,t]     = max[c] m[h,t,c];
  let L[h,t]     = sum[c] exp(m[h,t,c] - M[h,t]) * l[h,t,c];
  let w[h,t,c]   = exp(m[h,t,c] - M[h,t]) / L[h,t];
  O[h,t,e]       = bf16(sum[c] w[h,t,c] * o[h,t,c,e]);
}
op split_single_attention<H=2, T=24, S=120, E=20, B=40>(Q: f32[H,T,E], K: f32[H,S,E], V: f32[H,S,E])
   -> (O: f32[H,T,E]) where S % B == 0 {
  let a[h,t,c in 0..S/B,s in 0..B] = (sum[e] Q[h,t,e] * K[h,c*B + s,e]) * (1 / sqrt(E));
  let m[h,t,c]   = max[s] a[h,t,c,s];
  let p[h,t,c,s] = exp(a[h,t,c,s] - m[h,t,c]);
  let l[h,t,c]   = sum[s] p[h,t,c,s];
  let o[h,t,c,e] = sum[s] p[h,t,c,s] * V[h,c*B + s,e];
  let M[h,t]     = max[c] m[h,t,c];
  let L[h,t]     = sum[c] exp(m[h,t,c] - M[h,t]) * l[h,t,c];
  let w[h,t,c]   = exp(m[h,t,c] - M[h,t]) / L[h,t];
  O[h,t,e]       = sum[c] w[h,t,c] * o[h,t,c,e];
}
)";

constexpr Row kChainRows[] = {
    {nullptr, "attention", ""},
    {nullptr, "attention", "T=33 S=51 E=24"},
    {nullptr, "attention", "H=1 T=128 S=160 E=64"},
    {nullptr, "attention", "H=1 T=32 S=48 E=128"},
    {nullptr, "attention", "H=1 T=32 S=48 E=20"},
    {nullptr, "causal", ""},
    {nullptr, "causal", "T=37 E=16"},
    {nullptr, "windowed", ""},
    {nullptr, "grouped", ""},
    {nullptr, "biased", ""},
    {nullptr, "mlp", ""},
    {nullptr, "byte_chain", ""},
    {nullptr, "byte_chain_across", ""},
};

constexpr Row kSingleChainRows[] = {
    {"std/attention.prn", "attention", "H=2 T=32 S=48 E=16"},
    {"std/attention.prn", "attention", "H=1 T=21 S=67 E=40"},
    {"std/attention.prn", "causal_attention", "H=2 T=40 E=32"},
    {"std/attention.prn", "grouped_query_attention", "H=4 G=2 T=16 S=40 E=20"},
};

// Whole tiles, ragged ones, as many tiles as a tile has keys, and one.
constexpr Row kSplitChainRows[] = {
    {nullptr, "split_attention", ""},
    {nullptr, "split_attention", "T=33 S=102 E=24 B=51"},
    {nullptr, "split_attention", "T=16 S=256 E=16 B=16"},
    {nullptr, "split_attention", "T=32 S=32 E=16"},
    {nullptr, "split_causal_attention", ""},
    {nullptr, "split_single_attention", ""},
};

constexpr Row kGroupChainRows[] = {
    {nullptr, "attention", "H=2 T=64 S=64 E=32"}, {nullptr, "attention", "H=1 T=128 S=160 E=64"},
    {nullptr, "causal", "H=1 T=192 E=32"},        {nullptr, "grouped", "H=2 T=64 S=128 E=24"},
    {nullptr, "biased", "T=64 S=48 E=40"},        {nullptr, "mlp", "M=64"},
    {nullptr, "windowed", "T=192 E=32"},
};

constexpr Row kGroupSplitChainRows[] = {
    {nullptr, "split_attention", "H=1 T=64 S=256 E=64 B=128"},
    {nullptr, "split_causal_attention", "H=1 T=128 B=64"},
};

constexpr Row kLargeRows[] = {
    {"std/gemm.prn", "gemm_nn", "M=65 N=70 K=33"},
    {"std/gemm.prn", "gemm_nn", "M=64 N=128 K=64"},
    {"std/gemm.prn", "gemm_nt", "M=96 N=64 K=48"},
    {"std/gemm.prn", "gemm_bias_gelu", "M=48 N=80 K=36"},
    {"std/gemm.prn", "batch_matmul", "B=3 M=33 N=20 K=24"},
    {"std/gemm.prn", "matvec", "M=65 K=260"},
    {"std/conv.prn", "conv2d", "CI=8 H=14 W=14 CO=16 KH=3 KW=3"},
    {"std/norm.prn", "softmax", "M=17 N=130"},
    {"std/norm.prn", "layer_norm", "M=9 N=200"},
    {"std/norm.prn", "rms_norm_f16", "M=8 N=128"},
    {"std/attention.prn", "attention", "H=2 T=16 S=24 E=16"},
    {"std/attention.prn", "attention_f16", "H=2 T=16 S=16 E=16"},
    {"std/reduce.prn", "row_sum", "M=19 N=300"},
    {"std/reduce.prn", "row_argmax", "M=7 N=200"},
    {"std/reduce.prn", "col_sum", "M=200 N=33"},
    {"std/elementwise.prn", "transpose2d", "M=65 N=70"},
    {"std/quantized.prn", "qgemm", "M=32 N=48 K=64"},
};

std::vector<NamedProgram> compile_rows(std::span<const Row> rows, const char* own) {
  std::vector<NamedProgram> out;
  for (const Row& row : rows) {
    lang::CompileInput input;
    input.file_name = row.file != nullptr ? row.file : "own.prn";
    input.text = row.file != nullptr ? *lang::import_std(row.file) : own;
    input.op = row.op;
    input.import = lang::import_std;
    std::stringstream words(row.bindings);
    std::string word;
    while (words >> word) {
      const std::size_t equals = word.find('=');
      input.bindings[word.substr(0, equals)] = word.substr(equals + 1);
    }
    const lang::LangResult compiled = lang::compile(input);
    if (!compiled.program) std::fprintf(stderr, "%s", compiled.rendered.c_str());
    PRUNERC_CHECK(compiled.program.has_value(), "an operator of the gallery compiles");
    out.push_back({std::string(row.op) + " " + row.bindings, *compiled.program});
  }
  return out;
}

}  // namespace

std::vector<NamedProgram> operator_gallery() { return compile_rows(kRows, kOwn); }

std::vector<NamedProgram> tensor_operators() { return compile_rows(kTensorRows, kProducts); }

std::vector<NamedProgram> chained_operators() { return compile_rows(kChainRows, kChains); }

std::vector<NamedProgram> single_chained_operators() {
  return compile_rows(kSingleChainRows, nullptr);
}

std::vector<NamedProgram> split_chained_operators() {
  return compile_rows(kSplitChainRows, kSplitChains);
}

std::vector<NamedProgram> group_chained_operators() {
  return compile_rows(kGroupChainRows, kChains);
}

std::vector<NamedProgram> group_split_chained_operators() {
  return compile_rows(kGroupSplitChainRows, kSplitChains);
}

std::string_view split_chained_text() { return kSplitChains; }

std::vector<NamedProgram> large_operators() { return compile_rows(kLargeRows, kOwn); }

}  // namespace prunerc::testing
