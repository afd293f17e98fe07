// Programs that several tests schedule.
#ifndef PRUNERC_TESTS_SCHEDULE_PROGRAMS_H_
#define PRUNERC_TESTS_SCHEDULE_PROGRAMS_H_

#include <string_view>

namespace prunerc::testing {

/// C = A * B; loops @L0 (i), @L1 (j), @L2 (k), block @B0.
inline constexpr std::string_view kMatmul = R"(
program matmul(A: f32[16, 32], B: f32[32, 16]) -> (C: f32[16, 16]) {
  for i in 16 @L0 { for j in 16 @L1 { for k in 32 @L2 {
    block "C" @B0 [vi: S(16) = i, vj: S(16) = j, vk: R(32) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk]*B[vk, vj]
  } } } }
})";

/// y = relu(x w + b): block @B0 reduces under @L0 @L1 @L2, block @B1 is elementwise under @L3 @L4.
inline constexpr std::string_view kDenseRelu = R"(
program dense_relu(X: f32[8, 12], W: f32[12, 16], Bias: f32[16]) -> (Y: f32[8, 16]) {
  buffer T: f32[8, 16] global
  for i in 8 @L0 { for j in 16 @L1 { for k in 12 @L2 {
    block "T" @B0 [vi: S(8) = i, vj: S(16) = j, vk: R(12) = k] {
      init { T[vi, vj] = 0f32 }
      T[vi, vj] = T[vi, vj] + X[vi, vk]*W[vk, vj]
  } } } }
  for i in 8 @L3 { for j in 16 @L4 {
    block "Y" @B1 [vi: S(8) = i, vj: S(16) = j] {
      Y[vi, vj] = max(T[vi, vj] + Bias[vj], 0f32)
  } } }
})";

/// Padded 3x3 convolution: pad @B0 (@L0 .. @L2), convolution @B1 (@L3 .. @L8).
inline constexpr std::string_view kConv = R"(
program conv(X: f32[4, 8, 8], W: f32[6, 4, 3, 3]) -> (Y: f32[6, 8, 8]) {
  buffer P: f32[4, 10, 10] global
  for c in 4 @L0 { for h in 10 @L1 { for w in 10 @L2 {
    block "pad" @B0 [vc: S(4) = c, vh: S(10) = h, vw: S(10) = w] {
      P[vc, vh, vw] = select(1 <= vh && vh < 9 && 1 <= vw && vw < 9, X[vc, vh - 1, vw - 1], 0f32)
  } } } }
  for f in 6 @L3 { for h in 8 @L4 { for w in 8 @L5 { for c in 4 @L6 { for r in 3 @L7 { for s in 3 @L8 {
    block "conv" @B1 [vf: S(6) = f, vh: S(8) = h, vw: S(8) = w, vc: R(4) = c, vr: R(3) = r, vs: R(3) = s] {
      init { Y[vf, vh, vw] = 0f32 }
      Y[vf, vh, vw] = Y[vf, vh, vw] + P[vc, vh + vr, vw + vs]*W[vf, vc, vr, vs]
  } } } } } } }
})";

/// Row softmax without exp, so that results are exact: max @B0, difference @B1, sum @B2, quotient
/// @B3.
inline constexpr std::string_view kSoftmax = R"(
program softmax(X: f32[6, 10]) -> (Y: f32[6, 10]) {
  buffer M: f32[6] global
  buffer E: f32[6, 10] global
  buffer S: f32[6] global
  for i in 6 @L0 { for k in 10 @L1 {
    block "max" @B0 [vi: S(6) = i, vk: R(10) = k] {
      init { M[vi] = f32.ninf }
      M[vi] = max(M[vi], X[vi, vk])
  } } }
  for i in 6 @L2 { for j in 10 @L3 {
    block "exp" @B1 [vi: S(6) = i, vj: S(10) = j] {
      E[vi, vj] = X[vi, vj] - M[vi] - 1f32
  } } }
  for i in 6 @L4 { for k in 10 @L5 {
    block "sum" @B2 [vi: S(6) = i, vk: R(10) = k] {
      init { S[vi] = 0f32 }
      S[vi] = S[vi] + E[vi, vk]
  } } }
  for i in 6 @L6 { for j in 10 @L7 {
    block "div" @B3 [vi: S(6) = i, vj: S(10) = j] {
      Y[vi, vj] = E[vi, vj]/S[vi]
  } } }
})";

/// Row sums: @L0 (i), @L1 (k), block @B0.
inline constexpr std::string_view kRowSum = R"(
program row_sum(X: f32[6, 64]) -> (Y: f32[6]) {
  for i in 6 @L0 { for k in 64 @L1 {
    block "Y" @B0 [vi: S(6) = i, vk: R(64) = k] {
      init { Y[vi] = 0f32 }
      Y[vi] = Y[vi] + X[vi, vk]
  } } }
})";

/// No known reduction, as the order of its updates matters: @L0 (i), @L1 (k), block @B0.
inline constexpr std::string_view kFold = R"(
program fold(X: f32[4, 8]) -> (Y: f32[4]) {
  for i in 4 @L0 { for k in 8 @L1 {
    block "Y" @B0 [vi: S(4) = i, vk: R(8) = k] {
      init { Y[vi] = 0f32 }
      Y[vi] = X[vi, vk] - Y[vi]
  } } }
})";

/// Three elementwise stages on ten elements: @L0 @B0, @L1 @B1, @L2 @B2.
inline constexpr std::string_view kChain = R"(
program chain(X: f32[10]) -> (Y: f32[10]) {
  buffer S: f32[10] global
  buffer T: f32[10] global
  for i in 10 @L0 { block "S" @B0 [v: S(10) = i] { S[v] = X[v] + 1f32 } }
  for i in 10 @L1 { block "T" @B1 [v: S(10) = i] { T[v] = S[v]*2f32 } }
  for i in 10 @L2 { block "Y" @B2 [v: S(10) = i] { Y[v] = T[v] - 3f32 } }
})";

/// Three-point stencil over a produced row: @L0 @B0, @L1 @B1.
inline constexpr std::string_view kStencil = R"(
program stencil(X: f32[18]) -> (Y: f32[16]) {
  buffer T: f32[18] global
  for i in 18 @L0 { block "T" @B0 [v: S(18) = i] { T[v] = X[v] + 1f32 } }
  for i in 16 @L1 { block "Y" @B1 [v: S(16) = i] { Y[v] = T[v] + T[v + 1] + T[v + 2] } }
})";

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SCHEDULE_PROGRAMS_H_
