#include "search/space/sketch_rule/gpu/gpu_warp.h"

#include "ir/tensor/bulk_copy.h"

#include <algorithm>
#include <utility>

namespace prunerc::search {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

namespace {

/// The narrowest swizzle: units of rows that are no multiple of it are lengthened instead.
constexpr int64_t kPanelBytes = 32;
/// Bytes of a word, and words that a thread turns at a time.
constexpr int64_t kWord = 4;

// The instruction that fills registers from shared memory; "" where elements come one by one.
std::string load_of(std::string_view dtype, bool is_a, bool k_last, bool is_pair) {
  const std::string type(dtype);
  const bool is_half = type == "f16" || type == "bf16";
  if (is_half && is_a) return (k_last ? "ldmatrix_x4_" : "ldmatrix_x4_trans_a_") + type;
  if (is_half && k_last) return (is_pair ? "ldmatrix_x4_b_" : "ldmatrix_x2_") + type;
  if (is_half) return (is_pair ? "ldmatrix_x4_trans_" : "ldmatrix_x2_trans_") + type;
  if (type != "i8" || !k_last) return "";
  return is_a ? "ldmatrix_x4_i8" : is_pair ? "ldmatrix_x4_b_i8" : "ldmatrix_x2_i8";
}

}  // namespace

Result<LoopId> fuse_all(SketchContext& context, const std::vector<LoopId>& loops) {
  if (loops.empty()) return LoopId();
  return loops.size() == 1 ? Result<LoopId>(loops[0]) : context.schedule.fuse(loops);
}

// Where the source has no words a thread makes one of four bytes.
Result<TurningLoops> cut_to_turn(SketchContext& context, const MatrixOperand& operand,
                                 const std::vector<LoopId>& loops, int64_t num_threads) {
  if (loops.size() < 2) return error(Diag::kUnsupported, std::string("bytes without rows"));
  schedule::Schedule& s = context.schedule;
  const int64_t rows = operand.widest < kWord ? 1 : kWord;
  const int64_t across = kTurnedRows / rows;
  PRUNERC_TRY(const std::vector<LoopId> x,
              s.split(loops[loops.size() - 2], {Int(-1), Int(across), Int(rows)}));
  PRUNERC_TRY(const std::vector<LoopId> k,
              s.split(loops.back(), {Int(-1), Int(num_threads / across), Int(kWord)}));
  std::vector<LoopId> outer(loops.begin(), loops.end() - 2);
  outer.insert(outer.end(), {k[0], x[0]});
  std::vector<LoopId> order = outer;
  order.insert(order.end(), {k[1], x[1], x[2], k[2]});
  PRUNERC_TRY_VOID(s.reorder(order));
  TurningLoops out;
  PRUNERC_TRY(out.outer, fuse_all(context, outer));
  PRUNERC_TRY(out.threads, s.fuse({k[1], x[1]}));
  PRUNERC_TRY_VOID(s.unroll(x[2]));
  PRUNERC_TRY_VOID(s.vectorize(k[2]));
  return out;
}

WarpProduct::WarpProduct(SketchContext& context, MatrixProduct* product, RowSpread spread,
                         WarpUnit unit)
    : context_(context), s_(context.schedule), p_(*product), spread_(spread), unit_(unit) {
  n.unit = kWarpLanes;
  if (unit_ == WarpUnit::kLanes) return;
  const std::span<const ir::IterVar> iters = p_.tensor->block().iters;
  for (std::size_t t = 0; t < 3; ++t) tile[t] = iters[t].extent.as<ir::IntImm>()->value;
  m.unit = tile[0];
  const bool is_pair = unit_ == WarpUnit::kTensor && p_.extents[1] > tile[1];
  n.unit = is_pair ? 2 * tile[1] : tile[1];
}

Result<void> WarpProduct::combine_cuts() {
  PRUNERC_TRY(warps, s_.product({m.warps, n.warps}));
  for (WarpCut* cut : {&m, &n}) {
    if (cut->tiles == Int(-1)) continue;
    PRUNERC_TRY(cut->of_warp, s_.product({cut->tiles, Int(cut->unit)}));
  }
  return {};
}

Result<void> WarpProduct::cut(const std::vector<LoopId>& outside) {
  if (unit_ == WarpUnit::kLanes) return cut_for_lanes(outside);
  PRUNERC_TRY(m.loops, s_.split(p_.m, {m.blocks, m.warps, m.tiles, Int(tile[0])}));
  PRUNERC_TRY(n.loops,
              s_.split(p_.n, {n.blocks, n.warps, n.tiles, Int(n.unit / tile[1]), Int(tile[1])}));
  PRUNERC_TRY(k, s_.split(p_.k, {Int(-1), steps, Int(tile[2])}));
  std::vector<LoopId> order = outside;
  const auto add = [&](std::initializer_list<LoopId> loops) {
    order.insert(order.end(), loops.begin(), loops.end());
  };
  add({m.loops[0], n.loops[0]});
  order.insert(order.end(), p_.reduce.begin(), p_.reduce.end());
  add({k[0], m.loops[1], n.loops[1], k[1], m.loops[2], n.loops[2], n.loops[3], m.loops[3],
       n.loops[4], k[2]});
  PRUNERC_TRY_VOID(s_.reorder(order));
  std::vector<LoopId> depth = p_.reduce;
  depth.push_back(k[0]);
  PRUNERC_TRY(k[0], fuse_all(context_, depth));
  PRUNERC_TRY(warp, s_.fuse({m.loops[1], n.loops[1]}));
  return {};
}

Result<void> WarpProduct::cut_for_lanes(const std::vector<LoopId>& outside) {
  PRUNERC_TRY(m.loops, s_.split(p_.m, {m.blocks, m.warps, m.tiles}));
  PRUNERC_TRY(n.loops, s_.split(p_.n, {n.blocks, n.tiles, Int(kWarpLanes)}));
  PRUNERC_TRY(k, s_.split(p_.k, {Int(-1), steps}));
  std::vector<LoopId> order = outside;
  for (const LoopId loop :
       {m.loops[0], n.loops[0], k[0], m.loops[1], n.loops[2], k[1], m.loops[2], n.loops[1]}) {
    order.push_back(loop);
  }
  PRUNERC_TRY_VOID(s_.reorder(order));
  warp = m.loops[1];
  lane_ = n.loops[2];
  return {};
}

Result<void> WarpProduct::load_registers() {
  if (unit_ != WarpUnit::kTensor) return {};
  std::vector<BlockId> copies(a_is_made ? 1 : 0);
  for (const MatrixOperand* operand : {&p_.a, &p_.b}) {
    if (a_is_made && operand == &p_.a) continue;
    const int index = read_index(s_, p_.block, operand->copy);
    PRUNERC_TRY(const BlockId copy, s_.cache_read(p_.block, index, ir::Scope::kLocal));
    copies.push_back(copy);
  }
  for (std::size_t i = a_is_made ? 1 : 0; i < 2; ++i) {
    PRUNERC_TRY(registers_[i].loops, s_.compute_at(copies[i], k[1]));
    const MatrixOperand& operand = i == 0 ? p_.a : p_.b;
    registers_[i].load =
        load_of(ir::to_string(buffer_of(operand).dtype), i == 0, operand.k_last, n.unit > tile[1]);
  }
  return {};
}

const ir::Buffer& WarpProduct::buffer_of(const MatrixOperand& operand) const {
  return s_.program().buffer(find_block(s_.program(), operand.copy)->writes[0].buffer);
}

// The nest of a load over one instruction's operand: rows of A by k, k by columns of B.
Result<void> WarpProduct::fill_registers() {
  if (unit_ != WarpUnit::kTensor) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    const Registers& here = registers_[i];
    if (here.load.empty()) continue;
    const bool is_a = i == 0;
    const bool k_last = (is_a ? p_.a : p_.b).k_last;
    const std::size_t rank = here.loops.size();
    const LoopId along_k = here.loops[k_last ? rank - 1 : rank - 2];
    const LoopId other = here.loops[k_last ? rank - 2 : rank - 1];
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s_.split(other, {Int(-1), Int(is_a ? m.unit : n.unit)}));
    PRUNERC_TRY_VOID(s_.reorder(is_a ? std::vector<LoopId>{parts[0], parts[1], along_k}
                                     : std::vector<LoopId>{parts[0], along_k, parts[1]}));
    PRUNERC_TRY_VOID(s_.tensorize(is_a ? parts[1] : along_k, here.load));
  }
  return {};
}

