/* Calls the kernel and checks that each row of what it gives sums to one. */
#include "softmax.h"

#include <math.h>
#include <stdio.h>

enum { kM = 32, kN = 100 };
static float x[kM][kN], y[kM][kN];

int main(void) {
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) x[i][j] = (float)((i + j) % 13) - 6;
  }
  if (op_softmax(&x[0][0], &y[0][0]) != 0) {
    fprintf(stderr, "softmax: %s\n", op_softmax_error());
    return 1;
  }
  for (int i = 0; i < kM; ++i) {
    double total = 0;
    for (int j = 0; j < kN; ++j) total += y[i][j];
    if (fabs(total - 1) > 1e-5) {
      printf("row %d sums to %g\n", i, total);
      return 1;
    }
  }
  printf("right\n");
  return 0;
}
