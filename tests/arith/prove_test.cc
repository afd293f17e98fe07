// Proofs against enumeration.
#include "ir/arith/prove.h"

#include "tests/support/random_expr.h"

#include <catch2/catch.hpp>

namespace prunerc::ir {
namespace {

struct Truth {
  bool always = true;
  bool defined = true;
};

// All points of the maker's variables (8*16*5*12 of them, the last has one value) that satisfy the
// facts.
Truth enumerate(const ExprMaker& maker, Expr condition, const std::vector<Expr>& facts) {
  Truth truth;
  Env env;
  for (const Var* v : maker.vars) env.vars[v->id.value] = 0;
  while (truth.defined && truth.always) {
    bool admitted = true;
    for (Expr fact : facts) {
      const std::optional<int64_t> v = value_of(fact, env);
      truth.defined = truth.defined && v.has_value();
      admitted = admitted && v.value_or(0) != 0;
    }
    const std::optional<int64_t> v = value_of(condition, env);
    truth.defined = truth.defined && v.has_value();
    if (admitted && v.value_or(1) == 0) truth.always = false;
    std::size_t i = 0;
    for (; i < maker.vars.size(); ++i) {
      int64_t& at = env.vars[maker.vars[i]->id.value];
      if (++at < maker.extents[i]) break;
      at = 0;
    }
    if (i == maker.vars.size()) break;
  }
  return truth;
}

}  // namespace

TEST_CASE("proofs agree with enumeration, with and without facts") {
  int decided = 0;
  int total = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    ExprMaker maker(seed + 50'000);
    const Expr condition = maker.condition(3);
    std::vector<Expr> facts;
    if (seed % 2 == 1) facts.push_back(maker.condition(2));
    VarRanges ranges = maker.ranges();
    for (Expr fact : facts) ranges.assume(fact);
    const ProveOptions options = {.max_points = seed % 3 == 0 ? 0 : 100'000};
    const Proof proof = prove(condition, ranges, options);
    const Truth truth = enumerate(maker, condition, facts);
    if (!truth.defined) continue;
    ++total;
    INFO("seed " << seed << ": " << show(condition)
                 << (facts.empty() ? "" : " given " + show(facts[0])));
    if (proof == Proof::kYes) CHECK(truth.always);
    // With contradictory facts everything holds, and either answer is right.
    const bool contradictory = enumerate(maker, maker.b.bool_imm(false), facts).always;
    if (proof == Proof::kNo && !contradictory) CHECK(!truth.always);
    if (options.max_points > 0) CHECK(proof != Proof::kUnknown);
    decided += proof != Proof::kUnknown ? 1 : 0;
  }
  CHECK(total > 200);
  CHECK(decided > total * 2 / 3);
}

TEST_CASE("a proof over tile parameters holds for all of them") {
  IrBuilder b("p");
  const Expr t = b.param(b.add_param("T"));
  const Var* x = b.fresh_var("x");
  const Var* y = b.fresh_var("y");
  VarRanges ranges;
  ranges.bind(x, b.int_imm(10));
  ranges.bind(y, t);
  CHECK(prove(b.lt(y, t), ranges) == Proof::kYes);
  CHECK(prove(b.lt(b.add(b.mul(x, t), y), b.mul(t, b.int_imm(10))), ranges) == Proof::kYes);
  CHECK(prove(b.le(t, y), ranges) == Proof::kNo);
  CHECK(prove(b.lt(b.add(b.mul(x, t), y), b.mul(t, b.int_imm(9))), ranges) != Proof::kYes);
  CHECK(prove(b.lt(x, t), ranges) == Proof::kUnknown);
}

TEST_CASE("what depends on data is not proved") {
  IrBuilder b("p");
  const Expr shape[] = {b.int_imm(4)};
  const BufferId a = b.add_buffer("A", DType::kI32, shape, Scope::kGlobal, BufferRole::kInput);
  const Expr at[] = {b.int_imm(0)};
  const Expr x = b.cast(DType::kI64, b.load(a, at));
  CHECK(prove(b.lt(x, b.int_imm(5)), {}) == Proof::kUnknown);
  CHECK(prove(b.lt(x, b.int_imm(int64_t{1} << 31)), {}) == Proof::kYes);
  CHECK(prove(b.lt(b.int_imm(int64_t{1} << 31), x), {}) == Proof::kNo);
  VarRanges ranges;
  ranges.assume(b.lt(x, b.int_imm(5)));
  CHECK(prove(b.lt(x, b.int_imm(6)), ranges) == Proof::kYes);
}

TEST_CASE("a fact about data that may wrap says nothing of what is added to it") {
  IrBuilder b("p");
  const Expr shape[] = {b.int_imm(2)};
  const BufferId a = b.add_buffer("A", DType::kI64, shape, Scope::kGlobal, BufferRole::kInput);
  const auto digit = [&](int64_t at) {
    const Expr index[] = {b.int_imm(at)};
    return b.floormod(b.load(a, index), b.int_imm(int64_t{1} << 62));
  };
  const Expr data = b.add(digit(0), digit(1));  // fits, but not with x added
  const Var* x = b.fresh_var("x");
  VarRanges ranges;
  ranges.bind(x, b.int_imm(1000));
  ranges.assume(b.lt(b.add(data, x), b.int_imm(10)));
  ranges.assume(b.lt(b.floordiv(b.add(data, x), b.int_imm(8)), b.int_imm(10)));
  CHECK(ranges.interval(x->id) == Interval{0, 999});
  ranges.assume(b.lt(b.add(digit(0), x), b.int_imm(10)));
  CHECK(ranges.interval(x->id) == Interval{0, 9});
}

TEST_CASE("ends of i64 are no bounds of what is unknown") {
  IrBuilder b("p");
  const Expr x = b.fresh_var("x");
  const Expr least = b.int_imm(INT64_MIN);
  const Expr most = b.int_imm(INT64_MAX);
  CHECK(prove(b.lt(x, most), {}) == Proof::kUnknown);
  CHECK(prove(b.le(x, least), {}) == Proof::kUnknown);
  VarRanges ranges;
  ranges.assume(b.lt(x, least));  // never reached
  ranges.assume(b.lt(most, x));
  ranges.assume_not(b.le(x, most));
}

TEST_CASE("a domain of more than 2^63 points is not taken for an empty one") {
  IrBuilder b("p");
  const Var* x = b.fresh_var("x");
  VarRanges ranges;
  ranges.bind(x->id, Interval{-(INT64_MAX - 1), INT64_MAX - 1});
  const Expr square_is_nine = b.eq(b.floormod(b.mul(x, x), b.int_imm(16)), b.int_imm(9));
  CHECK(prove(square_is_nine, ranges) != Proof::kYes);
}

TEST_CASE("large domains are decided by normal forms or not at all") {
  IrBuilder b("p");
  const Var* x = b.fresh_var("x");
  const Var* y = b.fresh_var("y");
  VarRanges ranges;
  ranges.bind(x, b.int_imm(1'000'000));
  ranges.bind(y, b.int_imm(1'000'000));
  const Expr fused = b.add(b.mul(x, b.int_imm(1'000'000)), y);
  CHECK(prove(b.lt(fused, b.int_imm(1'000'000'000'000)), ranges) == Proof::kYes);
  CHECK(prove(b.lt(fused, b.int_imm(999'999'999'999)), ranges) == Proof::kNo);
  CHECK(prove(b.ne(b.floormod(b.mul(x, y), b.int_imm(7)), b.int_imm(3)), ranges) ==
        Proof::kUnknown);
  CHECK(prove_less_equal(x, y, ranges) == Proof::kNo);
  CHECK(prove_equal(fused, b.add(y, b.mul(b.int_imm(1'000'000), x)), ranges) == Proof::kYes);
}

TEST_CASE("interval arithmetic holds the values of the least and the largest integers") {
  const int64_t ends[] = {INT64_MIN,        INT64_MIN + 1, INT64_MIN + 2, -7,       -1, 0, 1, 2, 5,
                          int64_t{1} << 62, INT64_MAX - 2, INT64_MAX - 1, INT64_MAX};
  using Wide = __int128;
  const auto holds = [](Interval found, Wide value) {
    return value < INT64_MIN || value > INT64_MAX || found.contains(static_cast<int64_t>(value));
  };
  for (const int64_t a : ends) {
    for (const int64_t b : ends) {
      INFO(a << " and " << b);
      const Interval x = Interval::point(a);
      const Interval y = Interval::point(b);
      CHECK(holds(x + y, Wide{a} + b));
      CHECK(holds(x - y, Wide{a} - b));
      CHECK(holds(x * y, Wide{a} * b));
      CHECK(holds(x * y + Interval::point(5), Wide{a} * b + 5));
      if (b == 0) continue;
      const Wide quotient = floor_div(Wide{a}, Wide{b});
      CHECK(holds(floor_div(x, y), quotient));
      CHECK(holds(floor_mod(x, y), Wide{a} - quotient * b));
      CHECK(holds(floor_div(hull(x, y), y), quotient));
      CHECK(holds(floor_mod(hull(x, Interval::point(0)), y), Wide{a} - quotient * b));
    }
  }
}

TEST_CASE("interval arithmetic saturates instead of wrapping") {
  const Interval top = {0, Interval::kNoUpper - 1};
  CHECK((top + top).hi == Interval::kNoUpper);
  CHECK((top * Interval::point(-3)).lo == Interval::kNoLower);
  CHECK(floor_div(Interval{-7, 7}, Interval::point(2)) == Interval{-4, 3});
  CHECK(floor_mod(Interval{-7, 7}, Interval::point(4)) == Interval{0, 3});
  CHECK(floor_mod(Interval{8, 10}, Interval::point(4)) == Interval{0, 2});
  CHECK(floor_div(Interval::all(), Interval{2, 5}) == Interval::all());
  CHECK(floor_div(Interval{5, 9}, Interval{0, 0}) == Interval::all());
}

}  // namespace prunerc::ir
