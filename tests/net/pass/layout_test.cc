// Networks with channels first become channels-last inside.
#include "ir/net/pass/layout.h"

#include "ir/canonical.h"
#include "ir/printer.h"
#include "tests/net/pass/nets.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace prunerc::testing {
namespace {

constexpr const char* kOps = R"(import "std/conv.prn";
op relu<N, C, H, W>(X: f32[N,C,H,W]) -> (Y: f32[N,C,H,W]) { Y[n,c,h,w] = max(X[n,c,h,w], 0); }
op add<N, C, H, W>(A: f32[N,C,H,W], B: f32[N,C,H,W]) -> (Y: f32[N,C,H,W]) {
  Y[n,c,h,w] = A[n,c,h,w] + B[n,c,h,w];
}
op shift<N, C, H, W>(X: f32[N,C,H,W], const b: f32[C]) -> (Y: f32[N,C,H,W]) {
  Y[n,c,h,w] = X[n,c,h,w] + b[c];
}
op pool<N, C, H, W>(X: f32[N,C,H,W]) -> (Y: f32[N,C,P,Q]) where P = (H-1)/2 + 1, Q = (W-1)/2 + 1 {
  Y[n,c,h,w] = max[i in 0..3, j in 0..3] (X[n,c,2*h+i-1,2*w+j-1] or -1e30);
}
op concat<N, A, B, H, W>(X: f32[N,A,H,W], Z: f32[N,B,H,W]) -> (Y: f32[N,C,H,W]) where C = A+B {
  Y[n,c,h,w] = if c < A then X[n,c+0,h,w] else Z[n,c-A,h,w];
}
op mean<N, C, H, W>(X: f32[N,C,H,W]) -> (Y: f32[N,C,1,1]) {
  let s[n,c] = sum[h,w] X[n,c,h,w];
  Y[n,c,i,j] = s[n,c] / (H*W);
}
op flatten<N, C>(X: f32[N,C,1,1]) -> (Y: f32[N,C]) { Y[n,c] = X[n,c,0,0]; }
op depthwise<N, C, H, W>(X: f32[N,C,H,W], const F: f32[C,1,3,3]) -> (Y: f32[N,C,H,W]) {
  Y[n,c,h,w] = sum[i,j] (X[n,c,h+i-1,w+j-1] or 0) * F[c,0,i,j];
}
op swap<N, C, H, W>(X: f32[N,C,H,W]) -> (Y: f32[N,C,W,H]) { Y[n,c,w,h] = X[n,c,h,w]; }
)";

constexpr const char* kBlock = R"(
net block(x: f32[1,3,9,8]) -> (p: f32[1,12]) {
  const F1: f32[8,3,3,3]; const b: f32[8]; const F2: f32[8,1,3,3]; const F3: f32[4,8,1,1];
  let a = conv2d<P=1>(x, F1);
  let s = shift(a, b);
  let r = relu(s);
  let d = depthwise(r, F2);
  let t = add(d, r);
  let m = pool(t);
  let e = conv2d<P=0>(m, F3);
  let k = concat(e, m);
  let g = mean(k);
  p = flatten(g);
}
)";

net::Net turned(const net::Net& net, net::LayoutCount* count = nullptr) {
  Result<net::Net> result = net::layout(net, count);
  INFO((result.ok() ? std::string() : result.error().message()));
  REQUIRE(result.ok());
  return std::move(result).value();
}

}  // namespace

TEST_CASE("a network of convolutions is channels-last inside, without a transpose") {
  const net::Net net = net_or_die(std::string(kOps) + kBlock);
  net::LayoutCount count;
  const net::Net last = turned(net, &count);
  INFO(net::to_text(last));
  CHECK(count.num_turned == 8);
  CHECK(count.num_transposes == 0);
  CHECK(count.num_views == 0);
  CHECK(
      calls_of(last) ==
      "conv2d_nhwc(x, F1) -> a_nhwc\nshift_nhwc(a_nhwc, b) -> s_nhwc\nrelu_nhwc(s_nhwc) -> r_nhwc\n"
      "depthwise_nhwc(r_nhwc, F2) -> d_nhwc\nadd_nhwc(d_nhwc, r_nhwc) -> t_nhwc\n"
      "pool_nhwc(t_nhwc) -> m_nhwc\nconv2d_nhwc_2(m_nhwc, F3) -> e_nhwc\n"
      "concat_nhwc(e_nhwc, m_nhwc) -> k_nhwc\nmean_nhwc(k_nhwc) -> g\n"
      "flatten(g) -> p\n");
  for (uint64_t seed = 1; seed < 4; ++seed) CHECK(net_difference(last, net, seed) == "");
  CHECK(net::to_text(turned(last)) == net::to_text(last));
}

