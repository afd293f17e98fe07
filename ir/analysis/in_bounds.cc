#include "ir/analysis/in_bounds.h"

#include "ir/builder.h"
#include "ir/printer.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <utility>
#include <vector>

namespace prunerc::ir {
namespace {

// Programs that people wrote are few and small: a proof may take a second.
constexpr ProveOptions kPatient = {.max_points = 1'000'000};

class Walker {
 public:
  explicit Walker(const Program& program)
      : program_(program), b_(program), ranges_(program.domain()) {}

  std::optional<LooseAccess> run() {
    stmt(program_.root());
    return std::move(found_);
  }

 private:
  void stmt(Stmt s) {
    if (!s.defined() || found_) return;
    visit(s, Overload{
                 [&](const Seq& n) {
                   for (Stmt child : n.stmts) stmt(child);
                 },
                 [&](const Loop& n) {
                   expr(n.extent);
                   const VarRanges::Mark outside = ranges_.mark();
                   ranges_.bind(n.var, n.extent);
                   stmt(n.body);
                   ranges_.rewind(outside);
                 },
                 [&](const Block& n) { block(n); },
                 [&](const Store& n) {
                   access(n.buffer, n.indices);
                   expr(n.value);
                 },
                 [&](const If& n) {
                   expr(n.condition);
                   under(n.condition, true, n.then_body);
                   under(n.condition, false, n.else_body);
                 },
                 [&](const Alloc& n) { stmt(n.body); },
             });
  }

  // Of a condition of statements: stores, of other threads perhaps, may change what a part of it was
  // about, unless that is input.
  void assume_lasting(Expr condition, bool holds) {
    const auto changes = [&](Expr part) {
      const Load* load = part.as<Load>();
      return load != nullptr && program_.buffer(load->buffer).role != BufferRole::kInput;
    };
    for (Expr part : holds ? conjuncts(condition) : std::vector<Expr>{condition}) {
      if (!any_node(part, changes)) assume(part, holds);
    }
  }

  void under(Expr condition, bool holds, Stmt inside) {
    const VarRanges::Mark outside = ranges_.mark();
    assume_lasting(condition, holds);
    stmt(inside);
    ranges_.rewind(outside);
  }

  void assume(Expr condition, bool holds) {
    if (holds) {
      ranges_.assume(condition);
    } else {
      ranges_.assume_not(condition);
    }
  }

  void block(const Block& n) {
    const VarRanges::Mark outside = ranges_.mark();
    const std::size_t outer = bindings_.size();
    if (n.guard.defined()) {
      expr(n.guard);
      assume_lasting(n.guard, true);
    }
    for (const IterVar& iter : n.iters) {
      expr(iter.binding);
      if (!stays(iter.binding, iter.extent)) {
        note(iter.binding, iter.extent,
             "what '" + std::string(iter.var->name) + "' is bound to, " +
                 print(program_, iter.binding) + ",");
      }
    }
    for (const IterVar& iter : n.iters) {
      ranges_.bind(iter.var, iter.extent);
      bindings_.emplace_back(iter.var, iter.binding);
    }
    stmt(n.init);
    stmt(n.body);
    bindings_.resize(outer);
    ranges_.rewind(outside);
  }

  void access(BufferId id, std::span<const Expr> indices) {
    const Buffer& buffer = program_.buffer(id);
    for (std::size_t d = 0; d < indices.size() && !found_; ++d) {
      expr(indices[d]);
      if (stays(indices[d], buffer.shape[d])) continue;
      note(indices[d], buffer.shape[d],
           "index " + print(program_, indices[d]) + " of dimension " + std::to_string(d) + " of '" +
               std::string(buffer.name) + "'");
    }
  }

  // What is lazy narrows what stands in it.
  void expr(Expr e) {
    if (!e.defined() || found_) return;
    if (const Load* load = e.as<Load>()) return access(load->buffer, load->indices);
    if (const Select* select = e.as<Select>()) {
      expr(select->condition);
      within(select->condition, true, select->on_true);
      within(select->condition, false, select->on_false);
      return;
    }
    if (e.kind() == ExprKind::kAnd || e.kind() == ExprKind::kOr) {
      const BinaryNode* both = as_binary(e);
      expr(both->lhs);
      within(both->lhs, e.kind() == ExprKind::kAnd, both->rhs);
      return;
    }
    for_each_child(e, [&](Expr child) { expr(child); });
  }

  void within(Expr condition, bool holds, Expr inside) {
    const VarRanges::Mark outside = ranges_.mark();
    assume(condition, holds);
    expr(inside);
    ranges_.rewind(outside);
  }

  Proof prove_inside(Expr index, Expr extent) {
    const Expr zero = b_.int_imm(0, index.dtype());
    const Expr end = b_.cast(index.dtype(), extent);
    return prove_less_equal(zero, index, ranges_, kPatient) &&
           prove_less(index, end, ranges_, kPatient);
  }

  // Iteration variables are first taken as independent of the loops that they are bound to: that
  // is cheap, and all that most programs need.
  bool stays(Expr index, Expr extent) {
    const Interval range = interval_of(index, ranges_);
    const Interval size = interval_of(extent, ranges_);
    if (range.lo >= 0 && size.lo != Interval::kNoLower && range.hi < size.lo) return true;
    proof_ = prove_inside(index, extent);
    if (proof_ == Proof::kYes) return true;
    const VarRanges::Mark outside = ranges_.mark();
    for (const auto& [var, binding] : bindings_) {
      ranges_.assume(b_.eq(Expr(var), b_.cast(var->dtype, binding)));
    }
    proof_ = prove_inside(index, extent);
    ranges_.rewind(outside);
    return proof_ == Proof::kYes;
  }

  void note(Expr index, Expr extent, const std::string& subject) {
    if (found_) return;
    const Interval range = interval_of(index, ranges_);
    LooseAccess loose;
    loose.proof = proof_;
    loose.what = subject;
    if (proof_ == Proof::kNo) {
      loose.what += " leaves 0 <= i < " + print(program_, extent);
    } else {
      loose.what += " is not shown to stay within 0 <= i < " + print(program_, extent);
    }
    if (has_data(index)) {
      loose.what += "; a subscript made of data needs a condition around the access";
    } else if (range.is_bounded()) {
      loose.what += "; it may be " + std::to_string(range.lo) + " to " + std::to_string(range.hi);
    }
    found_ = std::move(loose);
  }

  const Program& program_;
  IrBuilder b_;
  VarRanges ranges_;
  std::vector<std::pair<const Var*, Expr>> bindings_;  // of the blocks around, outermost first
  Proof proof_ = Proof::kUnknown;                      // of the latest question
  std::optional<LooseAccess> found_;
};

}  // namespace

std::optional<LooseAccess> find_loose_access(const Program& program) {
  return Walker(program).run();
}

Result<void> verify_in_bounds(const Program& program) {
  const std::optional<LooseAccess> loose = find_loose_access(program);
  if (!loose) return {};
  return error(Diag::kProgramInvalid, std::string(program.name()), loose->what);
}

}  // namespace prunerc::ir
