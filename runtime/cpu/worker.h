// The process that CPU kernels under test run in: the same executable, started with a hidden first
// argument.
#ifndef PRUNERC_RUNTIME_CPU_WORKER_H_
#define PRUNERC_RUNTIME_CPU_WORKER_H_

#include <optional>

namespace prunerc::runtime {

inline constexpr const char* kWorkerArgument = "__worker";

/// To be called first in main of every executable that measures: serves jobs and returns the exit
/// status if the arguments say that this process is a worker, else nothing.
std::optional<int> dispatch_worker(int argc, char** argv);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_WORKER_H_
