// The outer loops that the blocks of a chain have in common; private to rule "chain" and to the
// rules that schedule its blocks.
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_CHAIN_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_CHAIN_H_

#include "search/space/sketch_rule/group.h"

#include <cstddef>
#include <map>
#include <vector>

namespace prunerc::search {

/// While a context has one, rules leave the common loops outermost and serial: chain.cc joins them.
struct Chain {
  /// Which of a block's iteration variables the common axes are, outermost first.
  struct Axes {
    std::vector<int> outer;
    bool is_outer(int iter) const;
    /// The block's axes among these, in their order.
    std::vector<Axis> outer_of(const BlockFacts& facts) const;
    int row = -1;  // cut in blocks of rows, of which one task computes everything; -1: no such axis
  };
  std::map<ir::BlockId, Axes> axes;
  /// How every block's rows are cut: tasks, tiles of a task, rows of a tile. Empty without rows.
  std::vector<schedule::Int> factors;

  const Axes& of(ir::BlockId block) const { return axes.at(block); }
  /// How many loops the blocks have in common.
  std::size_t depth() const {
    return axes.begin()->second.outer.size() + (factors.empty() ? 0 : 1);
  }
};

/// Whether a rule makes tasks of its own loops. In a chain tasks are what all blocks have in common.
inline bool makes_tasks(const SketchContext& context) {
  return context.target.num_threads > 1 && context.chain == nullptr;
}

/// Contractions and rows between them under common outer loops. `groups`: all of the program.
/// Those that belong to the chain get their schedule and are taken out.
Result<void> schedule_chain(SketchContext& context, const Variant& variant,
                            std::vector<Group>* groups);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_CHAIN_H_
