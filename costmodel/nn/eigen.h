// Views as Eigen's maps. Only for the .cc files of this folder.
#ifndef PRUNERC_COSTMODEL_NN_EIGEN_H_
#define PRUNERC_COSTMODEL_NN_EIGEN_H_

#include "costmodel/nn/matrix.h"

#include <Eigen/Core>

#include <type_traits>

namespace prunerc::costmodel::nn {

/// Eigen cuts products into blocks by the caches that it finds, so the order in which it adds would
/// depend on the machine. These sizes hold everywhere: one seed gives one search. Units: bytes.
inline const bool caches_fixed = (Eigen::setCpuCacheSizes(32 << 10, 1 << 20, 32 << 20), true);

template <typename T>
using Dense =
    Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename T>
using DenseMap = Eigen::Map<std::conditional_t<std::is_const_v<T>, const Dense<T>, Dense<T>>,
                            Eigen::Unaligned, Eigen::OuterStride<>>;

template <typename T>
DenseMap<T> map(View<T> v) {
  return DenseMap<T>(v.data, v.rows, v.cols, Eigen::OuterStride<>(v.stride));
}

template <typename T>
using RowArray = Eigen::Array<std::remove_const_t<T>, 1, Eigen::Dynamic>;

template <typename T>
using RowMap = Eigen::Map<std::conditional_t<std::is_const_v<T>, const RowArray<T>, RowArray<T>>>;

/// `count` numbers that lie one after the other.
template <typename T>
RowMap<T> row_map(T* data, std::ptrdiff_t count) {
  return RowMap<T>(data, count);
}

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_EIGEN_H_
