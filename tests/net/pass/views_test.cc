// Views of programs vanish.
#include "ir/analysis/views/views.h"

#include "ir/canonical.h"
#include "ir/lang/lang.h"
#include "ir/printer.h"
#include "tests/net/pass/nets.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace prunerc::testing {
namespace {

constexpr const char* kOps = R"(import "std/conv.prn";
op to_nchw<N, H, W, C>(X: f32[N,H,W,C]) -> (Y: f32[N,C,H,W]) { Y[n,c,h,w] = X[n,h,w,c]; }
op to_nhwc<N, H, W, C>(X: f32[N,C,H,W]) -> (Y: f32[N,H,W,C]) { Y[n,h,w,c] = X[n,c,h,w]; }
op to_oihw<H, W, I, O>(X: f32[H,W,I,O]) -> (Y: f32[O,I,H,W]) { Y[o,i,h,w] = X[h,w,i,o]; }
op conv<S=1, G=1, N, H, W, CI, CO, KH, KW>(X: f32[N,H,W,CI], F: f32[KH,KW,I,CO]) -> (Y: f32[N,P,Q,CO])
    where I = CI/G, P = (H-1)/S + 1, Q = (W-1)/S + 1 {
  let x = to_nchw(X);
  let f = to_oihw(F);
  let a = conv2d<S=S, P=1, G=G>(x, f);
  Y = to_nhwc(a);
}
op same<S=1, G=1, N, H, W, CI, CO, KH, KW>(X: f32[N,H,W,CI], F: f32[KH,KW,I,CO]) -> (Y: f32[N,P,Q,CO])
    where I = CI/G, P = (H-1)/S + 1, Q = (W-1)/S + 1 {
  Y = conv2d_nhwc<S=S, P=1, G=G>(X, F);
}
op relu<N, A, B, C>(X: f32[N,A,B,C]) -> (Y: f32[N,A,B,C]) { Y[n,a,b,c] = max(X[n,a,b,c], 0); }
op pool<N, C, H, W>(X: f32[N,C,H,W]) -> (Y: f32[N,C,P,Q]) where P = (H-1)/2 + 1, Q = (W-1)/2 + 1 {
  Y[n,c,h,w] = max[i in 0..3, j in 0..3] (X[n,c,2*h+i-1,2*w+j-1] or -1e30);
}
op chain<N, H, W, C>(X: f32[N,H,W,C]) -> (Y: f32[N,P,Q,C]) where P = (H-1)/2 + 1, Q = (W-1)/2 + 1 {
  let x = to_nchw(X);
  let r = relu(x);
  let s = to_nhwc(r);
  let t = to_nchw(s);
  let p = pool(t);
  Y = to_nhwc(p);
}
op pool_nhwc<N, H, W, C>(X: f32[N,H,W,C]) -> (Y: f32[N,P,Q,C]) where P = (H-1)/2 + 1, Q = (W-1)/2 + 1 {
  let r[n,h,w,c] = max(X[n,h,w,c], 0);
  Y[n,h,w,c] = max[i in 0..3, j in 0..3] (r[n,2*h+i-1,2*w+j-1,c] or -1e30);
}
op vit<H, W, C>(X: f32[1,H,W,C]) -> (Y: f32[1,K,C]) where K = H*W {
  let x = to_nchw(X);
  let z[n,c,k] = x[n,c,k/W,k%W];
  Y[n,k,c] = z[n,c,k];
}
op squeeze<C>(X: f32[1,1,1,C]) -> (Y: f32[1,C]) { let x = to_nchw(X); Y[n,c] = x[n,c,0,0] * 2; }
op flatten<N, H, W, C>(X: f32[N,H,W,C]) -> (Y: f32[N,K]) where K = H*W*C {
  let x = to_nchw(X);
  Y[n,k] = x[n, k/(H*W), k/W%H, k%W];
}
op vit_plain<H, W, C>(X: f32[1,H,W,C]) -> (Y: f32[1,K,C]) where K = H*W { Y[n,k,c] = X[n,k/W,k%W,c]; }
op flat_plain<N, H, W, C>(X: f32[N,H,W,C]) -> (Y: f32[N,K]) where K = H*W*C { Y[n,k] = X[n, k/W%H, k%W, k/(H*W)]; }
op soft<N, C, H, W>(X: f32[N,C,H,W]) -> (Y: f32[N,C,H,W]) {
  let m[n,h,w] = max[c] X[n,c,h,w];
  let e[n,c,h,w] = exp(X[n,c,h,w] - m[n,h,w]);
  let s[n,h,w] = sum[c] e[n,c,h,w];
  Y[n,c,h,w] = e[n,c,h,w] / s[n,h,w];
}
op soft_t<N, H, W, C>(X: f32[N,H,W,C]) -> (Y: f32[N,H,W,C]) {
  let x = to_nchw(X);
  let y = soft(x);
  Y = to_nhwc(y);
}
op soft_nhwc<N, H, W, C>(X: f32[N,H,W,C]) -> (Y: f32[N,H,W,C]) {
  let m[n,h,w] = max[c] X[n,h,w,c];
  let e[n,h,w,c] = exp(X[n,h,w,c] - m[n,h,w]);
  let s[n,h,w] = sum[c] e[n,h,w,c];
  Y[n,h,w,c] = e[n,h,w,c] / s[n,h,w];
}
op twice<N, H, W, C>(X: f32[N,C,H,W]) -> (Y: f32[N,H,W,C], Z: f32[N,C,H,W]) {
  let r = relu(X);
  Y = to_nhwc(r);
  Z[n,c,h,w] = r[n,c,h,w] + 1;
}
)";

