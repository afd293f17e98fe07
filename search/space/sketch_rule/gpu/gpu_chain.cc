// Rule "chain" for GPUs: attention in one kernel, whole rows of its weights in shared memory.
//
//     for h, t, s, e { A[h,t,s] += Q[h,t,e]*K[h,s,e] }           first product
//     for h, t { for s { m } }  for h, t, s { P = exp(A - m) }  for h, t { for s { l } }     between
//     for h, t, e, s { O[h,t,e] += P[h,t,s]*V[h,s,e] }           second product
//   ~>
//     for h bind(block.y), t0 bind(block.x) {                    a block: some queries of a head
//       fetch Q'
//       for s0 {software_pipeline} { fetch K'  { mma }  A = .. }  as rule "tensor"
//       for t1 { for t2 bind(thread.y) { for s0, t3, s1 bind(thread.x) { m } }  P and l alike }
//       for s0 {software_pipeline} { fetch V'  { ldmatrix P  mma } }
//       O = ..
//     }
//
// Where tiles divide rows and columns, the second product takes P from where it was computed; else a padded copy of it.
// There P of some rows stays in a warp's registers until l was taken and a copy left, if rows are short enough.
// Warpgroups multiply whole tiles only: K', V' and P are swizzled, thread.y counts the warps of one, thread.z warpgroups.
// Beside these the copy engine may bring K' and V' (bulk_copy): rings, of which nothing else has the room.
// Of rows in tiles (attention over many keys) a block has one tile; what is read behind the kernel as well, as the maximum
// and the sum of a tile are, lies in global memory.
#include "search/space/sketch_rule/gpu/gpu_chain.h"

#include "ir/tensor/bulk_copy.h"
#include "search/space/sketch_rule/gpu/gpu_chain_stages.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

const std::vector<int64_t> kRowWarps = {1, 2, 4};
const std::vector<int64_t> kLaneRowWarps = {4, 8, 16};
const std::vector<int64_t> kRowTiles = {1, 2};
const std::vector<int64_t> kLaneRowTiles = {1, 2, 4, 8};
const std::vector<int64_t> kColumnWarps = {1, 2, 4, 8};
const std::vector<int64_t> kColumnTiles = {1, 2, 4, 8};
const std::vector<int64_t> kDepthTiles = {1, 2, 4, 8};
/// Where lanes multiply: steps of the first product, of the second.
constexpr int64_t kLaneSteps = 4;
const std::vector<int64_t> kLaneDepths = {8, 16, 32};
/// Where warpgroups do: columns of their instructions, those of the first product, its tiles, steps of the second.
constexpr int64_t kGroupColumns[] = {16, 32, 64, 96, 128, 192, 256};
constexpr int64_t kMostGroupKeys = 64;
const std::vector<int64_t> kGroupTiles = {1, 2};
const std::vector<int64_t> kGroupDepths = {1, 2, 4, 8};
const std::vector<int64_t> kPipeline = {0, 1, 2, 3};
constexpr int64_t kPreferredWarps = 8;
/// Rows between the products that a warp takes at a time; weights of one that a lane keeps in registers.
constexpr int64_t kRowsAtOnce = 2;
constexpr int64_t kMostKept = 32;
constexpr int64_t kKeptWidth = 4;  // neighbours among them
/// Keys that one iteration of the first product takes by default: so many elements of K.
constexpr int64_t kPreferredElems = 8192;
/// The first product has its whole depth in shared memory and unrolled.
constexpr int64_t kMostDepth = 256;
/// Of shared memory, beside rows: values of rows, padding, what tiles need of their own.
constexpr int64_t kSpareBytes = 16 << 10;
/// The same beside rings: values of rows, mbarriers, places up to where swizzles begin.
constexpr int64_t kRingSpareBytes = 4 << 10;
/// Of a ring, at the least.
constexpr int64_t kLeastStages = 2;
constexpr int64_t kFactorBytes = 2;  // of an element, where warpgroups multiply
/// Rows of scores are as many floats beyond a multiple of a warp's lanes.
constexpr int64_t kScoreOffset = kWarpLanes / 4;

