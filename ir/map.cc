#include "ir/map.h"

#include "ir/visit.h"

#include <vector>

namespace prunerc::ir {
namespace {

// Applies f to each item; true if any changed.
bool map_all(std::span<const Expr> items, const ExprFn& f, std::vector<Expr>* out) {
  bool changed = false;
  out->reserve(items.size());
  for (Expr e : items) {
    const Expr mapped = f(e);
    changed |= !mapped.is(e);
    out->push_back(mapped);
  }
  return changed;
}

Stmt map_seq(IrBuilder& b, const Seq& seq, const StmtFn& fs) {
  std::vector<Stmt> stmts;
  bool changed = false;
  for (Stmt s : seq.stmts) {
    const Stmt mapped = fs(s);
    changed |= !mapped.is(s);
    stmts.push_back(mapped);
  }
  return changed ? b.seq(stmts) : Stmt(&seq);
}

Stmt map_loop(IrBuilder& b, const Loop& loop, const StmtFn& fs, const ExprFn& fe) {
  Loop copy = loop;
  copy.extent = fe(loop.extent);
  copy.body = fs(loop.body);
  if (!copy.body.defined()) return {};
  if (copy.extent.is(loop.extent) && copy.body.is(loop.body)) return &loop;
  return b.loop(copy);
}

// The accesses with fe applied; `out` and `storage` hold the memory of changed ones.
bool map_accesses(IrBuilder& b, std::span<const Access> accesses, const ExprFn& fe,
                  std::vector<Access>* out) {
  bool changed = false;
  for (const Access& access : accesses) {
    std::vector<Range> region;
    bool region_changed = false;
    for (const Range& r : access.region) {
      const Range mapped{fe(r.min), fe(r.extent)};
      region_changed |= !mapped.min.is(r.min) || !mapped.extent.is(r.extent);
      region.push_back(mapped);
    }
    out->push_back(region_changed ? Access{access.buffer, b.copy(region)} : access);
    changed |= region_changed;
  }
  return changed;
}

Stmt map_block(IrBuilder& b, const Block& block, const StmtFn& fs, const ExprFn& fe) {
  Block copy = block;
  bool changed = false;
  std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
  for (IterVar& iter : iters) {
    const Expr extent = fe(iter.extent);
    const Expr binding = fe(iter.binding);
    changed |= !extent.is(iter.extent) || !binding.is(iter.binding);
    iter.extent = extent;
    iter.binding = binding;
  }
  std::vector<Access> reads, writes;
  changed |= map_accesses(b, block.reads, fe, &reads);
  changed |= map_accesses(b, block.writes, fe, &writes);
  copy.iters = iters;
  copy.reads = reads;
  copy.writes = writes;
  if (block.guard.defined()) copy.guard = fe(block.guard);
  if (block.init.defined()) copy.init = fs(block.init);
  copy.body = fs(block.body);
  if (!copy.body.defined()) return {};
  changed |= !copy.guard.is(block.guard) || !copy.init.is(block.init) || !copy.body.is(block.body);
  return changed ? b.block(copy) : Stmt(&block);
}

Stmt map_store(IrBuilder& b, const Store& store, const ExprFn& fe) {
  std::vector<Expr> indices;
  const bool changed = map_all(store.indices, fe, &indices);
  const Expr value = fe(store.value);
  if (!changed && value.is(store.value)) return &store;
  return b.store(store.buffer, indices, value);
}

Stmt map_if(IrBuilder& b, const If& branch, const StmtFn& fs, const ExprFn& fe) {
  const Expr condition = fe(branch.condition);
  const Stmt then_body = fs(branch.then_body);
  const Stmt else_body = branch.else_body.defined() ? fs(branch.else_body) : Stmt();
  if (condition.is(branch.condition) && then_body.is(branch.then_body) &&
      else_body.is(branch.else_body)) {
    return &branch;
  }
  return b.if_then(condition, then_body, else_body);
}

}  // namespace

Expr map_children(IrBuilder& b, Expr e, const ExprFn& f) {
  if (const BinaryNode* n = as_binary(e)) {
    const Expr lhs = f(n->lhs);
    const Expr rhs = f(n->rhs);
    return lhs.is(n->lhs) && rhs.is(n->rhs) ? e : b.binary(e.kind(), lhs, rhs);
  }
  if (const Not* n = e.as<Not>()) {
    const Expr operand = f(n->operand);
    return operand.is(n->operand) ? e : b.logical_not(operand);
  }
  if (const Select* n = e.as<Select>()) {
    const Expr condition = f(n->condition);
    const Expr on_true = f(n->on_true);
    const Expr on_false = f(n->on_false);
    if (condition.is(n->condition) && on_true.is(n->on_true) && on_false.is(n->on_false)) return e;
    return b.select(condition, on_true, on_false);
  }
  if (const Cast* n = e.as<Cast>()) {
    const Expr operand = f(n->operand);
    return operand.is(n->operand) ? e : b.cast(e.dtype(), operand);
  }
  if (const Load* n = e.as<Load>()) {
    std::vector<Expr> indices;
    return map_all(n->indices, f, &indices) ? b.load(n->buffer, indices) : e;
  }
  if (const Call* n = e.as<Call>()) {
    std::vector<Expr> args;
    return map_all(n->args, f, &args) ? b.call(n->intrinsic, args) : e;
  }
  return e;
}

Stmt map_children(IrBuilder& b, Stmt s, const StmtFn& fs, const ExprFn& fe) {
  return visit(s, Overload{[&](const Seq& n) { return map_seq(b, n, fs); },
                           [&](const Loop& n) { return map_loop(b, n, fs, fe); },
                           [&](const Block& n) { return map_block(b, n, fs, fe); },
                           [&](const Store& n) { return map_store(b, n, fe); },
                           [&](const If& n) { return map_if(b, n, fs, fe); },
                           [&](const Alloc& n) {
                             const Stmt body = fs(n.body);
                             return body.is(n.body) ? Stmt(&n) : b.alloc(n.buffer, body);
                           }});
}

Stmt map_exprs(IrBuilder& b, Stmt s, const ExprFn& fe) {
  if (!s.defined()) return s;
  return map_children(
      b, s, [&](Stmt child) { return map_exprs(b, child, fe); }, fe);
}

Expr substitute(IrBuilder& b, Expr e, const VarMap& map) {
  if (const Var* v = e.as<Var>()) {
    const auto found = map.find(v->id);
    return found == map.end() ? e : found->second;
  }
  return map_children(b, e, [&](Expr child) { return substitute(b, child, map); });
}

Stmt substitute(IrBuilder& b, Stmt s, const VarMap& map) {
  return map_exprs(b, s, [&](Expr e) { return substitute(b, e, map); });
}

Expr substitute_params(IrBuilder& b, Expr e, std::span<const int64_t> values) {
  if (const TileParam* p = e.as<TileParam>()) {
    const auto i = static_cast<std::size_t>(p->id.value);
    return i < values.size() ? b.int_imm(values[i]) : e;
  }
  return map_children(b, e, [&](Expr child) { return substitute_params(b, child, values); });
}

Expr replace_buffers(IrBuilder& b, Expr e, const BufferMap& map) {
  const Expr mapped =
      map_children(b, e, [&](Expr child) { return replace_buffers(b, child, map); });
  const Load* load = mapped.as<Load>();
  if (load == nullptr) return mapped;
  const auto found = map.find(load->buffer);
  return found == map.end() ? mapped : b.load(found->second, load->indices);
}

Stmt replace_buffers(IrBuilder& b, Stmt s, const BufferMap& map) {
  if (!s.defined()) return s;
  const Stmt mapped = map_children(
      b, s, [&](Stmt child) { return replace_buffers(b, child, map); },
      [&](Expr e) { return replace_buffers(b, e, map); });
  if (const Store* store = mapped.as<Store>()) {
    const auto found = map.find(store->buffer);
    return found == map.end() ? mapped : b.store(found->second, store->indices, store->value);
  }
  if (const Block* block = mapped.as<Block>()) {
    bool changed = false;
    auto redirect = [&](std::span<const Access> accesses) {
      std::vector<Access> out(accesses.begin(), accesses.end());
      for (Access& access : out) {
        const auto found = map.find(access.buffer);
        if (found == map.end()) continue;
        access.buffer = found->second;
        changed = true;
      }
      return out;
    };
    const std::vector<Access> reads = redirect(block->reads);
    const std::vector<Access> writes = redirect(block->writes);
    if (!changed) return mapped;
    Block copy = *block;
    copy.reads = reads;
    copy.writes = writes;
    return b.block(copy);
  }
  if (const Alloc* alloc = mapped.as<Alloc>()) {
    const auto found = map.find(alloc->buffer);
    return found == map.end() ? mapped : b.alloc(found->second, alloc->body);
  }
  return mapped;
}

namespace {

// Rebuilds s with fresh ids; `vars` maps the variables defined so far on the way down.
Stmt clone(IrBuilder& b, Stmt s, VarMap& vars) {
  auto fe = [&](Expr e) { return substitute(b, e, vars); };
  if (const Loop* loop = s.as<Loop>()) {
    Loop copy = *loop;
    copy.id = b.fresh_loop_id();
    copy.extent = fe(loop->extent);
    copy.var = b.fresh_var(loop->var->name);
    vars[loop->var->id] = copy.var;
    copy.body = clone(b, loop->body, vars);
    return b.loop(copy);
  }
  if (const Block* block = s.as<Block>()) {
    Block copy = *block;
    copy.id = b.fresh_block_id();
    std::vector<IterVar> iters(block->iters.begin(), block->iters.end());
    for (IterVar& iter : iters) iter.binding = fe(iter.binding);
    if (block->guard.defined()) copy.guard = fe(block->guard);
    for (IterVar& iter : iters) {
      iter.extent = fe(iter.extent);
      const Var* fresh = b.fresh_var(iter.var->name);
      vars[iter.var->id] = fresh;
      iter.var = fresh;
    }
    copy.iters = iters;
    std::vector<Access> reads, writes;
    map_accesses(b, block->reads, fe, &reads);
    map_accesses(b, block->writes, fe, &writes);
    copy.reads = reads;
    copy.writes = writes;
    if (block->init.defined()) copy.init = clone(b, block->init, vars);
    copy.body = clone(b, block->body, vars);
    return b.block(copy);
  }
  return map_children(
      b, s, [&](Stmt child) { return clone(b, child, vars); }, fe);
}

bool contains(Stmt s, Stmt target) {
  bool found = false;
  walk(
      s,
      [&](Stmt child) {
        found |= child.is(target);
        return !found;
      },
      [](Expr) {});
  return found;
}

}  // namespace

Stmt clone_with_fresh_ids(IrBuilder& b, Stmt s) {
  if (!s.defined()) return s;
  VarMap vars;
  return clone(b, s, vars);
}

Stmt replace_stmt(IrBuilder& b, Stmt root, Stmt from, Stmt to) {
  if (root.is(from)) return to;
  return map_children(
      b, root,
      [&](Stmt child) {
        // Only the path to `from` is rebuilt; siblings are kept by identity.
        return contains(child, from) ? replace_stmt(b, child, from, to) : child;
      },
      [](Expr e) { return e; });
}

}  // namespace prunerc::ir
