#include "codegen/lower/analysis/statements.h"

#include "ir/analysis/accumulator.h"
#include "ir/equal.h"

#include <algorithm>

namespace prunerc::codegen {

using namespace ir;

void collect_vars(Expr e, std::set<VarId>* out) {
  walk(e, [&](Expr x) {
    if (const Var* var = x.as<Var>()) out->insert(var->id);
    return true;
  });
}

std::set<BufferId> stored_buffers(Stmt s) {
  std::set<BufferId> out;
  walk(
      s,
      [&](Stmt x) {
        if (const Store* store = x.as<Store>()) out.insert(store->buffer);
        return true;
      },
      [](Expr) {});
  return out;
}

int64_t num_stores(Stmt s, BufferId buffer) {
  int64_t count = 0;
  walk(
      s,
      [&](Stmt x) {
        const Store* store = x.as<Store>();
        count += store != nullptr && store->buffer == buffer ? 1 : 0;
        return true;
      },
      [](Expr) {});
  return count;
}

std::set<BufferId> loaded_buffers(Stmt s) {
  std::set<BufferId> out;
  walk(
      s, [](Stmt) { return true; },
      [&](Expr e) {
        walk(e, [&](Expr x) {
          if (const Load* load = x.as<Load>()) out.insert(load->buffer);
          return true;
        });
      });
  return out;
}

bool always_loads(Expr e, Expr load) {
  if (structural_equal(e, load)) return true;
  if (const Select* select = e.as<Select>()) {
    return always_loads(select->condition, load) ||
           (always_loads(select->on_true, load) && always_loads(select->on_false, load));
  }
  const bool is_lazy = e.kind() == ExprKind::kAnd || e.kind() == ExprKind::kOr;
  if (is_lazy) return always_loads(as_binary(e)->lhs, load);
  bool found = false;
  for_each_child(e, [&](Expr child) { found = found || always_loads(child, load); });
  return found;
}

bool may_trap(Expr e) {
  return any_node(e, [](Expr part) {
    const bool divides = part.kind() == ExprKind::kFloorDiv || part.kind() == ExprKind::kFloorMod;
    return divides && constant_or(as_binary(part)->rhs, 0) == 0;
  });
}

const Select* masked_update(IrBuilder& b, const Store& store) {
  const BinaryNode* step = as_binary(store.value);
  const Load* held = step != nullptr ? step->lhs.as<Load>() : nullptr;
  const Select* update = step != nullptr ? step->rhs.as<Select>() : nullptr;
  if (held == nullptr || update == nullptr || held->buffer != store.buffer) return nullptr;
  const bool reduces = step->kind == ExprKind::kAdd || step->kind == ExprKind::kMul ||
                       step->kind == ExprKind::kMin || step->kind == ExprKind::kMax;
  const bool same =
      std::equal(held->indices.begin(), held->indices.end(), store.indices.begin(),
                 store.indices.end(), [](Expr x, Expr y) { return structural_equal(x, y); });
  if (!reduces || !same) return nullptr;
  const Expr identity = identity_of(b, step->kind, store.value.dtype());
  return structural_equal(update->on_false, identity) ? update : nullptr;
}

int64_t constant_or(Expr e, int64_t otherwise) { return constant_value(e).value_or(otherwise); }

std::optional<int64_t> step_of(Expr e, VarId var) {
  if (const auto* v = e.as<Var>()) return v->id == var ? 1 : 0;
  if (!mentions(e, var)) return 0;
  const BinaryNode* node = as_binary(e);
  if (node == nullptr) return std::nullopt;
  const std::optional<int64_t> lhs = step_of(node->lhs, var), rhs = step_of(node->rhs, var);
  if (!lhs || !rhs) return std::nullopt;
  switch (e.kind()) {
    case ExprKind::kAdd: return *lhs + *rhs;
    case ExprKind::kSub: return *lhs - *rhs;
    case ExprKind::kMul:
      if (const auto* factor = node->rhs.as<IntImm>()) return *lhs * factor->value;
      if (const auto* factor = node->lhs.as<IntImm>()) return *rhs * factor->value;
      return std::nullopt;
    default: return std::nullopt;
  }
}

Expr conjunction(IrBuilder& b, Expr x, Expr y) { return x.defined() ? b.logical_and(x, y) : y; }

Stmt if_all(IrBuilder& b, std::span<const Expr> conditions, Stmt s) {
  for (std::size_t i = conditions.size(); i-- > 0;) s = b.if_then(conditions[i], s);
  return s;
}

Stmt map_stmts(IrBuilder& b, Stmt s, const StmtFn& f) {
  return map_children(b, s, f, [](Expr e) { return e; });
}

Loop make_loop(IrBuilder& b, std::string_view name, int64_t extent, LoopKind kind) {
  Loop loop{};
  loop.id = b.fresh_loop_id();
  loop.var = b.fresh_var(name);
  loop.extent = b.int_imm(extent);
  loop.loop_kind = kind;
  return loop;
}

Stmt add_attrs(IrBuilder& b, const Loop& loop, std::span<const Attr> more) {
  Loop changed = loop;
  std::vector<Attr> attrs(loop.attrs.begin(), loop.attrs.end());
  attrs.insert(attrs.end(), more.begin(), more.end());
  changed.attrs = b.copy(attrs);
  return b.loop(changed);
}

Stmt below_allocs(Stmt s, std::vector<BufferId>* allocs) {
  while (const Alloc* alloc = s.as<Alloc>()) {
    allocs->push_back(alloc->buffer);
    s = alloc->body;
  }
  return s;
}

std::size_t innermost_dim(const Buffer& buffer) {
  std::size_t rank = buffer.shape.size();
  while (rank > 1 && constant_value(buffer.shape[rank - 1]) == 1) --rank;
  return rank > 0 ? rank - 1 : 0;
}

bool is_tile_loop(const Loop& loop) {
  return loop.loop_kind == LoopKind::kVectorized || loop.loop_kind == LoopKind::kUnrolled;
}

int64_t code_size(Stmt s) {
  if (!s.defined()) return 0;
  int64_t copies = 1;
  if (const Loop* loop = s.as<Loop>(); loop != nullptr && loop->loop_kind == LoopKind::kUnrolled) {
    copies = std::clamp<int64_t>(constant_or(loop->extent, 1), 1, 1024);
  }
  int64_t inside = 1;
  for_each_child(
      s, [&](Stmt child) { inside += code_size(child); }, [](Expr) {});
  return std::min<int64_t>(copies * inside, int64_t{1} << 40);
}

namespace {

class IndexMapping {
 public:
  using Indices = std::function<std::vector<Expr>(std::span<const Expr>)>;
  IndexMapping(IrBuilder& b, const std::set<BufferId>& buffers, const Indices& f)
      : b_(b), buffers_(buffers), f_(f) {}

