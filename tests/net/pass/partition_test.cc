// Which calls become one.
#include "ir/net/pass/partition.h"

#include "ir/lang/lang.h"
#include "ir/net/pass/passes.h"
#include "tests/net/pass/nets.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <chrono>
#include <string>

namespace prunerc::testing {
namespace {

std::string partitioned(const net::Net& before, net::PartitionOptions options = {}) {
  const Result<net::Net> after = net::partition(before, options);
  REQUIRE_OK(after);
  INFO(net::to_text(*after));
  CHECK(net_difference(*after, before, 1).empty());
  CHECK(net_difference(*after, before, 2).empty());
  return calls_of(*after);
}

const std::string kBottleneck = R"(
op conv_1(X: f32[1,8,6,6], F: f32[4,8,1,1]) -> (Y: f32[1,4,6,6]) { Y[n,o,h,w] = sum[c] X[n,c,h,w] * F[o,c,0,0]; }
op conv_2(X: f32[1,4,6,6], F: f32[4,4,3,3]) -> (Y: f32[1,4,6,6]) {
  Y[n,o,h,w] = sum[c,kh,kw] (X[n,c,h+kh-1,w+kw-1] or 0) * F[o,c,kh,kw];
}
op conv_3(X: f32[1,4,6,6], F: f32[8,4,1,1]) -> (Y: f32[1,8,6,6]) { Y[n,o,h,w] = sum[c] X[n,c,h,w] * F[o,c,0,0]; }
op scale_1(X: f32[1,4,6,6], s: f32[4]) -> (Y: f32[1,4,6,6]) { Y[n,c,h,w] = X[n,c,h,w] * s[c]; }
op scale_2(X: f32[1,8,6,6], s: f32[8]) -> (Y: f32[1,8,6,6]) { Y[n,c,h,w] = X[n,c,h,w] * s[c]; }
op shift_1(X: f32[1,4,6,6], s: f32[4]) -> (Y: f32[1,4,6,6]) { Y[n,c,h,w] = X[n,c,h,w] + s[c]; }
op shift_2(X: f32[1,8,6,6], s: f32[8]) -> (Y: f32[1,8,6,6]) { Y[n,c,h,w] = X[n,c,h,w] + s[c]; }
op relu_1(X: f32[1,4,6,6]) -> (Y: f32[1,4,6,6]) { Y[n,c,h,w] = max(X[n,c,h,w], 0); }
op relu_2(X: f32[1,8,6,6]) -> (Y: f32[1,8,6,6]) { Y[n,c,h,w] = max(X[n,c,h,w], 0); }
op add(X: f32[1,8,6,6], R: f32[1,8,6,6]) -> (Y: f32[1,8,6,6]) { Y[n,c,h,w] = X[n,c,h,w] + R[n,c,h,w]; }
net block(x: f32[1,8,6,6]) -> (y: f32[1,8,6,6]) {
  const F1: f32[4,8,1,1]; const s1: f32[4]; const b1: f32[4];
  const F2: f32[4,4,3,3]; const s2: f32[4]; const b2: f32[4];
  const F3: f32[8,4,1,1]; const s3: f32[8]; const b3: f32[8];
  let a1 = conv_1(x, F1) as reduce; let c1 = scale_1(a1, s1); let d1 = shift_1(c1, b1); let e1 = relu_1(d1);
  let a2 = conv_2(e1, F2) as conv3x3; let c2 = scale_1(a2, s2); let d2 = shift_1(c2, b2); let e2 = relu_1(d2);
  let a3 = conv_3(e2, F3) as expand; let c3 = scale_2(a3, s3); let d3 = shift_2(c3, b3);
  let r = add(d3, x); y = relu_2(r);
}
)";

TEST_CASE("A bottleneck of thirteen calls becomes one call a convolution") {
  const net::Net before = net_or_die(kBottleneck);
  CHECK(partitioned(before) ==
        "conv_scale_shift_relu(x, F1, s1, b1) -> e1\n"
        "conv_scale_shift_relu_2(e1, F2, s2, b2) -> e2\n"
        "conv_scale_shift_add_relu(e2, F3, s3, b3, x) -> y\n");
  const Result<net::Net> after = net::partition(before);
  REQUIRE_OK(after);
  CHECK(after->calls[2].label == "expand");
  CHECK(net::to_text(*after).find("op conv_scale_shift_add_relu(X: f32[1,4,6,6], const W: "
                                  "f32[8,4,1,1], const W2: f32[8], const W3: f32[8], X2: "
                                  "f32[1,8,6,6]) -> (Y: f32[1,8,6,6]) {\n"
                                  "  let t1 = conv_3(X, W);\n"
                                  "  let t2 = scale_2(t1, W2);\n"
                                  "  let t3 = shift_2(t2, W3);\n"
                                  "  let t4 = add(t3, X2);\n"
                                  "  Y = relu_2(t4);\n}\n") != std::string::npos);
}

TEST_CASE("Rules are switched off by name, and an unknown name is an error") {
  const net::Net before = net_or_die(kBottleneck);
  CHECK(partitioned(before, {{"epilogue"}}).substr(0, 53) ==
        "conv_1(x, F1) -> a1\nscale_shift_relu(a1, s1, b1) -> e");
  const Result<net::Net> wrong = net::partition(before, {{"epilog"}});
  CHECK_DIAG(wrong, FuseRuleUnknown);
}

// Written as exporters do it: LayerNormalization in nine nodes, GELU in five, heads by reshape and
// transpose.
const std::string kBert = R"(
op matmul_1(X: f32[1,6,8], W: f32[8,8]) -> (Y: f32[1,6,8]) { Y[b,i,j] = sum[k] X[b,i,k] * W[k,j]; }
op matmul_2(X: f32[1,6,8], W: f32[8,16]) -> (Y: f32[1,6,16]) { Y[b,i,j] = sum[k] X[b,i,k] * W[k,j]; }
op matmul_3(X: f32[1,6,16], W: f32[16,8]) -> (Y: f32[1,6,8]) { Y[b,i,j] = sum[k] X[b,i,k] * W[k,j]; }
op matmul_4(Q: f32[1,2,6,4], K: f32[1,2,4,6]) -> (Y: f32[1,2,6,6]) { Y[b,h,i,j] = sum[k] Q[b,h,i,k] * K[b,h,k,j]; }
op matmul_5(P: f32[1,2,6,6], V: f32[1,2,6,4]) -> (Y: f32[1,2,6,4]) { Y[b,h,i,j] = sum[k] P[b,h,i,k] * V[b,h,k,j]; }
op add_1(X: f32[1,6,8], W: f32[8]) -> (Y: f32[1,6,8]) { Y[b,i,j] = X[b,i,j] + W[j]; }
op add_2(X: f32[1,6,8], Z: f32[1,6,8]) -> (Y: f32[1,6,8]) { Y[b,i,j] = X[b,i,j] + Z[b,i,j]; }
op add_3(X: f32[1,6,16], W: f32[16]) -> (Y: f32[1,6,16]) { Y[b,i,j] = X[b,i,j] + W[j]; }
op add_4(X: f32[1,2,6,6], M: f32[1,1,1,6]) -> (Y: f32[1,2,6,6]) { Y[b,h,i,j] = X[b,h,i,j] + M[0,0,0,j]; }
op add_5(X: f32[1,6,1]) -> (Y: f32[1,6,1]) { Y[b,i,j] = X[b,i,0] + 0.00001; }
op add_6(X: f32[1,6,16]) -> (Y: f32[1,6,16]) { Y[b,i,j] = X[b,i,j] + 1; }
op div_1(X: f32[1,2,6,6]) -> (Y: f32[1,2,6,6]) { Y[b,h,i,j] = X[b,h,i,j] / 2; }
op div_2(X: f32[1,6,8], Z: f32[1,6,1]) -> (Y: f32[1,6,8]) { Y[b,i,j] = X[b,i,j] / Z[b,i,0]; }
op div_3(X: f32[1,6,16]) -> (Y: f32[1,6,16]) { Y[b,i,j] = X[b,i,j] / 1.4142135; }
op mul_1(X: f32[1,6,8], W: f32[8]) -> (Y: f32[1,6,8]) { Y[b,i,j] = X[b,i,j] * W[j]; }
op mul_2(X: f32[1,6,16], Z: f32[1,6,16]) -> (Y: f32[1,6,16]) { Y[b,i,j] = X[b,i,j] * Z[b,i,j]; }
op mul_3(X: f32[1,6,16]) -> (Y: f32[1,6,16]) { Y[b,i,j] = X[b,i,j] * 0.5; }
op erf_1(X: f32[1,6,16]) -> (Y: f32[1,6,16]) { Y[b,i,j] = erf(X[b,i,j]); }
op mean_1(X: f32[1,6,8]) -> (Y: f32[1,6,1]) { Y[b,i,j] = (sum[k] X[b,i,k]) / 8; }
op sub_1(X: f32[1,6,8], Z: f32[1,6,1]) -> (Y: f32[1,6,8]) { Y[b,i,j] = X[b,i,j] - Z[b,i,0]; }
op pow_1(X: f32[1,6,8]) -> (Y: f32[1,6,8]) { Y[b,i,j] = X[b,i,j] * X[b,i,j]; }
op sqrt_1(X: f32[1,6,1]) -> (Y: f32[1,6,1]) { Y[b,i,j] = sqrt(X[b,i,0]); }
op softmax_1(X: f32[1,2,6,6]) -> (Y: f32[1,2,6,6]) {
  let m[a,b,c] = max[d] X[a,b,c,d]; let e[a,b,c,d] = exp(X[a,b,c,d] - m[a,b,c]);
  let s[a,b,c] = sum[d] e[a,b,c,d]; Y[a,b,c,d] = e[a,b,c,d] / s[a,b,c];
}
op reshape_1(X: f32[1,6,8]) -> (Y: f32[1,6,2,4]) { Y[a,b,c,d] = X[a,b,c*4 + d]; }
op reshape_2(X: f32[1,6,2,4]) -> (Y: f32[1,6,8]) { Y[a,b,c] = X[a,b,c / 4,c % 4]; }
op transpose_1(X: f32[1,6,2,4]) -> (Y: f32[1,2,6,4]) { Y[a,b,c,d] = X[a,c,b,d]; }
op transpose_2(X: f32[1,6,2,4]) -> (Y: f32[1,2,4,6]) { Y[a,b,c,d] = X[a,d,b,c]; }
op transpose_3(X: f32[1,2,6,4]) -> (Y: f32[1,6,2,4]) { Y[a,b,c,d] = X[a,c,b,d]; }
net layer(x: f32[1,6,8], mask: f32[1,1,1,6]) -> (y: f32[1,6,8]) {
  const Wq: f32[8,8]; const bq: f32[8]; const Wk: f32[8,8]; const bk: f32[8]; const Wv: f32[8,8]; const bv: f32[8];
  const Wo: f32[8,8]; const bo: f32[8]; const g1: f32[8]; const c1: f32[8]; const g2: f32[8]; const c2: f32[8];
  const W1: f32[8,16]; const e1: f32[16]; const W2: f32[16,8]; const e2: f32[8];
  let q1 = matmul_1(x, Wq); let q2 = add_1(q1, bq); let q3 = reshape_1(q2); let q = transpose_1(q3);
  let k1 = matmul_1(x, Wk); let k2 = add_1(k1, bk); let k3 = reshape_1(k2); let k = transpose_2(k3);
  let v1 = matmul_1(x, Wv); let v2 = add_1(v1, bv); let v3 = reshape_1(v2); let v = transpose_1(v3);
  let s1 = matmul_4(q, k); let s2 = div_1(s1); let s3 = add_4(s2, mask); let p = softmax_1(s3);
  let o1 = matmul_5(p, v) as attend; let o2 = transpose_3(o1); let o3 = reshape_2(o2);
  let o4 = matmul_1(o3, Wo); let o5 = add_1(o4, bo); let a = add_2(o5, x);
  let m1 = mean_1(a); let d1 = sub_1(a, m1); let w1 = pow_1(d1); let v_1 = mean_1(w1); let u1 = add_5(v_1);
  let r1 = sqrt_1(u1); let n1 = div_2(d1, r1); let h1 = mul_1(n1, g1); let f = add_1(h1, c1);
  let i1 = matmul_2(f, W1); let i2 = add_3(i1, e1);
  let z1 = div_3(i2); let z2 = erf_1(z1); let z3 = add_6(z2); let z4 = mul_2(i2, z3); let z5 = mul_3(z4);
  let t1 = matmul_3(z5, W2); let t2 = add_1(t1, e2); let t = add_2(t2, f);
  let m2 = mean_1(t); let d2 = sub_1(t, m2); let w2 = pow_1(d2); let v_2 = mean_1(w2); let u2 = add_5(v_2);
  let r2 = sqrt_1(u2); let n2 = div_2(d2, r2); let h2 = mul_1(n2, g2); y = add_1(h2, c2);
}
)";