class GpuChain {
 public:
  GpuChain(SketchContext& context, ShapedProduct* first, ShapedProduct* second, WarpUnit unit,
           bool bulk, bool in_registers)
      : context_(context),
        s_(context.schedule),
        first_mapping_(first->mapping),
        second_mapping_(second->mapping),
        p_(first->product),
        q_(second->product),
        unit_(unit),
        bulk_(bulk),
        in_registers_(in_registers),
        scores_(context, &p_, RowSpread::kPadded, unit),
        values_(context, &q_, RowSpread::kPadded, unit) {}

  Result<void> run() {
    const bool same_rows = p_.extents[0] == q_.extents[0] && p_.extents[1] == q_.extents[2];
    const bool plain = p_.reduce.empty() && q_.reduce.empty() && p_.result_map.empty();
    if (!same_rows || !plain || p_.extents[2] > kMostDepth) {
      return error(Diag::kUnsupported, std::string("these products in one kernel"));
    }
    PRUNERC_TRY_VOID(decide_rows());
    if (in_registers_ && !can_keep()) {
      return error(Diag::kUnsupported, std::string("rows of this length in registers"));
    }
    PRUNERC_TRY_VOID(decide_columns());
    PRUNERC_TRY_VOID(pad());
    PRUNERC_TRY_VOID(second_product());
    PRUNERC_TRY_VOID(between());
    PRUNERC_TRY_VOID(first_product());
    return bind_all();
  }

 private:
  int64_t bytes_of(BlockId block) const {
    const ir::BufferId buffer = find_block(s_.program(), block)->writes[0].buffer;
    return ir::byte_size(s_.program().buffer(buffer).dtype);
  }

  // Of a row in shared memory: scores beside weights. Operands' tiles lie where weights will be, or where scores have
  // been; beside rings that is Q's alone.
  int64_t row_bytes() const {
    const int64_t weights = std::max(bytes_of(q_.a.copy), bytes_of(s_.producers(q_.a.copy)[0]));
    const int64_t keys = p_.extents[1];
    if (!bulk_) return keys * (bytes_of(p_.block) + weights);
    const int64_t scores = ceil_div(keys - kScoreOffset, kWarpLanes) * kWarpLanes + kScoreOffset;
    return scores * bytes_of(p_.block) + std::max(keys * weights, depth_bytes());
  }
  // Of a padded row of Q or K.
  int64_t depth_bytes() const {
    return ceil_div(p_.extents[2], scores_.tile[2]) * scores_.tile[2] * kFactorBytes;
  }
  // Of one stage of a ring: of so many tiles of keys for each warpgroup, of so many steps of the second product.
  int64_t key_bytes(int64_t tiles) const {
    return scores_.n.warps.value * tiles * scores_.n.unit * depth_bytes();
  }
  int64_t value_bytes(int64_t steps) const {
    const int64_t columns = ceil_div(q_.extents[1], values_.n.unit) * values_.n.unit;
    return steps * values_.tile[2] * columns * kFactorBytes;
  }

  // Tiles of rows that shared memory has room for.
  int64_t most_row_tiles() const {
    const int64_t rings = bulk_ ? kLeastStages * (key_bytes(1) + value_bytes(1)) : 0;
    const int64_t spare = bulk_ ? kRingSpareBytes : kSpareBytes;
    return (context_.target.smem_bytes_per_block - spare - rings) / (row_bytes() * scores_.tile[0]);
  }

  // Beside rows of the block, as far as they are decided.
  int64_t ring_room() const {
    const int64_t rows = scores_.m.warps.value * scores_.m.tiles.value * scores_.tile[0];
    return context_.target.smem_bytes_per_block - kRingSpareBytes - rows * row_bytes();
  }
  // Tiles of keys of which there is room for the least number of stages, beside the smallest ones of V.
  int64_t most_key_tiles() const {
    return (ring_room() - kLeastStages * value_bytes(1)) / (kLeastStages * key_bytes(1));
  }

