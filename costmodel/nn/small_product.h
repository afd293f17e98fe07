// small_product: products of matrices of some tens of rows and columns, as attention has thousands
// of; Eigen's general product spends more on packing them than on multiplying.
#ifndef PRUNERC_COSTMODEL_NN_SMALL_PRODUCT_H_
#define PRUNERC_COSTMODEL_NN_SMALL_PRODUCT_H_

#include <cstddef>
#include <cstring>

namespace prunerc::costmodel::nn {

/// Columns are worked on so many at a time; who calls pads to a multiple.
inline constexpr int kLanes = 8;
constexpr int padded(int count) { return (count + kLanes - 1) / kLanes * kLanes; }

/// The left factor: element (r, k) is data[r * row + k * step], so that its transpose costs
/// nothing.
template <typename T>
struct LeftFactor {
  const T* data;
  std::ptrdiff_t row;
  std::ptrdiff_t step;
};

namespace internal {

template <typename T>
struct LanesOf {
  typedef T Type __attribute__((vector_size(kLanes * sizeof(T))));
};

template <int kRows, typename T>
void product_rows(int depth, LeftFactor<T> a, const T* b, std::ptrdiff_t b_row, T* c,
                  std::ptrdiff_t c_row) {
  using Lanes = typename LanesOf<T>::Type;
  Lanes sums[kRows] = {};
  for (int k = 0; k < depth; ++k) {
    Lanes right;
    std::memcpy(&right, b + k * b_row, sizeof right);
    const T* const left = a.data + k * a.step;
    for (int r = 0; r < kRows; ++r) sums[r] += left[r * a.row] * right;
  }
  for (int r = 0; r < kRows; ++r) std::memcpy(c + r * c_row, &sums[r], sizeof sums[r]);
}

}  // namespace internal

/// c = a b for a of [rows, depth] and b of [depth, cols]; cols is a multiple of kLanes.
template <typename T>
void small_product(int rows, int depth, int cols, LeftFactor<T> a, const T* b, std::ptrdiff_t b_row,
                   T* c, std::ptrdiff_t c_row) {
  constexpr int kBlock = 8;
  for (int first = 0; first < cols; first += kLanes) {
    int r = 0;
    const auto left = [&] { return LeftFactor<T>{a.data + r * a.row, a.row, a.step}; };
    for (; r + kBlock <= rows; r += kBlock) {
      internal::product_rows<kBlock>(depth, left(), b + first, b_row, c + r * c_row + first, c_row);
    }
    for (; r + 2 <= rows; r += 2) {
      internal::product_rows<2>(depth, left(), b + first, b_row, c + r * c_row + first, c_row);
    }
    if (r < rows) {
      internal::product_rows<1>(depth, left(), b + first, b_row, c + r * c_row + first, c_row);
    }
  }
}

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_SMALL_PRODUCT_H_