TEST_CASE("A layer of BERT written node by node becomes its products, attention and two rows") {
  CHECK(partitioned(net_or_die(kBert)) ==
        "matmul_add(x, Wq, bq) -> q2\n"
        "matmul_add(x, Wv, bv) -> v2\n"
        "matmul_add(x, Wk, bk) -> k2\n"
        "reshape_transpose(k2) -> k\n"
        "matmul_of_9(q2, v2, k, mask) -> o1\n"
        "transpose_reshape(o1) -> o3\n"
        "matmul_add_add(o3, Wo, bo, x) -> a\n"
        "mean_sub_pow_mean_add_sqrt_div_mul_add(a, g1, c1) -> f\n"
        "matmul_add_div_erf_add_mul_mul(f, W1, e1) -> z5\n"
        "matmul_add_add_2(z5, W2, e2, f) -> t\n"
        "mean_sub_pow_mean_add_sqrt_div_mul_add(t, g2, c2) -> y\n");
}

// As GPT-2's exporters write products: of matrices, between tensors with a batch.
const std::string kUnits = R"(
op flat(X: f32[1,4,6]) -> (Y: f32[4,6]) { Y[i,j] = X[0,i,j]; }
op unflat(X: f32[4,6]) -> (Y: f32[1,4,6]) { Y[n,i,j] = X[i,j]; }
op gemm(X: f32[4,6], W: f32[6,6], b: f32[6]) -> (Y: f32[4,6]) {
  let t[i,j] = sum[k] X[i,k] * W[k,j]; Y[i,j] = t[i,j] + b[j];
}
op half(X: f32[1,4,6]) -> (Y: f32[1,4,6]) { Y[n,i,j] = X[0,i,j] * 0.5; }
op tanh_1(X: f32[1,4,6]) -> (Y: f32[1,4,6]) { Y[n,i,j] = tanh(X[0,i,j]); }
op mul(X: f32[1,4,6], Z: f32[1,4,6]) -> (Y: f32[1,4,6]) { Y[n,i,j] = X[n,i,j] * Z[n,i,j]; }
op add(X: f32[1,4,6], Z: f32[1,4,6]) -> (Y: f32[1,4,6]) { Y[n,i,j] = X[n,i,j] + Z[n,i,j]; }
op mean(X: f32[1,4,6]) -> (Y: f32[1,4,1]) { Y[b,i,j] = (sum[k] X[b,i,k]) / 6; }
op sub(X: f32[1,4,6], Z: f32[1,4,1]) -> (Y: f32[1,4,6]) { Y[b,i,j] = X[b,i,j] - Z[b,i,0]; }
)";

