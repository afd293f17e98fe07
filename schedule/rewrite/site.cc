#include "schedule/rewrite/site.h"

#include "ir/arith/simplify.h"
#include "ir/visit.h"

#include <string>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace): this file is about ir nodes throughout

namespace {

template <typename F>
bool find(Stmt s, std::vector<Stmt>& path, const F& is_target) {
  if (!s.defined()) return false;
  path.push_back(s);
  if (is_target(s)) return true;
  if (const Seq* seq = s.as<Seq>()) {
    for (Stmt child : seq->stmts) {
      if (find(child, path, is_target)) return true;
    }
  } else if (const Loop* loop = s.as<Loop>()) {
    if (find(loop->body, path, is_target)) return true;
  } else if (const Block* block = s.as<Block>()) {
    if (find(block->body, path, is_target)) return true;
  } else if (const If* branch = s.as<If>()) {
    if (find(branch->then_body, path, is_target)) return true;
    if (find(branch->else_body, path, is_target)) return true;
  } else if (const Alloc* alloc = s.as<Alloc>()) {
    if (find(alloc->body, path, is_target)) return true;
  }
  path.pop_back();
  return false;
}

Stmt with_child(IrBuilder& b, Stmt parent, Stmt from, Stmt to) {
  if (const Loop* loop = parent.as<Loop>()) {
    if (!to.defined()) return {};
    Loop copy = *loop;
    copy.body = to;
    return b.loop(copy);
  }
  if (const Block* block = parent.as<Block>()) {
    if (!to.defined()) return {};
    Block copy = *block;
    copy.body = to;
    return b.block(copy);
  }
  return map_children(
      b, parent, [&](Stmt child) { return child.is(from) ? to : child; }, [](Expr e) { return e; });
}

Stmt rebind_block(IrBuilder& b, const Block& block, const VarMap& map, Expr guard,
                  const VarRanges& ranges) {
  std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
  for (IterVar& iter : iters) {
    // A variable alone becomes the new expression as it is: that one is in normal form already.
    const bool is_variable = iter.binding.as<Var>() != nullptr;
    const Expr binding = substitute(b, iter.binding, map);
    if (binding.is(iter.binding)) continue;
    iter.binding = is_variable ? binding : simplify(b, binding, ranges);
  }
  Block copy = block;
  copy.iters = iters;
  if (block.guard.defined()) {
    const Expr substituted = substitute(b, block.guard, map);
    copy.guard = substituted.is(block.guard) ? block.guard : simplify(b, substituted, ranges);
  }
  copy.guard = conjoin(b, copy.guard, guard);
  return b.block(copy);
}

}  // namespace

std::vector<const Loop*> Site::outer_loops() const {
  std::vector<const Loop*> out;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    if (path[i].as<Block>() != nullptr) out.clear();
    if (const Loop* loop = path[i].as<Loop>()) out.push_back(loop);
  }
  return out;
}

const Block* Site::scope() const {
  for (std::size_t i = path.size() - 1; i > 0; --i) {
    if (const Block* block = path[i - 1].as<Block>()) return block;
  }
  return nullptr;
}

Site find_loop_in(Stmt root, LoopId id) {
  Site site;
  find(root, site.path, [&](Stmt s) {
    const Loop* loop = s.as<Loop>();
    return loop != nullptr && loop->id == id;
  });
  return site;
}

Result<Site> find_loop(const Program& program, LoopId id) {
  Site site = find_loop_in(program.root(), id);
  if (site.path.empty()) return error(Diag::kLoopNotFound, id);
  return site;
}

Result<Site> find_block(const Program& program, BlockId id) {
  Site site;
  const bool found = find(program.root(), site.path, [&](Stmt s) {
    const Block* block = s.as<Block>();
    return block != nullptr && block->id == id;
  });
  if (!found) return error(Diag::kBlockNotFound, id);
  return site;
}

Stmt replace_at(IrBuilder& b, const Site& site, Stmt to, std::size_t depth) {
  for (std::size_t i = depth; i > 0; --i) to = with_child(b, site.path[i - 1], site.path[i], to);
  return to;
}

Stmt replace_at(IrBuilder& b, const Site& site, Stmt to) {
  return replace_at(b, site, to, site.path.size() - 1);
}

VarRanges ranges_at(const Program& program, const Site& site) {
  VarRanges ranges(program.domain());
  for (Stmt s : site.path) {
    if (const Loop* loop = s.as<Loop>()) ranges.bind(loop->var, loop->extent);
    const Block* block = s.as<Block>();
    if (block == nullptr || s.is(site.path.back())) continue;
    for (const IterVar& iter : block->iters) ranges.bind(iter.var, iter.extent);
  }
  return ranges;
}

std::optional<int64_t> constant(Expr e) {
  const IntImm* imm = e.as<IntImm>();
  return imm == nullptr ? std::nullopt : std::optional<int64_t>(imm->value);
}

