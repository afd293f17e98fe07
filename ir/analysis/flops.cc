#include "ir/analysis/flops.h"

#include "ir/arith/evaluate.h"
#include "ir/arith/interval.h"
#include "ir/visit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::ir {
namespace {

OpCounts scaled(OpCounts c, double factor) {
  for (double* part : {&c.mul_add, &c.divide, &c.special, &c.compare, &c.integer, &c.convert,
                       &c.loads, &c.stores}) {
    *part *= factor;
  }
  return c;
}

void count_call(const Call& call, OpCounts* out) {
  switch (call.intrinsic) {
    case Intrinsic::kFma: out->mul_add += 2; return;
    case Intrinsic::kAbs: (is_float(call.dtype) ? out->compare : out->integer) += 1; return;
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kRound: out->compare += 1; return;
    case Intrinsic::kExp:
    case Intrinsic::kLog:
    case Intrinsic::kSqrt:
    case Intrinsic::kRsqrt:
    case Intrinsic::kTanh:
    case Intrinsic::kErf:
    case Intrinsic::kSigmoid:
    case Intrinsic::kSin:
    case Intrinsic::kCos:
    case Intrinsic::kPow: out->special += 1; return;
  }
}

void count_binary(Expr e, const BinaryNode& n, OpCounts* out) {
  if (!is_float(n.lhs.dtype())) {
    out->integer += 1;
    return;
  }
  switch (e.kind()) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul: out->mul_add += 1; return;
    case ExprKind::kDiv: out->divide += 1; return;
    default: out->compare += 1; return;
  }
}

// Whether an expression is about positions only: such arithmetic is not counted.
bool is_index(Expr e) {
  bool has_data = false;
  walk(e, [&](Expr part) {
    has_data |= part.as<Load>() != nullptr || is_float(part.dtype());
    return !has_data;
  });
  return !has_data;
}

void count_into(Expr e, OpCounts* out) {
  if (e.as<IntImm>() == nullptr && e.as<FloatImm>() == nullptr && is_index(e)) return;
  if (const Load* load = e.as<Load>()) {
    out->loads += 1;
    for (Expr index : load->indices) count_into(index, out);  // data-dependent subscripts
    return;
  }
  if (const BinaryNode* n = as_binary(e)) {
    count_binary(e, *n, out);
  } else if (const Call* call = e.as<Call>()) {
    count_call(*call, out);
  } else if (const Select* select = e.as<Select>()) {
    // Choosing by position (padding) is addressing, not arithmetic.
    if (!is_index(select->condition)) (is_float(e.dtype()) ? out->compare : out->integer) += 1;
  } else if (e.as<Cast>() != nullptr) {
    out->convert += 1;
  } else if (e.as<Not>() != nullptr) {
    out->integer += 1;
  }
  for_each_child(e, [&](Expr child) { count_into(child, out); });
}

class Counter {
 public:
  Result<OpCounts> run(Stmt root) {
    if (root.defined()) stmt(root, 1);
    if (symbolic_) return error(Diag::kUnsupported, std::string("counting with tile parameters"));
    return total_;
  }

 private:
  struct Bound {
    const Var* var;
    int64_t extent;
  };

  int64_t constant(Expr extent) {
    if (const IntImm* c = extent.as<IntImm>()) return c->value;
    bool has_param = false;
    walk(extent, [&](Expr part) {
      has_param |= part.as<TileParam>() != nullptr;
      return true;
    });
    symbolic_ |= has_param;
    // An extent that depends on outer loops (a clamped tail) counts with its largest value.
    VarRanges ranges;
    for (const Bound& b : loops_) ranges.bind(b.var->id, {0, b.extent - 1});
    const Interval bounds = interval_of(extent, ranges);
    return bounds.is_bounded() && bounds.hi > 0 ? bounds.hi : 1;
  }

  // Share of the surrounding iterations in which the condition holds; nullopt if that cannot be
  // enumerated. Conjuncts over different variables are independent and are counted apart.
  std::optional<double> share(Expr condition) {
    std::vector<Group> groups;
    if (!add_conjuncts(condition, groups)) return std::nullopt;
    double product = 1;
    for (const Group& group : groups) {
      const std::optional<double> part = group_share(group);
      if (!part.has_value()) return std::nullopt;
      product *= *part;
    }
    return product;
  }

  // Conjuncts that share variables.
  struct Group {
    std::vector<Expr> conditions;
    std::vector<Bound> vars;
  };

  static bool has_var(const Group& group, VarId id) {
    return std::any_of(group.vars.begin(), group.vars.end(),
                       [&](const Bound& b) { return b.var->id == id; });
  }

