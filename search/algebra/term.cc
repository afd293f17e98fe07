#include "search/algebra/term.h"

#include "ir/support/check.h"
#include "ir/support/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace prunerc::search::algebra {
namespace {

uint64_t hash_of(const Subscript& s, uint64_t h) {
  h = hash_combine(h, static_cast<uint64_t>(s.base));
  for (const Digit& d : s.digits) {
    for (const int64_t part : {int64_t{d.axis}, d.lower, d.extent, d.scale}) {
      h = hash_combine(h, static_cast<uint64_t>(part));
    }
  }
  return h;
}

uint64_t hash_of(const Term& t) {
  uint64_t h = hash_combine(static_cast<uint64_t>(t.op), static_cast<uint64_t>(t.kind));
  h = hash_combine(h, static_cast<uint64_t>(t.intrinsic) * 256 + static_cast<uint64_t>(t.dtype));
  h = hash_combine(h, hash_double(t.value));
  h = hash_combine(h, static_cast<uint64_t>(t.buffer.value));
  for (const Subscript& s : t.index) h = hash_of(s, h);
  for (const Condition& c : t.conditions) {
    h = hash_of(c.value, hash_combine(h, static_cast<uint64_t>(c.kind)));
  }
  for (const TermId arg : t.args) h = hash_combine(h, static_cast<uint64_t>(arg));
  return hash_combine(h, t.bound);
}

bool same_place(const Digit& a, const Digit& b) {
  return a.axis == b.axis && a.lower == b.lower && a.extent == b.extent;
}

// (x // lower) % extent * scale of a single digit x of scale 1.
bool compose_single(const Digit& outer, Digit x, Subscript* out) {
  if (x.extent != 0) {
    if (x.extent % outer.lower != 0) return false;
    x.extent /= outer.lower;
  }
  x.lower *= outer.lower;
  if (outer.extent != 0 && (x.extent == 0 || x.extent > outer.extent)) {
    if (x.extent % outer.extent != 0) return false;
    x.extent = outer.extent;
  }
  x.scale = outer.scale;
  *out = {{x}, 0};
  return true;
}

// The same of high*radix + low, where low < radix.
bool compose_pair(const Digit& outer, Digit high, Digit low, Subscript* out) {
  const int64_t radix = high.scale;
  high.scale = 1;
  const auto part = [&](const Digit& of, int64_t lower, int64_t extent, int64_t scale) {
    Subscript made;
    const bool ok = compose_single({outer.axis, lower, extent, scale * outer.scale}, of, &made);
    *out = *out + made;
    return ok;
  };
  *out = {};
  if (outer.lower % radix == 0) return part(high, outer.lower / radix, outer.extent, 1);
  if (radix % outer.lower != 0) return false;
  const int64_t quotient = radix / outer.lower;  // of low's part
  if (outer.extent == 0) return part(high, 1, 0, quotient) && part(low, outer.lower, 0, 1);
  if (quotient == outer.extent) return part(low, outer.lower, 0, 1);
  if (quotient % outer.extent == 0) return part(low, outer.lower, outer.extent, 1);
  if (outer.extent % quotient != 0) return false;
  return part(high, 1, outer.extent / quotient, quotient) && part(low, outer.lower, 0, 1);
}

// A digit of an axis that `inner` stands for.
bool compose(const Digit& digit, const Subscript& inner, Subscript* out) {
  if (digit.lower == 1 && digit.extent == 0) {
    *out = inner * digit.scale;
    return true;
  }
  if (inner.base != 0) return false;
  const std::vector<Digit>& d = inner.digits;
  if (d.size() == 1 && d[0].scale == 1) return compose_single(digit, d[0], out);
  if (d.size() != 2 || (d[0].scale != 1 && d[1].scale != 1)) return false;
  return d[1].scale == 1 ? compose_pair(digit, d[0], d[1], out)
                         : compose_pair(digit, d[1], d[0], out);
}

class Replacement {
 public:
  Replacement(TermGraph& graph, const AxisMap& map) : graph_(graph), map_(map) {}

  TermId run(TermId id) {
    if (const auto at = done_.find(id); at != done_.end()) return at->second;
    return done_[id] = fresh(graph_[id]);
  }

