// Operands of dot-product instructions: C[i,j] += i32(A[i,k])*i32(B[k,j]) with bytes (or bf16 into
// f32) in groups of four (two).
//
//     for j, k { P[j // 16, k // 4, j % 16, k % 4] = B[k,j] }    once if B is const
//     for i, j, k { C[i,j] += A[i,k]*P[j // 16, k // 4, j % 16, k % 4] }   tiled by rule "tile"
//
// One instruction reads 16 columns of a group, 64 bytes side by side, and one word of A for all
// lanes. A vector is a panel of its own, so that tiles of any number of vectors read it. Ragged k
// and j are filled with zeros in the copies (pad_einsum), never in a guard around the instruction;
// ragged rows are guarded by the tile.
#include "search/space/sketch_rule/narrow.h"

#include <algorithm>
#include <string>
#include <vector>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

const ir::Access& read_of(const ir::Block& block, int index) {
  return block.reads[static_cast<std::size_t>(index)];
}

// -1 unless there is one.
template <typename Fits>
int only_operand(const ir::Block& block, const Fits& fits) {
  int found = -1;
  for (std::size_t i = 0; i < block.reads.size(); ++i) {
    const ir::Access& access = block.reads[i];
    if (access.buffer == block.writes[0].buffer || !fits(access)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

// Whether the instruction takes elements of these types: A is what all lanes share.
bool fits(const ir::TensorIntrinsic& tensor, ir::DType a, ir::DType b, ir::DType c) {
  return std::all_of(tensor.operands.begin(), tensor.operands.end(),
                     [&](const ir::TensorOperand& operand) {
                       const ir::DType dtype = tensor.description.buffer(operand.buffer).dtype;
                       return dtype == (operand.is_output ? c : operand.splat ? a : b);
                     });
}

// Multiply-adds of narrow elements for each slot of a port.
double rate(const ir::TensorIntrinsic& tensor) {
  double macs = 1 / tensor.slots;
  for (const ir::IterVar& iter : tensor.block().iters) {
    macs *= static_cast<double>(iter.extent.as<ir::IntImm>()->value);
  }
  return macs;
}

bool runs_on(const ir::TensorIntrinsic& tensor, const ir::Target& target) {
  if (tensor.family != "cpu" || tensor.features.substr(0, 1) != "+") return false;
  return ir::has_feature(target, tensor.features.substr(1)) &&
         tensor.lanes * int64_t{4} <= target.vector_bytes;
}

const ir::TensorIntrinsic* instruction_for(const ir::Target& target, ir::DType a, ir::DType b,
                                           ir::DType c) {
  const ir::TensorIntrinsic* best = nullptr;
  for (const ir::TensorIntrinsic& tensor : ir::tensor_intrinsics()) {
    // Those on matrix tiles have sizes of their own (amx.cc).
    if (tensor.uses_tiles() || !runs_on(tensor, target) || !fits(tensor, a, b, c)) continue;
    if (best == nullptr || rate(tensor) > rate(*best)) best = &tensor;
  }
  return best;
}

/// A copy of an operand: its loops are the block's variables that the operand's subscripts have, in
/// their order.
struct Copy {
  std::string map;
  std::size_t vector = 0, depth = 0;  // which loops
};

// "(a0, a1, a2) -> (a1 // 16, a2 // 4, a1 % 16, a2 % 4)"; with no lanes "(a0, a1, a2) -> (a0, a2)".
Copy copy_of(const ir::Block& block, const ir::Access& access, const NarrowProduct& product,
             bool panels) {
  Copy copy;
  std::string from, outside, vector, depth;
  std::size_t num_used = 0;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    const std::string name = "a" + std::to_string(i);
    from += (from.empty() ? "" : ", ") + name;
    const ir::VarId var = block.iters[i].var->id;
    if (!mentions(access, var)) continue;
    if (var == product.depth.var) {
      depth = name;
      copy.depth = num_used;
    } else if (panels && var == product.vector.var) {
      vector = name;
      copy.vector = num_used;
    } else {
      outside += name + ", ";
    }
    ++num_used;
  }
  const std::string lanes = std::to_string(product.lanes), group = std::to_string(product.group);
  copy.map = "(" + from + ") -> (";
  if (panels) {
    copy.map += vector + " // " + lanes + ", " + outside + depth + " // " + group + ", " + vector +
                " % " + lanes + ", " + depth + " % " + group + ")";
  } else {
    copy.map += outside + depth + ")";
  }
  return copy;
}

// What is beyond the ends becomes zeros in copies, which all stages of a copy are inlined into.
struct Padded {
  std::vector<BlockId> copies;  // of operands
  BlockId out;                  // invalid: results lie where they belong
};

Result<Padded> pad(SketchContext& context, BlockId id, const NarrowProduct& product) {
  Padded padded;
  const auto unit_of = [&](ir::VarId var) -> int64_t {
    if (var == product.vector.var) return product.lanes;
    if (var == product.depth.var) return product.step;
    return product.is_tile() && var == product.row.var ? product.rows : 1;
  };
  std::vector<Int> multiples;
  bool is_whole = true, is_result_whole = true;
  const ir::Block* block = find_block(context.program(), id);
  for (const ir::IterVar& iter : block->iters) {
    const int64_t unit = unit_of(iter.var->id);
    const bool fits = ir::constant_value(iter.extent).value_or(0) % unit == 0;
    multiples.emplace_back(fits ? 1 : unit);
    is_whole = is_whole && fits;
    is_result_whole = is_result_whole && (fits || iter.var->id == product.depth.var);
  }
  if (is_whole) return padded;
  PRUNERC_TRY(padded.copies, context.schedule.pad_einsum(id, multiples));
  if (!is_result_whole) {
    padded.out = padded.copies.back();
    padded.copies.pop_back();
  }
  return padded;
}

// Tasks of rows; the `extent` elements of a row lie side by side.
Result<void> schedule_rows_copy(SketchContext& context, BlockId copy, std::size_t innermost,
                                int64_t extent) {
  std::vector<LoopId> loops = context.schedule.loops_of(copy);
  if (innermost >= loops.size()) {
    return error(Diag::kUnsupported, std::string("a copy of this operand"));
  }
  const int64_t lanes = std::min<int64_t>(context.target.lanes(4), extent);
  std::rotate(loops.begin() + static_cast<std::ptrdiff_t>(innermost),
              loops.begin() + static_cast<std::ptrdiff_t>(innermost) + 1, loops.end());
  if (loops.size() > 1) PRUNERC_TRY_VOID(context.schedule.reorder(loops));
  PRUNERC_TRY(const std::vector<LoopId> parts,
              context.schedule.split(loops.back(), {Int(-1), Int(lanes)}));
  PRUNERC_TRY_VOID(context.schedule.vectorize(parts[1]));
  loops.back() = parts[0];
  if (loops.size() > 1) loops.pop_back();
  PRUNERC_TRY_VOID(parallelize(context, loops));
  return {};
}

/// The copy of A with k innermost, and which of its loops runs along k.
struct Rows {
  BlockId copy;
  std::size_t depth = 0;
};

Result<Rows> copy_rows(SketchContext& context, BlockId id, const NarrowProduct& product) {
  const ir::Block* block = find_block(context.program(), id);
  const int a = shared_operand(*block, product.vector.var);
  if (a < 0) return error(Diag::kUnsupported, std::string("an operand of this product"));
  const Copy copy = copy_of(*block, read_of(*block, a), product, false);
  Rows rows;
  rows.depth = copy.depth;
  PRUNERC_TRY(rows.copy, context.schedule.reindex_cache_read(id, a, ir::Scope::kGlobal, copy.map));
  return rows;
}

// Copies that another one reads disappear into it; the others are rows of the product's operands.
Result<void> schedule_padded(SketchContext& context, BlockId id,
                             const std::vector<BlockId>& copies) {
  schedule::Schedule& s = context.schedule;
  for (const BlockId copy : copies) {
    const std::vector<BlockId> readers = s.consumers(copy);
    if (readers.size() == 1 && readers[0] != id) {
      PRUNERC_TRY_VOID(s.compute_inline(copy));
      continue;
    }
    // What is padded is often a copy itself, with a border, say.
    for (const BlockId before : s.producers(copy)) {
      if (s.consumers(before).size() == 1) static_cast<void>(s.compute_inline(before).ok());
    }
    const BlockFacts facts = facts_of(s, copy);
    if (facts.spatial.empty()) continue;
    PRUNERC_TRY_VOID(
        schedule_rows_copy(context, copy, facts.spatial.size() - 1, facts.spatial.back().extent));
  }
  return {};
}

// Panels in parallel, one after the other a group of all lanes.
Result<void> schedule_panels(SketchContext& context, BlockId id, const Copy& copy,
                             const NarrowProduct& product) {
  schedule::Schedule& s = context.schedule;
  const std::vector<LoopId> loops = s.loops_of(id);
  if (std::max(copy.vector, copy.depth) >= loops.size()) {
    return error(Diag::kUnsupported, std::string("a copy of this operand"));
  }
  PRUNERC_TRY(const std::vector<LoopId> vector,
              s.split(loops[copy.vector], {Int(-1), Int(product.lanes)}));
  PRUNERC_TRY(const std::vector<LoopId> depth,
              s.split(loops[copy.depth], {Int(-1), Int(product.group)}));
  std::vector<LoopId> order = {vector[0]};
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (i != copy.vector && i != copy.depth) order.push_back(loops[i]);
  }
  order.insert(order.end(), {depth[0], vector[1], depth[1]});
  PRUNERC_TRY_VOID(s.reorder(order));
  PRUNERC_TRY_VOID(s.unroll(vector[1]));
  PRUNERC_TRY_VOID(s.vectorize(depth[1]));
  PRUNERC_TRY_VOID(parallelize(context, {order[0], order[1]}));
  return {};
}

}  // namespace

