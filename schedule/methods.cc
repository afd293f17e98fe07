// Methods of Schedule that apply primitives, in the order of schedule.h: each is one instruction.
#include "schedule/primitive.h"
#include "schedule/schedule.h"

#include <string>
#include <utility>

namespace prunerc::schedule {

using ir::BlockId;
using ir::LoopId;

namespace {

template <typename T>
std::vector<T> outputs_of(const std::vector<Output>& outputs) {
  std::vector<T> out;
  for (const Output& output : outputs) {
    if (const T* id = std::get_if<T>(&output)) out.push_back(*id);
  }
  return out;
}

std::vector<Int> literals(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

Result<void> only_success(const Result<std::vector<Output>>& result) {
  if (!result.ok()) return result.error();
  return {};
}

// Sampled tile sizes with the values that stand for them.
std::vector<Int> tiles_of(const Decision& tiles, const std::vector<Output>& outputs) {
  std::vector<Int> out;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    out.emplace_back(tiles[i], std::get<ValueId>(outputs[i]));
  }
  return out;
}

}  // namespace

Result<std::vector<LoopId>> Schedule::split(LoopId loop, std::vector<Int> factors) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kSplit, {loop, std::move(factors)}, {}}));
  return outputs_of<LoopId>(outputs);
}

Result<LoopId> Schedule::fuse(std::vector<LoopId> loops) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kFuse, {std::move(loops)}, {}}));
  return std::get<LoopId>(outputs[0]);
}

Result<void> Schedule::reorder(std::vector<LoopId> loops) {
  return only_success(apply({PrimitiveKind::kReorder, {std::move(loops)}, {}}));
}

Result<std::vector<LoopId>> Schedule::loop_partition(LoopId loop, std::vector<Int> sizes) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kLoopPartition, {loop, std::move(sizes)}, {}}));
  return outputs_of<LoopId>(outputs);
}

Result<LoopId> Schedule::merge(std::vector<LoopId> loops) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kMerge, {std::move(loops)}, {}}));
  return std::get<LoopId>(outputs[0]);
}

Result<LoopId> Schedule::add_unit_loop(LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs, apply({PrimitiveKind::kAddUnitLoop, {loop}, {}}));
  return std::get<LoopId>(outputs[0]);
}

Result<LoopId> Schedule::add_unit_loop(BlockId block) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kAddUnitLoopBlock, {block}, {}}));
  return std::get<LoopId>(outputs[0]);
}

Result<void> Schedule::reorder_block_iter_var(BlockId block, const std::vector<int64_t>& order) {
  return only_success(apply({PrimitiveKind::kReorderBlockIterVar, {block, literals(order)}, {}}));
}

Result<void> Schedule::parallel(LoopId loop) {
  return only_success(apply({PrimitiveKind::kParallel, {loop}, {}}));
}

Result<void> Schedule::vectorize(LoopId loop) {
  return only_success(apply({PrimitiveKind::kVectorize, {loop}, {}}));
}

Result<void> Schedule::unroll(LoopId loop) {
  return only_success(apply({PrimitiveKind::kUnroll, {loop}, {}}));
}

Result<void> Schedule::bind(LoopId loop, std::string_view axis) {
  return only_success(apply({PrimitiveKind::kBind, {loop, std::string(axis)}, {}}));
}

Result<void> Schedule::software_pipeline(LoopId loop, std::vector<Int> stages,
                                         const std::vector<int64_t>& orders) {
  return only_success(
      apply({PrimitiveKind::kSoftwarePipeline, {loop, std::move(stages), literals(orders)}, {}}));
}

Result<std::vector<LoopId>> Schedule::compute_at(BlockId block, LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kComputeAt, {block, loop}, {}}));
  return outputs_of<LoopId>(outputs);
}

Result<std::vector<LoopId>> Schedule::reverse_compute_at(BlockId block, LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kReverseComputeAt, {block, loop}, {}}));
  return outputs_of<LoopId>(outputs);
}

Result<void> Schedule::compute_inline(BlockId block) {
  return only_success(apply({PrimitiveKind::kComputeInline, {block}, {}}));
}

Result<void> Schedule::reverse_compute_inline(BlockId block) {
  return only_success(apply({PrimitiveKind::kReverseComputeInline, {block}, {}}));
}

Result<void> Schedule::compute_at_location(BlockId block, Int location) {
  return only_success(apply({PrimitiveKind::kComputeAtLocation, {block, location}, {}}));
}

std::vector<int64_t> Schedule::compute_locations(BlockId block) const {
  return schedule::compute_locations(program_, block);
}