  // By default stages are no larger, and no more, than there is room for or iterations are.
  void fit_rings(const std::vector<int64_t>& tiles, const std::vector<int64_t>& steps) {
    const int64_t keys = p_.extents[1];
    preferred_tiles_ =
        std::clamp<int64_t>(preferred_tiles_, 1, up_to(tiles, most_key_tiles()).back());
    const int64_t at_once = scores_.n.warps.value * preferred_tiles_ * scores_.n.unit;
    keys_ahead_ = std::min(keys_ahead_, keys / at_once - 1);
    const int64_t room = ring_room() - (keys_ahead_ + 1) * key_bytes(preferred_tiles_);
    const int64_t most_steps = room / (kLeastStages * value_bytes(1));
    preferred_steps_ = std::min(preferred_steps_, up_to(steps, most_steps).back());
    values_ahead_ = std::min({values_ahead_, room / value_bytes(preferred_steps_) - 1,
                              keys / (preferred_steps_ * values_.tile[2]) - 1});
  }

  // Or warpgroups.
  int64_t preferred_warps() const {
    return unit_ == WarpUnit::kWarpgroup ? kPreferredWarps / kGroupWarps : kPreferredWarps;
  }

  Result<void> decide_rows() {
    const int64_t rows = p_.extents[0], unit = scores_.tile[0];
    const int64_t most = std::min(most_row_tiles(), power_of_two(ceil_div(rows, unit)));
    if (most < 1) return error(Diag::kUnsupported, std::string("rows of this length on chip"));
    // Whole tiles: no copy of the weights is needed.
    int64_t divides = 1;
    while (rows % (2 * divides * unit) == 0) divides *= 2;
    const bool whole = rows % unit == 0 && p_.extents[1] % values_.tile[2] == 0;
    const bool lanes = unit_ == WarpUnit::kLanes;
    if (unit_ == WarpUnit::kWarpgroup && !whole) {
      return error(Diag::kUnsupported, std::string("wgmma for rows that are no whole tiles"));
    }
    direct_ = whole || lanes;
    // Tiles of tensor instructions have no guards inside.
    const bool must_divide = direct_ && !lanes;
    const std::vector<int64_t> warps =
        up_to(lanes ? kLaneRowWarps : kRowWarps, must_divide ? std::min(most, divides) : most);
    // By default at least two blocks to a head.
    const int64_t wanted = std::clamp<int64_t>(ceil_div(rows, unit) / 2, 1, most);
    const int64_t most_tiles = must_divide ? std::min(most, divides / warps.back()) : most;
    scores_.m.warps = context_.pick(warps, std::min(wanted, preferred_warps()));
    scores_.m.tiles = context_.pick(up_to(lanes ? kLaneRowTiles : kRowTiles, most_tiles),
                                    std::clamp<int64_t>(most / kPreferredWarps, 1, 4));
    values_.m.warps = scores_.m.warps;
    values_.m.tiles = scores_.m.tiles;
    row_warps_ = std::min({wanted, warps.back(), preferred_warps()});
    return {};
  }

  // Warps, or warpgroups, that may share the columns of a tile.
  std::vector<int64_t> column_warps() const {
    const int64_t columns = q_.extents[1], keys = p_.extents[1];
    std::vector<int64_t> warps = {1};
    for (const int64_t w : kColumnWarps) {
      if (unit_ == WarpUnit::kLanes || (bulk_ && keys % (w * scores_.n.unit) != 0)) break;
      if (w > 1 && columns % (w * values_.n.unit) == 0) warps.push_back(w);
    }
    return warps;
  }

