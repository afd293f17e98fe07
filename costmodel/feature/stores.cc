#include "costmodel/feature/stores.h"

#include "costmodel/feature/ops.h"
#include "ir/equal.h"
#include "ir/support/check.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;

bool same_place(const NestAccess& a, ir::BufferId buffer, std::span<const Expr> indices) {
  return a.buffer == buffer &&
         std::equal(a.indices.begin(), a.indices.end(), indices.begin(), indices.end(),
                    [](Expr x, Expr y) { return x.is(y) || ir::structural_equal(x, y); });
}

const NestAccess* find(const Nest& nest, ir::BufferId buffer, std::span<const Expr> indices) {
  const auto at = std::find_if(nest.accesses.begin(), nest.accesses.end(),
                               [&](const NestAccess& a) { return same_place(a, buffer, indices); });
  PRUNERC_CHECK(at != nest.accesses.end(), "a nest knows what its stores touch");
  return &*at;
}

/// A sum that a guard bounds, as steps of the loops that stand in it by themselves.
class BoundedSum {
 public:
  BoundedSum(ParamSpace& space, const std::vector<NestLoop>& loops)
      : space_(space), loops_(loops), steps_(loops.size()) {}

  // False if the sum may fall below its constant by what is not known here.
  bool add(Expr e, const Poly& factor) {
    if (const std::optional<Poly> number = space_.polynomial(e)) {
      constant_ = constant_ + space_.multiply(*number, factor);
      return true;
    }
    const ir::BinaryNode* sides = ir::as_binary(e);
    if (e.kind() == ExprKind::kAdd) return add(sides->lhs, factor) && add(sides->rhs, factor);
    if (e.kind() == ExprKind::kMul) {
      const std::optional<Poly> r = space_.polynomial(sides->rhs);
      return r && add(sides->lhs, space_.multiply(*r, factor));
    }
    if (range_of(space_.symbol(factor)).lo < 0) return false;
    // Quotients and remainders of what is not negative are not negative.
    if (e.kind() == ExprKind::kFloorDiv || e.kind() == ExprKind::kFloorMod) return true;
    const auto* var = e.as<ir::Var>();
    if (var == nullptr) return false;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i].var == var->id) steps_[i] = steps_[i] + factor;
    }
    return true;
  }

  Sym step(std::size_t loop) const { return space_.symbol(steps_[loop]); }
  const Poly& constant() const { return constant_; }

 private:
  ParamSpace& space_;
  const std::vector<NestLoop>& loops_;
  std::vector<Poly> steps_;
  Poly constant_;
};

// Marks loops that only their first iteration lets through.
void read_guard(Expr condition, ParamSpace& space, std::vector<NestLoop>* loops) {
  if (const auto* sides = condition.as<ir::And>()) {
    read_guard(sides->lhs, space, loops);
    read_guard(sides->rhs, space, loops);
    return;
  }
  const bool is_less = condition.kind() == ExprKind::kLt;
  if (!is_less && condition.kind() != ExprKind::kLe) return;
  const ir::BinaryNode* sides = ir::as_binary(condition);
  const std::optional<Poly> bound = space.polynomial(sides->rhs);
  BoundedSum sum(space, *loops);
  if (!bound || !sum.add(sides->lhs, 1)) return;
  const Sym room = space.symbol((is_less ? *bound - 1 : *bound) - sum.constant());
  for (std::size_t i = 0; i < loops->size(); ++i) {
    (*loops)[i].runs = logical_and((*loops)[i].runs, less_equal(sum.step(i), room));
  }
}

std::vector<Sym> extents_of(const ir::Program& program, ParamSpace& space) {
  std::vector<Sym> out(static_cast<std::size_t>(program.next_ids().var), Sym(2));
  if (!program.root().defined()) return out;
  ir::walk(
      program.root(),
      [&](Stmt s) {
        if (const auto* block = s.as<ir::Block>()) {
          for (const ir::IterVar& iter : block->iters) {
            out[static_cast<std::size_t>(iter.var->id.value)] =
                space.value(iter.extent).value_or(2);
          }
        }
        return true;
      },
      [](Expr) {});
  return out;
}

}  // namespace

StoreTable::StoreTable(const NestTable& table) : table_(&table) {
  const std::vector<Sym> extents = extents_of(table.program(), table.space());
  for (const Nest& known : table.nests()) {
    const Nest* nest = &known;
    if (known.block != nullptr && known.block->guard.defined()) {
      Nest guarded = known;
      read_guard(known.block->guard, table.space(), &guarded.loops);
      const bool is_news = std::any_of(guarded.loops.begin(), guarded.loops.end(),
                                       [](const NestLoop& loop) { return !loop.runs.is(1); });
      if (is_news) {
        table.read_subscripts(&guarded);
        guarded_.push_back(std::move(guarded));
        nest = &guarded_.back();
      }
    }
    ir::walk(
        nest->body,
        [&](Stmt part) {
          const auto* store = part.as<ir::Store>();
          if (store == nullptr) return true;
          StoreNest& out = stores_.emplace_back();
          out.store = store;
          out.nest = nest;
          out.accesses.push_back({find(*nest, store->buffer, store->indices), true});
          const auto read = [&](Expr root) {
            count_operations(root, extents, table.space(), &out.ops);
            ir::walk(root, [&](Expr e) {
              if (const auto* load = e.as<ir::Load>()) {
                out.accesses.push_back({find(*nest, load->buffer, load->indices)});
              }
              return true;
            });
          };
          read(store->value);
          for (const Expr index : store->indices) read(index);
          return false;
        },
        [](Expr) {});
  }
}

}  // namespace prunerc::costmodel
