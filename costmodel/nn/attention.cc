#include "costmodel/nn/attention.h"

#include "costmodel/nn/small_product.h"
#include "costmodel/nn/softmax.h"

#include <cmath>
#include <utility>

namespace prunerc::costmodel::nn {
namespace {

// One head of one segment: n rows, its columns of the matrices of the batch.
template <typename T>
struct Head {
  View<const T> query, key, value;  // [n, depth]

  int size() const { return query.rows; }
  int depth() const { return query.cols; }
};

template <typename T>
Head<T> head_of(View<const T> qkv, int width, int heads, int first, int size, int head) {
  const int depth = width / heads;
  const auto part = [&](int which) {
    return qkv.row_range(first, size).column_range(which * width + head * depth, depth);
  };
  return {part(0), part(1), part(2)};
}

template <typename T>
LeftFactor<T> left(View<const T> m) {
  return {m.data, m.stride, 1};
}

// Room for the matrices of one head, padded to lanes; padding stays 0 or is never looked at.
template <typename T>
class Scratch {
 public:
  Scratch(const Segments& segments, int depth) : row_(padded(depth)) {
    int largest = 0;
    for (int i = 0; i < segments.count(); ++i) largest = std::max(largest, segments.size(i));
    const auto rows = static_cast<std::size_t>(largest) * static_cast<std::size_t>(row_);
    copy_.assign(rows, 0);
    result_.assign(rows, 0);
    transposed_.assign(static_cast<std::size_t>(depth) * static_cast<std::size_t>(padded(largest)),
                       0);
    square_.assign(static_cast<std::size_t>(largest) * static_cast<std::size_t>(padded(largest)),
                   0);
  }

  /// m as [rows, padded columns].
  const T* copy(View<const T> m) {
    for (int r = 0; r < m.rows; ++r) {
      std::copy_n(m.row(r), m.cols, copy_.data() + static_cast<std::ptrdiff_t>(r) * row_);
    }
    return copy_.data();
  }
  /// m as [columns, padded rows].
  const T* transpose(View<const T> m) {
    const int width = padded(m.rows);
    for (int c = 0; c < m.cols; ++c) {
      T* const row = transposed_.data() + static_cast<std::ptrdiff_t>(c) * width;
      for (int r = 0; r < m.rows; ++r) row[r] = m(r, c);
      std::fill(row + m.rows, row + width, T{0});
    }
    return transposed_.data();
  }
  /// out = a m for a of [n, n] and m of [n, depth].
  void product(int n, LeftFactor<T> a, View<const T> m, View<T> out) {
    small_product(n, n, row_, a, copy(m), row_, result_.data(), row_);
    for (int r = 0; r < n; ++r) {
      std::copy_n(result_.data() + static_cast<std::ptrdiff_t>(r) * row_, out.cols, out.row(r));
    }
  }
  T* square() { return square_.data(); }

 private:
  int row_;
  Vector<T> copy_, result_, transposed_, square_;
};

// Calls f(first, size, head, at) for each head of each segment; `at` is where its weights are.
template <typename F>
void for_each_head(const Segments& segments, int heads, F&& f) {
  std::size_t at = 0;
  for (int s = 0; s < segments.count(); ++s) {
    const int size = segments.size(s);
    if (size == 0) continue;
    for (int head = 0; head < heads; ++head) {
      f(segments.first(s), size, head, at);
      at += static_cast<std::size_t>(size) * static_cast<std::size_t>(padded(size));
    }
  }
}

std::size_t num_weights(const Segments& segments, int heads) {
  std::size_t count = 0;
  for_each_head(segments, heads, [&](int, int size, int, std::size_t at) {
    count = at + static_cast<std::size_t>(size) * static_cast<std::size_t>(padded(size));
  });
  return count;
}

template <typename T>
T score_scale(int depth) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(depth)));
}

}  // namespace

template <typename T>
Attention<T> Attention<T>::make(Parameters<T>* parameters, const std::string& name, int width,
                                int heads) {
  Attention layer;
  layer.width = width;
  layer.heads = heads;
  layer.project = {.in = width, .out = 3 * width};
  layer.project.weight = parameters->add(name + ".project.weight", width, 3 * width,
                                         {.bound = xavier_bound(width, 3 * width)});
  layer.project.bias = parameters->add(name + ".project.bias", 1, 3 * width, {.value = 0});
  layer.merge = {.in = width, .out = width};
  layer.merge.weight =
      parameters->add(name + ".merge.weight", width, width, {.bound = linear_bound(width)});
  layer.merge.bias = parameters->add(name + ".merge.bias", 1, width, {.value = 0});
  return layer;
}

template <typename T>
void Attention<T>::forward(const T* p, const Segments& segments, View<const T> x,
                           AttentionCache<T>* cache, View<T> y) const {
  const int depth = width / heads;
  cache->qkv.resize(x.rows, 3 * width);
  cache->mixed.resize(x.rows, width);
  cache->weights.resize(num_weights(segments, heads));
  project.forward(p, x, cache->qkv);
  Scratch<T> scratch(segments, depth);
  for_each_head(segments, heads, [&](int first, int size, int head, std::size_t at) {
    const Head<T> h = head_of<T>(cache->qkv, width, heads, first, size, head);
    T* const weights = cache->weights.data() + at;
    const int row = padded(size);
    small_product(size, depth, row, left(h.query), scratch.transpose(h.key), row, weights, row);
    softmax_rows(size, size, segments.valid == nullptr ? nullptr : segments.valid + first,
                 score_scale<T>(depth), weights);
    const View<T> mixed = cache->mixed.view().row_range(first, size);
    scratch.product(size, {weights, row, 1}, h.value, mixed.column_range(head * depth, depth));
  });
  merge.forward(p, cache->mixed, y);
}

template <typename T>
void Attention<T>::backward(const T* p, const Segments& segments, View<const T> x,
                            const AttentionCache<T>& cache, View<const T> dy, View<T> dx,
                            T* g) const {
  const int depth = width / heads;
  Matrix<T> d_mixed(x.rows, width);
  Matrix<T> d_qkv(x.rows, 3 * width);
  merge.backward(p, cache.mixed, dy, d_mixed, g);
  Scratch<T> scratch(segments, depth);
  for_each_head(segments, heads, [&](int first, int size, int head, std::size_t at) {
    const Head<T> h = head_of<T>(cache.qkv, width, heads, first, size, head);
    const T* const weights = cache.weights.data() + at;
    const int row = padded(size);
    const auto grad = [&](int which) {
      return d_qkv.view().row_range(first, size).column_range(which * width + head * depth, depth);
    };
    const View<const T> d_out =
        std::as_const(d_mixed).view().row_range(first, size).column_range(head * depth, depth);
    scratch.product(size, {weights, 1, row}, d_out, grad(2));
    T* const d_scores = scratch.square();
    small_product(size, depth, row, left(d_out), scratch.transpose(h.value), row, d_scores, row);
    softmax_rows_backward(size, size, weights, score_scale<T>(depth), d_scores);
    scratch.product(size, {d_scores, row, 1}, h.key, grad(0));
    scratch.product(size, {d_scores, 1, row}, h.query, grad(1));
  });
  project.backward(p, x, d_qkv, dx, g);
}

template struct Attention<float>;
template struct Attention<double>;

}  // namespace prunerc::costmodel::nn
