#include "costmodel/nn/residual.h"

#include "costmodel/nn/eigen.h"
#include "costmodel/nn/relu.h"

#include <utility>

namespace prunerc::costmodel::nn {

template <typename T>
Residual<T> Residual<T>::make(Parameters<T>* parameters, const std::string& name, int width,
                              Norm kind) {
  Residual layer;
  layer.kind = kind;
  if (kind == Norm::kLayer) layer.norm = LayerNorm<T>::make(parameters, name + ".norm", width);
  layer.linear = Linear<T>::make(parameters, name + ".linear", width, width);
  return layer;
}

template <typename T>
void Residual<T>::forward(const T* p, View<const T> x, ResidualCache<T>* cache, View<T> y) const {
  View<const T> in = x;
  if (kind == Norm::kLayer) {
    cache->normed.resize(x.rows, x.cols);
    norm.forward(p, x, &cache->norm, cache->normed);
    in = cache->normed;
  }
  cache->hidden.resize(x.rows, x.cols);
  linear.forward(p, in, cache->hidden);
  relu(cache->hidden.view());
  map(y) = map(x) + map(std::as_const(cache->hidden).view());
}

template <typename T>
void Residual<T>::backward(const T* p, View<const T> x, const ResidualCache<T>& cache,
                           View<const T> dy, View<T> dx, T* g) const {
  Matrix<T> d_hidden(x.rows, x.cols);
  map(d_hidden.view()) = map(dy);
  relu_backward(cache.hidden, d_hidden.view());
  if (kind == Norm::kNone) {
    linear.backward(p, x, d_hidden, dx, g);
  } else {
    Matrix<T> d_normed(x.rows, x.cols);
    linear.backward(p, cache.normed, d_hidden, d_normed, g);
    norm.backward(p, cache.norm, d_normed, dx, g);
  }
  if (x.rows > 0) map(dx) += map(dy);
}

template struct Residual<float>;
template struct Residual<double>;

}  // namespace prunerc::costmodel::nn
