#include "codegen/lower/analysis/vectorization.h"

#include "codegen/lower/analysis/statements.h"
#include "ir/tensor/intrinsic.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace prunerc::codegen {

using namespace ir;

namespace {

bool same_indices(std::span<const Expr> a, std::span<const Expr> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](Expr x, Expr y) {
           return x.is(y) || x.hash() == y.hash();
         });
}

bool is_element(Expr e, const Store& store) {
  const Load* load = e.as<Load>();
  return load != nullptr && load->buffer == store.buffer &&
         same_indices(load->indices, store.indices);
}

}  // namespace

std::optional<Accumulation> accumulation(const Store& store) {
  const BinaryNode* node = as_binary(store.value);
  if (node == nullptr) return std::nullopt;
  const ExprKind k = node->kind;
  if (k != ExprKind::kAdd && k != ExprKind::kMul && k != ExprKind::kMin && k != ExprKind::kMax) {
    return std::nullopt;
  }
  if (is_element(node->lhs, store) && !loads_from(node->rhs, store.buffer))
    return Accumulation{k, node->rhs};
  if (is_element(node->rhs, store) && !loads_from(node->lhs, store.buffer))
    return Accumulation{k, node->lhs};
  return std::nullopt;
}

namespace {

// An upper bound of a loop's extent: loops that a condition shortens are min(what is left, a constant).
int64_t most_of(Expr extent) {
  const Min* shortened = extent.as<Min>();
  if (shortened != nullptr) return std::min(most_of(shortened->lhs), most_of(shortened->rhs));
  return constant_or(extent, INT64_MAX);
}

// Whether lanes of the loop `v` may run in lockstep: what one lane stores, no other lane touches,
// except by an accumulation into one element.
struct LaneCheck {
  VarId v;
  int64_t extent;
  bool ok = true;
  int conditions = 0;  // lane-dependent conditions around the statement
  int changing = 0;    // those of them that loops inside may decide anew in each iteration
  int depth = 0;       // loops inside around the statement
  std::map<BufferId, std::vector<std::span<const Expr>>> stores, loads;
  std::map<BufferId, ExprKind> accumulated;
  std::vector<const Loop*> inner;
  std::set<BufferId> reordered;  // stored by lanes that loops inside may bring in another order

