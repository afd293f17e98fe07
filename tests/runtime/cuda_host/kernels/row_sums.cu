// C[i] = sum of A[i, :] in f32: a block a row, sums by shuffles within warps and by shared memory
// between them. Rows of any length; as many threads as a block may have.
constexpr int THREADS = 1024;

PR_KERNEL(THREADS, 1) void row_sums(const float* PR_RESTRICT a, const float* PR_RESTRICT,
                                    float* PR_RESTRICT c) {
  PR_SHARED(smem, THREADS / 32 * 4);
  float* const partial = (float*)smem;
  const int t = pr_thread_x(), row = pr_block_x();
  float sum = 0.0f;
  for (int k = t; k < K; k += THREADS) sum += a[row * K + k];
  for (int n = 16; n > 0; n /= 2) sum += pr_shfl_down(sum, n);
  if (t % 32 == 0) partial[t / 32] = sum;
  pr_sync();  // partial sums are there
  if (t < 32) {
    sum = partial[t];
    for (int n = 16; n > 0; n /= 2) sum += pr_shfl_xor(sum, n);
    if (t == 0) c[row] = sum;
  }
}
