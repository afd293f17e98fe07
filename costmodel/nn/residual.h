// Residual: y = x + relu(linear(x)), or of the layer-normed x.
#ifndef PRUNERC_COSTMODEL_NN_RESIDUAL_H_
#define PRUNERC_COSTMODEL_NN_RESIDUAL_H_

#include "costmodel/nn/layer_norm.h"
#include "costmodel/nn/linear.h"

#include <string>

namespace prunerc::costmodel::nn {

enum class Norm { kNone, kLayer };

template <typename T>
struct ResidualCache {
  LayerNormCache<T> norm;
  Matrix<T> normed;  // [rows, width]; empty without a norm
  Matrix<T> hidden;  // [rows, width]: after relu
};

/// Shape: x, y are [rows, width].
template <typename T>
struct Residual {
  Norm kind = Norm::kNone;
  LayerNorm<T> norm;
  Linear<T> linear;

  static Residual make(Parameters<T>* parameters, const std::string& name, int width, Norm kind);
  void forward(const T* p, View<const T> x, ResidualCache<T>* cache, View<T> y) const;
  void backward(const T* p, View<const T> x, const ResidualCache<T>& cache, View<const T> dy,
                View<T> dx, T* g) const;
};

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_RESIDUAL_H_
