// Iteration maps against enumeration of the loops.
#include "ir/arith/iter_map.h"

#include "ir/arith/simplify.h"
#include "tests/support/random_expr.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

namespace prunerc::ir {
namespace {

struct Loops {
  explicit Loops(std::vector<int64_t> sizes) : extents(std::move(sizes)) {
    const char* const names[] = {"i", "j", "k", "l"};
    for (std::size_t i = 0; i < extents.size(); ++i) {
      vars.push_back(b.fresh_var(names[i]));
      ranges.bind(vars[i], b.int_imm(extents[i]));
    }
  }
  Expr v(std::size_t i) { return vars[i]; }
  Expr c(int64_t value) { return b.int_imm(value); }
  Expr fuse(std::size_t i, std::size_t j) { return b.add(b.mul(v(i), c(extents[j])), v(j)); }
  IterMapResult detect(std::vector<Expr> bindings, Expr guard = {},
                       IterMapLevel level = IterMapLevel::kSurjective) {
    return detect_iter_map(b, bindings, vars, guard, ranges, level);
  }

  IrBuilder b{"loops"};
  std::vector<int64_t> extents;
  std::vector<const Var*> vars;
  VarRanges ranges;
};

// Calls f(env) at each point of the loops where the guard holds.
template <typename F>
void for_each_point(const Loops& loops, Expr guard, F&& f) {
  Env env;
  for (const Var* v : loops.vars) env.vars[v->id.value] = 0;
  while (true) {
    if (!guard.defined() || value_of(guard, env).value_or(0) != 0) f(env);
    std::size_t i = 0;
    for (; i < loops.vars.size(); ++i) {
      int64_t& at = env.vars[loops.vars[i]->id.value];
      if (++at < loops.extents[i]) break;
      at = 0;
    }
    if (i == loops.vars.size()) return;
  }
}

// What is wrong with an accepted map; empty if nothing is.
std::string broken(Loops& loops, const std::vector<Expr>& bindings, Expr guard,
                   const IterMapResult& found) {
  std::set<std::vector<int64_t>> tuples;
  std::vector<std::set<int64_t>> values(bindings.size());
  int64_t num_points = 0;
  for_each_point(loops, guard, [&](const Env& env) {
    std::vector<int64_t> tuple;
    for (std::size_t i = 0; i < bindings.size(); ++i) {
      tuple.push_back(value_of(bindings[i], env).value());
      values[i].insert(tuple.back());
    }
    tuples.insert(tuple);
    ++num_points;
  });
  if (num_points == 0) return "";
  std::size_t product = 1;
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    product *= values[i].size();
    const Linear& extent = found.map.extents[i];
    if (!extent.is_constant(static_cast<int64_t>(values[i].size()))) return "wrong extent";
    const IterSum& sum = found.map.indices[i];
    const int64_t unit = sum.splits.empty() ? 1 : sum.splits.back().scale.coef;
    const int64_t reach = (static_cast<int64_t>(values[i].size()) - 1) * unit;
    if (*values[i].rbegin() - *values[i].begin() != reach) return "gaps in a range";
    if (!sum.base.is_constant(*values[i].begin())) return "wrong base";
  }
  if (tuples.size() != product) return "indices depend on each other";
  if (found.map.bijective && static_cast<int64_t>(tuples.size()) != num_points)
    return "instances repeat";
  return "";
}

// Bindings made of random splits and fusions of the loops, sometimes disturbed.
std::vector<Expr> random_bindings(Loops& loops, Rng& rng) {
  IrBuilder& b = loops.b;
  std::vector<std::pair<Expr, int64_t>> parts;
  for (std::size_t i = 0; i < loops.vars.size(); ++i)
    parts.emplace_back(loops.vars[i], loops.extents[i]);
  for (uint64_t step = rng.below(4); step > 0; --step) {
    const std::size_t at = rng.below(parts.size());
    const auto [e, extent] = parts[at];
    if (rng.chance(0.5) && parts.size() > 1) {
      const std::size_t other = (at + 1) % parts.size();
      const auto [low, low_extent] = parts[other];
      parts[at] = {b.add(b.mul(e, b.int_imm(low_extent)), low), extent * low_extent};
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(other));
    } else {
      const int64_t factor = rng.chance(0.8) && extent % 2 == 0 ? 2 : rng.between(1, 5);
      parts[at] = {b.floordiv(e, b.int_imm(factor)), (extent + factor - 1) / factor};
      parts.emplace_back(b.floormod(e, b.int_imm(factor)), std::min(factor, extent));
    }
  }
  std::vector<Expr> out;
  for (const auto& [e, extent] : parts) {
    if (rng.chance(0.15)) continue;
    Expr binding = e;
    if (rng.chance(0.1)) binding = b.mul(binding, b.int_imm(rng.between(2, 3)));
    if (rng.chance(0.1)) binding = b.add(binding, b.int_imm(rng.between(-3, 7)));
    if (rng.chance(0.1)) binding = b.add(binding, loops.vars[rng.below(loops.vars.size())]);
    out.push_back(binding);
  }
  return out;
}

}  // namespace

