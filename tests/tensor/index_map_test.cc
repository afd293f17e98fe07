#include "ir/tensor/index_map.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc {
namespace {

using ir::IndexMap;
using ir::Layout;

IndexMap map_of(std::string_view text) {
  const Result<IndexMap> map = IndexMap::parse(text);
  REQUIRE_OK(map);
  return *map;
}

TEST_CASE("an index map's text is read back") {
  for (const std::string_view text :
       {"(i, j) -> (i // 16, j, i % 16)", "() -> ()", "(i) -> (i*2 + 1)",
        "(a, b) -> ((a + b)*4 - b)", "(a, b) -> (a - (b - 1), a - b + 1)",
        "(i) -> (i // 2 % 3*4, 7)", "(i) -> ((i*3) % 2)", "(i) -> (i % 8 // 2)"}) {
    const IndexMap map = map_of(text);
    INFO(map.text());
    CHECK(map_of(map.text()).text() == map.text());
    CHECK(map_of(map.text())
              .at(std::vector<int64_t>(static_cast<std::size_t>(map.num_inputs()), 11)) ==
          map.at(std::vector<int64_t>(static_cast<std::size_t>(map.num_inputs()), 11)));
  }
  CHECK(map_of("(i, j) -> (i // 16, j, i % 16)").text() == "(i, j) -> (i // 16, j, i % 16)");
  CHECK(map_of("(i,j)->((i-(j)))").text() == "(i, j) -> (i - j)");
  CHECK(IndexMap::identity(2).text() == "(i0, i1) -> (i0, i1)");
}

TEST_CASE("what is no index map is refused with the reason") {
  const std::string deep = "(i) -> (" + std::string(2000, '(') + "i" + std::string(2000, ')') + ")";
  const std::string_view texts[] = {"",
                                    "i -> i",
                                    "(i, i) -> (i)",
                                    "(i) -> (j)",
                                    "(i, j) -> (i*j)",
                                    "(i) -> (i // 0)",
                                    "(i, j) -> (i // j)",
                                    "(i) -> (i % (0 - 2))",
                                    "(i) -> (i) + 1",
                                    "(i) (i)",
                                    "(i -> i)",
                                    "(i) -> (99999999999999999999)",
                                    "(i) -> (i +)",
                                    "(1) -> (1)",
                                    std::string_view(deep)};
  for (const std::string_view text : texts) {
    INFO(text);
    CHECK_DIAG(IndexMap::parse(text), IndexMapText);
  }
}

TEST_CASE("a map's values at points agree with its expressions") {
  const IndexMap map = map_of("(i, j) -> ((i*6 + j) // 4, (i*6 + j) % 4, j - i)");
  CHECK(map.at(std::vector<int64_t>{2, 5}) == std::vector<int64_t>{4, 1, 3});
  ir::IrBuilder b("p");
  const std::vector<ir::Expr> inputs = {b.int_imm(2), b.int_imm(5)};
  const std::vector<ir::Expr> out = map.apply(b, inputs);
  CHECK(out[0].as<ir::IntImm>()->value == 4);
  CHECK(out[2].as<ir::IntImm>()->value == 3);
}

TEST_CASE("layouts know their image, their padding and their inverse") {
  struct Case {
    std::string_view map;
    std::vector<int64_t> domain, shape;
    bool pads, has_inverse;
  };
  const Case cases[] = {
      {"(i, j) -> (j, i)", {3, 5}, {5, 3}, false, true},
      {"(i, j) -> (i // 4, j, i % 4)", {8, 5}, {2, 5, 4}, false, true},
      {"(i, j) -> (i // 4, j, i % 4)", {7, 5}, {2, 5, 4}, true, true},
      {"(i, j) -> (i*5 + j)", {3, 5}, {15}, false, true},
      {"(i, j) -> ((i*6 + j) // 4, (i*6 + j) % 4)", {2, 6}, {3, 4}, false, true},
      {"(i) -> (i*2)", {5}, {9}, true, false},
      {"(i, j) -> (i*8 + j)", {3, 5}, {21}, true, false},
      {"(i) -> (9 - i)", {10}, {10}, false, false},
      {"() -> ()", {}, {}, false, false},
      {"(i) -> (i // 32, i // 4 % 8, i % 4)", {40}, {2, 8, 4}, true, true},
  };
  for (const Case& c : cases) {
    INFO(c.map);
    const IndexMap map = map_of(c.map);
    const Result<Layout> layout = ir::make_layout(map, c.domain);
    REQUIRE_OK(layout);
    CHECK(layout->shape == c.shape);
    CHECK(layout->pads == c.pads);
    CHECK(!layout->whole.empty() == c.has_inverse);
    if (!c.has_inverse) continue;
    // The inverse at every image of a point is that point.
    std::vector<int64_t> point(c.domain.size(), 0);
    for (bool more = true; more;) {
      ir::IrBuilder b("p");
      std::vector<ir::Expr> outputs;
      for (int64_t v : map.at(point)) outputs.push_back(b.int_imm(v));
      const std::vector<ir::Expr> back = ir::invert_layout(b, map, *layout, outputs, {});
      for (std::size_t i = 0; i < point.size(); ++i) {
        CHECK(back[i].as<ir::IntImm>()->value == point[i]);
      }
      more = false;
      for (std::size_t d = point.size(); d-- > 0 && !more;) {
        more = ++point[d] < c.domain[d];
        if (!more) point[d] = 0;
      }
    }
  }
}

TEST_CASE("maps under which elements meet are refused") {
  CHECK_DIAG(ir::make_layout(map_of("(i, j) -> (i + j)"), std::vector<int64_t>{3, 5}),
             IndexMapNotInjective);
  CHECK_DIAG(ir::make_layout(map_of("(i) -> (i // 2)"), std::vector<int64_t>{6}),
             IndexMapNotInjective);
  CHECK_DIAG(ir::make_layout(map_of("(i) -> (i - 1)"), std::vector<int64_t>{6}),
             IndexMapNotInjective);
  CHECK_DIAG(ir::make_layout(map_of("(i) -> (i*3)"), std::vector<int64_t>{1 << 20}),
             IndexMapNotInjective);
  CHECK_DIAG(ir::make_layout(map_of("(i) -> (i)"), std::vector<int64_t>{2, 3}), IndexMapArity);
}

}  // namespace
}  // namespace prunerc
