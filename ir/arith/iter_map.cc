#include "ir/arith/iter_map.h"

#include "ir/arith/digits.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace prunerc::ir {
namespace {

// Larger steps belong to no tensor.
constexpr int64_t kMaxScale = int64_t{1} << 50;

class Detector {
 public:
  Detector(IrBuilder& b, std::span<const Var* const> loops, const VarRanges& ranges)
      : b_(b), loops_(loops), ranges_(ranges) {}

  IterMapResult run(std::span<const Expr> bindings, Expr guard, IterMapLevel level) {
    IterMapResult result;
    if (!make_leaves()) return failed(IterMapError::kSymbolic, -1);
    if (guard.defined() && !add_guard(guard)) return failed(failure_, -1);
    std::vector<DigitSum> sums;
    for (std::size_t i = 0; i < bindings.size(); ++i) {
      DigitSum sum;
      if (!detect(bindings[i], &sum)) return failed(failure_, static_cast<int32_t>(i));
      sums.push_back(std::move(sum));
    }
    hoist(sums);
    std::vector<int64_t> extents;
    bool overlaps = false;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      int64_t extent = 1;
      if (!traverse(sums[i], &extent, &overlaps)) {
        return failed(IterMapError::kNotCovering, static_cast<int32_t>(i));
      }
      extents.push_back(extent);
    }
    bool complete = true;
    const IterMapError clash = check_uses(sums, &complete);
    if (clash != IterMapError::kNone) return failed(clash, -1);
    if (level == IterMapLevel::kBijective && (!complete || overlaps)) {
      return failed(IterMapError::kNotCovering, -1);
    }
    fill(result.map, sums, extents);
    result.map.bijective = complete && !overlaps;
    return result;
  }

 private:
  static IterMapResult failed(IterMapError error, int32_t index) {
    IterMapResult result;
    result.error = error;
    result.index = index;
    return result;
  }
  bool fail(IterMapError error) {
    if (failure_ == IterMapError::kNone) failure_ = error;
    return false;
  }

  bool make_leaves() {
    for (const Var* var : loops_) {
      const Interval range = ranges_.interval(var->id);
      const Expr extent = ranges_.extent(var->id);
      const IntImm* c = extent.as<IntImm>();
      // Facts narrow intervals; the extent alone is the loop's.
      if (c == nullptr && (extent.defined() || range.lo != 0 || !range.is_bounded())) return false;
      DigitMark mark;
      mark.var = var;
      mark.extent = c != nullptr ? c->value : range.hi + 1;
      if (mark.extent < 1) return false;
      depths_.push_back(static_cast<int32_t>(marks_.size()));
      marks_.push_back(std::move(mark));
    }
    return true;
  }

  int32_t add_fused(std::vector<Digit> digits, int64_t extent, bool cut) {
    DigitMark mark;
    mark.fused = std::move(digits);
    mark.extent = extent;
    mark.cut = cut;
    int32_t depth = 0;
    for (const Digit& d : mark.fused) {
      depth = std::max(depth, depths_[static_cast<std::size_t>(d.mark)]);
    }
    depths_.push_back(depth);
    marks_.push_back(std::move(mark));
    return static_cast<int32_t>(marks_.size()) - 1;
  }

