// Rule "wgmma": matrix products of 16-bit factors on Hopper, of bytes, and of f32 factors where tf32 is
// allowed.
//
//     for o.., i, j { for k { C += A * B } }
//   ~>
//     for b bind(block.x) { for t {                     tiles of 64 g x n, several for a block,
//                                                       groups of rows column by column
//       for w bind(thread.y) { C_init }
//       for k0 {ring} {
//         A, B tiles, swizzled: each by bulk_copy, or by all threads together
//         for w in g bind(thread.y) { for k1 in 4 { wgmma 64 x n x 32 bytes } }
//       }
//       for w bind(thread.y) { copy-out or fused consumer }
//     } }
//
// Extents that no tile divides are padded with zeros, which the copy engine does by itself where
// rows lie at multiples of 16 bytes. Convolutions and whatever else is no product of two matrices get
// their factors in that shape (gpu_matrix.h), windows whose channels fill a tile's rows by the engine,
// others by copies of threads; sums around K are in the ring. The hardware transposes 16-bit elements only: f32 factors and bytes whose rows run across K are transposed
// by the threads that fetch them.
#include "ir/tensor/bulk_copy.h"
#include "search/space/sketch_rule/gpu/gpu.h"
#include "search/space/sketch_rule/gpu/gpu_warp.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

constexpr int64_t kRows = 64;         // of a warpgroup
constexpr int64_t kThreads = 128;     // of a warpgroup
constexpr int64_t kStepBytes = 32;    // of K in one instruction
constexpr int64_t kStepsPerTile = 4;  // 128 bytes of K: one row of the widest swizzle
constexpr int64_t kTileBytes = kStepBytes * kStepsPerTile;
constexpr int64_t kVectorBytes = 16;
/// Rows that threads transpose at a time: 32 bytes in memory, a sector, and with 4 neighbours of K a
/// warp's store into all of 32 banks.
constexpr int64_t kRowsAcross = 8;
constexpr std::string_view kSingle = "tf32";
const std::vector<int64_t> kDepths = {1, 2, 3, 4, 5};  // tiles that are ahead of the one at hand
constexpr int64_t kPreferredDepth = 3;
const std::vector<int64_t> kTilesPerBlock = {1, 2, 3, 4, 6, 8, 16};
const std::vector<int64_t> kParts = {2, 4, 8, 16};  // of a sum
constexpr int64_t kLeastSteps = 4;                  // of a part: what the ring holds
/// Tiles below each other that neighbouring blocks compute: they read the same columns, and their
/// rows stay in L2 from one column to the next.
const std::vector<int64_t> kGroups = {1, 4, 8, 16};
constexpr int64_t kPreferredGroup = 16;
/// Neighbouring blocks that bring each other what all of them read.
const std::vector<int64_t> kClusters = {1, 2};
/// Pairs wait for each other at each stage: on an H100 they took half as long again.
constexpr int64_t kPreferredCluster = 1;
/// What a warpgroup's sums leave through, at the least. Source: codegen/cuda/print_staged.cc.
constexpr int64_t kStagedBytes = kRows * 128;
/// Left for mbarriers and what the driver keeps.
constexpr int64_t kSpareBytes = 2048;

std::vector<int64_t> dividing(const std::vector<int64_t>& values, int64_t extent) {
  std::vector<int64_t> out;
  for (const int64_t n : values) {
    if (extent % n == 0) out.push_back(n);
  }
  return out;
}

// A product as the rule sees it.
struct Product {
  Axis row, column, reduce;
  std::vector<Axis> outer, outer_reduce;
  int a = 0, b = 0;    // reads of the block
  std::string type;    // of the factors, as instructions are called
  int64_t k_step = 1;  // of K in one instruction
  int64_t k_tile() const { return k_step * kStepsPerTile; }
  /// Do rows of this factor have to be made along K?
  bool transposes(const ir::Access& factor) const {
    return type == kSingle && !is_contiguous(factor, reduce.var);
  }
};

