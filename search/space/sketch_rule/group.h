// Blocks that are scheduled together, and which rule they get.
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_GROUP_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_GROUP_H_

#include "search/space/sketch_rule/rule.h"

#include <vector>

namespace prunerc::search {

/// One tiled block with its epilogue, or stages that work row by row.
struct Group {
  std::vector<ir::BlockId> blocks;
  bool tiled = false;
  bool dot = false;
  bool contracts() const { return tiled || dot; }
};

/// All blocks but the `scans`, which have their loops, in the program's order.
std::vector<Group> group_blocks(const schedule::Schedule& schedule,
                                const std::vector<ir::BlockId>& scans);
/// Takes the stages that tile_block will move out of the other groups.
void leave_stages_to_readers(const schedule::Schedule& schedule, std::vector<Group>* groups);

/// The contraction with its tiles; false if this variant does not fit it.
bool tile_group(SketchContext& context, const Group& group, const Variant& variant);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_GROUP_H_
