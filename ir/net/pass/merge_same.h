// Calls that compute what another call has computed.
#ifndef PRUNERC_IR_NET_PASS_MERGE_SAME_H_
#define PRUNERC_IR_NET_PASS_MERGE_SAME_H_

#include "ir/net/net.h"
#include "ir/support/result.h"

namespace prunerc::net {

/// Of calls of one operator on the same arguments the first stays, and its results are read instead
/// of the others'. Constants that are the same weight or number are the same argument. A call that
/// gives an output stays. Errors: OperatorText, a defect.
Result<Net> merge_same(const Net& net);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_MERGE_SAME_H_
