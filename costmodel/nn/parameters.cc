#include "costmodel/nn/parameters.h"

#include "ir/support/hash.h"
#include "ir/support/rng.h"

#include <cmath>
#include <utility>

namespace prunerc::costmodel::nn {

template <typename T>
std::size_t Parameters<T>::add(std::string name, int rows, int cols, Init init) {
  const std::size_t offset = values.size();
  tensors.push_back({std::move(name), rows, cols, offset, init});
  values.resize(offset + tensors.back().size(), static_cast<T>(init.value));
  return offset;
}

template <typename T>
void Parameters<T>::initialise(uint64_t seed) {
  for (const Tensor& tensor : tensors) {
    Rng rng(seed, hash_bytes(tensor.name));
    T* const data = values.data() + tensor.offset;
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      const double random =
          tensor.init.bound == 0 ? 0 : tensor.init.bound * (2 * rng.uniform() - 1);
      data[i] = static_cast<T>(tensor.init.value + random);
    }
  }
}

double linear_bound(int fan_in) { return 1 / std::sqrt(static_cast<double>(fan_in)); }

double xavier_bound(int fan_in, int fan_out) {
  return std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
}

template struct Parameters<float>;
template struct Parameters<double>;

}  // namespace prunerc::costmodel::nn
