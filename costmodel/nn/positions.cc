#include "costmodel/nn/positions.h"

#include "costmodel/nn/eigen.h"

#include <algorithm>

namespace prunerc::costmodel::nn {
namespace {

/// Small beside what it is added to, so that training starts from the rows themselves.
constexpr double kBound = 0.05;

}  // namespace

template <typename T>
Positions<T> Positions<T>::make(Parameters<T>* parameters, const std::string& name, int count,
                                int width) {
  Positions layer{.count = count, .width = width};
  layer.table = parameters->add(name + ".table", count, width, {.bound = kBound});
  return layer;
}

template <typename T>
void Positions<T>::forward(const T* p, const Segments& segments, View<T> x) const {
  for (int i = 0; i < segments.count(); ++i) {
    for (int j = 0; j < segments.size(i); ++j) {
      const std::ptrdiff_t place = std::min(j, count - 1);
      row_map(x.row(segments.first(i) + j), width) += row_map(p + table + place * width, width);
    }
  }
}

template <typename T>
void Positions<T>::backward(const Segments& segments, View<const T> dy, T* g) const {
  for (int i = 0; i < segments.count(); ++i) {
    for (int j = 0; j < segments.size(i); ++j) {
      const std::ptrdiff_t place = std::min(j, count - 1);
      row_map(g + table + place * width, width) += row_map(dy.row(segments.first(i) + j), width);
    }
  }
}

template struct Positions<float>;
template struct Positions<double>;

}  // namespace prunerc::costmodel::nn