  // Tiles of keys that each of them takes in an iteration, for so many at the most.
  std::vector<int64_t> key_tiles(int64_t most_warps) const {
    const int64_t keys = p_.extents[1];
    std::vector<int64_t> tiles = up_to(unit_ == WarpUnit::kWarpgroup ? kGroupTiles : kColumnTiles,
                                       power_of_two(ceil_div(keys, scores_.n.unit)));
    // The engine copies no rows beyond the keys: those of the next matrix follow.
    std::erase_if(tiles, [&](int64_t n) {
      return bulk_ && n > 1 && keys % (most_warps * n * scores_.n.unit) != 0;
    });
    return tiles;
  }

  Result<void> decide_columns() {
    const int64_t columns = q_.extents[1], keys = p_.extents[1];
    const std::vector<int64_t> warps = column_warps();
    int64_t wanted = std::min(preferred_warps() / row_warps_, warps.back());
    if (bulk_) wanted = std::min(wanted, up_to(warps, most_key_tiles()).back());
    scores_.n.warps = context_.pick(warps, wanted);
    values_.n.warps = scores_.n.warps;
    const std::vector<int64_t> tiles = key_tiles(warps.back());
    const bool lanes = unit_ == WarpUnit::kLanes, groups = unit_ == WarpUnit::kWarpgroup;
    std::vector<int64_t> steps;
    for (const int64_t n : lanes ? kLaneDepths : groups ? kGroupDepths : kDepthTiles) {
      if (steps.empty() || keys % (n * values_.tile[2]) == 0) steps.push_back(n);
    }
    preferred_tiles_ = kPreferredElems / (wanted * scores_.n.unit * p_.extents[2]);
    preferred_steps_ = steps[(groups ? steps.size() : std::min<std::size_t>(steps.size(), 3)) / 2];
    if (bulk_) fit_rings(tiles, steps);
    scores_.n.tiles = context_.pick(tiles, preferred_tiles_);
    scores_.steps = lanes ? kLaneSteps : ceil_div(p_.extents[2], scores_.tile[2]);
    // The block has all columns of the result.
    values_.n.blocks = 1;
    values_.n.tiles = -1;
    if (columns % values_.tile[1] != 0) {
      // Lanes take whole tiles out of their registers.
      values_.n.of_warp = ceil_div(columns, values_.tile[1]) * values_.tile[1];
    }
    values_.steps = context_.pick(steps, preferred_steps_);
    PRUNERC_TRY_VOID(scores_.combine_cuts());
    return values_.combine_cuts();
  }

  // Whether warps may keep weights in registers until their sum was taken and a copy left for the second product.
  bool can_keep() const {
    const int64_t keys = p_.extents[1];
    return direct_ && unit_ != WarpUnit::kLanes && !q_.a.turns &&
           keys % (kWarpLanes * kKeptWidth) == 0 && keys <= kWarpLanes * kMostKept;
  }

  // What is kept is the one stage of whole rows, beside its copy; the others take one value of each row.
  Result<void> choose_kept() {
    kept_ = s_.producers(q_.a.copy)[0];
    std::size_t num_found = 0, num_whole = 0;
    for (const ChainStage& stage : stages_) {
      const bool is_whole = !is_reduction(*find_block(s_.program(), stage.block));
      num_whole += is_whole ? 1 : 0;
      num_found += stage.block == kept_ || stage.block == q_.a.copy ? 1 : 0;
    }
    if (num_found == 2 && num_whole == 2) return {};
    return error(Diag::kUnsupported, std::string("these stages in registers"));
  }

