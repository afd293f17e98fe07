// Pooling: one row for each segment: the sum of its rows, or a mean that a learned query weighs.
#ifndef PRUNERC_COSTMODEL_NN_POOLING_H_
#define PRUNERC_COSTMODEL_NN_POOLING_H_

#include "costmodel/nn/matrix.h"
#include "costmodel/nn/parameters.h"
#include "costmodel/nn/segments.h"

#include <string>
#include <vector>

namespace prunerc::costmodel::nn {

/// Shape: x is [rows, width], y [segments, width]. A segment without valid rows gives zeros.
template <typename T>
void sum_pool(const Segments& segments, std::type_identity_t<View<const T>> x, View<T> y);
/// Adds to dx.
template <typename T>
void sum_pool_backward(const Segments& segments, std::type_identity_t<View<const T>> dy,
                       View<T> dx);

template <typename T>
struct AttentionPoolCache {
  Vector<T> weights;  // [heads, padded size] of each segment in turn
};

/// Each head has width / heads columns, whose rows it weighs by their product with its part of the
/// query.
/// Shape: x is [rows, width], y [segments, width]. A segment without valid rows gives zeros.
template <typename T>
struct AttentionPool {
  int width = 0;
  int heads = 1;  // divides width
  std::size_t query = 0;

  static AttentionPool make(Parameters<T>* parameters, const std::string& name, int width,
                            int heads);
  void forward(const T* p, const Segments& segments, View<const T> x, AttentionPoolCache<T>* cache,
               View<T> y) const;
  /// dx is written.
  void backward(const T* p, const Segments& segments, View<const T> x,
                const AttentionPoolCache<T>& cache, View<const T> dy, View<T> dx, T* g) const;
};

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_POOLING_H_
