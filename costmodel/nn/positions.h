// Positions: a learned row for each place of a segment, added to the row that stands there.
#ifndef PRUNERC_COSTMODEL_NN_POSITIONS_H_
#define PRUNERC_COSTMODEL_NN_POSITIONS_H_

#include "costmodel/nn/matrix.h"
#include "costmodel/nn/parameters.h"
#include "costmodel/nn/segments.h"

#include <string>

namespace prunerc::costmodel::nn {

/// Shape: x is [rows, width], in place. Rows past the last known place take its row.
template <typename T>
struct Positions {
  int count = 0;
  int width = 0;
  std::size_t table = 0;  // [count, width]

  static Positions make(Parameters<T>* parameters, const std::string& name, int count, int width);
  void forward(const T* p, const Segments& segments, View<T> x) const;
  /// The gradient passes to x as it is.
  void backward(const Segments& segments, View<const T> dy, T* g) const;
};

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_POSITIONS_H_
