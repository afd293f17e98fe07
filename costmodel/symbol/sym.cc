#include "costmodel/symbol/sym.h"

#include <algorithm>
#include <bit>

namespace prunerc::costmodel {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

uint64_t hash_of(const SymNode& n) {
  uint64_t h = static_cast<uint64_t>(n.op) * 0x9E3779B97F4A7C15ULL;
  for (const int32_t operand : {n.a, n.b, n.c}) {
    h = (h ^ static_cast<uint32_t>(operand)) * 0xff51afd7ed558ccdULL;
    h ^= h >> 32;
  }
  if (n.op == SymOp::kConstant) h = (h ^ std::bit_cast<uint64_t>(n.value)) * 0xff51afd7ed558ccdULL;
  return h ^ (h >> 29);
}

bool equal_nodes(const SymNode& x, const SymNode& y) {
  return x.op == y.op && x.a == y.a && x.b == y.b && x.c == y.c &&
         std::bit_cast<uint64_t>(x.value) == std::bit_cast<uint64_t>(y.value);
}

bool commutes(SymOp op) {
  return op == SymOp::kAdd || op == SymOp::kMul || op == SymOp::kMin || op == SymOp::kMax ||
         op == SymOp::kEqual || op == SymOp::kAnd || op == SymOp::kOr;
}

// Of a product or quotient of bounds; 0 times infinity is 0 here, since values are finite.
SymRange corners(SymRange a, SymRange b, bool divide) {
  if (divide && b.lo <= 0 && b.hi >= 0) return {};
  SymRange out = {kInfinity, -kInfinity, false};
  for (const double x : {a.lo, a.hi}) {
    for (const double y : {b.lo, b.hi}) {
      double v = divide ? x / y : x * y;
      if (std::isnan(v)) {
        if (divide) return {};
        v = 0;
      }
      out.lo = std::min(out.lo, v);
      out.hi = std::max(out.hi, v);
    }
  }
  return out;
}

SymRange binary_range(SymOp op, SymRange a, SymRange b) {
  const bool integers = a.is_integer && b.is_integer;
  switch (op) {
    case SymOp::kAdd: return {a.lo + b.lo, a.hi + b.hi, integers};
    case SymOp::kSub: return {a.lo - b.hi, a.hi - b.lo, integers};
    case SymOp::kMul: {
      SymRange r = corners(a, b, false);
      r.is_integer = integers;
      return r;
    }
    case SymOp::kDiv: return corners(a, b, true);
    case SymOp::kMin: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi), integers};
    case SymOp::kMax: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi), integers};
    default: return {0, 1, true};  // truth values
  }
}

SymRange unary_range(SymOp op, SymRange a) {
  switch (op) {
    case SymOp::kNot: return {0, 1, true};
    case SymOp::kCeil: return {std::ceil(a.lo), std::ceil(a.hi), true};
    case SymOp::kFloor: return {std::floor(a.lo), std::floor(a.hi), true};
    case SymOp::kAbs: {
      const double most = std::max(std::abs(a.lo), std::abs(a.hi));
      const double least = a.lo <= 0 && a.hi >= 0 ? 0 : std::min(std::abs(a.lo), std::abs(a.hi));
      return {least, most, a.is_integer};
    }
    case SymOp::kTwosPart: return {a.lo > 0 ? 1.0 : 0.0, std::max(a.hi, 0.0), true};
    default: return {};
  }
}

}  // namespace

// Nothing is allocated for a program without parameters.
SymGraph::SymGraph() = default;

SymRange range_of(Sym a) {
  if (!a.is_constant()) return a.graph()->node(a.node()).range;
  return {a.value(), a.value(), std::floor(a.value()) == a.value()};
}

Sym SymGraph::symbol(int32_t id) {
  const SymNode& n = node(id);
  return n.op == SymOp::kConstant ? Sym(n.value) : Sym(this, id);
}

void SymGraph::grow() {
  table_.assign(std::max<std::size_t>(1024, table_.size() * 2), -1);
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::size_t at = hash_of(nodes_[i]) & mask;
    while (table_[at] >= 0) at = (at + 1) & mask;
    table_[at] = static_cast<int32_t>(i);
  }
}

int32_t SymGraph::intern_id(const SymNode& made) {
  if (nodes_.size() * 2 >= table_.size()) grow();
  const std::size_t mask = table_.size() - 1;
  std::size_t at = hash_of(made) & mask;
  while (table_[at] >= 0) {
    if (equal_nodes(node(table_[at]), made)) return table_[at];
    at = (at + 1) & mask;
  }
  const auto id = static_cast<int32_t>(nodes_.size());
  table_[at] = id;
  nodes_.push_back(made);
  return id;
}