Result<BlockId> Schedule::cache_read(BlockId block, int read_idx, ir::Scope scope) {
  PRUNERC_TRY(
      const std::vector<Output> outputs,
      apply(
          {PrimitiveKind::kCacheRead, {block, Int(read_idx), std::string(to_string(scope))}, {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::cache_write(BlockId block, int write_idx, ir::Scope scope) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kCacheWrite,
                     {block, Int(write_idx), std::string(to_string(scope))},
                     {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<std::pair<BlockId, BlockId>> Schedule::cache_inplace(BlockId block, int read_idx,
                                                            ir::Scope scope) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kCacheInplace,
                     {block, Int(read_idx), std::string(to_string(scope))},
                     {}}));
  // Block, loops, block, loops; both nests have the same number of loops.
  return std::pair(std::get<BlockId>(outputs[0]), std::get<BlockId>(outputs[outputs.size() / 2]));
}

Result<void> Schedule::set_scope(BlockId block, int write_idx, ir::Scope scope) {
  return only_success(apply(
      {PrimitiveKind::kSetScope, {block, Int(write_idx), std::string(to_string(scope))}, {}}));
}

Result<void> Schedule::storage_align(BlockId block, int write_idx, int axis, int64_t factor,
                                     int64_t offset) {
  return only_success(apply({PrimitiveKind::kStorageAlign,
                             {block, Int(write_idx), Int(axis), Int(factor), Int(offset)},
                             {}}));
}

Result<void> Schedule::swizzle(BlockId block, int write_idx, Int bytes) {
  return only_success(apply({PrimitiveKind::kSwizzle, {block, Int(write_idx), bytes}, {}}));
}

Result<void> Schedule::bulk_copy(LoopId loop) {
  return only_success(apply({PrimitiveKind::kBulkCopy, {loop}, {}}));
}

Result<void> Schedule::double_buffer(BlockId block, int write_idx) {
  return only_success(apply({PrimitiveKind::kDoubleBuffer, {block, Int(write_idx)}, {}}));
}

Result<BlockId> Schedule::decompose_reduction(BlockId block, LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kDecomposeReduction, {block, loop}, {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::rfactor(LoopId loop, int factor_axis) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kRfactor, {loop, Int(factor_axis)}, {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<void> Schedule::scan(BlockId block) {
  return only_success(apply({PrimitiveKind::kScan, {block}, {}}));
}

Result<std::vector<BlockId>> Schedule::online(BlockId maximum) {
  PRUNERC_TRY(const std::vector<Output> outputs, apply({PrimitiveKind::kOnline, {maximum}, {}}));
  return outputs_of<BlockId>(outputs);
}

Result<void> Schedule::rescale(BlockId weights) {
  return only_success(apply({PrimitiveKind::kRescale, {weights}, {}}));
}

Result<void> Schedule::fuse_reduction_epilogue(BlockId reduction, BlockId epilogue) {
  return only_success(apply({PrimitiveKind::kFuseReductionEpilogue, {reduction, epilogue}, {}}));
}

Result<std::vector<LoopId>> Schedule::transform_layout(BlockId block, int write_idx,
                                                       std::string_view map, std::vector<Int> pad) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kTransformLayout,
                     {block, Int(write_idx), std::string(map), std::move(pad)},
                     {}}));
  return outputs_of<LoopId>(outputs);
}

Result<BlockId> Schedule::reindex(BlockId block, std::string_view side, int index) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kReindex, {block, std::string(side), Int(index)}, {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::reindex_cache_read(BlockId block, int read_idx, ir::Scope scope,
                                             std::string_view map) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kReindexCacheRead,
                     {block, Int(read_idx), std::string(to_string(scope)), std::string(map)},
                     {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::reindex_cache_write(BlockId block, int write_idx, ir::Scope scope,
                                              std::string_view map) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kReindexCacheWrite,
                     {block, Int(write_idx), std::string(to_string(scope)), std::string(map)},
                     {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<std::vector<LoopId>> Schedule::transform_block_layout(BlockId block, std::string_view map) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kTransformBlockLayout, {block, std::string(map)}, {}}));
  return outputs_of<LoopId>(outputs);
}

Result<std::vector<BlockId>> Schedule::pad_einsum(BlockId block, std::vector<Int> multiples) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kPadEinsum, {block, std::move(multiples)}, {}}));
  return outputs_of<BlockId>(outputs);
}

Result<LoopId> Schedule::narrow_reduction(BlockId block, int iter) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kNarrowReduction, {block, Int(iter)}, {}}));
  return std::get<LoopId>(outputs[0]);
}

