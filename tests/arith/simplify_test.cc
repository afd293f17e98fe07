// What the simplifier does to index arithmetic, conditions and statements.
#include "ir/arith/simplify.h"

#include "ir/arith/linear.h"
#include "ir/equal.h"
#include "ir/printer.h"
#include "tests/support/check.h"
#include "tests/support/random_expr.h"

#include <catch2/catch.hpp>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

// Variables x, y, z with the given extents, and shorthands.
struct Setup {
  explicit Setup(std::vector<int64_t> sizes) {
    const char* const names[] = {"x", "y", "z", "w"};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      vars.push_back(b.fresh_var(names[i]));
      ranges.bind(vars[i], b.int_imm(sizes[i]));
    }
  }
  Expr v(std::size_t i) { return vars[i]; }
  Expr c(int64_t value) { return b.int_imm(value); }
  std::string simple(Expr e) { return show(simplify(b, e, ranges)); }

  IrBuilder b{"test"};
  std::vector<const Var*> vars;
  VarRanges ranges;
};

// A perfect split of 512 into T0*T1*T2 with variables x < T0, y < T1, z < T2.
struct SymbolicSetup {
  SymbolicSetup() {
    std::vector<ParamId> ids;
    for (const char* name : {"T0", "T1", "T2"}) ids.push_back(b.add_param(name));
    b.add_tiles({ids, 512, TileKind::kPerfect, 0});
    domain = b.finish({});
    ranges = VarRanges(domain.domain());
    for (std::size_t i = 0; i < 3; ++i) {
      const char* const names[] = {"x", "y", "z"};
      vars.push_back(b2.fresh_var(names[i]));
      params.push_back(b2.param(ids[i]));
      ranges.bind(vars[i], params[i]);
    }
    fused = b2.add(b2.mul(b2.add(b2.mul(vars[0], params[1]), vars[1]), params[2]), vars[2]);
  }
  std::string simple(Expr e) { return show(simplify(b2, e, ranges)); }

  IrBuilder b{"domain"};
  Program domain;
  IrBuilder b2{"test"};
  VarRanges ranges;
  std::vector<const Var*> vars;
  std::vector<Expr> params;
  Expr fused;
};

}  // namespace

TEST_CASE("floordiv and floormod split off the part that the divisor divides") {
  Setup s({8, 16, 4});
  const Expr fused = s.b.add(s.b.add(s.b.mul(s.v(0), s.c(64)), s.b.mul(s.v(1), s.c(4))), s.v(2));
  CHECK(s.simple(s.b.floordiv(fused, s.c(64))) == "x");
  CHECK(s.simple(s.b.floordiv(fused, s.c(4))) == "((x * 16) + y)");
  CHECK(s.simple(s.b.floormod(fused, s.c(64))) == "((y * 4) + z)");
  CHECK(s.simple(s.b.floormod(fused, s.c(4))) == "z");
  CHECK(s.simple(s.b.floormod(s.b.floordiv(fused, s.c(4)), s.c(16))) == "y");
  CHECK(s.simple(s.b.floordiv(fused, s.c(16))) == "((x * 4) + (y // 4))");
}

TEST_CASE("quotient and remainder of one division join again") {
  Setup s({1000, 7});
  const Expr x = s.v(0);
  const Expr q = s.b.floordiv(x, s.c(12));
  const Expr r = s.b.floormod(x, s.c(12));
  CHECK(s.simple(s.b.add(s.b.mul(q, s.c(12)), r)) == "x");
  CHECK(s.simple(s.b.sub(x, s.b.mul(q, s.c(12)))) == "(x % 12)");
  CHECK(s.simple(s.b.sub(x, r)) == "((x // 12) * 12)");
  const Expr digits = s.b.add(s.b.mul(s.b.floormod(s.b.floordiv(x, s.c(4)), s.c(3)), s.c(4)),
                              s.b.floormod(x, s.c(4)));
  CHECK(s.simple(digits) == "(x % 12)");
  CHECK(s.simple(s.b.add(s.b.mul(q, s.c(12)), digits)) == "x");
  const Expr shifted = s.b.add(x, s.v(1));
  CHECK(s.simple(s.b.add(s.b.mul(s.b.floordiv(shifted, s.c(5)), s.c(5)),
                         s.b.floormod(shifted, s.c(5)))) == "(x + y)");
}

TEST_CASE("a remainder does not join with the quotient of something else") {
  Setup s({1000, 1000});
  const Expr q = s.b.mul(s.b.floordiv(s.v(0), s.c(12)), s.c(12));
  CHECK(s.simple(s.b.add(q, s.b.floormod(s.v(1), s.c(12)))) == "(((x // 12) * 12) + (y % 12))");
  const Expr q4 = s.b.mul(s.b.floordiv(s.v(0), s.c(12)), s.c(4));
  CHECK(s.simple(s.b.add(q4, s.b.floormod(s.v(0), s.c(12)))) == "(((x // 12) * 4) + (x % 12))");
}