TEST_CASE("accepted iteration maps have the property asked for") {
  int accepted = 0;
  int rejected = 0;
  int inverted = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed, 11);
    std::vector<int64_t> sizes;
    const int64_t choices[] = {1, 2, 3, 4, 6, 8};
    for (uint64_t n = 1 + rng.below(4); n > 0; --n) sizes.push_back(choices[rng.below(6)]);
    Loops loops(sizes);
    const std::vector<Expr> bindings = random_bindings(loops, rng);
    Expr guard;
    if (rng.chance(0.3) && !bindings.empty()) {
      const Expr bounded = rng.chance(0.7) ? bindings[rng.below(bindings.size())]
                                           : loops.b.add(loops.vars[0], loops.vars.back());
      guard = loops.b.lt(bounded, loops.b.int_imm(rng.between(1, 20)));
    }
    const auto level = rng.chance(0.5) ? IterMapLevel::kBijective : IterMapLevel::kSurjective;
    const IterMapResult found = loops.detect(bindings, guard, level);
    std::string text;
    for (Expr e : bindings) text += show(e) + "; ";
    INFO("seed " << seed << ": " << text << (guard.defined() ? "where " + show(guard) : ""));
    if (!found.ok()) {
      ++rejected;
      continue;
    }
    ++accepted;
    const std::string fault = broken(loops, bindings, guard, found);
    if (!fault.empty()) FAIL_CHECK(fault);
    if (level == IterMapLevel::kBijective) CHECK(found.map.bijective);
    if (!found.map.bijective) continue;
    std::vector<const Var*> outputs;
    std::vector<Expr> output_exprs;
    VarRanges ranges;
    for (std::size_t i = 0; i < bindings.size(); ++i) {
      outputs.push_back(loops.b.fresh_var("o"));
      output_exprs.push_back(outputs.back());
    }
    const Result<std::vector<Expr>> inverse =
        invert_iter_map(loops.b, found.map, loops.vars, output_exprs, ranges);
    REQUIRE(inverse.ok());
    ++inverted;
    for_each_point(loops, guard, [&](const Env& env) {
      Env image;
      for (std::size_t i = 0; i < bindings.size(); ++i) {
        image.vars[outputs[i]->id.value] = value_of(bindings[i], env).value();
      }
      for (std::size_t i = 0; i < loops.vars.size(); ++i) {
        if (value_of((*inverse)[i], image) != env.vars.at(loops.vars[i]->id.value)) {
          FAIL_CHECK("inverse of " << loops.vars[i]->name << " is " << show((*inverse)[i]));
        }
      }
    });
  }
  CHECK(accepted > 1000);
  CHECK(rejected > 300);
  CHECK(inverted > 500);
}