Result<BlockId> Schedule::pad_read(BlockId block, int read_idx, ir::Scope scope) {
  PRUNERC_TRY(
      const std::vector<Output> outputs,
      apply({PrimitiveKind::kPadRead, {block, Int(read_idx), std::string(to_string(scope))}, {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::decompose_padding(BlockId block, LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kDecomposePadding, {block, loop}, {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::blockize(LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs, apply({PrimitiveKind::kBlockize, {loop}, {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::tensorize(LoopId loop, std::string_view intrinsic) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kTensorize, {loop, std::string(intrinsic)}, {}}));
  return std::get<BlockId>(outputs[0]);
}

Result<Int> Schedule::product(std::vector<Int> factors) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kProduct, {std::move(factors)}, {}}));
  return Int(values_.back(), std::get<ValueId>(outputs[0]));
}

Result<void> Schedule::annotate(LoopId loop, std::string_view key, Int value) {
  PRUNERC_TRY_VOID(apply({PrimitiveKind::kAnnotateLoop, {loop, std::string(key), value}, {}}));
  return {};
}

Result<void> Schedule::annotate(BlockId block, std::string_view key, Int value) {
  PRUNERC_TRY_VOID(apply({PrimitiveKind::kAnnotateBlock, {block, std::string(key), value}, {}}));
  return {};
}

Result<void> Schedule::unannotate(LoopId loop, std::string_view key) {
  return only_success(apply({PrimitiveKind::kUnannotateLoop, {loop, std::string(key)}, {}}));
}

Result<void> Schedule::unannotate(BlockId block, std::string_view key) {
  return only_success(apply({PrimitiveKind::kUnannotateBlock, {block, std::string(key)}, {}}));
}

Result<void> Schedule::enter_postproc() {
  return only_success(apply({PrimitiveKind::kEnterPostproc, {}, {}}));
}

Result<std::vector<Int>> Schedule::sample_perfect_tile(LoopId loop, int num_tiles,
                                                       int64_t max_innermost, Rng& rng) {
  const std::vector<Operand> operands = {loop, Int(num_tiles), Int(max_innermost)};
  PRUNERC_TRY(const DecisionSpace space,
              sample_space(program_, PrimitiveKind::kSamplePerfectTile, Call{operands}));
  return decide_perfect_tile(loop, num_tiles, max_innermost, random_decision(space, rng));
}

Result<Int> Schedule::sample_categorical(std::vector<int64_t> values, std::vector<int64_t> weights,
                                         Rng& rng) {
  const std::vector<Operand> operands = {literals(values), literals(weights)};
  PRUNERC_TRY(const DecisionSpace space,
              sample_space(program_, PrimitiveKind::kSampleCategorical, Call{operands}));
  return decide_categorical(std::move(values), std::move(weights), random_decision(space, rng)[0]);
}

Result<std::vector<Int>> Schedule::sample_partitioned_tile(LoopId loop, int num_tiles,
                                                           int partition, int64_t inner_factor,
                                                           Rng& rng) {
  const std::vector<Operand> operands = {loop, Int(num_tiles), Int(partition), Int(inner_factor)};
  PRUNERC_TRY(const DecisionSpace space,
              sample_space(program_, PrimitiveKind::kSamplePartitionedTile, Call{operands}));
  const Decision tiles = random_decision(space, rng);
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kSamplePartitionedTile, operands, {}}, tiles));
  return tiles_of(tiles, outputs);
}

Result<std::vector<Int>> Schedule::decide_covering_tile(int64_t extent, int num_tiles,
                                                        int64_t max_innermost, Decision inner) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kSampleCoveringTile,
                     {Int(extent), Int(num_tiles), Int(max_innermost)},
                     {}},
                    inner));
  return tiles_of(inner, outputs);
}

Result<Int> Schedule::sample_compute_location(BlockId block, Rng& rng) {
  const std::vector<Operand> operands = {block, literals(compute_locations(block))};
  PRUNERC_TRY(const DecisionSpace space,
              sample_space(program_, PrimitiveKind::kSampleComputeLocation, Call{operands}));
  const Decision place = random_decision(space, rng);
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kSampleComputeLocation, operands, {}}, place));
  return Int(place[0], std::get<ValueId>(outputs[0]));
}

Result<std::vector<Int>> Schedule::decide_perfect_tile(LoopId loop, int num_tiles,
                                                       int64_t max_innermost, Decision tiles) {
  PRUNERC_TRY(
      const std::vector<Output> outputs,
      apply({PrimitiveKind::kSamplePerfectTile, {loop, Int(num_tiles), Int(max_innermost)}, {}},
            tiles));
  return tiles_of(tiles, outputs);
}

Result<Int> Schedule::decide_categorical(std::vector<int64_t> values, std::vector<int64_t> weights,
                                         int64_t index) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kSampleCategorical, {literals(values), literals(weights)}, {}},
                    {index}));
  return Int(values_.back(), std::get<ValueId>(outputs[0]));
}

}  // namespace prunerc::schedule
