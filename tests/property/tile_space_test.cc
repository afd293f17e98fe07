// Tile vectors: counts agree with enumeration, numbering is a bijection, neighbours stay inside.
#include "ir/tile_space.h"

#include "ir/builder.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

namespace prunerc::ir {
namespace {

using Tiles = std::vector<int64_t>;

// Every vector, by trying all of them; the outermost tile is `last`-checked by the space's
// definition.
void enumerate(int64_t limit, int levels, Tiles* prefix, std::vector<Tiles>* out) {
  if (levels == 0) {
    out->push_back(*prefix);
    return;
  }
  for (int64_t t = 1; t <= limit; ++t) {
    prefix->push_back(t);
    enumerate(limit / t, levels - 1, prefix, out);
    prefix->pop_back();
  }
}

std::set<Tiles> by_definition(int64_t extent, int levels, TileKind kind, int64_t cap) {
  std::vector<Tiles> inner;
  Tiles prefix;
  enumerate(extent + extent / 4, levels - 1, &prefix, &inner);
  std::set<Tiles> out;
  for (const Tiles& rest : inner) {
    int64_t product = 1;
    for (int64_t t : rest) product *= t;
    const int64_t outermost = (extent + product - 1) / product;
    const int64_t padded = outermost * product;
    const bool fits = kind == TileKind::kPerfect ? padded == extent : 4 * padded <= 5 * extent;
    Tiles tiles = {outermost};
    tiles.insert(tiles.end(), rest.begin(), rest.end());
    if (fits && (cap == 0 || tiles.back() <= cap)) out.insert(tiles);
  }
  return out;
}

TEST_CASE("tile vectors are numbered one to one") {
  for (TileKind kind : {TileKind::kPerfect, TileKind::kCovering}) {
    for (int64_t extent : {1, 2, 3, 4, 7, 8, 12, 17, 24, 30, 36, 48}) {
      for (int levels : {1, 2, 3, 4}) {
        for (int64_t cap : {0, 1, 2, 5, 16, 100}) {
          const TileSpace space(extent, levels, kind, cap);
          std::set<Tiles> seen;
          for (uint64_t rank = 0; rank < space.count(); ++rank) {
            const Tiles tiles = space.unrank(rank);
            INFO("extent " << extent << " levels " << levels << " cap " << cap);
            REQUIRE(space.contains(tiles));
            seen.insert(tiles);
          }
          REQUIRE(seen.size() == space.count());
          REQUIRE(seen == by_definition(extent, levels, kind, cap));
        }
      }
    }
  }
}

TEST_CASE("counts of large extents agree with the closed form and are found quickly") {
  // 2^40 into 5: distributions of 40 twos over 5 levels, binomial(44, 4).
  CHECK(count_perfect_tiles(int64_t{1} << 40, 5) == 135751);
  CHECK(count_perfect_tiles(963761198400, 4, 64) > 0);
  // A prime near 2^40 has one vector per level that may hold it.
  CHECK(count_perfect_tiles(1099511627689, 4) == 4);
  CHECK(count_perfect_tiles(1099511627689, 4, 64) == 3);
  CHECK(TileSpace(1 << 20, 4, TileKind::kCovering, 64).count() >
        count_perfect_tiles(1 << 20, 4, 64));
}

TEST_CASE("a large space unranks to members, first and last included") {
  for (TileKind kind : {TileKind::kPerfect, TileKind::kCovering}) {
    const TileSpace space(997920, 5, kind, 128);
    REQUIRE(space.count() > 1000);
    Rng rng(3);
    REQUIRE(space.contains(space.unrank(0)));
    REQUIRE(space.contains(space.unrank(space.count() - 1)));
    for (int i = 0; i < 500; ++i) REQUIRE(space.contains(space.sample(rng)));
  }
}

TEST_CASE("sampling is uniform") {
  const TileSpace space(12, 3, TileKind::kPerfect, 0);
  REQUIRE(space.count() == 18);
  Rng rng(5);
  std::map<Tiles, int> hits;
  for (int i = 0; i < 18000; ++i) ++hits[space.sample(rng)];
  REQUIRE(hits.size() == 18);
  for (const auto& [tiles, count] : hits) CHECK(std::abs(count - 1000) < 160);  // five sigma
}

TEST_CASE("neighbours are members, differ, and can be undone") {
  for (TileKind kind : {TileKind::kPerfect, TileKind::kCovering}) {
    const TileSpace space(96, 3, kind, 32);
    for (uint64_t rank = 0; rank < space.count(); ++rank) {
      const Tiles tiles = space.unrank(rank);
      for (const Tiles& next : space.neighbours(tiles)) {
        REQUIRE(next != tiles);
        REQUIRE(space.contains(next));
        if (kind == TileKind::kCovering) continue;  // halving rounds
        const std::vector<Tiles> back = space.neighbours(next);
        REQUIRE(std::find(back.begin(), back.end(), tiles) != back.end());
      }
    }
  }
}

TEST_CASE("a cap that nothing meets makes an empty space") {
  CHECK(TileSpace(7, 1, TileKind::kPerfect, 3).count() == 0);
  CHECK(TileSpace(0, 2, TileKind::kPerfect, 0).count() == 0);
  CHECK(TileSpace(8, 0, TileKind::kPerfect, 0).count() == 0);
  CHECK(TileSpace(int64_t{1} << 31, 2, TileKind::kCovering, 0).count() == 0);
  CHECK_FALSE(TileSpace(8, 2, TileKind::kPerfect, 0).contains(Tiles{3, 3}));
  CHECK_FALSE(TileSpace(8, 2, TileKind::kPerfect, 0).contains(Tiles{8}));
}

TEST_CASE("a domain is the product of its tile vectors and choices") {
  IrBuilder b("sketch");
  const std::vector<ParamId> tile_params = {b.add_param("t0"), b.add_param("t1")};
  const ParamId unroll = b.add_param("unroll");
  b.add_tiles({tile_params, 12, TileKind::kPerfect, 0});
  const std::vector<int64_t> values = {0, 16, 64};
  b.add_choice({unroll, values});
  b.add_constraint(b.le(b.param(tile_params[1]), b.int_imm(4)));
  const Program program = b.finish({});
  const DomainSpace space(program.domain());
  CHECK(space.count() == 18);
  std::set<std::vector<int64_t>> seen;
  int allowed = 0;
  for (uint64_t rank = 0; rank < space.count(); ++rank) {
    const std::vector<int64_t> params = space.unrank(rank);
    CHECK(space.contains(params));
    CHECK(params[0] * params[1] == 12);
    CHECK(satisfies_constraints(program.domain(), params) == (params[1] <= 4));
    allowed += satisfies_constraints(program.domain(), params) ? 1 : 0;
    seen.insert(params);
  }
  CHECK(seen.size() == 18);
  CHECK(allowed == 12);
  Rng rng(1);
  std::vector<int64_t> params = space.sample(rng);
  for (int i = 0; i < 100; ++i) {
    const std::vector<int64_t> next = space.mutate(params, rng);
    CHECK(next != params);
    CHECK(space.contains(next));
    CHECK(space.contains(space.crossover(params, next, rng)));
    params = next;
  }
  CHECK_FALSE(space.contains(std::vector<int64_t>{3, 3, 0}));
  CHECK_FALSE(space.contains(std::vector<int64_t>{3, 4, 5}));
}

}  // namespace
}  // namespace prunerc::ir
