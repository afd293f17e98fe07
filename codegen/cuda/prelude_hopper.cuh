// The wrappers that only sm_90a has: barriers in shared memory, TMA, wgmma, register redistribution.
PR_FN void pr_mbar_init(pr_u64* bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(pr_smem_(bar)), "r"(count)
               : "memory");
}
PR_FN void pr_mbar_expect_tx(pr_u64* bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(pr_smem_(bar)),
               "r"(bytes)
               : "memory");
}
PR_FN void pr_mbar_arrive(pr_u64* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(pr_smem_(bar)) : "memory");
}
// At the barrier in the same place of block `rank` of the cluster. Nothing is published by it: what it
// releases was read by finished wgmma or by loads in front of it, which no copy that follows can
// overtake; a release to the cluster would cost a fence of the GPU.
PR_FN void pr_mbar_arrive_at(pr_u64* bar, int rank) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
      " mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(pr_smem_(bar)),
      "r"(rank)
      : "memory");
}
// Returns when the phase of this parity is over.
PR_FN void pr_mbar_wait(pr_u64* bar, int parity) {
  asm volatile(
      "{ .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
      " @!done bra AGAIN; }" ::"r"(pr_smem_(bar)),
      "r"(parity)
      : "memory");
}
// All threads of the cluster.
PR_FN void pr_cluster_sync() {
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}
PR_FN void pr_fence_mbar_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
PR_FN void pr_fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// A box whose first element is column x of row y.
PR_FN void pr_tma_load_2d(void* dst, const pr_tensor_map* map, int x, int y, pr_u64* bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::"r"(pr_smem_(dst)),
      "l"(map), "r"(pr_smem_(bar)), "r"(x), "r"(y)
      : "memory");
}
// To the same place in each block of the cluster whose bit is set in the mask.
PR_FN void pr_tma_load_2d_multicast(void* dst, const pr_tensor_map* map, int x, int y, pr_u64* bar,
                                    int mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(pr_smem_(dst)),
      "l"(map), "r"(pr_smem_(bar)), "r"(x), "r"(y), "h"((short)mask)
      : "memory");
}
// Rows of pixels: the first one's window stands at (w, h) of image n, which the offsets move it from.
PR_FN void pr_tma_load_im2col(void* dst, const pr_tensor_map* map, int c, int w, int h, int n,
                              int offset_w, int offset_h, pr_u64* bar) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(pr_smem_(dst)),
      "l"(map), "r"(pr_smem_(bar)), "r"(c), "r"(w), "r"(h), "r"(n), "h"((short)offset_w),
      "h"((short)offset_h)
      : "memory");
}
PR_FN void pr_tma_store_2d(const pr_tensor_map* map, const void* src, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::
                   "l"(map),
               "r"(pr_smem_(src)), "r"(x), "r"(y)
               : "memory");
}
PR_FN void pr_tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until at most N groups may still read shared memory.
template <int N> PR_FN void pr_tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

// Rounds two values to one register of a fragment; `lo` has the lower index.
PR_FN unsigned pr_pack_f16(float lo, float hi) {
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
PR_FN unsigned pr_pack_bf16(float lo, float hi) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
PR_FN void pr_stmatrix_x2(void* row, const unsigned (&r)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(pr_smem_(row)),
               "r"(r[0]), "r"(r[1])
               : "memory");
}
PR_FN void pr_stmatrix_x4(void* row, const unsigned (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   pr_smem_(row)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

PR_FN void pr_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
PR_FN void pr_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> PR_FN void pr_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// A matrix in shared memory: `lead` and `stride` are the offsets of wgmma's canonical layouts in
// bytes, `swizzle` is 0, 32, 64 or 128.
PR_FN pr_u64 pr_wgmma_desc(const void* p, int lead, int stride, int swizzle) {
  const pr_u64 layout = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return (pr_u64)((pr_smem_(p) & 0x3ffff) >> 4) | (pr_u64)(lead >> 4) << 16 |
         (pr_u64)(stride >> 4) << 32 | layout << 62;
}
// d = a * b + (scale_d ? d : 0) in one warpgroup, 64 rows and N columns, K = 32 bytes of elements.
// TA and TB are 1 if the operand is stored with rows (columns) next to each other: f16 and bf16 only.
// Definitions of what a kernel uses are generated behind this prelude.
template <int N, class T, int TA, int TB> struct pr_wgmma_op_;
template <int N, class T, int TA = 0, int TB = 0, class D>
PR_FN void pr_wgmma(D (&d)[N / 2], pr_u64 a, pr_u64 b, int scale_d) {
  pr_wgmma_op_<N, T, TA, TB>::run(d, a, b, scale_d);
}
template <int N> PR_FN void pr_reg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> PR_FN void pr_reg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
