// The three generic traversals. A switch generated from the .def files dispatches, so a missing
// case does not compile.
#ifndef PRUNERC_IR_VISIT_H_
#define PRUNERC_IR_VISIT_H_

#include "ir/builder.h"
#include "ir/stmt.h"
#include "ir/support/check.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace prunerc::ir {

/// Calls f with the node as its own type: visit(e, [](const Add& a) {...}, ...).
template <typename F>
decltype(auto) visit(Expr e, F&& f) {
  switch (e.kind()) {
#define PRUNERC_EXPR(Name, text) \
  case ExprKind::k##Name:        \
    return f(*static_cast<const Name*>(e.node()));
#include "ir/expr_kind.def"
#undef PRUNERC_EXPR
  }
  PRUNERC_UNREACHABLE("expression kind");
}

template <typename F>
decltype(auto) visit(Stmt s, F&& f) {
  switch (s.kind()) {
#define PRUNERC_STMT(Name, text) \
  case StmtKind::k##Name:        \
    return f(*static_cast<const Name*>(s.node()));
#include "ir/stmt_kind.def"
#undef PRUNERC_STMT
  }
  PRUNERC_UNREACHABLE("statement kind");
}

/// Lambdas of several node types as one visitor: visit(e, Overload{[](const Add&) {...}, ...}).
template <typename... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overload(Fs...) -> Overload<Fs...>;

/// The node's two operands if it is any binary kind, else nullptr.
inline const BinaryNode* as_binary(Expr e) {
  return e.defined() && e.kind() >= ExprKind::kAdd && e.kind() <= ExprKind::kOr
             ? static_cast<const BinaryNode*>(e.node())
             : nullptr;
}

/// Calls f(child) for each direct operand, left to right.
template <typename F>
void for_each_child(Expr e, F&& f) {
  if (const BinaryNode* b = as_binary(e)) {
    f(b->lhs);
    f(b->rhs);
  } else if (const Not* n = e.as<Not>()) {
    f(n->operand);
  } else if (const Select* s = e.as<Select>()) {
    f(s->condition);
    f(s->on_true);
    f(s->on_false);
  } else if (const Cast* c = e.as<Cast>()) {
    f(c->operand);
  } else if (const Load* l = e.as<Load>()) {
    for (Expr index : l->indices) f(index);
  } else if (const Call* call = e.as<Call>()) {
    for (Expr arg : call->args) f(arg);
  }
}

/// Calls fs(stmt) and fe(expr) for each direct child, in execution order. For a block: iteration
/// extents and bindings, regions, guard, init, body. Null children are skipped.
template <typename FS, typename FE>
void for_each_child(Stmt s, FS&& fs, FE&& fe) {
  auto stmt = [&](Stmt child) {
    if (child.defined()) fs(child);
  };
  auto expr = [&](Expr child) {
    if (child.defined()) fe(child);
  };
  if (const Seq* seq = s.as<Seq>()) {
    for (Stmt child : seq->stmts) stmt(child);
  } else if (const Loop* loop = s.as<Loop>()) {
    expr(loop->extent);
    stmt(loop->body);
  } else if (const Block* block = s.as<Block>()) {
    for (const IterVar& iter : block->iters) {
      expr(iter.extent);
      expr(iter.binding);
    }
    for (const auto& accesses : {block->reads, block->writes}) {
      for (const Access& access : accesses) {
        for (const Range& range : access.region) {
          expr(range.min);
          expr(range.extent);
        }
      }
    }
    expr(block->guard);
    stmt(block->init);
    stmt(block->body);
  } else if (const Store* store = s.as<Store>()) {
    for (Expr index : store->indices) expr(index);
    expr(store->value);
  } else if (const If* branch = s.as<If>()) {
    expr(branch->condition);
    stmt(branch->then_body);
    stmt(branch->else_body);
  } else if (const Alloc* alloc = s.as<Alloc>()) {
    stmt(alloc->body);
  }
}

/// Calls f on every expression node of e, e itself first. f returns whether to go on into the
/// children.
template <typename F>
void walk(Expr e, F&& f) {
  if (!f(e)) return;
  for_each_child(e, [&](Expr child) { walk(child, f); });
}

/// Calls fs on every statement (s first) and fe on every top-level expression of a statement.
/// fs returns whether to go on into the children.
template <typename FS, typename FE>
void walk(Stmt s, FS&& fs, FE&& fe) {
  if (!s.defined() || !fs(s)) return;
  for_each_child(
      s, [&](Stmt child) { walk(child, fs, fe); }, [&](Expr child) { fe(child); });
}

/// The buffers that a statement stores to, in order of their first stores.
inline std::vector<BufferId> stored_in_order(Stmt s) {
  std::vector<BufferId> out;
  walk(
      s,
      [&](Stmt part) {
        const Store* store = part.as<Store>();
        if (store != nullptr && std::find(out.begin(), out.end(), store->buffer) == out.end()) {
          out.push_back(store->buffer);
        }
        return true;
      },
      [](Expr) {});
  return out;
}

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_VISIT_H_