 private:
  // Takes a copy: the graph grows.
  TermId fresh(Term term) {
    for (Subscript& s : term.index) {
      if (!replace_axes(Subscript(s), map_, &s)) return -1;
    }
    for (Condition& c : term.conditions) {
      if (!replace_axes(Subscript(c.value), map_, &c.value)) return -1;
    }
    for (TermId& arg : term.args) {
      arg = run(arg);
      if (arg < 0) return -1;
    }
    AxisSet bound = term.bound;
    for (const auto& [axis, to] : map_) {
      if ((term.bound & axis_bit(axis)) != 0) bound &= ~axis_bit(axis);
    }
    for (const auto& [axis, to] : map_) {
      if ((term.bound & axis_bit(axis)) != 0) bound |= to.axes();
    }
    term.bound = bound;
    return graph_.put(std::move(term));
  }

  TermGraph& graph_;
  const AxisMap& map_;
  std::unordered_map<TermId, TermId> done_;
};

std::string digit_text(const Digit& d, std::span<const Axis> axes) {
  std::string text = axes[static_cast<std::size_t>(d.axis)].name;
  if (d.lower != 1) text += fmt::format("/{}", d.lower);
  if (d.extent != 0) text += fmt::format("%{}", d.extent);
  return d.scale == 1 ? text : fmt::format("{}*{}", text, d.scale);
}

std::string subscript_text(const Subscript& s, std::span<const Axis> axes) {
  std::string text;
  for (const Digit& d : s.digits) {
    text += (text.empty() ? "" : " + ") + digit_text(d, axes);
  }
  if (s.base != 0 || text.empty()) text += fmt::format("{}{}", text.empty() ? "" : " + ", s.base);
  return text;
}

std::string reduce_name(ir::ExprKind kind) {
  switch (kind) {
    case ir::ExprKind::kAdd: return "sum";
    case ir::ExprKind::kMul: return "prod";
    default: return std::string(ir::to_string(kind));
  }
}

}  // namespace

AxisId Subscript::plain() const {
  const bool is_plain = base == 0 && digits.size() == 1 && digits[0].lower == 1 &&
                        digits[0].extent == 0 && digits[0].scale == 1;
  return is_plain ? digits[0].axis : -1;
}

AxisSet Subscript::axes() const {
  AxisSet out = 0;
  for (const Digit& d : digits) out |= axis_bit(d.axis);
  return out;
}

bool names_position(const Condition& condition, std::span<const Axis> axes) {
  constexpr int64_t kNear = 3;
  const Subscript& value = condition.value;
  int64_t low = value.base, high = low;
  // With the extents that all axes have at least in one of the small programs.
  constexpr int64_t kSmall = 4;
  int64_t small_low = low, small_high = low;
  bool is_plain = true;
  for (const Digit& d : value.digits) {
    const int64_t extent = axes[static_cast<std::size_t>(d.axis)].extent;
    const int64_t left = (extent + d.lower - 1) / d.lower;
    const int64_t last = (d.extent == 0 ? left : std::min(left, d.extent)) - 1;
    (d.scale > 0 ? high : low) += d.scale * last;
    (d.scale > 0 ? small_high : small_low) += d.scale * std::min(last, kSmall - 1);
    is_plain = is_plain && d.lower == 1 && d.extent == 0 && std::abs(d.scale) == 1;
  }
  const bool is_order = condition.kind == Condition::Kind::kAtMostZero;
  const auto never_decides = [&](int64_t least, int64_t most) {
    return least > 0 || (is_order ? most <= 0 : most < 0);
  };
  if (never_decides(low, high)) return false;
  // Where two axes meet, s <= t + 1 say; the first steps of one; and of an order the last ones, whose bound
  // becomes smaller with the axis.
  if (value.digits.size() > 1) return !is_plain || never_decides(small_low, small_high);
  const int64_t first = std::abs(value.base);
  if (first <= 1) return false;
  return !is_order || !is_plain || (-low > kNear && high > kNear);
}

Subscript plain_subscript(AxisId axis) { return {{Digit{axis, 1, 0, 1}}, 0}; }

Subscript operator+(const Subscript& a, const Subscript& b) {
  Subscript out = a;
  out.base += b.base;
  for (const Digit& d : b.digits) {
    const auto at = std::find_if(out.digits.begin(), out.digits.end(),
                                 [&](const Digit& other) { return same_place(d, other); });
    if (at == out.digits.end()) {
      out.digits.push_back(d);
    } else if ((at->scale += d.scale) == 0) {
      out.digits.erase(at);
    }
  }
  std::sort(out.digits.begin(), out.digits.end());
  return out;
}

