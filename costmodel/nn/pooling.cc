#include "costmodel/nn/pooling.h"

#include "costmodel/nn/eigen.h"
#include "costmodel/nn/softmax.h"

#include <cmath>

namespace prunerc::costmodel::nn {
namespace {

template <typename T>
T score_scale(int depth) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(depth)));
}

// Offsets of the segments' weights, and their number at the end.
std::vector<std::size_t> weight_offsets(const Segments& segments, int heads) {
  std::vector<std::size_t> offsets = {0};
  for (int i = 0; i < segments.count(); ++i) {
    offsets.push_back(offsets.back() + static_cast<std::size_t>(heads) *
                                           static_cast<std::size_t>(padded(segments.size(i))));
  }
  return offsets;
}

}  // namespace

template <typename T>
void sum_pool(const Segments& segments, std::type_identity_t<View<const T>> x, View<T> y) {
  for (int i = 0; i < segments.count(); ++i) {
    auto sum = row_map(y.row(i), y.cols);
    sum.setZero();
    for (int r = segments.first(i); r < segments.first(i + 1); ++r) {
      if (segments.is_valid(r)) sum += row_map(x.row(r), y.cols);
    }
  }
}

template <typename T>
void sum_pool_backward(const Segments& segments, std::type_identity_t<View<const T>> dy,
                       View<T> dx) {
  for (int i = 0; i < segments.count(); ++i) {
    for (int r = segments.first(i); r < segments.first(i + 1); ++r) {
      if (segments.is_valid(r)) row_map(dx.row(r), dy.cols) += row_map(dy.row(i), dy.cols);
    }
  }
}

template <typename T>
AttentionPool<T> AttentionPool<T>::make(Parameters<T>* parameters, const std::string& name,
                                        int width, int heads) {
  AttentionPool layer{.width = width, .heads = heads};
  layer.query = parameters->add(name + ".query", 1, width, {.bound = linear_bound(width)});
  return layer;
}

template <typename T>
void AttentionPool<T>::forward(const T* p, const Segments& segments, View<const T> x,
                               AttentionPoolCache<T>* cache, View<T> y) const {
  const int depth = width / heads;
  const std::vector<std::size_t> offsets = weight_offsets(segments, heads);
  cache->weights.resize(offsets.back());
  for (int i = 0; i < segments.count(); ++i) {
    const int first = segments.first(i), size = segments.size(i), row = padded(size);
    T* const weights = cache->weights.data() + offsets[static_cast<std::size_t>(i)];
    row_map(y.row(i), width).setZero();
    if (size == 0) continue;
    for (int j = 0; j < size; ++j) {
      for (int h = 0; h < heads; ++h) {
        const auto column = static_cast<std::ptrdiff_t>(h) * depth;
        weights[h * row + j] =
            (row_map(p + query + column, depth) * row_map(x.row(first + j) + column, depth)).sum();
      }
    }
    softmax_rows(heads, size, segments.valid == nullptr ? nullptr : segments.valid + first,
                 score_scale<T>(depth), weights);
    for (int j = 0; j < size; ++j) {
      for (int h = 0; h < heads; ++h) {
        const auto column = static_cast<std::ptrdiff_t>(h) * depth;
        row_map(y.row(i) + column, depth) +=
            row_map(x.row(first + j) + column, depth) * weights[h * row + j];
      }
    }
  }
}

template <typename T>
void AttentionPool<T>::backward(const T* p, const Segments& segments, View<const T> x,
                                const AttentionPoolCache<T>& cache, View<const T> dy, View<T> dx,
                                T* g) const {
  const int depth = width / heads;
  const std::vector<std::size_t> offsets = weight_offsets(segments, heads);
  Vector<T> d_scores;
  for (int i = 0; i < segments.count(); ++i) {
    const int first = segments.first(i), size = segments.size(i), row = padded(size);
    if (size == 0) continue;
    const T* const weights = cache.weights.data() + offsets[static_cast<std::size_t>(i)];
    d_scores.assign(static_cast<std::size_t>(heads * row), 0);
    for (int j = 0; j < size; ++j) {
      for (int h = 0; h < heads; ++h) {
        const auto column = static_cast<std::ptrdiff_t>(h) * depth;
        d_scores[static_cast<std::size_t>(h * row + j)] =
            (row_map(dy.row(i) + column, depth) * row_map(x.row(first + j) + column, depth)).sum();
      }
    }
    softmax_rows_backward(heads, size, weights, score_scale<T>(depth), d_scores.data());
    for (int j = 0; j < size; ++j) {
      for (int h = 0; h < heads; ++h) {
        const auto column = static_cast<std::ptrdiff_t>(h) * depth;
        const T d_score = d_scores[static_cast<std::size_t>(h * row + j)];
        const auto in = row_map(x.row(first + j) + column, depth);
        row_map(dx.row(first + j) + column, depth) =
            row_map(dy.row(i) + column, depth) * weights[h * row + j] +
            row_map(p + query + column, depth) * d_score;
        row_map(g + query + column, depth) += in * d_score;
      }
    }
  }
}

#define PRUNERC_INSTANTIATE(T)                                                              \
  template void sum_pool<T>(const Segments&, std::type_identity_t<View<const T>>, View<T>); \
  template void sum_pool_backward<T>(const Segments&, std::type_identity_t<View<const T>>,  \
                                     View<T>);                                              \
  template struct AttentionPool<T>;
PRUNERC_INSTANTIATE(float)
PRUNERC_INSTANTIATE(double)
#undef PRUNERC_INSTANTIATE

}  // namespace prunerc::costmodel::nn
