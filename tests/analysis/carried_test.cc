// Dependences that loops carry, against a replay of every access.
#include "ir/analysis/carried.h"

#include "ir/map.h"
#include "ir/support/rng.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

// What the loop carries: "RAW kYes" and so on, without repetition.
std::set<std::string> carried(std::string_view text, LoopId loop) {
  const Program program = parse_or_die(text);
  const LoopIndex index(program);
  std::set<std::string> out;
  for (const CarriedDependence& d : carried_dependences(program, index, loop)) {
    static const char* const kNames[] = {"RAW", "WAW", "WAR"};
    out.insert(std::string(kNames[static_cast<int>(d.kind)]) + " " +
               std::string(to_string(d.proof)));
  }
  return out;
}

std::string store(const std::string& shape, const std::string& loops, const std::string& iters,
                  const std::string& body) {
  std::string close;
  for (const char c : loops) close += c == '{' ? "}" : "";
  return "program p(X: f32[64, 64]) -> (Y: f32[" + shape + "]) { " + loops + " block \"b\" @B0 [" +
         iters + "] { " + body + " } " + close + " }";
}

using Set = std::set<std::string>;
const std::string kYes = std::string(to_string(Proof::kYes));
const std::string kUnknown = std::string(to_string(Proof::kUnknown));

TEST_CASE("carried dependences of affine subscripts are exact") {
  const std::string loops = "for i in 8 @L0 { for j in 8 @L1 {";
  const std::string iters = "v: S(8) = i, w: S(8) = j";
  const auto at = [&](const std::string& index, const std::string& value, int loop) {
    return carried(store("64, 64", loops, iters, "Y[" + index + "] = " + value), LoopId(loop));
  };
  CHECK(at("v, w", "X[v, w]", 0) == Set{});
  CHECK(at("v, w", "X[v, w]", 1) == Set{});
  CHECK(at("v, 0", "X[v, w]", 0) == Set{});
  CHECK(at("v, 0", "X[v, w]", 1) == Set{"WAW " + kYes});
  CHECK(at("v*8 + w, 0", "X[v, w]", 0) == Set{});
  CHECK(at("v*7 + w, 0", "X[v, w]", 0) == Set{"WAW " + kYes});
  CHECK(at("v*2 + w*5, 0", "X[v, w]", 0) == Set{"WAW " + kYes});
  CHECK(at("v*9 + w*2, 0", "X[v, w]", 1) == Set{});
  CHECK(at("v // 2, w", "X[v, w]", 0) == Set{"WAW " + kYes});
  CHECK(at("v // 2, v % 2", "X[v, w]", 0) == Set{});
  CHECK(at("(v + w) % 8, w", "X[v, w]", 0) == Set{});
  CHECK(at("(v + w) % 8, v", "X[v, w]", 1) == Set{});
  CHECK(at("(v + w) % 7, w", "X[v, w]", 0) == Set{"WAW " + kYes});
  CHECK(at("v + 1, w", "Y[v, w]", 0) == Set{"RAW " + kYes});
  CHECK(at("v + 1, w", "Y[v, w]", 1) == Set{});
  CHECK(at("v, w", "Y[v + 1, w]", 0) == Set{"WAR " + kYes});
  CHECK(at("v, w", "Y[v + 8, w]", 0) == Set{});
  CHECK(at("v*2, w", "Y[v*2 + 1, w]", 0) == Set{});
  CHECK(at("v*v, w", "X[v, w]", 0) == Set{"WAW " + kUnknown});
}

TEST_CASE("guards count") {
  const std::string loops = "for i in 8 @L0 { for j in 2 @L1 {";
  const auto at = [&](const std::string& guard) {
    return carried("program p(X: f32[8]) -> (Y: f32[8]) { " + loops +
                       " block \"b\" @B0 [v: S(8) = i] where " + guard +
                       " { Y[v // 4] = X[v] } } } }",
                   LoopId(0));
  };
  CHECK(at("i < 4") == Set{"WAW " + kYes});
  CHECK(at("i % 4 == 0") == Set{});
  CHECK(at("3 <= i && i < 5") == Set{});
  CHECK(at("i != 3") == Set{"WAW " + kUnknown});
}

TEST_CASE("several blocks and inner loops") {
  const std::string_view text = R"(
    program p(X: f32[8, 4]) -> (Y: f32[8], Z: f32[8]) {
      buffer T: f32[9, 4] global
      for i in 8 @L0 {
        for k in 4 @L1 { block "T" @B0 [v: S(8) = i, w: S(4) = k] { T[v, w] = X[v, w] } }
        for k in 4 @L2 {
          block "Y" @B1 [v: S(8) = i, w: R(4) = k] { init { Y[v] = 0f32 } Y[v] = Y[v] + T[v, w] }
        }
        block "Z" @B2 [v: S(8) = i] { Z[v] = T[select(v < 4, v, v - 1), 0] }
      }
    })";
  // Z's first subscript is no affine form, so whether it meets an earlier T is not known.
  CHECK(carried(text, LoopId(0)) == Set{"RAW " + kUnknown, "WAR " + kUnknown});
  CHECK(carried(text, LoopId(1)) == Set{});
  CHECK(carried(text, LoopId(2)) == Set{"RAW " + kYes, "WAW " + kYes, "WAR " + kYes});
  CHECK(carried(text, LoopId(9)) == Set{});
}

