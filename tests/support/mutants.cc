#include "tests/support/mutants.h"

#include "ir/map.h"
#include "ir/verify.h"
#include "ir/visit.h"

#include <vector>

namespace prunerc::testing {
namespace {

using namespace prunerc::ir;  // NOLINT: a source file of tests

// Goes over a program, counts the places that a kind fits, and changes the chosen one.
class Mutator {
 public:
  Mutator(const Program& program, MutantKind kind, int64_t chosen, Rng rng)
      : program_(program), kind_(kind), chosen_(chosen), rng_(rng), b_(program) {}

  Program run() {
    const Stmt root = stmt(program_.root());
    return b_.finish(root);
  }
  int64_t num_places() const { return place_; }

 private:
  bool here() { return place_++ == chosen_; }

  Expr shifted(Expr e) {
    return rng_.chance(0.5) ? b_.add(e, b_.int_imm(1)) : b_.sub(e, b_.int_imm(1));
  }
  Expr value(Expr e);
  Expr changed_binary(Expr e, const BinaryNode& n);
  Expr changed(Expr e);
  std::vector<Expr> changed_indices(std::span<const Expr> indices);
  Expr guard(Expr g);
  Stmt stmt(Stmt s);
  Stmt block(const Block& old);
  Stmt store(const Store& old, bool is_init);