TEST_CASE("Axes of one element do not part a product from what follows it") {
  CHECK(partitioned(net_or_die(kUnits + R"(net n(x: f32[1,4,6]) -> (y: f32[1,4,6]) {
  const W: f32[6,6]; const b: f32[6]; const V: f32[6,6]; const c: f32[6];
  let x2 = flat(x); let g = gemm(x2, W, b); let g3 = unflat(g);
  let h = half(g3); let t = tanh_1(g3); let m = mul(h, t);
  let m2 = flat(m); let o = gemm(m2, V, c); let o3 = unflat(o); y = add(o3, x); })")) ==
        "flat_gemm_unflat_half_tanh_mul(x, W, b) -> m\n"
        "flat_gemm_unflat_add(m, V, c, x) -> y\n");
}

TEST_CASE("Rows between two products with weights are no attention") {
  CHECK(partitioned(net_or_die(kUnits + R"(net n(x: f32[1,4,6]) -> (y: f32[4,6]) {
  const W: f32[6,6]; const b: f32[6]; const V: f32[6,6]; const c: f32[6];
  let x2 = flat(x); let g = gemm(x2, W, b); let g3 = unflat(g);
  let m = mean(g3); let d = sub(g3, m); let d2 = flat(d); y = gemm(d2, V, c); })")) ==
        "flat_gemm_unflat(x, W, b) -> g3\n"
        "mean_sub(g3) -> d\n"
        "flat_gemm(d, V, c) -> y\n");
}