// The factor f32(X[..]) or i32(X[..]) of a product, or an f32 one as it is.
const ir::Load* factor_of(ir::Expr e, const ir::Target& target) {
  const auto* cast = e.as<ir::Cast>();
  const auto* load = (cast != nullptr ? cast->operand : e).as<ir::Load>();
  if (load == nullptr) return nullptr;
  switch (load->dtype) {
    case ir::DType::kF16:
    case ir::DType::kBF16: return e.dtype() == ir::DType::kF32 ? load : nullptr;
    case ir::DType::kI8: return e.dtype() == ir::DType::kI32 ? load : nullptr;
    case ir::DType::kF32: return cast == nullptr && target.allow_tf32 != 0 ? load : nullptr;
    default: return nullptr;
  }
}

bool is_product_of_factors(const ir::Block& block, const ir::Target& target, Product* out) {
  const auto* store = block.body.as<ir::Store>();
  const auto* sum = store != nullptr ? store->value.as<ir::Add>() : nullptr;
  const auto* product = sum != nullptr ? sum->rhs.as<ir::Mul>() : nullptr;
  const ir::Load* x = product != nullptr ? factor_of(product->lhs, target) : nullptr;
  const ir::Load* y = product != nullptr ? factor_of(product->rhs, target) : nullptr;
  if (x == nullptr || y == nullptr || x->dtype != y->dtype || x->buffer == y->buffer) return false;
  out->type = x->dtype == ir::DType::kI8    ? "s8"
              : x->dtype == ir::DType::kF32 ? kSingle
                                            : to_string(x->dtype);
  out->k_step = kStepBytes / byte_size(x->dtype);
  return true;
}

bool is_var(ir::Expr e, ir::VarId var) {
  const auto* v = e.as<ir::Var>();
  return v != nullptr && v->id == var;
}

// The variable, or where a part of it begins and the variable within.
bool runs_along(ir::Expr e, ir::VarId var) {
  const auto* sum = e.as<ir::Add>();
  return is_var(e, var) ||
         (sum != nullptr && ((is_var(sum->lhs, var) && !mentions(sum->rhs, var)) ||
                             (is_var(sum->rhs, var) && !mentions(sum->lhs, var))));
}

// All subscripts are different variables, the last two of them `x` and `y` in some order; y may be in
// parts.
bool is_matrix(const ir::Access& access, ir::VarId x, ir::VarId y, bool in_parts) {
  const std::size_t rank = access.region.size();
  if (rank < 2) return false;
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    if (access.region[d].min.as<ir::Var>() == nullptr) return false;
  }
  const ir::Expr last = access.region[rank - 1].min, before = access.region[rank - 2].min;
  const auto is_y = [&](ir::Expr e) { return in_parts ? runs_along(e, y) : is_var(e, y); };
  return (is_var(last, x) && is_y(before)) || (is_y(last) && is_var(before, x));
}

std::optional<Product> find_product(const BlockFacts& facts, const ir::Target& target,
                                    bool in_parts = false) {
  Product out;
  if (facts.block == nullptr || !facts.trivial || facts.block->writes.size() != 1 ||
      facts.reduce.empty() || facts.spatial.size() < 2 ||
      !is_product_of_factors(*facts.block, target, &out)) {
    return std::nullopt;
  }
  out.reduce = facts.reduce.back();
  out.outer_reduce.assign(facts.reduce.begin(), facts.reduce.end() - 1);
  const ir::Access& result = facts.block->writes[0];
  std::vector<int> factors;
  for (std::size_t i = 0; i < facts.block->reads.size(); ++i) {
    if (facts.block->reads[i].buffer != result.buffer) factors.push_back(static_cast<int>(i));
  }
  if (factors.size() != 2) return std::nullopt;
  for (const Axis& row : facts.spatial) {
    for (const Axis& column : facts.spatial) {
      for (int swapped = 0; swapped < 2; ++swapped) {
        const int a = factors[static_cast<std::size_t>(swapped)];
        const int b = factors[static_cast<std::size_t>(1 - swapped)];
        const auto reads = [&](int i) { return facts.block->reads[static_cast<std::size_t>(i)]; };
        if (!is_matrix(reads(a), row.var, out.reduce.var, in_parts) ||
            !is_matrix(reads(b), column.var, out.reduce.var, in_parts) ||
            mentions(reads(a), column.var) || mentions(reads(b), row.var) ||
            !is_matrix(result, row.var, column.var, false) || !is_contiguous(result, column.var)) {
          continue;
        }
        // Others get that shape first (gpu_matrix.h).
        if (out.type == "s8" &&
            !(is_contiguous(reads(a), out.reduce.var) && is_contiguous(reads(b), out.reduce.var))) {
          continue;
        }
        out.row = row;
        out.column = column;
        out.a = a;
        out.b = b;
        for (const Axis& axis : facts.spatial) {
          if (axis.iter != row.iter && axis.iter != column.iter) out.outer.push_back(axis);
        }
        return out;
      }
    }
  }
  return std::nullopt;
}

