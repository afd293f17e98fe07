// rescale(@P): weights exp(x - M) subtract their tile's maximum N, sums over tiles make up for it.
// Needs: M the maximum of N over tiles, N that of x in one; @P a store of weights, perhaps rounded,
// 0 where N hides x as well, of no row all; readers are sums in a tile, theirs sums over all tiles,
// of M's type; as they came. After: floats, narrower ones too, round and overflow otherwise.
//   block @P .. { P[c, s] = f16(exp(X[c, s] - M[0])) }
//   block [c: S(4), s: R(8)] { T[c] = T[c] + f32(P[c, s]) }  block [c: R(4)] { U[0] = U[0] + T[c] }
// ~>
//   .. P[c, s] = f16(exp(X[c, s] - select(N[c] == -inf, 0, N[c])))  .. U[0] + exp(N[c] - M[0])*T[c]
#include "ir/analysis/region.h"
#include "ir/arith/loop_index.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "schedule/legality/axis_reduction.h"
#include "schedule/legality/canonical_nest.h"
#include "schedule/legality/elementwise.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/nest.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

// A sum over tiles reads this sum of one.
struct TileReader {
  const Block* block = nullptr;
  BufferId sum;
  VarMap at;  // the weights' variables outside of a tile, as those of the block
};

struct RescalePlan {
  AxisReduction whole, tile;  // M, N
  const Block* weights = nullptr;
  /// The weights' variables at the subscripts of M and of N.
  std::vector<const IterVar*> whole_vars, tile_vars;
  std::vector<TileReader> readers;
};

// Variables of two blocks that go together.
using Pairs = std::vector<std::pair<const IterVar*, const IterVar*>>;

const IterVar* find_var(const Block& block, Expr e) {
  const auto found = std::find_if(block.iters.begin(), block.iters.end(),
                                  [&](const IterVar& iter) { return is_var(e, iter); });
  return found != block.iters.end() ? &*found : nullptr;
}

// Subscripts that are variables, each of the block's once.
bool names_each_variable(const Block& block, std::span<const Expr> indices) {
  return indices.size() == block.iters.size() &&
         std::all_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
           return std::any_of(indices.begin(), indices.end(),
                              [&](Expr index) { return is_var(index, iter); });
         });
}

class RescalePlanner {
 public:
  explicit RescalePlanner(const Program& program) : flow_(program), b_(program) {}

  Result<RescalePlan> plan(BlockId id) {
    PRUNERC_TRY(place_, flow_.find(id));
    plan_.weights = flow_[place_].block;
    PRUNERC_TRY_VOID(read_weights());
    PRUNERC_TRY_VOID(read_maxima());
    PRUNERC_TRY_VOID(match_variables());
    PRUNERC_TRY_VOID(check_hidden());
    PRUNERC_TRY_VOID(check_reads(weights(), store().buffer));
    const std::vector<std::size_t> sums = flow_.readers(store().buffer);
    if (sums.empty()) return not_simple(weights(), "be read by sums");
    for (const std::size_t sum : sums) PRUNERC_TRY_VOID(read_sum(sum));
    return std::move(plan_);
  }

 private:
  const Block& weights() const { return *plan_.weights; }
  const Store& store() const { return *weights().body.as<Store>(); }
  const Load& subtracted() const { return *exponent_.subtracted; }

  // All that reads what the block makes is known.
  Result<void> check_reads(const Block& block, BufferId made) const {
    PRUNERC_TRY_VOID(check_intermediate(flow_.program(), made));
    const bool outside = accessed_outside_blocks(flow_.program(), made);
    return outside ? not_simple(block, "be read by blocks alone") : Result<void>();
  }

