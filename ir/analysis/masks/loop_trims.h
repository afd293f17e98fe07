// What a mask trims of the loops of GPU kernels: iterations at both ends of which it hides all that they would compute.
#ifndef PRUNERC_IR_ANALYSIS_MASKS_LOOP_TRIMS_H_
#define PRUNERC_IR_ANALYSIS_MASKS_LOOP_TRIMS_H_

#include "ir/builder.h"
#include "ir/program.h"

#include <map>

namespace prunerc::ir {

/// The iterations of a loop that somebody needs, over variables of the loops around.
struct LoopTrim {
  Expr first;        // of them; null: the loop's own
  Expr iterations;   // from there on, at least one
  double share = 1;  // of the loop's iterations, on average
};

/// By loop; loops that are not there run whole. Variables are those of block axes and serial loops, so that all threads
/// of a block agree. What other iterations write lives in one iteration alone, or is read only behind a condition that
/// fails there, or they add what a mask makes nothing. Of scheduled programs: serial loops of constant extent that hold
/// threads. Cost: that of Masks.
std::map<LoopId, LoopTrim> masked_loop_trims(IrBuilder& b, const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_MASKS_LOOP_TRIMS_H_
