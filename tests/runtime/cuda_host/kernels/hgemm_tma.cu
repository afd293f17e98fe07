// C[M, N] = A[M, K] * B[N, K]^T, f16 to f32, as on Hopper: one warpgroup brings tiles by TMA into a
// ring of stages, two multiply them by wgmma, blocks loop over tiles, C leaves by TMA. Any M and N.
constexpr int BM = 128, BN = 64, BK = 64, STAGES = 4, CONSUMERS = 2;
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, C_BYTES = 64 * BN * 4;
constexpr int TILES_N = (N + BN - 1) / BN, TILES = (M + BM - 1) / BM * TILES_N, KT = (K + BK - 1) / BK;
constexpr int C_AT = STAGES * (A_BYTES + B_BYTES), BARS_AT = C_AT + CONSUMERS * C_BYTES;

PR_KERNEL(384, 1) void hgemm(const PR_GRID_CONSTANT pr_tensor_map a,
                             const PR_GRID_CONSTANT pr_tensor_map b,
                             const PR_GRID_CONSTANT pr_tensor_map c) {
  PR_SHARED(smem, BARS_AT + STAGES * 16);
  unsigned char* const as = smem;
  unsigned char* const bs = smem + STAGES * A_BYTES;
  pr_u64* const full = (pr_u64*)(smem + BARS_AT);
  pr_u64* const empty = full + STAGES;
  const int group = pr_thread_x() / 128, t = pr_thread_x() % 128;
  if (pr_thread_x() == 0) {
    for (int s = 0; s < STAGES; ++s) {
      pr_mbar_init(&full[s], 1);
      pr_mbar_init(&empty[s], CONSUMERS);
    }
    pr_fence_mbar_init();
  }
  pr_sync();
  if (group == 0) {
    pr_reg_dec<40>();
    if (t == 0) {
      int s = 0, phase = 0;
      for (int tile = pr_block_x(); tile < TILES; tile += BLOCKS)
        for (int k = 0; k < KT; ++k) {
          pr_mbar_wait(&empty[s], phase ^ 1);
          pr_mbar_expect_tx(&full[s], A_BYTES + B_BYTES);
          pr_tma_load_2d(as + s * A_BYTES, &a, k * BK, tile / TILES_N * BM, &full[s]);
          pr_tma_load_2d(bs + s * B_BYTES, &b, k * BK, tile % TILES_N * BN, &full[s]);
          if (++s == STAGES) s = 0, phase ^= 1;
        }
    }
  } else {
    pr_reg_inc<232>();
    const int half = group - 1;
    float* const out = (float*)(smem + C_AT + half * C_BYTES);
    int s = 0, phase = 0;
    float d[BN / 2];
    for (int tile = pr_block_x(); tile < TILES; tile += BLOCKS) {
      for (int k = 0; k < KT; ++k) {
        pr_mbar_wait(&full[s], phase);
        pr_wgmma_fence();
        for (int kk = 0; kk < 4; ++kk)
          pr_wgmma<64, pr_f16>(
              d, pr_wgmma_desc(as + s * A_BYTES + half * 64 * 128 + kk * 32, 16, 1024, 128),
              pr_wgmma_desc(bs + s * B_BYTES + kk * 32, 16, 1024, 128), k > 0 || kk > 0);
        pr_wgmma_commit();
        pr_wgmma_wait<0>();
        if (t == 0) pr_mbar_arrive(&empty[s]);
        if (++s == STAGES) s = 0, phase ^= 1;
      }
      if (t == 0) pr_tma_store_wait<0>();
      pr_bar_sync(1 + half, 128);
      for (int j = 0; j < BN / 8; ++j)
        for (int e = 0; e < 4; ++e)
          out[(t / 32 * 16 + t % 32 / 4 + e / 2 * 8) * BN + j * 8 + t % 4 * 2 + e % 2] = d[j * 4 + e];
      pr_fence_proxy_async();
      pr_bar_sync(1 + half, 128);
      if (t == 0) {
        pr_tma_store_2d(&c, out, tile % TILES_N * BN, tile / TILES_N * BM + half * 64);
        pr_tma_store_commit();
      }
    }
    if (t == 0) pr_tma_store_wait<0>();
  }
}
