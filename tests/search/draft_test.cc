// The parts of the draft: genes, keys, the drafter, the selection.
#include "costmodel/symbol/sym.h"
#include "ir/tile_space.h"
#include "schedule/schedule.h"
#include "search/strategy/drafter.h"
#include "search/strategy/selection.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <set>

namespace prunerc {
namespace {

using namespace search;  // NOLINT: a test
using schedule::Decision;
using schedule::DecisionSpace;
using schedule::PrimitiveKind;

DecisionSpace tiles(PrimitiveKind kind, int64_t extent, int levels, int64_t cap) {
  DecisionSpace space;
  space.primitive = kind;
  space.extent = extent;
  space.num_tiles = levels;
  space.max_innermost = cap;
  return space;
}

DecisionSpace choice(std::vector<int64_t> values) {
  DecisionSpace space;
  space.weights.assign(values.size(), 1);
  space.values = std::move(values);
  return space;
}

TEST_CASE("a small space is listed whole, each decision once") {
  for (const DecisionSpace& space :
       {tiles(PrimitiveKind::kSampleCoveringTile, 37, 3, 5),
        tiles(PrimitiveKind::kSamplePerfectTile, 360, 3, 12), choice({1, 2, 4, 8})}) {
    GeneTable table(space, 1);
    CHECK(table.size() == space.count());
    CHECK(table.num_drawn() == table.size());
    std::set<Decision> all;
    for (int32_t g = 0; g < table.size(); ++g) {
      CHECK(space.contains(table.decision(g)));
      all.insert(table.decision(g));
      CHECK(table.find(table.decision(g)) == g);
    }
    CHECK(static_cast<int64_t>(all.size()) == space.count());
  }
}

TEST_CASE("a gene's columns are the tiles, the outermost of a covering one among them") {
  GeneTable covering(tiles(PrimitiveKind::kSampleCoveringTile, 37, 3, 5), 1);
  REQUIRE(covering.num_levels() == 3);
  for (int32_t g = 0; g < covering.size(); ++g) {
    const Decision& d = covering.decision(g);
    CHECK(covering.column(1)[g] == static_cast<double>(d[0]));
    CHECK(covering.column(2)[g] == static_cast<double>(d[1]));
    CHECK(covering.column(0)[g] == std::ceil(37.0 / static_cast<double>(d[0] * d[1])));
  }
  GeneTable categorical(choice({1, 3, 9}), 1);
  REQUIRE(categorical.num_levels() == 1);
  CHECK(categorical.column(0)[2] == 9);
}

TEST_CASE("a large space starts with a sample and grows by neighbours and by what is found") {
  const DecisionSpace space = tiles(PrimitiveKind::kSampleCoveringTile, 1'000'003, 3, 0);
  REQUIRE(space.count() > GeneTable::kMaxListed);
  GeneTable table(space, 7);
  CHECK(table.num_drawn() > GeneTable::kMaxListed / 2);
  CHECK(table.num_drawn() <= GeneTable::kMaxListed);
  const int32_t before = table.size();
  Rng rng(3);
  int32_t gene = table.draw(rng);
  for (int i = 0; i < 100; ++i) {
    gene = table.neighbour(gene, rng);
    REQUIRE(gene < table.size());
    CHECK(space.contains(table.decision(gene)));
  }
  CHECK(table.size() > before);
  CHECK(table.num_drawn() == before);  // draws stay uniform
  CHECK(table.find({17, 19}) >= 0);
  CHECK(table.find({1'000'003, 3}) == -1);
  GeneTable same(space, 7);
  CHECK(same.decision(11) == GeneTable(space, 7).decision(11));
}

TEST_CASE("what a decision cannot change has one gene") {
  GeneTable table(Decision{4});
  Rng rng(1);
  CHECK(table.draw(rng) == 0);
  CHECK(table.neighbour(0, rng) == 0);
  CHECK(table.find({4}) == 0);
  CHECK(table.find({5}) == -1);
}

TEST_CASE("a key is inserted once, whatever the growth") {
  KeySet keys;
  Rng rng(9);
  std::set<uint64_t> all;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t key = rng.below(30'000) + 1;
    CHECK(keys.insert(key) == all.insert(key).second);
  }
  CHECK(keys.size() == all.size());
}

// A sketch with two covering axes and a choice; it is best near (8, 4), (6, 4) and 4, and may not
// run where the innermost tiles have a product above 40.
struct Toy {
  Toy() {
    sketch.tables.emplace_back(tiles(PrimitiveKind::kSampleCoveringTile, 96, 3, 16), 1);
    sketch.tables.emplace_back(tiles(PrimitiveKind::kSampleCoveringTile, 77, 3, 16), 1);
    sketch.tables.emplace_back(choice({1, 2, 4, 8}), 1);
    costmodel::SymGraph graph;
    std::vector<costmodel::Sym> p;
    for (int32_t i = 0; i < 7; ++i) p.push_back(graph.param(ir::ParamId(i), 1, 96));
    sketch.params = {{ir::ParamId(0), ir::ParamId(1), ir::ParamId(2)},
                     {ir::ParamId(3), ir::ParamId(4), ir::ParamId(5)},
                     {ir::ParamId(6)}};
    sketch.num_params = 7;
    const auto off = [](costmodel::Sym x, double best) { return abs(x - best); };
    const costmodel::Sym ns =
        off(p[1], 8) + off(p[2], 4) + off(p[4], 6) + off(p[5], 4) + off(p[6], 4) + 1;
    const costmodel::Sym outputs[] = {ns, less_equal(p[2] * p[5], 40)};
    sketch.symbols.score = costmodel::SymbolCode(outputs);
  }
  double ns(const Drafted& drafted) const {
    const Decision& a = sketch.tables[0].decision(drafted.genes[0]);
    const Decision& b = sketch.tables[1].decision(drafted.genes[1]);
    const double c = sketch.tables[2].column(0)[drafted.genes[2]];
    const auto off = [](auto x, double best) { return std::abs(static_cast<double>(x) - best); };
    return off(a[0], 8) + off(a[1], 4) + off(b[0], 6) + off(b[1], 4) + off(c, 4) + 1;
  }
  bool fits(const Drafted& drafted) const {
    return sketch.tables[0].decision(drafted.genes[0])[1] *
               sketch.tables[1].decision(drafted.genes[1])[1] <=
           40;
  }
  DraftSketch sketch;
};

TEST_CASE("the drafter keeps the best of what it scores, each once") {
  Toy toy;
  Drafter drafter(toy.sketch, 64, {}, 5);
  drafter.draw(20'000);
  const std::vector<Drafted> best = drafter.best();
  REQUIRE(best.size() == 64);
  std::set<std::vector<int32_t>> distinct;
  for (std::size_t i = 0; i < best.size(); ++i) {
    CHECK(best[i].ns == toy.ns(best[i]));
    CHECK(toy.fits(best[i]));
    if (i > 0) CHECK(best[i - 1].ns <= best[i].ns);
    distinct.insert(best[i].genes);
  }
  CHECK(distinct.size() == best.size());
  CHECK(drafter.counts().proposed == 20'000);
  CHECK(drafter.counts().scored < drafter.counts().proposed);
  CHECK(drafter.counts().feasible < drafter.counts().scored);
  for (const Drafted& drafted : drafter.sample()) CHECK(toy.fits(drafted));

  // The same again by brute force over every candidate.
  Drafter all(toy.sketch, 64, {}, 6);
  for (int32_t a = 0; a < toy.sketch.tables[0].size(); ++a) {
    for (int32_t b = 0; b < toy.sketch.tables[1].size(); ++b) {
      for (int32_t c = 0; c < 4; ++c) {
        const int32_t genes[] = {a, b, c};
        all.propose(genes);
      }
    }
  }
  all.finish();
  const std::vector<Drafted> truth = all.best();
  CHECK(truth[0].ns <= best[0].ns);
  // Breeding finds what drawing missed.
  drafter.breed(20'000);
  CHECK(drafter.best()[0].ns == truth[0].ns);
  CHECK(drafter.best()[63].ns <= best[63].ns);
}

TEST_CASE("candidates that wait for a full block are scored as if each came alone") {
  Toy toy;
  std::vector<std::vector<int32_t>> all;
  for (int32_t a = 0; a < toy.sketch.tables[0].size(); ++a) {
    for (int32_t b = 0; b < toy.sketch.tables[1].size(); ++b) all.push_back({a, b, (a + b) % 4});
  }
  Rng rng(3);
  for (std::size_t i = all.size(); i-- > 1;) std::swap(all[i], all[rng.below(i + 1)]);
  // Every third is excluded just before, every seventh comes twice.
  const auto go = [&](Drafter& drafter, std::size_t finish_every) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % 3 == 0) drafter.exclude(all[i]);
      drafter.propose(all[i]);
      if (i % 7 == 0) drafter.propose(all[i]);
      if (i % finish_every == 0) drafter.finish();
    }
    drafter.finish();
  };
  Drafter waiting(toy.sketch, 64, {}, 5), alone(toy.sketch, 64, {}, 5);
  go(waiting, 1000);
  go(alone, 1);
  std::vector<double> truth;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Drafted drafted{0, 0, all[i]};
    if (i % 3 != 0 && toy.fits(drafted)) truth.push_back(toy.ns(drafted));
  }
  REQUIRE(truth.size() > 1000);
  std::sort(truth.begin(), truth.end());
  const auto equal = [](std::span<const Drafted> a, std::span<const Drafted> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.ns == y.ns && x.key == y.key && x.genes == y.genes;
    });
  };
  CHECK(equal(waiting.best(), alone.best()));
  CHECK(equal(waiting.sample(), alone.sample()));
  for (const Drafter* drafter : {&waiting, &alone}) {
    CHECK(drafter->counts().feasible == static_cast<int64_t>(truth.size()));
    CHECK(drafter->counts().scored == static_cast<int64_t>(all.size() - (all.size() + 2) / 3));
    const std::vector<Drafted> best = drafter->best();
    REQUIRE(best.size() == 64);
    for (std::size_t i = 0; i < best.size(); ++i) CHECK(best[i].ns == truth[i]);
  }
}