Sym SymGraph::intern(const SymNode& made) {
  if (made.range.lo == made.range.hi) return Sym(made.range.lo);
  return Sym(this, intern_id(made));
}

int32_t SymGraph::node_of(Sym a) {
  if (!a.is_constant()) return a.node();
  SymNode n;
  // One zero, so that equal numbers are equal nodes.
  n.value = a.value() == 0 ? 0 : a.value();
  n.range = range_of(a);
  return intern_id(n);
}

Sym SymGraph::param(ir::ParamId id, double lo, double hi) {
  if (lo == hi) return Sym(lo);
  SymNode n;
  n.op = SymOp::kParam;
  n.a = id.value;
  n.range = {lo, hi, true};
  return intern(n);
}

Sym SymGraph::coefficient(int32_t slot) {
  SymNode n;
  n.op = SymOp::kCoefficient;
  n.a = slot;
  return intern(n);
}

Sym SymGraph::within(Sym a, double lo, double hi) {
  if (a.is_constant()) return a;
  SymRange& range = nodes_[static_cast<std::size_t>(a.node())].range;
  range.lo = std::max(range.lo, lo);
  range.hi = std::min(range.hi, hi);
  return a;
}

namespace {

// What needs no new node: neutral elements and what bounds decide. Values are finite.
bool fold_binary(SymOp op, Sym a, Sym b, Sym* out) {
  const auto give = [&](Sym s) {
    *out = s;
    return true;
  };
  const SymRange ra = range_of(a), rb = range_of(b);
  switch (op) {
    case SymOp::kAdd:
      if (a.is(0)) return give(b);
      return b.is(0) && give(a);
    case SymOp::kSub:
      if (a.same(b)) return give(0);
      return b.is(0) && give(a);
    case SymOp::kMul:
      if (a.is(0) || b.is(0)) return give(0);
      if (a.is(1)) return give(b);
      return b.is(1) && give(a);
    case SymOp::kDiv:
      if (a.is(0)) return give(0);
      return b.is(1) && give(a);
    case SymOp::kMin:
      if (a.same(b) || ra.hi <= rb.lo) return give(a);
      return rb.hi <= ra.lo && give(b);
    case SymOp::kMax:
      if (a.same(b) || ra.lo >= rb.hi) return give(a);
      return rb.lo >= ra.hi && give(b);
    case SymOp::kLess:
      if (ra.hi < rb.lo) return give(1);
      return (a.same(b) || ra.lo >= rb.hi) && give(0);
    case SymOp::kLessEqual:
      if (a.same(b) || ra.hi <= rb.lo) return give(1);
      return ra.lo > rb.hi && give(0);
    case SymOp::kEqual:
      if (a.same(b)) return give(1);
      return (ra.hi < rb.lo || rb.hi < ra.lo) && give(0);
    case SymOp::kAnd:
      if (a.is(0) || b.is(0)) return give(0);
      if (a.is(1) || a.same(b)) return give(b);
      return b.is(1) && give(a);
    case SymOp::kOr:
      if (a.is(1) || b.is(1)) return give(1);
      if (a.is(0) || a.same(b)) return give(b);
      return b.is(0) && give(a);
    default: return false;
  }
}

}  // namespace

Sym SymGraph::binary(SymOp op, Sym a, Sym b) {
  Sym folded;
  if (fold_binary(op, a, b, &folded)) return folded;
  // A quotient by a power of two is a product, to the last bit.
  if (op == SymOp::kDiv && b.is_constant() && std::isnormal(b.value()) &&
      std::isnormal(1 / b.value()) &&
      (std::bit_cast<uint64_t>(b.value()) & symbol::kMantissa) == 0) {
    return binary(SymOp::kMul, a, 1 / b.value());
  }
  SymNode n;
  n.op = op;
  n.a = node_of(a);
  n.b = node_of(b);
  if (commutes(op) && n.a > n.b) std::swap(n.a, n.b);
  n.range = binary_range(op, range_of(a), range_of(b));
  return intern(n);
}

Sym SymGraph::unary(SymOp op, Sym a) {
  const SymRange range = range_of(a);
  if ((op == SymOp::kCeil || op == SymOp::kFloor) && range.is_integer) return a;
  if (op == SymOp::kAbs && range.lo >= 0) return a;
  if (op == SymOp::kNot && node(a.node()).op == SymOp::kNot) return symbol(node(a.node()).a);
  SymNode n;
  n.op = op;
  n.a = node_of(a);
  n.range = unary_range(op, range);
  return intern(n);
}

