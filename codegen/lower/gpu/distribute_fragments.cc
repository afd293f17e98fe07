// Code on fragments of tensor instructions runs in the lanes that hold the elements; values of rows as row_values.h says.
// Before: it runs over rows and columns. After: over lanes and their registers, tile by tile, in rows of thread.x for a
// warpgroup (ir/thread_axis.h). What values are exchanged with becomes a fragment too. With C of mma_m16n8k16:
//     for i in 32 { for j in 16 { Y[i, j] = C[i, j] } }
// ~>  for lane in 32 bind(thread.x) { for ti in 2 unrolled { for tj in 2 unrolled {
//       for reg in 2 unrolled {fragment = 2} { for e in 2 vectorized {
//         Y[ti*16 + (reg*8 + lane // 4), tj*8 + (lane % 4*2 + e)] = C[..] } } } } }
#include "codegen/lower/analysis/fragment.h"
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/gpu/row_values.h"
#include "codegen/lower/passes.h"
#include "ir/analysis/accumulator.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/query.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

bool has_tensor_loop(Stmt s) {
  return any_loop(s, [](const Loop& loop) { return warp_intrinsic(loop) != nullptr; });
}

class FragmentDistribution {
 public:
  FragmentDistribution(IrBuilder& b, const Fragments& fragments, const RowBuffers& rows,
                       const Kernel& kernel)
      : b_(b), fragments_(fragments), rows_(rows), kernel_(kernel) {
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
    if (const Alloc* alloc = s.as<Alloc>()) {
      const auto row = rows_.find(alloc->buffer);
      const Stmt body = go(alloc->body);
      return b_.alloc(row == rows_.end() ? alloc->buffer : row->second.in_lanes, body);
    }
    const bool is_nest = loop != nullptr || s.as<Store>() != nullptr;
    const bool in_lanes = loop != nullptr && is_lane_axis(loop->loop_kind);
    if (is_nest && !in_lanes && !has_thread_loop(s) && !has_tensor_loop(s)) {
      return touches_any(s) ? distribute(s) : s;
    }
    if (in_lanes && loop->loop_kind == LoopKind::kThreadX && touches(s, rows_))
      return refuse(s, "values of rows are not any thread's");
    const VarRanges::Mark mark = ranges_.mark();
    if (loop != nullptr) ranges_.bind(loop->var, loop->extent);
    Stmt r = map_stmts(b_, s, [&](Stmt child) { return go(child); });
    ranges_.rewind(mark);
    return in_lanes && !r.is(s) ? push(*loop, r.as<Loop>()->body) : r;
  }

  // A loop over threads stays around single phases.
  Stmt push(const Loop& row, Stmt s) {
    if (const Alloc* alloc = s.as<Alloc>()) return b_.alloc(alloc->buffer, push(row, alloc->body));
    if (const Seq* seq = s.as<Seq>()) {
      std::vector<Stmt> all;
      for (Stmt child : seq->stmts) all.push_back(push(row, child));
      return b_.seq(all);
    }
    Loop copy = row;
    copy.body = s;
    return clone_with_fresh_ids(b_, b_.loop(copy));
  }

  template <typename Buffers>
  static bool touches(Stmt s, const Buffers& buffers) {
    for (const auto& all : {stored_buffers(s), loaded_buffers(s)}) {
      for (BufferId id : all) {
        if (buffers.count(id) != 0) return true;
      }
    }
    return false;
  }
  bool touches_any(Stmt s) const { return touches(s, fragments_) || touches(s, rows_); }

  Stmt refuse(Stmt s, std::string_view why) {
    const Loop* loop = s.as<Loop>();
    failed_ = error(Diag::kThreadKernel, loop != nullptr ? loop->id : LoopId(0),
                    "its code cannot be spread over the lanes of a warp: " + std::string(why));
    return s;
  }

  Stmt distribute(Stmt s) {
    const Nest nest = nest_of(s);
    const VarRanges::Mark mark = ranges_.mark();
    const Store* store = nest.body.as<Store>();
    if (store == nullptr) return in_parts(s, nest);
    for (const Loop* loop : nest.loops) ranges_.bind(loop->var, loop->extent);
    Stmt r = rewrite(s, nest, *store);
    ranges_.rewind(mark);
    return r;
  }

