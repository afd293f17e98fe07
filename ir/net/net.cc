#include "ir/net/net.h"

#include <algorithm>

namespace prunerc::net {

bool is_const(const Net& net, const Call& call) {
  return std::all_of(call.results.begin(), call.results.end(),
                     [&](std::size_t result) { return net.tensors[result].is_const; });
}

std::vector<std::size_t> run_calls(const Net& net) {
  std::vector<std::size_t> calls;
  for (std::size_t i = 0; i < net.calls.size(); ++i) {
    if (!is_const(net, net.calls[i])) calls.push_back(i);
  }
  return calls;
}

int64_t num_elements(const Tensor& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  return count;
}

int64_t size_bytes(const Tensor& tensor) {
  return num_elements(tensor) * ir::byte_size(tensor.dtype);
}

}  // namespace prunerc::net
