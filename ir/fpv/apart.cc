#include "ir/fpv/apart.h"

#include "ir/int_math.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace prunerc::ir {
namespace {

/// Places in the code are far below.
constexpr int64_t kMost = int64_t{1} << 48;

// Both ends are in it.
struct Range {
  int64_t lo = 0, hi = 0;
};

/// Among variables: something that is read.
constexpr int32_t kData = -1;

// By buffer, the accesses of some statements.
using Accesses = std::map<int32_t, std::set<int32_t>>;

// Extents of loops by slot; 0 where that is no number.
std::vector<int64_t> extents_of(const FpCode& code) {
  std::vector<int64_t> out(code.slots.size());
  for (const FpStmt& s : code.stmts) {
    if (s.kind != FpStmtKind::kLoop && s.kind != FpStmtKind::kLanes) continue;
    const FpExpr& extent = code.exprs[static_cast<std::size_t>(s.expr)];
    const bool is_known = extent.op == FpOp::kConstI && extent.value > 0 && extent.value < kMost;
    out[static_cast<std::size_t>(s.slot)] = is_known ? extent.value : 0;
  }
  return out;
}

// An address as what is the same in all of a loop's iterations, a multiple of its variable, and what varies inside:
// less than that multiple, or in larger steps.
struct Digits {
  std::vector<FpAffine::Term> around, around_nodes;
  int64_t step = 0, constant = 0;
  int64_t low = 0, high = 0;  // of what is less
  int64_t larger = 0;         // divides all of the others

  bool is_beside(const Digits& other) const {
    return around == other.around && around_nodes == other.around_nodes && step == other.step;
  }
};

class Finder {
 public:
  explicit Finder(const FpCode& code)
      : code_(code), extents_(extents_of(code)), out_(code.stmts.size()) {}

  std::vector<std::vector<int32_t>> run() {
    stmt(code_.root);
    return std::move(out_);
  }

 private:
  /// What a statement touches, and the variables of the loops in it.
  struct Found {
    Accesses accesses;
    std::set<int32_t> slots;
    void add(Found more);
  };
  /// Of a value: what it loads, what it is made of (variables of loops; kData as well where it is made of data), where it is.
  struct Facts {
    std::set<int32_t> accesses, variables;
    std::optional<Range> range;
    void add(const Facts& more) {
      accesses.insert(more.accesses.begin(), more.accesses.end());
      variables.insert(more.variables.begin(), more.variables.end());
    }
  };

  Found stmt(int32_t index);
  const Facts& facts(int32_t e);
  Facts facts(const FpAffine& a);
  const std::set<int32_t>& access(int32_t id);
  std::optional<Range> quotient(const FpExpr& n);
  void note(const std::set<int32_t>& accesses, Found* out) const;
  void note(int32_t e, Found* out) {
    if (e >= 0) note(facts(e).accesses, out);
  }
  bool add_inner(int64_t coefficient, const std::optional<Range>& of, Digits* out) const;
  std::optional<Digits> digits(const FpAffine& a, const FpStmt& loop,
                               const std::set<int32_t>& inside);
  bool are_apart(const std::set<int32_t>& accesses, const FpStmt& loop,
                 const std::set<int32_t>& inside);

