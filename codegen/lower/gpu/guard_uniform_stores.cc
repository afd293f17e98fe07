// One thread does what a statement outside of the thread loops stores in shared or global memory.
// Before: such a statement stands for one execution, but every thread runs the text. After: for
// each axis that it does not stand in, thread 0 alone stores.
//     C[b] = W[0] + W[1]
// ~>  for tx in 64 bind(thread.x) { if tx == 0 { C[b] = W[0] + W[1] } }
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <array>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

constexpr LoopKind kLaneKinds[] = {LoopKind::kThreadX, LoopKind::kThreadY, LoopKind::kThreadZ};
constexpr std::string_view kLaneNames[] = {"tx", "ty", "tz"};

class UniformStores {
 public:
  UniformStores(IrBuilder& b, const Kernel& kernel) : b_(b), kernel_(kernel) {}

  Stmt run() { return go(kernel_.body, {}); }

 private:
  using Axes = std::array<bool, kNumThreadDims>;

  Stmt go(Stmt s, Axes inside) {
    if (!s.defined()) return s;
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr && is_lane_axis(loop->loop_kind)) {
      inside[static_cast<std::size_t>(axis_of(loop->loop_kind))] = true;
    } else if (loop != nullptr && is_bulk_copy(*loop)) {
      return s;  // the engine does it
    } else if (!has_thread_loop(s)) {
      if (!misses_axis(inside) || !stores(s, Where::kMemory)) return s;
      if (!stores(s, Where::kRegisters)) return by_first_thread(s, inside);
    }
    return map_stmts(b_, s, [&](Stmt child) { return go(child, inside); });
  }

  bool misses_axis(const Axes& inside) const {
    for (std::size_t a = 0; a < inside.size(); ++a) {
      if (!inside[a] && kernel_.threads[a] > 1) return true;
    }
    return false;
  }

  enum class Where : uint8_t { kMemory, kRegisters };

  // Does s store in shared or global memory, or in registers that outlive it?
  bool stores(Stmt s, Where where) const {
    std::vector<BufferId> own;
    bool found = false;
    walk(
        s,
        [&](Stmt x) {
          if (const Alloc* alloc = x.as<Alloc>()) own.push_back(alloc->buffer);
          const Store* store = x.as<Store>();
          if (store == nullptr) return !found;
          const bool is_local = b_.buffer(store->buffer).scope == Scope::kLocal;
          const bool is_own = std::find(own.begin(), own.end(), store->buffer) != own.end();
          found = found || (where == Where::kMemory ? !is_local : is_local && !is_own);
          return !found;
        },
        [](Expr) {});
    return found;
  }

  Stmt by_first_thread(Stmt s, const Axes& inside) {
    std::vector<Loop> loops;
    Expr is_first;
    for (std::size_t a = 0; a < inside.size(); ++a) {
      if (inside[a] || kernel_.threads[a] == 1) continue;
      loops.push_back(make_loop(b_, kLaneNames[a], kernel_.threads[a], kLaneKinds[a]));
      is_first = conjunction(b_, is_first, b_.eq(Expr(loops.back().var), b_.int_imm(0)));
    }
    Stmt r = b_.if_then(is_first, s);
    for (Loop& loop : loops) {
      loop.body = r;
      r = b_.loop(loop);
    }
    return r;
  }

  IrBuilder& b_;
  const Kernel& kernel_;
};

}  // namespace

Result<Program> guard_uniform_stores(const Program& program, const Target&) {
  return map_kernels(program, [](IrBuilder& b, const Kernel& kernel) -> Result<Stmt> {
    return UniformStores(b, kernel).run();
  });
}

}  // namespace prunerc::codegen
