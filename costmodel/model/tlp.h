// Tlp: the network over sequences of schedule primitives, as published for TenSet TLP.
#ifndef PRUNERC_COSTMODEL_MODEL_TLP_H_
#define PRUNERC_COSTMODEL_MODEL_TLP_H_

#include "costmodel/model/batch.h"
#include "costmodel/model/options.h"
#include "costmodel/nn/attention.h"
#include "costmodel/nn/linear.h"
#include "costmodel/nn/residual.h"

#include <array>

namespace prunerc::costmodel::model {

/// Tokens of fixed length: linear layers to 64, 128, 256, 256 with relu, one block of attention,
/// two residual blocks, linear layers to 128, 64, 1, summed over the tokens. A body of Sharded.
template <typename T>
struct Tlp {
  static constexpr int kUp = 4, kBlocks = 2, kDown = 3;
  struct Cache {
    std::array<nn::Matrix<T>, kUp> up;  // [tokens, 64 .. 256], after relu
    nn::AttentionCache<T> attention;
    std::array<nn::Matrix<T>, kBlocks + 1> hidden;  // [tokens, 256], before and after the blocks
    std::array<nn::ResidualCache<T>, kBlocks> blocks;
    std::array<nn::Matrix<T>, kDown> down;  // [tokens, 128, 64, 1], the last without relu
  };
  std::array<nn::Linear<T>, kUp> up;
  nn::Attention<T> attention;
  std::array<nn::Residual<T>, kBlocks> blocks;
  std::array<nn::Linear<T>, kDown> down;

  static Tlp make(nn::Parameters<T>* parameters, const NetworkOptions& options);
  int num_outputs() const { return 1; }
  void forward(const T* p, const BatchView<T>& in, Cache* cache, nn::View<T> out) const;
  void backward(const T* p, const BatchView<T>& in, Cache* cache, nn::View<const T> d_out,
                T* g) const;
};

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_TLP_H_
