// Code on fragments of tensor instructions runs in the lanes that hold the elements.
// Before: it runs over rows and columns. After: over lanes and their registers, tile by tile. What
// values are exchanged with becomes a fragment too. With C the result of mma_m16n8k16:
//     for i in 32 { for j in 16 { Y[i, j] = C[i, j] } }
// ~>  for lane in 32 bind(thread.x) { for ti in 2 unrolled { for tj in 2 unrolled {
//       for reg in 2 unrolled {fragment = 2} { for e in 2 vectorized {
//         Y[ti*16 + (reg*8 + lane // 4), tj*8 + (lane % 4*2 + e)] = C[..] } } } } }
// Lanes of a warpgroup are rows of thread.x where the kernel's rows are warps (ir/thread_axis.h).
#include "codegen/lower/analysis/fragment.h"
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/arith/linear.h"
#include "ir/query.h"
#include "ir/thread_axis.h"

#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

bool has_tensor_loop(Stmt s) {
  return any_loop(s, [](const Loop& loop) { return warp_intrinsic(loop) != nullptr; });
}

// A loop nest down to what it repeats.
struct Nest {
  std::vector<const Loop*> loops;  // outermost first
  std::vector<Expr> conditions;
  Stmt body;
};

class FragmentDistribution {
 public:
  FragmentDistribution(IrBuilder& b, const Fragments& fragments, const Kernel& kernel)
      : b_(b), fragments_(fragments), kernel_(kernel) {
    for (const Loop* loop : kernel.grid) ranges_.bind(loop->var, loop->extent);
  }

  Result<Stmt> run() {
    Stmt r = go(kernel_.body);
    if (failed_) return *failed_;
    return r;
  }

