#include "ir/analysis/carried.h"

#include "ir/arith/feasible.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <optional>
#include <unordered_map>

namespace prunerc::ir {
namespace {

using Indices = std::unordered_map<VarId, std::size_t>;

/// Far from overflow in all sums that are formed here.
constexpr int64_t kLargest = int64_t{1} << 45;

// Turns index expressions into rows of a system.
class Translator {
 public:
  explicit Translator(const VarRanges& outside) : outside_(outside) {}

  AffineSystem& system() { return system_; }

  /// False if the extent is no usable constant.
  bool bind(const Axis& axis, Indices& to) {
    const std::optional<int64_t> extent = constant_value(axis.extent);
    if (!extent || *extent < 1 || *extent > kLargest) return false;
    to[axis.var->id] = add_var(0, *extent - 1);
    return true;
  }

  /// Nullopt if the expression is not affine (with quotients and remainders by constants).
  std::optional<AffineRow> row(Expr e, const Indices& local) {
    AffineRow out;
    if (const std::optional<int64_t> value = constant_value(e)) {
      out.constant = *value;
      return out;
    }
    if (const Var* var = e.as<Var>()) return var_row(*var, local);
    const BinaryNode* node = as_binary(e);
    if (node == nullptr || e.dtype() != DType::kI64) return std::nullopt;
    const std::optional<AffineRow> lhs = row(node->lhs, local);
    const std::optional<AffineRow> rhs = row(node->rhs, local);
    if (!lhs || !rhs) return std::nullopt;
    switch (e.kind()) {
      case ExprKind::kAdd: return sum(*lhs, *rhs, 1);
      case ExprKind::kSub: return sum(*lhs, *rhs, -1);
      case ExprKind::kMul:
        if (rhs->is_constant()) return sum(out, *lhs, rhs->constant);
        if (lhs->is_constant()) return sum(out, *rhs, lhs->constant);
        return std::nullopt;
      case ExprKind::kFloorDiv: return quotient(*lhs, *rhs);
      case ExprKind::kFloorMod: {
        const std::optional<AffineRow> whole = quotient(*lhs, *rhs);
        return whole ? sum(*lhs, *whole, -rhs->constant) : std::nullopt;
      }
      default: return std::nullopt;
    }
  }

  /// False if the condition is not a conjunction of affine comparisons; what is one is required.
  bool require(Expr condition, const Indices& local) {
    if (const And* both = condition.as<And>()) {
      const bool left = require(both->lhs, local);
      return require(both->rhs, local) && left;
    }
    const ExprKind kind = condition.kind();
    const bool compares = kind == ExprKind::kLt || kind == ExprKind::kLe || kind == ExprKind::kEq;
    const BinaryNode* node = as_binary(condition);
    if (!compares || node->lhs.dtype() != DType::kI64) return false;
    const std::optional<AffineRow> lhs = row(node->lhs, local);
    const std::optional<AffineRow> rhs = row(node->rhs, local);
    if (!lhs || !rhs) return false;
    std::optional<AffineRow> distance = sum(*rhs, *lhs, -1);
    if (!distance) return false;
    if (kind == ExprKind::kLt) distance->constant -= 1;
    if (kind == ExprKind::kEq) {
      system_.require_zero(std::move(*distance));
    } else {
      system_.require_nonnegative(std::move(*distance));
    }
    return true;
  }

  std::size_t add_var(int64_t lo, int64_t hi) {
    bounds_.push_back({lo, hi});
    return system_.add_var(lo, hi);
  }

  static std::optional<AffineRow> sum(AffineRow a, const AffineRow& b, int64_t factor) {
    if (!a.add(b, factor)) return std::nullopt;
    return a;
  }

 private:
  std::optional<AffineRow> var_row(const Var& var, const Indices& local) {
    AffineRow out;
    if (const auto found = local.find(var.id); found != local.end()) {
      out.add(found->second, 1);
      return out;
    }
    auto found = shared_.find(var.id);
    if (found == shared_.end()) {
      const Interval range = outside_.interval(var.id);
      if (!range.is_bounded() || range.lo < -kLargest || range.hi > kLargest) return std::nullopt;
      found = shared_.emplace(var.id, add_var(range.lo, range.hi)).first;
    }
    out.add(found->second, 1);
    return out;
  }

  // floor(of / by), which is a variable of the system. One variable for equal quotients: digits of
  // a fused index must be seen to belong together.
  struct Quotient {
    AffineRow of;
    int64_t by;
    std::size_t var;
  };

  std::optional<AffineRow> quotient(const AffineRow& value, const AffineRow& divisor) {
    const int64_t by = divisor.constant;
    if (!divisor.is_constant() || by < 1 || by > kLargest || !reach(value)) return std::nullopt;
    if (const std::optional<Quotient> whole = unfold(value, by)) {
      if (std::optional<AffineRow> out = reduced_quotient(whole->of, whole->by)) return out;
    }
    return reduced_quotient(value, by);
  }

