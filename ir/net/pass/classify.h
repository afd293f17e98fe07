// What a call computes, read off its program: the part that it can take in a fused operator.
#ifndef PRUNERC_IR_NET_PASS_CLASSIFY_H_
#define PRUNERC_IR_NET_PASS_CLASSIFY_H_

#include "ir/program.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace prunerc::net {

enum class CallKind : uint8_t {
  kPointwise,  ///< each element from those at its own place, of one shape but for axes of one element
  kBroadcast,  ///< the same with operands that lack axes, or have one element along them
  kView,       ///< elements at other places, each at most once, no arithmetic
  kReduce,     ///< one reduction and what is pointwise of its result
  kLinear,     ///< sums of products of two tensors: the anchor of a task
  kWindow,  ///< a reduction over windows that overlap or are padded, or such windows written out: pooling
  kRows,    ///< reductions over the last axes, and back to the whole shape
  kOpaque,  ///< subscripts that depend on data
  kOther,   ///< none of these: concatenation, several outputs, two anchors
};
std::string_view to_string(CallKind kind);

/// How an input's elements are read.
enum class PortRead : uint8_t {
  kSame,       ///< at the place of the output's element, of one shape but for axes of one element
  kBroadcast,  ///< the same, where axes of more elements are missing
  kElsewhere,
};

struct CallFacts {
  CallKind kind = CallKind::kOther;
  std::vector<PortRead> reads;  ///< by input; only of kinds without a reduction
  int64_t num_operations = 0;   ///< for an element, of kinds without a reduction
  int64_t row_elems = 0;    ///< of kRows and kReduce over the last axes: what one reduction reads
  bool has_window = false;  ///< of kLinear: an operand is read in windows
  bool is_copy = false;     ///< every element is one of the operand's
  bool keeps_innermost = false;  ///< of copies: the last axis is read in steps of one
};

/// Cost: O(size of the program). Total.
CallFacts classify(const ir::Program& program);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_CLASSIFY_H_
