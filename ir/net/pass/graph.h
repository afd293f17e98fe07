// Who gives and who reads the tensors of a net.
#ifndef PRUNERC_IR_NET_PASS_GRAPH_H_
#define PRUNERC_IR_NET_PASS_GRAPH_H_

#include "ir/net/net.h"

#include <cstddef>
#include <vector>

namespace prunerc::net {

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Graph {
  explicit Graph(const Net& net);

  std::vector<std::size_t> producer;              ///< by tensor; kNone: a port or a constant
  std::vector<std::vector<std::size_t>> readers;  ///< by tensor: calls, each once, in order
  std::vector<bool> is_const;                     ///< by tensor: follows from constants alone
  std::vector<bool> is_const_call;                ///< by call: all that it gives is const
};

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_PASS_GRAPH_H_
