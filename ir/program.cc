#include "ir/program.h"

#include "ir/builder.h"
#include "ir/visit.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace prunerc::ir {
namespace {

// Copies nodes into the arena of one builder, keeping ids, names and sharing.
class Copier {
 public:
  explicit Copier(IrBuilder& b) : b_(b) {}

  /// Numbers buffers in the order in which they are added.
  void add_buffer(const Buffer& buffer) {
    const BufferId id =
        b_.add_buffer(buffer.name, buffer.dtype, list(buffer.shape), buffer.scope, buffer.role);
    if (buffer.is_const) b_.mark_const(id);
    buffers_[buffer.id] = id;
  }

  Expr expr(Expr e) {
    if (!e.defined()) return e;
    const auto [entry, is_new] = exprs_.try_emplace(e.node());
    if (!is_new) return entry->second;
    const Expr copy = fresh(e);
    exprs_[e.node()] = copy;
    return copy;
  }

  Stmt stmt(Stmt s) {
    if (!s.defined()) return s;
    return visit(s, Overload{[&](const Seq& n) {
                               std::vector<Stmt> children;
                               for (Stmt child : n.stmts) children.push_back(stmt(child));
                               return b_.seq(children);
                             },
                             [&](const Loop& n) {
                               Loop copy = n;
                               copy.var = var(n.var);
                               copy.extent = expr(n.extent);
                               const std::vector<Attr> copied = attrs(n.attrs);
                               copy.attrs = copied;
                               copy.body = stmt(n.body);
                               return b_.loop(copy);
                             },
                             [&](const Block& n) { return block(n); },
                             [&](const Store& n) {
                               return b_.store(at(n.buffer), list(n.indices), expr(n.value));
                             },
                             [&](const If& n) {
                               return b_.if_then(expr(n.condition), stmt(n.then_body),
                                                 stmt(n.else_body));
                             },
                             [&](const Alloc& n) { return b_.alloc(at(n.buffer), stmt(n.body)); }});
  }

  std::vector<Expr> list(std::span<const Expr> items) {
    std::vector<Expr> out;
    for (Expr e : items) out.push_back(expr(e));
    return out;
  }

 private:
  const Var* var(const Var* v) { return expr(v).as<Var>(); }

  Expr fresh(Expr e) {
    if (const BinaryNode* n = as_binary(e)) return b_.binary(e.kind(), expr(n->lhs), expr(n->rhs));
    return visit(
        e,
        Overload{[&](const Var& n) { return Expr(b_.copy_var(n)); },
                 [&](const TileParam& n) { return b_.param(n.id); },
                 [&](const IntImm& n) { return b_.int_imm(n.value, n.dtype); },
                 [&](const FloatImm& n) { return b_.float_imm(n.value, n.dtype); },
                 [&](const Not& n) { return b_.logical_not(expr(n.operand)); },
                 [&](const Select& n) {
                   return b_.select(expr(n.condition), expr(n.on_true), expr(n.on_false));
                 },
                 [&](const Cast& n) { return b_.cast(n.dtype, expr(n.operand)); },
                 [&](const Load& n) { return b_.load(at(n.buffer), list(n.indices)); },
                 [&](const Call& n) { return b_.call(n.intrinsic, list(n.args)); },
                 [&](const BinaryNode&) -> Expr { PRUNERC_UNREACHABLE("binary handled above"); }});
  }

  std::vector<Attr> attrs(std::span<const Attr> items) {
    std::vector<Attr> out;
    for (const Attr& a : items) out.push_back({b_.copy(a.key), a.value});
    return out;
  }

  std::vector<Access> accesses(std::span<const Access> items) {
    std::vector<Access> out;
    for (const Access& a : items) {
      std::vector<Range> region;
      for (const Range& r : a.region) region.push_back({expr(r.min), expr(r.extent)});
      out.push_back({at(a.buffer), b_.copy(region)});
    }
    return out;
  }

  Stmt block(const Block& n) {
    Block copy = n;
    std::vector<IterVar> iters;
    for (const IterVar& iter : n.iters) {
      iters.push_back({var(iter.var), expr(iter.extent), iter.kind, expr(iter.binding)});
    }
    copy.iters = iters;
    const std::vector<Access> reads = accesses(n.reads);
    const std::vector<Access> writes = accesses(n.writes);
    const std::vector<Attr> copied = attrs(n.attrs);
    copy.reads = reads;
    copy.writes = writes;
    copy.attrs = copied;
    copy.guard = expr(n.guard);
    copy.init = stmt(n.init);
    copy.body = stmt(n.body);
    if (n.combiner != nullptr) copy.combiner = combiner(*n.combiner);
    return b_.block(copy);
  }

  const Combiner* combiner(const Combiner& n) {
    std::vector<const Var*> left, right;
    for (const Var* v : n.left) left.push_back(var(v));
    for (const Var* v : n.right) right.push_back(var(v));
    const std::vector<Expr> results = list(n.results);
    return b_.combiner({left, right, results});
  }

  BufferId at(BufferId id) const { return buffers_.at(id); }

  IrBuilder& b_;
  std::unordered_map<const ExprNode*, Expr> exprs_;
  std::unordered_map<BufferId, BufferId> buffers_;
};

std::unordered_set<BufferId> touched_buffers(Stmt root) {
  std::unordered_set<BufferId> out;
  const auto loads = [&](Expr e) {
    walk(e, [&](Expr part) {
      if (const Load* load = part.as<Load>()) out.insert(load->buffer);
      return true;
    });
  };
  walk(
      root,
      [&](Stmt s) {
        if (const Store* store = s.as<Store>()) out.insert(store->buffer);
        if (const Alloc* alloc = s.as<Alloc>()) out.insert(alloc->buffer);
        if (const Block* block = s.as<Block>()) {
          for (const Access& access : block->reads) out.insert(access.buffer);
          for (const Access& access : block->writes) out.insert(access.buffer);
        }
        return true;
      },
      loads);
  return out;
}

Program compact(const Program& program, bool keep_all) {
  IrBuilder b(program.name());
  b.reserve_ids(program.next_ids());
  Copier copier(b);
  for (const std::string_view name : program.domain().names) b.add_param(name);
  // Ids are positions, and a shape may hold parameters, so buffers follow the parameters.
  const std::unordered_set<BufferId> used =
      keep_all ? std::unordered_set<BufferId>() : touched_buffers(program.root());
  for (const Buffer& buffer : program.buffers()) {
    const bool is_wanted =
        keep_all || buffer.role != BufferRole::kIntermediate || used.count(buffer.id) > 0;
    if (is_wanted) copier.add_buffer(buffer);
  }
  for (const TileVector& tiles : program.domain().tiles) b.add_tiles(tiles);
  for (const Choice& choice : program.domain().choices) b.add_choice(choice);
  for (Expr constraint : program.domain().constraints) b.add_constraint(copier.expr(constraint));
  return b.finish(copier.stmt(program.root()));
}

}  // namespace

Program compact(const Program& program) { return compact(program, true); }

Program compact_used(const Program& program) { return compact(program, false); }

}  // namespace prunerc::ir