TEST_CASE("wrong rewrites known from other compilers do not happen") {
  Setup s({1000, 1000});
  const Expr x = s.v(0);
  const Expr y = s.v(1);
  // y - x % 2 is not y // 2 * 2 or anything else without x.
  CHECK(s.simple(s.b.sub(y, s.b.floormod(x, s.c(2)))) == "(y - (x % 2))");
  // (x % 255) // 16 may not become (x // 16) % 16: 255 is no multiple of 16.
  CHECK(s.simple(s.b.floordiv(s.b.floormod(x, s.c(255)), s.c(16))) == "((x % 255) // 16)");
  CHECK(s.simple(s.b.floordiv(s.b.floormod(x, s.c(256)), s.c(16))) == "((x // 16) % 16)");
  // The pair of a division keeps its common source.
  const Expr pair_high = s.b.floordiv(s.b.floormod(x, s.c(64)), s.c(8));
  const Expr pair_low = s.b.floormod(s.b.floormod(x, s.c(64)), s.c(8));
  CHECK(s.simple(s.b.add(s.b.mul(pair_high, s.c(8)), pair_low)) == "(x % 64)");
  // Negative dividends round down.
  CHECK(s.simple(s.b.floordiv(s.b.sub(s.c(0), x), s.c(1000))) == "((0 - x) // 1000)");
}

TEST_CASE("facts decide comparisons and narrow variables") {
  Setup s({100, 100});
  const Expr x = s.v(0);
  const Expr y = s.v(1);
  s.ranges.assume(s.b.lt(s.b.add(s.b.mul(x, s.c(16)), y), s.c(64)));
  CHECK(s.simple(s.b.lt(x, s.c(4))) == "1");
  CHECK(s.simple(s.b.floordiv(x, s.c(4))) == "0");
  CHECK(s.simple(s.b.lt(s.b.add(s.b.mul(x, s.c(16)), y), s.c(70))) == "1");
  CHECK(s.simple(s.b.le(s.c(64), s.b.add(s.b.mul(x, s.c(16)), y))) == "0");
  CHECK(s.simple(s.b.lt(x, s.c(3))) == "(x < 3)");
  s.ranges.assume(s.b.eq(y, s.c(5)));
  CHECK(s.simple(s.b.add(y, s.c(1))) == "6");
}

TEST_CASE("a fact of one branch does not reach the other") {
  Setup s({100});
  const Expr x = s.v(0);
  const Expr e = s.b.select(s.b.lt(x, s.c(10)), s.b.floordiv(x, s.c(10)), s.b.floordiv(x, s.c(20)));
  CHECK(s.simple(e) == "select((x < 10), 0, (x // 20))");
  const Expr negated = s.b.logical_or(s.b.lt(x, s.c(10)), s.b.lt(x, s.c(5)));
  CHECK(s.simple(negated) == "(x < 10)");
  CHECK(s.simple(s.b.logical_and(s.b.lt(x, s.c(10)), s.b.lt(x, s.c(5)))) == "(x < 5)");
  CHECK(s.simple(s.b.logical_and(s.b.lt(x, s.c(10)), s.b.le(s.c(10), x))) == "0");
}

TEST_CASE("comparisons drop the part that cannot matter") {
  Setup s({100, 16});
  const Expr fused = s.b.add(s.b.mul(s.v(0), s.c(16)), s.v(1));
  CHECK(s.simple(s.b.lt(fused, s.c(64))) == "(x < 4)");
  CHECK(s.simple(s.b.le(s.c(32), fused)) == "(2 <= x)");
  CHECK(s.simple(s.b.lt(fused, s.c(65))) == "(((x * 16) + y) < 65)");
  CHECK(s.simple(s.b.eq(s.b.mul(s.v(0), s.c(4)), s.c(6))) == "0");
  CHECK(s.simple(s.b.lt(s.b.mul(s.v(0), s.c(4)), s.c(6))) == "(x < 2)");
}

TEST_CASE("products of perfect tiles cancel and their mixed-radix sums divide") {
  SymbolicSetup s;
  IrBuilder& b = s.b2;
  CHECK(s.simple(b.mul(b.mul(s.params[0], s.params[1]), s.params[2])) == "512");
  CHECK(s.simple(b.floordiv(s.fused, s.params[2])) == "((x * T1) + y)");
  CHECK(s.simple(b.floormod(s.fused, s.params[2])) == "z");
  CHECK(s.simple(b.floordiv(b.floordiv(s.fused, s.params[2]), s.params[1])) == "x");
  CHECK(s.simple(b.lt(s.fused, b.int_imm(512))) == "1");
  CHECK(s.simple(b.lt(s.fused, b.int_imm(511))) != "1");
  CHECK(s.simple(b.sub(b.mul(s.params[0], s.params[1]), b.mul(s.params[1], s.params[0]))) == "0");
  CHECK(s.simple(b.le(s.params[0], b.mul(s.params[0], s.params[1]))) == "1");
}

