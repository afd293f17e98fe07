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
