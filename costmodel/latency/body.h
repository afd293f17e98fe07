// What one instance of a statement computes and touches.
#ifndef PRUNERC_COSTMODEL_LATENCY_BODY_H_
#define PRUNERC_COSTMODEL_LATENCY_BODY_H_

#include "costmodel/latency/nest.h"

namespace prunerc::costmodel {

/// Adds the operations, accesses and conditions of a body to the nest; the accesses without facts
/// about their subscripts.
void read_body(const ir::Program& program, ir::Stmt body, Nest* nest);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_BODY_H_