  // (rest + floor(of / d)) // by is (d*rest + of) // (d*by).
  std::optional<Quotient> unfold(const AffineRow& value, int64_t by) {
    for (const Quotient& inner : quotients_) {
      if (inner.var >= value.coefs.size() || value.coefs[inner.var] != 1) continue;
      AffineRow rest = value;
      rest.add(inner.var, -1);
      std::optional<AffineRow> of = sum(inner.of, rest, inner.by);
      if (!of || by > kLargest / inner.by || !reach(*of)) continue;
      return Quotient{std::move(*of), by * inner.by, 0};
    }
    return std::nullopt;
  }

  // Multiples of the divisor leave the quotient: (by*a + b) // by is a + b // by.
  std::optional<AffineRow> reduced_quotient(AffineRow value, int64_t by) {
    AffineRow out;
    for (std::size_t i = 0; i < value.coefs.size(); ++i) {
      out.add(i, floor_div(value.coefs[i], by));
      value.coefs[i] -= floor_div(value.coefs[i], by) * by;
    }
    out.constant = floor_div(value.constant, by);
    value.constant -= out.constant * by;
    while (!value.coefs.empty() && value.coefs.back() == 0) value.coefs.pop_back();
    for (const Quotient& known : quotients_) {
      if (known.by == by && known.of.coefs == value.coefs && known.of.constant == value.constant) {
        out.add(known.var, 1);
        return out;
      }
    }
    const std::optional<std::size_t> var = add_quotient(value, by);
    if (!var) return std::nullopt;
    quotients_.push_back({std::move(value), by, *var});
    out.add(*var, 1);
    return out;
  }

  // q with 0 <= value - by*q < by.
  std::optional<std::size_t> add_quotient(const AffineRow& value, int64_t by) {
    const std::optional<Interval> range = reach(value);
    if (!range) return std::nullopt;
    const std::size_t var = add_var(floor_div(range->lo, by), floor_div(range->hi, by));
    AffineRow whole;
    whole.add(var, 1);
    std::optional<AffineRow> rest = sum(value, whole, -by);
    if (!rest) return std::nullopt;
    system_.require_nonnegative(*rest);
    AffineRow below;
    below.constant = by - 1;
    std::optional<AffineRow> room = sum(below, *rest, -1);
    if (!room) return std::nullopt;
    system_.require_nonnegative(std::move(*room));
    return var;
  }

  // The values of a row, if they stay far from overflow.
  std::optional<Interval> reach(const AffineRow& value) const {
    Interval range = Interval::point(value.constant);
    for (std::size_t i = 0; i < value.coefs.size(); ++i) {
      range = range + Interval::point(value.coefs[i]) * Interval{bounds_[i].lo, bounds_[i].hi};
    }
    if (!range.is_bounded() || range.lo < -kLargest || range.hi > kLargest) return std::nullopt;
    return range;
  }

  const VarRanges& outside_;
  AffineSystem system_;
  std::vector<Interval> bounds_;  // by variable of the system
  Indices shared_;
  std::vector<Quotient> quotients_;
};

// One question: both touches at points whose first `equal` chain axes agree, and where the next one
// is smaller in x than in y (or the other way round).
class Question {
 public:
  Question(const Touch& x, const Touch& y, const VarRanges& outside)
      : x_(x), y_(y), translator_(outside) {}

  Proof ask(std::size_t equal, bool x_first, const ProveOptions& options) {
    const bool bound = bind(x_, x_vars_) && bind(y_, y_vars_);
    if (!bound) return Proof::kUnknown;
    relate(equal, x_first);
    for (Expr condition : x_.conditions) exact_ = translator_.require(condition, x_vars_) && exact_;
    for (Expr condition : y_.conditions) exact_ = translator_.require(condition, y_vars_) && exact_;
    for (std::size_t d = 0; d < x_.region.box.size(); ++d) meet(d);
    const Proof found = translator_.system().feasible(options);
    return found == Proof::kYes && !exact_ ? Proof::kUnknown : found;
  }

 private:
  bool bind(const Touch& touch, Indices& vars) {
    bool ok = true;
    for (const Axis& axis : touch.chain) ok = ok && translator_.bind(axis, vars);
    for (const Axis& axis : touch.inner) ok = ok && translator_.bind(axis, vars);
    return ok;
  }

  // y's value of a chain axis minus x's.
  AffineRow step(std::size_t axis) {
    AffineRow out;
    out.add(y_vars_.at(y_.chain[axis].var->id), 1);
    out.add(x_vars_.at(x_.chain[axis].var->id), -1);
    return out;
  }

