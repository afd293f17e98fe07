#include "tools/prunerc/baseline.h"

namespace prunerc::cli {

const char* missing_instructions() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // The names that GCC 12 and clang 14 both know; no CPU has all of these without the rest of
  // x86-64-v3.
  if (!__builtin_cpu_supports("avx2")) return "avx2";
  if (!__builtin_cpu_supports("fma")) return "fma";
  if (!__builtin_cpu_supports("bmi")) return "bmi";
  if (!__builtin_cpu_supports("bmi2")) return "bmi2";
  if (!__builtin_cpu_supports("popcnt")) return "popcnt";
#endif
  return nullptr;
}

}  // namespace prunerc::cli