TEST_CASE("A sum that rows and others read is a second result of the rows") {
  const net::Net before = net_or_die(R"(
op add(X: f32[6,8], Z: f32[6,8]) -> (Y: f32[6,8]) { Y[i,j] = X[i,j] + Z[i,j]; }
op mul(X: f32[6,8], Z: f32[6,8]) -> (Y: f32[6,8]) { Y[i,j] = X[i,j] * Z[i,j]; }
op norm(X: f32[6,8]) -> (Y: f32[6,8]) { let m[i] = sum[k] X[i,k]; Y[i,k] = X[i,k] - m[i] / 8; }
op turn(X: f32[6,8]) -> (Y: f32[6,8]) { let m[k] = sum[i] X[i,k]; Y[i,k] = X[i,k] - m[k]; }
net pre(x: f32[6,8], r: f32[6,8]) -> (s: f32[6,8], y: f32[6,8]) {
  let a = add(x, r); let n = norm(a); let t = turn(n); let b = mul(t, a);
  s = add(b, x); y = norm(s);
}
)");
  CHECK(partitioned(before) ==
        "add_norm(x, r) -> a, n\n"
        "turn(n) -> t\n"
        "mul_add_norm(t, a, x) -> s, y\n");
}

constexpr const char* kSaid = R"(merge_same 13 13 ()
scale_into_weights 13 13 (3 factors)
remove_dead 13 13 ()
layout 13 15 (11 tensors channels-last, 2 transposes, 1 views left)
partition 15 8 (epilogue 3, chain 4)
)";

