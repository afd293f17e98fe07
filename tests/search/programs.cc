#include "tests/search/programs.h"

#include "ir/equal.h"
#include "ir/parser.h"
#include "ir/support/check.h"
#include "tests/support/check.h"

#include <deque>
#include <initializer_list>

namespace prunerc::testing {
namespace {

/// An operator again, with inputs that are the same in every call.
struct ConstVersion {
  const char* name;
  const char* of;
  std::initializer_list<const char*> inputs;
};

std::vector<NamedProgram> with_const_versions(std::vector<NamedProgram> programs) {
  static std::deque<std::string> texts;
  const ConstVersion versions[] = {
      {"gemm_const", "gemm", {"B"}},
      {"gemm_odd_const", "gemm_odd", {"B"}},
      {"gemm_left_const", "gemm_odd", {"A"}},
      {"gemm_nt_const", "gemm_nt", {"B"}},
      {"dense_relu_const", "dense_relu", {"B", "b"}},
      {"linear_relu_const", "linear_relu", {"W", "b"}},
      {"conv2d_const", "conv2d", {"F"}},
      {"conv2d_relu_const", "conv2d_relu", {"F", "b"}},
      {"conv2d_nhwc_relu_const", "conv2d_nhwc_relu", {"F", "b"}},
      {"gemm_nt_sum_const", "gemm_nt_sum", {"B", "D"}},
  };
  for (const ConstVersion& version : versions) {
    std::string text;
    for (const NamedProgram& program : programs) {
      if (std::string(program.name) == version.of) text = program.text;
    }
    for (const char* input : version.inputs) {
      const std::size_t at = text.find(std::string(input) + ": f32[");
      PRUNERC_CHECK(at != std::string::npos, "an operator has the inputs of its const version");
      text.insert(at, "const ");
    }
    programs.push_back({version.name, texts.emplace_back(std::move(text)).c_str()});
  }
  return programs;
}

}  // namespace

const std::vector<NamedProgram>& operator_programs() {
  static const std::vector<NamedProgram> programs = with_const_versions({
      {"gemm", R"(program gemm(A: f32[24, 20], B: f32[20, 144]) -> (C: f32[24, 144]) {
  for i in 24 { for j in 144 { for k in 20 {
    block "C" [vi: S(24) = i, vj: S(144) = j, vk: R(20) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] } } } } })"},
      {"gemm_odd", R"(program gemm_odd(A: f32[13, 7], B: f32[7, 37]) -> (C: f32[13, 37]) {
  for i in 13 { for j in 37 { for k in 7 {
    block "C" [vi: S(13) = i, vj: S(37) = j, vk: R(7) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] } } } } })"},
      {"dense_relu",
       R"(program dense_relu(A: f32[12, 16], B: f32[16, 40], b: f32[40]) -> (Y: f32[12, 40]) {
  buffer T: f32[12, 40] global
  for i in 12 { for j in 40 { for k in 16 {
    block "T" [vi: S(12) = i, vj: S(40) = j, vk: R(16) = k] {
      init { T[vi, vj] = 0f32 }
      T[vi, vj] = T[vi, vj] + A[vi, vk] * B[vk, vj] } } } }
  for i2 in 12 { for j2 in 40 {
    block "Y" [wi: S(12) = i2, wj: S(40) = j2] {
      Y[wi, wj] = max(T[wi, wj] + b[wj], 0f32) } } } })"},
      {"batch_matmul",
       R"(program batch_matmul(A: f32[3, 9, 8], B: f32[3, 8, 33]) -> (C: f32[3, 9, 33]) {
  for b in 3 { for i in 9 { for j in 33 { for k in 8 {
    block "C" [vb: S(3) = b, vi: S(9) = i, vj: S(33) = j, vk: R(8) = k] {
      init { C[vb, vi, vj] = 0f32 }
      C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * B[vb, vk, vj] } } } } } })"},
      {"gemm_nt", R"(program gemm_nt(A: f32[13, 40], B: f32[29, 40]) -> (C: f32[13, 29]) {
  for i in 13 { for j in 29 { for k in 40 {
    block "C" [vi: S(13) = i, vj: S(29) = j, vk: R(40) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk] } } } } })"},
      {"linear_relu",
       R"(program linear_relu(X: f32[12, 16], W: f32[40, 16], b: f32[40]) -> (Y: f32[12, 40]) {
  buffer T: f32[12, 40] global
  for i in 12 { for j in 40 { for k in 16 {
    block "T" [vi: S(12) = i, vj: S(40) = j, vk: R(16) = k] {
      init { T[vi, vj] = 0f32 }
      T[vi, vj] = T[vi, vj] + X[vi, vk] * W[vj, vk] } } } }
  for i2 in 12 { for j2 in 40 {
    block "Y" [wi: S(12) = i2, wj: S(40) = j2] {
      Y[wi, wj] = max(T[wi, wj] + b[wj], 0f32) } } } })"},
      {"scores", R"(program scores(Q: f32[3, 9, 17], K: f32[3, 21, 17]) -> (C: f32[3, 9, 21]) {
  for b in 3 { for i in 9 { for j in 21 { for k in 17 {
    block "C" [vb: S(3) = b, vi: S(9) = i, vj: S(21) = j, vk: R(17) = k] {
      init { C[vb, vi, vj] = 0f32 }
      C[vb, vi, vj] = C[vb, vi, vj] + Q[vb, vi, vk] * K[vb, vj, vk] } } } } } })"},
      {"gemm_nt_sum",
       R"(program gemm_nt_sum(A: f32[9, 16], B: f32[35, 16], D: f32[35, 16]) -> (C: f32[9, 35]) {
  for i in 9 { for j in 35 { for k in 16 {
    block "C" [vi: S(9) = i, vj: S(35) = j, vk: R(16) = k] {
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * (B[vj, vk] + D[vj, vk]) } } } } })"},
      {"conv2d", R"(program conv2d(X: f32[5, 9, 18], F: f32[6, 5, 3, 3]) -> (Y: f32[6, 9, 18]) {
  for co in 6 { for oh in 9 { for ow in 18 { for ci in 5 { for kh in 3 { for kw in 3 {
    block "Y" [c: S(6) = co, h: S(9) = oh, w: S(18) = ow, i: R(5) = ci, r: R(3) = kh, s: R(3) = kw] {
      init { Y[c, h, w] = 0f32 }
      Y[c, h, w] = Y[c, h, w] + select(0 <= h + r - 1 && h + r - 1 < 9 && 0 <= w + s - 1 && w + s - 1 < 18,
        X[i, h + r - 1, w + s - 1], 0f32) * F[c, i, r, s] } } } } } } } })"},
      {"conv2d_relu",
       R"(program conv2d_relu(X: f32[4, 8, 20], F: f32[8, 4, 3, 3], b: f32[8]) -> (Y: f32[8, 6, 18]) {
  buffer T: f32[8, 6, 18] global
  for co in 8 { for oh in 6 { for ow in 18 { for ci in 4 { for kh in 3 { for kw in 3 {
    block "T" [c: S(8) = co, h: S(6) = oh, w: S(18) = ow, i: R(4) = ci, r: R(3) = kh, s: R(3) = kw] {
      init { T[c, h, w] = 0f32 }
      T[c, h, w] = T[c, h, w] + X[i, h + r, w + s] * F[c, i, r, s] } } } } } } }
  for co2 in 8 { for oh2 in 6 { for ow2 in 18 {
    block "Y" [c2: S(8) = co2, h2: S(6) = oh2, w2: S(18) = ow2] {
      Y[c2, h2, w2] = max(T[c2, h2, w2] + b[c2], 0f32) } } } } })"},
      {"conv2d_nhwc_relu",
       R"(program conv2d_nhwc_relu(X: f32[7, 9, 4], F: f32[3, 3, 4, 18], b: f32[18]) -> (Y: f32[5, 7, 18]) {
  buffer T: f32[5, 7, 18] global
  for oh in 5 { for ow in 7 { for co in 18 { for kh in 3 { for kw in 3 { for ci in 4 {
    block "T" [h: S(5) = oh, w: S(7) = ow, c: S(18) = co, r: R(3) = kh, s: R(3) = kw, i: R(4) = ci] {
      init { T[h, w, c] = 0f32 }
      T[h, w, c] = T[h, w, c] + X[h + r, w + s, i] * F[r, s, i, c] } } } } } } }
  for oh2 in 5 { for ow2 in 7 { for co2 in 18 {
    block "Y" [h2: S(5) = oh2, w2: S(7) = ow2, c2: S(18) = co2] {
      Y[h2, w2, c2] = max(T[h2, w2, c2] + b[c2], 0f32) } } } } })"},
      {"pointwise_conv",
       R"(program pointwise_conv(X: f32[2, 5, 7, 6], F: f32[6, 19]) -> (Y: f32[2, 5, 7, 19]) {
  for n in 2 { for h in 5 { for w in 7 { for co in 19 { for ci in 6 {
    block "Y" [b: S(2) = n, y: S(5) = h, x: S(7) = w, c: S(19) = co, i: R(6) = ci] {
      init { Y[b, y, x, c] = 0f32 }
      Y[b, y, x, c] = Y[b, y, x, c] + X[b, y, x, i] * F[i, c] } } } } } } })"},
      {"grouped_conv_relu",
       R"(program grouped_conv_relu(X: f32[8, 8, 20], F: f32[12, 4, 3, 3], b: f32[12]) -> (Y: f32[12, 6, 18]) {
  buffer T: f32[12, 6, 18] global
  for co in 12 { for oh in 6 { for ow in 18 { for ci in 4 { for kh in 3 { for kw in 3 {
    block "T" [c: S(12) = co, h: S(6) = oh, w: S(18) = ow, i: R(4) = ci, r: R(3) = kh, s: R(3) = kw] {
      init { T[c, h, w] = 0f32 }
      T[c, h, w] = T[c, h, w] + X[c // 6*4 + i, h + r, w + s] * F[c, i, r, s] } } } } } } }
  for co2 in 12 { for oh2 in 6 { for ow2 in 18 {
    block "Y" [c2: S(12) = co2, h2: S(6) = oh2, w2: S(18) = ow2] {
      Y[c2, h2, w2] = max(T[c2, h2, w2] + b[c2], 0f32) } } } } })",
       false},
      {"grouped_conv",
       R"(program grouped_conv(X: f32[8, 7, 20], F: f32[6, 4, 3]) -> (Y: f32[6, 7, 18]) {
  for co in 6 { for oh in 7 { for ow in 18 { for ci in 4 { for kw in 3 {
    block "Y" [c: S(6) = co, h: S(7) = oh, w: S(18) = ow, i: R(4) = ci, s: R(3) = kw] {
      init { Y[c, h, w] = 0f32 }
      Y[c, h, w] = Y[c, h, w] + X[c // 3*4 + i, h, w + s] * F[c, i, s] } } } } } } })",
       false},
      {"transposed_conv",
       R"(program transposed_conv(X: f32[3, 4, 18], F: f32[3, 6, 4, 4]) -> (Y: f32[6, 8, 36]) {
  for co in 6 { for oh in 8 { for ow in 36 { for ci in 3 { for kh in 4 { for kw in 4 {
    block "Y" [c: S(6) = co, h: S(8) = oh, w: S(36) = ow, i: R(3) = ci, r: R(4) = kh, s: R(4) = kw] {
      init { Y[c, h, w] = 0f32 }
      Y[c, h, w] = Y[c, h, w] + select((h + 1 - r) % 2 == 0 && (w + 1 - s) % 2 == 0,
        select(0 <= (h - r + 1) // 2 && (h - r + 1) // 2 < 4 && 0 <= (w - s + 1) // 2 && (w - s + 1) // 2 < 18,
          X[i, (h - r + 1) // 2, (w - s + 1) // 2], 0f32)*F[i, c, r, s], 0f32) } } } } } } } })",
       false},
      {"transposed_conv_taps",
       R"(program transposed_conv_taps(X: f32[1, 3, 17], F: f32[3, 6, 3], b: f32[6]) -> (Y: f32[1, 6, 34]) {
  buffer T: f32[1, 6, 34] global
  for n in 1 { for co in 6 { for ow in 34 { for ci in 3 { for kw in 3 {
    block "T" [m: S(1) = n, c: S(6) = co, w: S(34) = ow, i: R(3) = ci, s: R(3) = kw] {
      init { T[m, c, w] = 0f32 }
      T[m, c, w] = T[m, c, w] + select((w + 1 - s) % 2 == 0,
        select(0 <= (w - s + 1) // 2 && (w - s + 1) // 2 < 17, X[m, i, (w - s + 1) // 2], 0f32)*F[i, c, s],
        0f32) } } } } } }
  for n2 in 1 { for co2 in 6 { for ow2 in 34 {
    block "Y" [m2: S(1) = n2, c2: S(6) = co2, w2: S(34) = ow2] {
      Y[m2, c2, w2] = T[m2, c2, w2] + b[c2] } } } } })",
       false},
      {"depthwise", R"(program depthwise(X: f32[5, 11, 23], F: f32[5, 3, 3]) -> (Y: f32[5, 5, 11]) {
  for c in 5 { for oh in 5 { for ow in 11 { for kh in 3 { for kw in 3 {
    block "Y" [vc: S(5) = c, h: S(5) = oh, w: S(11) = ow, r: R(3) = kh, s: R(3) = kw] {
      init { Y[vc, h, w] = 0f32 }
      Y[vc, h, w] = Y[vc, h, w] + X[vc, h*2 + r, w*2 + s] * F[vc, r, s] } } } } } } })"},
      {"max_pool", R"(program max_pool(X: f32[3, 12, 36]) -> (Y: f32[3, 10, 34]) {
  for c in 3 { for oh in 10 { for ow in 34 { for kh in 3 { for kw in 3 {
    block "Y" [vc: S(3) = c, h: S(10) = oh, w: S(34) = ow, r: R(3) = kh, s: R(3) = kw] {
      init { Y[vc, h, w] = f32.ninf }
      Y[vc, h, w] = max(Y[vc, h, w], X[vc, h + r, w + s]) } } } } } } })"},
      {"softmax_like", R"(program softmax_like(X: f32[11, 67]) -> (Y: f32[11, 67]) {
  buffer m: f32[11] global
  buffer e: f32[11, 67] global
  buffer s: f32[11] global
  for i in 11 { for j in 67 { block "m" [vi: S(11) = i, vj: R(67) = j] {
    init { m[vi] = f32.ninf }
    m[vi] = max(m[vi], X[vi, vj]) } } }
  for i1 in 11 { for j1 in 67 { block "e" [vi1: S(11) = i1, vj1: S(67) = j1] {
    e[vi1, vj1] = abs(X[vi1, vj1] - m[vi1]) } } }
  for i2 in 11 { for j2 in 67 { block "s" [vi2: S(11) = i2, vj2: R(67) = j2] {
    init { s[vi2] = 0f32 }
    s[vi2] = s[vi2] + e[vi2, vj2] } } }
  for i3 in 11 { for j3 in 67 { block "Y" [vi3: S(11) = i3, vj3: S(67) = j3] {
    Y[vi3, vj3] = e[vi3, vj3] + s[vi3] } } } })"},
      {"row_sum", R"(program row_sum(X: f32[9, 130]) -> (Y: f32[9]) {
  for i in 9 { for j in 130 { block "Y" [vi: S(9) = i, vj: R(130) = j] {
    init { Y[vi] = 0f32 }
    Y[vi] = Y[vi] + X[vi, vj] } } } })"},
      {"col_sum", R"(program col_sum(X: f32[19, 70]) -> (Y: f32[70]) {
  for j in 70 { for i in 19 { block "Y" [vj: S(70) = j, vi: R(19) = i] {
    init { Y[vj] = 0f32 }
    Y[vj] = Y[vj] + X[vi, vj] } } } })"},
      {"total_sum", R"(program total_sum(X: f32[7, 50]) -> (s: f32) {
  for i in 7 { for j in 50 { block "s" [vi: R(7) = i, vj: R(50) = j] {
    init { s[] = 0f32 }
    s[] = s[] + X[vi, vj] } } } })"},
      {"add_relu", R"(program add_relu(X: f32[17, 53], b: f32[53]) -> (Y: f32[17, 53]) {
  buffer T: f32[17, 53] global
  for i in 17 { for j in 53 { block "T" [vi: S(17) = i, vj: S(53) = j] {
    T[vi, vj] = X[vi, vj] + b[vj] } } }
  for i1 in 17 { for j1 in 53 { block "Y" [wi: S(17) = i1, wj: S(53) = j1] {
    Y[wi, wj] = max(T[wi, wj], 0f32) } } } })"},
      {"axpy", R"(program axpy(a: f32, X: f32[1000], Z: f32[1000]) -> (Y: f32[1000]) {
  for i in 1000 { block "Y" [vi: S(1000) = i] { Y[vi] = a[] * X[vi] + Z[vi] } } })"},
      {"transpose_add",
       R"(program transpose_add(X: f32[3, 37, 50], b: f32[37]) -> (Y: f32[3, 50, 37]) {
  for n in 3 { for j in 50 { for i in 37 {
    block "Y" [vn: S(3) = n, vj: S(50) = j, vi: S(37) = i] { Y[vn, vj, vi] = X[vn, vi, vj] + b[vi] } } } } })"},
      {"running_sum", R"(program running_sum(X: f32[3, 7, 29]) -> (Y: f32[3, 7, 29]) {
  for n in 3 { for i in 7 { for j in 29 { for k in 29 {
    block "Y" @B0 [vn: S(3) = n, vi: S(7) = i, vj: S(29) = j, vk: R(29) = k] {
      init { Y[vn, vi, vj] = 0f32 }
      Y[vn, vi, vj] = Y[vn, vi, vj] + select(vk <= vj, X[vn, vi, vk], 0f32) } } } } } })",
       false},
      {"running_max", R"(program running_max(X: f32[3, 29, 37]) -> (Y: f32[3, 29, 37]) {
  for n in 3 { for j in 29 { for i in 37 { for k in 29 {
    block "Y" @B0 [vn: S(3) = n, vj: S(29) = j, vi: S(37) = i, vk: R(29) = k] {
      init { Y[vn, vj, vi] = f32.ninf }
      Y[vn, vj, vi] = max(Y[vn, vj, vi], select(vk <= vj, X[vn, vk, vi], f32.ninf)) } } } } } })",
       false},
      {"attention",
       R"(program attention(Q: f32[2, 9, 17], K: f32[2, 21, 17], V: f32[2, 21, 18]) -> (Y: f32[2, 9, 18]) {
  buffer A: f32[2, 9, 21] global
  buffer M: f32[2, 9] global
  buffer P: f32[2, 9, 21] global
  buffer L: f32[2, 9] global
  buffer T: f32[2, 9, 18] global
  for b in 2 { for i in 9 { for j in 21 { for k in 17 {
    block "A" [vb: S(2) = b, vi: S(9) = i, vj: S(21) = j, vk: R(17) = k] {
      init { A[vb, vi, vj] = 0f32 }
      A[vb, vi, vj] = A[vb, vi, vj] + Q[vb, vi, vk] * K[vb, vj, vk] } } } } }
  for b1 in 2 { for i1 in 9 { for j1 in 21 {
    block "M" [vb1: S(2) = b1, vi1: S(9) = i1, vj1: R(21) = j1] {
      init { M[vb1, vi1] = f32.ninf }
      M[vb1, vi1] = max(M[vb1, vi1], A[vb1, vi1, vj1]) } } } }
  for b2 in 2 { for i2 in 9 { for j2 in 21 {
    block "P" [vb2: S(2) = b2, vi2: S(9) = i2, vj2: S(21) = j2] {
      P[vb2, vi2, vj2] = exp(A[vb2, vi2, vj2] - M[vb2, vi2]) } } } }
  for b3 in 2 { for i3 in 9 { for j3 in 21 {
    block "L" [vb3: S(2) = b3, vi3: S(9) = i3, vj3: R(21) = j3] {
      init { L[vb3, vi3] = 0f32 }
      L[vb3, vi3] = L[vb3, vi3] + P[vb3, vi3, vj3] } } } }
  for b4 in 2 { for i4 in 9 { for e4 in 18 { for j4 in 21 {
    block "T" [vb4: S(2) = b4, vi4: S(9) = i4, ve4: S(18) = e4, vj4: R(21) = j4] {
      init { T[vb4, vi4, ve4] = 0f32 }
      T[vb4, vi4, ve4] = T[vb4, vi4, ve4] + P[vb4, vi4, vj4] * V[vb4, vj4, ve4] } } } } }
  for b5 in 2 { for i5 in 9 { for e5 in 18 {
    block "Y" [vb5: S(2) = b5, vi5: S(9) = i5, ve5: S(18) = e5] {
      Y[vb5, vi5, ve5] = T[vb5, vi5, ve5] / L[vb5, vi5] } } } } })"},
      {"two_layers",
       R"(program two_layers(X: f32[13, 7], W: f32[7, 37], U: f32[37, 19]) -> (Y: f32[13, 19]) {
  buffer H: f32[13, 37] global
  for i in 13 { for j in 37 { for k in 7 {
    block "H" [vi: S(13) = i, vj: S(37) = j, vk: R(7) = k] {
      init { H[vi, vj] = 0f32 }
      H[vi, vj] = H[vi, vj] + X[vi, vk] * W[vk, vj] } } } }
  for i1 in 13 { for j1 in 19 { for k1 in 37 {
    block "Y" [vi1: S(13) = i1, vj1: S(19) = j1, vk1: R(37) = k1] {
      init { Y[vi1, vj1] = 0f32 }
      Y[vi1, vj1] = Y[vi1, vj1] + H[vi1, vk1] * U[vk1, vj1] } } } } })",
       false},
      {"gemm_i8", R"(program gemm_i8(A: i8[10, 12], B: i8[12, 35]) -> (C: i32[10, 35]) {
  for i in 10 { for j in 35 { for k in 12 {
    block "C" [vi: S(10) = i, vj: S(35) = j, vk: R(12) = k] {
      init { C[vi, vj] = 0i32 }
      C[vi, vj] = C[vi, vj] + i32(A[vi, vk]) * i32(B[vk, vj]) } } } } })"},
  });
  return programs;
}

ir::Program operator_program(const std::string& name) {
  for (const NamedProgram& program : operator_programs()) {
    if (program.name == name) return parse_or_die(program.text);
  }
  FAIL("no operator program named " << name);
  return {};
}

search::Task make_test_task(const std::string& name, int num_threads) {
  Result<ir::Target> target = ir::target_from_string("cpu:icelake-server");
  REQUIRE_OK(target);
  target->num_threads = num_threads;
  return search::make_task(name, operator_program(name), *target);
}

void TableMeasurer::submit(search::MeasureInput input) {
  ++(input.kind == search::MeasureKind::kTime ? num_timed : num_verified);
  pending_.push_back(std::move(input));
}

std::optional<search::MeasureOutcome> TableMeasurer::next(search::Deadline) {
  if (pending_.empty()) return std::nullopt;
  search::MeasureInput input;
  if (reversed_) {
    input = std::move(pending_.back());
    pending_.pop_back();
  } else {
    input = std::move(pending_.front());
    pending_.pop_front();
  }
  return search::MeasureOutcome{input.id, formula_(input)};
}

search::Measurement hashed_time(const search::MeasureInput& input) {
  search::Measurement m;
  m.status = MeasureStatus::kOk;
  const Fingerprint print = ir::fingerprint(input.program);
  m.samples_ns.push_back(1000 + static_cast<double>(print.low % 1000));
  if (input.kind == search::MeasureKind::kVerify) m.evidence = "compared";
  search::summarize_samples(m);
  return m;
}

}  // namespace prunerc::testing
