#include "costmodel/feature/stores.h"

#include "ir/visit.h"

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;

double constant_or_one(Expr e) {
  const auto* imm = e.as<ir::IntImm>();
  return imm != nullptr ? static_cast<double>(std::max<int64_t>(1, imm->value)) : 1;
}

StoreOps::ByType& by_type(StoreOps& ops, Expr e) {
  return ir::is_float(e.dtype()) ? ops.of_float : ops.of_int;
}

void count(Expr e, StoreOps& ops) {
  switch (e.kind()) {
    case ExprKind::kAdd:
    case ExprKind::kSub: by_type(ops, e).add_sub += 1; return;
    case ExprKind::kMul: by_type(ops, e).mul += 1; return;
    case ExprKind::kDiv:
    case ExprKind::kFloorDiv:
    case ExprKind::kFloorMod: by_type(ops, e).div_mod += 1; return;
    case ExprKind::kMin:
    case ExprKind::kMax: by_type(ops, e).compare += 1; return;
    // What is compared decides, not the truth that comes of it.
    case ExprKind::kEq:
    case ExprKind::kNe:
    case ExprKind::kLt:
    case ExprKind::kLe: by_type(ops, ir::as_binary(e)->lhs).compare += 1; return;
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kNot: ops.of_bool += 1; return;
    case ExprKind::kSelect: ops.select += 1; return;
    case ExprKind::kCall: by_type(ops, e).math += 1; return;
    case ExprKind::kCast:
    case ExprKind::kVar:
    case ExprKind::kTileParam:
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kLoad: return;
  }
}

double sum_of(const StoreOps::ByType& t) {
  return t.mad + t.add_sub + t.mul + t.div_mod + t.compare + t.math + t.other;
}

double value_of(Expr e) {
  const auto* imm = e.as<ir::IntImm>();
  return imm != nullptr ? static_cast<double>(imm->value) : NAN;
}

}  // namespace

double StoreOps::sum() const { return sum_of(of_float) + sum_of(of_int) + of_bool + select; }

StoreTable::StoreTable(const ir::Program& program) : program_(&program) { collect(program.root()); }

void StoreTable::collect(Stmt s) {
  if (!s.defined()) return;
  if (const auto* loop = s.as<ir::Loop>()) {
    stack_.push_back({loop->id, loop->var->id, constant_or_one(loop->extent), loop->loop_kind});
    collect(loop->body);
    stack_.pop_back();
  } else if (const auto* block = s.as<ir::Block>()) {
    collect_block(*block);
  } else if (const auto* store = s.as<ir::Store>()) {
    add(*store, false);
  } else {
    ir::for_each_child(
        s, [&](Stmt child) { collect(child); }, [](Expr) {});
  }
}

void StoreTable::collect_block(const ir::Block& block) {
  std::vector<ir::VarId> outer = reduced_;
  for (const ir::IterVar& iter : block.iters) {
    bindings_[iter.var->id.value] = iter.binding;
    if (iter.kind != ir::IterKind::kReduce) continue;
    for (const StoreLoop& loop : stack_) {
      if (uses(iter.binding, loop.var)) reduced_.push_back(loop.var);
    }
  }
  if (block.init.defined()) {
    ir::walk(
        block.init,
        [&](Stmt part) {
          if (const auto* store = part.as<ir::Store>()) add(*store, true);
          return true;
        },
        [](Expr) {});
  }
  collect(block.body);
  reduced_ = std::move(outer);
}

void StoreTable::add(const ir::Store& store, bool is_init) {
  StoreNest nest;
  nest.store = &store;
  for (const StoreLoop& loop : stack_) {
    const bool reduced = std::find(reduced_.begin(), reduced_.end(), loop.var) != reduced_.end();
    if (!is_init || !reduced) nest.loops.push_back(loop);
  }
  nest.accesses.push_back({store.buffer, {store.indices.begin(), store.indices.end()}, true});
  const auto read = [&](Expr root) {
    ir::walk(root, [&](Expr e) {
      count(e, nest.ops);
      if (const auto* load = e.as<ir::Load>()) {
        nest.accesses.push_back({load->buffer, {load->indices.begin(), load->indices.end()}});
      }
      return true;
    });
  };
  read(store.value);
  for (const Expr index : store.indices) read(index);
  nests_.push_back(std::move(nest));
}

bool StoreTable::uses(Expr e, ir::VarId var) const {
  bool found = false;
  ir::walk(e, [&](Expr part) {
    if (const auto* v = part.as<ir::Var>()) {
      const auto bound = bindings_.find(v->id.value);
      found = found || v->id == var || (bound != bindings_.end() && uses(bound->second, var));
    }
    return !found;
  });
  return found;
}