  Result<void> read_weights() {
    const std::string fault = canonical_nest_fault(flow_.program(), flow_[place_]);
    if (!fault.empty()) return not_simple(weights(), "have its own loops alone: " + fault);
    if (!weights().attrs.empty()) return not_simple(weights(), "have no attributes");
    PRUNERC_TRY_VOID(check_pure_store(flow_, place_));
    PRUNERC_TRY_VOID(check_sources_final(b_, flow_, place_));
    if (!is_at_variables(weights(), store().indices)) {
      return not_simple(weights(), "write at its variables");
    }
    Expr weight = store().value;
    if (const Select* select = weight.as<Select>()) {
      const FloatImm* hidden = select->on_false.as<FloatImm>();
      if (hidden == nullptr || hidden->value != 0) {
        return not_simple(weights(), "be 0 where weights are hidden");
      }
      shown_ = select->condition;
      weight = select->on_true;
    }
    exponent_ = exponent_of(without_float_casts(weight));
    if (exponent_.subtracted == nullptr) {
      return not_simple(weights(), "store exp(x - maximum), rounded at most");
    }
    const BufferId max = subtracted().buffer;
    if (loads_from(exponent_.x, max) || (shown_.defined() && loads_from(shown_, max))) {
      return not_simple(weights(), "read the maximum in one exponent only");
    }
    return {};
  }

  Result<AxisReduction> read_maximum(BufferId buffer) {
    const std::vector<std::size_t> writers = flow_.writers(buffer);
    if (writers.size() == 1) {
      return read_axis_reduction(b_, flow_, writers[0], ExprKind::kMax);
    }
    return not_simple(weights(), "subtract what one block makes of what one makes in each tile");
  }

  Result<void> read_maxima() {
    PRUNERC_TRY(plan_.whole, read_maximum(subtracted().buffer));
    const Load* source = plan_.whole.reducer.update.as<Load>();
    if (source == nullptr || !names_each_variable(*plan_.whole.block, source->indices)) {
      return not_simple(*plan_.whole.block, "be the maximum over tiles of what each of them has");
    }
    PRUNERC_TRY(plan_.tile, read_maximum(source->buffer));
    return {};
  }

  // The weights' variables of a row beside N's; what is left of N's is that over tiles.
  Pairs pair_rows(const IterVar** over_tiles) const {
    const AxisReduction &whole = plan_.whole, &tile = plan_.tile;
    const std::span<const Expr> read = whole.reducer.update.as<Load>()->indices;
    const std::span<const Expr> stored = whole.reducer.store->indices;
    Pairs out;
    for (std::size_t d = 0; d < read.size(); ++d) {
      const IterVar* its = find_var(*tile.block, tile.reducer.store->indices[d]);
      const IterVar& var = *find_var(*whole.block, read[d]);
      if (&var == whole.axis) {
        *over_tiles = its;
        continue;
      }
      const auto at = std::find_if(stored.begin(), stored.end(),
                                   [&](Expr index) { return is_var(index, var); });
      const auto place = static_cast<std::size_t>(at - stored.begin());
      out.emplace_back(find_var(weights(), subtracted().indices[place]), its);
    }
    return out;
  }

  // Which of the weights' variables go over the same elements as those of the maxima.
  Result<void> match_variables() {
    const IterVar* over_tiles = nullptr;  // N's
    const Pairs rows = pair_rows(&over_tiles);
    std::vector<const IterVar*> rest;
    for (const IterVar& iter : weights().iters) {
      const bool is_row = std::any_of(rows.begin(), rows.end(),
                                      [&](const auto& pair) { return pair.first == &iter; });
      if (!is_row) rest.push_back(&iter);
    }
    // Each variable of a row is found, and once, if what is left are tiles and what is in them.
    const bool are_two = rest.size() == 2 && rows.size() + 2 == weights().iters.size();
    if (are_two && constant(over_tiles->extent) == constant(plan_.whole.axis->extent)) {
      for (int order = 0; order < 2; ++order, std::swap(rest[0], rest[1])) {
        Pairs all = rows;
        all.emplace_back(rest[0], over_tiles);
        all.emplace_back(rest[1], plan_.tile.axis);
        if (!is_same_element(all)) continue;
        tiles_ = rest[0];
        inside_ = rest[1];
        note_subscripts(all);
        return {};
      }
    }
    return not_simple(weights(), "have in its exponents what its tile's maximum is of");
  }

