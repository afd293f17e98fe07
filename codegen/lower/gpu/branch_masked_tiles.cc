// Tiles of lanes ask a mask over shared memory once for each piece and all lanes, not for each element.
// Before: each element asks. After: pieces of which nothing is hidden come in vectors, those that are
// hidden whole compute nothing, others ask as before.
//     for x in 32 bind(thread.x) { for c in 8 unrolled { for v in 4 vectorized {
//       P[c*4 + v] = select(c*128 + x*4 + v <= t, A[t, c*128 + x*4 + v], 0f32) } } }
// ~>  for x in 32 bind(thread.x) { for c in 8 unrolled { if c*128 + 127 <= t { .. A[t, c*128 + x*4 + v] }
//       else { if c*128 <= t { .. select(..) } else { .. 0f32 } } } }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/thread_axis.h"

#include <optional>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

// A nest of loops around one store of what a condition chooses.
struct MaskedNest {
  std::vector<VarId> vars;  // outermost first
  const Store* store = nullptr;
  const Select* choice = nullptr;
  bool is_update = false;  // that changes nothing where the condition fails
};

class MaskBranching {
 public:
  explicit MaskBranching(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const Loop* loop = s.as<Loop>();
    if (loop == nullptr) return map_stmts(b_, s, [this](Stmt child) { return go(child); });
    const VarRanges::Mark mark = ranges_.mark();
    ranges_.bind(loop->var, loop->extent);
    const Loop* const lane = lane_;
    if (loop->loop_kind == LoopKind::kThreadX) lane_ = loop;
    const Stmt body = lane_ != nullptr ? branched(*loop) : Stmt();
    Loop changed = *loop;
    changed.body = body;
    const Stmt r = body.defined() ? b_.loop(changed)
                                  : map_stmts(b_, s, [this](Stmt child) { return go(child); });
    lane_ = lane;
    ranges_.rewind(mark);
    return r;
  }

  // The loop's body in pieces; null for others than these.
  Stmt branched(const Loop& loop) {
    if (is_lane_axis(loop.loop_kind) || loop.loop_kind == LoopKind::kVectorized) return {};
    if (!loop.attrs.empty()) return {};
    const VarRanges::Mark mark = ranges_.mark();
    const std::optional<MaskedNest> nest = find_nest(loop.body);
    const Stmt out = nest ? in_pieces(loop, *nest) : Stmt();
    ranges_.rewind(mark);
    return out;
  }

  // Binds the variables of the loops that it finds.
  std::optional<MaskedNest> find_nest(Stmt s) {
    MaskedNest nest;
    while (const Loop* loop = s.as<Loop>()) {
      if (is_lane_axis(loop->loop_kind) || !loop->attrs.empty()) return std::nullopt;
      ranges_.bind(loop->var, loop->extent);
      nest.vars.push_back(loop->var->id);
      s = loop->body;
    }
    nest.store = s.as<Store>();
    if (nest.store == nullptr || nest.vars.empty()) return std::nullopt;
    nest.choice = nest.store->value.as<Select>();
    nest.is_update = nest.choice == nullptr;
    if (nest.is_update) nest.choice = masked_update(b_, *nest.store);
    if (nest.choice == nullptr || !reads_shared(nest.choice->on_true)) return std::nullopt;
    if (!is_constant(nest.choice->on_false)) return std::nullopt;
    return nest;
  }

  bool reads_shared(Expr e) const {
    bool found = false;
    walk(e, [&](Expr part) {
      const Load* load = part.as<Load>();
      found = found || (load != nullptr && b_.buffer(load->buffer).scope == Scope::kShared);
      return !found;
    });
    return found;
  }

  static bool is_constant(Expr e) {
    bool found = true;
    walk(e, [&](Expr part) {
      found = found && part.as<Load>() == nullptr && part.as<Var>() == nullptr;
      return found;
    });
    return found;
  }

  // What is at most 0 where the comparison holds.
  std::optional<Linear> difference(Expr condition) {
    const BinaryNode* n = as_binary(condition);
    const bool compares = n != nullptr && (n->kind == ExprKind::kLe || n->kind == ExprKind::kLt);
    if (!compares || n->lhs.dtype() != DType::kI64) return std::nullopt;
    return to_linear(b_, n->lhs, ranges_) - to_linear(b_, n->rhs, ranges_) +
           (n->kind == ExprKind::kLt ? 1 : 0);
  }

  // Whether the bound over all lanes and the loops inside is at most 0; null if it is not known.
  Expr at_most_zero(const Linear& value, Bound bound, const std::vector<VarId>& vars) {
    const std::optional<Linear> end = eliminate_vars(b_, value, bound, ranges_, vars);
    if (!end || end->overflow || end->has_data) return {};
    const Expr e = simplify(b_, b_.le(to_expr(b_, *end), b_.int_imm(0)), ranges_);
    return mentions(e, vars) ? Expr() : e;
  }

  Stmt in_pieces(const Loop& loop, const MaskedNest& nest) {
    const std::optional<Linear> value = difference(nest.choice->condition);
    if (!value) return {};
    std::vector<VarId> vars = {lane_->var->id};
    vars.insert(vars.end(), nest.vars.begin(), nest.vars.end());
    const Expr is_whole = at_most_zero(*value, Bound::kUpper, vars);
    const Expr is_seen = at_most_zero(*value, Bound::kLower, vars);
    if (!is_whole.defined() || !is_seen.defined()) return {};
    // Not all pieces are alike.
    if (!mentions(is_whole, loop.var->id) && !mentions(is_seen, loop.var->id)) return {};
    Expr chosen = nest.choice->on_true;
    if (nest.is_update) {
      const BinaryNode& step = *as_binary(nest.store->value);
      chosen = b_.binary(step.kind, step.lhs, chosen);
    }
    const Stmt hidden = nest.is_update ? Stmt() : with_value(loop.body, nest.choice->on_false);
    Stmt others = loop.body;
    if (structural_equal(is_whole, is_seen)) {
      others = hidden;
    } else if (is_seen.as<IntImm>() == nullptr) {
      others = b_.if_then(is_seen, others, hidden);
    }
    // Never: as always would be so for what is seen.
    if (is_whole.as<IntImm>() != nullptr) return others;
    return b_.if_then(is_whole, with_value(loop.body, chosen), others);
  }

  // A copy of the nest that stores another value.
  Stmt with_value(Stmt nest, Expr value) { return clone_with_fresh_ids(b_, storing(nest, value)); }

  Stmt storing(Stmt s, Expr value) {
    if (const Store* store = s.as<Store>()) return b_.store(store->buffer, store->indices, value);
    Loop changed = *s.as<Loop>();
    changed.body = storing(changed.body, value);
    return b_.loop(changed);
  }

  IrBuilder b_;
  VarRanges ranges_;
  const Loop* lane_ = nullptr;  // over thread.x, around the statement at hand
};

}  // namespace

Result<Program> branch_masked_tiles(const Program& program, const Target&) {
  return MaskBranching(program).run(program);
}

}  // namespace prunerc::codegen
