#include "ir/fpv/apart.h"

#include "ir/int_math.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>

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
    void add(const Found& more) {
      for (const auto& [buffer, ids] : more.accesses)
        accesses[buffer].insert(ids.begin(), ids.end());
      slots.insert(more.slots.begin(), more.slots.end());
    }
  };

  Found stmt(int32_t index);
  void expr(int32_t e, Found* out) const;
  void affine(const FpAffine& a, Found* out) const;
  void access(int32_t id, Found* out) const;
  void variables(int32_t e, std::set<int32_t>* out) const;
  void variables(const FpAffine& a, std::set<int32_t>* out) const;
  std::optional<Range> range(int32_t e) const;
  std::optional<Range> range(const FpAffine& a) const;
  std::optional<Range> range_of_slot(int32_t slot) const;
  bool add_inner(int64_t coefficient, const std::optional<Range>& of, Digits* out) const;
  std::optional<Digits> digits(const FpAffine& a, const FpStmt& loop,
                               const std::set<int32_t>& inside) const;
  bool are_apart(const std::set<int32_t>& accesses, const FpStmt& loop,
                 const std::set<int32_t>& inside) const;

  const FpCode& code_;
  const std::vector<int64_t> extents_;
  std::vector<std::vector<int32_t>> out_;
};

void Finder::affine(const FpAffine& a, Found* out) const {
  for (const FpAffine::Term& t : a.varying) expr(t.of, out);
  for (const FpAffine::Term& t : a.terms)
    expr(code_.slots[static_cast<std::size_t>(t.of)].node, out);
}

void Finder::access(int32_t id, Found* out) const {
  const FpAccess& a = code_.accesses[static_cast<std::size_t>(id)];
  if (!out->accesses[a.buffer].insert(id).second) return;
  affine(a.flat, out);
  for (const FpAccess::Check& check : a.checks) affine(check.index, out);
}

void Finder::expr(int32_t e, Found* out) const {
  if (e < 0) return;
  const FpExpr& n = code_.exprs[static_cast<std::size_t>(e)];
  if (n.op == FpOp::kConstI || n.op == FpOp::kConstF) return;
  if (n.op == FpOp::kAffine) return affine(code_.affines[static_cast<std::size_t>(n.a)], out);
  if (n.op == FpOp::kLoadI || n.op == FpOp::kLoadF) return access(n.a, out);
  for (const int32_t operand : {n.a, n.b, n.c}) expr(operand, out);
}

Finder::Found Finder::stmt(int32_t index) {
  Found out;
  if (index < 0) return out;
  const FpStmt& s = code_.stmts[static_cast<std::size_t>(index)];
  if (s.kind == FpStmtKind::kForget) return out;
  expr(s.expr, &out);
  if (s.kind == FpStmtKind::kSeq) {
    for (int32_t i = 0; i < s.count; ++i)
      out.add(stmt(code_.children[static_cast<std::size_t>(s.first + i)]));
    return out;
  }
  if (s.kind == FpStmtKind::kStore) {
    expr(s.rest, &out);
    access(s.slot, &out);
  }
  for (int32_t i = 0; s.kind == FpStmtKind::kBlock && i < s.count; ++i) {
    const FpIter& iter = code_.iters[static_cast<std::size_t>(s.first + i)];
    affine(iter.binding, &out);
    expr(iter.extent, &out);
  }
  for (const int32_t inner : {s.other, s.body}) out.add(stmt(inner));
  if (s.kind != FpStmtKind::kLoop && s.kind != FpStmtKind::kLanes) return out;
  for (const auto& [buffer, ids] : out.accesses) {
    if (are_apart(ids, s, out.slots)) out_[static_cast<std::size_t>(index)].push_back(buffer);
  }
  out.slots.insert(s.slot);
  return out;
}

// Variables of loops that a value is made of; kData as well where it is made of data.
void Finder::variables(int32_t e, std::set<int32_t>* out) const {
  if (e < 0) return;
  const FpExpr& n = code_.exprs[static_cast<std::size_t>(e)];
  if (n.op == FpOp::kConstI || n.op == FpOp::kConstF) return;
  if (n.op == FpOp::kAffine) return variables(code_.affines[static_cast<std::size_t>(n.a)], out);
  if (n.op == FpOp::kLoadI || n.op == FpOp::kLoadF) {
    out->insert(kData);
    return;
  }
  for (const int32_t operand : {n.a, n.b, n.c}) variables(operand, out);
}

