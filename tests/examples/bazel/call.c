/* Calls the kernel and compares with a plain loop. */
#include "dense_relu.h"

#include <math.h>
#include <stdio.h>

enum { kM = 64, kN = 48, kK = 32 };
static float x[kM][kK], w[kK][kN], bias[kN], y[kM][kN];

int main(void) {
  for (int i = 0; i < kM; ++i) {
    for (int k = 0; k < kK; ++k) x[i][k] = (float)((i + k) % 11) / 11;
  }
  for (int k = 0; k < kK; ++k) {
    for (int j = 0; j < kN; ++j) w[k][j] = (float)((k + 3 * j) % 7) / 7 - 0.5F;
  }
  if (op_dense_relu(&x[0][0], &w[0][0], bias, &y[0][0]) != 0) {
    fprintf(stderr, "dense_relu: %s\n", op_dense_relu_error());
    return 1;
  }
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = bias[j];
      for (int k = 0; k < kK; ++k) sum += (double)x[i][k] * (double)w[k][j];
      if (fabs(y[i][j] - fmax(sum, 0)) > 1e-4) {
        printf("Y[%d,%d] is %g\n", i, j, y[i][j]);
        return 1;
      }
    }
  }
  printf("right\n");
  return 0;
}