TEST_CASE("splits, fusions and guarded tails are recognised") {
  Loops s({8, 16, 4});
  CHECK(s.detect({s.fuse(0, 1), s.v(2)}, {}, IterMapLevel::kBijective).ok());
  CHECK(s.detect({s.b.floordiv(s.v(1), s.c(4)), s.b.floormod(s.v(1), s.c(4)), s.v(0), s.v(2)}, {},
                 IterMapLevel::kBijective)
            .ok());
  // 8 * 16 iterations for 100 elements.
  const Expr fused = s.fuse(0, 1);
  const IterMapResult tail =
      s.detect({fused, s.v(2)}, s.b.lt(fused, s.c(100)), IterMapLevel::kBijective);
  REQUIRE(tail.ok());
  CHECK(tail.map.extents[0].is_constant(100));
  CHECK(s.detect({s.v(0)}).ok());
  CHECK_FALSE(s.detect({s.v(0)}, {}, IterMapLevel::kBijective).ok());
}

TEST_CASE("a guard cuts the digits that it is about, however the bindings take them apart") {
  // A tile of rows of 16, fetched by 8 x 16 threads, 4 elements each; the guard ends it early.
  Loops s({8, 16, 4});
  const Expr row = s.b.add(s.b.mul(s.v(0), s.c(4)), s.b.floordiv(s.v(1), s.c(4)));
  const Expr column = s.b.add(s.b.mul(s.b.floormod(s.v(1), s.c(4)), s.c(4)), Expr(s.v(2)));
  const Expr fused = s.b.add(s.b.mul(s.fuse(0, 1), s.c(4)), Expr(s.v(2)));
  for (const int64_t rows : {1, 2, 4, 12, 20}) {
    const std::vector<Expr> bindings = {row, column};
    const Expr guard = s.b.lt(fused, s.c(rows * 16));
    const IterMapResult found = s.detect(bindings, guard, IterMapLevel::kBijective);
    CAPTURE(rows);
    REQUIRE(found.ok());
    CHECK(found.map.extents[0].is_constant(rows));
    CHECK(found.map.extents[1].is_constant(16));
    CHECK(broken(s, bindings, guard, found).empty());
  }
  // Half a row.
  CHECK_FALSE(s.detect({row, column}, s.b.lt(fused, s.c(40))).ok());
  // The bound is about the topmost loop alone: the others are whole.
  Loops t({4, 8, 8});
  const Expr three = t.b.add(t.b.mul(t.fuse(0, 1), t.c(8)), Expr(t.v(2)));
  for (const std::vector<Expr>& bindings :
       {std::vector<Expr>{t.v(1), t.v(2)},
        std::vector<Expr>{t.b.floordiv(t.v(1), t.c(2)), t.b.floormod(t.v(1), t.c(2)), t.v(2)}}) {
    const Expr guard = t.b.lt(three, t.c(64));
    const IterMapResult found = t.detect(bindings, guard, IterMapLevel::kBijective);
    REQUIRE(found.ok());
    CHECK(broken(t, bindings, guard, found).empty());
  }
}

