// Attention: multi-head self-attention within segments.
#ifndef PRUNERC_COSTMODEL_NN_ATTENTION_H_
#define PRUNERC_COSTMODEL_NN_ATTENTION_H_

#include "costmodel/nn/linear.h"
#include "costmodel/nn/matrix.h"
#include "costmodel/nn/parameters.h"
#include "costmodel/nn/segments.h"

#include <string>
#include <vector>

namespace prunerc::costmodel::nn {

template <typename T>
struct AttentionCache {
  Matrix<T> qkv;      // [rows, 3 width]: queries, keys, values
  Matrix<T> mixed;    // [rows, width]: values as weighed, before the last product
  Vector<T> weights;  // [size, padded size] of each segment and head in turn
};

/// Shape: x, y are [rows, width]; each of the heads has width / heads columns.
/// Source: Vaswani et al. 2017, eq. 1, with PyTorch's projections and initialisation.
template <typename T>
struct Attention {
  int width = 0;
  int heads = 1;      // divides width
  Linear<T> project;  // width -> 3 width
  Linear<T> merge;    // width -> width

  static Attention make(Parameters<T>* parameters, const std::string& name, int width, int heads);
  void forward(const T* p, const Segments& segments, View<const T> x, AttentionCache<T>* cache,
               View<T> y) const;
  void backward(const T* p, const Segments& segments, View<const T> x,
                const AttentionCache<T>& cache, View<const T> dy, View<T> dx, T* g) const;
};

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_ATTENTION_H_
