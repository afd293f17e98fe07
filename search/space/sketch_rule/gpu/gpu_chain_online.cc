// Rule "chain+online" for GPUs: attention over tiles of keys in one pass, everything between its products in registers.
//
//     for h, t, c, s, e { A[h,t,c,s] += Q[h,t,e]*K[h,c*B + s,e] }      and what a tile makes of it: m, P, l
//     for h, t, c, e, s { O[h,t,c,e] += P[h,t,c,s]*V[h,c*B + s,e] }
//     M = max over c,  sums over c of exp(m - M)*l and of exp(m - M)*O
//   ~>
//     for h bind(block.y), t0 bind(block.x) {                          a block: some queries of a head
//       fetch Q'
//       for c {software_pipeline} {
//         fetch K'  fetch V'
//         for w bind(thread.y) { mma  m  P  l  mma }                   a warp: whole tiles of 16 rows
//         for w bind(thread.y) { M, and sums so far, rescaled }        primitive `online`
//       }
//       for w bind(thread.y) { results }
//     }
//
// Values of rows are in the lanes that have the row's elements, and weights are the second product's left factor where
// they were made (codegen/DESIGN.md, 52). Rows, keys of a tile and columns are whole tiles of instructions.
#include "search/space/sketch_rule/gpu/gpu_chain.h"
#include "search/space/sketch_rule/gpu/gpu_chain_stages.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

const std::vector<int64_t> kRowWarps = {1, 2, 4, 8};
const std::vector<int64_t> kRowTiles = {1, 2};
const std::vector<int64_t> kAhead = {1, 2, 3};
constexpr int64_t kPreferredWarps = 8, kPreferredAhead = 2;
/// Floats of a lane in scores, in a tile's result and in results so far, for each tile of rows.
constexpr int64_t kMostRegisters = 160;
/// The first product has its whole depth in shared memory and unrolled.
constexpr int64_t kMostDepth = 256;
constexpr int64_t kFactorBytes = 2;
/// Whose instructions are whole, and whose threads can bring tiles ahead.
constexpr int64_t kLeastCapability = 80;
/// Rows in shared memory are longer by so much.
constexpr int64_t kPadBytes = 16;

class GpuOnline {
 public:
  GpuOnline(SketchContext& context, ShapedProduct* first, ShapedProduct* second)
      : context_(context),
        s_(context.schedule),
        first_mapping_(first->mapping),
        second_mapping_(second->mapping),
        p_(first->product),
        q_(second->product),
        scores_(context, &p_, RowSpread::kPadded),
        values_(context, &q_, RowSpread::kPadded) {}

  Result<void> run() {
    if (context_.target.compute_capability < kLeastCapability) return refuse("this GPU");
    const bool same_rows = p_.extents[0] == q_.extents[0] && p_.extents[1] == q_.extents[2];
    const bool plain = p_.reduce.empty() && q_.reduce.empty() && p_.result_map.empty();
    if (!same_rows || !plain || !is_half(p_) || !is_half(q_)) return refuse("these products");
    PRUNERC_TRY_VOID(decide());
    PRUNERC_TRY_VOID(find_pass());
    PRUNERC_TRY_VOID(pad());
    PRUNERC_TRY_VOID(cut_pass());
    for (const BlockId out : s_.consumers(running_)) PRUNERC_TRY_VOID(take_out(out));
    PRUNERC_TRY_VOID(second_product());
    for (std::size_t i = stages_.size(); i-- > 0;) PRUNERC_TRY_VOID(keep(stages_[i]));
    PRUNERC_TRY_VOID(first_product());
    return bind_all();
  }

 private:
  static Result<void> refuse(const char* what) {
    return error(Diag::kUnsupported, std::string(what) + " in one pass");
  }

  static bool is_half(const MatrixProduct& product) {
    const std::string& name = product.tensor->name;
    return name == "mma_m16n8k16_f16" || name == "mma_m16n8k16_bf16";
  }

