// Attention as a call: scores, softmax and the weighted sum are one operator; and what stands around it.
#ifndef PRUNERC_IR_ONNX_TEXT_ATTENTION_H_
#define PRUNERC_IR_ONNX_TEXT_ATTENTION_H_

#include "ir/onnx/row.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::onnx {

/// Q, K or V: heads are an axis of their own, or lie side by side in the last one.
struct Heads {
  const Value* value = nullptr;
  bool is_packed = false;
  int64_t batch = 0, heads = 0, length = 0, width = 0;

  /// An element of a head at a place, in the batch b.
  std::string read(std::string_view name, const std::string& head, const std::string& place,
                   const std::string& element) const;
};
/// Nullopt: they do not divide the operand, or it is empty.
std::optional<Heads> heads_of(const Value& x, int64_t heads);
/// Keys or values with those of earlier calls in front, as [batch, head, place, element] if there are such or if
/// that is wanted. Errors: OnnxNode.
Result<Heads> with_past(Row& row, const Heads& now, const Value* past, bool is_wanted);

// What is added to the scores, or hides them.
struct Mask {
  std::vector<Arg> args;
  std::string hides;  ///< a condition: what is seen; empty: all
  std::string added;  ///< empty: nothing
};

/// Of batch b, head h, a query at t and a key at s.
struct AttentionPlan {
  Heads q, k, v;
  Mask mask;
  std::string causal;  ///< a condition: how far a query sees; empty: everything
  std::string sink;    ///< a score that is summed and weighs nothing; empty: none
  double scale = 1;
  double cap = 0;  ///< 0: none
  int64_t scores =
      -1;  ///< which scores are the second result, as qk_matmul_output_mode says; -1: none
};
/// A query sees the keys up to its own place, behind so many earlier ones.
std::string causal_text(int64_t before);
/// Errors: OnnxNode.
Result<std::vector<const Value*>> attention_of(Row& row, const AttentionPlan& plan);

/// Pairs of elements turn by an angle that follows from the place.
struct Rotation {
  Heads x;
  const Value *cosines = nullptr, *sines = nullptr;
  std::vector<Arg> places;  ///< what `place` reads
  std::string
      place;  ///< the row of the tables, of the batch i0 and token(x); empty: they have both axes
  int64_t turned = 0;  ///< how many elements of a head
  bool are_neighbours = false;
};
/// The index of the token.
std::string token(const Heads& x);
/// Errors: OnnxNode.
Result<const Value*> rotated(Row& row, const Rotation& r);

}  // namespace prunerc::onnx

#endif  // PRUNERC_IR_ONNX_TEXT_ATTENTION_H_
