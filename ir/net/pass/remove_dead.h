// Calls that nobody reads.
#ifndef PRUNERC_IR_NET_PASS_REMOVE_DEAD_H_
#define PRUNERC_IR_NET_PASS_REMOVE_DEAD_H_

#include "ir/net/net.h"
#include "ir/support/result.h"

namespace prunerc::net {

/// Without calls from which no output follows, and without constants that then nobody reads. Inputs
/// stay. Errors: OperatorText, a defect.
Result<Net> remove_dead(const Net& net);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_REMOVE_DEAD_H_
