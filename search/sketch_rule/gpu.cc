#include "search/sketch_rule/gpu.h"

#include "ir/analysis/loop_index.h"
#include "ir/thread_axis.h"

#include <algorithm>

namespace prunerc::search {
namespace {

using ir::BlockId;

bool in_kernel(const schedule::Schedule& s, BlockId block) {
  const ir::LoopIndex index(s.program());
  const std::vector<const ir::Loop*> loops = index.enclosing_loops(block);
  return std::any_of(loops.begin(), loops.end(),
                     [](const ir::Loop* loop) { return ir::is_thread_axis(loop->loop_kind); });
}

// Stages that a tiled block alone reads are computed where their elements are fetched.
void inline_into_tiles(SketchContext& context) {
  for (const BlockId id : context.schedule.blocks()) {
    if (!can_gpu_tile(context.schedule, id)) continue;
    for (const BlockId stage : stages_of(context.schedule, id)) {
      static_cast<void>(context.schedule.compute_inline(stage).ok());
    }
  }
}

bool tile(SketchContext& context, BlockId block, const GpuVariant& variant) {
  const BlockId epilogue = epilogue_of(context.schedule, block);
  if (epilogue.valid() && gpu_tile(context, block, epilogue, variant).ok()) return true;
  return gpu_tile(context, block, BlockId(), variant).ok();
}

// Stages that follow each other: together if they have rows in common, else each by itself.
void schedule_chain(SketchContext& context, const std::vector<BlockId>& chain,
                    const GpuVariant& variant) {
  const auto reduces = [&](BlockId id) { return is_reduction(*find_block(context.program(), id)); };
  const bool any = std::any_of(chain.begin(), chain.end(), reduces);
  if (variant.fuse_rows && any && chain.size() > 1 && gpu_rows(context, chain, variant)) return;
  for (const BlockId id : chain) {
    if (reduces(id) && gpu_rows(context, {id}, variant)) continue;
    static_cast<void>(gpu_bind(context, id).ok());
  }
}

}  // namespace

std::vector<GpuVariant> gpu_variants() {
  return {
      {.name = "gpu"},
      {.name = "gpu+stages", .inline_stages = false},
      {.name = "gpu+direct", .shared = false},
      {.name = "gpu+row per thread", .threads_share_rows = false},
      {.name = "gpu+split", .fuse_rows = false},
      {.name = "gpu+split+row per thread", .threads_share_rows = false, .fuse_rows = false},
  };
}

Result<void> apply_gpu_variant(SketchContext& context, const GpuVariant& variant) {
  Variant stages;
  stages.inline_stages = variant.inline_stages;
  inline_stages(context, stages);
  if (variant.inline_stages) inline_into_tiles(context);
  std::vector<BlockId> chain;
  const auto flush = [&] {
    if (!chain.empty()) schedule_chain(context, chain, variant);
    chain.clear();
  };
  for (const BlockId id : context.schedule.blocks()) {
    if (find_block(context.program(), id) == nullptr || in_kernel(context.schedule, id)) continue;
    if (can_gpu_tile(context.schedule, id) && (flush(), tile(context, id, variant))) continue;
    chain.push_back(id);
  }
  flush();
  // Whatever is left: a block that came with loops of its own shape.
  for (const BlockId id : context.schedule.blocks()) {
    if (!in_kernel(context.schedule, id)) PRUNERC_TRY_VOID(gpu_bind(context, id));
  }
  return {};
}

}  // namespace prunerc::search