Result<int64_t> constant_extent(const Loop& loop) {
  const std::optional<int64_t> extent = constant(loop.extent);
  if (!extent || *extent < 1) return error(Diag::kLoopExtentNotConstant, loop.id);
  return *extent;
}

bool is_closed(Expr e) {
  bool closed = true;
  walk(e, [&](Expr part) {
    closed = closed && part.kind() != ExprKind::kVar && part.kind() != ExprKind::kLoad;
    return closed;
  });
  return closed;
}

Result<void> check_extent(const Loop& loop) {
  const std::optional<int64_t> extent = constant(loop.extent);
  if (extent ? *extent < 1 : !is_closed(loop.extent)) {
    return error(Diag::kLoopExtentNotConstant, loop.id);
  }
  return {};
}

bool is_one(Expr e) { return constant(e) == 1; }

Expr times(IrBuilder& b, Expr x, Expr y) {
  if (is_one(x)) return y;
  return is_one(y) ? x : b.mul(x, y);
}

Expr ceildiv(IrBuilder& b, Expr x, Expr y) {
  if (is_one(y)) return x;
  return b.floordiv(b.add(x, b.sub(y, b.int_imm(1))), y);
}

Expr conjoin(IrBuilder& b, Expr x, Expr y) {
  if (!x.defined()) return y;
  return y.defined() ? b.logical_and(x, y) : x;
}

bool is_parametric(const Program& program) { return !program.domain().empty(); }

Result<void> check_serial(const Loop& loop) {
  if (loop.loop_kind != LoopKind::kSerial) {
    return error(Diag::kLoopNotSerial, loop.id, std::string(to_string(loop.loop_kind)));
  }
  if (!loop.attrs.empty()) {
    return error(Diag::kLoopHasAttr, loop.id, std::string(loop.attrs[0].key));
  }
  return {};
}

Result<void> check_holds_blocks(const Loop& loop) {
  Stmt other;
  walk(
      loop.body,
      [&](Stmt s) {
        const StmtKind kind = s.kind();
        if (kind == StmtKind::kLoop || kind == StmtKind::kSeq) return true;
        if (kind != StmtKind::kBlock) other = s;
        return false;
      },
      [](Expr) {});
  if (other.defined()) {
    return error(Diag::kLoopHoldsStatement, loop.id, std::string(to_string(other.kind())));
  }
  return {};
}

std::vector<const Block*> leaf_blocks(Stmt s) {
  std::vector<const Block*> out;
  walk(
      s,
      [&](Stmt child) {
        const Block* block = child.as<Block>();
        if (block != nullptr) out.push_back(block);
        return block == nullptr;
      },
      [](Expr) {});
  return out;
}

namespace {

void collect(Stmt s, std::vector<const Loop*>& loops, std::vector<LeafBlock>& out) {
  if (!s.defined()) return;
  if (const Block* block = s.as<Block>()) {
    out.push_back({block, loops});
  } else if (const Loop* loop = s.as<Loop>()) {
    loops.push_back(loop);
    collect(loop->body, loops, out);
    loops.pop_back();
  } else {
    for_each_child(
        s, [&](Stmt child) { collect(child, loops, out); }, [](Expr) {});
  }
}

}  // namespace

std::vector<LeafBlock> leaves(Stmt s) {
  std::vector<const Loop*> loops;
  std::vector<LeafBlock> out;
  collect(s, loops, out);
  return out;
}

Stmt rebind(IrBuilder& b, Stmt s, const VarMap& map, Expr guard, VarRanges& ranges) {
  if (const Block* block = s.as<Block>()) return rebind_block(b, *block, map, guard, ranges);
  if (const Loop* loop = s.as<Loop>()) {
    Loop copy = *loop;
    copy.extent = substitute(b, loop->extent, map);
    const VarRanges::Mark mark = ranges.mark();
    ranges.bind(loop->var, copy.extent);
    copy.body = rebind(b, loop->body, map, guard, ranges);
    ranges.rewind(mark);
    return b.loop(copy);
  }
  return map_children(
      b, s, [&](Stmt child) { return rebind(b, child, map, guard, ranges); },
      [&](Expr e) { return substitute(b, e, map); });
}

Stmt make_loop(IrBuilder& b, const Var* var, int64_t extent, Stmt body, LoopId id) {
  return make_loop(b, var, b.int_imm(extent), body, id);
}

Stmt make_loop(IrBuilder& b, const Var* var, Expr extent, Stmt body, LoopId id) {
  Loop loop{};
  loop.id = id;
  loop.var = var;
  loop.extent = extent;
  loop.loop_kind = LoopKind::kSerial;
  loop.body = body;
  return b.loop(loop);
}

}  // namespace prunerc::schedule
