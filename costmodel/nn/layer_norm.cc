#include "costmodel/nn/layer_norm.h"

#include "costmodel/nn/eigen.h"

#include <cmath>

namespace prunerc::costmodel::nn {
namespace {

/// PyTorch's default.
constexpr double kEpsilon = 1e-5;

}  // namespace

template <typename T>
LayerNorm<T> LayerNorm<T>::make(Parameters<T>* parameters, const std::string& name, int width) {
  LayerNorm layer{.width = width};
  layer.factor = parameters->add(name + ".factor", 1, width, {.value = 1});
  layer.offset = parameters->add(name + ".offset", 1, width, {.value = 0});
  return layer;
}

template <typename T>
void LayerNorm<T>::forward(const T* p, View<const T> x, LayerNormCache<T>* cache, View<T> y) const {
  cache->normal.resize(x.rows, width);
  cache->inverse_std.resize(static_cast<std::size_t>(x.rows));
  const auto factors = row_map(p + factor, width);
  const auto offsets = row_map(p + offset, width);
  for (int r = 0; r < x.rows; ++r) {
    const auto in = row_map(x.row(r), width);
    auto normal = row_map(cache->normal.row(r), width);
    normal = in - in.mean();
    const T variance = normal.square().mean();
    const T inverse = 1 / std::sqrt(variance + static_cast<T>(kEpsilon));
    cache->inverse_std[static_cast<std::size_t>(r)] = inverse;
    normal *= inverse;
    row_map(y.row(r), width) = normal * factors + offsets;
  }
}

template <typename T>
void LayerNorm<T>::backward(const T* p, const LayerNormCache<T>& cache, View<const T> dy,
                            View<T> dx, T* g) const {
  const auto factors = row_map(p + factor, width);
  auto d_factors = row_map(g + factor, width);
  auto d_offsets = row_map(g + offset, width);
  RowArray<T> scaled(width);
  for (int r = 0; r < dy.rows; ++r) {
    const auto out = row_map(dy.row(r), width);
    const auto normal = row_map(cache.normal.row(r), width);
    d_factors += out * normal;
    d_offsets += out;
    scaled = out * factors;
    const T mean = scaled.mean();
    const T slope = (scaled * normal).mean();
    row_map(dx.row(r), width) =
        (scaled - mean - normal * slope) * cache.inverse_std[static_cast<std::size_t>(r)];
  }
}

template struct LayerNorm<float>;
template struct LayerNorm<double>;

}  // namespace prunerc::costmodel::nn
