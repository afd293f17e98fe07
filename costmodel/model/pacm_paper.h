// The network of the published Pruner, 417,409 parameters, with its batch norm.
#ifndef PRUNERC_COSTMODEL_MODEL_PACM_PAPER_H_
#define PRUNERC_COSTMODEL_MODEL_PACM_PAPER_H_

#include "costmodel/model/network.h"
#include "costmodel/model/statement_tower.h"
#include "costmodel/nn/attention.h"
#include "costmodel/nn/batch_norm.h"
#include "costmodel/nn/linear.h"
#include "costmodel/nn/residual.h"

#include <array>
#include <memory>

namespace prunerc::costmodel::model {

/// One shard's part before the batch norm: both branches and the layer that joins them.
template <typename T>
struct PaperEncoder {
  struct Cache {
    StatementTowerCache<T> statements;
    nn::Matrix<T> flow1, flow2;  // [steps, 64], [steps, 128], after relu
    nn::AttentionCache<T> attention;
    nn::Matrix<T> attended;  // [steps, 128]
    nn::Matrix<T> joined;    // [programs, 384]
  };
  StatementTower<T> statements;
  nn::Linear<T> flow1, flow2, join;
  nn::Attention<T> attention;

  static PaperEncoder make(nn::Parameters<T>* parameters, const NetworkOptions& options);
  /// encoded: [programs, 256].
  void forward(const T* p, const BatchView<T>& in, Cache* cache, nn::View<T> encoded) const;
  void backward(const T* p, const BatchView<T>& in, Cache* cache, nn::View<const T> encoded,
                nn::View<const T> d_encoded, T* g) const;
};

/// One shard's part after the batch norm, and all that tenset-mlp has after its statements:
/// residual blocks and one output.
template <typename T>
struct PaperHead {
  static constexpr int kBlocks = 2;
  struct Cache {
    std::array<nn::Matrix<T>, kBlocks> hidden;  // [programs, 256], after each block
    std::array<nn::ResidualCache<T>, kBlocks> blocks;
  };
  std::array<nn::Residual<T>, kBlocks> blocks;
  nn::Linear<T> out;

  static PaperHead make(nn::Parameters<T>* parameters);
  void forward(const T* p, nn::View<const T> x, Cache* cache, nn::View<T> y) const;
  void backward(const T* p, nn::View<const T> x, const Cache& cache, nn::View<const T> dy,
                nn::View<T> dx, T* g) const;
};

/// Rows of all published networks between their branches and their output.
inline constexpr int kPaperWidth = 256;

/// TenSetMLP: statements, residual blocks, no norm. A body of Sharded.
template <typename T>
struct TensetMlp {
  struct Cache {
    StatementTowerCache<T> statements;
    nn::Matrix<T> sums;  // [programs, 256]
    typename PaperHead<T>::Cache head;
  };
  StatementTower<T> statements;
  PaperHead<T> head;

  static TensetMlp make(nn::Parameters<T>* parameters, const NetworkOptions& options);
  int num_outputs() const { return 1; }
  void forward(const T* p, const BatchView<T>& in, Cache* cache, nn::View<T> out) const;
  void backward(const T* p, const BatchView<T>& in, Cache* cache, nn::View<const T> d_out,
                T* g) const;
};

template <typename T>
std::unique_ptr<Network<T>> make_pacm_paper(const NetworkOptions& options);

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_PACM_PAPER_H_
