// Factors behind a sum of products move into its weights.
#ifndef PRUNERC_IR_NET_PASS_SCALE_INTO_WEIGHTS_H_
#define PRUNERC_IR_NET_PASS_SCALE_INTO_WEIGHTS_H_

#include "ir/net/net.h"
#include "ir/support/result.h"

#include <cstddef>

namespace prunerc::net {

struct ScaleOptions {
  bool exact = false;  ///< moves nothing: products are rounded as they are written
};

/// A call that multiplies by a constant, along one axis or none, what only it reads of a linear call
/// goes away: the weight is multiplied instead, by a const call, and so are biases between the two.
/// Of more than 16 in a row the last stay. A factor without an axis moves across views too. f32 and
/// f64 only. `num_moved`, if asked for: calls that went. Errors: OperatorText, a defect.
Result<Net> scale_into_weights(const Net& net, const ScaleOptions& options = {},
                               std::size_t* num_moved = nullptr);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_SCALE_INTO_WEIGHTS_H_
