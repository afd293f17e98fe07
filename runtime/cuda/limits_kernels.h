// The kernels that measure a GPU's limits, written as emitted kernels are: they run on the host
// too.
#ifndef PRUNERC_RUNTIME_CUDA_LIMITS_KERNELS_H_
#define PRUNERC_RUNTIME_CUDA_LIMITS_KERNELS_H_

namespace prunerc::runtime::cuda {

/// In front stand THREADS, and STEPS and BLOCKS of each kernel. Every thread writes what it
/// computed: nothing can be left out, and the answer is known.
inline constexpr const char* kLimitsKernels = R"cuda(
PR_KERNEL(32, 1) void limit_launch(float* PR_RESTRICT out) {
  out[pr_thread_x()] = 1.0f;
}

// x -> 1 - x -> x: exact, and no compiler knows the factor.
PR_KERNEL(THREADS, 1) void limit_fma(const float* PR_RESTRICT in, float* PR_RESTRICT out) {
  const int t = pr_block_x() * THREADS + pr_thread_x();
  const float one = in[0], factor = 0.0f - one;
  float x[16];
  for (int i = 0; i < 16; ++i) x[i] = (float)(t % 64 + i);
#pragma unroll 1
  for (int n = 0; n < FMA_STEPS; ++n)
    for (int again = 0; again < 8; ++again)
      for (int i = 0; i < 16; ++i) x[i] = pr_fma(x[i], factor, one);
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += x[i];
  out[t] = sum;
}

PR_KERNEL(THREADS, 2) void limit_wmma(const pr_f16* PR_RESTRICT a, const pr_f16* PR_RESTRICT b,
                                      float* PR_RESTRICT out) {
  const int warp = (pr_block_x() * THREADS + pr_thread_x()) / 32;
  unsigned fa[8], fb[8];
  float sum[4][8];
  pr_wmma_load_a(fa, a, 16);
  pr_wmma_load_b(fb, b, 16);
  for (int i = 0; i < 4; ++i)
    for (int e = 0; e < 8; ++e) sum[i][e] = 0.0f;
#pragma unroll 1
  for (int n = 0; n < WMMA_STEPS; ++n)
    for (int again = 0; again < 4; ++again)
      for (int i = 0; i < 4; ++i) pr_wmma_mma<pr_f16>(sum[i], fa, fb);
  for (int i = 1; i < 4; ++i)
    for (int e = 0; e < 8; ++e) sum[0][e] += sum[i][e];
  pr_wmma_store(out + warp * 256, sum[0], 16);
}

PR_KERNEL(THREADS, 1) void limit_memory_read(const unsigned* PR_RESTRICT from,
                                             unsigned* PR_RESTRICT out) {
  const int t = pr_block_x() * THREADS + pr_thread_x();
  unsigned sum = 0;
#pragma unroll 1
  for (int n = 0; n < MEMORY_STEPS; ++n) {
    unsigned v[4][4];
    for (int u = 0; u < 4; ++u)
      pr_load<16>(v[u], from + 4 * ((pr_i64)(n * 4 + u) * (MEMORY_BLOCKS * THREADS) + t));
    for (int u = 0; u < 4; ++u) sum += v[u][0] + v[u][1] + v[u][2] + v[u][3];
  }
  out[t] = sum;
}

PR_KERNEL(THREADS, 1) void limit_memory_copy(const unsigned* PR_RESTRICT from,
                                             unsigned* PR_RESTRICT to, unsigned* PR_RESTRICT out) {
  const int t = pr_block_x() * THREADS + pr_thread_x();
  unsigned sum = 0;
#pragma unroll 1
  for (int n = 0; n < MEMORY_STEPS / 2; ++n) {
    unsigned v[4][4];
    for (int u = 0; u < 4; ++u)
      pr_load<16>(v[u], from + 4 * ((pr_i64)(n * 4 + u) * (MEMORY_BLOCKS * THREADS) + t));
    for (int u = 0; u < 4; ++u)
      pr_store<16>(to + 4 * ((pr_i64)(n * 4 + u) * (MEMORY_BLOCKS * THREADS) + t), v[u]);
    sum += v[0][0];
  }
  out[t] = sum;
}

// Every block reads all of it, each from a place of its own: too much for a first-level cache.
PR_KERNEL(THREADS, 1) void limit_l2_read(const unsigned* PR_RESTRICT from,
                                         unsigned* PR_RESTRICT out) {
  const int start = pr_block_x() * 61 * THREADS + pr_thread_x();
  unsigned sum = 0;
#pragma unroll 1
  for (int n = 0; n < L2_STEPS; ++n) {
    unsigned v[4][4];
    for (int u = 0; u < 4; ++u)
      pr_load<16>(v[u], from + 4 * ((start + (n * 4 + u) * THREADS) & (L2_STEPS * 4 * THREADS - 1)));
    for (int u = 0; u < 4; ++u) sum += v[u][0] + v[u][1] + v[u][2] + v[u][3];
  }
  out[pr_block_x() * THREADS + pr_thread_x()] = sum;
}

// Eight threads of 16 bytes read all banks once. Which of eight reads what changes with n, or the
// loads would be the same each time.
PR_KERNEL(THREADS, 1) void limit_shared_read(unsigned* PR_RESTRICT out) {
  PR_SHARED(smem, 4 * 16 * THREADS);
  const int t = pr_thread_x();
  for (int i = t; i < 16 * THREADS; i += THREADS) ((unsigned*)smem)[i] = (unsigned)i;
  pr_sync();
  unsigned sum = 0;
#pragma unroll 1
  for (int n = 0; n < SHARED_STEPS; ++n) {
    const unsigned char* const at = smem + 16 * (t ^ (n & 7));
    for (int u = 0; u < 4; ++u) {
      unsigned v[4];
      pr_load<16>(v, at + u * 16 * THREADS);
      sum += v[0] + v[1];
      sum += v[2] + v[3];
    }
  }
  out[pr_block_x() * THREADS + t] = sum;
}
)cuda";

