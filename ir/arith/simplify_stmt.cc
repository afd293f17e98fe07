// Statements: every expression under the ranges and conditions of its place.
#include "ir/arith/loop_index.h"
#include "ir/arith/simplifier.h"
#include "ir/builder.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <vector>

namespace prunerc::ir {
namespace {

class StmtSimplifier {
 public:
  StmtSimplifier(IrBuilder& b, const VarRanges& ranges, const SimplifyOptions& options)
      : b_(b), s_(b, ranges, options) {}

  Stmt visit(Stmt s) {
    if (!s.defined()) return s;
    return ir::visit(s, Overload{
                            [&](const Seq&) { return children(s); },
                            [&](const Loop& n) { return loop(n, s); },
                            [&](const Block& n) { return block(n, s); },
                            [&](const Store&) { return children(s); },
                            [&](const If& n) { return branch(n, s); },
                            [&](const Alloc&) { return children(s); },
                        });
  }

 private:
  Stmt children(Stmt s) {
    return map_children(
        b_, s, [this](Stmt child) { return visit(child); }, [this](Expr e) { return s_.visit(e); });
  }

  Stmt loop(const Loop& n, Stmt s) {
    const Expr extent = s_.visit(n.extent);
    if (const IntImm* c = extent.as<IntImm>(); c != nullptr && c->value <= 0) return {};
    const Simplifier::Mark outside = s_.mark();
    s_.change_ranges().bind(n.var, extent);
    const Stmt body = visit(n.body);
    s_.rewind(outside);
    if (!body.defined()) return {};
    if (extent.is(n.extent) && body.is(n.body)) return s;
    Loop changed = n;
    changed.extent = extent;
    changed.body = body;
    return b_.loop(changed);
  }

  Stmt branch(const If& n, Stmt s) {
    const Expr condition = s_.visit(n.condition);
    if (const IntImm* c = condition.as<IntImm>())
      return visit(c->value != 0 ? n.then_body : n.else_body);
    const Simplifier::Mark outside = s_.mark();
    if (outlasts(condition, n.then_body)) s_.assume(condition, true);
    const Stmt then_body = visit(n.then_body);
    s_.rewind(outside);
    if (outlasts(condition, n.else_body)) s_.assume(condition, false);
    const Stmt else_body = visit(n.else_body);
    s_.rewind(outside);
    const bool same =
        condition.is(n.condition) && then_body.is(n.then_body) && else_body.is(n.else_body);
    return same ? s : b_.if_then(condition, then_body, else_body);
  }

  Stmt block(const Block& n, Stmt s) {
    Block changed = n;
    bool same = true;
    const Simplifier::Mark outside = s_.mark();
    if (n.guard.defined()) {
      changed.guard = s_.visit(n.guard);
      if (const IntImm* c = changed.guard.as<IntImm>()) {
        if (c->value == 0) return {};
        changed.guard = Expr();
      } else if (outlasts(changed.guard, n.init) && outlasts(changed.guard, n.body)) {
        s_.assume(changed.guard, true);
      }
      same = changed.guard.is(n.guard);
    }
    std::vector<IterVar> iters(n.iters.begin(), n.iters.end());
    for (IterVar& iter : iters) {
      const IterVar old = iter;
      iter.binding = s_.visit(iter.binding);
      iter.extent = s_.visit(iter.extent);
      same = same && iter.binding.is(old.binding) && iter.extent.is(old.extent);
    }
    // The inside must stay right wherever the block is bound, so what the place says of its loops
    // is no fact there.
    for (const IterVar& iter : iters) s_.change_ranges().bind(iter.var, iter.extent);
    std::vector<Access> accesses[2];
    std::vector<std::vector<Range>> boxes;
    boxes.reserve(n.reads.size() + n.writes.size());
    for (int side = 0; side < 2; ++side) {
      for (const Access& access : side == 0 ? n.reads : n.writes) {
        boxes.emplace_back(access.region.begin(), access.region.end());
        for (Range& range : boxes.back()) {
          const Range old = range;
          range = {s_.visit(range.min), s_.visit(range.extent)};
          same = same && range.min.is(old.min) && range.extent.is(old.extent);
        }
        accesses[side].push_back({access.buffer, boxes.back()});
      }
    }
    changed.init = visit(n.init);
    changed.body = visit(n.body);
    s_.rewind(outside);
    if (!changed.body.defined()) {
      if (!changed.init.defined()) return {};
      changed.body = n.body;  // the init still runs
    }
    if (same && changed.init.is(n.init) && changed.body.is(n.body)) return s;
    changed.iters = iters;
    changed.reads = accesses[0];
    changed.writes = accesses[1];
    return b_.block(changed);
  }

  IrBuilder& b_;
  Simplifier s_;
};

}  // namespace

Stmt simplify(IrBuilder& b, Stmt s, const VarRanges& ranges, const SimplifyOptions& options) {
  return StmtSimplifier(b, ranges, options).visit(s);
}

Program simplify(const Program& program, const SimplifyOptions& options) {
  IrBuilder b(program);
  const Stmt root = simplify(b, program.root(), VarRanges(program.domain()), options);
  return root.is(program.root()) ? program : b.finish(root);
}

}  // namespace prunerc::ir
