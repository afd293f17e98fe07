// The loops that a CPU's limits are measured with, in inline assembly.
#ifndef PRUNERC_RUNTIME_CPU_LIMITS_LOOPS_H_
#define PRUNERC_RUNTIME_CPU_LIMITS_LOOPS_H_

#include <cstdint>

namespace prunerc::runtime {

/// Loops for one width of registers. `read` and `copy` take a multiple of 512 bytes, not zero.
struct LimitLoops {
  int vector_bytes;
  void (*fma)(int64_t iterations);
  double flops;  ///< of an iteration of `fma`
  void (*read)(const char* from, const char* end);
  void (*copy)(const char* from, const char* end, char* to);
};

/// With registers of 16 or 32 bytes, else the widest that this CPU has.
const LimitLoops& limit_loops(int vector_bytes);

/// Additions in an iteration of dependent_adds: one a cycle.
inline constexpr int64_t kDependentAdds = 64;
void dependent_adds(int64_t iterations);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_LIMITS_LOOPS_H_
