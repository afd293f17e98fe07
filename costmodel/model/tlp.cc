#include "costmodel/model/tlp.h"

#include "costmodel/nn/pooling.h"
#include "costmodel/nn/relu.h"

#include <string>
#include <utility>
#include <vector>

namespace prunerc::costmodel::model {
namespace {

using nn::Matrix;
using nn::View;

constexpr int kWidth = 256;
constexpr int kHeads = 8;
constexpr int kUpWidths[] = {64, 128, 256, kWidth};
constexpr int kDownWidths[] = {128, 64, 1};

// Offsets of programs whose sequences all have one length.
template <typename T>
std::vector<int32_t> offsets(const BatchView<T>& in) {
  std::vector<int32_t> begin;
  for (int i = 0; i <= in.programs; ++i) begin.push_back(i * in.token_length);
  return begin;
}

}  // namespace

template <typename T>
Tlp<T> Tlp<T>::make(nn::Parameters<T>* parameters, const NetworkOptions& options) {
  Tlp net;
  int width = options.token_inputs;
  for (std::size_t i = 0; i < net.up.size(); ++i) {
    net.up[i] = nn::Linear<T>::make(parameters, "up." + std::to_string(i), width, kUpWidths[i]);
    width = kUpWidths[i];
  }
  net.attention = nn::Attention<T>::make(parameters, "attention", kWidth, kHeads);
  for (std::size_t i = 0; i < net.blocks.size(); ++i) {
    net.blocks[i] =
        nn::Residual<T>::make(parameters, "block." + std::to_string(i), kWidth, nn::Norm::kNone);
  }
  for (std::size_t i = 0; i < net.down.size(); ++i) {
    net.down[i] =
        nn::Linear<T>::make(parameters, "down." + std::to_string(i), width, kDownWidths[i]);
    width = kDownWidths[i];
  }
  return net;
}

template <typename T>
void Tlp<T>::forward(const T* p, const BatchView<T>& in, Cache* cache, View<T> out) const {
  const std::vector<int32_t> begin = offsets(in);
  const int rows = in.tokens.rows;
  View<const T> x = in.tokens;
  for (std::size_t i = 0; i < up.size(); ++i) {
    cache->up[i].resize(rows, up[i].out);
    up[i].forward(p, x, cache->up[i]);
    nn::relu(cache->up[i].view());
    x = cache->up[i];
  }
  for (Matrix<T>& hidden : cache->hidden) hidden.resize(rows, kWidth);
  attention.forward(p, {begin}, x, &cache->attention, cache->hidden[0]);
  for (std::size_t i = 0; i < cache->hidden[0].size(); ++i) {
    cache->hidden[0].data()[i] += cache->up.back().data()[i];
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].forward(p, cache->hidden[i], &cache->blocks[i], cache->hidden[i + 1]);
  }
  x = cache->hidden.back();
  for (std::size_t i = 0; i < down.size(); ++i) {
    cache->down[i].resize(rows, down[i].out);
    down[i].forward(p, x, cache->down[i]);
    if (i + 1 < down.size()) nn::relu(cache->down[i].view());
    x = cache->down[i];
  }
  nn::sum_pool({begin}, x, out);
}

template <typename T>
void Tlp<T>::backward(const T* p, const BatchView<T>& in, Cache* cache, View<const T> d_out,
                      T* g) const {
  const std::vector<int32_t> begin = offsets(in);
  const int rows = in.tokens.rows;
  Matrix<T> d(rows, 1), before;
  d.fill(0);
  nn::sum_pool_backward({begin}, d_out, d.view());
  for (std::size_t i = down.size(); i-- > 0;) {
    if (i + 1 < down.size()) nn::relu_backward(cache->down[i], d.view());
    before.resize(rows, down[i].in);
    const Matrix<T>& x = i > 0 ? cache->down[i - 1] : cache->hidden.back();
    down[i].backward(p, x, d, before, g);
    std::swap(d, before);
  }
  before.resize(rows, kWidth);
  for (std::size_t i = blocks.size(); i-- > 0;) {
    blocks[i].backward(p, cache->hidden[i], cache->blocks[i], d, before, g);
    std::swap(d, before);
  }
  attention.backward(p, {begin}, cache->up.back(), cache->attention, d, before, g);
  for (std::size_t i = 0; i < d.size(); ++i) d.data()[i] += before.data()[i];
  for (std::size_t i = up.size(); i-- > 0;) {
    nn::relu_backward(cache->up[i], d.view());
    if (i == 0) {
      up[i].backward(p, in.tokens, d, {}, g);
    } else {
      before.resize(rows, up[i].in);
      up[i].backward(p, cache->up[i - 1], d, before, g);
      std::swap(d, before);
    }
  }
}

template struct Tlp<float>;
template struct Tlp<double>;

}  // namespace prunerc::costmodel::model
