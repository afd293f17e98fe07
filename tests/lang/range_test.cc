// Ranges of index expressions: never narrower than the values that occur, and narrow enough for the
// usual subscripts.

#include "ir/lang/range.h"

#include "ir/support/rng.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

using lang::AstOp;
using lang::FactSet;
using lang::IndexVar;
using lang::Node;
using lang::NodeKind;
using lang::Type;
using lang::ValueRange;

/// Makes i64 and bool nodes over a few indices.
class Maker {
 public:
  const IndexVar* add_index(int64_t begin, int64_t end) {
    indices_.push_back({});
    IndexVar& index = indices_.back();
    index.number = static_cast<int>(indices_.size()) - 1;
    index.begin = begin;
    index.end = end;
    return &index;
  }

  const Node* constant(int64_t value) {
    Node node;
    node.kind = NodeKind::kInt;
    node.type = Type::of(ir::DType::kI64);
    node.int_value = value;
    return keep(node);
  }

  const Node* index(const IndexVar* index) {
    Node node;
    node.kind = NodeKind::kIndex;
    node.type = Type::of(ir::DType::kI64);
    node.index = index;
    return keep(node);
  }

  const Node* binary(AstOp op, const Node* lhs, const Node* rhs) {
    Node node;
    node.kind = NodeKind::kBinary;
    node.op = op;
    node.type = Type::of(op >= AstOp::kEq ? ir::DType::kBool : ir::DType::kI64);
    node.args = {lhs, rhs};
    return keep(node);
  }

  const Node* extremum(NodeKind kind, const Node* lhs, const Node* rhs) {
    Node node;
    node.kind = kind;
    node.type = Type::of(ir::DType::kI64);
    node.args = {lhs, rhs};
    return keep(node);
  }

  const Node* random(Rng& rng, int depth) {
    const uint64_t choice = depth == 0 ? rng.below(2) : rng.below(10);
    if (choice == 0) return constant(rng.between(-6, 6));
    if (choice == 1) return index(&indices_[rng.below(indices_.size())]);
    const Node* lhs = random(rng, depth - 1);
    switch (choice) {
      case 2:
      case 3: return binary(AstOp::kAdd, lhs, random(rng, depth - 1));
      case 4:
      case 5: return binary(AstOp::kSub, lhs, random(rng, depth - 1));
      case 6: return binary(AstOp::kMul, lhs, constant(rng.between(-4, 4)));
      case 7:
        return binary(AstOp::kDiv, lhs,
                      constant(rng.chance(0.5) ? rng.between(1, 5) : rng.between(-5, -1)));
      case 8:
        return binary(AstOp::kMod, lhs,
                      constant(rng.chance(0.8) ? rng.between(1, 5) : rng.between(-5, -1)));
      default:
        return extremum(rng.chance(0.5) ? NodeKind::kMin : NodeKind::kMax, lhs,
                        random(rng, depth - 1));
    }
  }

  const Node* random_condition(Rng& rng, int depth) {
    if (depth > 0 && rng.chance(0.4)) {
      const AstOp op = rng.chance(0.5) ? AstOp::kAnd : AstOp::kOr;
      const Node* lhs = random_condition(rng, depth - 1);
      return binary(op, lhs, random_condition(rng, depth - 1));
    }
    const AstOp ops[] = {AstOp::kEq, AstOp::kNe, AstOp::kLt, AstOp::kLe, AstOp::kGt, AstOp::kGe};
    const AstOp op = ops[rng.below(6)];
    // An index takes part in each comparison, so that the facts are all about the domain.
    const Node* lhs =
        binary(AstOp::kAdd, index(&indices_[rng.below(indices_.size())]), random(rng, 2));
    return binary(op, lhs, random(rng, 2));
  }

  /// Takes part in every fact.
  const Node* sum_of_indices() {
    const Node* sum = constant(0);
    for (const IndexVar& item : indices_) sum = binary(AstOp::kAdd, sum, index(&item));
    return sum;
  }

 private:
  const Node* keep(Node node) {
    node.size = 1;
    lang::for_each_child(node, [&](const Node* child) { node.size += child->size; });
    nodes_.push_back(node);
    return &nodes_.back();
  }

  std::deque<IndexVar> indices_;
  std::deque<Node> nodes_;
};

constexpr int64_t kBudget = 100'000'000;

}  // namespace

