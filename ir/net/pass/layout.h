// Images are channels-last inside: islands of calls around convolutions are turned.
#ifndef PRUNERC_IR_NET_PASS_LAYOUT_H_
#define PRUNERC_IR_NET_PASS_LAYOUT_H_

#include "ir/net/net.h"
#include "ir/net/pass/graph.h"
#include "ir/support/result.h"

#include <cstddef>
#include <vector>

namespace prunerc::net {

struct LayoutCount {
  std::size_t num_turned = 0;      ///< tensors
  std::size_t num_transposes = 0;  ///< calls that were put in, at the net's ports
  std::size_t num_views = 0;       ///< stages in turned calls that only move elements
};

/// By tensor: [N,C,H,W] in the net and [N,H,W,C] for the calls. Those that are connected to a
/// convolution with a const filter through calls that keep each image at its place. An input of few
/// channels stays.
std::vector<bool> turned_tensors(const Net& net, const Graph& graph);

/// Each call that touches turned tensors becomes one of a new operator: transposes around the old
/// one, which its program has in its subscripts (analysis/views/views.h). Ports keep their layout, by
/// explicit calls. The net itself if nothing is turned.
/// Errors: OperatorText, of the new text; that is a defect of this pass.
Result<Net> layout(const Net& net, LayoutCount* count = nullptr);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_LAYOUT_H_