Subscript operator*(const Subscript& a, int64_t factor) {
  Subscript out;
  if (factor == 0) return out;
  out = a;
  out.base *= factor;
  for (Digit& d : out.digits) d.scale *= factor;
  return out;
}

TermId TermGraph::put(Term term) {
  term.free = 0;
  for (const Subscript& s : term.index) term.free |= s.axes();
  for (const Condition& c : term.conditions) term.free |= c.value.axes();
  for (const TermId arg : term.args) term.free |= (*this)[arg].free;
  term.free &= ~term.bound;
  std::vector<TermId>& same = by_hash_[hash_of(term)];
  for (const TermId id : same) {
    if ((*this)[id] == term) return id;
  }
  const auto id = static_cast<TermId>(terms_.size());
  terms_.push_back(std::move(term));
  same.push_back(id);
  return id;
}

TermId TermGraph::load(ir::BufferId buffer, std::vector<Subscript> index, ir::DType dtype) {
  Term t;
  t.op = TermOp::kLoad;
  t.dtype = dtype;
  t.buffer = buffer;
  t.index = std::move(index);
  return put(std::move(t));
}

TermId TermGraph::constant(double value, ir::DType dtype) {
  Term t;
  t.dtype = dtype;
  t.value = value;
  return put(std::move(t));
}

TermId TermGraph::mask(std::vector<Condition> conditions) {
  Term t;
  t.op = TermOp::kMask;
  t.dtype = ir::DType::kBool;
  std::sort(conditions.begin(), conditions.end());
  conditions.erase(std::unique(conditions.begin(), conditions.end()), conditions.end());
  t.conditions = std::move(conditions);
  return put(std::move(t));
}

TermId TermGraph::binary(ir::ExprKind kind, TermId a, TermId b) {
  PRUNERC_DCHECK((*this)[a].dtype == (*this)[b].dtype, "operands of one type");
  Term t;
  t.op = TermOp::kBinary;
  t.kind = kind;
  t.dtype = (*this)[a].dtype;
  t.args = {a, b};
  return put(std::move(t));
}

TermId TermGraph::call(ir::Intrinsic intrinsic, std::span<const TermId> args) {
  Term t;
  t.op = TermOp::kCall;
  t.intrinsic = intrinsic;
  t.dtype = (*this)[args[0]].dtype;
  t.args.assign(args.begin(), args.end());
  return put(std::move(t));
}

TermId TermGraph::select(TermId mask, TermId on_true, TermId on_false) {
  Term t;
  t.op = TermOp::kSelect;
  t.dtype = (*this)[on_true].dtype;
  t.args = {mask, on_true, on_false};
  return put(std::move(t));
}

TermId TermGraph::cast(ir::DType dtype, TermId arg) {
  if ((*this)[arg].dtype == dtype) return arg;
  Term t;
  t.op = TermOp::kCast;
  t.dtype = dtype;
  t.args = {arg};
  return put(std::move(t));
}

TermId TermGraph::reduce(ir::ExprKind kind, AxisSet bound, TermId arg) {
  if (bound == 0) return arg;
  Term t;
  t.op = TermOp::kReduce;
  t.kind = kind;
  t.dtype = (*this)[arg].dtype;
  t.args = {arg};
  t.bound = bound;
  return put(std::move(t));
}

TermId TermGraph::with_args(TermId id, std::span<const TermId> args) {
  Term t = (*this)[id];
  PRUNERC_DCHECK(t.args.size() == args.size(), "as many args as before");
  t.args.assign(args.begin(), args.end());
  return put(std::move(t));
}

TermId replace_axes(TermGraph& graph, TermId id, const AxisMap& map) {
  return Replacement(graph, map).run(id);
}

bool replace_axes(const Subscript& in, const AxisMap& map, Subscript* out) {
  Subscript sum;
  sum.base = in.base;
  for (const Digit& d : in.digits) {
    const auto at = map.find(d.axis);
    Subscript part{{d}, 0};
    if (at != map.end() && !compose(d, at->second, &part)) return false;
    sum = sum + part;
  }
  *out = std::move(sum);
  return true;
}

