// Which axes of a reduction a register tile has, and which operands are copied for it; private to
// rule "tile".
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_TILE_AXES_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_TILE_AXES_H_

#include "search/space/sketch_rule/rule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::search {

/// Rows of a register tile at most.
constexpr int64_t kMaxRows = 16;

struct TileAxes {
  Axis vector;
  std::optional<Axis> row;
  std::vector<Axis> outer;  // other spatial axes
};

/// No operand but the result moves along both.
bool shares_vectors(const ir::Block& block, ir::VarId row, ir::VarId vector);
/// The output's contiguous axis for the vectors, the one that operands share most for the rows.
std::optional<TileAxes> find_axes(const ir::Program& program, const BlockFacts& facts);
/// The contiguous axis becomes the tile's rows, the longest that one operand alone moves along its
/// vectors. Only for windows.
std::optional<TileAxes> find_transposed_axes(const ir::Program& program, const BlockFacts& facts);

/// The operand that moves with `var` if it is the only one and its subscripts are constants,
/// variables or digits (v*32 + w, with w below 32); -1 otherwise.
int transposed_operand(const ir::Block& block, ir::VarId var);
/// Whether the tiles of the vectors' axis had better be outside of all others: that operand is larger than L2 and no
/// outer axis moves along it, and what is read once for each tile then stays in the last cache.
bool reads_panels_once(const ir::Program& program, const ir::Block& block, const TileAxes& axes,
                       const ir::Target& target);
/// The operands whose elements along `var` do not follow each other; none if one of them has other
/// subscripts than those.
std::vector<int> gathered_operands(const ir::Program& program, const ir::Block& block,
                                   ir::VarId var);
/// "(a0, a1, a2) -> (a0, a2, a1)": those of the block's variables that the access mentions, `last`
/// at the end.
std::string transposing_map(const ir::Block& block, const ir::Access& access, ir::VarId last);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_TILE_AXES_H_
