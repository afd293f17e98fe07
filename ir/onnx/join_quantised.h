// DequantizeLinear, a product, QuantizeLinear: one product of whole numbers.
#ifndef PRUNERC_IR_ONNX_JOIN_QUANTISED_H_
#define PRUNERC_IR_ONNX_JOIN_QUANTISED_H_

#include "ir/onnx/model.h"

#include <vector>

namespace prunerc::onnx {

/// The nodes of a model's graph whose quantised products stand written in floats (as quantisers write models of the form "QDQ"), with
/// Conv as QLinearConv, Gemm as QGemm and MatMul by a matrix as QLinearMatMul or MatMulIntegerToFloat. In real numbers these are
/// the same; the sum is exact where that of floats is rounded. Joined is only what has all its scales and zero points in the
/// file, a bias of the sum's own scale, and sums that stay below 2^31. Nodes that nobody reads any more remain. Empty: nothing
/// to join. Takes a time linear in the graph.
std::vector<Node> join_quantised(const Model& model);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_JOIN_QUANTISED_H_