int moving_operand(const ir::Block& block, ir::VarId var) {
  return only_operand(block, [&](const ir::Access& access) { return mentions(access, var); });
}

int shared_operand(const ir::Block& block, ir::VarId var) {
  return only_operand(block, [&](const ir::Access& access) { return !mentions(access, var); });
}

std::optional<NarrowProduct> find_product(const schedule::Schedule& schedule, BlockId id) {
  const BlockFacts facts = facts_of(schedule, id);
  if (facts.block == nullptr || !facts.trivial || facts.block->writes.size() != 1) return {};
  const ir::Block& block = *facts.block;
  NarrowProduct product;
  for (const Axis& axis : facts.spatial) {
    if (axis.extent > 1 && is_contiguous(block.writes[0], axis.var)) product.vector = axis;
  }
  if (!product.vector.loop.valid()) return {};
  const int a = shared_operand(block, product.vector.var);
  const int b = moving_operand(block, product.vector.var);
  if (a < 0 || b < 0 || !has_variable_subscripts(read_of(block, b))) return {};
  bool is_contiguous_depth = false;
  for (const Axis& axis : facts.reduce) {
    if (!mentions(read_of(block, a), axis.var) || !mentions(read_of(block, b), axis.var)) continue;
    const bool here = is_contiguous(read_of(block, a), axis.var);
    // Where A has to be copied, its elements must be few enough to have subscripts of their own.
    if (!here && (is_contiguous_depth || !has_variable_subscripts(read_of(block, a)))) continue;
    const bool better = (here && !is_contiguous_depth) || axis.extent > product.depth.extent;
    if (better || !product.depth.loop.valid()) product.depth = axis;
    is_contiguous_depth = here;
  }
  return product.depth.loop.valid() ? std::optional(product) : std::nullopt;
}

