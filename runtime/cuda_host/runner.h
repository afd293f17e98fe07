// Runs and checks kernels compiled for the host, inside a worker process.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_RUNNER_H_
#define PRUNERC_RUNTIME_CUDA_HOST_RUNNER_H_

#include "runtime/cuda_host/options.h"
#include "runtime/cuda_host/run.h"
#include "runtime/worker/serve.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace prunerc::runtime::cuda_host {

/// The worker's end of a job. Check::kMemory runs the kernel in several legal orders, in
/// differently placed and poisoned buffers, and compares outputs bit for bit; under a race or
/// bounds checker two orders do. Times are refused: they would say nothing about a GPU.
class HostRunner final : public JobRunner {
 public:
  HostRunner(const ConfigureMessage& configure, int exchange_fd, StatusPage* status);

  Measurement run(const JobMessage& job, const OnProgress& on_progress) override;
  std::vector<Measurement> compare(const CompareMessage& message,
                                   const OnProgress& on_progress) override;

 private:
  struct Memory;
  struct Round;

  Measurement prepare(const codegen::Artifact& artifact, const JobMessage& job, Round* round);
  Measurement execute(const codegen::Artifact& artifact, const KernelObject& object,
                      const ExecutionOptions& options, Round* round);
  static Measurement compare_outputs(const codegen::Artifact& artifact, const Round& first,
                                     const Round& other);
  Measurement write_outputs(const codegen::Artifact& artifact, const Round& round, int64_t offset);
  Measurement check(const codegen::Artifact& artifact, const KernelObject& object,
                    const JobMessage& job, const OnProgress& on_progress);

  int num_threads_;
};

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_RUNNER_H_