TermId replace_terms(TermGraph& graph, TermId id, std::unordered_map<TermId, TermId> with) {
  const auto run = [&](const auto& self, TermId at) -> TermId {
    if (const auto known = with.find(at); known != with.end()) return known->second;
    std::vector<TermId> args = graph[at].args;
    for (TermId& arg : args) arg = self(self, arg);
    return with[at] = args.empty() ? at : graph.with_args(at, args);
  };
  return run(run, id);
}

std::vector<TermId> reachable(const TermGraph& graph, std::span<const TermId> roots) {
  std::vector<char> seen(static_cast<std::size_t>(graph.size()), 0);
  for (const TermId root : roots) seen[static_cast<std::size_t>(root)] = 1;
  for (TermId id = graph.size() - 1; id >= 0; --id) {
    if (seen[static_cast<std::size_t>(id)] == 0) continue;
    for (const TermId arg : graph[id].args) seen[static_cast<std::size_t>(arg)] = 1;
  }
  std::vector<TermId> out;
  for (TermId id = 0; id < graph.size(); ++id) {
    if (seen[static_cast<std::size_t>(id)] != 0) out.push_back(id);
  }
  return out;
}

double extent_of(std::span<const Axis> axes, AxisSet set) {
  double product = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if ((set >> i & 1) != 0) product *= static_cast<double>(axes[i].extent);
  }
  return product;
}

std::string to_string(const TermGraph& graph, TermId id, std::span<const Axis> axes,
                      const BufferNames& names) {
  const Term& t = graph[id];
  const auto arg = [&](std::size_t i) { return to_string(graph, t.args[i], axes, names); };
  const auto grouped = [&](std::size_t i) {
    const TermOp op = graph[t.args[i]].op;
    const bool is_simple = op == TermOp::kLoad || op == TermOp::kConst || op == TermOp::kCall;
    return is_simple ? arg(i) : "(" + arg(i) + ")";
  };
  switch (t.op) {
    case TermOp::kLoad: {
      std::string text = names[static_cast<std::size_t>(t.buffer.value)] + "[";
      for (std::size_t i = 0; i < t.index.size(); ++i) {
        text += (i == 0 ? "" : ", ") + subscript_text(t.index[i], axes);
      }
      return text + "]";
    }
    case TermOp::kConst: return fmt::format("{}", t.value);
    case TermOp::kMask: {
      std::string text;
      for (const Condition& c : t.conditions) {
        const char* relation = c.kind == Condition::Kind::kAtMostZero ? "<="
                               : c.kind == Condition::Kind::kZero     ? "=="
                                                                      : "!=";
        text += fmt::format("{}{} {} 0", text.empty() ? "" : " && ", subscript_text(c.value, axes),
                            relation);
      }
      return text;
    }
    case TermOp::kBinary: {
      const bool is_call = t.kind == ir::ExprKind::kMax || t.kind == ir::ExprKind::kMin;
      if (is_call) return fmt::format("{}({}, {})", ir::to_string(t.kind), arg(0), arg(1));
      const bool is_tight = t.kind == ir::ExprKind::kMul || t.kind == ir::ExprKind::kDiv;
      return grouped(0) +
             (is_tight ? std::string(ir::to_string(t.kind))
                       : fmt::format(" {} ", ir::to_string(t.kind))) +
             grouped(1);
    }
    case TermOp::kCall: {
      std::string text = std::string(ir::to_string(t.intrinsic)) + "(";
      for (std::size_t i = 0; i < t.args.size(); ++i) text += (i == 0 ? "" : ", ") + arg(i);
      return text + ")";
    }
    case TermOp::kSelect: return fmt::format("if {} then {} else {}", arg(0), arg(1), arg(2));
    case TermOp::kCast: return fmt::format("{}({})", ir::to_string(t.dtype), arg(0));
    case TermOp::kReduce: {
      std::string bound;
      for (std::size_t i = 0; i < axes.size(); ++i) {
        if ((t.bound >> i & 1) != 0) bound += (bound.empty() ? "" : ", ") + axes[i].name;
      }
      return fmt::format("{}[{}] {}", reduce_name(t.kind), bound, grouped(0));
    }
  }
  PRUNERC_UNREACHABLE("term op");
}

}  // namespace prunerc::search::algebra
