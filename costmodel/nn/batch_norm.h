// BatchNorm: every column to mean 0 and variance 1 over the rows of a batch, or by running
// statistics.
#ifndef PRUNERC_COSTMODEL_NN_BATCH_NORM_H_
#define PRUNERC_COSTMODEL_NN_BATCH_NORM_H_

#include "costmodel/nn/matrix.h"
#include "costmodel/nn/parameters.h"

#include <string>
#include <vector>

namespace prunerc::costmodel::nn {

/// Whose mean and variance a pass uses.
enum class Statistics { kBatch, kRunning };

template <typename T>
struct BatchNormCache {
  Statistics statistics = Statistics::kBatch;
  Matrix<T> normal;       // [rows, width]: before factor and offset
  Vector<T> mean;         // [width], of the batch
  Vector<T> variance;     // [width], of the batch, without the sample's correction
  Vector<T> inverse_std;  // [width], as used
};

/// Shape: x, y are [rows, width]. `buffers` are numbers that are not trained: the running mean and
/// variance.
template <typename T>
struct BatchNorm {
  int width = 0;
  std::size_t factor = 0;
  std::size_t offset = 0;
  std::size_t running_mean = 0;
  std::size_t running_variance = 0;

  static BatchNorm make(Parameters<T>* parameters, Parameters<T>* buffers, const std::string& name,
                        int width);
  void forward(const T* p, const T* buffers, Statistics statistics, View<const T> x,
               BatchNormCache<T>* cache, View<T> y) const;
  void backward(const T* p, const BatchNormCache<T>& cache, View<const T> dy, View<T> dx,
                T* g) const;
  /// Moves the running statistics a tenth of the way to those of the batch, the variance with the
  /// sample's correction (PyTorch's defaults). A batch of one row has no variance and moves
  /// nothing.
  void update_running(const BatchNormCache<T>& cache, T* buffers) const;
};

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_BATCH_NORM_H_
