#include "ir/net/pass/graph.h"

namespace prunerc::net {

Graph::Graph(const Net& net)
    : producer(net.tensors.size(), kNone),
      readers(net.tensors.size()),
      is_const(net.tensors.size()),
      is_const_call(net.calls.size()) {
  for (std::size_t i = 0; i < net.tensors.size(); ++i) is_const[i] = net.tensors[i].is_const;
  for (std::size_t c = 0; c < net.calls.size(); ++c) {
    const Call& call = net.calls[c];
    is_const_call[c] = net::is_const(net, call);
    for (const std::size_t arg : call.args) {
      if (readers[arg].empty() || readers[arg].back() != c) readers[arg].push_back(c);
    }
    for (const std::size_t result : call.results) producer[result] = c;
  }
}

}  // namespace prunerc::net
