#include "costmodel/nn/attention.h"
#include "costmodel/nn/batch_norm.h"
#include "costmodel/nn/layer_norm.h"
#include "costmodel/nn/linear.h"
#include "costmodel/nn/pooling.h"
#include "costmodel/nn/positions.h"
#include "costmodel/nn/relu.h"
#include "costmodel/nn/residual.h"
#include "tests/costmodel/nn_check.h"

namespace prunerc {
namespace {

using namespace costmodel::nn;  // NOLINT: a test
using namespace testing;        // NOLINT: a test

constexpr int kCases = 12;

// Calls f(rng) for each random case.
template <typename F>
void for_cases(F&& f) {
  for (int i = 0; i < num_cases(kCases); ++i) {
    const uint64_t seed = first_seed() + static_cast<uint64_t>(i);
    INFO("PRUNERC_SEED=" << seed);
    Rng rng(seed);
    f(rng);
  }
}

int some(Rng& rng, int low, int high) { return static_cast<int>(rng.between(low, high)); }

TEMPLATE_TEST_CASE("gradients of linear layers are those of differences", "", float, double) {
  using T = TestType;
  for_cases([](Rng& rng) {
    Parameters<T> p;
    const auto layer = Linear<T>::make(&p, "x", some(rng, 1, 20), some(rng, 1, 20));
    auto x = random_matrix<T>(rng, some(rng, 0, 12), layer.in);
    check_layer<T>(
        rng, &p, &x,
        [&] {
          Matrix<T> y(x.rows(), layer.out);
          layer.forward(p.values.data(), x, y);
          return y;
        },
        [&](const Matrix<T>& dy, Matrix<T>* dx, T* g) {
          layer.backward(p.values.data(), x, dy, *dx, g);
        });
  });
}

TEMPLATE_TEST_CASE("gradients of layer norms are those of differences", "", float, double) {
  using T = TestType;
  for_cases([](Rng& rng) {
    Parameters<T> p;
    const auto layer = LayerNorm<T>::make(&p, "x", some(rng, 2, 20));
    auto x = random_matrix<T>(rng, some(rng, 0, 12), layer.width);
    LayerNormCache<T> cache;
    check_layer<T>(
        rng, &p, &x,
        [&] {
          Matrix<T> y(x.rows(), layer.width);
          layer.forward(p.values.data(), x, &cache, y);
          return y;
        },
        [&](const Matrix<T>& dy, Matrix<T>* dx, T* g) {
          layer.backward(p.values.data(), cache, dy, *dx, g);
        });
  });
}

TEMPLATE_TEST_CASE("gradients of batch norms are those of differences, by either statistics", "",
                   float, double) {
  using T = TestType;
  for (const Statistics statistics : {Statistics::kBatch, Statistics::kRunning}) {
    for_cases([&](Rng& rng) {
      Parameters<T> p, buffers;
      const auto layer = BatchNorm<T>::make(&p, &buffers, "x", some(rng, 1, 10));
      for (T& value : buffers.values) value = static_cast<T>(0.5 + rng.uniform());
      auto x = random_matrix<T>(rng, some(rng, 3, 12), layer.width);
      BatchNormCache<T> cache;
      check_layer<T>(
          rng, &p, &x,
          [&] {
            Matrix<T> y(x.rows(), layer.width);
            layer.forward(p.values.data(), buffers.values.data(), statistics, x, &cache, y);
            return y;
          },
          [&](const Matrix<T>& dy, Matrix<T>* dx, T* g) {
            layer.backward(p.values.data(), cache, dy, *dx, g);
          });
    });
  }
}

TEST_CASE("running statistics of a batch norm become those of the batches") {
  Rng rng(1);
  Parameters<double> p, buffers;
  const auto layer = BatchNorm<double>::make(&p, &buffers, "x", 3);
  Matrix<double> x = random_matrix<double>(rng, 50, 3), y(50, 3), z(50, 3);
  for (int r = 0; r < 50; ++r) x(r, 1) = 5 + 3 * x(r, 1);
  BatchNormCache<double> cache;
  layer.forward(p.values.data(), buffers.values.data(), Statistics::kBatch, x, &cache, y);
  for (int i = 0; i < 300; ++i) layer.update_running(cache, buffers.values.data());
  layer.forward(p.values.data(), buffers.values.data(), Statistics::kRunning, x, &cache, z);
  // Running variances have the sample's correction of 50 / 49, those of a batch do not.
  const double ratio = std::sqrt(49.0 / 50);
  for (std::size_t i = 0; i < y.size(); ++i) {
    CHECK(z.data()[i] == Approx(ratio * y.data()[i]).margin(1e-4));
  }
}

TEST_CASE("by running statistics a row's result does not depend on the other rows") {
  Rng rng(2);
  Parameters<float> p, buffers;
  const auto layer = BatchNorm<float>::make(&p, &buffers, "x", 4);
  const auto x = random_matrix<float>(rng, 6, 4);
  Matrix<float> all(6, 4), one(1, 4);
  BatchNormCache<float> cache;
  layer.forward(p.values.data(), buffers.values.data(), Statistics::kRunning, x, &cache, all);
  for (int r = 0; r < 6; ++r) {
    layer.forward(p.values.data(), buffers.values.data(), Statistics::kRunning,
                  x.view().row_range(r, 1), &cache, one);
    for (int c = 0; c < 4; ++c) CHECK(one(0, c) == all(r, c));
  }
  // One row has no variance to learn from.
  const auto before = buffers;
  layer.forward(p.values.data(), buffers.values.data(), Statistics::kBatch,
                x.view().row_range(0, 1), &cache, one);
  layer.update_running(cache, buffers.values.data());
  CHECK(buffers == before);
}

TEMPLATE_TEST_CASE("gradients of attention are those of differences, with and without padding", "",
                   float, double) {
  using T = TestType;
  for (const bool has_padding : {false, true}) {
    for_cases([&](Rng& rng) {
      Parameters<T> p;
      const int heads = some(rng, 1, 3);
      const auto layer = Attention<T>::make(&p, "x", heads * some(rng, 1, 9), heads);
      const std::vector<int32_t> begin = random_offsets(rng, 11);
      std::vector<uint8_t> valid;
      for (int32_t r = 0; r < begin.back(); ++r) valid.push_back(rng.chance(0.6) ? 1 : 0);
      const Segments segments{begin, has_padding ? valid.data() : nullptr};
      auto x = random_matrix<T>(rng, begin.back(), layer.width);
      AttentionCache<T> cache;
      check_layer<T>(
          rng, &p, &x,
          [&] {
            Matrix<T> y(x.rows(), layer.width);
            layer.forward(p.values.data(), segments, x, &cache, y);
            return y;
          },
          [&](const Matrix<T>& dy, Matrix<T>* dx, T* g) {
            layer.backward(p.values.data(), segments, x, cache, dy, *dx, g);
          });
    });
  }
}

TEST_CASE("attention within segments is attention over padded sequences whose padding is masked") {
  for_cases([](Rng& rng) {
    Parameters<double> p;
    const auto layer = Attention<double>::make(&p, "x", 12, 3);
    p.initialise(7);
    constexpr int kLength = 10;
    const std::vector<int32_t> begin = random_offsets(rng, kLength);
    const auto x = random_matrix<double>(rng, begin.back(), 12);
    const int count = static_cast<int>(begin.size()) - 1;
    auto padded_x = random_matrix<double>(rng, count * kLength, 12);  // padding is noise
    std::vector<int32_t> padded_begin;
    std::vector<uint8_t> valid(static_cast<std::size_t>(count * kLength), 0);
    const Segments segments{begin};
    for (int i = 0; i <= count; ++i) padded_begin.push_back(i * kLength);
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < segments.size(i); ++j) {
        valid[static_cast<std::size_t>(i * kLength + j)] = 1;
        std::copy_n(x.row(segments.first(i) + j), 12, padded_x.row(i * kLength + j));
      }
    }
    const Segments padded_segments{padded_begin, valid.data()};
    AttentionCache<double> cache;
    Matrix<double> y(x.rows(), 12), padded_y(padded_x.rows(), 12);
    layer.forward(p.values.data(), segments, x, &cache, y);
    layer.forward(p.values.data(), padded_segments, padded_x, &cache, padded_y);
    Matrix<double> sums(count, 12), padded_sums(count, 12);
    sum_pool<double>(segments, y, sums);
    sum_pool<double>(padded_segments, padded_y, padded_sums);
    for (int i = 0; i < count; ++i) {
      for (int c = 0; c < 12; ++c) {
        CHECK(padded_sums(i, c) == Approx(sums(i, c)).margin(1e-12));
        for (int j = 0; j < segments.size(i); ++j) {
          CHECK(padded_y(i * kLength + j, c) == Approx(y(segments.first(i) + j, c)).margin(1e-12));
        }
      }
    }
  });
}