class GpuWgmma {
 public:
  GpuWgmma(SketchContext& context, BlockId block, BlockId consumer, const WgmmaTile& tile)
      : context_(context),
        s_(context.schedule),
        block_(block),
        consumer_(consumer),
        tile_(tile),
        bulk_(tile.bulk) {}

  /// Of a product that `mapping` gave its shape, where there is one.
  Result<void> run(const schedule::TensorMapping* mapping, MatrixProduct* shaped) {
    std::optional<Product> product = find();
    if (!product) return error(Diag::kUnsupported, std::string("wgmma for this block"));
    if (mapping != nullptr) {
      PRUNERC_TRY_VOID(pad_shaped(*product, *mapping, shaped));
    } else {
      PRUNERC_TRY_VOID(pad(*product));
    }
    product = find();
    if (product && tile_.parts) {
      PRUNERC_TRY_VOID(take_parts(*product));
      product = find(true);
    }
    if (!product) return error(Diag::kUnsupported, std::string("wgmma for this block"));
    PRUNERC_TRY_VOID(take_registers());
    PRUNERC_TRY_VOID(cut(*product));
    PRUNERC_TRY_VOID(copy_out());
    PRUNERC_TRY_VOID(bring(*product));
    PRUNERC_TRY(const BlockId init, s_.decompose_reduction(block_, ring_));
    PRUNERC_TRY_VOID(s_.bind(loop_above(init), "thread.y"));
    PRUNERC_TRY_VOID(s_.bind(warpgroup_, "thread.y"));
    PRUNERC_TRY_VOID(s_.tensorize(first_row_, "wgmma_m64n" + std::to_string(tile_.columns) + "k" +
                                                  std::to_string(product->k_step) + "_" +
                                                  product->type));
    PRUNERC_TRY_VOID(s_.bind(blocks_, "block.x"));
    if (bulk_) {
      PRUNERC_TRY_VOID(
          s_.annotate(blocks_, "cluster", context_.pick(kClusters, kPreferredCluster)));
    }
    return s_.software_pipeline(ring_, {Int(0), Int(0), depth()}, {0, 1, 2});
  }

 private:
  struct Factor {
    ir::BufferId buffer;
    int64_t swizzle = 0;      // Units: bytes
    bool transposes = false;  // on its way into shared memory
  };

  const ir::Block& block() const { return *find_block(s_.program(), block_); }

  std::optional<Product> find(bool in_parts = false) const {
    return find_product(facts_of(s_, block_), context_.target, in_parts);
  }

  // Zeros up to whole tiles; what reads the result then reads it out of the tiles.
  Result<void> pad(const Product& p) {
    std::vector<Int> multiples;
    bool pads = false;
    const auto multiple_of = [&](int iter) -> int64_t {
      if (iter == p.row.iter) return kRows * tile_.warpgroups;
      if (iter == p.column.iter) return tile_.columns;
      return iter == p.reduce.iter ? p.k_tile() : 1;
    };
    for (std::size_t i = 0; i < block().iters.size(); ++i) {
      const int64_t multiple = multiple_of(static_cast<int>(i));
      const auto* extent = block().iters[i].extent.as<ir::IntImm>();
      pads = pads || extent == nullptr || extent->value % multiple != 0;
      multiples.emplace_back(multiple);
    }
    if (!pads) return {};
    if (!std::all_of(block().reads.begin(), block().reads.end(), has_variable_subscripts))
      return error(Diag::kUnsupported, std::string("windows that are padded"));
    const ir::BufferId result = block().writes[0].buffer;
    PRUNERC_TRY(const std::vector<BlockId> made, s_.pad_einsum(block_, multiples));
    padding_ = made;
    if (block().writes[0].buffer == result) return {};
    const BlockId crop = made.back();
    if (!consumer_.valid()) {
      consumer_ = crop;
      return {};
    }
    return s_.compute_inline(crop);
  }

