// relu: max(x, 0), in place.
#ifndef PRUNERC_COSTMODEL_NN_RELU_H_
#define PRUNERC_COSTMODEL_NN_RELU_H_

#include "costmodel/nn/matrix.h"

namespace prunerc::costmodel::nn {

template <typename T>
void relu(View<T> x) {
  for (int r = 0; r < x.rows; ++r) {
    T* const row = x.row(r);
    for (int c = 0; c < x.cols; ++c) row[c] = row[c] > 0 ? row[c] : 0;
  }
}

/// Of the output y: where y is 0, no gradient passes.
template <typename T>
void relu_backward(std::type_identity_t<View<const T>> y, View<T> dy) {
  for (int r = 0; r < dy.rows; ++r) {
    const T* const out = y.row(r);
    T* const row = dy.row(r);
    for (int c = 0; c < dy.cols; ++c) row[c] = out[c] > 0 ? row[c] : 0;
  }
}

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_RELU_H_