  const Program& program_;
  MutantKind kind_;
  int64_t chosen_;
  int64_t place_ = 0;
  Rng rng_;
  IrBuilder b_;
  std::vector<const Loop*> loops_;
};

std::vector<Expr> Mutator::changed_indices(std::span<const Expr> indices) {
  std::vector<Expr> out(indices.begin(), indices.end());
  for (Expr& index : out) {
    if (here()) index = shifted(index);
  }
  return out;
}

Expr Mutator::changed_binary(Expr e, const BinaryNode& n) {
  const bool floats = is_float(n.lhs.dtype());
  switch (kind_) {
    case MutantKind::kLostFactor:
      if (n.kind == ExprKind::kMul && here()) return rng_.chance(0.5) ? n.lhs : n.rhs;
      if (n.kind == ExprKind::kDiv && here()) return n.lhs;
      return e;
    case MutantKind::kLostTerm:
      if ((n.kind == ExprKind::kAdd || n.kind == ExprKind::kSub) && here()) {
        return rng_.chance(0.5) || n.kind == ExprKind::kSub ? n.lhs : n.rhs;
      }
      return e;
    case MutantKind::kLostCall:
      if ((n.kind == ExprKind::kMax || n.kind == ExprKind::kMin) && here()) return n.rhs;
      return e;
    case MutantKind::kSwappedOperands: {
      const bool orders = n.kind == ExprKind::kSub || n.kind == ExprKind::kDiv ||
                          n.kind == ExprKind::kLt || n.kind == ExprKind::kLe;
      return orders && here() ? b_.binary(n.kind, n.rhs, n.lhs) : e;
    }
    case MutantKind::kWrongOperator:
      if (n.kind == ExprKind::kAdd && here()) return b_.sub(n.lhs, n.rhs);
      if (n.kind == ExprKind::kSub && here()) return b_.add(n.lhs, n.rhs);
      if (n.kind == ExprKind::kMax && here()) return b_.min(n.lhs, n.rhs);
      if (n.kind == ExprKind::kMin && here()) return b_.max(n.lhs, n.rhs);
      if (n.kind == ExprKind::kMul && floats && here()) return b_.add(n.lhs, n.rhs);
      return e;
    default: return e;  // NOLINT: the other kinds change no operators
  }
}

Expr Mutator::changed(Expr e) {
  if (const BinaryNode* n = as_binary(e)) return changed_binary(e, *n);
  const Select* s = e.as<Select>();
  if (s != nullptr && kind_ == MutantKind::kSwappedBranches && here()) {
    return b_.select(s->condition, s->on_false, s->on_true);
  }
  const Call* call = e.as<Call>();
  if (call != nullptr && kind_ == MutantKind::kLostCall && here()) return call->args[0];
  const Load* load = e.as<Load>();
  if (load != nullptr && kind_ == MutantKind::kShiftedLoad) {
    const int64_t before = place_;
    const std::vector<Expr> indices = changed_indices(load->indices);
    if (chosen_ >= before && chosen_ < place_) return b_.load(load->buffer, indices);
  }
  const FloatImm* f = e.as<FloatImm>();
  if (f != nullptr && kind_ == MutantKind::kWrongConstant && here()) {
    return b_.float_imm(f->value == 0 ? 1 : rng_.chance(0.5) ? 0 : -f->value, f->dtype);
  }
  return e;
}

// A value of a body, its operands first.
Expr Mutator::value(Expr e) {
  return changed(map_children(b_, e, [this](Expr child) { return value(child); }));
}

Expr Mutator::guard(Expr g) {
  const And* both = g.as<And>();
  if (both != nullptr) {
    const Expr l = guard(both->lhs);
    const Expr r = guard(both->rhs);
    if (!l.defined() || !r.defined()) return l.defined() ? l : r;
    return l.is(both->lhs) && r.is(both->rhs) ? g : b_.logical_and(l, r);
  }
  if (kind_ == MutantKind::kLostGuard && here()) return {};
  const Lt* less = g.as<Lt>();
  if (less != nullptr && kind_ == MutantKind::kShiftedGuard && here()) {
    return b_.lt(less->lhs, shifted(less->rhs));
  }
  return g;
}

Stmt Mutator::store(const Store& old, bool is_init) {
  if (is_init) {
    if (kind_ == MutantKind::kWrongInit && here()) {
      const FloatImm* f = old.value.as<FloatImm>();
      const IntImm* whole = old.value.as<IntImm>();
      const bool was_zero = f != nullptr ? f->value == 0 : whole != nullptr && whole->value == 0;
      return b_.store(old.buffer, old.indices, b_.constant(was_zero ? 1 : 0, old.value.dtype()));
    }
    return Stmt(&old);
  }
  const Expr v = value(old.value);
  if (kind_ == MutantKind::kShiftedStore) {
    const int64_t before = place_;
    const std::vector<Expr> indices = changed_indices(old.indices);
    if (chosen_ >= before && chosen_ < place_) return b_.store(old.buffer, indices, v);
  }
  return v.is(old.value) ? Stmt(&old) : b_.store(old.buffer, old.indices, v);
}

Stmt Mutator::block(const Block& old) {
  if (kind_ == MutantKind::kLostBlock && here()) return {};
  Block block = old;
  if (old.guard.defined()) block.guard = guard(old.guard);
  std::vector<IterVar> iters(old.iters.begin(), old.iters.end());
  for (IterVar& iter : iters) {
    if (kind_ != MutantKind::kWrongLaneMap || loops_.empty() || !here()) continue;
    const Loop* other = loops_[static_cast<std::size_t>(rng_.below(loops_.size()))];
    VarMap swap;
    walk(iter.binding, [&](Expr e) {
      const Var* v = e.as<Var>();
      if (v != nullptr && swap.empty()) {
        swap[v->id] =
            other->var->id != v->id ? Expr(other->var) : b_.mul(Expr(other->var), b_.int_imm(2));
      }
      return true;
    });
    iter.binding = substitute(b_, iter.binding, swap);
  }
  block.iters = iters;
  if (old.init.defined()) {
    block.init = kind_ == MutantKind::kLostInit && here() ? Stmt() : block.init;
    const Store* init = block.init.as<Store>();
    if (init != nullptr) block.init = store(*init, true);
  }
  block.body = stmt(old.body);
  return b_.block(block);
}

Stmt Mutator::stmt(Stmt s) {
  if (!s.defined()) return s;
  if (const Block* n = s.as<Block>()) return block(*n);
  if (const Store* n = s.as<Store>()) return store(*n, false);
  const Loop* loop = s.as<Loop>();
  if (loop == nullptr) {
    return map_children(
        b_, s, [this](Stmt child) { return stmt(child); }, [](Expr e) { return e; });
  }
  loops_.push_back(loop);
  Loop changed = *loop;
  changed.body = stmt(loop->body);
  loops_.pop_back();
  if (!changed.body.defined()) return {};
  const IntImm* extent = loop->extent.as<IntImm>();
  if (kind_ == MutantKind::kShortLoop && extent != nullptr && extent->value > 1 && here()) {
    changed.extent = b_.int_imm(extent->value - 1);
  }
  return b_.loop(changed);
}

}  // namespace

std::string_view to_string(MutantKind kind) {
  constexpr std::string_view kNames[] = {
      "lost guard",  "shifted guard",    "shifted load",     "shifted store",
      "wrong init",  "lost init",        "lost factor",      "lost term",
      "lost call",   "swapped operands", "swapped branches", "short loop",
      "wrong lanes", "lost block",       "wrong operator",   "wrong constant"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<Program> mutate(const Program& program, MutantKind kind, Rng& rng) {
  Mutator counter(program, kind, -1, rng);
  (void)counter.run();
  if (counter.num_places() == 0) return std::nullopt;
  const auto chosen = static_cast<int64_t>(rng.below(static_cast<uint64_t>(counter.num_places())));
  const Program mutant = Mutator(program, kind, chosen, rng.split(1)).run();
  if (!mutant.root().defined() || !verify(mutant).ok()) return std::nullopt;
  return mutant;
}

}  // namespace prunerc::testing
