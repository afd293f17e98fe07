// What kind of call a program is.
#include "ir/net/pass/classify.h"

#include "ir/lang/lang.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

net::CallFacts facts_of(const std::string& text, std::string op = {},
                        std::map<std::string, std::string> bindings = {}) {
  lang::CompileInput input;
  input.text = text;
  input.op = std::move(op);
  input.bindings = std::move(bindings);
  const lang::LangResult result = lang::compile(input);
  INFO(text << result.rendered);
  REQUIRE(result.program);
  return net::classify(*result.program);
}

std::string kind_of(const std::string& text) {
  return std::string(net::to_string(facts_of(text).kind));
}

std::string std_kind(const std::string& file, const std::string& op,
                     std::map<std::string, std::string> bindings) {
  const Result<std::string> text = lang::import_std("std/" + file + ".prn");
  REQUIRE(text.ok());
  return std::string(net::to_string(facts_of(*text, op, std::move(bindings)).kind));
}

TEST_CASE("Elementwise calls are pointwise, with operands of fewer elements broadcast") {
  CHECK(kind_of("op a(X: f32[4,8]) -> (Y: f32[4,8]) { Y[i,j] = max(X[i,j], 0); }") == "pointwise");
  CHECK(kind_of("op a(X: f32[4,8], Z: f32[4,8]) -> (Y: f32[4,8]) { Y[i,j] = X[i,j]*Z[i,j]; }") ==
        "pointwise");
  CHECK(kind_of("op a(X: f32[1,8], Z: f32[1,8]) -> (Y: f32[1,8]) { Y[i,j] = X[0,j]*Z[i,j]; }") ==
        "pointwise");
  CHECK(kind_of("op a(X: f32[4,8], b: f32[8]) -> (Y: f32[4,8]) { Y[i,j] = X[i,j] + b[j]; }") ==
        "broadcast");
  CHECK(kind_of("op a(X: f32[4,8], b: f32[4,1]) -> (Y: f32[4,8]) { Y[i,j] = X[i,j] + b[i,0]; }") ==
        "broadcast");
  CHECK(kind_of("op a(X: f32[4,8], b: f32) -> (Y: f32[4,8]) { Y[i,j] = X[i,j] * b; }") ==
        "broadcast");
  CHECK(kind_of("op a(X: f32[4,8]) -> (Y: f32[4,8]) { let t[i,j] = exp(X[i,j]); Y[i,j] = t[i,j] + "
                "1; }") == "pointwise");
}

TEST_CASE("How operands of elementwise calls are read is told apart") {
  const net::CallFacts facts = facts_of(
      "op a(X: f32[4,8], b: f32[8], Z: f32[4,8]) -> (Y: f32[4,8]) { Y[i,j] = X[i,j] + b[j] + "
      "Z[i,j]; }");
  using net::PortRead;
  CHECK(facts.reads ==
        std::vector<PortRead>{PortRead::kSame, PortRead::kBroadcast, PortRead::kSame});
  CHECK(facts.num_operations == 2);
}

TEST_CASE("Elements at other places are a view if each is read at most once") {
  CHECK(kind_of("op a(X: f32[4,8]) -> (Y: f32[8,4]) { Y[i,j] = X[j,i]; }") == "view");
  CHECK(kind_of("op a(X: f32[4,8]) -> (Y: f32[32]) { Y[i] = X[i / 8, i % 8]; }") == "view");
  CHECK(kind_of("op a(X: f32[4,8]) -> (Y: f32[2,8]) { Y[i,j] = X[i + 1, j]; }") == "view");
  CHECK(kind_of("op a(X: f32[4,1]) -> (Y: f32[4,8]) { Y[i,j] = X[i,0]; }") == "broadcast");
  CHECK(kind_of("op a(X: f32[4,8]) -> (Y: f32[8,4]) { Y[i,j] = X[j,i] + 1; }") == "other");
  const net::CallFacts heads =
      facts_of("op a(X: f32[8,12]) -> (Y: f32[3,8,4]) { Y[h,t,e] = X[t, h*4 + e]; }");
  CHECK(heads.kind == net::CallKind::kView);
  CHECK(heads.keeps_innermost);
  CHECK_FALSE(facts_of("op a(X: f32[4,8]) -> (Y: f32[8,4]) { Y[i,j] = X[j,i]; }").keeps_innermost);
}

TEST_CASE("Axes of one element do not change what a call is") {
  const net::CallFacts added =
      facts_of("op a(X: f32[4,8]) -> (Y: f32[1,4,1,8]) { Y[a,i,b,j] = X[i,j]; }");
  CHECK(added.kind == net::CallKind::kPointwise);
  CHECK(added.reads == std::vector<net::PortRead>{net::PortRead::kSame});
  CHECK(added.is_copy);
  CHECK(added.keeps_innermost);
  CHECK(kind_of("op a(X: f32[4,1,8]) -> (Y: f32[1,4,8]) { Y[a,i,j] = X[i,a,j]; }") == "pointwise");
  CHECK(kind_of(
            "op a(X: f32[1,4,8], Z: f32[4,8]) -> (Y: f32[4,8]) { Y[i,j] = X[0,i,j] - Z[i,j]; }") ==
        "pointwise");
  CHECK(kind_of("op a(X: f32[4,1,4]) -> (Y: f32[4,4]) { Y[i,j] = X[j,0,i]; }") == "view");
  CHECK_FALSE(facts_of("op a(X: f32[4,1]) -> (Y: f32[4,8]) { Y[i,j] = X[i,0]; }").is_copy);
}