 private:
  Stmt go(Stmt s) {
    if (!s.defined() || failed_) return s;
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr && warp_intrinsic(*loop) != nullptr) return s;
    const bool is_nest = loop != nullptr || s.as<Store>() != nullptr;
    const bool in_lanes = loop != nullptr && is_lane_axis(loop->loop_kind);
    if (is_nest && !in_lanes && !has_thread_loop(s) && !has_tensor_loop(s)) {
      if (touched(s) == nullptr) return s;
      return distribute(s);
    }
    const VarRanges::Mark mark = ranges_.mark();
    if (loop != nullptr) ranges_.bind(loop->var, loop->extent);
    Stmt r = map_stmts(b_, s, [&](Stmt child) { return go(child); });
    ranges_.rewind(mark);
    return r;
  }

  // Some fragment that s touches.
  const Fragment* touched(Stmt s) const {
    for (const auto& all : {stored_buffers(s), loaded_buffers(s)}) {
      for (BufferId id : all) {
        const auto it = fragments_.find(id);
        if (it != fragments_.end()) return &it->second;
      }
    }
    return nullptr;
  }

  Stmt refuse(Stmt s, std::string_view why) {
    const Loop* loop = s.as<Loop>();
    failed_ = error(Diag::kThreadKernel, loop != nullptr ? loop->id : LoopId(0),
                    "its code cannot be spread over the lanes of a warp: " + std::string(why));
    return s;
  }

  Stmt distribute(Stmt s) {
    Nest nest;
    nest.body = s;
    while (true) {
      const Loop* loop = nest.body.as<Loop>();
      const If* branch = nest.body.as<If>();
      if (loop != nullptr) {
        nest.loops.push_back(loop);
        nest.body = loop->body;
      } else if (branch != nullptr && !branch->else_body.defined()) {
        nest.conditions.push_back(branch->condition);
        nest.body = branch->then_body;
      } else {
        break;
      }
    }
    const Store* store = nest.body.as<Store>();
    if (store == nullptr) return refuse(s, "it is more than one statement");
    const VarRanges::Mark mark = ranges_.mark();
    for (const Loop* loop : nest.loops) ranges_.bind(loop->var, loop->extent);
    Stmt r = rewrite(s, nest, *store);
    ranges_.rewind(mark);
    return r;
  }

  // The indices of the fragment in this statement.
  std::span<const Expr> fragment_indices(const Store& store, const Fragment** fragment) const {
    std::span<const Expr> indices;
    auto note = [&](BufferId id, std::span<const Expr> here) {
      const auto it = fragments_.find(id);
      if (it == fragments_.end() || *fragment != nullptr) return;
      *fragment = &it->second;
      indices = here;
    };
    note(store.buffer, store.indices);
    walk(store.value, [&](Expr e) {
      if (const Load* load = e.as<Load>()) note(load->buffer, load->indices);
      return true;
    });
    return indices;
  }

  // The loop that counts single elements along an index: its variable is a term with coefficient 1
  // and everything else moves by whole tiles.
  const Loop* element_loop(Expr index, int64_t tile, const Nest& nest) {
    const Linear linear = to_linear(b_, index, ranges_);
    for (const Term& term : linear.terms) {
      const Var* var = term.degree == 1 && term.coef == 1 ? term.atoms[0].as<Var>() : nullptr;
      if (var == nullptr) continue;
      const Linear rest = linear - Linear::of(term);
      if (rest.constant % tile != 0 || coefficient_gcd(rest) % tile != 0) continue;
      for (const Loop* loop : nest.loops) {
        const IntImm* extent = loop->extent.as<IntImm>();
        if (loop->var->id == var->id && extent != nullptr && extent->value % tile == 0) return loop;
      }
    }
    return nullptr;
  }

  // Loops over the threads that hold a fragment, outermost first, and the number of one.
  std::vector<Loop> lanes_of(const Fragment& fragment, Expr* number) {
    const int64_t rows = rows_of_lanes(fragment.lanes, kernel_.threads[0], kernel_.threads[1]);
    const Loop lane = make_loop(b_, "lane", fragment.lanes / rows, LoopKind::kThreadX);
    *number = Expr(lane.var);
    if (rows == 1) return {lane};
    const Loop row = make_loop(b_, "row", rows, LoopKind::kThreadY);
    *number = b_.add(b_.mul(Expr(row.var), lane.extent), *number);
    return {row, lane};
  }

  Stmt rewrite(Stmt s, const Nest& nest, const Store& store) {
    const Fragment* fragment = nullptr;
    const std::span<const Expr> indices = fragment_indices(store, &fragment);
    std::array<const Loop*, 2> element{};
    for (std::size_t d = 0; d < 2; ++d) {
      element[d] = element_loop(indices[static_cast<std::size_t>(fragment->dims[d])],
                                fragment->tile[d], nest);
      if (element[d] == nullptr) return refuse(s, "no loop runs over whole tiles of a fragment");
    }
    const bool is_own = mentions(store.indices, element[0]->var->id) &&
                        mentions(store.indices, element[1]->var->id);
    if (fragments_.count(store.buffer) == 0 && !is_own)
      return refuse(s, "several lanes would store in one element");
    const int64_t run = contiguous_registers(*fragment);
    Expr lane;
    std::vector<Loop> loops = lanes_of(*fragment, &lane);
    Loop outer = make_loop(b_, "reg", fragment->registers / run, LoopKind::kUnrolled);
    Loop inner = make_loop(b_, "e", run, LoopKind::kVectorized);
    const Attr attr{kFragmentAttr, run};
    outer.attrs = b_.copy(std::span<const Attr>(&attr, 1));
    Expr reg(outer.var);
    if (run > 1) reg = b_.add(b_.mul(reg, b_.int_imm(run)), Expr(inner.var));
    const Expr inputs[] = {lane, reg};
    const std::vector<Expr> within = fragment->map.apply(b_, inputs);
    VarMap map;
    for (const Loop* loop : nest.loops) {
      if (loop == element[0] || loop == element[1]) continue;
      loops.push_back(*loop);
      if (loop->loop_kind == LoopKind::kVectorized) loops.back().loop_kind = LoopKind::kUnrolled;
    }
    for (std::size_t d = 0; d < 2; ++d) {
      const int64_t tiles = element[d]->extent.as<IntImm>()->value / fragment->tile[d];
      Loop tile = make_loop(b_, d == 0 ? "ti" : "tj", tiles, LoopKind::kUnrolled);
      map[element[d]->var->id] =
          b_.add(b_.mul(Expr(tile.var), b_.int_imm(fragment->tile[d])), within[d]);
      loops.push_back(tile);
    }
    loops.push_back(outer);
    if (run > 1) loops.push_back(inner);
    Stmt body = substitute(b_, if_all(b_, nest.conditions, nest.body), map);
    for (std::size_t i = loops.size(); i-- > 0;) {
      loops[i].body = body;
      body = b_.loop(loops[i]);
    }
    return body;
  }

  IrBuilder& b_;
  const Fragments& fragments_;
  const Kernel& kernel_;
  VarRanges ranges_;
  std::optional<Error> failed_;
};

}  // namespace

Result<Program> distribute_fragments(const Program& program, const Target&) {
  return map_kernels(program, [](IrBuilder& b, const Kernel& kernel) -> Result<Stmt> {
    PRUNERC_TRY(const Fragments fragments, find_fragments(b, kernel.body));
    return fragments.empty() ? kernel.body : FragmentDistribution(b, fragments, kernel).run();
  });
}

}  // namespace prunerc::codegen