TEST_CASE("Passes say what they did, and one that is not there is an error") {
  const net::Net before = net_or_die(kBottleneck);
  std::vector<net::PassReport> reports;
  const Result<net::Net> after = net::run_passes(before, {}, &reports);
  REQUIRE_OK(after);
  REQUIRE(reports.size() == net::pass_names().size());
  CHECK(reports.back().pass == "partition");
  // A transpose at each port; the factors, the weights that they move into, and shifts, joined by channels-last.
  std::string said;
  for (const net::PassReport& report : reports)
    said += fmt::format("{} {} {} ({})\n", report.pass, report.calls_before, report.calls_after,
                        report.details);
  CHECK(said == kSaid);
  const Result<net::Net> without =
      net::run_passes(before, {{"scale_into_weights", "layout", "partition"}, {}});
  REQUIRE_OK(without);
  CHECK(without->calls.size() == 13);
  const Result<net::Net> fused = net::run_passes(before, {{"scale_into_weights", "layout"}, {}});
  REQUIRE_OK(fused);
  CHECK(fused->calls.size() == 3);
  CHECK_DIAG(net::run_passes(before, {{"fold"}, {}}), UsageOption);
}

TEST_CASE("What is fused leaves no cycle") {
  // rows(s) needs u, which needs s: s cannot be a result of the rows.
  const net::Net before = net_or_die(R"(
op add(X: f32[6,8], Z: f32[6,8]) -> (Y: f32[6,8]) { Y[i,j] = X[i,j] + Z[i,j]; }
op norm(X: f32[6,8]) -> (Y: f32[6,8]) { let m[i] = sum[k] X[i,k]; Y[i,k] = X[i,k] - m[i] / 8; }
op turn(X: f32[6,8]) -> (Y: f32[6,8]) { let m[k] = sum[i] X[i,k]; Y[i,k] = X[i,k] - m[k]; }
net loop(x: f32[6,8], r: f32[6,8]) -> (y: f32[6,8]) {
  let s = add(x, r); let u = turn(s); let n = norm(s); y = add(n, u);
}
)");
  CHECK(partitioned(before) == "add(x, r) -> s\nturn(s) -> u\nnorm_add(s, u) -> y\n");
}