  Result<void> decide() {
    const auto [rows, keys, depth] = p_.extents;
    const int64_t columns = q_.extents[1], unit = scores_.tile[0];
    const bool whole = rows % unit == 0 && keys % unit == 0 && depth % unit == 0 &&
                       columns % unit == 0 && depth <= kMostDepth;
    if (!whole) return refuse("rows that are no whole tiles");
    const auto registers = [&](int64_t tiles) {
      return tiles * unit * (2 * columns + keys) / kWarpLanes;
    };
    if (registers(1) > kMostRegisters) return refuse("tiles for which lanes have no room");
    std::vector<int64_t> warps, tiles = {1};
    for (const int64_t w : kRowWarps) {
      if (rows % (w * unit) == 0 && bytes(w * unit, kAhead[0]) <= room()) warps.push_back(w);
    }
    if (warps.empty()) return refuse("tiles for which shared memory has no room");
    const int64_t both = warps.back() * kRowTiles.back() * unit;
    if (rows % both == 0 && registers(kRowTiles.back()) <= kMostRegisters &&
        bytes(both, kAhead[0]) <= room()) {
      tiles = kRowTiles;
    }
    std::vector<int64_t> ahead = kAhead;
    std::erase_if(ahead,
                  [&](int64_t n) { return bytes(warps.back() * tiles.back() * unit, n) > room(); });
    // By default at least two blocks to a head.
    const int64_t wanted = std::clamp<int64_t>(rows / unit / 2, 1, kPreferredWarps);
    scores_.m.warps = context_.pick(warps, wanted);
    scores_.m.tiles = context_.pick(tiles, 1);
    ahead_ = context_.pick(ahead, kPreferredAhead);
    values_.m.warps = scores_.m.warps;
    values_.m.tiles = scores_.m.tiles;
    scores_.n.tiles = keys / scores_.n.unit;
    values_.n.tiles = columns / values_.n.unit;
    scores_.steps = depth / scores_.tile[2];
    values_.steps = keys / values_.tile[2];
    values_.a_is_made = true;
    PRUNERC_TRY_VOID(scores_.combine_cuts());
    return values_.combine_cuts();
  }

  int64_t room() const { return context_.target.smem_bytes_per_block; }

  // Of so many rows of Q, and of tiles of keys and values.
  int64_t bytes(int64_t rows, int64_t ahead) const {
    const int64_t of_key = p_.extents[2] * kFactorBytes + kPadBytes;
    const int64_t of_value = q_.extents[1] * kFactorBytes + kPadBytes;
    return rows * of_key + (ahead + 1) * p_.extents[1] * (of_key + of_value);
  }

  // The maximum over tiles and the sums under it.
  Result<void> find_pass() {
    for (const BlockId id : s_.blocks()) {
      const ir::Block* block = find_block(s_.program(), id);
      if (block == nullptr || !is_reduction(*block) || !comes_of(s_, id, p_.block)) continue;
      const schedule::Schedule before = s_.fork();
      for (const BlockId reader : s_.consumers(id)) {
        if (!is_reduction(*find_block(s_.program(), reader))) {
          static_cast<void>(s_.compute_inline(reader).ok());
        }
      }
      Result<std::vector<BlockId>> made = s_.online(id);
      if (made.ok()) {
        running_ = (*made)[0];
        for (std::size_t i = 1; i < made->size(); ++i) {
          static_cast<void>(s_.compute_inline((*made)[i]).ok());
        }
        return {};
      }
      s_ = before;
    }
    return refuse("this combination of tiles");
  }

  Result<void> pad() {
    PRUNERC_TRY(rows_, s_.product({scores_.m.warps, scores_.m.of_warp}));
    PRUNERC_TRY_VOID(pad_operands(context_, first_mapping_,
                                  {rows_, Int(p_.extents[1]), Int(p_.extents[2])}, &p_));
    PRUNERC_TRY_VOID(read_where_made(context_, second_mapping_, &q_));
    PRUNERC_TRY_VOID(
        pad_operands(context_, second_mapping_, {Int(1), Int(q_.extents[1]), Int(1)}, &q_));
    if (!comes_of(s_, running_, q_.block)) return refuse("what is made of other values");
    stages_ = find_stages(s_, p_, q_);
    return s_.compute_inline(q_.out);
  }

  // Of the product's results the variable along rows.
  std::optional<std::size_t> row_of_pass() const {
    const ir::Block& product = *find_block(s_.program(), q_.block);
    const ir::Block& pass = *find_block(s_.program(), running_);
    const ir::VarId row = product.iters[second_mapping_.outer.size()].var->id;
    const ir::Access& made = product.writes[0];
    for (std::size_t d = 0; d < made.region.size(); ++d) {
      if (mentions(made.region[d].min, row)) return variable_at(pass, made.buffer, d);
    }
    return std::nullopt;
  }