TEST_CASE("float arithmetic changes only where every bit stays") {
  IrBuilder b("floats");
  const Expr shape[] = {b.int_imm(4)};
  const BufferId a = b.add_buffer("A", DType::kF32, shape, Scope::kGlobal, BufferRole::kInput);
  const Expr at[] = {b.int_imm(0)};
  const Expr x = b.load(a, at);
  const auto same = [&](Expr e) { return simplify(b, e, {}).is(e); };
  const auto becomes_x = [&](Expr e) { return structural_equal(simplify(b, e, {}), x); };
  CHECK(becomes_x(b.mul(x, b.float_imm(1.0, DType::kF32))));
  CHECK(becomes_x(b.add(x, b.float_imm(-0.0, DType::kF32))));
  CHECK(becomes_x(b.sub(x, b.float_imm(0.0, DType::kF32))));
  CHECK(same(b.add(x, b.float_imm(0.0, DType::kF32))));
  CHECK(same(b.sub(x, x)));
  CHECK(same(b.mul(x, b.float_imm(0.0, DType::kF32))));
  CHECK(same(b.div(x, x)));
  CHECK(same(b.eq(x, x)));
  CHECK(same(b.logical_not(b.lt(x, b.float_imm(0.0, DType::kF32)))));
  CHECK(same(b.cast(DType::kF32, b.cast(DType::kF16, x))));
}

TEST_CASE("data that may wrap keeps its divisions and comparisons") {
  IrBuilder b("data");
  const Expr shape[] = {b.int_imm(4)};
  const BufferId a = b.add_buffer("A", DType::kI64, shape, Scope::kGlobal, BufferRole::kInput);
  const Expr at[] = {b.int_imm(0)};
  const Expr x = b.load(a, at);
  const Expr quotient = b.floordiv(b.mul(x, b.int_imm(4)), b.int_imm(4));
  CHECK(simplify(b, quotient, {}).is(quotient));
  const Expr order = b.lt(x, b.add(x, b.int_imm(1)));
  CHECK(simplify(b, order, {}).is(order));
  CHECK(show(simplify(b, b.sub(b.add(x, b.int_imm(3)), x), {})) == "3");
}

