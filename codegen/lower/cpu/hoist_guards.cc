// Conditions leave loops, so that whole tiles run without them; max(e, 0) counts as e where 0 <= e.
// Before: guards stand where blocks stood. After: a tile has a version in which those that hold for
// all its copies are gone; one that is decided outside of a loop stands there, shortens or cuts it.
//     for i in 3 { for j in 4 unrolled { if i*4 + j < 10 { T[i*4 + j] = A[i*4 + j] } } }
// ~>  for i in 3 {
//       if i < 2 { for j in 4 unrolled { T[i*4 + j] = A[i*4 + j] } }
//       else { for j in 4 unrolled { if i*4 + j < 10 { T[i*4 + j] = A[i*4 + j] } } } }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// A loop body larger than this is not duplicated. Units: statements, or reads where those are more.
constexpr int64_t kMaxVersionedCode = 600;

using Truth = std::map<uint64_t, bool>;  // by hash: conditions with a known value

// A condition below a loop body, with the tile loops between the two.
struct Candidate {
  Expr condition;
  std::vector<const Loop*> tile_loops = {};  // whose variables it mentions
  bool chooses = false;                      // between two sources of a copy, all of a tile alike
};

class GuardHoisting {
 public:
  explicit GuardHoisting(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root(), true)); }

 private:
  // `may_version`: tiles below may get a version without conditions. The slow version of a tile
  // does not get another.
  Stmt go(Stmt s, bool may_version) {
    if (!s.defined()) return s;
    const Loop* loop = s.as<Loop>();
    if (loop == nullptr || is_tile_loop(*loop)) {
      const VarRanges::Mark mark = ranges_.mark();
      if (loop != nullptr) ranges_.bind(loop->var, loop->extent);
      Stmt r = map_stmts(b_, s, [&](Stmt c) { return go(c, may_version); });
      ranges_.rewind(mark);
      return r;
    }
    const VarRanges::Mark mark = ranges_.mark();
    ranges_.bind(loop->var, loop->extent);
    Stmt body = go_body(loop->body, may_version);
    ranges_.rewind(mark);
    if (!body.defined()) return {};
    return clamped(*loop, body);
  }

  Stmt go_body(Stmt body, bool may_version) {
    std::vector<Candidate> found;
    std::vector<const Loop*> tiles;
    std::set<VarId> serial;
    find(body, tiles, serial, &found);
    body = split_exact(body, found);
    if (const If* branch = body.as<If>()) {
      // Conditions of the tile inside, under the facts of this branch.
      Stmt then_body = version(branch->then_body, may_version);
      Stmt else_body =
          branch->else_body.defined() ? version(branch->else_body, may_version) : Stmt();
      if (then_body.is(branch->then_body) && else_body.is(branch->else_body)) return body;
      return b_.if_then(branch->condition, then_body, else_body);
    }
    for (const Candidate& c : found) {
      if (c.chooses) return split_choice(body, c.condition, may_version);
    }
    return version(body, may_version);
  }

  //     T[c, j] = select(c < 4, A[c, j], B[c - 4, j])
  // ~>  if c < 4 { T[c, j] = A[c, j] } else { T[c, j] = B[c - 4, j] }
  Stmt split_choice(Stmt body, Expr condition, bool may_version) {
    if (2 * size_of_versions(body) > kMaxVersionedCode) return version(body, may_version);
    num_choices_ *= 2;
    const Stmt yes = with_truth(body, {{condition.hash(), true}});
    const Stmt no = with_truth(body, {{condition.hash(), false}});
    const Stmt then_body = go_body(yes, may_version);
    const Stmt else_body = clone_with_fresh_ids(b_, go_body(no, may_version));
    num_choices_ /= 2;
    return b_.if_then(condition, then_body, else_body);
  }

  // Of all copies of the body that the choices around have made.
  int64_t size_of_versions(Stmt body) const {
    int64_t num_loads = 0;
    walk(
        body, [](Stmt) { return true; },
        [&](Expr e) {
          walk(e, [&](Expr part) {
            num_loads += part.kind() == ExprKind::kLoad;
            return true;
          });
        });
    return num_choices_ * std::max(code_size(body), num_loads);
  }

  // Conditions that have one value during the whole body decide once, outside.
  Stmt split_exact(Stmt body, const std::vector<Candidate>& found) {
    Expr all;
    Truth yes;
    for (const Candidate& c : found) {
      const bool is_exact = c.tile_loops.empty() && !c.chooses;
      if (!is_exact || !yes.emplace(c.condition.hash(), true).second) continue;
      all = conjunction(b_, all, c.condition);
    }
    if (!all.defined()) return body;
    // Several conditions: only if the same is left when any of them fails, since each may fail alone.
    Stmt else_body = with_truth(body, {{yes.begin()->first, false}});
    for (const auto& [hash, value] : yes) {
      const Stmt rest = with_truth(body, {{hash, false}});
      const bool is_same = rest.defined() && else_body.defined()
                               ? structural_equal(rest, else_body)
                               : rest.defined() == else_body.defined();
      if (!is_same) return body;
    }
    Stmt then_body = with_truth(body, yes);
    if (else_body.defined() && size_of_versions(body) > kMaxVersionedCode) return body;
    if (!then_body.defined()) return body;
    if (else_body.defined()) else_body = clone_with_fresh_ids(b_, else_body);
    return b_.if_then(all, then_body, else_body);
  }

  // if (every copy of the tile satisfies its conditions) {body without them} else {body}
  Stmt version(Stmt body, bool may_version) {
    std::vector<Candidate> found;
    std::vector<const Loop*> tiles;
    std::set<VarId> serial;
    find(body, tiles, serial, &found);
    Expr all;
    Truth known;
    std::set<uint64_t> used;
    for (const Candidate& c : found) {
      if (c.tile_loops.empty()) continue;
      const Expr whole = for_whole_tile(c);
      if (!whole.defined()) continue;
      known[c.condition.hash()] = true;
      const IntImm* decided = whole.as<IntImm>();
      if (decided != nullptr && decided->value == 0) {
        known.erase(c.condition.hash());
        continue;
      }
      if (decided != nullptr || !used.insert(whole.hash()).second) continue;
      all = conjunction(b_, all, whole);
    }
    if (known.empty()) return go(body, may_version);
    if (!all.defined()) return go(with_truth(body, known), may_version);
    if (!may_version || size_of_versions(body) > kMaxVersionedCode) return go(body, may_version);
    Stmt fast = go(with_truth(body, known), may_version);
    Stmt slow = clone_with_fresh_ids(b_, go(body, false));
    return b_.if_then(all, fast, known.size() == 1 ? without_calls(body, found, slow) : slow);
  }

  // A function of what a mask hides is not computed for tiles that it hides whole: there is a third
  // version, `if (no copy satisfies its condition) {the other value} else {slow}`.
  Stmt without_calls(Stmt body, const std::vector<Candidate>& found, Stmt slow) {
    for (const Candidate& c : found) {
      if (c.tile_loops.empty() || !has_call(body)) continue;
      const Stmt hidden = with_truth(body, {{c.condition.hash(), false}});
      const Expr none = hidden.defined() && !has_call(hidden) ? for_no_copy(c) : Expr();
      if (!none.defined() || none.as<IntImm>() != nullptr) continue;
      return b_.if_then(none, clone_with_fresh_ids(b_, go(hidden, false)), slow);
    }
    return slow;
  }

  static bool has_call(Stmt s) {
    bool found = false;
    walk(
        s, [](Stmt) { return true; },
        [&](Expr e) {
          found = found || any_node(e, [](Expr part) { return part.kind() == ExprKind::kCall; });
        });
    return found;
  }

  // Conditions of Ifs and Selects below s that mention no serial variable defined below s.
  void find(Stmt s, std::vector<const Loop*>& tiles, std::set<VarId>& serial,
            std::vector<Candidate>* out) {
    if (!s.defined()) return;
    if (const Loop* loop = s.as<Loop>()) {
      const bool tile = is_tile_loop(*loop) && loop->extent.as<IntImm>() != nullptr;
      if (tile) tiles.push_back(loop);
      if (!tile) serial.insert(loop->var->id);
      find(loop->body, tiles, serial, out);
      if (tile) tiles.pop_back();
      return;
    }
    if (const If* branch = s.as<If>()) add(branch->condition, tiles, serial, out);
    if (const Store* store = s.as<Store>()) find_selects(*store, tiles, serial, out);
    for_each_child(
        s, [&](Stmt child) { find(child, tiles, serial, out); }, [](Expr) {});
  }

  void find_selects(const Store& store, const std::vector<const Loop*>& tiles,
                    const std::set<VarId>& serial, std::vector<Candidate>* out) {
    const bool is_copy = !loads_from(store.value, store.buffer);
    walk(store.value, [&](Expr x) {
      const Select* select = x.as<Select>();
      Expr condition = clamp_of(x).condition;
      // A select between values that need no memory is as cheap as its condition; only guards of
      // memory are worth code.
      if (select != nullptr && (has_load(select->on_true) || has_load(select->on_false))) {
        condition = select->condition;
      }
      if (condition.defined()) {
        std::vector<Candidate> all;
        add(condition, tiles, serial, &all);
        for (Candidate& c : all) {
          c.chooses = is_copy && select != nullptr && c.tile_loops.empty() && !tiles.empty();
          if (c.chooses || !c.tile_loops.empty()) out->push_back(c);
        }
      }
      return true;
    });
  }

  // A subscript at an end of its range, and what it is inside; undefined for other expressions.
  struct Clamp {
    Expr condition, inside;
  };
  Clamp clamp_of(Expr e) {
    const BinaryNode* node = as_binary(e);
    const bool is_max = e.kind() == ExprKind::kMax;
    if (node == nullptr || e.dtype() != DType::kI64 || !(is_max || e.kind() == ExprKind::kMin)) {
      return {};
    }
    const bool is_left = node->lhs.as<IntImm>() != nullptr;
    const Expr bound = is_left ? node->lhs : node->rhs, inside = is_left ? node->rhs : node->lhs;
    if (bound.as<IntImm>() == nullptr) return {};
    return {is_max ? b_.le(bound, inside) : b_.le(inside, bound), inside};
  }

  static void add(Expr condition, const std::vector<const Loop*>& tiles,
                  const std::set<VarId>& serial, std::vector<Candidate>* out) {
    for (Expr c : conjuncts(condition)) {
      if (c.as<IntImm>() != nullptr || has_load(c) || may_trap(c)) continue;
      std::set<VarId> vars;
      collect_vars(c, &vars);
      if (std::any_of(vars.begin(), vars.end(), [&](VarId v) { return serial.count(v) != 0; }))
        continue;
      Candidate candidate{c};
      for (const Loop* loop : tiles) {
        if (vars.count(loop->var->id) != 0) candidate.tile_loops.push_back(loop);
      }
      out->push_back(candidate);
    }
  }

  // The condition for the worst copy of the tile; null if it is not of a form with a worst copy.
  Expr for_whole_tile(const Candidate& c) {
    const std::optional<Linear> most = end_of_difference(c, Bound::kUpper);
    if (!most) return {};
    const Expr zero = b_.int_imm(0), end = to_expr(b_, *most);
    const bool is_less = c.condition.kind() == ExprKind::kLt;
    return simplify(b_, is_less ? b_.lt(end, zero) : b_.le(end, zero), ranges_);
  }

  // The opposite of the condition for the best copy; null as above.
  Expr for_no_copy(const Candidate& c) {
    const std::optional<Linear> least = end_of_difference(c, Bound::kLower);
    if (!least) return {};
    const Expr zero = b_.int_imm(0), end = to_expr(b_, *least);
    const bool is_less = c.condition.kind() == ExprKind::kLt;
    return simplify(b_, is_less ? b_.le(zero, end) : b_.lt(zero, end), ranges_);
  }

  // The left side less the right one, at an end over the copies of the tile.
  std::optional<Linear> end_of_difference(const Candidate& c, Bound bound) {
    const BinaryNode* node = as_binary(c.condition);
    if (node == nullptr || node->lhs.dtype() != DType::kI64) return {};
    if (node->kind != ExprKind::kLt && node->kind != ExprKind::kLe) return {};
    if (has_data(c.condition)) return {};  // which may wrap
    const VarRanges::Mark mark = ranges_.mark();
    std::vector<VarId> inner;
    for (const Loop* loop : c.tile_loops) {
      ranges_.bind(loop->var, loop->extent);
      inner.push_back(loop->var->id);
    }
    const Linear difference = to_linear(b_, node->lhs, ranges_) - to_linear(b_, node->rhs, ranges_);
    const std::optional<Linear> end = eliminate_vars(b_, difference, bound, ranges_, inner);
    ranges_.rewind(mark);
    if (!end || end->overflow || mentions(to_expr(b_, *end), inner)) return {};
    return end;
  }

  // s with the known conditions of Ifs and Selects replaced by their values.
  Stmt with_truth(Stmt s, const Truth& truth) {
    if (!s.defined()) return s;
    Stmt r = map_children(
        b_, s, [&](Stmt child) { return with_truth(child, truth); },
        [&](Expr e) { return s.as<Store>() != nullptr ? select_truth(e, truth) : e; });
    if (!r.defined()) return r;
    const If* branch = r.as<If>();
    if (branch == nullptr) return r;
    const Expr rest = apply(branch->condition, truth);
    if (rest.is(branch->condition)) return r;
    const IntImm* value = rest.as<IntImm>();
    if (value != nullptr) return value->value != 0 ? branch->then_body : branch->else_body;
    return b_.if_then(rest, branch->then_body, branch->else_body);
  }

  Expr select_truth(Expr e, const Truth& truth) {
    Expr r = map_children(b_, e, [&](Expr child) { return select_truth(child, truth); });
    if (const Clamp clamp = clamp_of(r); clamp.condition.defined()) {
      const auto it = truth.find(clamp.condition.hash());
      return it != truth.end() && it->second ? clamp.inside : r;
    }
    const Select* select = r.as<Select>();
    if (select == nullptr) return r;
    const Expr rest = apply(select->condition, truth);
    if (rest.is(select->condition)) return r;
    const IntImm* value = rest.as<IntImm>();
    if (value != nullptr) return value->value != 0 ? select->on_true : select->on_false;
    return b_.select(rest, select->on_true, select->on_false);
  }

  Expr apply(Expr condition, const Truth& truth) {
    std::vector<Expr> kept;
    bool changed = false;
    for (Expr c : conjuncts(condition)) {
      const auto it = truth.find(c.hash());
      if (it == truth.end()) {
        kept.push_back(c);
        continue;
      }
      if (!it->second) return b_.bool_imm(false);
      changed = true;
    }
    if (!changed) return condition;
    Expr all;
    for (Expr c : kept) all = conjunction(b_, all, c);
    return all.defined() ? all : b_.bool_imm(true);
  }

  //     for v in n { if v*a + rest < bound { S } }
  // ~>  for v in min(n, max((bound - rest + a - 1) // a, 0)) { S }
  Stmt clamped(const Loop& loop, Stmt body) {
    Loop changed = loop;
    changed.body = body;
    const If* branch = loop.loop_kind == LoopKind::kSerial ? body.as<If>() : nullptr;
    const bool chooses = branch != nullptr && branch->else_body.defined();
    if (const Stmt parts = chooses ? parted(loop, *branch) : Stmt(); parts.defined()) return parts;
    if (branch == nullptr || chooses) return body.is(loop.body) ? Stmt(&loop) : b_.loop(changed);
    std::vector<Expr> kept;
    for (Expr c : conjuncts(branch->condition)) {
      const Expr limit = upper_limit(loop, c);
      if (limit.defined()) {
        changed.extent = b_.min(changed.extent, limit);
      } else {
        kept.push_back(c);
      }
    }
    changed.body = if_all(b_, kept, branch->then_body);
    return b_.loop(changed);
  }

  //     for v in n { if v < c { S } else { T } }
  // ~>  for v in c { S }  for v in n - c { T, v + c for v }
  // Only in loops that no store moves with: later passes know the elements of a tile by their loops.
  Stmt parted(const Loop& loop, const If& branch) {
    const bool is_single = conjuncts(branch.condition).size() == 1 && branch.then_body.defined();
    const Expr limit = is_single ? upper_limit(loop, branch.condition) : Expr();
    const int64_t extent = constant_or(loop.extent, 0);
    const int64_t first = limit.defined() ? constant_or(limit, 0) : 0;
    if (first < 1 || first >= extent || stores_along(Stmt(&branch), loop.var->id)) return {};
    Loop low = loop, high = loop;
    low.body = high.body = {};
    low.extent = limit;
    high.id = b_.fresh_loop_id();
    high.var = b_.fresh_var(loop.var->name);
    high.extent = b_.int_imm(extent - first);
    const VarMap behind = {{loop.var->id, b_.add(high.var, limit)}};
    return b_.seq(
        {clamped(low, branch.then_body), clamped(high, substitute(b_, branch.else_body, behind))});
  }

  static bool stores_along(Stmt s, VarId var) {
    bool found = false;
    walk(
        s,
        [&](Stmt part) {
          const Store* store = part.as<Store>();
          found = found || (store != nullptr && mentions(store->indices, var));
          return !found;
        },
        [](Expr) {});
    return found;
  }

  // The number of iterations v = 0, 1, ... for which c holds, if they are the first ones.
  Expr upper_limit(const Loop& loop, Expr c) {
    const BinaryNode* node = as_binary(c);
    if (node == nullptr || node->lhs.dtype() != DType::kI64) return {};
    if (has_data(c) || may_trap(c)) return {};
    if (node->kind != ExprKind::kLt && node->kind != ExprKind::kLe) return {};
    Linear rest = to_linear(b_, node->lhs, ranges_) - to_linear(b_, node->rhs, ranges_);
    int64_t factor = 0;
    for (std::size_t i = rest.terms.size(); i-- > 0;) {
      const Term& term = rest.terms[i];
      const Var* var = term.degree == 1 ? term.atoms[0].as<Var>() : nullptr;
      if (var != nullptr && var->id == loop.var->id) {
        factor = term.coef;
        rest.terms.erase(rest.terms.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (factor < 1 || rest.overflow) return {};
    const Expr others = to_expr(b_, rest);
    if (mentions(others, loop.var->id)) return {};
    // factor * v + rest < 0  <=>  v < ceil(-rest / factor); for <= one more.
    const Expr slack =
        b_.sub(b_.int_imm(node->kind == ExprKind::kLt ? factor - 1 : factor), others);
    return simplify(b_, b_.max(b_.floordiv(slack, b_.int_imm(factor)), b_.int_imm(0)), ranges_);
  }

  IrBuilder b_;
  VarRanges ranges_;
  int64_t num_choices_ = 1;  // versions that the choices around have made
};

}  // namespace

Result<Program> hoist_guards(const Program& program, const Target&) {
  return GuardHoisting(program).run(program);
}

}  // namespace prunerc::codegen