  Result<void> pad() {
    PRUNERC_TRY(rows_, s_.product({scores_.m.warps, scores_.m.of_warp}));
    PRUNERC_TRY(keys_of_tile_, s_.product({scores_.n.warps, scores_.n.of_warp}));
    PRUNERC_TRY(const Int columns, s_.product({values_.n.warps, Int(values_.n.unit)}));
    const int64_t step = scores_.steps.value * scores_.tile[2];
    const Int depth = ceil_div(p_.extents[2], step) * step;
    PRUNERC_TRY_VOID(pad_operands(context_, first_mapping_, {rows_, keys_of_tile_, depth}, &p_));
    if (in_registers_) {
      q_.a.rank = static_cast<int>(find_block(s_.program(), q_.a.copy)->writes[0].region.size());
      PRUNERC_TRY_VOID(pad_operands(context_, second_mapping_, {Int(1), columns, Int(1)}, &q_));
    } else if (direct_) {
      PRUNERC_TRY_VOID(read_where_made(context_, second_mapping_, &q_));
      PRUNERC_TRY_VOID(pad_operands(context_, second_mapping_, {Int(1), columns, Int(1)}, &q_));
    } else {
      PRUNERC_TRY(const Int keys, s_.product({values_.steps, Int(values_.tile[2])}));
      PRUNERC_TRY_VOID(pad_operands(context_, second_mapping_, {rows_, columns, keys}, &q_));
    }
    stages_ = find_stages(s_, p_, q_);
    return in_registers_ ? choose_kept() : Result<void>();
  }

  Result<void> second_product() {
    PRUNERC_TRY_VOID(s_.set_scope(q_.block, 0, ir::Scope::kLocal));
    PRUNERC_TRY_VOID(s_.set_scope(q_.b.copy, 0, ir::Scope::kShared));
    PRUNERC_TRY_VOID(values_.cut(q_.spatial));
    grid_ = q_.spatial;
    grid_.push_back(values_.m.loops[0]);
    PRUNERC_TRY(const std::vector<LoopId> loops, s_.reverse_compute_at(q_.out, values_.n.loops[0]));
    PRUNERC_TRY_VOID(values_.leave_registers(loops, q_.out_m, q_.out_n));
    PRUNERC_TRY_VOID(values_.load_registers());
    PRUNERC_TRY_VOID(bring(values_, q_.b, values_.k[0]));
    PRUNERC_TRY_VOID(values_.multiply_tile());
    return values_.fill_registers();
  }

  // The copy engine, or all threads.
  Result<void> bring(WarpProduct& product, const MatrixOperand& operand, LoopId loop) {
    return bulk_ ? product.fetch_in_bulk(operand, loop)
                 : product.fetch(operand, loop, product.widest(operand));
  }

  Result<void> between() {
    const int64_t at_once = unit_ == WarpUnit::kLanes ? 1 : kRowsAtOnce;
    const ChainRows rows = {q_.block, rows_, p_.extents[1], &scores_, at_once, kept_};
    PRUNERC_TRY_VOID(share_stages(context_, stages_, rows, &grid_));
    if (unit_ != WarpUnit::kWarpgroup) return values_.spread_rows(q_.a, q_.a.copy);
    return q_.a.copy == p_.out ? Result<void>() : swizzle_weights();
  }

  // Whole rows of all keys.
  Result<void> swizzle_weights() {
    const ir::Block& block = *find_block(s_.program(), q_.a.copy);
    const ir::Buffer& weights = s_.program().buffer(block.writes[0].buffer);
    const int64_t row = ir::constant_value(weights.shape.back()).value_or(1);
    return s_.swizzle(q_.a.copy, 0, ir::panel_of(row * ir::byte_size(weights.dtype)));
  }

