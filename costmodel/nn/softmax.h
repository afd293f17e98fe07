// softmax of rows that are padded to whole lanes.
#ifndef PRUNERC_COSTMODEL_NN_SOFTMAX_H_
#define PRUNERC_COSTMODEL_NN_SOFTMAX_H_

#include "costmodel/nn/eigen.h"
#include "costmodel/nn/small_product.h"

#include <algorithm>

namespace prunerc::costmodel::nn {

/// f over all lanes of `row`, then over the lanes.
template <typename T, typename F>
T fold_lanes(const T* row, int padded_count, T start, F&& f) {
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, start);
  for (int j = 0; j < padded_count; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = f(lanes[l], row[j + l]);
  }
  T result = lanes[0];
  for (int l = 1; l < kLanes; ++l) result = f(result, lanes[l]);
  return result;
}

/// Rows of `scores` to exponentials whose sum is 1. Padding and columns whose `valid` is 0 (null:
/// none) become 0; so does a row without a valid column.
/// Shape: scores is [rows, padded(cols)], in place.
template <typename T>
void softmax_rows(int rows, int cols, const uint8_t* valid, T scale, T* scores) {
  const int width = padded(cols);
  // Far below any score, yet finite: exponentials of differences stay numbers.
  constexpr T kNever = static_cast<T>(-1e30);
  const auto drop_invalid = [&](T* row, T value) {
    std::fill(row + cols, row + width, value);
    if (valid == nullptr) return;
    for (int j = 0; j < cols; ++j) row[j] = valid[j] != 0 ? row[j] : value;
  };
  for (int i = 0; i < rows; ++i) {
    T* const row = scores + static_cast<std::ptrdiff_t>(i) * width;
    drop_invalid(row, kNever);
    const T top = fold_lanes(row, width, kNever, [](T a, T b) { return a > b ? a : b; });
    for (int j = 0; j < width; ++j) row[j] = (row[j] - top) * scale;
  }
  auto all = row_map(scores, static_cast<std::ptrdiff_t>(rows) * width);
  all = all.exp();
  for (int i = 0; i < rows; ++i) {
    T* const row = scores + static_cast<std::ptrdiff_t>(i) * width;
    drop_invalid(row, 0);
    const T sum = fold_lanes(row, width, T{0}, [](T a, T b) { return a + b; });
    const T factor = sum > 0 ? 1 / sum : 0;
    for (int j = 0; j < width; ++j) row[j] *= factor;
  }
}

/// Gradients of the scores, from those of the softmax's weights, in place.
/// Shape: weights and d are [rows, padded(cols)].
template <typename T>
void softmax_rows_backward(int rows, int cols, const T* weights, T scale, T* d) {
  const int width = padded(cols);
  for (int i = 0; i < rows; ++i) {
    const T* const w = weights + static_cast<std::ptrdiff_t>(i) * width;
    T* const row = d + static_cast<std::ptrdiff_t>(i) * width;
    T lanes[kLanes] = {};
    for (int j = 0; j < width; j += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] += w[j + l] * row[j + l];
    }
    T mean = 0;
    for (const T lane : lanes) mean += lane;
    for (int j = 0; j < width; ++j) row[j] = w[j] * (row[j] - mean) * scale;
  }
}

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_SOFTMAX_H_
