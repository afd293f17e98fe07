// Rule "winograd": convolutions with small windows by fewer products.
#ifndef PRUNERC_SEARCH_ALGEBRA_WINOGRAD_H_
#define PRUNERC_SEARCH_ALGEBRA_WINOGRAD_H_

#include "search/algebra/lift.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::search::algebra {

/// y = A ((G g) * (B d)) / scale for m outputs of an r-tap correlation, with n = m + r - 1 products:
/// all matrices in integers, so that nothing but the last division rounds a weight.
/// Shapes: A [m][n], B [n][n], G [n][r].
struct ToomCook {
  std::vector<std::vector<int64_t>> a, b, g;
  int64_t scale = 1;
};

/// At the points 0, 1, -1, 2, -2, .. and infinity. m and r at least 2, m + r at most 8.
/// Source: Winograd, Arithmetic Complexity of Computations (1980); Lavin and Gray, CVPR 2016.
ToomCook toom_cook(int m, int r);

/// Computes each convolution whose window of two r-tap axes moves by 1, with at least
/// kMinWinogradChannels in and out, in tiles of m x m outputs, channels last. What depends on the
/// weights alone is a nest of its own, so that const weights are transformed ahead. Says in words
/// what was done, "" if there is no such convolution.
std::string winograd(Spec& spec, int m);
inline constexpr int64_t kMinWinogradChannels = 32;

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_WINOGRAD_H_
