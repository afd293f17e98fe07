// The kind of task a program belongs to, as ten flags read off what its blocks compute.
#ifndef PRUNERC_COSTMODEL_FEATURE_TAG_H_
#define PRUNERC_COSTMODEL_FEATURE_TAG_H_

#include "ir/program.h"

#include <array>

namespace prunerc::costmodel {

inline constexpr int kNumTagFeatures = 10;

/// Flags in the order of feature.def; the last is never set.
using TaskTag = std::array<float, kNumTagFeatures>;

/// Meant for the unscheduled program. Copies, tiles, inlined and fused stages change nothing;
/// a schedule that writes a window as quotients of one index hides it.
///   max, min, add: occur in what is stored (not in subscripts).
///   conv2d, depthwise: a sum of products over a sliding window, with channels in it or without.
///   winograd: products of transformed tiles, batched over two dimensions, in a program that reads
///       overlapping tiles.
///   dense, batch_matmul: a sum of products without a window, where no or some dimension of the
///       result moves both factors.
///   softmax: exponentials of differences, a largest element and a sum.
TaskTag task_tag(const ir::Program& program);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_TAG_H_