TEST_CASE("Sums of products are linear, in windows too") {
  CHECK(kind_of("op a(X: f32[4,8], W: f32[8,6]) -> (Y: f32[4,6]) { Y[i,j] = sum[k] X[i,k] * "
                "W[k,j]; }") == "linear");
  const net::CallFacts conv = facts_of(
      "op a(X: f32[1,8,6,6], W: f32[4,8,3,3]) -> (Y: f32[1,4,6,6]) { Y[n,o,h,w] = sum[c,kh,kw] "
      "(X[n,c,h+kh-1,w+kw-1] or 0) * W[o,c,kh,kw]; }");
  CHECK(conv.kind == net::CallKind::kLinear);
  CHECK(conv.has_window);
  CHECK(std_kind("gemm", "gemm_nn", {{"M", "4"}, {"N", "8"}, {"K", "8"}}) == "linear");
  CHECK(kind_of("op a(X: f32[4,8]) -> (Y: f32[4]) { Y[i] = sum[k] X[i,k] * X[i,k]; }") == "reduce");
}

TEST_CASE("A product whose weights have a scale for each part is linear") {
  // As MatMulNBits is imported, with as many rows as there are parts.
  for (const std::string weight : {"f32(W[b,q,j])", "(f32(W[b,q,j]) - Z[b,j])"}) {
    CHECK(kind_of("op a(A: f32[2,32], W: u8[2,16,6], S: f32[2,6], Z: f32[2,6]) -> (Y: f32[2,6]) { "
                  "let acc[i,j] = sum[b,q] A[i,b*16 + q] * (" +
                  weight + " * S[b,j]); Y[i,j] = acc[i,j] + Z[0,j]; }") == "linear");
  }
  CHECK(kind_of("op a(X: f32[4,8], g: f32[4]) -> (Y: f32[4]) { Y[i] = sum[k] X[i,k] * (X[i,k] * "
                "g[i]); }") == "reduce");
}

TEST_CASE("Windows that are written out are windows") {
  const std::string head = "op a(X: f32[4,9], b: f32) -> (Y: f32[4,8]) { let s[i,j] = ";
  const std::string two = "X[i,j + 0] + X[i,j+1]", tail = "; Y[i,j] = s[i,j] * b; }";
  const net::CallFacts plain = facts_of(
      "op a(X: f32[4,9]) -> (Y: f32[2,6]) { Y[i,j] = X[i*2,j + 0] + X[i*2,j+3] + "
      "X[i*2 + 1,j + 0] + X[i*2 + 1,j+3]; }");
  CHECK(plain.kind == net::CallKind::kWindow);
  CHECK(plain.reads == std::vector<net::PortRead>{net::PortRead::kElsewhere});
  CHECK(kind_of(head + two + " + (X[i,j+2] or 0) + (X[i,j-1] or b)" + tail) == "window");
  CHECK(kind_of(head + two + tail) == "other");
  CHECK(kind_of(head + two + " + X[i,j + 0] * X[3 - i,j + 0]" + tail) == "other");
}

TEST_CASE("Reductions are of rows if they go over the last axes and come back") {
  const std::string soft =
      "op a(X: f32[4,8]) -> (Y: f32[4,8]) { let m[i] = max[k] X[i,k]; let e[i,k] = exp(X[i,k] - "
      "m[i]); let s[i] = sum[k] e[i,k]; Y[i,k] = e[i,k] / s[i]; }";
  CHECK(kind_of(soft) == "rows");
  CHECK(facts_of(soft).row_elems == 8);
  CHECK(std_kind("norm", "layer_norm", {{"M", "4"}, {"N", "8"}}) == "rows");
  const net::CallFacts mean =
      facts_of("op a(X: f32[4,8]) -> (Y: f32[4,1]) { Y[i,j] = (sum[k] X[i,k]) / 8; }");
  CHECK(mean.kind == net::CallKind::kReduce);
  CHECK(mean.row_elems == 8);
  const net::CallFacts first =
      facts_of("op a(X: f32[4,8]) -> (Y: f32[8]) { Y[j] = sum[k] X[k,j]; }");
  CHECK(first.kind == net::CallKind::kReduce);
  CHECK(first.row_elems == 0);
  CHECK(kind_of("op a(X: f32[4,8]) -> (Y: f32[4,8]) { let m[j] = max[k] X[k,j]; Y[i,j] = X[i,j] - "
                "m[j]; }") == "other");
}

TEST_CASE("Windows, data-dependent subscripts and what is several things are kinds of their own") {
  CHECK(kind_of("op a(X: f32[1,8,8]) -> (Y: f32[1,4,4]) { Y[c,h,w] = max[i in 0..2, j in 0..2] "
                "X[c,2*h+i,2*w+j]; }") == "window");
  CHECK(kind_of("op a(X: f32[8,4], I: i64[3]) -> (Y: f32[3,4]) { Y[i,j] = X[I[i], j] or 0; }") ==
        "opaque");
  CHECK(kind_of("op a(X: f32[4,8]) -> (Y: f32[4,8], Z: f32[4,8]) { Y[i,j] = X[i,j] + 1; Z[i,j] = "
                "X[i,j] * 2; }") == "other");
  CHECK(
      kind_of("op a(X: f32[4,4], W: f32[4,4], V: f32[4,4]) -> (Y: f32[4,4]) { let a[i,j] = sum[k] "
              "X[i,k] * W[k,j]; Y[i,j] = sum[k] a[i,k] * V[k,j]; }") == "other");
}

}  // namespace
}  // namespace prunerc::testing
