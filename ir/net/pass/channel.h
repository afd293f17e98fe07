// Calls that are linear along one axis of their result: factors, summands, sums over a weight.
#ifndef PRUNERC_IR_NET_PASS_CHANNEL_H_
#define PRUNERC_IR_NET_PASS_CHANNEL_H_

#include "ir/program.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::net {

inline constexpr std::size_t kNoAxis = static_cast<std::size_t>(-1);

/// Y[i...] = X[i...] op v, where v is an input that varies along one axis of Y at most, or a number.
struct ChannelOp {
  char op = '*';                      ///< '*', '/' or '+'
  std::size_t whole = 0;              ///< the input X
  std::optional<std::size_t> vector;  ///< the input v
  double number = 0;                  ///< without one
  std::size_t axis = kNoAxis;         ///< of Y
  std::size_t vector_axis = kNoAxis;  ///< of v, which may be longer there; of other axes it reads 0
};
std::optional<ChannelOp> match_channel_op(const ir::Program& program);

/// Y[..i..] = sum X[...] * W[..i..] (+ b): what multiplies Y along an axis may multiply W and b.
struct WeightedSum {
  struct Part {
    std::size_t input = 0;
    std::vector<std::size_t> axis_of;  ///< by axis of Y: that of the input; kNoAxis: it has none
  };
  std::vector<Part> weights;  ///< either factor of the product
  std::optional<Part> bias;   ///< whose elements are added to the sum
};
std::optional<WeightedSum> match_weighted_sum(const ir::Program& program);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_CHANNEL_H_
