#include "ir/analysis/flops.h"

#include <optional>
#include <string>
#include <vector>

#include "ir/analysis/evaluate.h"
#include "ir/analysis/interval.h"
#include "ir/visit.h"

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
    case Intrinsic::kAbs:
      (is_float(call.dtype) ? out->compare : out->integer) += 1;
      return;
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

  // Share of the surrounding iterations in which the condition holds; 1 if that cannot be enumerated.
  double share(Expr condition) {
    std::vector<Bound> used;
    double points = 1;
    bool known = true;
    walk(condition, [&](Expr part) {
      known &= part.as<Load>() == nullptr && part.as<TileParam>() == nullptr;
      const Var* v = part.as<Var>();
      if (v == nullptr) return known;
      for (const Bound& b : used) {
        if (b.var->id == v->id) return known;
      }
      bool found = false;
      for (const Bound& b : loops_) {
        if (b.var->id != v->id) continue;
        used.push_back(b);
        points *= static_cast<double>(b.extent);
        found = true;
      }
      known &= found;
      return known;
    });
    if (!known || points > kMaxPoints) return 1;
    Point at;
    for (const Bound& b : used) at.vars.emplace_back(b.var->id, 0);
    int64_t holds = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(points); ++i) {
      int64_t rest = i;
      for (std::size_t d = 0; d < used.size(); ++d) {
        at.vars[d].second = rest % used[d].extent;
        rest /= used[d].extent;
      }
      const std::optional<int64_t> value = evaluate(condition, at);
      if (!value) return 1;
      holds += *value != 0 ? 1 : 0;
    }
    return static_cast<double>(holds) / points;
  }

  void block(const Block& b, double times) {
    double inits = times;
    for (const IterVar& iter : b.iters) {
      if (iter.kind == IterKind::kReduce) inits /= static_cast<double>(constant(iter.extent));
    }
    const double ran = b.guard.defined() ? times * share(b.guard) : times;
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
                        const double taken = share(n.condition);
                        OpCounts once;
                        count_into(n.condition, &once);
                        total_ += scaled(once, times);
                        stmt(n.then_body, times * taken);
                        const double other = taken < 1 ? 1 - taken : 1;
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
      if (c == nullptr) return error(Diag::kUnsupported, std::string("a shape with tile parameters"));
      bytes *= c->value;
    }
    total += bytes;
  }
  return total;
}

}  // namespace prunerc::ir