  int32_t leaf(VarId id) const {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i]->id == id) return static_cast<int32_t>(i);
    }
    return -1;
  }

  bool mentions_loop(Expr e) const {
    return any_var(e, [&](VarId id) { return leaf(id) >= 0; });
  }

  // --- guards

  bool add_guard(Expr guard) {
    std::vector<std::pair<DigitSum, int64_t>> bounds;  // sum < limit
    if (!split_guard(guard, &bounds)) return false;
    // A bound over few digits may be part of one over more.
    std::stable_sort(bounds.begin(), bounds.end(), [](const auto& x, const auto& y) {
      return x.first.digits.size() < y.first.digits.size();
    });
    for (auto& [sum, limit] : bounds) {
      if (!add_bound(sum, limit)) return false;
    }
    return true;
  }

  bool split_guard(Expr guard, std::vector<std::pair<DigitSum, int64_t>>* bounds) {
    if (const And* both = guard.as<And>()) {
      return split_guard(both->lhs, bounds) && split_guard(both->rhs, bounds);
    }
    const BinaryNode* compare = as_binary(guard);
    const bool less = guard.kind() == ExprKind::kLt;
    if (compare == nullptr || !(less || guard.kind() == ExprKind::kLe)) {
      return fail(IterMapError::kPredicateUnsupported);
    }
    if (compare->lhs.dtype() != DType::kI64) return fail(IterMapError::kPredicateUnsupported);
    // lhs < rhs as sum - limit < 0.
    const Linear difference =
        to_linear(b_, compare->lhs, ranges_) - to_linear(b_, compare->rhs, ranges_);
    DigitSum sum;
    if (!from_linear(difference, &sum)) {
      failure_ = IterMapError::kPredicateUnsupported;  // whatever it is in the guard
      return false;
    }
    if (!sum.base.is_constant() || any_below_one(sum.digits)) {
      return fail(IterMapError::kPredicateUnsupported);
    }
    const int64_t limit = (less ? 0 : 1) - sum.base.constant;
    sum.base = Linear::of(0);
    bounds->emplace_back(std::move(sum), limit);
    return true;
  }

  bool add_bound(DigitSum sum, int64_t limit) {
    replace_cut(sum);
    int64_t product = 1;
    if (sum.digits.empty()) {
      return limit > 0 || fail(IterMapError::kPredicateConflict);
    }
    // A common factor: 4*x < 10 is x < 3.
    const int64_t unit = sum.digits.back().scale;
    for (Digit& s : sum.digits) {
      if (s.scale % unit != 0) return fail(IterMapError::kPredicateUnsupported);
      s.scale /= unit;
    }
    limit = floor_div(limit + unit - 1, unit);
    if (!is_mixed_radix(sum.digits, &product)) {
      // A bound that no value reaches says nothing.
      __int128 largest = 0;
      for (const Digit& s : sum.digits) largest += static_cast<__int128>(s.extent - 1) * s.scale;
      return largest < limit || fail(IterMapError::kPredicateConflict);
    }
    if (limit >= product) return true;
    if (limit < 1) return fail(IterMapError::kPredicateConflict);
    // Digits that the bound keeps at 0 or leaves whole are no part of what it cuts: with y < 64,
    // 64*x + y < 16 is x < 1 and y < 16, 64*x + y < 128 is x < 2, and 64*x + y < 96 is
    // 2*x + y // 32 < 3.
    while (sum.digits.size() > 1) {
      if (limit <= sum.digits[0].scale) {
        Digit top = sum.digits[0];
        const bool leaves_rest_whole = limit == top.scale;
        top.scale = 1;
        add_fused({top}, 1, true);
        if (leaves_rest_whole) return true;
        sum.digits.erase(sum.digits.begin());
        continue;
      }
      const int64_t rest = strip_digits(sum.digits, limit);
      if (rest == limit) break;
      limit = rest;
    }
    add_fused(std::move(sum.digits), limit, true);
    return true;
  }

  // --- expressions

  bool detect(Expr e, DigitSum* out) {
    if (!from_linear(to_linear(b_, e, ranges_), out)) return fail(IterMapError::kNotAffine);
    if (any_below_one(out->digits)) return fail(IterMapError::kNotAffine);
    replace_cut(*out);
    return true;
  }

  // Scales may be negative until quotients around are lifted. A modulus other than 0: multiples of
  // it do not matter.
  bool from_linear(const Linear& linear, DigitSum* out, int64_t modulus = 0) {
    if (linear.overflow) return fail(IterMapError::kNotAffine);
    out->base = Linear::of(linear.constant);
    for (const Term& term : linear.terms) {
      const auto factors = term.factors();
      const auto moving = std::count_if(factors.begin(), factors.end(),
                                        [&](Expr atom) { return mentions_loop(atom); });
      if (moving == 0) {
        Linear part;
        part.terms.push_back(term);
        out->base = out->base + part;
        continue;
      }
      if (factors.size() != 1) return fail(IterMapError::kNotAffine);
      Digit digit;
      bool vanishes = false;
      std::vector<Digit> pulled;
      if (!atom_digit(factors[0], &digit, &vanishes, &pulled)) return false;
      if (!vanishes) pulled.push_back(digit);
      for (Digit& part : pulled) {
        if (__builtin_mul_overflow(part.scale, term.coef, &part.scale) ||
            std::abs(part.scale) > kMaxScale) {
          return fail(IterMapError::kNotAffine);
        }
        add_digit(out->digits, part);
      }
    }
    if (modulus > 0) {
      for (Digit& digit : out->digits) digit.scale = floor_mod(digit.scale, modulus);
      std::erase_if(out->digits, [](const Digit& d) { return d.scale == 0; });
    }
    sort_digits(out->digits);
    join_digits(out->digits);
    return true;
  }

  // A variable, or a quotient or remainder of a sum, as one digit of one mark. `pulled`: what else
  // it is a sum of, since the simplifier had taken its opposite out.
  bool atom_digit(Expr atom, Digit* out, bool* vanishes, std::vector<Digit>* pulled) {
    if (const Var* v = atom.as<Var>()) {
      const int32_t mark = leaf(v->id);
      *out = {mark, 1, marks_[static_cast<std::size_t>(mark)].extent, 1};
      *vanishes = out->extent == 1;
      return true;
    }
    const bool quotient = atom.kind() == ExprKind::kFloorDiv;
    if (!quotient && atom.kind() != ExprKind::kFloorMod) return fail(IterMapError::kNotAffine);
    const BinaryNode* n = as_binary(atom);
    if (mentions_loop(n->rhs)) return fail(IterMapError::kIteratorDivisor);
    const IntImm* divisor = n->rhs.as<IntImm>();
    if (divisor == nullptr) return fail(IterMapError::kSymbolic);
    if (divisor->value < 1) return fail(IterMapError::kNotAffine);
    const int64_t c = divisor->value;
    DigitSum inner;
    if (!from_linear(to_linear(b_, n->lhs, ranges_), &inner, quotient ? 0 : c)) return false;
    if (!lift(inner, c, quotient ? pulled : nullptr)) return fail(IterMapError::kDivisorMismatch);
    if (!inner.base.is_constant(0)) return fail(IterMapError::kNotAffine);
    if (inner.digits.empty()) {
      *vanishes = true;
      return true;
    }
    if (!as_single(inner, out)) return false;
    if (c >= out->extent) {
      *vanishes = quotient;
      return true;
    }
    if (out->extent % c != 0) return fail(IterMapError::kDivisorMismatch);
    if (quotient) {
      out->lower *= c;
      out->extent /= c;
    } else {
      out->extent = c;
    }
    *vanishes = out->extent == 1;
    return true;
  }

  // Puts the sum below a divisor into a form that as_single takes, if there is one. False if a
  // scale stays below 1.
  bool lift(DigitSum& inner, int64_t divisor, std::vector<Digit>* pulled) {
    int64_t product = 1;
    DigitSum as_it_is = inner;
    if (!any_below_one(inner.digits)) replace_cut(as_it_is);
    if (is_mixed_radix(as_it_is.digits, &product)) {
      inner = std::move(as_it_is);
      return true;
    }
    lift_digits(inner.digits, divisor, depths_, pulled);
    if (any_below_one(inner.digits)) return false;
    join_digits(inner.digits);
    replace_cut(inner);
    return true;
  }

  // The sum as a digit of scale 1: itself, or all of a fused mark.
  bool as_single(const DigitSum& sum, Digit* out) {
    if (sum.digits.size() == 1 && sum.digits[0].scale == 1) {
      *out = sum.digits[0];
      return true;
    }
    int64_t product = 1;
    if (!is_mixed_radix(sum.digits, &product)) return fail(IterMapError::kDivisorMismatch);
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      if (!marks_[i].cut && same(marks_[i].fused, sum.digits)) {
        *out = {static_cast<int32_t>(i), 1, product, 1};
        return true;
      }
    }
    *out = {add_fused(sum.digits, product, false), 1, product, 1};
    return true;
  }

  static bool same(const std::vector<Digit>& x, const std::vector<Digit>& y) {
    if (x.size() != y.size() || x.empty()) return false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!same_place(x[i], y[i]) || x[i].scale != y[i].scale) return false;
    }
    return true;
  }

  // Where all digits of a cut mark stand in the sum with one common factor, the mark takes their
  // place.
  void replace_cut(DigitSum& sum) {
    for (std::size_t m = 0; m < marks_.size(); ++m) {
      if (marks_[m].cut) replace_cut(sum, static_cast<int32_t>(m));
    }
  }

  void replace_cut(DigitSum& sum, int32_t cut) {
    const DigitMark& mark = marks_[static_cast<std::size_t>(cut)];
    std::vector<Digit> digits = refined(sum.digits, mark.fused);
    const auto find = [&](const Digit& wanted) {
      return std::find_if(digits.begin(), digits.end(),
                          [&](const Digit& d) { return same_place(d, wanted); });
    };
    const auto last = find(mark.fused.back());
    if (last == digits.end()) return;
    const int64_t factor = last->scale;
    for (const Digit& digit : mark.fused) {
      const auto at = find(digit);
      if (at == digits.end() || at->scale != digit.scale * factor) return;
      digits.erase(at);
    }
    if (mark.extent != 1) digits.push_back({cut, 1, mark.extent, factor});
    sort_digits(digits);
    join_digits(digits);
    sum.digits = std::move(digits);
  }

  // One iterator for digits that lie in each other's: of 4*x + y, both the sum's remainder by 6 and
  // x // 9 are digits of the sum.
  void hoist(std::vector<DigitSum>& sums) const {
    std::vector<char> used(marks_.size(), 0);
    for (const DigitSum& sum : sums) {
      for (const Digit& d : sum.digits) used[static_cast<std::size_t>(d.mark)] = 1;
    }
    for (std::size_t m = marks_.size(); m-- > 0;) {
      if (used[m] == 0 || marks_[m].var != nullptr || marks_[m].cut) continue;
      for (DigitSum& sum : sums) {
        for (Digit& d : sum.digits) {
          if (d.mark != static_cast<int32_t>(m)) embed_digit(d, marks_, static_cast<int32_t>(m));
        }
        join_digits(sum.digits);
      }
    }
  }

  // --- properties

  // Number of values that the sum takes; false if they leave gaps that are not those of a common
  // scale.
  static bool traverse(const DigitSum& sum, int64_t* extent, bool* overlaps) {
    *extent = 1;
    if (sum.digits.empty()) return true;
    const int64_t unit = sum.digits.back().scale;
    int64_t reach = 1;  // values so far, in units
    for (auto s = sum.digits.rbegin(); s != sum.digits.rend(); ++s) {
      if (s->scale % unit != 0) return false;
      const int64_t step = s->scale / unit;
      if (step > reach) return false;
      *overlaps |= step < reach;
      reach += (s->extent - 1) * step;
    }
    *extent = reach;
    return true;
  }

  // Are the digits used apart from each other? `complete`: together they make up every loop.
  IterMapError check_uses(const std::vector<DigitSum>& sums, bool* complete) {
    std::vector<std::vector<Digit>> uses(marks_.size());
    for (const DigitSum& sum : sums) {
      for (const Digit& s : sum.digits) uses[static_cast<std::size_t>(s.mark)].push_back(s);
    }
    // A fused mark stands after its digits' marks, and it uses them up; so does a cut that no index
    // mentions.
    for (std::size_t m = marks_.size(); m-- > 0;) {
      if (marks_[m].var != nullptr || (uses[m].empty() && !marks_[m].cut)) continue;
      for (const Digit& digit : marks_[m].fused) {
        uses[static_cast<std::size_t>(digit.mark)].push_back(digit);
      }
    }
    for (std::size_t m = 0; m < marks_.size(); ++m) {
      std::vector<Digit>& used = uses[m];
      std::sort(used.begin(), used.end(),
                [](const Digit& x, const Digit& y) { return x.lower < y.lower; });
      int64_t reached = 1;
      for (const Digit& s : used) {
        if (s.lower < reached) {
          const bool by_guard =
              std::any_of(marks_.begin(), marks_.end(), [&](const DigitMark& mark) {
                return mark.cut &&
                       std::any_of(mark.fused.begin(), mark.fused.end(), [&](const Digit& d) {
                         return d.mark == static_cast<int32_t>(m);
                       });
              });
          return by_guard ? IterMapError::kPredicateConflict : IterMapError::kNotIndependent;
        }
        if (s.lower % reached != 0) return IterMapError::kNotIndependent;
        if (s.lower != reached) *complete = false;
        reached = s.lower * s.extent;
      }
      const bool needed = marks_[m].var != nullptr || marks_[m].cut || !used.empty();
      if (needed && reached != marks_[m].extent) *complete = false;
    }
    return IterMapError::kNone;
  }

  // --- results

  static Term number(int64_t value) {
    Term t;
    t.coef = value;
    return t;
  }
  static IterSum public_sum(const std::vector<Digit>& splits, const Linear& base) {
    IterSum out;
    out.base = base;
    for (const Digit& s : splits) {
      out.splits.push_back({s.mark, number(s.lower), number(s.extent), number(s.scale)});
    }
    return out;
  }
  void fill(IterMap& map, const std::vector<DigitSum>& sums, const std::vector<int64_t>& extents) {
    for (const DigitMark& mark : marks_) {
      IterMark out;
      if (mark.var != nullptr) out.var = mark.var;
      out.fused = public_sum(mark.fused, Linear::of(0));
      out.extent = number(mark.extent);
      map.marks.push_back(std::move(out));
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      map.indices.push_back(public_sum(sums[i].digits, sums[i].base));
      map.extents.push_back(Linear::of(extents[i]));
    }
  }

  IrBuilder& b_;
  std::span<const Var* const> loops_;
  const VarRanges& ranges_;
  std::vector<DigitMark> marks_;
  std::vector<int32_t> depths_;  // by mark: position of its innermost loop
  IterMapError failure_ = IterMapError::kNone;
};

