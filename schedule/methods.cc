// Methods of Schedule that shape loops, annotate, and decide places: each is one instruction.
#include "schedule/primitive.h"
#include "schedule/schedule.h"

#include <string>
#include <utility>

namespace prunerc::schedule {

using ir::BlockId;
using ir::LoopId;

namespace {

std::vector<LoopId> loops_in(const std::vector<Output>& outputs) {
  std::vector<LoopId> out;
  for (const Output& output : outputs) {
    if (const LoopId* id = std::get_if<LoopId>(&output)) out.push_back(*id);
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

}  // namespace

Result<std::vector<LoopId>> Schedule::loop_partition(LoopId loop, std::vector<Int> sizes) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kLoopPartition, {loop, std::move(sizes)}, {}}));
  return loops_in(outputs);
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

Result<void> Schedule::bind(LoopId loop, std::string_view axis) {
  return only_success(apply({PrimitiveKind::kBind, {loop, std::string(axis)}, {}}));
}

Result<void> Schedule::software_pipeline(LoopId loop, std::vector<Int> stages,
                                         const std::vector<int64_t>& orders) {
  return only_success(
      apply({PrimitiveKind::kSoftwarePipeline, {loop, std::move(stages), literals(orders)}, {}}));
}

Result<void> Schedule::compute_at_location(BlockId block, Int location) {
  return only_success(apply({PrimitiveKind::kComputeAtLocation, {block, location}, {}}));
}

std::vector<int64_t> Schedule::compute_locations(BlockId block) const {
  return schedule::compute_locations(program_, block);
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

Result<void> Schedule::storage_align(BlockId block, int write_idx, int axis, int64_t factor,
                                     int64_t offset) {
  return only_success(apply({PrimitiveKind::kStorageAlign,
                             {block, Int(write_idx), Int(axis), Int(factor), Int(offset)},
                             {}}));
}

Result<void> Schedule::swizzle(BlockId block, int write_idx, int64_t bytes) {
  return only_success(apply({PrimitiveKind::kSwizzle, {block, Int(write_idx), Int(bytes)}, {}}));
}

Result<void> Schedule::bulk_copy(LoopId loop) {
  return only_success(apply({PrimitiveKind::kBulkCopy, {loop}, {}}));
}

Result<void> Schedule::double_buffer(BlockId block, int write_idx) {
  return only_success(apply({PrimitiveKind::kDoubleBuffer, {block, Int(write_idx)}, {}}));
}

Result<void> Schedule::fuse_reduction_epilogue(BlockId reduction, BlockId epilogue) {
  return only_success(apply({PrimitiveKind::kFuseReductionEpilogue, {reduction, epilogue}, {}}));
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

Result<Int> Schedule::product(std::vector<Int> factors) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kProduct, {std::move(factors)}, {}}));
  return Int(values_.back(), std::get<ValueId>(outputs[0]));
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
  std::vector<Int> out;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    out.emplace_back(tiles[i], std::get<ValueId>(outputs[i]));
  }
  return out;
}

Result<std::vector<Int>> Schedule::decide_covering_tile(int64_t extent, int num_tiles,
                                                        int64_t max_innermost, Decision inner) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply({PrimitiveKind::kSampleCoveringTile,
                     {Int(extent), Int(num_tiles), Int(max_innermost)},
                     {}},
                    inner));
  std::vector<Int> out;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    out.emplace_back(inner[i], std::get<ValueId>(outputs[i]));
  }
  return out;
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

}  // namespace prunerc::schedule