  const FpCode& code_;
  const std::vector<int64_t> extents_;
  std::vector<std::vector<int32_t>> out_;
  // Equal expressions are one, so that walks without memory could take for ever.
  std::unordered_map<int32_t, Facts> facts_;
  std::unordered_map<int32_t, std::set<int32_t>> touched_;  // by access, with those in its address
};

void Finder::Found::add(Found more) {
  if (more.accesses.size() > accesses.size()) std::swap(accesses, more.accesses);
  for (auto& [buffer, ids] : more.accesses) {
    std::set<int32_t>& mine = accesses[buffer];
    if (ids.size() > mine.size()) std::swap(ids, mine);
    mine.insert(ids.begin(), ids.end());
  }
  if (more.slots.size() > slots.size()) std::swap(slots, more.slots);
  slots.insert(more.slots.begin(), more.slots.end());
}

void Finder::note(const std::set<int32_t>& accesses, Found* out) const {
  for (const int32_t id : accesses) {
    out->accesses[code_.accesses[static_cast<std::size_t>(id)].buffer].insert(id);
  }
}

std::optional<Range> Finder::quotient(const FpExpr& n) {
  const std::optional<Range> a = facts(n.a).range, b = facts(n.b).range;
  if (!a || !b || b->lo != b->hi || b->lo <= 0) return std::nullopt;
  if (n.op == FpOp::kFloorMod) return Range{0, b->lo - 1};
  return Range{floor_div(a->lo, b->lo), floor_div(a->hi, b->lo)};
}

const Finder::Facts& Finder::facts(int32_t e) {
  const auto known = facts_.find(e);
  if (known != facts_.end()) return known->second;
  const FpExpr& n = code_.exprs[static_cast<std::size_t>(e)];
  Facts out;
  if (n.op == FpOp::kConstI) {
    out.range = Range{n.value, n.value};
  } else if (n.op == FpOp::kAffine) {
    out = facts(code_.affines[static_cast<std::size_t>(n.a)]);
  } else if (n.op == FpOp::kLoadI || n.op == FpOp::kLoadF) {
    out.accesses = access(n.a);
    out.variables.insert(kData);
  } else if (n.op != FpOp::kConstF) {
    for (const int32_t operand : {n.a, n.b, n.c}) {
      if (operand >= 0) out.add(facts(operand));
    }
    if (n.op == FpOp::kFloorDiv || n.op == FpOp::kFloorMod) out.range = quotient(n);
  }
  return facts_.emplace(e, std::move(out)).first->second;
}

// coefficient * range, if all of it is far from the ends of i64, where places would begin anew.
std::optional<Range> scaled(int64_t coefficient, const std::optional<Range>& of) {
  if (!of || coefficient < -kMost || coefficient > kMost) return std::nullopt;
  int64_t x = 0, y = 0;
  if (__builtin_mul_overflow(coefficient, of->lo, &x) ||
      __builtin_mul_overflow(coefficient, of->hi, &y)) {
    return std::nullopt;
  }
  const Range out = {std::min(x, y), std::max(x, y)};
  return out.lo < -kMost || out.hi > kMost ? std::nullopt : std::optional(out);
}

Finder::Facts Finder::facts(const FpAffine& a) {
  Facts out;
  std::optional<Range> sum = scaled(a.constant, Range{1, 1});
  const auto add = [&](int64_t coefficient, const std::optional<Range>& of) {
    const std::optional<Range> part = scaled(coefficient, of);
    if (sum && part) sum = scaled(1, Range{sum->lo + part->lo, sum->hi + part->hi});
    if (!part) sum = std::nullopt;
  };
  // Lanes are part of their variable.
  for (const FpAffine::Term& t : a.terms) {
    const int32_t node = code_.slots[static_cast<std::size_t>(t.of)].node;
    if (node >= 0) {
      out.add(facts(node));
      add(t.coefficient, facts(node).range);
      continue;
    }
    const int64_t extent = extents_[static_cast<std::size_t>(t.of)];
    out.variables.insert(t.of);
    add(t.coefficient, extent > 0 ? std::optional(Range{0, extent - 1}) : std::nullopt);
  }
  for (const FpAffine::Term& t : a.varying) {
    out.add(facts(t.of));
    add(t.coefficient, facts(t.of).range);
  }
  out.range = sum;
  return out;
}

const std::set<int32_t>& Finder::access(int32_t id) {
  const auto known = touched_.find(id);
  if (known != touched_.end()) return known->second;
  const FpAccess& a = code_.accesses[static_cast<std::size_t>(id)];
  std::set<int32_t> out = facts(a.flat).accesses;
  for (const FpAccess::Check& check : a.checks) {
    const Facts index = facts(check.index);
    out.insert(index.accesses.begin(), index.accesses.end());
  }
  out.insert(id);
  return touched_.emplace(id, std::move(out)).first->second;
}

Finder::Found Finder::stmt(int32_t index) {
  Found out;
  if (index < 0) return out;
  const FpStmt& s = code_.stmts[static_cast<std::size_t>(index)];
  if (s.kind == FpStmtKind::kForget) return out;
  note(s.expr, &out);
  if (s.kind == FpStmtKind::kSeq) {
    for (int32_t i = 0; i < s.count; ++i) {
      out.add(stmt(code_.children[static_cast<std::size_t>(s.first + i)]));
    }
    return out;
  }
  if (s.kind == FpStmtKind::kStore) {
    note(s.rest, &out);
    note(access(s.slot), &out);
  }
  for (int32_t i = 0; s.kind == FpStmtKind::kBlock && i < s.count; ++i) {
    const FpIter& iter = code_.iters[static_cast<std::size_t>(s.first + i)];
    note(facts(iter.binding).accesses, &out);
    note(iter.extent, &out);
  }
  for (const int32_t inner : {s.other, s.body}) out.add(stmt(inner));
  if (s.kind != FpStmtKind::kLoop && s.kind != FpStmtKind::kLanes) return out;
  for (const auto& [buffer, ids] : out.accesses) {
    if (are_apart(ids, s, out.slots)) {
      out_[static_cast<std::size_t>(index)].push_back(buffer);
    }
  }
  out.slots.insert(s.slot);
  return out;
}

// What varies inside of an iteration.
bool Finder::add_inner(int64_t coefficient, const std::optional<Range>& of, Digits* out) const {
  const std::optional<Range> part = scaled(coefficient, of);
  if (!part) return false;
  if (std::abs(coefficient) >= out->step) {
    out->larger = std::gcd(out->larger, coefficient);
    return true;
  }
  out->low += part->lo;
  out->high += part->hi;
  return true;
}

std::optional<Digits> Finder::digits(const FpAffine& a, const FpStmt& loop,
                                     const std::set<int32_t>& inside) {
  Digits out;
  out.constant = a.constant;
  const int64_t extent = extents_[static_cast<std::size_t>(loop.slot)];
  for (const FpAffine::Term& t : a.terms) {
    if (t.of == loop.slot) out.step = t.coefficient;
  }
  if (out.step <= 0 || !scaled(out.step, Range{0, extent}) || !scaled(out.constant, Range{1, 1})) {
    return std::nullopt;
  }
  const auto add = [&](const FpAffine::Term& t, bool is_slot) {
    FpAffine term;
    (is_slot ? term.terms : term.varying).push_back({t.of, 1});
    const Facts of = facts(term);
    if (of.variables.contains(kData) || of.variables.contains(loop.slot)) return false;
    const bool varies = std::any_of(of.variables.begin(), of.variables.end(),
                                    [&](int32_t v) { return inside.contains(v); });
    if (varies) return add_inner(t.coefficient, of.range, &out);
    (is_slot ? out.around : out.around_nodes).push_back(t);
    return true;
  };
  for (const FpAffine::Term& t : a.terms) {
    if (t.of != loop.slot && !add(t, true)) return std::nullopt;
  }
  for (const FpAffine::Term& t : a.varying) {
    if (!add(t, false)) return std::nullopt;
  }
  return out;
}

// Of all addresses the loop's variable is one digit: what is below it never reaches the next, what is above is a
// multiple of all that it can be.
bool Finder::are_apart(const std::set<int32_t>& accesses, const FpStmt& loop,
                       const std::set<int32_t>& inside) {
  const int64_t extent = extents_[static_cast<std::size_t>(loop.slot)];
  if (extent == 0) return false;
  std::vector<Digits> all;
  int64_t larger = 0;
  for (const int32_t id : accesses) {
    std::optional<Digits> found =
        digits(code_.accesses[static_cast<std::size_t>(id)].flat, loop, inside);
    if (!found || (!all.empty() && !found->is_beside(all[0]))) return false;
    larger = std::gcd(larger, found->larger);
    all.push_back(*std::move(found));
  }
  const int64_t step = all[0].step;
  if (larger != 0 && step > larger / extent) return false;
  int64_t low = kMost, high = -kMost;
  for (const Digits& d : all) {
    const int64_t shift = d.constant - all[0].constant;
    const int64_t rest = larger != 0 ? floor_mod(shift, larger) : shift;
    low = std::min(low, rest + d.low);
    high = std::max(high, rest + d.high);
  }
  return high - low < step;
}

}  // namespace

std::vector<std::vector<int32_t>> find_apart(const FpCode& code) { return Finder(code).run(); }

}  // namespace prunerc::ir