TEST_CASE("a segment's attention does not depend on its neighbours") {
  Rng rng(3);
  Parameters<float> p;
  const auto layer = Attention<float>::make(&p, "x", 16, 2);
  p.initialise(1);
  const std::vector<int32_t> begin = {0, 5, 9};
  auto x = random_matrix<float>(rng, 9, 16);
  Matrix<float> y(9, 16), z(9, 16);
  AttentionCache<float> cache;
  layer.forward(p.values.data(), {begin}, x, &cache, y);
  for (int r = 5; r < 9; ++r) x(r, 0) += 1;
  layer.forward(p.values.data(), {begin}, x, &cache, z);
  for (int c = 0; c < 16; ++c) {
    for (int r = 0; r < 5; ++r) CHECK(y(r, c) == z(r, c));
    CHECK(y(6, c) != z(6, c));
  }
}

TEMPLATE_TEST_CASE("gradients of pools are those of differences", "", float, double) {
  using T = TestType;
  for_cases([](Rng& rng) {
    Parameters<T> p, none;
    const int heads = some(rng, 1, 3);
    const auto pool = AttentionPool<T>::make(&p, "x", heads * some(rng, 1, 9), heads);
    const std::vector<int32_t> begin = random_offsets(rng, 11);
    std::vector<uint8_t> valid;
    for (int32_t r = 0; r < begin.back(); ++r) valid.push_back(rng.chance(0.6) ? 1 : 0);
    const Segments segments{begin, rng.chance(0.5) ? valid.data() : nullptr};
    auto x = random_matrix<T>(rng, begin.back(), pool.width);
    AttentionPoolCache<T> cache;
    check_layer<T>(
        rng, &p, &x,
        [&] {
          Matrix<T> y(segments.count(), pool.width);
          pool.forward(p.values.data(), segments, x, &cache, y);
          return y;
        },
        [&](const Matrix<T>& dy, Matrix<T>* dx, T* g) {
          pool.backward(p.values.data(), segments, x, cache, dy, *dx, g);
        });
    check_layer<T>(
        rng, &none, &x,
        [&] {
          Matrix<T> y(segments.count(), pool.width);
          sum_pool<T>(segments, x, y);
          return y;
        },
        [&](const Matrix<T>& dy, Matrix<T>* dx, T*) { sum_pool_backward<T>(segments, dy, *dx); });
  });
}

