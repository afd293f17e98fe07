// Arithmetic over tile parameters: what is proved for all of them holds for each.
#include "ir/analysis/region.h"
#include "ir/arith/linear.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "tests/support/random_expr.h"

#include <catch2/catch.hpp>

namespace prunerc::ir {
namespace {

constexpr int64_t kExtent = 24;

// x < T0, y < T1, z < T2 with T0*T1*T2 = 24, and u < 10.
struct Sketch {
  Sketch() {
    IrBuilder d("domain");
    std::vector<ParamId> ids;
    for (const char* name : {"T0", "T1", "T2"}) ids.push_back(d.add_param(name));
    d.add_tiles({ids, kExtent, TileKind::kPerfect, 0});
    domain = d.finish({});
    ranges = VarRanges(domain.domain());
    for (int i = 0; i < 3; ++i) params.push_back(b.param(ids[static_cast<std::size_t>(i)]));
    for (const char* name : {"x", "y", "z", "u"}) vars.push_back(b.fresh_var(name));
    for (std::size_t i = 0; i < 3; ++i) ranges.bind(vars[i], params[i]);
    ranges.bind(vars[3], b.int_imm(10));
  }

  // A mixed-radix sum of neighbouring levels, as splits make it.
  Expr fused(std::size_t first, std::size_t last) {
    Expr sum = vars[first];
    for (std::size_t i = first + 1; i <= last; ++i) sum = b.add(b.mul(sum, params[i]), vars[i]);
    return sum;
  }

  Expr random(Rng& rng, int depth) {
    if (depth == 0) {
      switch (rng.below(5)) {
        case 0: return vars[rng.below(4)];
        case 1: return params[rng.below(3)];
        case 2: return b.int_imm(rng.between(0, 24));
        default: {
          const std::size_t first = rng.below(3);
          return fused(first, first + rng.below(3 - first));
        }
      }
    }
    const Expr l = random(rng, depth - 1);
    const Expr divisor = rng.chance(0.6)   ? params[rng.below(3)]
                         : rng.chance(0.5) ? b.mul(params[1], params[2])
                                           : b.int_imm(rng.between(1, 12));
    switch (rng.below(7)) {
      case 0: return b.floordiv(l, divisor);
      case 1: return b.floormod(l, divisor);
      case 2: return b.mul(l, divisor);
      case 3: return b.sub(l, random(rng, depth - 1));
      case 4: return b.min(l, random(rng, depth - 1));
      default: return b.add(l, random(rng, depth - 1));
    }
  }

  // Calls f with every binding of the parameters and variables.
  template <typename F>
  void for_each_point(F&& f) const {
    for (int64_t t0 = 1; t0 <= kExtent; ++t0) {
      for (int64_t t1 = 1; t0 * t1 <= kExtent; ++t1) {
        if (kExtent % (t0 * t1) != 0) continue;
        const int64_t t2 = kExtent / (t0 * t1);
        Env env;
        env.params = {{0, t0}, {1, t1}, {2, t2}};
        for (int64_t i = 0; i < kExtent; ++i) {
          env.vars[vars[0]->id.value] = i / (t1 * t2);
          env.vars[vars[1]->id.value] = i / t2 % t1;
          env.vars[vars[2]->id.value] = i % t2;
          for (int64_t u : {0, 4, 9}) {
            env.vars[vars[3]->id.value] = u;
            f(env);
          }
        }
      }
    }
  }

  IrBuilder b{"sketch"};
  Program domain;
  VarRanges ranges;
  std::vector<const Var*> vars;
  std::vector<Expr> params;
};

}  // namespace

TEST_CASE("simplification over perfect tiles keeps the value of every instance") {
  Sketch s;
  Rng rng(31);
  int num_smaller = 0;
  for (int i = 0; i < 1500; ++i) {
    const Expr e = s.random(rng, static_cast<int>(rng.between(1, 3)));
    const Expr simple = simplify(s.b, e, s.ranges);
    INFO(show(e) << " became " << show(simple));
    CHECK(simplify(s.b, simple, s.ranges).is(simple));
    const Interval bound = interval_of(to_linear(s.b, e, s.ranges), s.ranges);
    int64_t wrong = 0;
    s.for_each_point([&](const Env& env) {
      const std::optional<int64_t> v = value_of(e, env);
      wrong += value_of(simple, env) != v || !bound.contains(v.value()) ? 1 : 0;
    });
    CHECK(wrong == 0);
    num_smaller += expr_size(simple) < expr_size(e) ? 1 : 0;
  }
  CHECK(num_smaller > 300);
}

TEST_CASE("proofs over perfect tiles hold for every instance") {
  Sketch s;
  Rng rng(32);
  int num_proved = 0;
  for (int i = 0; i < 1500; ++i) {
    const Expr lhs = s.random(rng, static_cast<int>(rng.below(3)));
    const Expr rhs = rng.chance(0.4) ? s.b.int_imm(rng.between(0, 40)) : s.random(rng, 1);
    const Expr condition = rng.chance(0.5) ? s.b.lt(lhs, rhs) : s.b.le(lhs, rhs);
    const Proof proof = prove(condition, s.ranges);
    bool always = true;
    s.for_each_point(
        [&](const Env& env) { always = always && value_of(condition, env).value() != 0; });
    INFO(show(condition));
    if (proof == Proof::kYes) CHECK(always);
    if (proof == Proof::kNo) CHECK(!always);
    num_proved += proof == Proof::kYes ? 1 : 0;
  }
  CHECK(num_proved > 100);
}

TEST_CASE("the rows touched under an outer tile are the product of the inner ones") {
  Sketch s;
  const Expr shape[] = {s.b.int_imm(kExtent)};
  const BufferId a = s.b.add_buffer("A", DType::kF32, shape, Scope::kGlobal, BufferRole::kInput);
  const BufferRegion point = {a, {{s.fused(0, 2), s.b.int_imm(1)}}};
  const VarId inner[] = {s.vars[1]->id, s.vars[2]->id};
  const BufferRegion tile = relax_region(s.b, point, inner, s.ranges);
  CHECK(show(tile.box[0].extent) == "(T1 * T2)");
  CHECK(show(tile.box[0].min) == "((x * T1) * T2)");
  const auto extents = region_extents(s.b, tile, s.ranges);
  REQUIRE(extents[0].has_value());
  CHECK(show(*extents[0]) == "(T1 * T2)");
  const VarId all[] = {s.vars[0]->id, s.vars[1]->id, s.vars[2]->id};
  const BufferRegion whole = relax_region(s.b, point, all, s.ranges);
  CHECK(show(whole.box[0].extent) == "24");
  CHECK(covers(s.b, whole, tile, s.ranges) == Proof::kYes);
  CHECK(covers(s.b, tile, whole, s.ranges) != Proof::kYes);
}

}  // namespace prunerc::ir