  void relate(std::size_t equal, bool x_first) {
    for (std::size_t i = 0; i < equal; ++i) translator_.system().require_zero(step(i));
    AffineRow ahead;
    ahead.constant = -1;
    ahead.add(step(equal), x_first ? 1 : -1);
    translator_.system().require_nonnegative(std::move(ahead));
  }

  void meet(std::size_t d) {
    std::optional<AffineRow> x = place(x_, x_vars_, d);
    const std::optional<AffineRow> y = place(y_, y_vars_, d);
    if (x && y) x = Translator::sum(*x, *y, -1);
    if (!x || !y) {
      exact_ = false;
      return;
    }
    translator_.system().require_zero(std::move(*x));
  }

  // Some index of the region's dimension d.
  std::optional<AffineRow> place(const Touch& touch, const Indices& vars, std::size_t d) {
    const Range& range = touch.region.box[d];
    std::optional<AffineRow> out = translator_.row(range.min, vars);
    const std::optional<int64_t> extent = constant_value(range.extent);
    if (!out || !extent || *extent < 1 || *extent > kLargest) return std::nullopt;
    if (*extent > 1) {
      exact_ = false;
      out->add(translator_.add_var(0, *extent - 1), 1);
    }
    return out;
  }

  const Touch& x_;
  const Touch& y_;
  Translator translator_;
  Indices x_vars_, y_vars_;
  bool exact_ = true;
};

// A block's accesses below a loop.
class Collector {
 public:
  Collector(IrBuilder& b, const Loop& loop) : b_(b), loop_(loop) {}

  struct Found {
    const Block* block;
    bool writes;
    bool certain;  // nothing but loops and the block's guard decides whether it happens
    Touch touch;
  };

  std::vector<Found> run() {
    visit(loop_.body);
    return std::move(found_);
  }

 private:
  void visit(Stmt s) {
    if (!s.defined()) return;
    if (const Loop* loop = s.as<Loop>()) {
      inner_.push_back({loop->var, loop->extent});
      visit(loop->body);
      inner_.pop_back();
    } else if (const Block* block = s.as<Block>()) {
      for (const Access& access : block->reads) add(*block, access, false);
      for (const Access& access : block->writes) {
        add(*block, access, true);
        // A reduction need not declare that it reads its accumulator.
        if (block->init.defined()) add(*block, access, false);
      }
    } else {
      const bool outer = certain_;
      certain_ = certain_ && s.as<If>() == nullptr;
      for_each_child(
          s, [&](Stmt child) { visit(child); }, [](Expr) {});
      certain_ = outer;
    }
  }

  void add(const Block& block, const Access& access, bool writes) {
    Touch touch{{{loop_.var, loop_.extent}}, inner_, {}, bound_region(b_, block, access)};
    if (block.guard.defined()) touch.conditions.push_back(block.guard);
    found_.push_back({&block, writes, certain_, std::move(touch)});
  }

  IrBuilder& b_;
  const Loop& loop_;
  std::vector<Axis> inner_;
  bool certain_ = true;
  std::vector<Found> found_;
};

}  // namespace

Proof share_element(const Touch& x, const Touch& y, PointOrder order, const VarRanges& outside,
                    const ProveOptions& options) {
  Proof all = Proof::kNo;
  for (std::size_t equal = 0; equal < x.chain.size(); ++equal) {
    for (const bool x_first : {true, false}) {
      // Of one access with itself either point may come first: the questions are one.
      if (!x_first && (order == PointOrder::kBefore || &x == &y)) continue;
      const Proof one = Question(x, y, outside).ask(equal, x_first, options);
      if (one == Proof::kYes) return one;
      if (one == Proof::kUnknown) all = one;
    }
  }
  return all;
}

std::vector<CarriedDependence> carried_dependences(const Program& program, const LoopIndex& index,
                                                   LoopId id) {
  std::vector<CarriedDependence> out;
  const Loop* loop = index.loop(id);
  if (loop == nullptr) return out;
  IrBuilder b(program);
  const VarRanges outside = ranges_inside(program, index, id);
  const std::vector<Collector::Found> found = Collector(b, *loop).run();
  for (const Collector::Found& from : found) {
    for (const Collector::Found& to : found) {
      if (from.touch.region.buffer != to.touch.region.buffer) continue;
      if (!from.writes && !to.writes) continue;
      Proof proof = share_element(from.touch, to.touch, PointOrder::kBefore, outside);
      if (proof == Proof::kNo) continue;
      if (!from.certain || !to.certain) proof = Proof::kUnknown;
      const DepKind kind = !from.writes ? DepKind::kWriteAfterRead
                           : to.writes  ? DepKind::kWriteAfterWrite
                                        : DepKind::kReadAfterWrite;
      out.push_back({from.block->id, to.block->id, from.touch.region.buffer, kind, proof});
    }
  }
  return out;
}

}  // namespace prunerc::ir