TEST_CASE("segments without valid rows pool to zeros, a single row to itself") {
  Rng rng(4);
  Parameters<float> p;
  const auto pool = AttentionPool<float>::make(&p, "x", 8, 2);
  p.initialise(1);
  const std::vector<int32_t> begin = {0, 0, 1, 3};
  const uint8_t valid[] = {1, 0, 0};
  const auto x = random_matrix<float>(rng, 3, 8);
  Matrix<float> y(3, 8), sums(3, 8);
  AttentionPoolCache<float> cache;
  pool.forward(p.values.data(), {begin, valid}, x, &cache, y);
  sum_pool<float>({begin, valid}, x, sums);
  CHECK(y == sums);
  for (int c = 0; c < 8; ++c) {
    CHECK(y(0, c) == 0);
    CHECK(y(1, c) == x(0, c));
    CHECK(y(2, c) == 0);
  }
}

TEMPLATE_TEST_CASE("gradients of positions are those of differences, past the last place too", "",
                   float, double) {
  using T = TestType;
  for_cases([](Rng& rng) {
    Parameters<T> p;
    const auto layer = Positions<T>::make(&p, "x", some(rng, 1, 8), some(rng, 1, 8));
    const std::vector<int32_t> begin = random_offsets(rng, 11);
    auto x = random_matrix<T>(rng, begin.back(), layer.width);
    check_layer<T>(
        rng, &p, &x,
        [&] {
          Matrix<T> y = x;
          layer.forward(p.values.data(), {begin}, y);
          return y;
        },
        [&](const Matrix<T>& dy, Matrix<T>* dx, T* g) {
          *dx = dy;
          layer.backward({begin}, dy, g);
        });
  });
}

TEMPLATE_TEST_CASE("gradients of residual blocks are those of differences", "", float, double) {
  using T = TestType;
  for (const Norm norm : {Norm::kNone, Norm::kLayer}) {
    for_cases([&](Rng& rng) {
      Parameters<T> p;
      const int width = some(rng, 2, 20);
      const auto layer = Residual<T>::make(&p, "x", width, norm);
      auto x = random_matrix<T>(rng, some(rng, 1, 12), width);
      ResidualCache<T> cache;
      check_layer<T>(
          rng, &p, &x,
          [&] {
            Matrix<T> y(x.rows(), width);
            layer.forward(p.values.data(), x, &cache, y);
            return y;
          },
          [&](const Matrix<T>& dy, Matrix<T>* dx, T* g) {
            layer.backward(p.values.data(), x, cache, dy, *dx, g);
          });
    });
  }
}

TEST_CASE("a tensor's first values depend on seed and name, not on its place") {
  Parameters<float> a, b;
  a.add("first", 4, 4, {.bound = 1});
  const std::size_t in_a = a.add("second", 10, 10, {.bound = 0.25});
  const std::size_t in_b = b.add("second", 10, 10, {.bound = 0.25});
  a.initialise(5);
  b.initialise(5);
  double sum = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK(a.values[in_a + i] == b.values[in_b + i]);
    CHECK(std::abs(b.values[i]) <= 0.25F);
    sum += std::abs(static_cast<double>(b.values[i]));
  }
  CHECK(sum > 5);
  const auto before = b;
  b.initialise(6);
  CHECK_FALSE(b == before);
}

}  // namespace
}  // namespace prunerc
