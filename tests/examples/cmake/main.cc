// Calls two kernels, one linked statically and one shared, and checks what they give.
#include <dense_relu.h>
#include <softmax.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr int kM = 64, kN = 48, kK = 32;
constexpr int kRows = 32, kColumns = 100;

bool near(float found, double wanted) { return std::fabs(found - wanted) <= 1e-4; }

bool dense_relu_is_right() {
  std::vector<float> x(kM * kK), w(kK * kN), bias(kN, 0.5F), y(kM * kN, -1.0F);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) / 11;
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 7) / 7 - 0.5F;
  if (op_dense_relu(x.data(), w.data(), bias.data(), y.data()) != 0) {
    std::fprintf(stderr, "dense_relu: %s\n", op_dense_relu_error());
    return false;
  }
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = double{bias[j]};
      for (int k = 0; k < kK; ++k) sum += double{x[i * kK + k]} * double{w[k * kN + j]};
      if (!near(y[i * kN + j], std::max(sum, 0.0))) return false;
    }
  }
  return true;
}

bool softmax_is_right() {
  std::vector<float> x(kRows * kColumns), y(kRows * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) - 6;
  if (op_softmax(x.data(), y.data()) != 0) {
    std::fprintf(stderr, "softmax: %s\n", op_softmax_error());
    return false;
  }
  for (int i = 0; i < kRows; ++i) {
    double total = 0;
    for (int j = 0; j < kColumns; ++j) total += std::exp(double{x[i * kColumns + j]});
    for (int j = 0; j < kColumns; ++j) {
      if (!near(y[i * kColumns + j], std::exp(double{x[i * kColumns + j]}) / total)) return false;
    }
  }
  return true;
}

}  // namespace

int main() {
  const bool dense = dense_relu_is_right();
  const bool softmax = softmax_is_right();
  std::printf("dense_relu: %s\nsoftmax: %s\n", dense ? "right" : "WRONG",
              softmax ? "right" : "WRONG");
  return dense && softmax ? 0 : 1;
}
