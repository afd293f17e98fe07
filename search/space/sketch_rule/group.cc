#include "search/space/sketch_rule/group.h"

#include "search/space/sketch_rule/chain.h"

#include <algorithm>

namespace prunerc::search {

using ir::BlockId;

std::vector<Group> group_blocks(const schedule::Schedule& schedule,
                                const std::vector<BlockId>& scans) {
  std::vector<Group> groups;
  std::vector<BlockId> taken;
  Group rows;
  auto flush = [&] {
    if (!rows.blocks.empty()) groups.push_back(std::move(rows));
    rows = Group();
  };
  for (const BlockId id : schedule.blocks()) {
    if (std::find(scans.begin(), scans.end(), id) != scans.end()) {
      flush();
      continue;
    }
    if (std::find(taken.begin(), taken.end(), id) != taken.end()) continue;
    const bool tiled = can_tile(schedule, id);
    const bool dot = !tiled && can_tile_dot(schedule, id);
    if (!tiled && !dot) {
      rows.blocks.push_back(id);
      continue;
    }
    flush();
    Group group;
    group.tiled = tiled;
    group.dot = dot;
    group.blocks = {id};
    const BlockId epilogue = epilogue_of(schedule, id);
    if (epilogue.valid()) {
      group.blocks.push_back(epilogue);
      taken.push_back(epilogue);
    }
    groups.push_back(std::move(group));
  }
  flush();
  return groups;
}

namespace {

// tile_group, with the variant as it is.
bool tile_group_as(SketchContext& context, const Group& group, const Variant& variant) {
  // A chain without rows reads every operand once: no copy of it pays.
  const bool transposes =
      variant.transpose_operand && (context.chain == nullptr || !context.chain->factors.empty());
  const bool moves_operand =
      transposes || can_use_narrow(context.schedule, group.blocks[0], context.target, variant) ||
      (variant.prepack_vectors > 0 && can_prepack(context.schedule, group.blocks[0]));
  const auto apply = [&](BlockId epilogue) {
    return group.dot && !moves_operand
               ? tile_dot(context, group.blocks[0], epilogue, variant).ok()
               : tile_block(context, group.blocks[0], epilogue, variant).ok();
  };
  if (group.blocks.size() == 1 && apply(BlockId())) return true;
  if (group.blocks.size() == 1) {
    // Accumulating in place is slower, but needs no copy that might not be legal here.
    Variant direct = variant;
    direct.write_cache = false;
    return group.tiled && tile_block(context, group.blocks[0], BlockId(), direct).ok();
  }
  if (apply(group.blocks[1])) return true;
  if (!apply(BlockId())) return false;
  static_cast<void>(schedule_rows(context, {group.blocks[1]}, variant).ok());
  return true;
}

}  // namespace

bool tile_group(SketchContext& context, const Group& group, const Variant& variant) {
  if (tile_group_as(context, group, variant)) return true;
  if (!variant.amx) return false;
  // Whole sums ask for less than parts, dot instructions for less than matrix tiles.
  Variant less = variant;
  less.block_reduction = false;
  if (variant.block_reduction && tile_group_as(context, group, less)) return true;
  less = variant;
  less.amx = false;
  return tile_group_as(context, group, less);
}

void leave_stages_to_readers(const schedule::Schedule& schedule, std::vector<Group>* groups) {
  for (const Group& reader : *groups) {
    if (!reader.tiled) continue;
    for (const BlockId stage : stages_of(schedule, reader.blocks[0])) {
      for (Group& group : *groups) {
        if (!group.contracts()) std::erase(group.blocks, stage);
      }
    }
  }
  std::erase_if(*groups, [](const Group& group) { return group.blocks.empty(); });
}

}  // namespace prunerc::search
