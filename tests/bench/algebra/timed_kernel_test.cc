// Kernels that are timed in turns, and whether they compute the same.
#include "tests/bench/algebra/timed_kernel.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>

namespace prunerc::bench {
namespace {

TimedKernel kernel_of(Session& session, const std::string& value) {
  OperatorRequest request;
  request.text = "op f<N=512>(X: f32[N]) -> (Y: f32[N]) { Y[i] = " + value + "; }";
  const Operator op = load_operator(request).value();
  return {op.program, session.kernel(op).value()};
}

TEST_CASE("what is timed in turns is compared as well") {
  SessionOptions options;
  options.threads = 1;
  options.database = ":memory:";
  options.limits = Limits::kAsDescribed;
  Session session = Session::open(options).value();
  TimedKernel twice = kernel_of(session, "X[i] + X[i]"), same = kernel_of(session, "X[i] * 2.0"),
              near = kernel_of(session, "X[i] * 2.001"), square = kernel_of(session, "X[i] * X[i]"),
              root = kernel_of(session, "sqrt(X[i])"), zero = kernel_of(session, "X[i] - X[i]");

  const InTurns equal = time_in_turns(twice, same);
  CHECK(equal.apart == 0);
  CHECK(equal.ratio > 0);
  CHECK(equal.first_us > 0);
  // A thousandth of two is what its factor is off.
  CHECK(twice.apart_from(near) == Approx(0.0005).epsilon(0.01));
  CHECK(twice.apart_from(square) > kMostApart);
  CHECK(twice.apart_from(zero) == 1);
  CHECK(std::isinf(zero.apart_from(twice)));
  // Of negative inputs it is no number, on either side.
  CHECK(std::isinf(twice.apart_from(root)));
  CHECK(std::isinf(root.apart_from(root)));
}

}  // namespace
}  // namespace prunerc::bench
