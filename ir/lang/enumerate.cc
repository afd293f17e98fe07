// Exact ranges by evaluation at every point of small index domains.

#include "ir/int_math.h"
#include "ir/lang/range.h"

#include <algorithm>
#include <set>

namespace prunerc::lang {

namespace {

/// A domain with more points is not enumerated.
constexpr int64_t kMaxPoints = 1'000'000;

using Point = std::vector<int64_t>;  // by IndexVar::number

/// The value at a point; nullopt if it overflows, divides by zero, or is not integer arithmetic
/// over indices.
class Evaluator {
 public:
  explicit Evaluator(const Point& point) : point_(point) {}

  std::optional<int64_t> eval(const Node* node) const {
    switch (node->kind) {
      case NodeKind::kInt:
      case NodeKind::kBool: return node->int_value;
      case NodeKind::kIndex: return point_[static_cast<size_t>(node->index->number)];
      case NodeKind::kUnary: return unary(node);
      case NodeKind::kBinary:
        return node->op == AstOp::kAnd || node->op == AstOp::kOr ? logical(node) : binary(node);
      case NodeKind::kMin:
      case NodeKind::kMax: {
        const std::optional<int64_t> a = eval(node->args[0]);
        const std::optional<int64_t> b = eval(node->args[1]);
        if (!a || !b) return std::nullopt;
        return node->kind == NodeKind::kMin ? std::min(*a, *b) : std::max(*a, *b);
      }
      case NodeKind::kIf:
      case NodeKind::kSelect: {
        const std::optional<int64_t> condition = eval(node->args[0]);
        if (!condition) return std::nullopt;
        return eval(node->args[*condition != 0 ? 1 : 2]);
      }
      case NodeKind::kCast: {
        const std::optional<int64_t> operand = eval(node->args[0]);
        if (!operand || node->type.is_float()) return std::nullopt;
        return ir::wrap_to(node->type.dtype, *operand);
      }
      case NodeKind::kCall: {
        if (!node->type.is_int()) return std::nullopt;
        const std::optional<int64_t> operand = eval(node->args[0]);
        if (!operand || *operand == INT64_MIN) return std::nullopt;
        return fit(node, false, *operand < 0 ? -*operand : *operand);  // -128 is its own in i8
      }
      case NodeKind::kFloat:
      case NodeKind::kRead:
      case NodeKind::kReduce: return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  std::optional<int64_t> unary(const Node* node) const {
    const std::optional<int64_t> operand = eval(node->args[0]);
    if (!operand) return std::nullopt;
    if (node->op == AstOp::kNot) return *operand == 0 ? 1 : 0;
    return fit(node, *operand == INT64_MIN, *operand == INT64_MIN ? 0 : -*operand);
  }

  std::optional<int64_t> logical(const Node* node) const {
    const std::optional<int64_t> lhs = eval(node->args[0]);
    if (!lhs) return std::nullopt;
    const bool decides = (*lhs != 0) == (node->op == AstOp::kOr);
    return decides ? lhs : eval(node->args[1]);
  }

  static std::optional<int64_t> fit(const Node* node, bool overflow, int64_t value) {
    if (overflow) return std::nullopt;
    return ir::wrap_to(node->type.dtype, value);
  }

  std::optional<int64_t> binary(const Node* node) const {
    const std::optional<int64_t> lhs = eval(node->args[0]);
    const std::optional<int64_t> rhs = eval(node->args[1]);
    if (!lhs || !rhs) return std::nullopt;
    const int64_t a = *lhs;
    const int64_t b = *rhs;
    int64_t value = 0;
    bool overflow = false;
    switch (node->op) {
      case AstOp::kAdd: overflow = __builtin_add_overflow(a, b, &value); break;
      case AstOp::kSub: overflow = __builtin_sub_overflow(a, b, &value); break;
      case AstOp::kMul: overflow = __builtin_mul_overflow(a, b, &value); break;
      case AstOp::kDiv:
      case AstOp::kMod: {
        if (b == 0 || (b == -1 && a == INT64_MIN)) return std::nullopt;
        const int64_t quotient = ir::floor_div(a, b);
        value = node->op == AstOp::kDiv ? quotient : a - quotient * b;
        break;
      }
      case AstOp::kEq: return a == b;
      case AstOp::kNe: return a != b;
      case AstOp::kLt: return a < b;
      case AstOp::kLe: return a <= b;
      case AstOp::kGt: return a > b;
      case AstOp::kGe: return a >= b;
      default: return std::nullopt;
    }
    return fit(node, overflow, value);
  }

  const Point& point_;
};

bool is_index_arithmetic(const Node* node) {
  if (node->has_data || node->type.is_float() || node->kind == NodeKind::kFloat) return false;
  bool ok = true;
  for_each_child(*node, [&](const Node* child) { ok = ok && is_index_arithmetic(child); });
  return ok;
}

void collect_indices(const Node* node, std::set<const IndexVar*>& indices) {
  if (node->kind == NodeKind::kIndex) indices.insert(node->index);
  for_each_child(*node, [&](const Node* child) { collect_indices(child, indices); });
}

/// The points of the indices that a node depends on, directly or through facts.
struct Domain {
  std::vector<const IndexVar*> indices;
  std::vector<Fact> facts;  // that can be evaluated and share an index
  int64_t num_points = 1;
  int64_t cost_per_point = 1;
};

std::optional<Domain> find_domain(const Node* node, const FactSet& facts) {
  if (!is_index_arithmetic(node)) return std::nullopt;
  Domain domain;
  std::set<const IndexVar*> indices;
  collect_indices(node, indices);
  domain.cost_per_point = node->size;
  std::vector<bool> used(facts.facts().size(), false);
  for (bool grew = true; grew;) {
    grew = false;
    for (size_t i = 0; i < used.size(); ++i) {
      const Fact& fact = facts.facts()[i];
      if (used[i] || !is_index_arithmetic(fact.condition)) continue;
      std::set<const IndexVar*> own;
      collect_indices(fact.condition, own);
      const bool shares = std::any_of(
          own.begin(), own.end(), [&](const IndexVar* index) { return indices.count(index) > 0; });
      if (!shares) continue;
      used[i] = true;
      grew = true;
      domain.facts.push_back(fact);
      domain.cost_per_point += fact.condition->size;
      indices.insert(own.begin(), own.end());
    }
  }
  for (const IndexVar* index : indices) {
    const ValueRange range = facts.range_of(index);
    if (range.lo > range.hi) {
      domain.num_points = 0;
      return domain;
    }
    const auto extent = static_cast<uint64_t>(range.hi) - static_cast<uint64_t>(range.lo) + 1;
    if (extent > static_cast<uint64_t>(kMaxPoints)) return std::nullopt;
    domain.num_points *= static_cast<int64_t>(extent);
    if (domain.num_points > kMaxPoints) return std::nullopt;
    domain.indices.push_back(index);
  }
  return domain;
}

/// Calls visit(value) at each point where the facts hold; false if a value cannot be computed or
/// visit says so.
template <typename F>
bool for_each_value(const Node* node, const FactSet& facts, int64_t& budget, F&& visit) {
  const std::optional<Domain> domain = find_domain(node, facts);
  if (!domain || domain->num_points > budget / domain->cost_per_point) return false;
  if (domain->num_points == 0) return true;
  budget -= domain->num_points * domain->cost_per_point;
  int max_number = -1;
  for (const IndexVar* index : domain->indices) max_number = std::max(max_number, index->number);
  Point point(static_cast<size_t>(max_number + 1), 0);
  std::vector<ValueRange> ranges;
  for (const IndexVar* index : domain->indices) {
    ranges.push_back(facts.range_of(index));
    point[static_cast<size_t>(index->number)] = ranges.back().lo;
  }
  const Evaluator evaluator(point);
  for (int64_t i = 0; i < domain->num_points; ++i) {
    bool reached = true;
    for (const Fact& fact : domain->facts) {
      const std::optional<int64_t> value = evaluator.eval(fact.condition);
      if (value && (*value != 0) != fact.holds) reached = false;
      if (!reached) break;
    }
    if (reached) {
      const std::optional<int64_t> value = evaluator.eval(node);
      if (!value || !visit(*value)) return false;
    }
    for (size_t d = 0; d < ranges.size(); ++d) {
      int64_t& coordinate = point[static_cast<size_t>(domain->indices[d]->number)];
      if (++coordinate <= ranges[d].hi) break;
      coordinate = ranges[d].lo;
    }
  }
  return true;
}

}  // namespace

std::optional<ValueRange> enumerate_range(const Node* node, const FactSet& facts, int64_t& budget) {
  ValueRange range = {INT64_MAX, INT64_MIN};
  const bool ok = for_each_value(node, facts, budget, [&](int64_t value) {
    range.lo = std::min(range.lo, value);
    range.hi = std::max(range.hi, value);
    return true;
  });
  if (!ok) return std::nullopt;
  return range;
}

bool enumerate_nonzero(const Node* node, const FactSet& facts, int64_t& budget) {
  return for_each_value(node, facts, budget, [](int64_t value) { return value != 0; });
}

}  // namespace prunerc::lang
