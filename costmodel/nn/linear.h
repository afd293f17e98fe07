// Linear: y = x W + b.
#ifndef PRUNERC_COSTMODEL_NN_LINEAR_H_
#define PRUNERC_COSTMODEL_NN_LINEAR_H_

#include "costmodel/nn/matrix.h"
#include "costmodel/nn/parameters.h"

#include <string>

namespace prunerc::costmodel::nn {

/// Shape: x is [rows, in], W [in, out], b [1, out], y [rows, out]. Layers hold where their numbers
/// are, not the numbers: `p` is the vector of parameters, `g` a vector of gradients, added to.
template <typename T>
struct Linear {
  int in = 0;
  int out = 0;
  std::size_t weight = 0;
  std::size_t bias = 0;

  static Linear make(Parameters<T>* parameters, const std::string& name, int in, int out);
  void forward(const T* p, View<const T> x, View<T> y) const;
  /// dx is written unless it is empty.
  void backward(const T* p, View<const T> x, View<const T> dy, View<T> dx, T* g) const;
};

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_LINEAR_H_