  Result<void> first_product() {
    PRUNERC_TRY(std::vector<LoopId> loops, s_.compute_at(p_.out, grid_.back()));
    PRUNERC_TRY_VOID(s_.set_scope(p_.out, 0, ir::Scope::kShared));
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(loops[p_.out_n], {Int(-1), keys_of_tile_}));
    keys_ = parts[0];
    loops[p_.out_n] = parts[1];
    loops.insert(loops.begin(), keys_);
    PRUNERC_TRY_VOID(scores_.leave_registers(loops, p_.out_m + 1, p_.out_n + 1));
    // Eight rows of lanes that hold pairs meet no bank twice; ldmatrix wants rows of whole 16 bytes.
    const int rank = static_cast<int>(loops.size()) - 1;
    const int64_t offset = std::max(kScoreOffset, kFetchBytes / bytes_of(p_.out));
    const bool swizzles = unit_ == WarpUnit::kWarpgroup && q_.a.copy == p_.out;
    PRUNERC_TRY_VOID(swizzles ? swizzle_weights()
                              : s_.storage_align(p_.out, 0, rank - 2, kWarpLanes, offset));
    PRUNERC_TRY_VOID(s_.set_scope(p_.block, 0, ir::Scope::kLocal));
    PRUNERC_TRY_VOID(s_.set_scope(p_.a.copy, 0, ir::Scope::kShared));
    PRUNERC_TRY_VOID(s_.set_scope(p_.b.copy, 0, ir::Scope::kShared));
    PRUNERC_TRY(const std::vector<LoopId> nest, s_.compute_at(p_.block, keys_));
    const std::size_t num_outer = first_mapping_.outer.size();
    p_.spatial.assign(nest.begin(), nest.begin() + static_cast<std::ptrdiff_t>(num_outer));
    p_.m = nest[num_outer];
    p_.n = nest[num_outer + 1];
    p_.k = nest[num_outer + 2];
    PRUNERC_TRY_VOID(scores_.cut(p_.spatial));
    PRUNERC_TRY_VOID(scores_.load_registers());
    PRUNERC_TRY_VOID(scores_.fetch(p_.a, grid_.back(), scores_.widest(p_.a)));
    PRUNERC_TRY_VOID(bring(scores_, p_.b, keys_));
    PRUNERC_TRY_VOID(scores_.multiply_tile());
    return scores_.fill_registers();
  }

  Result<void> bind_all() {
    const LoopId queries = grid_.back();
    grid_.pop_back();
    PRUNERC_TRY(const LoopId top, fuse_all(context_, grid_));
    if (top.valid()) PRUNERC_TRY_VOID(s_.bind(top, "block.y"));
    PRUNERC_TRY_VOID(s_.bind(queries, "block.x"));
    const Int keys_ahead = context_.pick(kPipeline, keys_ahead_);
    const Int values_ahead = context_.pick(kPipeline, values_ahead_);
    PRUNERC_TRY_VOID(s_.software_pipeline(keys_, {Int(0), keys_ahead, keys_ahead}, {0, 1, 2}));
    return s_.software_pipeline(values_.k[0], {Int(0), values_ahead}, {0, 1});
  }

  SketchContext& context_;
  schedule::Schedule& s_;
  const schedule::TensorMapping &first_mapping_, &second_mapping_;
  MatrixProduct &p_, &q_;
  const WarpUnit unit_;
  const bool bulk_;          // the copy engine brings K' and V'
  const bool in_registers_;  // weights stay there between the stages
  WarpProduct scores_, values_;
  bool direct_ = false;
  int64_t row_warps_ = 1;
  // By default: tiles of keys in an iteration, steps of the second product, iterations that K' and V' are ahead.
  int64_t preferred_tiles_ = 1, preferred_steps_ = 1, keys_ahead_ = 1, values_ahead_ = 2;
  Int rows_, keys_of_tile_;  // of a block; of an iteration of the first product
  std::vector<ChainStage> stages_;
  BlockId kept_;
  std::vector<LoopId> grid_;  // what is outside, blocks of rows last
  LoopId keys_;               // of the first product
};