  bool add_conjuncts(Expr condition, std::vector<Group>& groups) {
    if (const And* both = condition.as<And>()) {
      return add_conjuncts(both->lhs, groups) && add_conjuncts(both->rhs, groups);
    }
    Group merged;
    bool known = true;
    walk(condition, [&](Expr part) {
      known = known && part.kind() != ExprKind::kLoad && part.kind() != ExprKind::kTileParam;
      const Var* v = part.as<Var>();
      if (v == nullptr || has_var(merged, v->id)) return known;
      const auto at = std::find_if(loops_.begin(), loops_.end(),
                                   [&](const Bound& b) { return b.var->id == v->id; });
      known = known && at != loops_.end();
      if (known) merged.vars.push_back(*at);
      return known;
    });
    if (!known) return false;
    merged.conditions.push_back(condition);
    for (std::size_t i = 0; i < groups.size();) {
      const bool touches = std::any_of(merged.vars.begin(), merged.vars.end(), [&](const Bound& b) {
        return has_var(groups[i], b.var->id);
      });
      if (!touches) {
        ++i;
        continue;
      }
      for (const Bound& b : groups[i].vars) {
        if (!has_var(merged, b.var->id)) merged.vars.push_back(b);
      }
      merged.conditions.insert(merged.conditions.end(), groups[i].conditions.begin(),
                               groups[i].conditions.end());
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    }
    groups.push_back(std::move(merged));
    return true;
  }

  static std::optional<double> group_share(const Group& group) {
    double points = 1;
    Point at;
    for (const Bound& b : group.vars) {
      points *= static_cast<double>(b.extent);
      at.vars.emplace_back(b.var->id, 0);
    }
    if (points > kMaxPoints) return std::nullopt;
    int64_t holds = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(points); ++i) {
      int64_t rest = i;
      for (std::size_t d = 0; d < group.vars.size(); ++d) {
        at.vars[d].second = rest % group.vars[d].extent;
        rest /= group.vars[d].extent;
      }
      bool all = true;
      for (Expr condition : group.conditions) {
        const std::optional<int64_t> value = evaluate(condition, at);
        if (!value.has_value()) return std::nullopt;
        all = all && *value != 0;
      }
      holds += all ? 1 : 0;
    }
    return static_cast<double>(holds) / points;
  }

  void block(const Block& b, double times) {
    const double ran = b.guard.defined() ? times * share(b.guard).value_or(1) : times;
    double inits = ran;
    for (const IterVar& iter : b.iters) {
      if (iter.kind == IterKind::kReduce) inits /= static_cast<double>(constant(iter.extent));
    }
    // Inside, the iteration variables take the loops' place.
    std::vector<Bound> outer;
    outer.swap(loops_);
    for (const IterVar& iter : b.iters) loops_.push_back({iter.var, constant(iter.extent)});
    if (b.init.defined()) stmt(b.init, inits);
    stmt(b.body, ran);
    loops_.swap(outer);
  }

  void stmt(Stmt s, double times) {
    visit(s, Overload{[&](const Seq& n) {
                        for (Stmt child : n.stmts) stmt(child, times);
                      },
                      [&](const Loop& n) {
                        const int64_t extent = constant(n.extent);
                        loops_.push_back({n.var, extent});
                        stmt(n.body, times * static_cast<double>(extent));
                        loops_.pop_back();
                      },
                      [&](const Block& n) { block(n, times); },
                      [&](const Store& n) {
                        OpCounts once;
                        once.stores = 1;
                        for (Expr index : n.indices) count_into(index, &once);
                        count_into(n.value, &once);
                        total_ += scaled(once, times);
                      },
                      [&](const If& n) {
                        const std::optional<double> taken = share(n.condition);
                        OpCounts once;
                        count_into(n.condition, &once);
                        total_ += scaled(once, times);
                        stmt(n.then_body, times * taken.value_or(1));
                        const double other = taken.has_value() ? 1 - *taken : 1;
                        if (n.else_body.defined()) stmt(n.else_body, times * other);
                      },
                      [&](const Alloc& n) { stmt(n.body, times); }});
  }

  /// Guards are enumerated over at most so many points.
  static constexpr double kMaxPoints = 1 << 16;

  std::vector<Bound> loops_;
  OpCounts total_;
  bool symbolic_ = false;
};

}  // namespace

OpCounts& OpCounts::operator+=(const OpCounts& other) {
  mul_add += other.mul_add;
  divide += other.divide;
  special += other.special;
  compare += other.compare;
  integer += other.integer;
  convert += other.convert;
  loads += other.loads;
  stores += other.stores;
  return *this;
}

OpCounts count_ops(Expr e) {
  OpCounts out;
  count_into(e, &out);
  return out;
}

Result<OpCounts> count_ops(const Program& program) { return Counter().run(program.root()); }

Result<int64_t> compulsory_bytes(const Program& program) {
  int64_t total = 0;
  for (BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    int64_t bytes = byte_size(buffer.dtype);
    for (Expr extent : buffer.shape) {
      const IntImm* c = extent.as<IntImm>();
      if (c == nullptr)
        return error(Diag::kUnsupported, std::string("a shape with tile parameters"));
      bytes *= c->value;
    }
    total += bytes;
  }
  return total;
}

}  // namespace prunerc::ir
