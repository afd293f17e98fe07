// What the kinds of attention of ONNX Runtime's own domain share.
#ifndef PRUNERC_IR_ONNX_CONTRIB_ATTENTION_H_
#define PRUNERC_IR_ONNX_CONTRIB_ATTENTION_H_

#include "ir/onnx/text/attention.h"

#include <string>

namespace prunerc::onnx {

/// Columns [first, first + width) of the last of three axes. Errors: OnnxNode.
Result<const Value*> columns(Row& row, const Value& x, int64_t first, int64_t width);
/// What the products of queries and keys of a width are multiplied by. Errors: OnnxNode.
Result<double> scale_of(const Row& row, int64_t width);
/// A read of a bias of the scores, [batch or 1, heads or 1, places, total]; there may be more keys, which nobody sees.
/// Errors: OnnxNode.
Result<std::string> score_bias(Row& row, const Value& bias, const Heads& q, int64_t total,
                               int64_t keys);

Result<void> group_query_attention(Row& row);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_CONTRIB_ATTENTION_H_