TEST_CASE("a range under facts contains every value that occurs under them") {
  const int num = num_cases(1500);
  int num_reached = 0;
  for (int i = 0; i < num; ++i) {
    Rng rng(first_seed(), 7, static_cast<uint64_t>(i));
    Maker make;
    for (int d = 0; d < 3; ++d) {
      const int64_t begin = rng.between(-2, 2);
      make.add_index(begin, begin + rng.between(1, 6));
    }
    FactSet facts;
    for (uint64_t f = rng.below(4); f > 0; --f)
      facts = facts.with(make.random_condition(rng, 2), rng.chance(0.6));
    const Node* node = make.binary(
        AstOp::kAdd, make.random(rng, 4),
        make.binary(AstOp::kMul, make.sum_of_indices(), make.constant(rng.between(0, 1))));
    const ValueRange range = lang::range_of(node, facts);
    int64_t budget = kBudget;
    const std::optional<ValueRange> exact = lang::enumerate_range(node, facts, budget);
    REQUIRE(exact.has_value());
    if (exact->lo > exact->hi) continue;  // no point satisfies the facts
    ++num_reached;
    INFO("seed " << first_seed() << ", case " << i);
    CHECK_FALSE(facts.is_unreachable());
    CHECK(range.lo <= exact->lo);
    CHECK(exact->hi <= range.hi);
  }
  CHECK(num_reached > num / 3);
}

TEST_CASE("a grouped channel index has its exact range") {
  Maker make;
  const Node* co = make.index(make.add_index(0, 1 << 20));
  const Node* ci = make.index(make.add_index(0, 1 << 10));
  // co / 1024 * 1024 + ci
  const Node* group = make.binary(AstOp::kMul, make.binary(AstOp::kDiv, co, make.constant(1024)),
                                  make.constant(1024));
  const ValueRange range = lang::range_of(make.binary(AstOp::kAdd, group, ci), FactSet());
  CHECK(range.lo == 0);
  CHECK(range.hi == (1 << 20) - 1);
}

TEST_CASE("a difference is bounded by the fact that orders its terms") {
  Maker make;
  const Node* i = make.index(make.add_index(0, 1 << 20));
  const Node* j = make.index(make.add_index(0, 1 << 20));
  const Node* difference = make.binary(AstOp::kSub, i, j);
  const FactSet below = FactSet().with(make.binary(AstOp::kLe, j, i), true);
  CHECK(lang::range_of(difference, below).lo == 0);
  CHECK(lang::range_of(difference, below).hi == (1 << 20) - 1);
  const FactSet above = FactSet().with(make.binary(AstOp::kLe, j, i), false);
  CHECK(lang::range_of(difference, above).hi == -1);
}

TEST_CASE("terms that cancel do not widen a range") {
  Maker make;
  const Node* i = make.index(make.add_index(0, 1 << 20));
  const Node* k = make.index(make.add_index(0, 8));
  const Node* sum = make.binary(AstOp::kAdd, i, k);
  const ValueRange range = lang::range_of(make.binary(AstOp::kSub, sum, i), FactSet());
  CHECK(range.lo == 0);
  CHECK(range.hi == 7);
}

TEST_CASE("arithmetic that may wrap has the range of its type") {
  Maker make;
  const Node* i = make.index(make.add_index(0, int64_t{1} << 40));
  const Node* square = make.binary(AstOp::kMul, i, i);
  const ValueRange range = lang::range_of(square, FactSet());
  CHECK(range.lo == INT64_MIN);
  CHECK(range.hi == INT64_MAX);
  // A fact about a sum that may wrap says nothing about its terms.
  const Node* fourth = make.binary(AstOp::kMul, square, square);
  const FactSet facts = FactSet().with(
      make.binary(AstOp::kLt, make.binary(AstOp::kAdd, fourth, i), make.constant(5)), true);
  CHECK(lang::range_of(i, facts).hi == (int64_t{1} << 40) - 1);
}

TEST_CASE("a domain beyond the budget is not enumerated") {
  Maker make;
  const Node* i = make.index(make.add_index(0, 1000));
  const Node* node = make.binary(AstOp::kMod, make.binary(AstOp::kMul, i, i), make.constant(7));
  int64_t budget = 100;
  CHECK_FALSE(lang::enumerate_range(node, FactSet(), budget).has_value());
  CHECK(budget == 100);
  budget = kBudget;
  const std::optional<ValueRange> exact = lang::enumerate_range(node, FactSet(), budget);
  REQUIRE(exact.has_value());
  CHECK(exact->hi == 4);  // squares modulo 7
}

}  // namespace prunerc::testing
