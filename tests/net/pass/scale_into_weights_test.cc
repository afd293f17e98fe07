// Factors move into weights, where that is the same but for rounding.
#include "ir/net/pass/scale_into_weights.h"

#include "tests/net/pass/nets.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace prunerc::testing {
namespace {

constexpr const char* kOps = R"(
op conv(X: f32[1,6,5,5], F: f32[8,6,3,3]) -> (Y: f32[1,8,5,5]) {
  Y[n,o,h,w] = sum[c,p,q] (X[n,c,h+p-1,w+q-1] or 0) * F[o,c,p,q];
}
op conv_bias(X: f32[1,6,5,5], F: f32[8,6,3,3], b: f32[8]) -> (Y: f32[1,8,5,5]) {
  let acc[n,o,h,w] = sum[c,p,q] (X[n,c,h+p-1,w+q-1] or 0) * F[o,c,p,q];
  Y[n,o,h,w] = acc[n,o,h,w] + b[o];
}
op grouped(X: f32[1,6,5,5], F: f32[8,3,3,3]) -> (Y: f32[1,8,5,5]) {
  Y[n,o,h,w] = sum[c,p,q] (X[n,o/4*3+c,h+p-1,w+q-1] or 0) * F[o,c,p,q];
}
op depthwise(X: f32[1,8,5,5], F: f32[8,1,3,3]) -> (Y: f32[1,8,5,5]) {
  Y[n,o,h,w] = sum[p,q] (X[n,o,h+p-1,w+q-1] or 0) * F[o,0,p,q];
}
op times(X: f32[1,8,5,5], s: f32[8]) -> (Y: f32[1,8,5,5]) { Y[n,c,h,w] = X[n,c,h,w] * s[c]; }
op over(X: f32[1,8,5,5], s: f32[1,8,1,1]) -> (Y: f32[1,8,5,5]) { Y[n,c,h,w] = X[n,c,h,w] / s[0,c,0,0]; }
op plus(X: f32[1,8,5,5], b: f32[8]) -> (Y: f32[1,8,5,5]) { Y[n,c,h,w] = b[c] + X[n,c,h,w]; }
op times_rows(X: f32[1,8,5,5], s: f32[5]) -> (Y: f32[1,8,5,5]) { Y[n,c,h,w] = X[n,c,h,w] * s[h]; }
op half(X: f32[1,8,5,5]) -> (Y: f32[1,8,5,5]) { Y[n,c,h,w] = X[n,c,h,w] * 0.375; }
op turned(X: f32[1,8,5,5]) -> (Y: f32[1,5,5,8]) { Y[n,h,w,c] = X[n,c,h,w]; }
op last(X: f32[1,5,5,8], s: f32) -> (Y: f32[1,5,5,8]) { Y[n,h,w,c] = X[n,h,w,c] * s; }
)";

std::string with_net(const std::string& body, const std::string& ports = "x: f32[1,6,5,5]",
                     const std::string& result = "f32[1,8,5,5]") {
  return std::string(kOps) + "net n(" + ports + ") -> (y: " + result + ") {\n" + body + "}\n";
}

// The calls afterwards; checks that the net computes the same.
std::string moved(const std::string& text, std::size_t wanted) {
  const net::Net before = net_or_die(text);
  std::size_t num_moved = 0;
  const Result<net::Net> after = net::scale_into_weights(before, {}, &num_moved);
  INFO((after.ok() ? "" : after.error().message()));
  REQUIRE(after.ok());
  CHECK(num_moved == wanted);
  for (uint64_t seed = 1; seed <= 3; ++seed) CHECK(net_difference(*after, before, seed).empty());
  CHECK(net::run_calls(*after).size() + wanted == net::run_calls(before).size());
  return calls_of(*after);
}

