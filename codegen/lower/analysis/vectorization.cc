#include "codegen/lower/analysis/vectorization.h"

#include "codegen/lower/analysis/statements.h"
#include "ir/tensor/intrinsic.h"

#include <algorithm>
#include <map>
#include <set>
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

// Whether lanes of the loop `v` may run in lockstep: what one lane stores, no other lane touches,
// except by an accumulation into one element.
struct LaneCheck {
  VarId v;
  bool ok = true;
  int conditions = 0;  // lane-dependent conditions around the statement
  std::map<BufferId, std::vector<std::span<const Expr>>> stores, loads;
  std::map<BufferId, ExprKind> accumulated;

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
                   stmt(n.body);
                 },
                 [&](const Block&) { ok = false; },
                 [&](const Alloc&) { ok = false; },
                 [&](const If& n) {
                   expr(n.condition);
                   const bool varies = mentions(n.condition, v) || has_load(n.condition);
                   conditions += varies ? 1 : 0;
                   stmt(n.then_body);
                   stmt(n.else_body);
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
    for (Expr index : n.indices) expr(index);
    expr(n.value);
  }

  // In some dimension every access has the same index, which moves with the lane.
  bool separated(const std::vector<std::span<const Expr>>& accesses) const {
    const std::size_t rank = accesses.front().size();
    for (std::size_t d = 0; d < rank; ++d) {
      const Expr first = accesses.front()[d];
      const bool all = std::all_of(accesses.begin(), accesses.end(), [&](std::span<const Expr> a) {
        return a.size() == rank && (a[d].is(first) || a[d].hash() == first.hash());
      });
      if (all && is_injective(first)) return true;
    }
    return false;
  }

  // v itself, or a sum of v (times a nonzero constant) and terms without v.
  bool is_injective(Expr e) const {
    if (const Var* var = e.as<Var>()) return var->id == v;
    const BinaryNode* node = as_binary(e);
    if (node == nullptr) return false;
    const bool in_lhs = mentions(node->lhs, v), in_rhs = mentions(node->rhs, v);
    if (in_lhs == in_rhs) return false;
    const Expr moving = in_lhs ? node->lhs : node->rhs;
    const Expr other = in_lhs ? node->rhs : node->lhs;
    if (node->kind == ExprKind::kMul) {
      const IntImm* factor = other.as<IntImm>();
      return factor != nullptr && factor->value != 0 && is_injective(moving);
    }
    return (node->kind == ExprKind::kAdd || node->kind == ExprKind::kSub) && is_injective(moving) &&
           !has_load(other);
  }

  bool conflict_free() const {
    for (const auto& [id, indices] : stores) {
      const auto read = loads.find(id);
      std::vector<std::span<const Expr>> all = indices;
      if (read != loads.end()) all.insert(all.end(), read->second.begin(), read->second.end());
      const bool uniform =
          std::none_of(all.begin(), all.end(), [&](auto a) { return mentions(a, v); });
      if (all.size() == 1 || (uniform && read == loads.end())) continue;
      if (!separated(all)) return false;
    }
    return std::none_of(accumulated.begin(), accumulated.end(), [&](const auto& one) {
      return loads.contains(one.first) || stores.contains(one.first);
    });
  }
};

}  // namespace

bool can_vectorize(const Program&, const Loop& loop) {
  LaneCheck check{loop.var->id, true, 0, {}, {}, {}};
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