TEST_CASE("statements are simplified under loops, guards and branches, and dead ones vanish") {
  const Program p = parse_or_die(R"(
program t(A: f32[64]) -> (C: f32[64]) {
  for i in 4 @L0 {
    for j in 16 @L1 {
      block "C" @B0 [v: S(64) = (i*16 + j) // 1] where i*16 + j < 64 {
        reads A[v // 1]
        writes C[v + 0]
        C[v + 0] = A[v // 1]
  } } }
  for k in 64 @L2 {
    block "D" @B1 [w: S(64) = k] where 64 <= k {
      reads A[w]
      writes C[w]
      C[w] = A[w]
  } }
})");
  const Program q = simplify(p);
  const Program expected = parse_or_die(R"(
program t(A: f32[64]) -> (C: f32[64]) {
  for i in 4 @L0 {
    for j in 16 @L1 {
      block "C" @B0 [v: S(64) = i*16 + j] {
        reads A[v]
        writes C[v]
        C[v] = A[v]
  } } }
})");
  CHECK(print(q) == print(expected));
  CHECK(simplify(q).is(q));
}

TEST_CASE("the least and the largest of data that may wrap are not told by a difference") {
  IrBuilder b("test");
  const Expr shape[] = {b.int_imm(1)};
  const BufferId a = b.add_buffer("A", DType::kI64, shape, Scope::kGlobal, BufferRole::kInput);
  const Expr at[] = {b.int_imm(0)};
  const Expr data = b.load(a, at);
  const Expr next = b.add(data, b.int_imm(1));  // less than the data where that is the largest
  const VarRanges ranges;
  for (const ExprKind kind : {ExprKind::kMin, ExprKind::kMax}) {
    const Expr simple = simplify(b, b.binary(kind, next, data), ranges);
    INFO(show(simple));
    CHECK(simple.kind() == kind);
  }
  const Expr small = b.floormod(data, b.int_imm(100));
  CHECK(simplify(b, b.min(b.add(small, b.int_imm(1)), small), ranges).is(small));
}

TEST_CASE("comparisons with the ends of i64 keep their meaning") {
  IrBuilder b("test");
  const Expr x = b.fresh_var("x");
  const VarRanges ranges;
  for (const int64_t end : {INT64_MIN, INT64_MIN + 1, INT64_MIN + 2, INT64_MAX - 1, INT64_MAX}) {
    const Expr bound = b.int_imm(end);
    for (const Expr e : {b.le(x, bound), b.lt(x, bound), b.le(bound, x), b.lt(bound, x),
                         b.eq(x, bound), b.ne(bound, x)}) {
      const Expr simple = simplify(b, e, ranges);
      INFO(show(e) << " became " << show(simple));
      for (const int64_t value : {INT64_MIN, INT64_MIN + 1, int64_t{0}, INT64_MAX - 1, INT64_MAX}) {
        Env env;
        env.vars[x.as<Var>()->id.value] = value;
        CHECK(value_of(simple, env) == value_of(e, env));
      }
    }
  }
}

TEST_CASE("a constant near the ends of i64 does not move to the other side") {
  IrBuilder b("test");
  const Expr x = b.fresh_var("x");
  const Expr y = b.fresh_var("y");
  const VarRanges ranges;
  const Expr far = b.sub(x, b.int_imm(INT64_MAX));
  for (const Expr e : {b.lt(far, y), b.le(far, y), b.eq(far, y), b.le(y, far), b.ne(y, far)}) {
    const Expr simple = simplify(b, e, ranges);
    INFO(show(e) << " became " << show(simple));
    Env env;
    env.vars[x.as<Var>()->id.value] = 5;
    for (const int64_t value : {0, 7}) {
      env.vars[y.as<Var>()->id.value] = value;
      CHECK(value_of(simple, env) == value_of(e, env));
    }
  }
}

TEST_CASE("the largest integer is no bound of what is made of it") {
  Setup s({1000, 2, 2});
  const Expr top = s.c(INT64_MAX);
  const Expr half = s.c(int64_t{1} << 62);
  CHECK(s.simple(s.b.lt(s.b.floordiv(top, s.b.add(s.v(0), s.c(2))), half)) != "0");
  const Expr rest = s.b.sub(top, s.b.mul(s.v(1), half));
  CHECK(s.simple(s.b.le(rest, s.b.mul(s.v(2), half))) != "0");  // holds of y = z = 1
}

TEST_CASE("a constant is cast as data are, rounded once") {
  IrBuilder b("test");
  const int64_t value = (int64_t{1} << 53) + (int64_t{1} << 29) + 1;  // above the middle of two f32
  const Expr cast = b.cast(DType::kF32, b.int_imm(value));
  REQUIRE(cast.as<FloatImm>() != nullptr);
  CHECK(cast.as<FloatImm>()->value == 0x1p53 + 0x1p30);
}

TEST_CASE("a block's inside does not use what its place knows") {
  const Program p = parse_or_die(R"(
program t(A: f32[64]) -> (C: f32[64]) {
  for i in 4 @L0 {
    block "C" @B0 [v: S(64) = i] {
      reads A[v]
      writes C[v]
      C[v] = select(v < 4, A[v], 0f32)
  } }
})");
  CHECK(simplify(p).is(p));
}

TEST_CASE("a condition is known below it as long as nothing stores to what it reads") {
  const auto nested = [](const std::string& buffer, const std::string& where) {
    return parse_or_die(
        "program t(n: i64[1]) -> (m: i64[1], C: f32[4]) { for i in 4 @L0 { block "
        "\"C\" @B0 [v: S(4) = i] " +
        where + " { if " + buffer + "[0] < 4 { m[0] = 99 if " + buffer +
        "[0] < 4 { C[v] = 1f32 } } } } }");
  };
  const auto count = [](const Program& p, std::string_view part) {
    const std::string text = print(simplify(p));
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  CHECK(count(nested("m", ""), "m[0] < 4") == 2);
  CHECK(count(nested("n", ""), "n[0] < 4") == 1);
  CHECK(count(nested("m", "where m[0] < 4"), "m[0] < 4") == 3);
  CHECK(count(nested("n", "where n[0] < 4"), "n[0] < 4") == 1);
}

TEST_CASE("a dead loop goes, an init without a body stays") {
  const Program p = parse_or_die(R"(
program t(A: f32[64]) -> (C: f32[64]) {
  for i in 4 @L0 {
    block "C" @B0 [v: S(64) = i, r: R(1) = 0] {
      reads A[v]
      writes C[v]
      init { C[v] = 1f32 }
      if 5 < r { C[v] = A[v] }
  } }
})");
  const Program q = simplify(p);
  REQUIRE(q.root().defined());
  CHECK(print(q).find("1f32") != std::string::npos);
}

}  // namespace prunerc::ir