TEST_CASE("a factor per channel moves into the weights of a convolution") {
  CHECK(moved(with_net("const F: f32[8,6,3,3]; const s: f32[8]; let t = conv(x, F); y = times(t, "
                       "s);"),
              1) == "scale_weight_1(F, s) -> F_scaled\nconv(x, F_scaled) -> y\n");
  moved(with_net("const F: f32[8,3,3,3]; const s: f32[8]; let t = grouped(x, F); y = times(t, s);"),
        1);
  moved(with_net("const F: f32[8,1,3,3]; const s: f32[1,8,1,1]; let t = depthwise(x, F); y = "
                 "over(t, s);",
                 "x: f32[1,8,5,5]"),
        1);
}

TEST_CASE("a factor multiplies the biases that it passes") {
  CHECK(
      moved(with_net("const F: f32[8,6,3,3]; const s: f32[8]; const b: f32[8]; const c: f32[8];\n"
                     "let t = conv_bias(x, F, b); let u = plus(t, c); y = times(u, s);"),
            1) ==
      "scale_weight_2(F, s) -> F_scaled\nscale_weight_1(b, s) -> b_scaled\nconv_bias(x, F_scaled, "
      "b_scaled) -> t_scaled\nscale_weight_1(c, s) -> c_scaled\nplus(t_scaled, c_scaled) -> y\n");
}

TEST_CASE("factors move one after the other, and are computed themselves") {
  const std::string calls = moved(
      with_net(
          "const F: f32[8,6,3,3]; const s: f32[8]; const r: f32[1,8,1,1]; const b: f32[8];\n"
          "let t = conv(x, F); let u = times(t, s); let v = plus(u, b); let w = over(v, r); y = "
          "half(w);"),
      3);
  CHECK(calls.find("times") == std::string::npos);
  CHECK(calls.find("half") == std::string::npos);
}

TEST_CASE("a factor without an axis moves across views") {
  moved(with_net("const F: f32[8,6,3,3]; const s: f32; let t = conv(x, F); let u = turned(t); y = "
                 "last(u, s);",
                 "x: f32[1,6,5,5]", "f32[1,5,5,8]"),
        1);
}

TEST_CASE("of many factors in a row the first move") {
  std::string body = "const F: f32[8,6,3,3]; let t0 = conv(x, F);";
  for (int i = 1; i < 20; ++i) body += fmt::format(" let t{} = half(t{});", i, i - 1);
  moved(with_net(body + " y = half(t19);"), 16);
}

TEST_CASE("a weight of which a sum reads a part keeps its numbers") {
  moved(R"(
op part(X: f32[4,6], W: f32[6,16]) -> (Y: f32[4,8]) { Y[i,j] = sum[k] X[i,k] * W[k,j+0]; }
op times_part(X: f32[4,8], s: f32[8]) -> (Y: f32[4,8]) { Y[i,j] = X[i,j] * s[j]; }
net n(x: f32[4,6]) -> (y: f32[4,8]) {
  const W: f32[6,16]; const s: f32[8];
  let t = part(x, W);
  y = times_part(t, s);
})",
        0);
}

constexpr const char* kLonger = R"(
op product(X: f32[4,6], W: f32[6,8]) -> (Y: f32[4,8]) { Y[i,j] = sum[k] X[i,k] * W[k,j]; }
op times_first(X: f32[4,8], s: f32[16]) -> (Y: f32[4,8]) { Y[i,j] = X[i,j] * s[j+0]; }
op times_all(X: f32[4,8], s: f32[8]) -> (Y: f32[4,8]) { Y[i,j] = X[i,j] * s[j]; }
op plus_first(X: f32[4,8], b: f32[16]) -> (Y: f32[4,8]) { Y[i,j] = X[i,j] + b[j+0]; }
op half_all(X: f32[4,8]) -> (Y: f32[4,8]) { Y[i,j] = X[i,j] * 0.5; }
net n(x: f32[4,6]) -> (y: f32[4,8]) { const W: f32[6,8]; let t = product(x, W);
)";