  // What the exponent has is what the tile's maximum is of; where weights are hidden, of those that are shown.
  bool is_same_element(const Pairs& pairs) {
    VarMap to_tile;
    for (const auto& [mine, its] : pairs) {
      if (mine == nullptr || constant(mine->extent) != constant(its->extent)) return false;
      to_tile[mine->var->id] = Expr(its->var);
    }
    const Expr x = substitute(b_, exponent_.x, to_tile);
    const Expr update = plan_.tile.reducer.update;
    if (!shown_.defined()) return structural_equal(x, update);
    const Select* select = update.as<Select>();
    if (select == nullptr || !is_identity(ExprKind::kMax, select->on_false) ||
        !structural_equal(x, select->on_true)) {
      return false;
    }
    const VarRanges ranges = ranges_of(*plan_.tile.block);
    const Expr shown = simplify(b_, substitute(b_, shown_, to_tile), ranges);
    return structural_equal(shown, simplify(b_, select->condition, ranges));
  }

  void note_subscripts(const Pairs& pairs) {
    for (Expr index : subtracted().indices) {
      plan_.whole_vars.push_back(find_var(weights(), index));
    }
    for (Expr index : plan_.tile.reducer.store->indices) {
      const auto at = std::find_if(pairs.begin(), pairs.end(),
                                   [&](const auto& pair) { return is_var(index, *pair.second); });
      plan_.tile_vars.push_back(at->first);
    }
  }

  // A row of nothing has the sum 0, but no number once it is rescaled by exp(-inf + inf): some weight is always shown,
  // and where that is no number its sum over tiles is none.
  Result<void> check_hidden() {
    if (!shown_.defined()) return {};
    const VarRanges ranges = ranges_of(weights());
    const int64_t num_tiles = *constant(tiles_->extent), size = *constant(inside_->extent);
    std::vector<std::pair<Expr, Expr>> places = {{b_.int_imm(0), b_.int_imm(0)},
                                                 {b_.int_imm(num_tiles - 1), b_.int_imm(size - 1)}};
    // Or that of its own number.
    for (const IterVar& iter : weights().iters) {
      if (&iter == tiles_ || &iter == inside_) continue;
      if ((*constant(iter.extent) - 1) / size >= num_tiles) continue;
      places.emplace_back(b_.floordiv(Expr(iter.var), b_.int_imm(size)),
                          b_.floormod(Expr(iter.var), b_.int_imm(size)));
    }
    for (const auto& [tile, place] : places) {
      const VarMap there = {{tiles_->var->id, tile}, {inside_->var->id, place}};
      const Expr shown = simplify(b_, substitute(b_, shown_, there), ranges);
      if (prove(shown, ranges) == Proof::kYes) return {};
    }
    return not_simple(weights(), "show some weight of each row: the first, the last or its own");
  }

  // A sum that belongs to one tile, and who adds up such sums.
  Result<void> read_sum(std::size_t place) {
    PRUNERC_TRY(const AxisReduction sum, read_axis_reduction(b_, flow_, place, ExprKind::kAdd));
    PRUNERC_TRY_VOID(check_reads(*sum.block, sum.target()));
    if (sum.reducer.update.dtype() != plan_.whole.reducer.update.dtype()) {
      return not_simple(*sum.block, "be a sum in the maximum's type");
    }
    const Load* load = sole_factor(sum, store().buffer);
    if (load == nullptr) return not_simple(*sum.block, "add up products with one weight");
    Pairs pairs;  // the weights', the sum's
    for (std::size_t d = 0; d < load->indices.size(); ++d) {
      const IterVar* mine = find_var(weights(), store().indices[d]);
      const IterVar* its = find_var(*sum.block, load->indices[d]);
      const IterKind wanted = mine == inside_ ? sum.axis->kind : IterKind::kSpatial;
      if (its == nullptr || its->kind != wanted ||
          constant(mine->extent) != constant(its->extent)) {
        return not_simple(*sum.block, "add up all weights of a row in one tile");
      }
      if (mine != inside_) pairs.emplace_back(mine, its);
    }
    for (const std::size_t reader : flow_.readers(sum.target())) {
      if (reader != place) PRUNERC_TRY_VOID(read_reader(sum, pairs, reader));
    }
    return {};
  }