int64_t WarpProduct::widest(const MatrixOperand& operand) const {
  // Lanes walk down the columns of rows of odd length.
  if (unit_ == WarpUnit::kLanes && &operand == &p_.b && operand.k_last) return 1;
  if (operand.turns) return 1;
  return std::min(operand.widest, kFetchBytes / ir::byte_size(buffer_of(operand).dtype));
}

Result<void> WarpProduct::fetch(const MatrixOperand& operand, LoopId loop, Int width) {
  PRUNERC_TRY(const std::vector<LoopId> loops, s_.compute_at(operand.copy, loop));
  if (operand.turns) return fetch_turned(operand, loops);
  PRUNERC_TRY(const LoopId fused, s_.fuse(loops));
  std::vector<Int> factors = warp_factors();
  factors.insert(factors.begin(), Int(-1));
  factors.insert(factors.end(), {Int(kWarpLanes), width});
  PRUNERC_TRY(const std::vector<LoopId> parts, s_.split(fused, factors));
  PRUNERC_TRY_VOID(s_.unroll(parts[0]));
  PRUNERC_TRY_VOID(s_.vectorize(parts.back()));
  PRUNERC_TRY_VOID(s_.bind(parts[parts.size() - 2], "thread.x"));
  PRUNERC_TRY_VOID(bind_warps(parts, 1));
  return spread_rows(operand, operand.copy);
}