TEST_CASE("drawing and breeding score what was given before") {
  Toy toy;
  Drafter drafter(toy.sketch, 64, {}, 5);
  const int32_t first[] = {0, 0, 0}, second[] = {1, 1, 1};
  drafter.propose(first);
  drafter.draw(0);
  CHECK(drafter.counts().scored == 1);
  drafter.propose(second);
  drafter.breed(0);
  CHECK(drafter.counts().scored == 2);
}

TEST_CASE("a small space is exhausted and the drafter ends") {
  DraftSketch sketch;
  sketch.tables.emplace_back(choice({1, 2, 4, 8}), 1);
  costmodel::SymGraph graph;
  const costmodel::Sym outputs[] = {graph.param(ir::ParamId(0), 1, 8), 1};
  sketch.params = {{ir::ParamId(0)}};
  sketch.num_params = 1;
  sketch.symbols.score = costmodel::SymbolCode(outputs);
  Drafter drafter(sketch, 512, {}, 1);
  drafter.draw(1'000'000'000'000);
  drafter.breed(1'000'000'000'000);
  CHECK(drafter.counts().scored == 4);
  CHECK(drafter.best().size() == 4);
  CHECK(drafter.best()[0].ns == 1);
}

TEST_CASE("excluded candidates never come, and choices depend on the seed alone") {
  Toy toy;
  Drafter first(toy.sketch, 16, {}, 5);
  first.draw(20'000);
  Toy other;
  Drafter second(other.sketch, 16, {}, 5);
  const std::vector<Drafted> best = first.best();
  for (int i = 0; i < 8; ++i) second.exclude(best[static_cast<std::size_t>(i)].genes);
  second.draw(20'000);
  for (const Drafted& drafted : second.best()) {
    for (int i = 0; i < 8; ++i) CHECK(drafted.genes != best[static_cast<std::size_t>(i)].genes);
  }
  Toy again;
  Drafter third(again.sketch, 16, {}, 5);
  third.draw(20'000);
  REQUIRE(third.best().size() == best.size());
  for (std::size_t i = 0; i < best.size(); ++i) CHECK(third.best()[i].genes == best[i].genes);
}

TEST_CASE("a draft has the quota of every sketch, no cluster fills it, and part of it is drawn") {
  DraftSpace space;
  std::vector<SketchOffer> offers(2);
  for (int s = 0; s < 2; ++s) {
    Toy toy;
    Drafter drafter(toy.sketch, 200, {}, 5);
    drafter.draw(50'000);
    offers[static_cast<std::size_t>(s)].best = drafter.best();
    offers[static_cast<std::size_t>(s)].sample = {drafter.sample().begin(), drafter.sample().end()};
    space.sketches.push_back(std::move(toy.sketch));
  }
  for (Drafted& drafted : offers[1].best) drafted.ns *= 1000;  // a sketch that looks hopeless
  SelectionOptions options;
  options.size = 100;
  const std::vector<DraftPick> picks = select_draft(offers, space, options);
  REQUIRE(picks.size() == 100);
  std::map<int, int> of_sketch;
  std::set<std::pair<int, uint64_t>> distinct;
  for (const DraftPick& pick : picks) {
    ++of_sketch[pick.sketch];
    distinct.insert({pick.sketch, pick.drafted.key});
  }
  CHECK(distinct.size() == picks.size());
  CHECK(of_sketch[1] >= 20);  // 40 % in equal parts, and half of the drawn ones
  CHECK(of_sketch[0] >= 60);
  // The best of all is there; the last tenth is the samples'.
  CHECK(picks[0].drafted.key == offers[0].best[0].key);
  CHECK(picks.back().drafted.key != offers[0].best[99].key);
  CHECK(select_draft({}, space, options).empty());
}

}  // namespace
}  // namespace prunerc
