// Parameters: all numbers of a network in one vector, and the named tensors that they are.
// Gradients and the state of an optimizer are vectors of the same length.
#ifndef PRUNERC_COSTMODEL_NN_PARAMETERS_H_
#define PRUNERC_COSTMODEL_NN_PARAMETERS_H_

#include "costmodel/nn/matrix.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::costmodel::nn {

/// How a tensor starts: uniform in [-bound, bound], or all equal to `value` where bound is 0.
struct Init {
  double bound = 0;
  double value = 0;
  bool operator==(const Init&) const = default;
};

/// A window on the vector. Row-major.
struct Tensor {
  std::string name;
  int rows = 0;
  int cols = 0;
  std::size_t offset = 0;
  Init init;
  std::size_t size() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  bool operator==(const Tensor&) const = default;
};

template <typename T>
struct Parameters {
  std::vector<Tensor> tensors;  // their windows follow each other without gaps
  Vector<T> values;

  /// Adds a tensor at its init value (0 for random ones); returns its offset.
  std::size_t add(std::string name, int rows, int cols, Init init);
  /// Draws every tensor anew. What a tensor gets depends on the seed and its name only.
  void initialise(uint64_t seed);
  bool operator==(const Parameters&) const = default;
};

/// The bound of PyTorch's default for linear layers, for weights and biases alike.
double linear_bound(int fan_in);
/// Xavier's uniform bound.
double xavier_bound(int fan_in, int fan_out);

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_PARAMETERS_H_
