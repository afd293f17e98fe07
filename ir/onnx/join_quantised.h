// DequantizeLinear, an operator, QuantizeLinear: one operator on numbers of 8 bits.
#ifndef PRUNERC_IR_ONNX_JOIN_QUANTISED_H_
#define PRUNERC_IR_ONNX_JOIN_QUANTISED_H_

#include "ir/onnx/model.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace prunerc::onnx {

/// What a node on 8 bits stands for.
struct JoinedNode {
  std::vector<Node> written;  ///< as the model has it, in order
  /// Of a product of operands whose shapes the graph does not say: with a longer last axis of the left one sums may leave 32 bits.
  int64_t most_summed = std::numeric_limits<int64_t>::max();
  /// Of a node that moves bytes: the type that its operand must have, which the graph does not say.
  std::optional<ir::DType> moved;
};

struct JoinedNodes {
  std::vector<Node> nodes;  ///< in place of the graph's; empty: nothing is joined
  std::unordered_map<const Node*, JoinedNode>
      joined;  ///< by element of `nodes`: move this, never copy it
  /// Products between quantisers that stay in floats, nodes of the model, and why.
  std::vector<std::pair<const Node*, std::string>> in_floats;
};

/// The nodes of a model's graph that stand written in floats between quantisers, on the numbers of 8 bits themselves, as engines
/// run models of the form "QDQ". Products: Conv as QLinearConv, Gemm as QGemm, MatMul as QLinearMatMul or
/// MatMulIntegerToFloat. Add, Mul, GlobalAveragePool and Concat as ONNX Runtime's QLinear operators. MaxPool and what moves elements as
/// they are, where both sides have one scale and zero point. In real numbers these are the same but for halves of a step (DESIGN.md, D9).
/// Joined is only what has all its scales and zero points in the file, a bias of the sum's own scale, and sums that stay below
/// 2^31. Nodes that nobody reads any more remain. Takes a time linear in the graph.
JoinedNodes join_quantised(const Model& model);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_JOIN_QUANTISED_H_