TEST_CASE("A group is full where its operator could not be called, or not be written") {
  // A sum of more tensors than a call takes.
  constexpr int kSummands = 40;
  std::string ports = "x0: f32[2,2]", items;
  for (int i = 1; i < kSummands; ++i) {
    ports += fmt::format(", x{}: f32[2,2]", i);
    const std::string before = i == 1 ? "x0" : fmt::format("t{}", i - 1);
    items += i + 1 == kSummands ? fmt::format("y = add({}, x{});\n", before, i)
                                : fmt::format("let t{} = add({}, x{});\n", i, before, i);
  }
  const std::string ops = R"(
op add(X: f32[2,2], Z: f32[2,2]) -> (Y: f32[2,2]) { Y[i,j] = X[i,j] + Z[i,j]; }
op half(X: f32[2,2]) -> (Y: f32[2,2]) { Y[i,j] = X[i,j] * 0.5; }
)";
  const net::Net sum =
      net_or_die(fmt::format("{}net n({}) -> (y: f32[2,2]) {{\n{}}}\n", ops, ports, items));
  const Result<net::Net> sums = net::partition(sum);
  REQUIRE_OK(sums);
  CHECK(net_difference(*sums, sum, 1).empty());
  REQUIRE(sums->calls.size() == 2);
  CHECK(sums->calls[0].args.size() == 9);
  CHECK(sums->calls[1].args.size() == 32);
  // A chain of more calls than an operator has statements.
  constexpr int kCalls = 300;
  items.clear();
  for (int i = 1; i < kCalls; ++i)
    items += fmt::format("let t{} = half({});\n", i, i == 1 ? "x" : fmt::format("t{}", i - 1));
  const net::Net chain = net_or_die(fmt::format(
      "{}net n(x: f32[2,2]) -> (y: f32[2,2]) {{\n{}y = half(t{});\n}}\n", ops, items, kCalls - 1));
  const Result<net::Net> chains = net::partition(chain);
  REQUIRE_OK(chains);
  CHECK(net_difference(*chains, chain, 1).empty());
  REQUIRE(chains->calls.size() == 2);
  CHECK(chains->num_statements[chains->calls[1].program] == 256);
}