  // Each statement in loops of its own.
  Stmt in_parts(Stmt s, const Nest& nest) {
    if (!can_part(nest)) return refuse(s, "it is more than one statement");
    std::vector<Stmt> all;
    for (Stmt part : nest.body.as<Seq>()->stmts) {
      for (std::size_t i = nest.loops.size(); i-- > 0;) {
        Loop copy = *nest.loops[i];
        copy.body = part;
        part = b_.loop(copy);
      }
      part = clone_with_fresh_ids(b_, part);
      all.push_back(touches_any(part) ? distribute(part) : part);
    }
    return b_.seq(all);
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

  // Does one of the target's subscripts count the elements of this loop, while the nest's others move it by whole tiles?
  // Elements of other lanes are elsewhere then.
  bool counts(const Store& store, const Loop& loop, int64_t tile, const Nest& nest) {
    const auto fits = [&](const Term& term) {
      const Var* var = term.degree == 1 ? term.atoms[0].as<Var>() : nullptr;
      if (var != nullptr && var->id == loop.var->id) return term.coef == 1;
      bool moves = false;
      for (std::size_t i = 0; i < static_cast<std::size_t>(term.degree); ++i) {
        for (const Loop* other : nest.loops)
          moves = moves || mentions(term.atoms[i], other->var->id);
      }
      return !moves || term.coef % tile == 0;
    };
    return std::any_of(store.indices.begin(), store.indices.end(), [&](Expr index) {
      const Linear linear = to_linear(b_, index, ranges_);
      return !linear.overflow && !linear.has_data && mentions(index, loop.var->id) &&
             std::all_of(linear.terms.begin(), linear.terms.end(), fits);
    });
  }

  // What a lane reads of the target no other one stores.
  static bool loads_own_only(const Store& store) {
    bool is_own = true;
    const auto look = [&](Expr top) {
      walk(top, [&](Expr e) {
        const Load* load = e.as<Load>();
        if (load != nullptr && load->buffer == store.buffer)
          is_own = is_own && structural_equal(load->indices, store.indices);
        return is_own;
      });
    };
    for (Expr index : store.indices) look(index);
    look(store.value);
    return is_own;
  }

  // Are the elements of this loop told apart by the target's subscripts? Digits of a number are in several of them, as of
  // an image's pixel; what is updated is told by one, as no quotient alone may.
  bool tells(const Store& store, const Loop& loop, int64_t tile, const Nest& nest) {
    if (counts(store, loop, tile, nest)) return loads_own_only(store);
    bool has_digit = false;
    for (Expr index : store.indices) {
      walk(index, [&](Expr e) {
        const Var* var = e.as<Var>();
        has_digit = has_digit || (var != nullptr && var->id == loop.var->id);
        return e.as<FloorDiv>() == nullptr;
      });
    }
    return has_digit && !loads_from(store.value, store.buffer);
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

  // Loops, outermost first; what the nest's variables are in them; which of a lane's rows it is.
  struct Spread {
    std::vector<Loop> loops;
    VarMap map;
    RowPlace row;
  };

  static Stmt wrap(IrBuilder& b, std::vector<Loop> loops, Stmt body) {
    for (std::size_t i = loops.size(); i-- > 0;) {
      loops[i].body = body;
      body = b.loop(loops[i]);
    }
    return body;
  }

  void keep(const Loop& loop, Spread* out) {
    out->loops.push_back(loop);
    if (loop.loop_kind == LoopKind::kVectorized) {
      out->loops.back().loop_kind = LoopKind::kUnrolled;
    }
  }

  Spread spread(const Nest& nest, const std::array<const Loop*, 2>& element,
                const Fragment& fragment, LoopKind neighbours) {
    const int64_t run = contiguous_registers(fragment);
    Spread out;
    out.loops = lanes_of(fragment, &out.row.lane);
    Loop outer = make_loop(b_, "reg", fragment.registers / run, LoopKind::kUnrolled);
    Loop inner = make_loop(b_, "e", run, neighbours);
    const Attr attr{kFragmentAttr, run};
    outer.attrs = b_.copy(std::span<const Attr>(&attr, 1));
    Expr reg(outer.var);
    if (run > 1) reg = b_.add(b_.mul(reg, b_.int_imm(run)), Expr(inner.var));
    const Expr inputs[] = {out.row.lane, reg};
    const std::vector<Expr> within = fragment.map.apply(b_, inputs);
    for (const Loop* loop : nest.loops) {
      if (loop != element[0] && loop != element[1]) keep(*loop, &out);
    }
    for (std::size_t d = 0; d < 2; ++d) {
      const int64_t tiles = element[d]->extent.as<IntImm>()->value / fragment.tile[d];
      Loop tile = make_loop(b_, d == 0 ? "ti" : "tj", tiles, LoopKind::kUnrolled);
      out.map[element[d]->var->id] =
          b_.add(b_.mul(Expr(tile.var), b_.int_imm(fragment.tile[d])), within[d]);
      if (d == 0) out.row.tile = Expr(tile.var);
      out.loops.push_back(tile);
    }
    out.row.half = Expr(outer.var);
    out.loops.push_back(outer);
    if (run > 1) out.loops.push_back(inner);
    return out;
  }

  // The same over rows alone, in every lane that has some of them; of other loops those that `place` moves with.
  Spread spread_rows(const Nest& nest, const Loop& rows, std::span<const Expr> place) {
    Spread out;
    out.loops = {make_loop(b_, "lane", kWarpSize, LoopKind::kThreadX)};
    out.row.lane = Expr(out.loops[0].var);
    for (const Loop* loop : nest.loops) {
      if (loop != &rows && mentions(place, loop->var->id)) keep(*loop, &out);
    }
    const int64_t tiles = rows.extent.as<IntImm>()->value / kRowsOfTile;
    out.loops.push_back(make_loop(b_, "ti", tiles, LoopKind::kUnrolled));
    out.row.tile = Expr(out.loops.back().var);
    out.loops.push_back(make_loop(b_, "half", kRowsOfLane, LoopKind::kUnrolled));
    out.row.half = Expr(out.loops.back().var);
    const Expr in_tile = b_.add(b_.mul(out.row.half, b_.int_imm(kRowsOfTile / kRowsOfLane)),
                                b_.floordiv(out.row.lane, b_.int_imm(kLanesOfRow)));
    out.map[rows.var->id] = b_.add(b_.mul(out.row.tile, b_.int_imm(kRowsOfTile)), in_tile);
    return out;
  }

  // Where the lane has the value of that row: `rows` counts them, all else moves by whole tiles.
  std::vector<Expr> place_in_lanes(std::span<const Expr> indices, std::size_t dim, const Loop& rows,
                                   const RowPlace& row) {
    const Expr first = b_.mul(row.tile, b_.int_imm(kRowsOfTile));
    RowPlace place = row;
    place.tile = simplify(
        b_,
        b_.floordiv(substitute(b_, indices[dim], {{rows.var->id, first}}), b_.int_imm(kRowsOfTile)),
        ranges_);
    return place_of_row(indices, dim, place);
  }

  // The statement with all values of rows where lanes have them; null if one is of another row.
  Stmt with_rows(Stmt s, const Nest& nest, const Loop& rows, const Spread& spread) {
    bool fits = true;
    const auto place = [&](const RowBuffer& row, std::span<const Expr> indices) {
      fits = fits && element_loop(indices[row.dim], kRowsOfTile, nest) == &rows;
      return place_in_lanes(indices, row.dim, rows, spread.row);
    };
    const ExprFn value = [&](Expr e) -> Expr {
      const Load* load = e.as<Load>();
      const auto row = load != nullptr ? rows_.find(load->buffer) : rows_.end();
      if (row == rows_.end()) return map_children(b_, e, value);
      return b_.load(row->second.in_lanes, place(row->second, load->indices));
    };
    const StmtFn go_in = [&](Stmt part) -> Stmt {
      const Store* store = part.as<Store>();
      const auto row = store != nullptr ? rows_.find(store->buffer) : rows_.end();
      if (row == rows_.end()) return map_children(b_, part, go_in, value);
      return b_.store(row->second.in_lanes, place(row->second, store->indices),
                      value(store->value));
    };
    const Stmt r = go_in(s);
    return fits ? r : Stmt();
  }

  Stmt rewrite(Stmt s, const Nest& nest, const Store& store) {
    const Fragment* fragment = nullptr;
    const std::span<const Expr> indices = fragment_indices(store, &fragment);
    if (fragment == nullptr) return rewrite_rows(s, nest, store);
    std::array<const Loop*, 2> element{};
    for (std::size_t d = 0; d < 2; ++d) {
      element[d] = element_loop(indices[static_cast<std::size_t>(fragment->dims[d])],
                                fragment->tile[d], nest);
      if (element[d] == nullptr) return refuse(s, "no loop runs over whole tiles of a fragment");
    }
    if (rows_.count(store.buffer) != 0) return reduce_rows(s, nest, store, *fragment, element);
    if (fragments_.count(store.buffer) == 0 &&
        !(tells(store, *element[0], fragment->tile[0], nest) &&
          tells(store, *element[1], fragment->tile[1], nest)))
      return refuse(s, "several lanes would store in one element");
    const Spread lanes = spread(nest, element, *fragment, LoopKind::kVectorized);
    Stmt body = if_all(b_, nest.conditions, nest.body);
    body = with_rows(body, nest, *element[0], lanes);
    if (!body.defined()) return refuse(s, "it reads values of other rows");
    return wrap(b_, lanes.loops, substitute(b_, body, lanes.map));
  }

  // Values of rows made of others, or on their way out, which the lane with the first columns stores.
  Stmt rewrite_rows(Stmt s, const Nest& nest, const Store& store) {
    const Loop* rows = nullptr;
    const auto note = [&](BufferId id, std::span<const Expr> indices) {
      const auto it = rows_.find(id);
      if (it != rows_.end()) rows = element_loop(indices[it->second.dim], kRowsOfTile, nest);
    };
    walk(store.value, [&](Expr e) {
      if (const Load* load = e.as<Load>()) note(load->buffer, load->indices);
      return true;
    });
    note(store.buffer, store.indices);
    if (rows == nullptr) return refuse(s, "no loop runs over whole tiles of rows");
    const bool stays = rows_.count(store.buffer) != 0;
    const bool is_own =
        counts(store, *rows, kRowsOfTile, nest) && b_.buffer(store.buffer).scope != Scope::kLocal;
    if (!stays && (!is_own || !loads_own_only(store)))
      return refuse(s, "several lanes would store in one element");
    std::vector<Expr> all;
    for (const Loop* loop : nest.loops) all.emplace_back(loop->var);
    const Spread lanes = spread_rows(nest, *rows, all);
    Stmt body = with_rows(if_all(b_, nest.conditions, nest.body), nest, *rows, lanes);
    if (!body.defined()) return refuse(s, "it reads values of other rows");
    if (!stays) {
      const Expr column = b_.floormod(lanes.row.lane, b_.int_imm(kLanesOfRow));
      body = b_.if_then(b_.eq(column, b_.int_imm(0)), body);
    }
    return wrap(b_, lanes.loops, substitute(b_, body, lanes.map));
  }

  // R = R op x over columns: what a lane has of the row in its registers, then two exchanges between the lanes of the row,
  // the last of them with what R was.
  Stmt reduce_rows(Stmt s, const Nest& nest, const Store& store, const Fragment& fragment,
                   const std::array<const Loop*, 2>& element) {
    const std::optional<Reducer> reducer = match_reduction(store);
    if (!reducer || mentions(store.indices, element[1]->var->id) || decides(nest, store))
      return refuse(s, "a value of a row is no reduction of its columns");
    const std::size_t dim = rows_.at(store.buffer).dim;
    const BufferId in_lanes = rows_.at(store.buffer).in_lanes;
    std::array<BufferId, 2> parts;
    const Buffer result = b_.buffer(in_lanes);
    for (BufferId& part : parts) {
      part = b_.add_buffer(std::string(result.name) + "_of_lane", result.dtype, result.shape,
                           Scope::kLocal, BufferRole::kIntermediate);
    }
    const auto at = [&](const Spread& lanes) {
      std::vector<Expr> out;
      for (Expr index : place_in_lanes(store.indices, dim, *element[0], lanes.row))
        out.push_back(substitute(b_, index, lanes.map));
      return out;
    };
    const auto over_rows = [&](int64_t exchange, const auto& make) {
      Spread lanes = spread_rows(nest, *element[0], store.indices);
      const Attr attr{kExchangeAttr, exchange};
      if (exchange > 0) lanes.loops[0].attrs = b_.copy(std::span<const Attr>(&attr, 1));
      return wrap(b_, lanes.loops, make(at(lanes)));
    };
    std::vector<Stmt> all = {over_rows(0, [&](const std::vector<Expr>& place) {
      return b_.store(parts[0], place, identity_of(b_, reducer->op, result.dtype));
    })};
    const Spread lanes = spread(nest, element, fragment, LoopKind::kUnrolled);
    const std::vector<Expr> mine = at(lanes);
    const bool left = loads_from(as_binary(store.value)->lhs, store.buffer);
    Stmt add = with_rows(if_all(b_, nest.conditions, nest.body), nest, *element[0], lanes);
    if (!add.defined()) return refuse(s, "it reads values of other rows");
    const StmtFn accumulate = [&](Stmt part) -> Stmt {
      const Store* sum = part.as<Store>();
      if (sum == nullptr) return map_stmts(b_, part, accumulate);
      const BinaryNode* both = as_binary(sum->value);
      const Expr term = left ? both->rhs : both->lhs;
      return b_.store(parts[0], mine, b_.binary(reducer->op, b_.load(parts[0], mine), term));
    };
    all.push_back(wrap(b_, lanes.loops, accumulate(substitute(b_, add, lanes.map))));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const int64_t step = int64_t{1} << i;
      all.push_back(over_rows(step, [&](const std::vector<Expr>& place) {
        std::vector<Expr> other = place;
        other[0] = exchange_partner(b_, place[0], step);
        const Expr both =
            b_.binary(reducer->op, b_.load(parts[i], place), b_.load(parts[i], other));
        if (i + 1 < parts.size()) return b_.store(parts[i + 1], place, both);
        return b_.store(in_lanes, place, b_.binary(reducer->op, b_.load(in_lanes, place), both));
      }));
    }
    Stmt r = b_.seq(all);
    for (const BufferId part : parts) r = b_.alloc(part, r);
    return r;
  }

  // Does what is stored decide where, whether or how often?
  static bool decides(const Nest& nest, const Store& store) {
    const auto reads = [&](Expr e) { return loads_from(e, store.buffer); };
    return std::any_of(nest.conditions.begin(), nest.conditions.end(), reads) ||
           std::any_of(store.indices.begin(), store.indices.end(), reads) ||
           std::any_of(nest.loops.begin(), nest.loops.end(),
                       [&](const Loop* loop) { return reads(loop->extent); });
  }

  // R[..] = R[..] op x.
  static std::optional<Reducer> match_reduction(const Store& store) {
    const BinaryNode* value = as_binary(store.value);
    constexpr ExprKind kOps[] = {ExprKind::kAdd, ExprKind::kMul, ExprKind::kMin, ExprKind::kMax};
    if (value == nullptr ||
        std::find(std::begin(kOps), std::end(kOps), value->kind) == std::end(kOps))
      return std::nullopt;
    const auto is_own = [&](Expr e) {
      const Load* load = e.as<Load>();
      return load != nullptr && load->buffer == store.buffer &&
             structural_equal(load->indices, store.indices);
    };
    const bool left = is_own(value->lhs);
    const Expr update = left ? value->rhs : value->lhs;
    if ((!left && !is_own(value->rhs)) || loads_from(update, store.buffer)) return std::nullopt;
    return Reducer{value->kind, &store, update};
  }

  IrBuilder& b_;
  const Fragments& fragments_;
  const RowBuffers& rows_;
  const Kernel& kernel_;
  VarRanges ranges_;
  std::optional<Error> failed_;
};

}  // namespace

Result<Program> distribute_fragments(const Program& program, const Target&) {
  return map_kernels(program, [](IrBuilder& b, const Kernel& kernel) -> Result<Stmt> {
    PRUNERC_TRY(const Fragments fragments, find_fragments(b, kernel.body));
    if (fragments.empty()) return kernel.body;
    PRUNERC_TRY(const RowBuffers rows, find_row_buffers(b, fragments, kernel.body));
    return FragmentDistribution(b, fragments, rows, kernel).run();
  });
}

}  // namespace prunerc::codegen
