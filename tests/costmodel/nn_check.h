// What tests of the neural library share: random matrices, and gradients against differences.
#ifndef PRUNERC_TESTS_COSTMODEL_NN_CHECK_H_
#define PRUNERC_TESTS_COSTMODEL_NN_CHECK_H_

#include "costmodel/nn/matrix.h"
#include "costmodel/nn/parameters.h"
#include "costmodel/nn/segments.h"
#include "ir/support/rng.h"
#include "tests/support/check.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace prunerc::testing {

template <typename T>
using Numbers = costmodel::nn::Matrix<T>;

/// Uniform in [-1, 1).
template <typename T>
Numbers<T> random_matrix(Rng& rng, int rows, int cols) {
  Numbers<T> m(rows, cols);
  for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] = static_cast<T>(2 * rng.uniform() - 1);
  return m;
}

/// Offsets of segments of 0 to `most` rows, an empty one and one of a single row among them.
inline std::vector<int32_t> random_offsets(Rng& rng, int most) {
  std::vector<int32_t> begin = {0, 0, 1};
  const auto count = rng.between(1, 4);
  for (int64_t i = 0; i < count; ++i) {
    begin.push_back(begin.back() + static_cast<int32_t>(rng.between(0, most)));
  }
  return begin;
}

template <typename T>
std::span<T> span_of(Numbers<T>& m) {
  return {m.data(), m.size()};
}

/// The sum of products: a loss whose gradient by `m` is `factors`.
template <typename T>
double weighted_sum(const Numbers<T>& m, const Numbers<T>& factors) {
  double sum = 0;
  for (std::size_t i = 0; i < m.size(); ++i) {
    sum += static_cast<double>(m.data()[i]) * static_cast<double>(factors.data()[i]);
  }
  return sum;
}

/// Steps of differences, and how far gradients may be off: in double each by 1e-4 of the larger of
/// it and a thousandth of the largest; in float all together by 1e-2 of their norm. A step that
/// floats can tell crosses a kink of relu now and then, which the two halves of the step show.
template <typename T>
struct Precision;
template <>
struct Precision<double> {
  static constexpr double kStep = 1e-6, kTolerance = 1e-4;
};
template <>
struct Precision<float> {
  static constexpr double kStep = 2e-3, kTolerance = 1e-2;
};

constexpr double kMostBend = 0.02;

/// `gradient` is that of `loss` by `values`, which `loss` reads: compared with central differences
/// at up to `most` places.
template <typename T>
void check_gradient(Rng& rng, const std::function<double()>& loss, std::span<T> values,
                    std::type_identity_t<std::span<const T>> gradient, std::size_t most = 40) {
  REQUIRE(values.size() == gradient.size());
  double largest = 0;
  for (const T g : gradient) largest = std::max(largest, std::abs(static_cast<double>(g)));
  double off = 0, all = 0;
  std::size_t bent = 0;
  for (std::size_t k = 0; k < std::min(most, values.size()); ++k) {
    const std::size_t i =
        values.size() <= most ? k : static_cast<std::size_t>(rng.below(values.size()));
    const T old = values[i];
    values[i] = old + static_cast<T>(Precision<T>::kStep);
    const double up = static_cast<double>(values[i]), high = loss();
    values[i] = old - static_cast<T>(Precision<T>::kStep);
    const double low = loss();
    const double step = up - static_cast<double>(values[i]);
    values[i] = old;
    const double bend = std::abs(high + low - 2 * loss()) / std::abs(high - low);
    if (bend > kMostBend && ++bent <= 1 + most / 4) continue;
    const double found = (high - low) / step, given = static_cast<double>(gradient[i]);
    off += (found - given) * (found - given);
    all += std::max(found * found, given * given);
    if (std::is_same_v<T, double>) {
      const double scale = std::max({std::abs(found), std::abs(given), 1e-3 * largest, 1e-6});
      INFO("at " << i << ": differences " << found << ", gradient " << given);
      CHECK(std::abs(found - given) <= Precision<T>::kTolerance * scale);
    }
  }
  INFO("difference " << std::sqrt(off) << " of " << std::sqrt(all));
  CHECK(std::sqrt(off) <= Precision<T>::kTolerance * std::sqrt(all) + 1e-5);
}

/// Gradients of a layer by its parameters and by its input. `forward` reads both and returns the
/// output; `backward` takes the output's gradient, writes the input's and adds the parameters'.
template <typename T>
void check_layer(Rng& rng, costmodel::nn::Parameters<T>* parameters, Numbers<T>* x,
                 const std::function<Numbers<T>()>& forward,
                 const std::function<void(const Numbers<T>&, Numbers<T>*, T*)>& backward) {
  for (T& value : parameters->values) value = static_cast<T>(2 * rng.uniform() - 1);
  const Numbers<T> y = forward();
  const Numbers<T> factors = random_matrix<T>(rng, y.rows(), y.cols());
  Numbers<T> dx(x->rows(), x->cols());
  costmodel::nn::Vector<T> g(parameters->values.size(), 0);
  backward(factors, &dx, g.data());
  const auto loss = [&] { return weighted_sum(forward(), factors); };
  check_gradient<T>(rng, loss, parameters->values, g);
  check_gradient<T>(rng, loss, span_of(*x), span_of(dx));
}

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_COSTMODEL_NN_CHECK_H_
