// Calls that nobody reads, and calls that are made twice.
#include "ir/net/pass/merge_same.h"

#include "ir/net/pass/remove_dead.h"
#include "tests/net/pass/nets.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace prunerc::testing {
namespace {

constexpr const char* kOps = R"(
op add(A: f32[6], B: f32[6]) -> (C: f32[6]) { C[i] = A[i] + B[i]; }
op times<S=2>(A: f32[6]) -> (C: f32[6]) { C[i] = A[i] * S; }
op over(A: f32[6], B: f32[6]) -> (C: f32[6]) { C[i] = A[i] / B[i]; }
op two(A: f32[6]) -> (B: f32[6], C: f32[6]) { B[i] = A[i] * 3; C[i] = A[i] + 1; }
)";

net::Net net_of(const std::string& ports, const std::string& body) {
  return net_or_die(std::string(kOps) + "net n(x: f32[6], z: f32[6]) -> (" + ports + ") {\n" +
                    body + "}\n");
}

void check_same(const Result<net::Net>& after, const net::Net& before, const std::string& calls) {
  INFO((after.ok() ? "" : after.error().message()));
  REQUIRE(after.ok());
  CHECK(calls_of(*after) == calls);
  CHECK(net_difference(*after, before, 7).empty());
}

TEST_CASE("calls from which no output follows go, and constants with them") {
  const net::Net net = net_of("y: f32[6]",
                              "const W: f32[6]; const V: f32[6]; let a = add(x, W); let b = add(a, "
                              "V); let c = times(b); let p, q = two(a); y = times(p);");
  const Result<net::Net> after = net::remove_dead(net);
  check_same(after, net, "add(x, W) -> a\ntwo(a) -> p, q\ntimes(p) -> y\n");
  for (const net::Tensor& tensor : after->tensors) CHECK(tensor.name != "V");
  CHECK(after->inputs.size() == 2);
  check_same(net::remove_dead(*after), net, calls_of(*after));
}

TEST_CASE("equal calls on equal arguments become one") {
  const net::Net net = net_of(
      "y: f32[6], u: f32[6]",
      "const W: f32[6] = \"w\"; const V: f32[6] = \"w\"; let a = add(x, W); let b = add(x, V); let "
      "c "
      "= times(a); let d = times(b); let e = times<S=3>(b); let f = add(c, d); u = add(e, f); y = "
      "times(a);");
  check_same(net::merge_same(net), net,
             "add(x, W) -> a\ntimes(a) -> c\ntimes(a) -> e\nadd(c, c) -> f\nadd(e, f) -> "
             "u\ntimes(a) -> y\n");
}

TEST_CASE("other arguments, operators and numbers are other calls") {
  const net::Net net = net_of("y: f32[6]",
                              "const W: f32[6]; const V: f32[6] = 1; let a = add(x, W); let b = "
                              "add(W, x); let c = add(x, V); let d = add(a, b); y = add(d, c);");
  check_same(net::merge_same(net), net, calls_of(net));
}

TEST_CASE("zeros of two signs, and what is no number, are constants of their own") {
  const net::Net net = net_of(
      "y: f32[6], u: f32[6], v: f32[6]",
      "const p: f32[6] = 0.0; const m: f32[6] = -0.0; const q: f32[6] = 0.0/0.0; let dead = add(x, "
      "z); y = over(x, p); u = over(x, m); v = add(x, q);");
  // The dead call goes, so that the text is read again.
  check_same(net::merge_same(net), net, "over(x, p) -> y\nover(x, m) -> u\nadd(x, q) -> v\n");
}

TEST_CASE("floats of a net's text are read as what they were") {
  CHECK(net::float_text(0.5) == "0.5");
  CHECK(net::float_text(-0.0) == "-0.0");
  CHECK(net::float_text(std::nan("")) == "(0.0/0.0)");
}

}  // namespace
}  // namespace prunerc::testing