/// Only for sm_90a: older instructions reach a part of its TensorCores' rate. A is all ones, so a
/// thread's two rows of the result are sums over B, wherever its elements lie.
inline constexpr const char* kLimitsWgmmaKernel = R"cuda(
PR_KERNEL(THREADS, 1) void limit_wgmma(const pr_f16* PR_RESTRICT b, float* PR_RESTRICT out) {
  PR_SHARED(smem, 4 * (2048 + 8192));
  const int t = pr_thread_x();
  for (int i = t; i < 4 * 2048 / 4; i += THREADS) ((unsigned*)smem)[i] = 0x3c003c00u;
  for (int i = t; i < 4 * 8192 / 16; i += THREADS) {
    unsigned v[4];
    pr_load<16>(v, b + 8 * i);
    pr_store<16>(smem + 4 * 2048 + 16 * i, v);
  }
  pr_fence_proxy_async();
  pr_sync();
  float sum[128];
  for (int i = 0; i < 128; ++i) sum[i] = 0.0f;
#pragma unroll 1
  for (int n = 0; n < WGMMA_STEPS; ++n) {
    pr_wgmma_fence();
    for (int again = 0; again < 4; ++again)
      for (int k = 0; k < 4; ++k)
        pr_wgmma<256, pr_f16>(sum, pr_wgmma_desc(smem + k * 2048, 128, 256, 0),
                              pr_wgmma_desc(smem + 4 * 2048 + k * 8192, 128, 256, 0), 1);
    pr_wgmma_commit();
    pr_wgmma_wait<0>();
  }
  float total = 0.0f;
  for (int i = 0; i < 128; ++i) total += sum[i];
  total += pr_shfl_xor(total, 1);
  total += pr_shfl_xor(total, 2);
  out[pr_block_x() * THREADS + t] = total;
}
)cuda";

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_LIMITS_KERNELS_H_
