// StatementTower: what the published networks begin with: two linear layers over each statement,
// summed.
#ifndef PRUNERC_COSTMODEL_MODEL_STATEMENT_TOWER_H_
#define PRUNERC_COSTMODEL_MODEL_STATEMENT_TOWER_H_

#include "costmodel/nn/linear.h"
#include "costmodel/nn/pooling.h"
#include "costmodel/nn/relu.h"

#include <string>

namespace prunerc::costmodel::model {

template <typename T>
struct StatementTowerCache {
  nn::Matrix<T> hidden1, hidden2;  // [statements, width], after relu
};

/// Shape: x is [statements, inputs], y [programs, width].
template <typename T>
struct StatementTower {
  nn::Linear<T> first, second;

  static StatementTower make(nn::Parameters<T>* parameters, const std::string& name, int inputs,
                             int width) {
    StatementTower tower;
    tower.first = nn::Linear<T>::make(parameters, name + ".0", inputs, width);
    tower.second = nn::Linear<T>::make(parameters, name + ".1", width, width);
    return tower;
  }

  void forward(const T* p, const nn::Segments& segments, nn::View<const T> x,
               StatementTowerCache<T>* cache, nn::View<T> y) const {
    cache->hidden1.resize(x.rows, first.out);
    first.forward(p, x, cache->hidden1);
    nn::relu(cache->hidden1.view());
    cache->hidden2.resize(x.rows, second.out);
    second.forward(p, cache->hidden1, cache->hidden2);
    nn::relu(cache->hidden2.view());
    nn::sum_pool(segments, cache->hidden2, y);
  }

  void backward(const T* p, const nn::Segments& segments, nn::View<const T> x,
                const StatementTowerCache<T>& cache, nn::View<const T> dy, T* g) const {
    nn::Matrix<T> d2(x.rows, second.out), d1(x.rows, first.out);
    d2.fill(0);
    nn::sum_pool_backward(segments, dy, d2.view());
    nn::relu_backward(cache.hidden2, d2.view());
    second.backward(p, cache.hidden1, d2, d1, g);
    nn::relu_backward(cache.hidden1, d1.view());
    first.backward(p, x, d1, {}, g);
  }
};

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_STATEMENT_TOWER_H_
