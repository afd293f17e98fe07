// The monotonic clock and a few process counters, in nanoseconds.
#ifndef PRUNERC_RUNTIME_CLOCK_H_
#define PRUNERC_RUNTIME_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace prunerc::runtime {

inline int64_t clock_ns(clockid_t clock) {
  timespec ts{};
  clock_gettime(clock, &ts);
  return int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

/// Never jumps with the wall clock.
inline int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

/// CPU time of the calling thread.
inline int64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CLOCK_H_