  Stmt run(Stmt s) {
    if (!s.defined()) return s;
    const Store* store = s.as<Store>();
    if (store != nullptr && buffers_.count(store->buffer) != 0) {
      return b_.store(store->buffer, f_(inner(store->indices)), run(store->value));
    }
    return map_children(
        b_, s, [&](Stmt child) { return run(child); }, [&](Expr e) { return run(e); });
  }

 private:
  Expr run(Expr e) {
    const Load* load = e.as<Load>();
    if (load != nullptr && buffers_.count(load->buffer) != 0) {
      return b_.load(load->buffer, f_(inner(load->indices)));
    }
    return map_children(b_, e, [&](Expr child) { return run(child); });
  }

  std::vector<Expr> inner(std::span<const Expr> indices) {
    std::vector<Expr> out;
    for (Expr index : indices) out.push_back(run(index));
    return out;
  }

  IrBuilder& b_;
  const std::set<BufferId>& buffers_;
  const Indices& f_;
};

}  // namespace

Stmt map_indices(IrBuilder& b, Stmt s, const std::set<BufferId>& buffers,
                 const std::function<std::vector<Expr>(std::span<const Expr>)>& f) {
  return IndexMapping(b, buffers, f).run(s);
}

std::vector<Expr> concat(std::vector<Expr> a, std::span<const Expr> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void add_leading_dims(IrBuilder& b, BufferId id, const std::vector<Expr>& extents) {
  Buffer buffer = b.buffer(id);
  buffer.shape = b.copy(concat(extents, buffer.shape));
  b.set_buffer(buffer);
}

Stmt add_leading_indices(IrBuilder& b, Stmt s, const std::set<BufferId>& buffers,
                         const std::vector<Expr>& leading) {
  return map_indices(b, s, buffers,
                     [&](std::span<const Expr> indices) { return concat(leading, indices); });
}

}  // namespace prunerc::codegen