constexpr std::string_view kErrorNames[] = {
    "no error",
    "a binding is not affine",
    "a divisor depends on a loop",
    "a divisor does not divide an extent",
    "the guard is not a conjunction of affine bounds",
    "the guard does not cut a whole fused loop",
    "two iteration variables share a loop",
    "a range is not traversed completely",
    "an extent is not constant",
};

}  // namespace

std::string_view to_string(IterMapError error) {
  return kErrorNames[static_cast<std::size_t>(error)];
}

IterMapResult detect_iter_map(IrBuilder& b, std::span<const Expr> bindings,
                              std::span<const Var* const> loops, Expr guard,
                              const VarRanges& ranges, IterMapLevel level) {
  return Detector(b, loops, ranges).run(bindings, guard, level);
}

Result<std::vector<Expr>> invert_iter_map(IrBuilder& b, const IterMap& map,
                                          std::span<const Var* const> loops,
                                          std::span<const Expr> outputs, const VarRanges& ranges) {
  if (!map.bijective || outputs.size() != map.indices.size()) {
    return error(Diag::kUnsupported, std::string("inverting a map that is not bijective"));
  }
  std::vector<Expr> values(map.marks.size());
  // Adds to each mark what one sum's value says of its digits.
  auto spread = [&](const IterSum& sum, Expr value) {
    const Expr rest = b.sub(value, to_expr(b, sum.base));
    for (const IterSplit& s : sum.splits) {
      Expr digit = b.floordiv(rest, b.int_imm(s.scale.coef));
      if (&s != &sum.splits.front()) digit = b.floormod(digit, b.int_imm(s.extent.coef));
      const Expr part = b.mul(digit, b.int_imm(s.lower.coef));
      Expr& target = values[static_cast<std::size_t>(s.mark)];
      target = target.defined() ? b.add(target, part) : part;
    }
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) spread(map.indices[i], outputs[i]);
  for (std::size_t m = map.marks.size(); m-- > 0;) {
    if (!map.marks[m].var.defined() && values[m].defined()) spread(map.marks[m].fused, values[m]);
  }
  std::vector<Expr> found;
  for (const Var* loop : loops) {
    Expr value = b.int_imm(0);
    for (std::size_t m = 0; m < map.marks.size(); ++m) {
      const Var* var = map.marks[m].var.as<Var>();
      if (var != nullptr && var->id == loop->id && values[m].defined()) value = values[m];
    }
    found.push_back(simplify(b, value, ranges));
  }
  return found;
}

IterMapResult affine_binding(IrBuilder& b, const Block& block, std::span<const Loop* const> loops,
                             const VarRanges& ranges) {
  std::vector<const Var*> vars;
  for (const Loop* loop : loops) vars.push_back(loop->var);
  std::vector<Expr> bindings;
  for (const IterVar& iter : block.iters) bindings.push_back(iter.binding);
  IterMapResult result =
      detect_iter_map(b, bindings, vars, block.guard, ranges, IterMapLevel::kSurjective);
  for (std::size_t i = 0; result.ok() && i < result.map.indices.size(); ++i) {
    const std::vector<IterSplit>& splits = result.map.indices[i].splits;
    if (!splits.empty() && splits.back().scale.coef != 1) {
      result.error = IterMapError::kNotCovering;
      result.index = static_cast<int32_t>(i);
    }
  }
  return result;
}

}  // namespace prunerc::ir