  Result<void> pad_shaped(const Product& p, const schedule::TensorMapping& mapping,
                          MatrixProduct* shaped) {
    const bool rows_along_m = p.row.loop == shaped->m;
    std::array<Int, 3> multiples = {kRows * tile_.warpgroups, tile_.columns, p.k_tile()};
    if (!rows_along_m) std::swap(multiples[0], multiples[1]);
    PRUNERC_TRY_VOID(pad_operands(context_, mapping, multiples, shaped));
    consumer_ = shaped->out;
    places_ = std::array{shaped->out_m, shaped->out_n};
    if (!rows_along_m) std::swap((*places_)[0], (*places_)[1]);
    padding_ = {shaped->a.copy, shaped->b.copy};
    operands_ = {shaped->a, shaped->b};
    bulk_ = bulk_ && !shaped->a.turns && !shaped->b.turns;
    return {};
  }

  int64_t num_tiles(const Product& p) const {
    int64_t n =
        ceil_div(p.row.extent, kRows * tile_.warpgroups) * ceil_div(p.column.extent, tile_.columns);
    for (const Axis& axis : p.outer) n *= axis.extent;
    return n;
  }

  // Where tiles leave processors idle, parts of the sum are tiles too: a second kernel adds them up.
  Result<void> take_parts(const Product& p) {
    const int64_t steps = p.reduce.extent / p.k_tile(), tiles = num_tiles(p);
    std::vector<int64_t> parts;
    for (const int64_t n : dividing(kParts, steps)) {
      if (steps / n >= kLeastSteps) parts.push_back(n);
    }
    if (parts.empty() || 2 * tiles > context_.target.num_sms)
      return error(Diag::kUnsupported, std::string("parts of this sum"));
    int64_t preferred = parts[0];
    for (const int64_t n : parts) {
      if (n * tiles <= context_.target.num_sms) preferred = n;
    }
    PRUNERC_TRY(const std::vector<LoopId> k,
                s_.split(p.reduce.loop, {context_.pick(parts, preferred), Int(-1)}));
    std::vector<LoopId> order = {k[0]};
    for (const std::vector<Axis>& axes :
         {p.outer, std::vector<Axis>{p.row, p.column}, p.outer_reduce}) {
      for (const Axis& axis : axes) order.push_back(axis.loop);
    }
    order.push_back(k[1]);
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY(block_, s_.rfactor(k[0], 0));
    consumer_ = BlockId();
    places_.reset();
    return {};
  }

  Result<void> take_registers() {
    if (consumer_.valid()) return s_.set_scope(block_, 0, ir::Scope::kLocal);
    PRUNERC_TRY(consumer_, s_.cache_write(block_, 0, ir::Scope::kLocal));
    return {};
  }