  Result<void> read_reader(const AxisReduction& sum, const Pairs& pairs, std::size_t place) {
    PRUNERC_TRY(const AxisReduction all, read_axis_reduction(b_, flow_, place, ExprKind::kAdd));
    const Load* load = sole_factor(all, sum.target());
    if (load == nullptr) return not_simple(*all.block, "add up products with one sum of a tile");
    TileReader reader{all.block, sum.target(), {}};
    for (const auto& [mine, its] : pairs) {
      const std::span<const Expr> stored = sum.reducer.store->indices;
      const IterVar& var = *its;
      const auto at = std::find_if(stored.begin(), stored.end(),
                                   [&](Expr index) { return is_var(index, var); });
      const Expr index = load->indices[static_cast<std::size_t>(at - stored.begin())];
      const IterVar* here = find_var(*all.block, index);
      const IterKind wanted = mine == tiles_ ? all.axis->kind : IterKind::kSpatial;
      if (here == nullptr || here->kind != wanted ||
          constant(here->extent) != constant(mine->extent)) {
        return not_simple(*all.block, "add up all tiles of a row");
      }
      reader.at[mine->var->id] = Expr(here->var);
    }
    plan_.readers.push_back(std::move(reader));
    return {};
  }

  Dataflow flow_;
  IrBuilder b_;
  RescalePlan plan_;
  std::size_t place_ = 0;
  Expr shown_;  // where weights are not 0; null: everywhere
  Exponent exponent_;
  const IterVar *tiles_ = nullptr, *inside_ = nullptr;  // the weights'
};

class RescaleRewrite {
 public:
  RescaleRewrite(const Program& program, const RescalePlan& plan)
      : program_(program), plan_(plan), b_(program) {}

  Applied run() {
    const Stmt root = rewrite(program_.root());
    return {b_.finish(root), {}, {}};
  }

 private:
  Stmt rewrite(Stmt s) {
    const Block* block = s.as<Block>();
    if (block == nullptr) {
      return map_children(
          b_, s, [&](Stmt child) { return rewrite(child); }, [](Expr e) { return e; });
    }
    Stmt body = block->body;
    if (block == plan_.weights) {
      body = replaced(body, plan_.whole.target(), [&](Expr) { return tile_maximum(); });
    }
    for (const TileReader& reader : plan_.readers) {
      if (reader.block != block) continue;
      body =
          replaced(body, reader.sum, [&](Expr sum) { return b_.mul(correction(reader.at), sum); });
    }
    if (body.is(block->body)) return s;
    Block copy = *block;
    copy.body = body;
    rebuild_accesses(b_, copy);
    return b_.block(copy);
  }

  // With other values for loads of the buffer.
  template <typename Make>
  Stmt replaced(Stmt body, BufferId buffer, const Make& make) {
    return map_exprs(b_, body, [&](Expr e) {
      return replace_loads(b_, e, buffer, [&](std::span<const Expr> indices) {
        return make(b_.load(buffer, indices));
      });
    });
  }

  Expr load(const AxisReduction& max, const std::vector<const IterVar*>& vars, const VarMap& at) {
    std::vector<Expr> indices;
    for (const IterVar* var : vars) {
      const auto found = at.find(var->var->id);
      indices.push_back(found != at.end() ? found->second : Expr(var->var));
    }
    return b_.load(max.target(), indices);
  }

  // In a tile that is hidden whole, or of nothing but -inf, weights are 0 and not exp(-inf + inf).
  Expr tile_maximum() {
    const Expr max = load(plan_.tile, plan_.tile_vars, {});
    const Expr none = identity_of(b_, ExprKind::kMax, max.dtype());
    return b_.select(b_.eq(max, none), b_.constant(0, max.dtype()), max);
  }

  Expr correction(const VarMap& at) {
    const Expr difference =
        b_.sub(load(plan_.tile, plan_.tile_vars, at), load(plan_.whole, plan_.whole_vars, at));
    return b_.call(Intrinsic::kExp, {&difference, 1});
  }

  const Program& program_;
  const RescalePlan& plan_;
  IrBuilder b_;
};

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kRescale>(const Program& program, const Call& call) {
  PRUNERC_TRY(const RescalePlan plan, RescalePlanner(program).plan(call.block(0)));
  return RescaleRewrite(program, plan).run();
}

}  // namespace prunerc::schedule
