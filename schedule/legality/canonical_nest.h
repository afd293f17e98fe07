// The nest that a block has before anything is done to it: what layouts and padding rebuild.
#ifndef PRUNERC_SCHEDULE_LEGALITY_CANONICAL_NEST_H_
#define PRUNERC_SCHEDULE_LEGALITY_CANONICAL_NEST_H_

#include "ir/program.h"
#include "schedule/rewrite/site.h"

#include <string>

namespace prunerc::schedule {

/// "" if the block's loops are its iteration variables, one each, serial, without attributes, of
/// the same constant extents, straight around it from the outermost statement on, without a guard;
/// else what they are not.
std::string canonical_nest_fault(const ir::Program& program, const LeafBlock& leaf);
/// The first loop of such a nest, or the block if it has none.
ir::Stmt top_of(const LeafBlock& leaf);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_CANONICAL_NEST_H_