TEST_CASE("digits of a fused index, simplified one by one, are seen to belong together") {
  // v = 128i + j over 25088 places of [32, 28, 28]; "wide" adds one column that wraps around.
  const auto share = [](int64_t width) {
    IrBuilder b("fused");
    const Var* i = b.fresh_var("i");
    const Var* j = b.fresh_var("j");
    const auto scaled = [&](const Var* var, int64_t by) { return b.mul(var, b.int_imm(by)); };
    const Expr v = b.add(scaled(i, 128), j);
    const Expr q = b.floordiv(b.add(scaled(i, 16), j), b.int_imm(28));
    Touch x;
    x.chain = {{i, b.int_imm(196)}};
    x.inner = {{j, b.int_imm(width)}};
    x.region.box = {{b.floordiv(v, b.int_imm(784)), b.int_imm(1)},
                    {b.floormod(b.add(scaled(i, 4), q), b.int_imm(28)), b.int_imm(1)},
                    {b.floormod(b.add(scaled(i, 16), j), b.int_imm(28)), b.int_imm(1)}};
    const VarRanges none;
    return share_element(x, x, PointOrder::kDifferent, none, {.max_points = 100});
  };
  CHECK(share(128) == Proof::kNo);
  CHECK(share(129) == Proof::kYes);
}

TEST_CASE("random subscripts: the answer is that of trying all iterations") {
  int known = 0;
  const int num = testing::num_cases(1500);
  for (int n = 0; n < num; ++n) {
    Rng rng(testing::first_seed() + static_cast<uint64_t>(n), 3);
    IrBuilder b("random");
    const Var* i = b.fresh_var("i");
    const Var* k = b.fresh_var("k");
    const int64_t extent_i = rng.between(2, 9);
    const int64_t extent_k = rng.between(1, 6);
    const auto subscript = [&] {
      Expr e =
          b.add(b.mul(i, b.int_imm(rng.between(-3, 6))), b.mul(k, b.int_imm(rng.between(0, 4))));
      e = b.add(e, b.int_imm(rng.between(0, 5)));
      // Quotients of sums with quotients: these are merged.
      while (rng.chance(0.4)) {
        e = b.floordiv(e, b.int_imm(rng.between(2, 4)));
        if (rng.chance(0.5)) e = b.add(e, b.mul(i, b.int_imm(rng.between(-2, 3))));
      }
      if (rng.chance(0.3)) e = b.floormod(e, b.int_imm(rng.between(2, 12)));
      return e;
    };
    const bool two = rng.chance(0.5);
    Touch x;
    x.chain = {{i, b.int_imm(extent_i)}};
    x.inner = {{k, b.int_imm(extent_k)}};
    Touch y = x;
    for (Touch* touch : {&x, &y}) {
      touch->region.box = {{subscript(), b.int_imm(1)}};
      if (two) touch->region.box.push_back({subscript(), b.int_imm(1)});
      if (rng.chance(0.3)) touch->conditions = {b.lt(i, b.int_imm(rng.between(1, 9)))};
    }
    bool meets = false;
    const auto at = [&](const Touch& touch, int64_t vi, int64_t vk) {
      const VarMap map = {{i->id, b.int_imm(vi)}, {k->id, b.int_imm(vk)}};
      std::vector<int64_t> out;
      for (Expr condition : touch.conditions) {
        if (substitute(b, condition, map).as<IntImm>()->value == 0) return out;
      }
      for (const Range& range : touch.region.box) {
        out.push_back(substitute(b, range.min, map).as<IntImm>()->value);
      }
      return out;
    };
    for (int64_t p = 0; p < extent_i; ++p) {
      for (int64_t q = p + 1; q < extent_i; ++q) {
        for (int64_t s = 0; s < extent_k; ++s) {
          for (int64_t t = 0; t < extent_k; ++t) {
            const std::vector<int64_t> place = at(x, p, s);
            meets |= !place.empty() && place == at(y, q, t);
          }
        }
      }
    }
    const Proof truth = meets ? Proof::kYes : Proof::kNo;
    const VarRanges none;
    const Proof quick = share_element(x, y, PointOrder::kBefore, none, {.max_points = 0});
    INFO("case " << n);
    CHECK((quick == Proof::kUnknown || quick == truth));
    CHECK(share_element(x, y, PointOrder::kBefore, none) == truth);
    known += quick == truth ? 1 : 0;
  }
  // Elimination alone, without trying points.
  CHECK(known * 100 > num * 70);
}

}  // namespace
}  // namespace prunerc::ir
