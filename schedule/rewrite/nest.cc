#include "schedule/rewrite/nest.h"

#include "ir/analysis/region.h"
#include "ir/map.h"
#include "ir/visit.h"
#include "schedule/rewrite/site.h"

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

NewNest make_nest(IrBuilder& b, std::string_view name, std::span<const int64_t> extents,
                  const NestBody& body) {
  std::vector<Expr> constants;
  for (const int64_t extent : extents) constants.push_back(b.int_imm(extent));
  return make_nest(b, name, std::span<const Expr>(constants), body);
}

NewNest make_nest(IrBuilder& b, std::string_view name, std::span<const Expr> extents,
                  const NestBody& body) {
  NewNest out;
  Block block{};
  block.id = b.fresh_block_id();
  block.name = name;
  std::vector<IterVar> iters;
  std::vector<const Var*> loop_vars;
  std::vector<Expr> vars;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    loop_vars.push_back(b.fresh_var("ax" + std::to_string(d)));
    const Var* var = b.fresh_var("v" + std::to_string(d));
    iters.push_back({var, extents[d], IterKind::kSpatial, loop_vars.back()});
    vars.emplace_back(var);
  }
  block.iters = iters;
  block.body = body(vars);
  rebuild_accesses(b, block);
  out.stmt = b.block(block);
  out.outputs.push_back(block.id);
  for (std::size_t d = 0; d < extents.size(); ++d) out.outputs.push_back(b.fresh_loop_id());
  for (std::size_t d = extents.size(); d-- > 0;) {
    out.stmt =
        make_loop(b, loop_vars[d], extents[d], out.stmt, std::get<LoopId>(out.outputs[d + 1]));
  }
  return out;
}

namespace {

class AccessMover {
 public:
  AccessMover(IrBuilder& b, BufferId from, BufferId to, const IndexFn& f)
      : b_(b), from_(from), to_(to), f_(f) {}

  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const VarRanges::Mark mark = ranges_.mark();
    const Stmt out = go_inside(s);
    ranges_.rewind(mark);
    return out;
  }

 private:
  Stmt go_inside(Stmt s) {
    if (const Loop* loop = s.as<Loop>()) ranges_.bind(loop->var, loop->extent);
    if (const Block* block = s.as<Block>()) {
      for (const IterVar& iter : block->iters) ranges_.bind(iter.var, iter.extent);
      Block copy = *block;
      copy.init = go(block->init);
      copy.body = go(block->body);
      if (same(copy.init, block->init) && copy.body.is(block->body)) return s;
      rebuild_accesses(b_, copy);
      return b_.block(copy);
    }
    const Store* store = s.as<Store>();
    if (store != nullptr && store->buffer == from_) {
      return b_.store(to_, f_(all(store->indices), ranges_), go(store->value));
    }
    return map_children(
        b_, s, [&](Stmt child) { return go(child); }, [&](Expr e) { return go(e); });
  }

  static bool same(Stmt x, Stmt y) {
    return x.defined() == y.defined() && (!x.defined() || x.is(y));
  }

  Expr go(Expr e) {
    const Load* load = e.as<Load>();
    if (load != nullptr && load->buffer == from_) {
      return b_.load(to_, f_(all(load->indices), ranges_));
    }
    return map_children(b_, e, [&](Expr child) { return go(child); });
  }

  std::vector<Expr> all(std::span<const Expr> items) {
    std::vector<Expr> out;
    for (Expr e : items) out.push_back(go(e));
    return out;
  }

  IrBuilder& b_;
  BufferId from_, to_;
  const IndexFn& f_;
  VarRanges ranges_;
};

}  // namespace

Stmt move_accesses(IrBuilder& b, Stmt s, BufferId from, BufferId to, const IndexFn& f) {
  return AccessMover(b, from, to, f).go(s);
}

Expr replace_loads(IrBuilder& b, Expr e, BufferId buffer,
                   const std::function<Expr(std::span<const Expr>)>& make) {
  const Expr mapped =
      map_children(b, e, [&](Expr child) { return replace_loads(b, child, buffer, make); });
  const Load* load = mapped.as<Load>();
  return load != nullptr && load->buffer == buffer ? make(load->indices) : mapped;
}

}  // namespace prunerc::schedule
