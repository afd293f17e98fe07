#include "costmodel/nn/linear.h"

#include "costmodel/nn/eigen.h"

namespace prunerc::costmodel::nn {

template <typename T>
Linear<T> Linear<T>::make(Parameters<T>* parameters, const std::string& name, int in, int out) {
  const Init init = {.bound = linear_bound(in)};
  Linear layer{.in = in, .out = out};
  layer.weight = parameters->add(name + ".weight", in, out, init);
  layer.bias = parameters->add(name + ".bias", 1, out, init);
  return layer;
}

template <typename T>
void Linear<T>::forward(const T* p, View<const T> x, View<T> y) const {
  const View<const T> w{p + weight, in, out, out};
  for (int r = 0; r < y.rows; ++r) std::copy_n(p + bias, out, y.row(r));
  if (x.rows > 0) map(y).noalias() += map(x) * map(w);
}

template <typename T>
void Linear<T>::backward(const T* p, View<const T> x, View<const T> dy, View<T> dx, T* g) const {
  if (x.rows == 0) return;
  const View<const T> w{p + weight, in, out, out};
  const View<T> dw{g + weight, in, out, out};
  map(dw).noalias() += map(x).transpose() * map(dy);
  T* const db = g + bias;
  for (int r = 0; r < dy.rows; ++r) {
    const T* const row = dy.row(r);
    for (int c = 0; c < out; ++c) db[c] += row[c];
  }
  if (!dx.empty()) map(dx).noalias() = map(dy) * map(w).transpose();
}

template struct Linear<float>;
template struct Linear<double>;

}  // namespace prunerc::costmodel::nn
