#include "costmodel/nn/batch_norm.h"

#include "costmodel/nn/eigen.h"

namespace prunerc::costmodel::nn {
namespace {

/// PyTorch's defaults.
constexpr double kEpsilon = 1e-5;
constexpr double kMomentum = 0.1;

}  // namespace

template <typename T>
BatchNorm<T> BatchNorm<T>::make(Parameters<T>* parameters, Parameters<T>* buffers,
                                const std::string& name, int width) {
  BatchNorm layer{.width = width};
  layer.factor = parameters->add(name + ".factor", 1, width, {.value = 1});
  layer.offset = parameters->add(name + ".offset", 1, width, {.value = 0});
  layer.running_mean = buffers->add(name + ".running_mean", 1, width, {.value = 0});
  layer.running_variance = buffers->add(name + ".running_variance", 1, width, {.value = 1});
  return layer;
}

template <typename T>
void BatchNorm<T>::forward(const T* p, const T* buffers, Statistics statistics, View<const T> x,
                           BatchNormCache<T>* cache, View<T> y) const {
  const auto columns = static_cast<std::size_t>(width);
  cache->statistics = statistics;
  cache->normal.resize(x.rows, width);
  cache->mean.assign(columns, 0);
  cache->variance.assign(columns, 0);
  cache->inverse_std.resize(columns);
  auto mean = row_map(cache->mean.data(), width);
  auto variance = row_map(cache->variance.data(), width);
  if (statistics == Statistics::kBatch) {
    if (x.rows > 0) {
      for (int r = 0; r < x.rows; ++r) mean += row_map(x.row(r), width);
      mean /= static_cast<T>(x.rows);
      for (int r = 0; r < x.rows; ++r) variance += (row_map(x.row(r), width) - mean).square();
      variance /= static_cast<T>(x.rows);
    }
  } else {
    mean = row_map(buffers + running_mean, width);
    variance = row_map(buffers + running_variance, width);
  }
  auto inverse = row_map(cache->inverse_std.data(), width);
  inverse = (variance + static_cast<T>(kEpsilon)).sqrt().inverse();
  for (int r = 0; r < x.rows; ++r) {
    auto normal = row_map(cache->normal.row(r), width);
    normal = (row_map(x.row(r), width) - mean) * inverse;
    row_map(y.row(r), width) = normal * row_map(p + factor, width) + row_map(p + offset, width);
  }
}

template <typename T>
void BatchNorm<T>::backward(const T* p, const BatchNormCache<T>& cache, View<const T> dy,
                            View<T> dx, T* g) const {
  RowArray<T> sum = RowArray<T>::Zero(width);
  RowArray<T> slope = RowArray<T>::Zero(width);
  for (int r = 0; r < dy.rows; ++r) {
    const auto out = row_map(dy.row(r), width);
    sum += out;
    slope += out * row_map(cache.normal.row(r), width);
  }
  row_map(g + offset, width) += sum;
  row_map(g + factor, width) += slope;
  const RowArray<T> scale = row_map(p + factor, width) * row_map(cache.inverse_std.data(), width);
  // The statistics of the batch move with each row; running ones stand still.
  const T rows = static_cast<T>(dy.rows);
  const T share = cache.statistics == Statistics::kBatch && dy.rows > 0 ? 1 / rows : 0;
  sum *= share;
  slope *= share;
  for (int r = 0; r < dy.rows; ++r) {
    row_map(dx.row(r), width) =
        (row_map(dy.row(r), width) - sum - row_map(cache.normal.row(r), width) * slope) * scale;
  }
}

template <typename T>
void BatchNorm<T>::update_running(const BatchNormCache<T>& cache, T* buffers) const {
  const int rows = cache.normal.rows();
  if (cache.statistics != Statistics::kBatch || rows < 2) return;
  const auto momentum = static_cast<T>(kMomentum);
  const T correction = static_cast<T>(rows) / static_cast<T>(rows - 1);
  auto mean = row_map(buffers + running_mean, width);
  auto variance = row_map(buffers + running_variance, width);
  mean += (row_map(cache.mean.data(), width) - mean) * momentum;
  variance += (row_map(cache.variance.data(), width) * correction - variance) * momentum;
}

template struct BatchNorm<float>;
template struct BatchNorm<double>;

}  // namespace prunerc::costmodel::nn