  Result<void> cut(const Product& p) {
    const int64_t row_tiles = ceil_div(p.row.extent, kRows * tile_.warpgroups);
    const Int group = context_.pick(dividing(kGroups, row_tiles), kPreferredGroup);
    PRUNERC_TRY(const std::vector<LoopId> rows,
                s_.split(p.row.loop, {Int(-1), group, Int(tile_.warpgroups), Int(kRows)}));
    PRUNERC_TRY(const std::vector<LoopId> columns,
                s_.split(p.column.loop, {Int(-1), Int(tile_.columns)}));
    PRUNERC_TRY(const std::vector<LoopId> reduce,
                s_.split(p.reduce.loop, {Int(-1), Int(kStepsPerTile), Int(p.k_step)}));
    std::vector<LoopId> tiles;
    for (const Axis& axis : p.outer) tiles.push_back(axis.loop);
    tiles.push_back(rows[0]);
    tiles.push_back(columns[0]);
    tiles.push_back(rows[1]);
    ring_ = reduce[0];
    warpgroup_ = rows[2];
    first_row_ = rows[3];
    std::vector<LoopId> order = tiles, depth;
    for (const Axis& axis : p.outer_reduce) depth.push_back(axis.loop);
    depth.push_back(ring_);
    order.insert(order.end(), depth.begin(), depth.end());
    order.insert(order.end(), {warpgroup_, reduce[1], first_row_, columns[1], reduce[2]});
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY(ring_, fuse_all(context_, depth));
    PRUNERC_TRY(const LoopId all, s_.fuse(tiles));
    // Blocks that all run at a time compute the next tile while others arrive.
    const std::vector<int64_t> per_block =
        tile_.parts ? std::vector<int64_t>{1} : dividing(kTilesPerBlock, num_tiles(p));
    int64_t preferred = 1;
    for (const int64_t n : per_block) {
      preferred = n;
      if (num_tiles(p) <= n * context_.target.num_sms) break;
    }
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(all, {context_.pick(per_block, preferred), Int(-1)}));
    PRUNERC_TRY_VOID(s_.reorder({parts[1], parts[0]}));
    blocks_ = parts[1];
    tile_loop_ = parts[0];
    return {};
  }

  // The loop over warpgroups of an init nest: above the rows and columns of one.
  LoopId loop_above(BlockId init) const {
    const std::vector<LoopId> loops = s_.loops_of(init);
    return loops[loops.size() - 3];
  }

  // By dimensions of the result.
  Result<void> copy_out() {
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.reverse_compute_at(consumer_, tile_loop_));
    if (loops.size() < 2) return error(Diag::kUnsupported, std::string("a consumer without rows"));
    const std::array<std::size_t, 2> at =
        places_.value_or(std::array{loops.size() - 2, loops.size() - 1});
    // Whole tiles, also where the result ends before them.
    PRUNERC_TRY(const std::vector<LoopId> rows,
                s_.split(loops[at[0]], {Int(tile_.warpgroups), Int(kRows)}));
    PRUNERC_TRY(const std::vector<LoopId> columns,
                s_.split(loops[at[1]], {Int(1), Int(tile_.columns)}));
    std::vector<LoopId> order = {rows[0]};
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (i != at[0] && i != at[1]) order.push_back(loops[i]);
    }
    order.insert(order.end(), {columns[0], rows[1], columns[1]});
    PRUNERC_TRY_VOID(s_.reorder(order));
    return s_.bind(rows[0], "thread.y");
  }

  // The block that makes the factor's tile: what pads it, or a copy.
  Result<BlockId> tile_of(ir::BufferId factor) {
    for (const BlockId id : s_.blocks()) {
      const ir::Block* writer = find_block(s_.program(), id);
      const bool writes = writer->writes.size() == 1 && writer->writes[0].buffer == factor;
      if (!writes || std::find(padding_.begin(), padding_.end(), id) == padding_.end()) continue;
      PRUNERC_TRY_VOID(s_.set_scope(id, 0, ir::Scope::kShared));
      return id;
    }
    const std::vector<ir::Access> reads(block().reads.begin(), block().reads.end());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (reads[i].buffer == factor) {
        return s_.cache_read(block_, static_cast<int>(i), ir::Scope::kShared);
      }
    }
    return error(Diag::kUnsupported, std::string("a factor that is not read"));
  }

  // The widest swizzle whose rows fit into those of the tile. Units: bytes.
  Result<int64_t> swizzle_of(const Product& p, const ir::Access& access) const {
    const ir::Expr last = access.region.back().min;
    const bool by_k = mentions(last, p.reduce.var) || p.transposes(access);
    const int64_t columns = by_k                           ? p.k_tile()
                            : mentions(last, p.column.var) ? tile_.columns
                                                           : kRows * tile_.warpgroups;
    const int64_t bytes = ir::panel_of(columns * kStepBytes / p.k_step);
    return bytes > 0 ? Result<int64_t>(bytes)
                     : error(Diag::kUnsupported, std::string("rows of 16 bytes"));
  }

  // What the engine cannot bring threads fetch, as many tiles ahead; both factors where they transpose one.
  Result<void> bring(const Product& p) {
    std::vector<Factor> factors;
    for (const int i : {p.a, p.b}) {
      const ir::Access& access = block().reads[static_cast<std::size_t>(i)];
      PRUNERC_TRY(const int64_t swizzle, swizzle_of(p, access));
      factors.push_back({access.buffer, swizzle, p.transposes(access)});
      bulk_ = bulk_ && !factors.back().transposes;
    }
    std::vector<BlockId> tiles;
    for (const Factor& factor : factors) {
      PRUNERC_TRY(const BlockId tile, tile_of(factor.buffer));
      tiles.push_back(tile);
    }
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      PRUNERC_TRY(const std::vector<LoopId> loops, s_.compute_at(tiles[i], ring_));
      if (factors[i].transposes) PRUNERC_TRY_VOID(transpose(tiles[i]));
      PRUNERC_TRY_VOID(s_.swizzle(tiles[i], 0, factors[i].swizzle));
      if (bulk_ && s_.bulk_copy(loops[0])) continue;
      const MatrixOperand* const operand = operand_of(tiles[i]);
      if (operand != nullptr && operand->turns) {
        PRUNERC_TRY_VOID(fetch_turned(*operand, loops));
        continue;
      }
      PRUNERC_TRY_VOID(factors[i].transposes ? fetch_across(p, loops) : fetch(p, tiles[i], loops));
    }
    return {};
  }

  const MatrixOperand* operand_of(BlockId copy) const {
    const auto it = std::find_if(operands_.begin(), operands_.end(),
                                 [&](const MatrixOperand& o) { return o.copy == copy; });
    return it != operands_.end() ? &*it : nullptr;
  }

  // Bytes that are transposed, by blocks: a warpgroup has all of K and 16 rows at a time.
  Result<void> fetch_turned(const MatrixOperand& operand, const std::vector<LoopId>& loops) {
    for (const int64_t extent : {kRows * tile_.warpgroups, tile_.columns}) {
      if (extent % (tile_.warpgroups * kTurnedRows) == 0) continue;
      return error(Diag::kUnsupported, std::string("a tile that threads do not divide"));
    }
    PRUNERC_TRY(const TurningLoops cut, cut_to_turn(context_, operand, loops, kThreads));
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(cut.outer, {Int(-1), Int(tile_.warpgroups)}));
    // Reads of all blocks are under way before the first one is turned.
    PRUNERC_TRY_VOID(s_.unroll(parts[0]));
    PRUNERC_TRY_VOID(s_.bind(cut.threads, "thread.x"));
    return s_.bind(parts[1], "thread.y");
  }

  // The tile [.., k, x] becomes [.., x, k].
  Result<void> transpose(BlockId tile) {
    const std::size_t rank = find_block(s_.program(), tile)->writes[0].region.size();
    std::vector<std::string> dims;
    for (std::size_t d = 0; d < rank; ++d) dims.push_back("v" + std::to_string(d));
    const auto listed = [&] {
      std::string out;
      for (const std::string& dim : dims) out += (out.empty() ? "" : ", ") + dim;
      return "(" + out + ")";
    };
    const std::string from = listed();
    std::swap(dims[rank - 2], dims[rank - 1]);
    PRUNERC_TRY_VOID(s_.transform_layout(tile, 0, from + " -> " + listed()));
    return {};
  }

  // What is transposed, by single elements: a warpgroup has 16 neighbours of K and 8 rows at a time.
  Result<void> fetch_across(const Product& p, const std::vector<LoopId>& loops) {
    const int64_t depth = kThreads / kRowsAcross;
    if (loops.size() < 2 || p.k_tile() % (tile_.warpgroups * depth) != 0)
      return error(Diag::kUnsupported, std::string("a tile that threads do not divide"));
    PRUNERC_TRY(const std::vector<LoopId> k,
                s_.split(loops[loops.size() - 2], {Int(-1), Int(tile_.warpgroups), Int(depth)}));
    PRUNERC_TRY(const std::vector<LoopId> rows,
                s_.split(loops.back(), {Int(-1), Int(kRowsAcross)}));
    std::vector<LoopId> serial(loops.begin(), loops.end() - 2);
    serial.insert(serial.end(), {k[0], rows[0]});
    std::vector<LoopId> order = serial;
    order.insert(order.end(), {k[1], k[2], rows[1]});
    PRUNERC_TRY_VOID(s_.reorder(order));
    PRUNERC_TRY_VOID(s_.fuse(serial));
    PRUNERC_TRY(const LoopId threads, s_.fuse({k[2], rows[1]}));
    PRUNERC_TRY_VOID(s_.bind(threads, "thread.x"));
    return s_.bind(k[1], "thread.y");
  }

  // All threads together, with vectors as long as rows of the matrix allow.
  Result<void> fetch(const Product& p, BlockId tile, const std::vector<LoopId>& loops) {
    int64_t width = kVectorBytes / (kStepBytes / p.k_step);
    const MatrixOperand* const operand = operand_of(tile);
    if (operand != nullptr) width = std::gcd(width, operand->widest);
    for (const ir::Access& access : find_block(s_.program(), tile)->reads) {
      const auto* columns = s_.program().buffer(access.buffer).shape.back().as<ir::IntImm>();
      width = std::gcd(width, columns != nullptr ? columns->value : 1);
    }
    // A warpgroup too many would fetch beyond the tile.
    for (const int64_t extent : {kRows * tile_.warpgroups, tile_.columns}) {
      if (p.k_tile() * extent % (tile_.warpgroups * kThreads * width) == 0) continue;
      return error(Diag::kUnsupported, std::string("a tile that threads do not divide"));
    }
    PRUNERC_TRY(const LoopId all, s_.fuse(loops));
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(all, {Int(-1), Int(tile_.warpgroups), Int(kThreads), Int(width)}));
    PRUNERC_TRY_VOID(s_.vectorize(parts[3]));
    PRUNERC_TRY_VOID(s_.bind(parts[2], "thread.x"));
    return s_.bind(parts[1], "thread.y");
  }

  // As many tiles ahead as shared memory has room for.
  Int depth() {
    const int64_t bytes = (kRows * tile_.warpgroups + tile_.columns) * kTileBytes;
    const int64_t spare = kSpareBytes + kStagedBytes * tile_.warpgroups;
    const int64_t places = (context_.target.smem_bytes_per_block - spare) / bytes;
    return context_.pick(up_to(kDepths, places - 1), kPreferredDepth);
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  BlockId block_, consumer_;
  const WgmmaTile tile_;
  bool bulk_;                                         // does the engine copy?
  std::vector<BlockId> padding_;                      // what pad_einsum has made
  std::vector<MatrixOperand> operands_;               // of a product that came shaped
  std::optional<std::array<std::size_t, 2>> places_;  // among the result's loops: rows, columns
  LoopId blocks_, tile_loop_, ring_, warpgroup_, first_row_;
};

}  // namespace

bool has_wgmma(const ir::Target& target) { return target.name.find("sm_90a") != std::string::npos; }

bool can_gpu_wgmma(const SketchContext& context, BlockId block) {
  return find_product(facts_of(context.schedule, block), context.target).has_value();
}

Result<void> gpu_wgmma(SketchContext& context, BlockId block, BlockId consumer,
                       const WgmmaTile& tile) {
  const schedule::Schedule before = context.schedule.fork();
  const Result<void> done = GpuWgmma(context, block, consumer, tile).run(nullptr, nullptr);
  if (!done) context.schedule = before;
  return done;
}

Result<void> gpu_wgmma(SketchContext& context, const schedule::TensorMapping& mapping,
                       MatrixProduct product, const WgmmaTile& tile) {
  const schedule::Schedule before = context.schedule.fork();
  const Result<void> done =
      GpuWgmma(context, product.block, BlockId(), tile).run(&mapping, &product);
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