// In place of a warp's instructions those of a warpgroup: of as many keys as divide all and are no more than an iteration
// takes, and of half of the result's columns; two warpgroups may share either.
Result<void> take_warpgroups(MatrixProduct* scores, MatrixProduct* values) {
  const auto refuse = [](std::string what) { return error(Diag::kUnsupported, std::move(what)); };
  const int64_t num_keys = scores->extents[1], num_columns = values->extents[1];
  const int64_t most_keys =
      std::min({kMostGroupKeys, kPreferredElems / std::min(scores->extents[2], kMostDepth),
                std::max(num_keys / 2, kGroupColumns[0])});
  int64_t keys = 0, columns = 0;
  for (const int64_t n : kGroupColumns) {
    if (n <= most_keys && num_keys % n == 0) keys = n;
    if (columns < num_columns) columns = n;
  }
  if (keys == 0) return refuse("wgmma for keys that are no whole tiles");
  if (columns < num_columns) return refuse("wgmma for so many columns");
  const auto* end = std::end(kGroupColumns);
  if (std::find(std::begin(kGroupColumns), end, columns / 2) != end) columns /= 2;
  for (const auto& [product, n] : {std::pair(scores, keys), std::pair(values, columns)}) {
    const std::string& name = product->tensor->name;
    const std::string type = name.substr(name.rfind('_') + 1);
    if (type != "f16" && type != "bf16") return refuse("wgmma for these factors");
    PRUNERC_TRY(product->tensor, ir::find_tensor("wgmma_m64n" + std::to_string(n) + "k16_" + type));
  }
  return {};
}

}  // namespace

// What is outside of the product comes first, then rows and their elements as they lie.
Result<void> read_where_made(SketchContext& context, const schedule::TensorMapping& mapping,
                             MatrixProduct* product) {
  schedule::Schedule& s = context.schedule;
  MatrixOperand& a = product->a;
  const BlockId copy = std::exchange(a.copy, s.producers(a.copy)[0]);
  // Only the copy had them as rows along k.
  if (std::exchange(a.turns, false)) a.k_last = false;
  a.rank = static_cast<int>(find_block(s.program(), copy)->writes[0].region.size());
  PRUNERC_TRY_VOID(s.compute_inline(copy));
  const ir::Block& block = *find_block(s.program(), product->block);
  const ir::BufferId weights = find_block(s.program(), a.copy)->writes[0].buffer;
  const std::size_t num_outer = mapping.outer.size();
  std::vector<std::pair<std::size_t, std::size_t>> order;  // variable, dimension
  for (std::size_t d = 0; d < static_cast<std::size_t>(a.rank); ++d) {
    order.emplace_back(std::min(variable_at(block, weights, d).value_or(0), num_outer), d);
  }
  if (std::is_sorted(order.begin(), order.end())) return {};
  std::sort(order.begin(), order.end());
  std::string from, to;
  for (std::size_t d = 0; d < order.size(); ++d) {
    from += (d > 0 ? ", d" : "d") + std::to_string(d);
    to += (d > 0 ? ", d" : "d") + std::to_string(order[d].second);
  }
  PRUNERC_TRY_VOID(s.transform_layout(a.copy, 0, "(" + from + ") -> (" + to + ")"));
  return {};
}

bool comes_of(const schedule::Schedule& s, BlockId block, BlockId source) {
  std::vector<BlockId> seen = {block};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (const BlockId id : s.producers(seen[i])) {
      if (id == source) return true;
      if (std::find(seen.begin(), seen.end(), id) == seen.end()) seen.push_back(id);
    }
  }
  return false;
}

bool is_chained(const schedule::Schedule& schedule, const ShapedProduct& first,
                const ShapedProduct& second) {
  return second.product.a.copy.valid() &&
         comes_of(schedule, second.product.a.copy, first.product.block);
}

Result<void> gpu_chain(SketchContext& context, ShapedProduct first, ShapedProduct second,
                       WarpUnit unit, bool bulk) {
  if (unit == WarpUnit::kWarpgroup) {
    PRUNERC_TRY_VOID(take_warpgroups(&first.product, &second.product));
  }
  const schedule::Schedule before = context.schedule.fork();
  const auto run = [&](bool in_registers) -> Result<void> {
    ShapedProduct p = first, q = second;
    Result<void> done = GpuChain(context, &p, &q, unit, bulk, in_registers).run();
    if (!done) context.schedule = before;
    return done;
  };
  return run(true).ok() ? Result<void>() : run(false);
}

}  // namespace prunerc::search