// Largest minus smallest value of e while the nest's loops from `depth` inwards run.
double StoreTable::reach(const StoreNest& nest, Expr e, std::size_t depth) const {
  const auto both = [&](const ir::BinaryNode& b) {
    return reach(nest, b.lhs, depth) + reach(nest, b.rhs, depth);
  };
  if (const auto* var = e.as<ir::Var>()) {
    if (const auto bound = bindings_.find(var->id.value); bound != bindings_.end()) {
      return reach(nest, bound->second, depth);
    }
    for (std::size_t i = depth; i < nest.loops.size(); ++i) {
      if (nest.loops[i].var == var->id) return nest.loops[i].extent - 1;
    }
    return 0;
  }
  if (const auto* cast = e.as<ir::Cast>()) return reach(nest, cast->operand, depth);
  if (const auto* select = e.as<ir::Select>()) {
    return std::max(reach(nest, select->on_true, depth), reach(nest, select->on_false, depth));
  }
  const ir::BinaryNode* b = ir::as_binary(e);
  if (b == nullptr) return e.as<ir::Load>() != nullptr ? HUGE_VAL : 0;
  const double right = value_of(b->rhs), left = value_of(b->lhs);
  switch (e.kind()) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMin:
    case ExprKind::kMax: return both(*b);
    case ExprKind::kMul:
      if (!std::isnan(right)) return reach(nest, b->lhs, depth) * std::abs(right);
      return std::isnan(left) ? both(*b) : reach(nest, b->rhs, depth) * std::abs(left);
    case ExprKind::kFloorDiv:
      return std::isnan(right) ? both(*b)
                               : std::ceil(reach(nest, b->lhs, depth) / std::max(1.0, right));
    case ExprKind::kFloorMod:
      return std::isnan(right) ? both(*b) : std::min(reach(nest, b->lhs, depth), right - 1);
    default: return both(*b);
  }
}

std::vector<double> StoreTable::region(const StoreNest& nest, const StoreAccess& access,
                                       std::size_t depth) const {
  std::vector<double> out = shape(access.buffer);
  for (std::size_t d = 0; d < out.size(); ++d) {
    out[d] = std::min(out[d], reach(nest, access.indices[d], depth) + 1);
  }
  return out;
}

// Change of e for one step of a loop; divisions and remainders as if the step did not cross over.
double StoreTable::step(Expr e, ir::VarId var) const {
  if (const auto* v = e.as<ir::Var>()) {
    if (v->id == var) return 1;
    const auto bound = bindings_.find(v->id.value);
    return bound != bindings_.end() ? step(bound->second, var) : 0;
  }
  if (const auto* cast = e.as<ir::Cast>()) return step(cast->operand, var);
  if (const auto* select = e.as<ir::Select>()) return step(select->on_true, var);
  const ir::BinaryNode* b = ir::as_binary(e);
  if (b == nullptr) return 0;
  const double right = value_of(b->rhs), left = value_of(b->lhs);
  switch (e.kind()) {
    case ExprKind::kAdd: return step(b->lhs, var) + step(b->rhs, var);
    case ExprKind::kSub: return step(b->lhs, var) - step(b->rhs, var);
    case ExprKind::kMul:
      if (!std::isnan(right)) return step(b->lhs, var) * right;
      return std::isnan(left) ? 0 : left * step(b->rhs, var);
    case ExprKind::kFloorDiv: return std::trunc(step(b->lhs, var) / std::max(1.0, right));
    case ExprKind::kFloorMod: return std::fmod(step(b->lhs, var), std::max(1.0, right));
    default: return step(b->lhs, var);
  }
}

double StoreTable::stride(const StoreNest& nest, const StoreAccess& access,
                          std::size_t depth) const {
  const std::vector<double> extents = shape(access.buffer);
  double total = 0, width = 1;
  for (std::size_t d = extents.size(); d-- > 0;) {
    total += width * step(access.indices[d], nest.loops[depth].var);
    width *= extents[d];
  }
  return std::abs(total);
}

bool StoreTable::moves(const StoreNest& nest, const StoreAccess& access, std::size_t depth) const {
  return std::any_of(access.indices.begin(), access.indices.end(),
                     [&](Expr index) { return uses(index, nest.loops[depth].var); });
}

std::size_t StoreTable::home_depth(ir::BufferId buffer) const {
  const StoreNest* first = nullptr;
  std::size_t depth = 0;
  for (const StoreNest& nest : nests_) {
    const bool touches = std::any_of(nest.accesses.begin(), nest.accesses.end(),
                                     [&](const StoreAccess& a) { return a.buffer == buffer; });
    if (!touches) continue;
    if (first == nullptr) {
      first = &nest;
      depth = nest.loops.size();
    }
    std::size_t common = 0;
    while (common < depth && common < nest.loops.size() &&
           nest.loops[common].id == first->loops[common].id) {
      ++common;
    }
    depth = common;
  }
  return depth;
}

std::vector<double> StoreTable::shape(ir::BufferId buffer) const {
  std::vector<double> out;
  for (const Expr extent : program_->buffer(buffer).shape) out.push_back(constant_or_one(extent));
  return out;
}

}  // namespace prunerc::costmodel