void Finder::variables(const FpAffine& a, std::set<int32_t>* out) const {
  for (const FpAffine::Term& t : a.varying) variables(t.of, out);
  for (const FpAffine::Term& t : a.terms) {
    const int32_t node = code_.slots[static_cast<std::size_t>(t.of)].node;
    if (node < 0) out->insert(t.of);
    variables(node, out);
  }
}

std::optional<Range> Finder::range(int32_t e) const {
  const FpExpr& n = code_.exprs[static_cast<std::size_t>(e)];
  if (n.op == FpOp::kConstI) return Range{n.value, n.value};
  if (n.op == FpOp::kAffine) return range(code_.affines[static_cast<std::size_t>(n.a)]);
  if (n.op != FpOp::kFloorDiv && n.op != FpOp::kFloorMod) return std::nullopt;
  const std::optional<Range> a = range(n.a), b = range(n.b);
  if (!a || !b || b->lo != b->hi || b->lo <= 0) return std::nullopt;
  if (n.op == FpOp::kFloorMod) return Range{0, b->lo - 1};
  return Range{floor_div(a->lo, b->lo), floor_div(a->hi, b->lo)};
}

std::optional<Range> Finder::range_of_slot(int32_t slot) const {
  const int32_t node = code_.slots[static_cast<std::size_t>(slot)].node;
  if (node >= 0) return range(node);
  const int64_t extent = extents_[static_cast<std::size_t>(slot)];
  return extent > 0 ? std::optional(Range{0, extent - 1}) : std::nullopt;
}

std::optional<Range> Finder::range(const FpAffine& a) const {
  Range out = {a.constant, a.constant};
  const auto add = [&](int64_t coefficient, const std::optional<Range>& of) {
    if (!of || std::max(std::abs(of->lo), std::abs(of->hi)) > kMost) return false;
    int64_t x = 0, y = 0;
    if (__builtin_mul_overflow(coefficient, of->lo, &x) ||
        __builtin_mul_overflow(coefficient, of->hi, &y)) {
      return false;
    }
    return !__builtin_add_overflow(out.lo, std::min(x, y), &out.lo) &&
           !__builtin_add_overflow(out.hi, std::max(x, y), &out.hi);
  };
  // Lanes are part of their variable.
  for (const FpAffine::Term& t : a.terms) {
    if (!add(t.coefficient, range_of_slot(t.of))) return std::nullopt;
  }
  for (const FpAffine::Term& t : a.varying) {
    if (!add(t.coefficient, range(t.of))) return std::nullopt;
  }
  return out;
}

// What varies inside of an iteration.
bool Finder::add_inner(int64_t coefficient, const std::optional<Range>& of, Digits* out) const {
  if (std::abs(coefficient) >= out->step) {
    out->larger = std::gcd(out->larger, coefficient);
    return true;
  }
  if (!of || std::max(std::abs(of->lo), std::abs(of->hi)) > kMost / out->step) return false;
  const int64_t x = coefficient * of->lo, y = coefficient * of->hi;
  out->low += std::min(x, y);
  out->high += std::max(x, y);
  return true;
}

std::optional<Digits> Finder::digits(const FpAffine& a, const FpStmt& loop,
                                     const std::set<int32_t>& inside) const {
  Digits out;
  out.constant = a.constant;
  if (a.constant < -kMost || a.constant > kMost) return std::nullopt;
  for (const FpAffine::Term& t : a.terms) {
    if (t.coefficient < -kMost || t.coefficient > kMost) return std::nullopt;
    if (t.of == loop.slot) out.step = t.coefficient;
  }
  if (out.step <= 0) return std::nullopt;
  const auto add = [&](const FpAffine::Term& t, bool is_slot) {
    std::set<int32_t> of;
    const int32_t node = is_slot ? code_.slots[static_cast<std::size_t>(t.of)].node : t.of;
    if (node < 0) of.insert(t.of);
    variables(node, &of);
    if (of.contains(kData) || of.contains(loop.slot)) return false;
    const bool varies =
        std::any_of(of.begin(), of.end(), [&](int32_t v) { return inside.contains(v); });
    if (varies) return add_inner(t.coefficient, is_slot ? range_of_slot(t.of) : range(t.of), &out);
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
                       const std::set<int32_t>& inside) const {
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
