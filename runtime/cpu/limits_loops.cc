#include "runtime/cpu/limits_loops.h"

namespace prunerc::runtime {
namespace {

/// Independent accumulators: enough to cover 4 cycles of latency on 2 ports, few enough to leave
/// two registers.
constexpr int64_t kAccumulators = 12;

// The kernels are inline assembly, so that they mean the same with every compiler and flag; the
// wide ones are called only after __builtin_cpu_supports.
#define PRUNERC_FMA_ROW(REG)                         \
  ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\n\t" \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG "\\n\n\t.endr\n\t"
#define PRUNERC_VECTOR_CLOBBERS                                                            \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

// All registers start at zero: denormals or infinities would slow some CPUs down.
void fma_loop_zmm(int64_t iterations) {
  asm volatile(
      "vzeroall\n\t"
      "1:\n\t" PRUNERC_FMA_ROW("zmm") PRUNERC_FMA_ROW("zmm") "dec %0\n\t jnz 1b\n\t vzeroupper"
      : "+r"(iterations)::"cc", PRUNERC_VECTOR_CLOBBERS);
}

void fma_loop_ymm(int64_t iterations) {
  asm volatile(
      "vzeroall\n\t"
      "1:\n\t" PRUNERC_FMA_ROW("ymm") PRUNERC_FMA_ROW("ymm") "dec %0\n\t jnz 1b\n\t vzeroupper"
      : "+r"(iterations)::"cc", PRUNERC_VECTOR_CLOBBERS);
}

// Without fused operations: six products and six sums for six multiply-adds.
#define PRUNERC_SSE_ROW                                  \
  "mulps %%xmm15, %%xmm0\n\t addps %%xmm15, %%xmm6\n\t"  \
  "mulps %%xmm15, %%xmm1\n\t addps %%xmm15, %%xmm7\n\t"  \
  "mulps %%xmm15, %%xmm2\n\t addps %%xmm15, %%xmm8\n\t"  \
  "mulps %%xmm15, %%xmm3\n\t addps %%xmm15, %%xmm9\n\t"  \
  "mulps %%xmm15, %%xmm4\n\t addps %%xmm15, %%xmm10\n\t" \
  "mulps %%xmm15, %%xmm5\n\t addps %%xmm15, %%xmm11\n\t"

void fma_loop_xmm(int64_t iterations) {
  asm volatile(
      "vzeroall\n\t"
      "1:\n\t" PRUNERC_SSE_ROW PRUNERC_SSE_ROW "dec %0\n\t jnz 1b"
      : "+r"(iterations)::"cc", PRUNERC_VECTOR_CLOBBERS);
}

#define PRUNERC_LOAD8(REG, SIZE) \
  ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n\tvmovaps \\n*" SIZE "(%0), %%" REG "\\n\n\t.endr\n\t"
#define PRUNERC_STORE8(REG, SIZE) \
  ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n\tvmovaps %%" REG "\\n, \\n*" SIZE "(%2)\n\t.endr\n\t"

void read_zmm(const char* from, const char* end) {
  asm volatile(
      "1:\n\t" PRUNERC_LOAD8("zmm", "64") "add $512, %0\n\t cmp %1, %0\n\t jb 1b\n\t vzeroupper"
      : "+r"(from)
      : "r"(end)
      : "cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void read_ymm(const char* from, const char* end) {
  asm volatile(
      "1:\n\t" PRUNERC_LOAD8("ymm", "32") "add $256, %0\n\t cmp %1, %0\n\t jb 1b\n\t vzeroupper"
      : "+r"(from)
      : "r"(end)
      : "cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void copy_zmm(const char* from, const char* end, char* to) {
  asm volatile(
      "1:\n\t" PRUNERC_LOAD8("zmm", "64") PRUNERC_STORE8(
          "zmm", "64") "add $512, %0\n\t add $512, %2\n\t cmp %1, %0\n\t jb 1b\n\t vzeroupper"
      : "+r"(from), "+r"(end), "+r"(to)::"cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void copy_ymm(const char* from, const char* end, char* to) {
  asm volatile(
      "1:\n\t" PRUNERC_LOAD8("ymm", "32") PRUNERC_STORE8(
          "ymm", "32") "add $256, %0\n\t add $256, %2\n\t cmp %1, %0\n\t jb 1b\n\t vzeroupper"
      : "+r"(from), "+r"(end), "+r"(to)::"cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void read_xmm(const char* from, const char* end) {
  asm volatile("1:\n\t" PRUNERC_LOAD8("xmm", "16") "add $128, %0\n\t cmp %1, %0\n\t jb 1b"
               : "+r"(from)
               : "r"(end)
               : "cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void copy_xmm(const char* from, const char* end, char* to) {
  asm volatile("1:\n\t" PRUNERC_LOAD8("xmm", "16") PRUNERC_STORE8(
                   "xmm", "16") "add $128, %0\n\t add $128, %2\n\t cmp %1, %0\n\t jb 1b"
               : "+r"(from), "+r"(end), "+r"(to)::"cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

constexpr LimitLoops kZmm = {64, fma_loop_zmm, 2 * kAccumulators * 16 * 2, read_zmm, copy_zmm};
constexpr LimitLoops kYmm = {32, fma_loop_ymm, 2 * kAccumulators * 8 * 2, read_ymm, copy_ymm};
constexpr LimitLoops kXmm = {16, fma_loop_xmm, 2 * kAccumulators * 4, read_xmm, copy_xmm};

}  // namespace

void dependent_adds(int64_t iterations) {
  int64_t sum = 0;
  asm volatile(
      "1:\n\t .rept 64\n\t add %2, %1\n\t .endr\n\t"
      "dec %0\n\t jnz 1b"
      : "+r"(iterations), "+r"(sum)
      : "r"(int64_t{3})
      : "cc");
}

const LimitLoops& limit_loops(int vector_bytes) {
  if (vector_bytes == 16) return kXmm;
  return vector_bytes != 32 && __builtin_cpu_supports("avx512f") ? kZmm : kYmm;
}

}  // namespace prunerc::runtime
