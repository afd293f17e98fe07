#include "ir/net/net.h"

namespace prunerc::net {

int64_t num_elements(const Tensor& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  return count;
}

int64_t size_bytes(const Tensor& tensor) {
  return num_elements(tensor) * ir::byte_size(tensor.dtype);
}

}  // namespace prunerc::net
