"""Shapes and rates of kernels of others, each with the source that states it."""

CUTLASS_PROFILER = "CUTLASS, `media/docs/cpp/profiler`, device not named"
FLASH3 = "FlashAttention-3, `hopper/`: `tile_size`, `flash_fwd_kernel_sm90`, `flash_fwd_launch_template`"
# Of kernels of others, as far as a source says it: the documentation and the sources of CUTLASS at 7107b05 and of
# FlashAttention at 0251105 (August 2026).
PUBLISHED_KERNELS = [
    ["kernel", "tile", "stages", "threads", "registers of a thread", "rate", "source"],
    ["f16 product, f32 sums, 3456 x 4096 x 8192 (sm_80)", "256 x 128 x 32", "3", "8 warps", "", "235 TFLOP/s", CUTLASS_PROFILER],
    ["f32 product on CUDA cores, 3456 x 4096 x 4096", "128 x 128 x 8", "2", "8 warps", "", "17.2 TFLOP/s", CUTLASS_PROFILER],
    ["f16 convolution 3 x 3, 8 x 224 x 224 x 128 (sm_80)", "128 x 128 x 64", "4", "4 warps", "", "125 TFLOP/s", CUTLASS_PROFILER],
    ["f16 product on Hopper, the example of the documentation", "128 x 128 x 64, cluster of 2", "as many as fit", "", "", "",
     "CUTLASS, `media/docs/cpp/quickstart`"],
    ["products on Hopper, cooperative and ping-pong", "", "", "2 warpgroups and a producer", "232 and 40; from 208 of sums on 240 and 24", "",
     "CUTLASS, `sm90_gemm_tma_warpspecialized_{cooperative,pingpong}.hpp`"],
    ["attention of f16, head dimension 64, no mask", "192 x 192", "2", "3 warpgroups and a producer", "160 and 32", "", FLASH3],
    ["attention of f16, head dimension 128, no mask", "128 x 176", "2", "2 warpgroups and a producer", "240 and 24", "", FLASH3],
    ["attention of f16 on an H100, the best", "", "", "", "", "740 TFLOP/s, 75 % of the peak", "FlashAttention-3, arXiv 2407.08608, abstract"],
    ["attention on an H100 by FlashAttention-2", "", "", "", "", "35 % of the peak", "FlashAttention-3, arXiv 2407.08608, abstract"],
]