// A warp 32 bytes of k by 16 rows: stores meet a bank twice, reads are half sectors side by side.
Result<void> WarpProduct::fetch_turned(const MatrixOperand& operand,
                                       const std::vector<LoopId>& loops) {
  PRUNERC_TRY(const TurningLoops cut, cut_to_turn(context_, operand, loops, kWarpLanes));
  std::vector<Int> factors = warp_factors();
  factors.insert(factors.begin(), Int(-1));
  PRUNERC_TRY(const std::vector<LoopId> parts, s_.split(cut.outer, factors));
  PRUNERC_TRY_VOID(s_.unroll(parts[0]));
  PRUNERC_TRY_VOID(s_.bind(cut.threads, "thread.x"));
  PRUNERC_TRY_VOID(bind_warps(parts, 1));
  return spread_rows(operand, operand.copy);
}

Result<void> WarpProduct::fetch_in_bulk(const MatrixOperand& operand, LoopId loop) {
  PRUNERC_TRY(const std::vector<LoopId> loops, s_.compute_at(operand.copy, loop));
  PRUNERC_TRY_VOID(spread_rows(operand, operand.copy));
  return s_.bulk_copy(loops[0]);
}

std::vector<Int> WarpProduct::warp_factors() const {
  if (unit_ == WarpUnit::kWarpgroup) return {warps, Int(kGroupWarps)};
  return {warps};
}

Result<void> WarpProduct::bind_warps(const std::vector<LoopId>& loops, std::size_t first) {
  if (unit_ != WarpUnit::kWarpgroup) return s_.bind(loops[first], "thread.y");
  PRUNERC_TRY_VOID(s_.bind(loops[first + 1], "thread.y"));
  return s_.bind(loops[first], "thread.z");
}