TEST_CASE("threads that fetch a tile together, whatever its sides") {
  // Outer steps, threads and a vector fused, then taken apart by the sides: what a shared window of
  // a convolution is fetched by. The simplifier reduces quotients and remainders of the sum.
  int num_tails = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Rng rng(seed, 29);
    const int64_t threads = int64_t{1} << rng.between(1, 5);
    const int64_t vector = int64_t{1} << rng.between(0, 2);
    std::vector<int64_t> sides = {rng.between(1, 4), rng.between(1, 9), rng.between(1, 9)};
    sides[2] = (sides[2] + vector - 1) / vector * vector;
    const int64_t total = sides[0] * sides[1] * sides[2];
    const int64_t per_step = threads * vector;
    Loops s({(total + per_step - 1) / per_step, threads, vector});
    Expr at = s.b.add(s.b.mul(s.fuse(0, 1), s.c(vector)), Expr(s.v(2)));
    const std::vector<Expr> bindings = {
        s.b.floordiv(at, s.c(sides[1] * sides[2])),
        s.b.floormod(s.b.floordiv(at, s.c(sides[2])), s.c(sides[1])),
        s.b.floormod(at, s.c(sides[2])),
    };
    std::vector<Expr> reduced;
    for (Expr e : bindings) reduced.push_back(simplify(s.b, e, s.ranges));
    const Expr guard = total % per_step == 0 ? Expr() : s.b.lt(at, s.c(total));
    num_tails += guard.defined() ? 1 : 0;
    for (const std::vector<Expr>& form : {bindings, reduced}) {
      const IterMapResult found = s.detect(form, guard, IterMapLevel::kBijective);
      INFO("seed " << seed << ": " << sides[0] << "x" << sides[1] << "x" << sides[2] << " by "
                   << threads << "x" << vector << ": " << show(form[0]) << "; " << show(form[1])
                   << "; " << show(form[2]));
      REQUIRE(std::string(to_string(found.error)) == "no error");
      for (std::size_t i = 0; i < 3; ++i) CHECK(found.map.extents[i].is_constant(sides[i]));
      CHECK(broken(s, form, guard, found).empty());
      // One element less than whole rows is no box.
      if (guard.defined() && sides[2] > 1 && sides[0] * sides[1] > 1) {
        CHECK_FALSE(s.detect(form, s.b.lt(at, s.c(total - 1)), IterMapLevel::kBijective).ok());
      }
    }
  }
  CHECK(num_tails > 300);
}

TEST_CASE("maps that are not independent, affine or complete are refused with a reason") {
  Loops s({8, 16, 4});
  CHECK(s.detect({s.v(0), s.v(0)}).error == IterMapError::kNotIndependent);
  CHECK(s.detect({s.b.floordiv(s.v(1), s.c(4)), s.b.floormod(s.v(1), s.c(8))}).error ==
        IterMapError::kNotIndependent);
  CHECK(s.detect({s.b.mul(s.v(0), s.v(1))}).error == IterMapError::kNotAffine);
  CHECK(s.detect({s.b.min(s.v(0), s.v(1))}).error == IterMapError::kNotAffine);
  CHECK(s.detect({s.b.floordiv(s.v(1), s.b.add(s.v(0), s.c(1)))}).error ==
        IterMapError::kIteratorDivisor);
  CHECK(s.detect({s.b.floordiv(s.v(1), s.c(3)), s.b.floormod(s.v(1), s.c(3))}).error ==
        IterMapError::kDivisorMismatch);
  CHECK(s.detect({s.b.add(s.b.mul(s.v(0), s.c(5)), s.v(2))}).error == IterMapError::kNotCovering);
  CHECK(s.detect({s.v(0)}, s.b.lt(s.b.mul(s.v(0), s.v(1)), s.c(9))).error ==
        IterMapError::kPredicateUnsupported);
  const IterMapResult conflict = s.detect({s.v(0), s.v(1)}, s.b.lt(s.fuse(0, 1), s.c(100)));
  CHECK(conflict.error == IterMapError::kPredicateConflict);
  CHECK_FALSE(to_string(conflict.error).empty());
}

TEST_CASE("the inverse of a map that is not bijective is refused") {
  Loops s({8, 4});
  const IterMapResult found = s.detect({s.v(0)});
  REQUIRE(found.ok());
  const Expr outputs[] = {s.v(0)};
  const Result<std::vector<Expr>> inverse =
      invert_iter_map(s.b, found.map, s.vars, outputs, s.ranges);
  REQUIRE_FALSE(inverse.ok());
  CHECK(inverse.error().id() == Diag::kUnsupported);
}

}  // namespace prunerc::ir