TEST_CASE("the programs are those written with channels last") {
  const net::Net last = turned(net_or_die(std::string(kOps) + kBlock));
  const net::Net written = net_or_die(R"(
op shift(X: f32[1,9,8,8], const b: f32[8]) -> (Y: f32[1,9,8,8]) { Y[n,h,w,c] = X[n,h,w,c] + b[c]; }
op pool(X: f32[1,9,8,8]) -> (Y: f32[1,5,4,8]) {
  Y[n,h,w,c] = max[i in 0..3, j in 0..3] (X[n,2*h+i-1,2*w+j-1,c] or -1e30);
}
net n(x: f32[1,9,8,8]) -> (y: f32[1,5,4,8]) { const b: f32[8]; let s = shift(x, b); y = pool(s); }
)");
  CHECK(ir::print_canonical(last.programs[last.calls[1].program]) ==
        ir::print_canonical(written.programs[0]));
  CHECK(ir::print_canonical(last.programs[last.calls[5].program]) ==
        ir::print_canonical(written.programs[1]));
}

TEST_CASE("ports keep their layout, by transposes that are calls") {
  const net::Net net = net_or_die(std::string(kOps) + R"(
net n(x: f32[2,8,5,6]) -> (y: f32[2,8,5,6]) {
  const F: f32[8,8,3,3];
  let a = conv2d<P=1>(x, F);
  y = add(a, x);
})");
  net::LayoutCount count;
  const net::Net last = turned(net, &count);
  INFO(net::to_text(last));
  CHECK(count.num_transposes == 2);
  CHECK(
      calls_of(last) ==
      "to_nhwc(x) -> x_nhwc\nconv2d_nhwc(x_nhwc, F) -> a_nhwc\nadd_nhwc(a_nhwc, x_nhwc) -> y_nhwc\n"
      "to_nchw(y_nhwc) -> y\n");
  CHECK(net_difference(last, net, 5) == "");
}

TEST_CASE("constants and functions of any name stand beside the layouts") {
  const net::Net net = net_or_die(R"(
const H = 6; const C = 8; const n = 1;
fn X1(v) = max(v, 0);
op conv(A: f32[n,C,H,H], F: f32[4,C,1,1]) -> (B: f32[n,4,H,H]) {
  B[m,o,p,q] = sum[k] A[m,k,p,q] * F[o,k,0,0];
}
op relu(A: f32[n,4,H,H]) -> (B: f32[n,4,H,H]) { B[m,o,p,q] = X1(A[m,o,p,q]); }
net named(x: f32[1,8,6,6]) -> (y: f32[1,4,6,6]) {
  const F: f32[4,8,1,1];
  let t = conv(x, F);
  y = relu(t);
})");
  const net::Net last = turned(net);
  CHECK(calls_of(last) ==
        "to_nhwc(x) -> x_nhwc\nconv_nhwc(x_nhwc, F) -> t_nhwc\nrelu_nhwc(t_nhwc) -> y_nhwc\n"
        "to_nchw(y_nhwc) -> y\n");
  CHECK(net_difference(last, net, 5) == "");
}

TEST_CASE("without a convolution with a const filter nothing is turned") {
  for (const char* text :
       {"net n(x: f32[1,8,5,6]) -> (y: f32[1,8,3,3]) { let r = relu(x); y = pool(r); }",
        "net n(x: f32[1,8,5,6], F: f32[8,8,3,3]) -> (y: f32[1,8,5,6]) { let a = relu(x); y = "
        "conv2d<P=1>(a, F); }"}) {
    const net::Net net = net_or_die(std::string(kOps) + text);
    CHECK(net::to_text(turned(net)) == net::to_text(net));
  }
}

TEST_CASE("an island ends where rows and columns change places") {
  const net::Net net = net_or_die(std::string(kOps) + R"(
net n(x: f32[1,3,5,6]) -> (y: f32[1,8,6,5]) {
  const F: f32[8,3,3,3];
  let a = conv2d<P=1>(x, F);
  let s = swap(a);
  y = relu(s);
})");
  const net::Net last = turned(net);
  CHECK(calls_of(last) == "conv2d_nhwc(x, F) -> a_nhwc\nswap_nhwc(a_nhwc) -> s\nrelu(s) -> y\n");
  CHECK(net_difference(last, net, 5) == "");
}

TEST_CASE("random chains compute the same with channels last") {
  const std::vector<std::string> steps = {"conv2d<P=1>(t{}, F)", "relu(t{})",    "shift(t{}, b)",
                                          "depthwise(t{}, D)",   "add(t{}, t0)", "swap(t{})"};
  uint64_t state = 12345;
  for (int round = 0; round < 30; ++round) {
    std::string body;
    const int length = 2 + round % 6;
    for (int i = 0; i <= length; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const std::string& step = steps[(state >> 33) % steps.size()];
      const std::string source =
          i == 0 ? "relu(x)" : fmt::format(fmt::runtime(step), std::to_string(i - 1));
      body += fmt::format("  {} = {};\n", i == length ? "y" : fmt::format("let t{}", i), source);
    }
    const net::Net net = net_or_die(fmt::format(
        "{}net n(x: f32[1,5,4,4]) -> (y: f32[1,5,4,4]) {{\n  const F: f32[5,5,3,3]; const "
        "D: f32[5,1,3,3]; const b: f32[5];\n{}}}\n",
        kOps, body));
    const net::Net last = turned(net);
    INFO(net::to_text(last));
    CHECK(net_difference(last, net, static_cast<uint64_t>(round)) == "");
  }
}

}  // namespace prunerc::testing
