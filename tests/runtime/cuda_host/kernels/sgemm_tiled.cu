// C[M, N] = A[M, K] * B[K, N] in f32: 64x64 tiles in shared memory, 4x4 results a thread, any shape.
constexpr int BM = 64, BN = 64, BK = 16;

PR_KERNEL(256, 1) void sgemm(const float* PR_RESTRICT a, const float* PR_RESTRICT b,
                             float* PR_RESTRICT c) {
  PR_SHARED(smem, (BM * BK + BK * BN) * 4);
  float* const as = (float*)smem;
  float* const bs = as + BM * BK;
  const int tid = pr_thread_x(), row = tid / 16 * 4, col = tid % 16 * 4;
  const int m0 = pr_block_y() * BM, n0 = pr_block_x() * BN;
  float acc[4][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) acc[i][j] = 0.0f;
  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int e = tid; e < BM * BK; e += 256) {
      const int i = m0 + e / BK, k = k0 + e % BK;
      as[e] = i < M && k < K ? a[i * K + k] : 0.0f;
    }
    for (int e = tid; e < BK * BN; e += 256) {
      const int k = k0 + e / BN, j = n0 + e % BN;
      bs[e] = k < K && j < N ? b[k * N + j] : 0.0f;
    }
    pr_sync();  // tiles are there
    for (int k = 0; k < BK; ++k)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) acc[i][j] += as[(row + i) * BK + k] * bs[k * BN + col + j];
    pr_sync();  // tiles are free
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      if (m0 + row + i < M && n0 + col + j < N)
        c[(m0 + row + i) * N + n0 + col + j] = acc[i][j];
}