// The program of the only call of a net.
ir::Program program_of(const std::string& ports, const std::string& call) {
  return net_or_die(fmt::format("{}net n{} {{ {}; }}", kOps, ports, call)).programs.at(0);
}

void check_same(const std::string& ports, const std::string& call, const std::string& other) {
  const ir::Program a = program_of(ports, call), b = program_of(ports, other);
  INFO(ir::print(a) << "\n" << ir::print(b));
  CHECK(ir::print_canonical(a) == ir::print_canonical(b));
}

}  // namespace

TEST_CASE("a convolution between transposes is the convolution of the other layout") {
  const std::string ports = "(x: f32[2,7,8,4], const f: f32[3,3,4,6]) -> (y: f32[2,7,8,6])";
  check_same(ports, "y = conv(x, f)", "y = same(x, f)");
}

TEST_CASE("so is a grouped one with a stride") {
  const std::string ports = "(x: f32[2,7,8,4], const f: f32[3,3,2,6]) -> (y: f32[2,4,4,6])";
  check_same(ports, "y = conv<S=2, G=2>(x, f)", "y = same<S=2, G=2>(x, f)");
}

TEST_CASE("stages between two views follow, the padded ones too") {
  const std::string ports = "(x: f32[2,7,8,4]) -> (y: f32[2,4,4,4])";
  check_same(ports, "y = chain(x)", "y = pool_nhwc(x)");
  const std::string same = "(x: f32[2,7,8,4]) -> (y: f32[2,7,8,4])";
  check_same(same, "y = soft_t(x)", "y = soft_nhwc(x)");
}

TEST_CASE("a reshape vanishes where divisions cancel, and stays a view where they do not") {
  const ir::Program vit = program_of("(x: f32[1,3,5,4]) -> (y: f32[1,15,4])", "y = vit(x)");
  INFO(ir::print(vit));
  CHECK(ir::count_views(vit) == 1);
  CHECK(ir::absorb_views(vit).is(vit));
  const ir::Program squeezed = program_of("(x: f32[1,1,1,4]) -> (y: f32[1,4])", "y = squeeze(x)");
  CHECK(ir::count_views(squeezed) == 0);
}

TEST_CASE("what views become computes the same") {
  const std::string ports =
      "(x: f32[2,5,6,4], u: f32[1,5,6,4], f: f32[3,3,2,6], z: f32[1,1,1,4]) -> (a: f32[2,3,3,6], "
      "b: "
      "f32[2,3,3,4], c: f32[1,30,4], d: f32[2,120], e: f32[1,4], g: f32[2,5,6,4], h: f32[2,6,4,5], "
      "i: f32[2,5,6,4])";
  const net::Net net = net_or_die(fmt::format(
      "{}net n{} {{ a = conv<S=2, G=2>(x, f); b = chain(x); c = vit(u); d = flatten(x); e = "
      "squeeze(z); g = soft_t(x); h, i = twice(x); }}",
      kOps, ports));
  const net::Net written =
      net_or_die(fmt::format("{}net n{} {{ a = same<S=2, G=2>(x, f); b = pool_nhwc(x); c = "
                             "vit_plain(u); d = flat_plain(x); e = "
                             "squeeze(z); g = soft_nhwc(x); h, i = twice(x); }}",
                             kOps, ports));
  CHECK(net_difference(net, written, 1).empty());
}

TEST_CASE("operators of the library hold no views, and stay as they are") {
  for (const std::string_view file : lang::std_files()) {
    const std::string text = lang::import_std(file).value();
    for (const lang::OpInfo& op : lang::list_ops(std::string(file), text).ops) {
      lang::CompileInput input;
      input.file_name = file;
      input.text = text;
      input.op = op.name;
      const lang::LangResult result = lang::compile(input);
      if (!result.program) continue;
      const ir::Program absorbed = ir::absorb_views(*result.program);
      INFO(op.name << "\n" << ir::print(*result.program) << ir::print(absorbed));
      CHECK(absorbed.is(*result.program));
    }
  }
}

}  // namespace prunerc::testing
