// How emitted CUDA text is executed on the CPU: which of the legal orders is taken.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_OPTIONS_H_
#define PRUNERC_RUNTIME_CUDA_HOST_OPTIONS_H_

#include <cstdint>
#include <string_view>

namespace prunerc::runtime::cuda_host {

/// Who runs first among threads and blocks that could run.
enum class ThreadOrder : uint8_t { kAscending, kDescending, kRandom };

/// When asynchronous operations take effect. A kernel without races gives the same result in all.
enum class AsyncMode : uint8_t {
  kEager,    ///< when issued: shows a stage that is overwritten while it is read
  kLazy,     ///< when waited for, or when every thread is stuck: shows a wait that is missing
  kLateMma,  ///< copies when issued, wgmma when waited for, waiters of an mbarrier run first: shows
             ///< a stage that is released before wgmma has read it
};

struct ExecutionOptions {
  ThreadOrder order = ThreadOrder::kAscending;
  AsyncMode mode = AsyncMode::kEager;
  uint64_t seed = 0;    ///< of ThreadOrder::kRandom
  int num_threads = 1;  ///< host threads, each of which runs blocks; the checkers want one

  bool operator==(const ExecutionOptions&) const = default;
};

std::string_view to_string(ThreadOrder order);
std::string_view to_string(AsyncMode mode);

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_OPTIONS_H_
