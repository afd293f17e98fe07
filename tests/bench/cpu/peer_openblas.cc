#include "tests/bench/cpu/peer.h"

#include <cblas.h>

#include <algorithm>

namespace prunerc::bench {

std::optional<Peer> make_openblas(const Case& which, Tensors& tensors, int num_threads) {
  if (which.kind != Kind::kGemm && which.kind != Kind::kDenseRelu) return std::nullopt;
  openblas_set_num_threads(num_threads);
  const auto m = static_cast<blasint>(which.dims[0]);
  const auto n = static_cast<blasint>(which.dims[1]);
  const auto k = static_cast<blasint>(which.dims[2]);
  const bool dense = which.kind == Kind::kDenseRelu;
  Peer peer;
  peer.run = [&tensors, m, n, k, dense] {
    const float* a = tensors.inputs[0].get();
    const float* b = tensors.inputs[1].get();
    float* c = tensors.output.get();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
    if (!dense) return;
    const float* bias = tensors.inputs[2].get();
    for (int64_t i = 0; i < m; ++i) {
      float* row = c + i * n;
      for (int64_t j = 0; j < n; ++j) row[j] = std::max(row[j] + bias[j], 0.0F);
    }
  };
  return peer;
}

}  // namespace prunerc::bench