Sym SymGraph::select(Sym condition, Sym on_true, Sym on_false) {
  if (node(condition.node()).op == SymOp::kNot) {
    return select(symbol(node(condition.node()).a), on_false, on_true);
  }
  if (on_true.is(1) && on_false.is(0)) return condition;
  const auto chosen = [&](Sym s, bool taken) {
    if (s.is_constant() || node(s.node()).op != SymOp::kSelect) return s;
    const SymNode& inner = node(s.node());
    return inner.a == condition.node() ? symbol(taken ? inner.b : inner.c) : s;
  };
  const Sym yes = chosen(on_true, true), no = chosen(on_false, false);
  if (yes.same(no)) return yes;
  SymNode n;
  n.op = SymOp::kSelect;
  n.a = condition.node();
  n.b = node_of(yes);
  n.c = node_of(no);
  const SymRange ry = range_of(yes), rn = range_of(no);
  n.range = {std::min(ry.lo, rn.lo), std::max(ry.hi, rn.hi), ry.is_integer && rn.is_integer};
  return intern(n);
}

namespace {

Sym make(SymOp op, Sym a, Sym b) {
  if (a.is_constant() && b.is_constant()) return apply(op, a.value(), b.value());
  SymGraph* graph = a.is_constant() ? b.graph() : a.graph();
  return graph->binary(op, a, b);
}

Sym make(SymOp op, Sym a) {
  return a.is_constant() ? Sym(apply(op, a.value(), 0)) : a.graph()->unary(op, a);
}

}  // namespace

Sym operator+(Sym a, Sym b) { return make(SymOp::kAdd, a, b); }
Sym operator-(Sym a, Sym b) { return make(SymOp::kSub, a, b); }
Sym operator*(Sym a, Sym b) { return make(SymOp::kMul, a, b); }
Sym operator/(Sym a, Sym b) { return make(SymOp::kDiv, a, b); }
Sym min(Sym a, Sym b) { return make(SymOp::kMin, a, b); }
Sym max(Sym a, Sym b) { return make(SymOp::kMax, a, b); }
Sym ceil(Sym a) { return make(SymOp::kCeil, a); }
Sym floor(Sym a) { return make(SymOp::kFloor, a); }
Sym abs(Sym a) { return make(SymOp::kAbs, a); }
Sym log2(Sym a) { return make(SymOp::kLog2, a); }
Sym power_of_two_factor(Sym a) { return make(SymOp::kTwosPart, a); }
Sym less(Sym a, Sym b) { return make(SymOp::kLess, a, b); }
Sym less_equal(Sym a, Sym b) { return make(SymOp::kLessEqual, a, b); }
Sym equal(Sym a, Sym b) { return make(SymOp::kEqual, a, b); }
Sym logical_and(Sym a, Sym b) { return make(SymOp::kAnd, a, b); }
Sym logical_or(Sym a, Sym b) { return make(SymOp::kOr, a, b); }
Sym logical_not(Sym a) { return make(SymOp::kNot, a); }

Sym select(Sym condition, Sym on_true, Sym on_false) {
  if (condition.is_constant()) return condition.value() != 0 ? on_true : on_false;
  if (on_true.same(on_false)) return on_true;
  return condition.graph()->select(condition, on_true, on_false);
}

std::vector<double> evaluate(std::span<const Sym> symbols, std::span<const double> params,
                             std::span<const double> coefficients) {
  const SymGraph* graph = nullptr;
  int32_t last = -1;
  for (const Sym s : symbols) {
    if (s.is_constant()) continue;
    PRUNERC_CHECK(graph == nullptr || graph == s.graph(), "symbols of one graph");
    graph = s.graph();
    last = std::max(last, s.node());
  }
  std::vector<double> values(static_cast<std::size_t>(last + 1));
  const auto at = [&](int32_t id) { return values[static_cast<std::size_t>(id)]; };
  for (int32_t i = 0; i <= last; ++i) {
    const SymNode& n = graph->node(i);
    double& out = values[static_cast<std::size_t>(i)];
    if (n.op == SymOp::kParam) {
      out = params[static_cast<std::size_t>(n.a)];
    } else if (n.op == SymOp::kCoefficient) {
      const auto slot = static_cast<std::size_t>(n.a);
      out = slot < coefficients.size() ? coefficients[slot] : 0;
    } else if (n.op == SymOp::kConstant) {
      out = n.value;
    } else if (n.op == SymOp::kSelect) {
      out = at(n.a) != 0 ? at(n.b) : at(n.c);
    } else {
      out = apply(n.op, at(n.a), is_binary(n.op) ? at(n.b) : 0);
    }
  }
  std::vector<double> out;
  for (const Sym s : symbols) out.push_back(s.is_constant() ? s.value() : at(s.node()));
  return out;
}

}  // namespace prunerc::costmodel