TEST_CASE("A long chain is partitioned in a time that grows as it does") {
  constexpr int kCalls = 20000;
  std::string items;
  for (int i = 1; i < kCalls; ++i)
    items += fmt::format("let t{} = half({});\n", i, i == 1 ? "x" : fmt::format("t{}", i - 1));
  const net::Net chain =
      net_or_die(fmt::format("op half(X: f32[2,2]) -> (Y: f32[2,2]) {{ Y[i,j] = X[i,j] * 0.5; }}\n"
                             "net n(x: f32[2,2]) -> (y: f32[2,2]) {{\n{}y = half(t{});\n}}\n",
                             items, kCalls - 1));
  const auto begin = std::chrono::steady_clock::now();
  const Result<net::Net> after = net::partition(chain);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  REQUIRE_OK(after);
  CHECK(after->calls.size() == 79);  // of 256 statements at most
  CHECK(taken.count() < 15);
}

TEST_CASE("A label that is another tensor's name stays with its call") {
  const net::Net net = net_or_die(R"(
op mm(X: f32[4,4], W: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = sum[k] X[i,k] * W[k,j]; }
op relu(X: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = max(X[i,j], 0); }
net n(x: f32[4,4]) -> (y: f32[4,4]) {
  const W: f32[4,4]; const V: f32[4,4];
  let h = mm(x, W) as fc;
  let fc = mm(h, V);
  y = relu(fc);
})");
  CHECK(partitioned(net) == "mm(x, W) -> h\nmm_relu(h, V) -> y\n");
  const Result<net::Net> after = net::partition(net);
  REQUIRE_OK(after);
  CHECK(after->calls[0].label == "fc");
  CHECK(after->calls[1].label == "y");
}

TEST_CASE("A net of more text than a file may have goes through the passes") {
  const std::string text = fmt::format(R"(
op half(X: f32[2,2]) -> (Y: f32[2,2]) {{ Y[i,j] = X[i,j] * 0.5; // {}
}}
net n(x: f32[2,2]) -> (y: f32[2,2]) {{ let a = half(x); y = half(a); }}
)",
                                       std::string(lang::kMaxFileBytes, '-'));
  lang::CompileInput input;
  input.text = text;
  CHECK_FALSE(lang::compile_net(input).net.has_value());
  input.max_bytes = lang::kMaxNetBytes;
  const lang::NetResult before = lang::compile_net(input);
  INFO(before.rendered);
  REQUIRE(before.net.has_value());
  const Result<net::Net> after = net::run_passes(*before.net);
  REQUIRE_OK(after);
  CHECK(after->calls.size() == 1);
}

TEST_CASE("What other calls read, what is const and what is reduced in windows stay apart") {
  const std::string ops = R"(
op mm(X: f32[4,4], W: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = sum[k] X[i,k] * W[k,j]; }
op relu(X: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = max(X[i,j], 0); }
op turned(X: f32[4,4], Z: f32[4,4]) -> (Y: f32[4,4]) { Y[i,j] = X[i,j] + Z[j,i]; }
)";
  CHECK(partitioned(net_or_die(ops + R"(net n(x: f32[4,4]) -> (y: f32[4,4], z: f32[4,4]) {
  const W: f32[4,4]; let a = mm(x, W); y = relu(a); z = mm(a, W); })")) ==
        "mm(x, W) -> a\nrelu(a) -> y\nmm(a, W) -> z\n");
  CHECK(partitioned(net_or_die(ops + R"(net n(x: f32[4,4]) -> (a: f32[4,4], y: f32[4,4]) {
  const W: f32[4,4]; a = mm(x, W); y = relu(a); })")) == "mm(x, W) -> a\nrelu(a) -> y\n");
  CHECK(partitioned(net_or_die(ops + R"(net n(x: f32[4,4]) -> (y: f32[4,4]) {
  const W: f32[4,4]; let V = relu(W); y = mm(x, V); })")) == "relu(W) -> V\nmm(x, V) -> y\n");
  CHECK(partitioned(net_or_die(ops + R"(net n(x: f32[4,4]) -> (y: f32[4,4]) {
  const W: f32[4,4]; let a = mm(x, W); y = turned(a, a); })")) ==
        "mm(x, W) -> a\nturned(a, a) -> y\n");
}

}  // namespace
}  // namespace prunerc::testing