TEST_CASE("of a longer vector of factors the first move") {
  CHECK(moved(std::string(kLonger) + "const s: f32[16]; y = times_first(t, s); }", 1) ==
        "scale_weight_1(W, s) -> W_scaled\nproduct(x, W_scaled) -> y\n");
}

TEST_CASE("a summand that is longer takes one number, and not a factor of each channel") {
  const std::string sum = std::string(kLonger) + "const b: f32[16]; let u = plus_first(t, b);";
  moved(sum + "const s: f32[8]; y = times_all(u, s); }", 0);
  moved(sum + "const s: f32[16]; y = times_first(u, s); }", 0);
  moved(sum + "y = half_all(u); }", 1);
}

TEST_CASE("factors move beside constants of any name") {
  moved(R"(
const W = 5; const s = 2;
op conv(A: f32[1,6,W,W], F: f32[8,6,1,1]) -> (B: f32[1,8,W,W]) {
  B[n,o,h,w] = sum[c] A[n,c,h,w] * F[o,c,0,0];
}
op times(A: f32[1,8,W,W], v: f32[8]) -> (B: f32[1,8,W,W]) { B[n,c,h,w] = A[n,c,h,w] * v[c]; }
op twice(A: f32[1,8,W,W]) -> (B: f32[1,8,W,W]) { B[n,c,h,w] = A[n,c,h,w] * s; }
net named(x: f32[1,6,5,5]) -> (y: f32[1,8,5,5]) {
  const F: f32[8,6,1,1]; const g: f32[8];
  let t = conv(x, F);
  let u = times(t, g);
  y = twice(u);
})",
        2);
}

TEST_CASE("factors stay where they may not move") {
  const std::string consts = "const F: f32[8,6,3,3]; const s: f32[8]; const r: f32[5];";
  const std::string net = "let t = conv(x, F); y = times(t, s);";
  // Not const; along an axis that the weight has not; read by two; an output; no weight above.
  moved(with_net("const s: f32[8]; let t = conv(x, F); y = times(t, s);",
                 "x: f32[1,6,5,5], F: f32[8,6,3,3]"),
        0);
  moved(with_net("const F: f32[8,6,3,3]; let t = conv(x, F); y = times(t, s);",
                 "x: f32[1,6,5,5], s: f32[8]"),
        0);
  moved(with_net(consts + "let t = conv(x, F); y = times_rows(t, r);"), 0);
  moved(with_net(consts + "let t = conv(x, F); let u = times(t, s); y = add(u, t);") +
            "op add(X: f32[1,8,5,5], Z: f32[1,8,5,5]) -> (Y: f32[1,8,5,5]) { Y[n,c,h,w] = "
            "X[n,c,h,w] + Z[n,c,h,w]; }",
        0);
  moved(with_net(consts + "t = conv(x, F); y = times(t, s);", "x: f32[1,6,5,5]",
                 "f32[1,8,5,5], t: f32[1,8,5,5]"),
        0);
  moved(with_net(consts + "y = times(x, s);", "x: f32[1,8,5,5]"), 0);
  // What is summed in f64 is not multiplied in f32.
  moved(R"(
op wide(X: f32[3,4], W: f32[4,5]) -> (Y: f64[3,5]) { Y[i,j] = sum[k] f64(X[i,k]) * f64(W[k,j]); }
op times_wide(X: f64[3,5], s: f64[5]) -> (Y: f64[3,5]) { Y[i,j] = X[i,j] * s[j]; }
net n(x: f32[3,4]) -> (y: f64[3,5]) {
  const W: f32[4,5]; const s: f64[5];
  let t = wide(x, W);
  y = times_wide(t, s);
})",
        0);
  const net::Net before = net_or_die(with_net(consts + net));
  const Result<net::Net> after = net::scale_into_weights(before, {.exact = true});
  REQUIRE(after.ok());
  CHECK(net::to_text(*after) == net::to_text(before));
}

}  // namespace
}  // namespace prunerc::testing
