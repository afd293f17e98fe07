// LayerNorm: every row to mean 0 and variance 1, then a learned factor and offset per column.
#ifndef PRUNERC_COSTMODEL_NN_LAYER_NORM_H_
#define PRUNERC_COSTMODEL_NN_LAYER_NORM_H_

#include "costmodel/nn/matrix.h"
#include "costmodel/nn/parameters.h"

#include <string>
#include <vector>

namespace prunerc::costmodel::nn {

template <typename T>
struct LayerNormCache {
  Matrix<T> normal;       // [rows, width]: before factor and offset
  Vector<T> inverse_std;  // [rows]
};

/// Shape: x, y are [rows, width].
template <typename T>
struct LayerNorm {
  int width = 0;
  std::size_t factor = 0;
  std::size_t offset = 0;

  static LayerNorm make(Parameters<T>* parameters, const std::string& name, int width);
  void forward(const T* p, View<const T> x, LayerNormCache<T>* cache, View<T> y) const;
  void backward(const T* p, const LayerNormCache<T>& cache, View<const T> dy, View<T> dx,
                T* g) const;
};

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_LAYER_NORM_H_