Result<void> WarpProduct::spread_rows(const MatrixOperand& operand, BlockId writer) {
  if (unit_ == WarpUnit::kLanes) {
    const bool is_down = &operand == &p_.b && operand.k_last;
    return is_down ? s_.storage_align(writer, 0, operand.rank - 2, 2, 1) : Result<void>();
  }
  const int64_t bytes = ir::byte_size(buffer_of(operand).dtype);
  const WarpCut& across = &operand == &p_.a ? m : n;
  const int64_t unit = operand.k_last ? tile[2] : across.unit;
  if (unit_ == WarpUnit::kWarpgroup) return swizzle(operand, writer, unit);
  const bool down = bytes == 4 && !operand.k_last;
  if (spread_ == RowSpread::kSwizzled && unit * bytes % kPanelBytes == 0) {
    // Lanes read 32 bytes of four rows: all banks in panels of 32, half of them in wider ones.
    if (down) return s_.swizzle(writer, 0, kPanelBytes);
    // Panels as wide as rows, up to 128 bytes: what eight lanes fetch lies side by side.
    PRUNERC_TRY(const Int row,
                s_.product(operand.k_last
                               ? std::vector<Int>{steps, Int(unit * bytes)}
                               : std::vector<Int>{across.warps, across.tiles, Int(unit * bytes)}));
    return s_.swizzle(writer, 0, row);
  }
  // Eight rows of 16 bytes for ldmatrix; four of eight elements where lanes walk down columns.
  const int64_t offset = (down ? 2 : 1) * kFetchBytes / bytes;
  return s_.storage_align(writer, 0, operand.rank - 2, 2 * offset, offset);
}

// For rows of the fetched tile, or what each of them is made of where their length is a decision.
Result<void> WarpProduct::swizzle(const MatrixOperand& operand, BlockId writer, int64_t unit) {
  const bool is_known = operand.k_last && !steps.ref.valid();
  const int64_t row = is_known ? steps.value * unit : unit;
  return s_.swizzle(writer, 0, ir::panel_of(row * ir::byte_size(buffer_of(operand).dtype)));
}

Result<void> WarpProduct::leave_registers(const std::vector<LoopId>& loops, std::size_t along_m,
                                          std::size_t along_n) {
  const bool lanes = unit_ == WarpUnit::kLanes;
  PRUNERC_TRY(std::vector<LoopId> rows, s_.split(loops[along_m], {m.warps, m.of_warp}));
  PRUNERC_TRY(std::vector<LoopId> columns,
              s_.split(loops[along_n], lanes ? std::vector<Int>{n.tiles, Int(kWarpLanes)}
                                             : std::vector<Int>{n.warps, n.of_warp}));
  if (lanes) std::swap(columns[0], columns[1]);
  std::vector<LoopId> order;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (i != along_m && i != along_n) order.push_back(loops[i]);
  }
  order.insert(order.end(), {rows[0], columns[0], rows[1], columns[1]});
  PRUNERC_TRY_VOID(s_.reorder(order));
  if (lanes) {
    PRUNERC_TRY_VOID(s_.bind(columns[0], "thread.x"));
    return s_.bind(rows[0], "thread.y");
  }
  PRUNERC_TRY(const LoopId warp_loop, s_.fuse({rows[0], columns[0]}));
  return s_.bind(warp_loop, axis());
}

Result<void> WarpProduct::multiply_tile() {
  const std::vector<LoopId> loops = s_.loops_of(p_.block);
  const auto depth =
      static_cast<std::size_t>(std::find(loops.begin(), loops.end(), k[0]) - loops.begin());
  PRUNERC_TRY(const BlockId init, s_.decompose_reduction(p_.block, k[0]));
  const std::vector<LoopId> start = s_.loops_of(init);
  PRUNERC_TRY_VOID(s_.bind(start[depth], axis()));
  PRUNERC_TRY_VOID(s_.bind(warp, axis()));
  PRUNERC_TRY_VOID(s_.unroll(k[1]));
  if (unit_ != WarpUnit::kLanes) {
    PRUNERC_TRY_VOID(s_.tensorize(m.loops[3], p_.tensor->name));
    return {};
  }
  PRUNERC_TRY_VOID(s_.bind(start[depth + 1], "thread.x"));
  PRUNERC_TRY_VOID(s_.bind(lane_, "thread.x"));
  for (const LoopId loop : {start[depth + 2], start[depth + 3], m.loops[2], n.loops[1]}) {
    PRUNERC_TRY_VOID(s_.unroll(loop));
  }
  return {};
}

}  // namespace prunerc::search