  void expr(Expr e) {
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) loads[load->buffer].push_back(load->indices);
      return true;
    });
  }

  void stmt(Stmt s) {
    if (!s.defined()) return;
    visit(s, Overload{
                 [&](const Seq& n) {
                   for (Stmt child : n.stmts) stmt(child);
                 },
                 [&](const Loop& n) {
                   // The instruction has lanes of its own.
                   ok = ok && !tensor_of(n) && !mentions(n.extent, v) && !has_load(n.extent);
                   const bool repeats = constant_or(n.extent, 0) != 1;
                   if (repeats) inner.push_back(&n);
                   depth += repeats ? 1 : 0;
                   stmt(n.body);
                   depth -= repeats ? 1 : 0;
                 },
                 [&](const Block&) { ok = false; },
                 [&](const Alloc&) { ok = false; },
                 [&](const If& n) {
                   expr(n.condition);
                   const bool varies = mentions(n.condition, v) || has_load(n.condition);
                   const bool changes = varies && depth > 0 && may_change(n.condition);
                   conditions += varies ? 1 : 0;
                   changing += changes ? 1 : 0;
                   stmt(n.then_body);
                   stmt(n.else_body);
                   changing -= changes ? 1 : 0;
                   conditions -= varies ? 1 : 0;
                 },
                 [&](const Store& n) { store(n); },
             });
  }

  void store(const Store& n) {
    if (!mentions(n.indices, v)) {
      const std::optional<Accumulation> acc = accumulation(n);
      if (acc) {
        // What one statement makes of all lanes the next one finds: only the same operation commutes.
        ok = ok && accumulated.emplace(n.buffer, acc->kind).first->second == acc->kind;
        for (Expr index : n.indices) expr(index);
        return expr(acc->term);
      }
      // One value for one element: lanes agree, unless only some of them would store.
      ok = ok && conditions == 0 && !mentions(n.value, v) && !loads_from(n.value, n.buffer);
    }
    stores[n.buffer].push_back(n.indices);
    if (changing > 0) reordered.insert(n.buffer);
    for (Expr index : n.indices) expr(index);
    expr(n.value);
  }

  // In some dimension every access has the same index, of which the lane is a digit.
  bool separated(const std::vector<std::span<const Expr>>& accesses) const {
    const std::size_t rank = accesses.front().size();
    for (std::size_t d = 0; d < rank; ++d) {
      const Expr first = accesses.front()[d];
      const bool all = std::all_of(accesses.begin(), accesses.end(), [&](std::span<const Expr> a) {
        return a.size() == rank && (a[d].is(first) || a[d].hash() == first.hash());
      });
      if (all && is_digit(first)) return true;
    }
    return false;
  }

  // The lane is a digit of the index, as far as this moves: iterations of the loops inside never bring
  // one lane to where another one is or was.
  bool is_digit(Expr index) const {
    const std::optional<int64_t> own = step_of(index, v);
    if (!own || *own == 0 || has_load(index)) return false;
    std::vector<std::pair<int64_t, int64_t>> digits = {{std::abs(*own), extent}};
    for (const Loop* loop : inner) {
      const std::optional<int64_t> step = step_of(index, loop->var->id);
      if (!step) return false;
      if (*step != 0) digits.emplace_back(std::abs(*step), most_of(loop->extent));
    }
    std::sort(digits.begin(), digits.end());
    int64_t span = 0, more = 0;
    for (const auto& [step, count] : digits) {
      if (step <= span) return false;
      const bool is_huge = __builtin_mul_overflow(step, count - 1, &more) ||
                           __builtin_add_overflow(span, more, &span);
      if (is_huge) span = INT64_MAX;
    }
    return true;
  }

  bool follows_inner(std::span<const Expr> exprs) const {
    return std::any_of(inner.begin(), inner.end(),
                       [&](const Loop* loop) { return mentions(exprs, loop->var->id); });
  }

  bool may_change(Expr condition) const {
    return has_load(condition) || follows_inner({&condition, 1});
  }

  bool loads_stored(Expr e) const {
    return std::any_of(stores.begin(), stores.end(),
                       [&](const auto& stored) { return loads_from(e, stored.first); });
  }

  // Of the only access to a buffer: the last lane of the last iteration wins in any case, if each
  // lane stores to one element in all iterations.
  bool is_in_order(BufferId id, std::span<const Expr> indices) const {
    const bool by_data =
        !inner.empty() && std::any_of(indices.begin(), indices.end(),
                                      [&](Expr index) { return loads_stored(index); });
    return !by_data && !reordered.contains(id) && !follows_inner(indices);
  }

  bool conflict_free() const {
    for (const auto& [id, indices] : stores) {
      const auto read = loads.find(id);
      std::vector<std::span<const Expr>> all = indices;
      if (read != loads.end()) all.insert(all.end(), read->second.begin(), read->second.end());
      const bool uniform =
          std::none_of(all.begin(), all.end(), [&](auto a) { return mentions(a, v); });
      if ((all.size() == 1 && is_in_order(id, all[0])) || (uniform && read == loads.end()))
        continue;
      if (!separated(all)) return false;
    }
    return std::none_of(accumulated.begin(), accumulated.end(), [&](const auto& one) {
      return loads.contains(one.first) || stores.contains(one.first);
    });
  }
};

}  // namespace

bool can_vectorize(const Program&, const Loop& loop) {
  LaneCheck check{
      loop.var->id, constant_or(loop.extent, INT64_MAX), true, 0, 0, 0, {}, {}, {}, {}, {}};
  check.stmt(loop.body);
  return check.ok && check.conflict_free();
}

int64_t widest_bytes(Stmt s) {
  int64_t widest = 1;
  auto expr = [&](Expr e) {
    walk(e, [&](Expr x) {
      if (x.kind() == ExprKind::kLoad || x.kind() == ExprKind::kCast || is_float(x.dtype())) {
        const bool held_as_f32 = x.dtype() == DType::kF16 || x.dtype() == DType::kBF16;
        widest = std::max(widest, held_as_f32 ? 4 : byte_size(x.dtype()));
      }
      return x.kind() != ExprKind::kLoad;
    });
  };
  walk(
      s,
      [&](Stmt x) {
        if (const Store* store = x.as<Store>()) {
          widest = std::max<int64_t>(widest, byte_size(store->value.dtype()));
          expr(store->value);
        }
        return true;
      },
      [](Expr) {});
  return widest;
}

}  // namespace prunerc::codegen