std::optional<NarrowProduct> find_narrow(const schedule::Schedule& schedule, BlockId id,
                                         const ir::Target& target) {
  std::optional<NarrowProduct> product = find_product(schedule, id);
  if (!product) return {};
  const ir::Block& block = *find_block(schedule.program(), id);
  const int a = shared_operand(block, product->vector.var);
  const int b = moving_operand(block, product->vector.var);
  const auto dtype = [&](ir::BufferId buffer) { return schedule.program().buffer(buffer).dtype; };
  product->tensor = instruction_for(target, dtype(read_of(block, a).buffer),
                                    dtype(read_of(block, b).buffer), dtype(block.writes[0].buffer));
  if (product->tensor == nullptr) return {};
  const std::span<const ir::IterVar> iters = product->tensor->block().iters;
  product->lanes = iters[0].extent.as<ir::IntImm>()->value;
  product->group = product->step = iters[1].extent.as<ir::IntImm>()->value;
  return product;
}

Result<void> pack_narrow(SketchContext& context, BlockId id, const NarrowProduct& product,
                         BlockId* consumer) {
  schedule::Schedule& s = context.schedule;
  Rows rows;
  if (product.copies_rows) {
    PRUNERC_TRY(rows, copy_rows(context, id, product));
  }
  PRUNERC_TRY(const Padded padded, pad(context, id, product));
  if (padded.out.valid() && consumer->valid()) {
    PRUNERC_TRY_VOID(s.compute_inline(padded.out));
  } else if (padded.out.valid()) {
    *consumer = padded.out;
  }
  // By place among the reads: the block changes with each copy.
  const ir::Block* block = find_block(s.program(), id);
  const int b = moving_operand(*block, product.vector.var);
  if (b < 0) return error(Diag::kUnsupported, std::string("an operand of this product"));
  const Copy panels = copy_of(*block, read_of(*block, b), product, true);
  PRUNERC_TRY(const BlockId packed, s.reindex_cache_read(id, b, ir::Scope::kGlobal, panels.map));
  block = find_block(s.program(), id);
  const int a = shared_operand(*block, product.vector.var);
  if (a < 0) return error(Diag::kUnsupported, std::string("an operand of this product"));
  if (!rows.copy.valid() && !is_contiguous(read_of(*block, a), product.depth.var)) {
    PRUNERC_TRY(rows, copy_rows(context, id, product));
  }
  PRUNERC_TRY_VOID(schedule_padded(context, id, padded.copies));
  // Unless what pads it has taken it in.
  if (rows.copy.valid() && find_block(s.program(), rows.copy) != nullptr) {
    const int64_t padded_depth = ceil_div(product.depth.extent, product.step) * product.step;
    PRUNERC_TRY_VOID(schedule_rows_copy(context, rows.copy, rows.depth, padded_depth));
  }
  return schedule_panels(context, packed, panels, product);
}

}  // namespace prunerc::search
