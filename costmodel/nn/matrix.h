// Matrix, View: row-major numbers, and a window on some rows and columns of them. What layers take
// and give; products are Eigen's, inside the .cc files.
#ifndef PRUNERC_COSTMODEL_NN_MATRIX_H_
#define PRUNERC_COSTMODEL_NN_MATRIX_H_

#include <algorithm>
#include <cstddef>
#include <new>
#include <type_traits>
#include <vector>

namespace prunerc::costmodel::nn {

/// Memory at multiples of a cache line. Eigen works on what lies before the first aligned address
/// by other instructions than on the rest, so without this the last bits of results would depend on
/// addresses.
template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <typename U>
  LineAllocator(const LineAllocator<U>&) {}  // NOLINT: as allocators convert
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kLine));
  }
  void deallocate(T* data, std::size_t) { ::operator delete(data, kLine); }
  bool operator==(const LineAllocator&) const = default;
};

/// Numbers that layers work on.
template <typename T>
using Vector = std::vector<T, LineAllocator<T>>;

/// Borrowed. An empty view (no data) stands for "not wanted" where a function says so.
template <typename T>
struct View {
  T* data = nullptr;
  int rows = 0;
  int cols = 0;
  std::ptrdiff_t stride = 0;  // elements from one row to the next

  T* row(int r) const { return data + r * stride; }
  T& operator()(int r, int c) const { return row(r)[c]; }
  bool empty() const { return data == nullptr; }
  View row_range(int first, int count) const { return {row(first), count, cols, stride}; }
  View column_range(int first, int count) const { return {data + first, rows, count, stride}; }
  operator View<const T>() const  // NOLINT: as a pointer converts
      requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride};
  }
};

/// Rows without gaps. Shrinking keeps the memory, so that a workspace allocates once.
template <typename T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(int rows, int cols) { resize(rows, cols); }

  /// Old values are not kept in place.
  void resize(int rows, int cols) {
    rows_ = rows;
    cols_ = cols;
    data_.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  }
  /// Rows below those that are there; a matrix without rows takes their width.
  void append(View<const T> more) {
    if (rows_ == 0) cols_ = more.cols;
    for (int r = 0; r < more.rows; ++r) {
      data_.insert(data_.end(), more.row(r), more.row(r) + more.cols);
    }
    rows_ += more.rows;
  }
  void fill(T value) { std::fill(data_.begin(), data_.end(), value); }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  std::size_t size() const { return data_.size(); }
  T* data() { return data_.data(); }
  const T* data() const { return data_.data(); }
  T* row(int r) { return data() + static_cast<std::ptrdiff_t>(r) * cols_; }
  const T* row(int r) const { return data() + static_cast<std::ptrdiff_t>(r) * cols_; }
  T& operator()(int r, int c) { return row(r)[c]; }
  const T& operator()(int r, int c) const { return row(r)[c]; }
  View<T> view() { return {data(), rows_, cols_, cols_}; }
  View<const T> view() const { return {data(), rows_, cols_, cols_}; }
  operator View<T>() { return view(); }              // NOLINT: a matrix is its whole view
  operator View<const T>() const { return view(); }  // NOLINT: the same
  bool operator==(const Matrix&) const = default;

 private:
  int rows_ = 0;
  int cols_ = 0;
  Vector<T> data_;
};

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_MATRIX_H_
