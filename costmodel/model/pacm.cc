#include "costmodel/model/pacm.h"

#include "costmodel/nn/relu.h"

#include <string>
#include <utility>

namespace prunerc::costmodel::model {
namespace {

using nn::Matrix;
using nn::View;

// to += from
template <typename T>
void add(const Matrix<T>& from, Matrix<T>* to) {
  T* const out = to->data();
  const T* const in = from.data();
  for (std::size_t i = 0; i < from.size(); ++i) out[i] += in[i];
}

// m = relu(layer(x))
template <typename T>
void linear_relu(const nn::Linear<T>& layer, const T* p, View<const T> x, Matrix<T>* m) {
  m->resize(x.rows, layer.out);
  layer.forward(p, x, *m);
  nn::relu(m->view());
}

template <typename T>
void forward_flow(const Pacm<T>& net, const T* p, const BatchView<T>& in, PacmCache<T>* cache,
                  View<T> pooled) {
  linear_relu(net.flow1, p, in.flow, &cache->flow1);
  const int rows = in.flow.rows, width = net.flow2.out;
  cache->flow2.resize(rows, width);
  net.flow2.forward(p, cache->flow1, cache->flow2);
  net.positions.forward(p, in.flow_segments, cache->flow2);
  cache->normed.resize(rows, width);
  net.norm.forward(p, cache->flow2, &cache->norm, cache->normed);
  cache->attended.resize(rows, width);
  net.attention.forward(p, in.flow_segments, cache->normed, &cache->attention, cache->attended);
  add(cache->flow2, &cache->attended);
  net.pool.forward(p, in.flow_segments, cache->attended, &cache->pool, pooled);
}

template <typename T>
void backward_flow(const Pacm<T>& net, const T* p, const BatchView<T>& in,
                   const PacmCache<T>& cache, View<const T> d_pooled, T* g) {
  const int rows = in.flow.rows, width = net.flow2.out;
  Matrix<T> d(rows, width), d_normed(rows, width), d_flow2(rows, width);
  net.pool.backward(p, in.flow_segments, cache.attended, cache.pool, d_pooled, d, g);
  net.attention.backward(p, in.flow_segments, cache.normed, cache.attention, d, d_normed, g);
  net.norm.backward(p, cache.norm, d_normed, d_flow2, g);
  add(d, &d_flow2);
  net.positions.backward(in.flow_segments, d_flow2, g);
  d.resize(rows, net.flow1.out);
  net.flow2.backward(p, cache.flow1, d_flow2, d, g);
  nn::relu_backward(cache.flow1, d.view());
  net.flow1.backward(p, in.flow, d, {}, g);
}

}  // namespace

template <typename T>
Pacm<T> Pacm<T>::make(nn::Parameters<T>* parameters, const NetworkOptions& o) {
  using Linear = nn::Linear<T>;
  Pacm net;
  net.options = o;
  net.statements =
      StatementTower<T>::make(parameters, "statement", o.statement_inputs, o.statement_width);
  net.flow1 = Linear::make(parameters, "flow.0", o.flow_inputs, o.flow_width);
  net.flow2 = Linear::make(parameters, "flow.1", o.flow_width, o.flow_width);
  net.positions = nn::Positions<T>::make(parameters, "flow.positions", o.positions, o.flow_width);
  net.norm = nn::LayerNorm<T>::make(parameters, "flow.norm", o.flow_width);
  net.attention = nn::Attention<T>::make(parameters, "flow.attention", o.flow_width, o.heads);
  net.pool = nn::AttentionPool<T>::make(parameters, "flow.pool", o.flow_width, o.heads);
  int joined = o.statement_width + o.flow_width;
  if (o.context_inputs > 0) {
    net.context = Linear::make(parameters, "context", o.context_inputs, o.context_width);
    joined += o.context_width;
  }
  net.join = Linear::make(parameters, "join", joined, o.width);
  for (int i = 0; i < o.blocks; ++i) {
    net.blocks.push_back(
        nn::Residual<T>::make(parameters, "block." + std::to_string(i), o.width, nn::Norm::kLayer));
  }
  net.head = Linear::make(parameters, "head", o.width, net.num_outputs());
  return net;
}

template <typename T>
void Pacm<T>::forward(const T* p, const BatchView<T>& in, Cache* cache, View<T> out) const {
  cache->joined.resize(in.programs, join.in);
  const View<T> joined = cache->joined;
  statements.forward(p, in.statement_segments, in.statements, &cache->statements,
                     joined.column_range(0, options.statement_width));
  forward_flow(*this, p, in, cache,
               joined.column_range(options.statement_width, options.flow_width));
  if (options.context_inputs > 0) {
    const View<T> part =
        joined.column_range(options.statement_width + options.flow_width, options.context_width);
    context.forward(p, in.context, part);
    nn::relu(part);
  }
  cache->hidden.resize(blocks.size() + 1);
  cache->blocks.resize(blocks.size());
  linear_relu<T>(join, p, cache->joined, &cache->hidden[0]);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    cache->hidden[i + 1].resize(in.programs, options.width);
    blocks[i].forward(p, cache->hidden[i], &cache->blocks[i], cache->hidden[i + 1]);
  }
  head.forward(p, cache->hidden.back(), out);
}

template <typename T>
void Pacm<T>::backward(const T* p, const BatchView<T>& in, Cache* cache, View<const T> d_out,
                       T* g) const {
  Matrix<T> d(in.programs, options.width), before(in.programs, options.width);
  head.backward(p, cache->hidden.back(), d_out, d, g);
  for (std::size_t i = blocks.size(); i-- > 0;) {
    blocks[i].backward(p, cache->hidden[i], cache->blocks[i], d, before, g);
    std::swap(d, before);
  }
  nn::relu_backward(cache->hidden[0], d.view());
  Matrix<T> d_joined(in.programs, join.in);
  join.backward(p, cache->joined, d, d_joined, g);
  const View<T> joined = d_joined;
  statements.backward(p, in.statement_segments, in.statements, cache->statements,
                      joined.column_range(0, options.statement_width), g);
  backward_flow<T>(*this, p, in, *cache,
                   joined.column_range(options.statement_width, options.flow_width), g);
  if (options.context_inputs > 0) {
    const int first = options.statement_width + options.flow_width;
    const View<T> part = joined.column_range(first, options.context_width);
    nn::relu_backward(cache->joined.view().column_range(first, options.context_width), part);
    context.backward(p, in.context, part, {}, g);
  }
}

template struct Pacm<float>;
template struct Pacm<double>;

}  // namespace prunerc::costmodel::model
