// Eigen, compiled for the machine that builds it: row loops over Eigen expressions, its own GEMM,
// OpenMP threads.
#undef EIGEN_DONT_PARALLELIZE
#include "tests/bench/cpu/peer.h"

#include <Eigen/Core>
#include <omp.h>

#include <cmath>

namespace prunerc::bench {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix, Eigen::Aligned64>;
using Row = Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>, Eigen::Aligned64>;

constexpr float kEpsilon = 1e-5F;

Peer make_gemm(const Case& which, Tensors& t) {
  const bool dense = which.kind == Kind::kDenseRelu;
  const auto [m, n, k, unused0, unused1, unused2, unused3] = which.dims;
  const int64_t rows = m;
  const int64_t columns = n;
  const int64_t depth = k;
  Peer peer;
  peer.run = [&t, rows, columns, depth, dense] {
    const View a(t.inputs[0].get(), rows, depth);
    const View b(t.inputs[1].get(), depth, columns);
    View c(t.output.get(), rows, columns);
    c.noalias() = a * b;
    if (!dense) return;
    const Row bias(t.inputs[2].get(), columns);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; ++i) c.row(i).array() = (c.row(i).array() + bias).max(0.0F);
  };
  return peer;
}

Peer make_softmax(const Case& which, Tensors& t) {
  const int64_t rows = which.dims[0];
  const int64_t columns = which.dims[1];
  Peer peer;
  peer.run = [&t, rows, columns] {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
      const Row in(t.inputs[0].get() + i * columns, columns);
      Row out(t.output.get() + i * columns, columns);
      out = (in - in.maxCoeff()).exp();
      out *= 1 / out.sum();
    }
  };
  return peer;
}

Peer make_layer_norm(const Case& which, Tensors& t) {
  const int64_t rows = which.dims[0];
  const int64_t columns = which.dims[1];
  Peer peer;
  peer.run = [&t, rows, columns] {
    const Row scale(t.inputs[1].get(), columns);
    const Row shift(t.inputs[2].get(), columns);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
      const Row in(t.inputs[0].get() + i * columns, columns);
      Row out(t.output.get() + i * columns, columns);
      const float mean = in.mean();
      const float inverse = 1 / std::sqrt((in - mean).square().mean() + kEpsilon);
      out = (in - mean) * inverse * scale + shift;
    }
  };
  return peer;
}

}  // namespace

std::optional<Peer> make_eigen(const Case& which, Tensors& tensors, int num_threads) {
  omp_set_num_threads(num_threads);
  Eigen::setNbThreads(num_threads);
  switch (which.kind) {
    case Kind::kGemm:
    case Kind::kDenseRelu: return make_gemm(which, tensors);
    case Kind::kSoftmax: return make_softmax(which, tensors);
    case Kind::kLayerNorm: return make_layer_norm(which, tensors);
    case Kind::kConv:
    case Kind::kDepthwise: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace prunerc::bench
