// The process that kernels under test run in: the same executable, started with a hidden first
// argument.
#ifndef PRUNERC_RUNTIME_CPU_WORKER_H_
#define PRUNERC_RUNTIME_CPU_WORKER_H_

#include <optional>

namespace prunerc::runtime {

inline constexpr const char* kWorkerArgument = "__worker";

/// Set in a worker's environment; a worker never starts workers.
inline constexpr const char* kWorkerVariable = "PRUNERC_IN_WORKER";

// Where a worker finds its ends of the pipes and the shared exchange file.
inline constexpr int kWorkerInFd = 3;
inline constexpr int kWorkerOutFd = 4;
inline constexpr int kWorkerExchangeFd = 5;

/// Serves requests until `in_fd` is closed; returns the process's exit status. The process ends at
/// once when the parent dies, even if a kernel is running.
int worker_main(int in_fd, int out_fd, int exchange_fd);

/// To be called first in main of every executable that measures: runs worker_main and returns its
/// exit status if the arguments say that this process is a worker, else nothing.
std::optional<int> dispatch_worker(int argc, char** argv);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_WORKER_H_