  //     for h, t, c { running }  ~>  for h, t0, c, warp, t1 { running }
  Result<void> cut_pass() {
    const BlockFacts facts = facts_of(s_, running_);
    const std::optional<std::size_t> row = row_of_pass();
    if (!facts.trivial || facts.reduce.size() != 1 || !row) return refuse("rows of this shape");
    tiles_ = facts.reduce[0].loop;
    LoopId rows;
    for (const Axis& axis : facts.spatial) {
      if (static_cast<std::size_t>(axis.iter) == *row) {
        rows = axis.loop;
      } else {
        grid_.push_back(axis.loop);
      }
    }
    if (!rows.valid()) return refuse("rows of this shape");
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(rows, {Int(-1), scores_.m.warps, scores_.m.of_warp}));
    grid_.push_back(parts[0]);
    std::vector<LoopId> order = grid_;
    order.insert(order.end(), {tiles_, parts[1], parts[2]});
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY_VOID(s_.bind(parts[1], "thread.y"));
    const std::size_t num_writes = find_block(s_.program(), running_)->writes.size();
    for (std::size_t w = 0; w < num_writes; ++w) {
      const ir::BufferId id = find_block(s_.program(), running_)->writes[w].buffer;
      // What is a result, or is read by other kernels, leaves through a copy.
      if (s_.program().buffer(id).role != ir::BufferRole::kIntermediate) {
        PRUNERC_TRY_VOID(s_.cache_write(running_, static_cast<int>(w), ir::Scope::kLocal));
      } else {
        PRUNERC_TRY_VOID(s_.set_scope(running_, static_cast<int>(w), ir::Scope::kLocal));
      }
    }
    return {};
  }

  // A block behind the pass, with its rows and perhaps columns.
  Result<void> take_out(BlockId out) {
    const ir::Block& block = *find_block(s_.program(), out);
    const ir::Block& pass = *find_block(s_.program(), running_);
    if (is_reduction(block) || block.writes.size() != 1) return refuse("what reads its results");
    // Its variables that are those of the pass along rows, and of its sums along columns.
    const std::optional<std::size_t> of_pass = row_of_pass();
    std::optional<std::size_t> row, column;
    for (const ir::Access& made : pass.writes) {
      for (std::size_t d = 0; d < made.region.size(); ++d) {
        const bool is_row = mentions(made.region[d].min, pass.iters[*of_pass].var->id);
        const bool is_column = ir::constant_value(made.region[d].extent) == q_.extents[1];
        if (is_row && !row) row = variable_at(block, made.buffer, d);
        if (is_column && !column) column = variable_at(block, made.buffer, d);
      }
    }
    if (!row) return refuse("what reads its results");
    const std::size_t num_outer = grid_.size() - 1;
    const bool has_columns = block.iters.size() == num_outer + 2;
    if (!has_columns && block.iters.size() != num_outer + 1) return refuse("results of this shape");
    if (has_columns != column.has_value()) return refuse("results of this shape");
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.reverse_compute_at(out, grid_.back()));
    return column ? values_.leave_registers(loops, *row, *column) : share_rows(loops, *row, {});
  }

  // Rows of a block by its warps; `inner` (may be invalid) runs over a row's elements.
  Result<void> share_rows(const std::vector<LoopId>& loops, std::size_t row, LoopId inner) {
    PRUNERC_TRY(const std::vector<LoopId> rows,
                s_.split(loops[row], {scores_.m.warps, scores_.m.of_warp}));
    std::vector<LoopId> order;
    for (const LoopId loop : loops) {
      if (loop != loops[row] && loop != inner) order.push_back(loop);
    }
    order.insert(order.end(), rows.begin(), rows.end());
    if (inner.valid()) order.push_back(inner);
    PRUNERC_TRY_VOID(s_.reorder(order));
    return s_.bind(rows[0], "thread.y");
  }

  // What is between the products, in registers.
  Result<void> keep(const ChainStage& stage) {
    const ir::Block& block = *find_block(s_.program(), stage.block);
    const auto [row, column] = stage.places;
    if (!row || block.writes.size() != 1 || (is_reduction(block) && !column)) {
      return refuse("a stage of this shape");
    }
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.compute_at(stage.block, tiles_));
    PRUNERC_TRY_VOID(s_.set_scope(stage.block, 0, ir::Scope::kLocal));
    return share_rows(loops, *row, column ? loops[*column] : LoopId());
  }

  // The nest of a product under the loop over tiles.
  Result<void> place(MatrixProduct* product, WarpProduct* warps, std::size_t num_outer) {
    PRUNERC_TRY_VOID(s_.set_scope(product->block, 0, ir::Scope::kLocal));
    PRUNERC_TRY(const std::vector<LoopId> nest, s_.compute_at(product->block, tiles_));
    product->spatial.assign(nest.begin(), nest.begin() + static_cast<std::ptrdiff_t>(num_outer));
    product->m = nest[num_outer];
    product->n = nest[num_outer + 1];
    product->k = nest[num_outer + 2];
    PRUNERC_TRY_VOID(warps->cut(product->spatial));
    return warps->load_registers();
  }

  Result<void> bring(WarpProduct* warps, const MatrixOperand& operand, LoopId loop) {
    PRUNERC_TRY_VOID(s_.set_scope(operand.copy, 0, ir::Scope::kShared));
    return warps->fetch(operand, loop, warps->widest(operand));
  }

  Result<void> second_product() {
    PRUNERC_TRY_VOID(place(&q_, &values_, second_mapping_.outer.size()));
    PRUNERC_TRY_VOID(bring(&values_, q_.b, tiles_));
    PRUNERC_TRY_VOID(values_.multiply_tile());
    return values_.fill_registers();
  }

  Result<void> first_product() {
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.compute_at(p_.out, tiles_));
    PRUNERC_TRY_VOID(s_.set_scope(p_.out, 0, ir::Scope::kLocal));
    PRUNERC_TRY_VOID(scores_.leave_registers(loops, p_.out_m, p_.out_n));
    PRUNERC_TRY_VOID(place(&p_, &scores_, first_mapping_.outer.size()));
    PRUNERC_TRY_VOID(bring(&scores_, p_.a, grid_.back()));
    PRUNERC_TRY_VOID(bring(&scores_, p_.b, tiles_));
    PRUNERC_TRY_VOID(scores_.multiply_tile());
    return scores_.fill_registers();
  }

  // Statements of the loop over tiles: whether each brings a tile of keys or of values.
  std::vector<bool> fetches() const {
    std::vector<bool> out;
    const auto brings = [&](ir::Stmt s) {
      bool found = false;
      ir::walk(
          s,
          [&](ir::Stmt part) {
            const auto* block = part.as<ir::Block>();
            found =
                found || (block != nullptr && (block->id == p_.b.copy || block->id == q_.b.copy));
            return !found;
          },
          [](ir::Expr) {});
      return found;
    };
    ir::walk(
        s_.program().root(),
        [&](ir::Stmt s) {
          const auto* loop = s.as<ir::Loop>();
          if (loop == nullptr || loop->id != tiles_) return true;
          const auto* seq = loop->body.as<ir::Seq>();
          for (const ir::Stmt child : seq != nullptr ? seq->stmts : std::span<const ir::Stmt>()) {
            out.push_back(brings(child));
          }
          return false;
        },
        [](ir::Expr) {});
    return out;
  }

  Result<void> bind_all() {
    const LoopId queries = grid_.back();
    grid_.pop_back();
    PRUNERC_TRY(const LoopId top, fuse_all(context_, grid_));
    if (top.valid()) PRUNERC_TRY_VOID(s_.bind(top, "block.y"));
    PRUNERC_TRY_VOID(s_.bind(queries, "block.x"));
    std::vector<Int> stages;
    std::vector<int64_t> order;
    for (const bool brings : fetches()) {
      order.push_back(static_cast<int64_t>(order.size()));
      stages.push_back(brings ? Int(0) : ahead_);
    }
    return s_.software_pipeline(tiles_, stages, order);
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  const schedule::TensorMapping &first_mapping_, &second_mapping_;
  MatrixProduct &p_, &q_;
  WarpProduct scores_, values_;
  Int rows_, ahead_ = 1;  // of a block; iterations that K' and V' are ahead
  std::vector<ChainStage> stages_;
  BlockId running_;
  std::vector<LoopId> grid_;  // what is outside, blocks of rows last
  LoopId tiles_;              // over tiles of keys
};

}  // namespace

Result<void> gpu_chain_online(SketchContext& context, ShapedProduct first, ShapedProduct second) {
  const schedule::Schedule before = context.schedule.fork();
  Result<void> done = GpuOnline(context, &first, &second).run();
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
