#include "tests/support/narrow_products.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::testing {
namespace {

// The text with each of the letters as a number; letters are capitals that no keyword has.
std::string sized(std::string text, const std::vector<std::pair<char, int>>& sizes) {
  for (const auto& [letter, extent] : sizes) {
    for (auto at = text.find(letter); at != text.npos; at = text.find(letter)) {
      text.replace(at, 1, std::to_string(extent));
    }
  }
  return text;
}

std::string typed(std::string text, const NarrowTypes& types) {
  const std::pair<std::string_view, const char*> names[] = {
      {"$a", types.a}, {"$b", types.b}, {"$c", types.c}};
  for (const auto& [from, to] : names) {
    for (auto at = text.find(from); at != text.npos; at = text.find(from)) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

}  // namespace

std::string narrow_product(const NarrowTypes& t, const NarrowShape& s, const std::string& a,
                           const std::string& b, bool is_const) {
  const std::vector<std::pair<char, int>> sizes = {{'M', s.m}, {'N', s.n}, {'K', s.k}};
  const auto shape = [&](const std::string& operand) {
    std::string dims = operand.substr(0, operand.find(" |"));
    dims.replace(dims.find(' '), 1, ", ");
    return sized(dims, sizes);
  };
  const auto at = [](const std::string& operand) { return operand.substr(operand.find("| ") + 2); };
  const std::string c = t.c;
  return "program p(A: " + std::string(t.a) + "[" + shape(a) + "], " + (is_const ? "const " : "") +
         "B: " + t.b + "[" + shape(b) + "]) -> (C: " + c + sized("[M, N]) {", sizes) +
         sized("for i in M { for j in N { for k in K { block \"C\" [vi: S(M) = i, vj: S(N) = j, ",
               sizes) +
         sized("vk: R(K) = k] { init { C[vi, vj] = 0", sizes) + c + " } C[vi, vj] = C[vi, vj] + " +
         c + "(A[" + at(a) + "])*" + c + "(B[" + at(b) + "]) } } } } }";
}

std::string narrow_batch(const NarrowTypes& types, int batch, const NarrowShape& s) {
  const std::string text = R"(program p(A: $a[G, M, K], B: $b[G, K, N]) -> (C: $c[G, M, N]) {
  for b in G { for i in M { for j in N { for k in K {
    block "C" [vb: S(G) = b, vi: S(M) = i, vj: S(N) = j, vk: R(K) = k] {
      init { C[vb, vi, vj] = 0$c }
      C[vb, vi, vj] = C[vb, vi, vj] + $c(A[vb, vi, vk])*$c(B[vb, vk, vj]) } } } } } })";
  // R and S say what an axis is; A, B and C are buffers.
  return typed(sized(text, {{'G', batch}, {'M', s.m}, {'N', s.n}, {'K', s.k}}), types);
}

std::string narrow_convolution(const NarrowTypes& types, const NarrowConvolution& shape) {
  const int read = (shape.width - 1) * shape.stride + shape.window;
  const auto at = [&](const std::string& pixel, const std::string& tap) {
    return pixel + (shape.stride > 1 ? "*D" : "") + (shape.window > 1 ? " + " + tap : "");
  };
  const std::string text =
      R"(program c(X: $a[1, H, H, K], const F: $b[Q, Q, K, N]) -> (Y: $c[1, W, W, N]) {
  for h in W { for w in W { for f in N { for r in Q { for s in Q { for c in K {
    block "Y" [vh: S(W) = h, vw: S(W) = w, vf: S(N) = f, vr: R(Q) = r, vs: R(Q) = s, vc: R(K) = c] {
      init { Y[0, vh, vw, vf] = 0$c }
      Y[0, vh, vw, vf] = Y[0, vh, vw, vf] +
          $c(X[0, )" +
      at("vh", "vr") + ", " + at("vw", "vs") + R"(, vc])*$c(F[vr, vs, vc, vf]) } } } } } } } })";
  const std::string all = sized(text, {{'H', read},
                                       {'W', shape.width},
                                       {'K', shape.channels},
                                       {'N', shape.filters},
                                       {'Q', shape.window},
                                       {'D', shape.stride}});
  return typed(all, types);
}

std::string requantized_pixels() {
  return R"(
program q(X: u8[1, 7, 7, 64], const F: i8[64, 33], const S: f32[33]) -> (Z: u8[1, 7, 7, 33]) {
  buffer Y: i32[1, 7, 7, 33] global
  for h in 7 { for w in 7 { for f in 33 { for c in 64 {
    block "Y" [vh: S(7) = h, vw: S(7) = w, vf: S(33) = f, vc: R(64) = c] {
      init { Y[0, vh, vw, vf] = 0i32 }
      Y[0, vh, vw, vf] = Y[0, vh, vw, vf] + i32(X[0, vh, vw, vc])*i32(F[vc, vf]) } } } } }
  for h2 in 7 { for w2 in 7 { for f2 in 33 {
    block "Z" [uh: S(7) = h2, uw: S(7) = w2, uf: S(33) = f2] {
      Z[0, uh, uw, uf] = u8(min(max(round(f32(Y[0, uh, uw, uf])*S[uf]), 0f32), 255f32)) } } } } })";
}

void set_non_finite(std::vector<ir::Tensor>* inputs) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ir::Tensor &a = inputs->at(0), &b = inputs->at(1);
  const int64_t depth = a.shape[1], columns = b.shape[1];
  a.set(0, kInfinity);
  a.set(2 * depth + depth / 2, -kInfinity);
  a.set(a.num_elements() - 1, std::nan(""));
  b.set(columns / 2, kInfinity);
  b.set(columns - 1, std::nan(""));
  b.set(b.num_elements() - 2, -kInfinity);
}

bool has_same_values(const ir::Tensor& a, const ir::Tensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.get(i), y = b.get(i);
    if (x != y && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

int most_in_a_loop(const std::string& assembly, const std::string& name) {
  int most = 0, here = 0;
  for (std::size_t at = 0; at < assembly.size();) {
    const std::size_t end = std::min(assembly.find('\n', at), assembly.size());
    const std::string line = assembly.substr(at, end - at);
    if (line.rfind(".L", 0) == 0) here = 0;
    if (line.find("\t" + name) != line.npos) ++here;
    if (line.rfind("\tj", 0) == 0) most = std::max(most, std::exchange(here, 0));
    at = end + 1;
  }
  return most;
}

}  // namespace prunerc::testing
