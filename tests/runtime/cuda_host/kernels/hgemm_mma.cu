// C[M, N] = A[M, K] * B[K, N], f16 to f32: mma.sync and ldmatrix on 64x64 tiles that three stages of
// cp.async bring in, XOR swizzle, ragged M. N and K are multiples of 64 and 32.
constexpr int BM = 64, BN = 64, BK = 32, STAGES = 3;
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;

// A row of a tile holds chunks of 16 bytes; chunk c of row r lies where r moves it.
PR_FN int chunk_of_a(int r, int c) { return (r * 4 + (c ^ (r >> 1 & 3))) * 16; }
PR_FN int chunk_of_b(int r, int c) { return (r * 8 + (c ^ (r & 7))) * 16; }

PR_FN void load_stage(unsigned char* as, unsigned char* bs, const pr_f16* a, const pr_f16* b, int m0,
                      int n0, int k0, int tid) {
  for (int e = tid; e < BM * 4; e += 128) {
    const int r = e / 4, c = e % 4;
    const bool valid = m0 + r < M;
    pr_cp_async_zfill<16>(as + chunk_of_a(r, c), valid ? a + (m0 + r) * K + k0 + c * 8 : a, valid);
  }
  for (int e = tid; e < BK * 8; e += 128) {
    const int r = e / 8, c = e % 8;
    pr_cp_async<16>(bs + chunk_of_b(r, c), b + (k0 + r) * N + n0 + c * 8);
  }
}

PR_KERNEL(128, 1) void hgemm(const pr_f16* PR_RESTRICT a, const pr_f16* PR_RESTRICT b,
                             float* PR_RESTRICT c) {
  PR_SHARED(smem, STAGES * (A_BYTES + B_BYTES));
  unsigned char* const as = smem;
  unsigned char* const bs = smem + STAGES * A_BYTES;
  const int tid = pr_thread_x(), lane = tid % 32, warp = tid / 32;
  const int wm = warp % 2 * 32, wn = warp / 2 * 32;
  const int m0 = pr_block_y() * BM, n0 = pr_block_x() * BN;
  float acc[2][4][4];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s * BK < K) load_stage(as + s * A_BYTES, bs + s * B_BYTES, a, b, m0, n0, s * BK, tid);
    pr_cp_async_commit();
  }
  for (int t = 0; t < K / BK; ++t) {
    pr_cp_async_wait<STAGES - 2>();
    pr_sync();
    const int next = t + STAGES - 1;
    if (next < K / BK)
      load_stage(as + next % STAGES * A_BYTES, bs + next % STAGES * B_BYTES, a, b, m0, n0, next * BK,
                 tid);
    pr_cp_async_commit();
    const unsigned char* const at = as + t % STAGES * A_BYTES;
    const unsigned char* const bt = bs + t % STAGES * B_BYTES;
    for (int kk = 0; kk < 2; ++kk) {
      unsigned fa[2][4], fb[2][4];
      for (int i = 0; i < 2; ++i)
        pr_ldmatrix_x4(fa[i], at + chunk_of_a(wm + i * 16 + lane % 16, kk * 2 + lane / 16));
      for (int j = 0; j < 2; ++j)
        pr_ldmatrix_x4_trans(fb[j], bt + chunk_of_b(kk * 16 + lane % 16, wn / 8 + j * 2 + lane / 16));
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) {
          const unsigned half[2] = {fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]};
          pr_mma_m16n8k16_f16(acc[i][j], fa[i], half);
        }
    }
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e) {
        const int r = m0 + wm + i * 16 + e / 2 * 8 + lane / 4;
        if (r < M) c[r * N + n0 + wn + j * 8 + lane % 4 * 2 + e % 2] = acc[i][j][e];
      }
}
