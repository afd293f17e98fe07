#include "ir/lang/range.h"

#include "ir/int_math.h"

#include <algorithm>
#include <unordered_map>

namespace prunerc::lang {

using ir::DType;

using ir::floor_div;

namespace {

using Wide = __int128;

/// Expressions and fact sets beyond these sizes are bounded by plain interval arithmetic only.
constexpr uint32_t kMaxLinearSize = 64;
constexpr size_t kMaxInequalities = 12;
constexpr size_t kMaxFacts = 64;
constexpr int kMaxSharpened = 200;  // sums per query
constexpr int kNarrowRounds = 3;

struct WideRange {
  Wide lo, hi;
};

int64_t clamp64(Wide value) {
  return static_cast<int64_t>(std::clamp<Wide>(value, INT64_MIN, INT64_MAX));
}

WideRange multiply(WideRange a, WideRange b) {
  const Wide corners[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

WideRange unite(WideRange a, WideRange b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

WideRange type_range(const Node* node) {
  if (!node->type.is_typed() || !ir::is_int(node->type.dtype)) return {INT64_MIN, INT64_MAX};
  return {ir::min_int(node->type.dtype), ir::max_int(node->type.dtype)};
}

WideRange divide(WideRange a, WideRange b, WideRange whole) {
  if (b.lo <= 0 && b.hi >= 0) return whole;
  const Wide corners[] = {floor_div(a.lo, b.lo), floor_div(a.lo, b.hi), floor_div(a.hi, b.lo),
                          floor_div(a.hi, b.hi)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

WideRange remainder(WideRange a, WideRange b, WideRange whole) {
  if (b.lo <= 0) return whole;
  if (b.lo == b.hi && floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo)) {
    const Wide base = floor_div(a.lo, b.lo) * b.lo;
    return {a.lo - base, a.hi - base};
  }
  if (a.lo >= 0 && a.hi < b.lo) return a;
  return {0, b.hi - 1};
}

/// Interval arithmetic over a tree; notes when a value could have wrapped, for then sums must not
/// be rearranged.
class RangeFinder {
 public:
  explicit RangeFinder(const FactSet& facts) : facts_(facts) {}

  WideRange find(const Node* node) {
    const auto known = known_.find(node);
    if (known != known_.end()) return known->second;
    const WideRange whole = type_range(node);
    WideRange range = step(node, whole);
    if (range.lo < whole.lo || range.hi > whole.hi) {
      may_wrap_ = true;
      range = whole;
    } else if (!may_wrap_ && (is_sum(node) || is_data(node)) && sharpen_left_-- > 0) {
      known_[node] = range;  // for the node as a term of its own form
      range = sharpen(node, range);
    }
    known_[node] = range;
    return range;
  }

  bool may_wrap() const { return may_wrap_; }

 private:
  /// Nothing is known of a tensor's element but what facts say about it.
  static bool is_data(const Node* node) {
    return node->kind == NodeKind::kRead && node->type.is_int();
  }

  static bool is_sum(const Node* node) {
    return node->kind == NodeKind::kBinary && node->size <= kMaxLinearSize &&
           (node->op == AstOp::kAdd || node->op == AstOp::kSub || node->op == AstOp::kMul) &&
           node->type.is_typed() && node->type.dtype == DType::kI64;
  }

  WideRange step(const Node* node, WideRange whole) {
    switch (node->kind) {
      case NodeKind::kInt: return {node->int_value, node->int_value};
      case NodeKind::kIndex: {
        const ValueRange range = facts_.range_of(node->index);
        return {range.lo, range.hi};
      }
      case NodeKind::kUnary: {
        if (node->op != AstOp::kNeg) return whole;
        const WideRange operand = find(node->args[0]);
        return {-operand.hi, -operand.lo};
      }
      case NodeKind::kBinary: return binary(node, whole);
      case NodeKind::kMin:
      case NodeKind::kMax: {
        if (!node->type.is_int()) return whole;
        const WideRange a = find(node->args[0]);
        const WideRange b = find(node->args[1]);
        if (node->kind == NodeKind::kMin) return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
        return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
      }
      case NodeKind::kIf:
      case NodeKind::kSelect: {
        if (!node->type.is_int()) return whole;
        return unite(find(node->args[1]), find(node->args[2]));
      }
      case NodeKind::kCast: {
        if (!node->args[0]->type.is_int()) return whole;
        const WideRange operand = find(node->args[0]);
        const bool fits = operand.lo >= whole.lo && operand.hi <= whole.hi;
        return fits ? operand : whole;
      }
      case NodeKind::kCall: {
        if (!node->type.is_int()) return whole;
        const WideRange a = find(node->args[0]);
        if (a.lo >= 0) return a;
        return {a.hi < 0 ? -a.hi : 0, std::max(-a.lo, a.hi)};
      }
      case NodeKind::kFloat:
      case NodeKind::kBool:
      case NodeKind::kRead:
      case NodeKind::kReduce: return whole;
    }
    return whole;
  }

  WideRange binary(const Node* node, WideRange whole) {
    if (!node->type.is_int()) return whole;
    const WideRange a = find(node->args[0]);
    const WideRange b = find(node->args[1]);
    switch (node->op) {
      case AstOp::kAdd: return {a.lo + b.lo, a.hi + b.hi};
      case AstOp::kSub: return {a.lo - b.hi, a.hi - b.lo};
      case AstOp::kMul: return multiply(a, b);
      case AstOp::kDiv: return divide(a, b, whole);
      case AstOp::kMod: return remainder(a, b, whole);
      default: return whole;
    }
  }

  WideRange of_form(const LinearForm& form) {
    WideRange sum = {form.constant, form.constant};
    for (const auto& [term, factor] : form.terms) {
      const WideRange range = find(term);
      const WideRange scaled = multiply(range, {factor, factor});
      sum = {sum.lo + scaled.lo, sum.hi + scaled.hi};
    }
    return sum;
  }

  /// Terms that cancel, and inequalities f >= 0: e = (e - f) + f >= min(e - f), e <= max(e + f).
  WideRange sharpen(const Node* node, WideRange range) {
    const LinearForm form = linear_form(node);
    if (!form.is_valid || form.terms.empty()) return range;
    const WideRange exact = of_form(form);
    range = {std::max(range.lo, exact.lo), std::min(range.hi, exact.hi)};
    for (const LinearForm& fact : facts_.inequalities()) {
      const int64_t factor = matching_factor(form, fact);
      if (factor == 0) continue;
      const LinearForm below = add_scaled(form, fact, -factor);
      const LinearForm above = add_scaled(form, fact, factor);
      if (below.is_valid && below.terms.size() < form.terms.size() + fact.terms.size()) {
        range.lo = std::max(range.lo, of_form(below).lo);
      }
      if (above.is_valid && above.terms.size() < form.terms.size() + fact.terms.size()) {
        range.hi = std::min(range.hi, of_form(above).hi);
      }
    }
    return range;
  }

  /// A positive multiple of the fact that may cancel a term of the form; 0 if they share none.
  static int64_t matching_factor(const LinearForm& form, const LinearForm& fact) {
    for (const auto& [term, factor] : form.terms) {
      for (const auto& [other, other_factor] : fact.terms) {
        if (other_factor == 0 || !structural_equal(term, other)) continue;
        if (factor % other_factor != 0 || factor / other_factor == INT64_MIN) return 1;
        return std::max<int64_t>(1, std::abs(factor / other_factor));
      }
    }
    return 0;
  }

  const FactSet& facts_;
  std::unordered_map<const Node*, WideRange> known_;
  int sharpen_left_ = kMaxSharpened;
  bool may_wrap_ = false;
};

void add_term(LinearForm& form, const Node* node, int64_t factor) {
  for (auto it = form.terms.begin(); it != form.terms.end(); ++it) {
    if (!structural_equal(it->first, node)) continue;
    if (__builtin_add_overflow(it->second, factor, &it->second)) form.is_valid = false;
    if (it->second == 0) form.terms.erase(it);
    return;
  }
  form.terms.emplace_back(node, factor);
}

void collect(const Node* node, int64_t factor, LinearForm& form) {
  if (!form.is_valid) return;
  const bool is_i64 = node->type.is_typed() && node->type.dtype == DType::kI64;
  const auto scaled = [&](int64_t by) {
    int64_t product = 0;
    if (__builtin_mul_overflow(factor, by, &product)) form.is_valid = false;
    return product;
  };
  if (node->kind == NodeKind::kInt) {
    if (__builtin_add_overflow(form.constant, scaled(node->int_value), &form.constant))
      form.is_valid = false;
  } else if (is_i64 && node->kind == NodeKind::kUnary && node->op == AstOp::kNeg) {
    collect(node->args[0], scaled(-1), form);
  } else if (is_i64 && node->kind == NodeKind::kBinary && node->op == AstOp::kAdd) {
    collect(node->args[0], factor, form);
    collect(node->args[1], factor, form);
  } else if (is_i64 && node->kind == NodeKind::kBinary && node->op == AstOp::kSub) {
    collect(node->args[0], factor, form);
    collect(node->args[1], scaled(-1), form);
  } else if (is_i64 && node->kind == NodeKind::kBinary && node->op == AstOp::kMul &&
             node->args[1]->kind == NodeKind::kInt) {
    collect(node->args[0], scaled(node->args[1]->int_value), form);
  } else if (is_i64 && node->kind == NodeKind::kBinary && node->op == AstOp::kMul &&
             node->args[0]->kind == NodeKind::kInt) {
    collect(node->args[1], scaled(node->args[0]->int_value), form);
  } else if (factor != 0) {
    add_term(form, node, factor);
  }
}

AstOp negated(AstOp op) {
  switch (op) {
    case AstOp::kEq: return AstOp::kNe;
    case AstOp::kNe: return AstOp::kEq;
    case AstOp::kLt: return AstOp::kGe;
    case AstOp::kLe: return AstOp::kGt;
    case AstOp::kGt: return AstOp::kLe;
    default: return AstOp::kLt;
  }
}

}  // namespace

LinearForm linear_form(const Node* node) {
  LinearForm form;
  if (node->size > kMaxLinearSize) {
    form.terms.emplace_back(node, 1);
  } else {
    collect(node, 1, form);
  }
  return form;
}

LinearForm add_scaled(const LinearForm& a, const LinearForm& b, int64_t factor) {
  LinearForm sum = a;
  int64_t scaled = 0;
  sum.is_valid = a.is_valid && b.is_valid && !__builtin_mul_overflow(b.constant, factor, &scaled) &&
                 !__builtin_add_overflow(sum.constant, scaled, &sum.constant);
  for (const auto& [term, own] : b.terms) {
    if (!sum.is_valid || __builtin_mul_overflow(own, factor, &scaled)) {
      sum.is_valid = false;
      return sum;
    }
    add_term(sum, term, scaled);
  }
  return sum;
}

ValueRange range_of(const Node* node, const FactSet& facts) {
  const WideRange range = RangeFinder(facts).find(node);
  return {clamp64(range.lo), clamp64(range.hi)};
}

namespace {

/// Plain interval arithmetic over indices and constants, noting whether an i64 leaves its range.
class WrapFinder {
 public:
  explicit WrapFinder(const FactSet& facts) : facts_(facts) {}

  bool wraps() const { return wraps_; }

  /// Nullopt of anything that is no arithmetic of indices: nothing above it is said to wrap.
  std::optional<WideRange> find(const Node* node) {
    const auto known = known_.find(node);
    if (known != known_.end()) return known->second;
    std::optional<WideRange> range = step(node);
    const WideRange whole = type_range(node);
    if (range && (range->lo < whole.lo || range->hi > whole.hi)) {
      wraps_ = wraps_ || (node->type.is_typed() && node->type.dtype == DType::kI64);
      range = whole;
    }
    known_[node] = range;
    return range;
  }

 private:
  std::optional<WideRange> step(const Node* node) {
    if (node->kind == NodeKind::kInt) return WideRange{node->int_value, node->int_value};
    if (node->kind == NodeKind::kIndex) {
      const ValueRange range = facts_.range_of(node->index);
      return WideRange{range.lo, range.hi};
    }
    if (!node->type.is_int() || node->kind == NodeKind::kReduce) return std::nullopt;
    std::vector<WideRange> args;
    const bool chooses = node->kind == NodeKind::kIf || node->kind == NodeKind::kSelect;
    bool known = true;
    for (std::size_t i = chooses ? 1 : 0; i < node->args.size(); ++i) {
      const std::optional<WideRange> range = find(node->args[i]);  // what wraps there is noted
      known = known && range.has_value();
      args.push_back(range.value_or(WideRange{0, 0}));
    }
    if (!known) return std::nullopt;
    switch (node->kind) {
      case NodeKind::kUnary:
        if (node->op == AstOp::kNeg) return WideRange{-args[0].hi, -args[0].lo};
        return std::nullopt;
      case NodeKind::kBinary: return binary(node->op, args[0], args[1]);
      case NodeKind::kIf:
      case NodeKind::kSelect: return unite(args[0], args[1]);
      case NodeKind::kMin:
        return WideRange{std::min(args[0].lo, args[1].lo), std::min(args[0].hi, args[1].hi)};
      case NodeKind::kMax:
        return WideRange{std::max(args[0].lo, args[1].lo), std::max(args[0].hi, args[1].hi)};
      case NodeKind::kCast: return args[0];
      default: return std::nullopt;
    }
  }

  // A divisor is not 0: that is checked for itself.
  static std::optional<WideRange> binary(AstOp op, WideRange a, WideRange b) {
    const Wide most = std::max(a.hi < 0 ? -a.hi : a.hi, a.lo < 0 ? -a.lo : a.lo);
    switch (op) {
      case AstOp::kAdd: return WideRange{a.lo + b.lo, a.hi + b.hi};
      case AstOp::kSub: return WideRange{a.lo - b.hi, a.hi - b.lo};
      case AstOp::kMul: return multiply(a, b);
      case AstOp::kDiv: return divide(a, b, {-most, most});
      case AstOp::kMod:
        return remainder(a, b, {std::min<Wide>(0, b.lo + 1), std::max<Wide>(0, b.hi - 1)});
      default: return std::nullopt;
    }
  }

  const FactSet& facts_;
  std::unordered_map<const Node*, std::optional<WideRange>> known_;
  bool wraps_ = false;
};

}  // namespace

bool may_wrap(const Node* node, const FactSet& facts) {
  WrapFinder finder(facts);
  finder.find(node);
  return finder.wraps();
}

FactSet FactSet::with(const Node* condition, bool holds) const {
  FactSet result = *this;
  result.add(condition, holds);
  result.narrow();
  return result;
}

ValueRange FactSet::range_of(const IndexVar* index) const {
  const auto known = narrowed_.find(index);
  if (known != narrowed_.end()) return known->second;
  return {index->begin, index->end - 1};
}

void FactSet::add(const Node* condition, bool holds) {
  if (condition->kind == NodeKind::kBool) {
    if ((condition->int_value != 0) != holds) is_unreachable_ = true;
    return;
  }
  if (condition->kind == NodeKind::kUnary && condition->op == AstOp::kNot) {
    add(condition->args[0], !holds);
    return;
  }
  if (condition->kind == NodeKind::kBinary &&
      ((condition->op == AstOp::kAnd && holds) || (condition->op == AstOp::kOr && !holds))) {
    add(condition->args[0], holds);
    add(condition->args[1], holds);
    return;
  }
  if (facts_.size() >= kMaxFacts) return;
  facts_.push_back({condition, holds});
  if (condition->kind == NodeKind::kBinary && condition->op >= AstOp::kEq &&
      condition->op <= AstOp::kGe && condition->args[0]->type.is_int()) {
    add_comparison(holds ? condition->op : negated(condition->op), condition->args[0],
                   condition->args[1]);
  }
}

void FactSet::add_comparison(AstOp op, const Node* lhs, const Node* rhs) {
  if (op == AstOp::kNe) {
    exclude(lhs, rhs);
    exclude(rhs, lhs);
    return;
  }
  if (inequalities_.size() >= kMaxInequalities) return;
  // Rearranging lhs <= rhs into rhs - lhs >= 0 needs that neither side has wrapped.
  RangeFinder finder(*this);
  finder.find(lhs);
  finder.find(rhs);
  if (finder.may_wrap()) return;
  const LinearForm left = linear_form(lhs);
  const LinearForm right = linear_form(rhs);
  const auto keep = [&](LinearForm form, int64_t slack) {
    if (!form.is_valid || __builtin_sub_overflow(form.constant, slack, &form.constant)) return;
    inequalities_.push_back(std::move(form));
  };
  if (op == AstOp::kLt || op == AstOp::kLe || op == AstOp::kEq) {
    keep(add_scaled(right, left, -1), op == AstOp::kLt ? 1 : 0);
  }
  if (op == AstOp::kGt || op == AstOp::kGe || op == AstOp::kEq) {
    keep(add_scaled(left, right, -1), op == AstOp::kGt ? 1 : 0);
  }
}

void FactSet::exclude(const Node* lhs, const Node* rhs) {
  if (lhs->kind != NodeKind::kIndex || rhs->kind != NodeKind::kInt) return;
  ValueRange range = range_of(lhs->index);
  if (range.lo > range.hi) return;
  if (range.lo == rhs->int_value) ++range.lo;
  if (range.hi == rhs->int_value) --range.hi;
  narrowed_[lhs->index] = range;
  if (range.lo > range.hi) is_unreachable_ = true;
}

void FactSet::narrow() {
  for (int round = 0; round < kNarrowRounds && !is_unreachable_; ++round) {
    for (size_t i = 0; i < inequalities_.size() && !is_unreachable_; ++i)
      narrow_by(inequalities_[i]);
  }
}

void FactSet::narrow_by(const LinearForm& form) {
  // Sum of the largest values of all terms; taking one out bounds it from below.
  Wide total = form.constant;
  std::vector<Wide> largest;
  for (const auto& [term, factor] : form.terms) {
    const ValueRange range = lang::range_of(term, *this);
    const Wide value = std::max(Wide{factor} * range.lo, Wide{factor} * range.hi);
    largest.push_back(value);
    total += value;
  }
  if (total < 0) {
    is_unreachable_ = true;
    return;
  }
  for (size_t i = 0; i < form.terms.size(); ++i) {
    const auto& [term, factor] = form.terms[i];
    if (term->kind != NodeKind::kIndex) continue;
    const Wide needed = -(total - largest[i]);  // factor * index >= needed
    ValueRange range = range_of(term->index);
    if (factor > 0) {
      range.lo = clamp64(std::max<Wide>(range.lo, -floor_div(-needed, Wide{factor})));
    } else {
      range.hi = clamp64(std::min<Wide>(range.hi, floor_div(-needed, -Wide{factor})));
    }
    narrowed_[term->index] = range;
    if (range.lo > range.hi) is_unreachable_ = true;
  }
}

}  // namespace prunerc::lang
