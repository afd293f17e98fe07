// Affine systems against enumeration.
#include "ir/arith/feasible.h"

#include "ir/support/rng.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::ir {
namespace {

AffineRow row(std::vector<int64_t> coefs, int64_t constant) { return {std::move(coefs), constant}; }

TEST_CASE("equations are solved over the integers") {
  AffineSystem even;
  even.add_var(0, 100);
  even.add_var(0, 100);
  even.require_zero(row({6, -4}, 1));
  CHECK(even.feasible({.max_points = 0}) == Proof::kNo);
  AffineSystem some;
  some.add_var(0, 100);
  some.add_var(0, 100);
  some.require_zero(row({6, -4}, 2));
  CHECK(some.feasible({.max_points = 0}) == Proof::kYes);
  AffineSystem far;
  far.add_var(0, 1'000'000'000);
  far.add_var(0, 1'000'000'000);
  far.require_zero(row({7, -11}, -3));
  far.require_nonnegative(row({1, 0}, -900'000'000));
  CHECK(far.feasible({.max_points = 0}) == Proof::kYes);
  far.require_nonnegative(row({-2, 1}, 0));
  CHECK(far.feasible({.max_points = 0}) == Proof::kNo);
}

TEST_CASE("contradictions of inequalities are found") {
  AffineSystem s;
  s.add_var(0, 50);
  s.add_var(0, 50);
  s.require_nonnegative(row({1, -1}, -1));
  CHECK(s.feasible() == Proof::kYes);
  s.require_nonnegative(row({-1, 1}, -1));
  CHECK(s.feasible({.max_points = 0}) == Proof::kNo);
  AffineSystem empty;
  empty.add_var(3, 2);
  CHECK(empty.feasible() == Proof::kNo);
  CHECK(AffineSystem().feasible() == Proof::kYes);
}

TEST_CASE("a gap between rational and integer solutions is closed by enumeration") {
  // 3 <= 5x - 7y <= 3.5 has rational solutions in the box for many y, integer ones for some.
  AffineSystem s;
  s.add_var(0, 2);
  s.add_var(0, 2);
  s.require_nonnegative(row({5, -7}, -1));
  s.require_nonnegative(row({-5, 7}, 2));
  CHECK(s.feasible({.max_points = 0}) == Proof::kUnknown);
  CHECK(s.feasible() == Proof::kNo);
}

TEST_CASE("numbers that leave 64 bits give no answer") {
  const int64_t huge = int64_t{1} << 62;
  AffineSystem s;
  s.add_var(0, huge);
  s.add_var(0, huge);
  s.require_zero(row({huge, -3}, 5));
  CHECK(s.feasible({.max_points = 0}) == Proof::kUnknown);
}

TEST_CASE("random systems: the answer is never wrong, and rarely missing") {
  int known = 0;
  const int num = testing::num_cases(4000);
  for (int n = 0; n < num; ++n) {
    Rng rng(testing::first_seed() + static_cast<uint64_t>(n), 7);
    AffineSystem s;
    const int64_t vars = rng.between(1, 4);
    for (int64_t i = 0; i < vars; ++i) {
      const int64_t lo = rng.between(-4, 3);
      s.add_var(lo, lo + rng.between(0, 6));
    }
    const auto random_row = [&] {
      AffineRow out;
      for (int64_t i = 0; i < vars; ++i) {
        if (rng.chance(0.7)) out.add(static_cast<std::size_t>(i), rng.between(-6, 6));
      }
      out.constant = rng.between(-12, 12);
      return out;
    };
    for (int64_t i = rng.between(0, 2); i > 0; --i) s.require_zero(random_row());
    for (int64_t i = rng.between(0, 3); i > 0; --i) s.require_nonnegative(random_row());
    const Proof truth = s.enumerate(1'000'000);
    const Proof found = s.feasible({.max_points = 0});
    REQUIRE(truth != Proof::kUnknown);
    INFO("case " << n);
    CHECK((found == Proof::kUnknown || found == truth));
    known += found != Proof::kUnknown ? 1 : 0;
    CHECK(s.feasible() == truth);
  }
  CHECK(known * 100 > num * 90);
}

}  // namespace
}  // namespace prunerc::ir
