// How the CPU rounds while a kernel runs.
#ifndef PRUNERC_RUNTIME_CPU_FLOAT_MODE_H_
#define PRUNERC_RUNTIME_CPU_FLOAT_MODE_H_

#include <immintrin.h>

namespace prunerc::runtime {

/// While it lives, this thread rounds to nearest and keeps subnormal numbers, whatever was set before: as
/// exported kernels have it (codegen/cpu/launcher.c), and as what was verified ran.
class DefaultFloatMode {
 public:
  DefaultFloatMode() : before_(_mm_getcsr()) { set(); }
  ~DefaultFloatMode() { _mm_setcsr(before_); }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

  /// For good: of a thread that runs kernels alone.
  static void set() { _mm_setcsr(0x1f80); }  // what a process starts with

 private:
  const unsigned before_;
};

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_FLOAT_MODE_H_
