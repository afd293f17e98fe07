// Pacm: our pattern-aware network: statements, data flow in order, and the machine.
#ifndef PRUNERC_COSTMODEL_MODEL_PACM_H_
#define PRUNERC_COSTMODEL_MODEL_PACM_H_

#include "costmodel/model/batch.h"
#include "costmodel/model/options.h"
#include "costmodel/model/statement_tower.h"
#include "costmodel/nn/attention.h"
#include "costmodel/nn/layer_norm.h"
#include "costmodel/nn/linear.h"
#include "costmodel/nn/pooling.h"
#include "costmodel/nn/positions.h"
#include "costmodel/nn/residual.h"

#include <vector>

namespace prunerc::costmodel::model {

template <typename T>
struct PacmCache {
  StatementTowerCache<T> statements;
  nn::Matrix<T> flow1, flow2, normed, attended;  // [steps, flow_width]
  nn::LayerNormCache<T> norm;
  nn::AttentionCache<T> attention;
  nn::AttentionPoolCache<T> pool;
  nn::Matrix<T> joined;               // [programs, all three widths]
  std::vector<nn::Matrix<T>> hidden;  // [programs, width], before each block and after the last
  std::vector<nn::ResidualCache<T>> blocks;
};

/// Statements: two linear layers, summed, since times of statements add up. Flow: two linear
/// layers, positions, one block of attention on normed rows, pooled by a learned query. Context:
/// one linear layer. All three meet in a linear layer and residual blocks; two outputs, the score
/// and the log-latency.
template <typename T>
struct Pacm {
  using Cache = PacmCache<T>;
  NetworkOptions options;
  StatementTower<T> statements;
  nn::Linear<T> flow1, flow2, context, join, head;
  nn::Positions<T> positions;
  nn::LayerNorm<T> norm;
  nn::Attention<T> attention;
  nn::AttentionPool<T> pool;
  std::vector<nn::Residual<T>> blocks;

  static Pacm make(nn::Parameters<T>* parameters, const NetworkOptions& options);
  int num_outputs() const { return 2; }
  void forward(const T* p, const BatchView<T>& in, Cache* cache, nn::View<T> out) const;
  void backward(const T* p, const BatchView<T>& in, Cache* cache, nn::View<const T> d_out,
                T* g) const;
};

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_PACM_H_
