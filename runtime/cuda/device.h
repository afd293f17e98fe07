// A GPU: runs, checks and times cubins in worker processes.
#ifndef PRUNERC_RUNTIME_CUDA_DEVICE_H_
#define PRUNERC_RUNTIME_CUDA_DEVICE_H_

#include "ir/support/result.h"
#include "runtime/worker/device.h"

#include <memory>
#include <string>
#include <vector>

namespace prunerc::runtime::cuda {

struct CudaDeviceOptions {
  /// Command that starts a worker; its main must call dispatch_cuda_worker.
  std::vector<std::string> worker_argv = {"/proc/self/exe", "__cuda_worker"};
  /// Times are taken so, whatever the job says: between operators of a model a GPU's L2 keeps
  /// little.
  CacheState cache = CacheState::kFlushed;
  /// No single run may take longer; what hangs is killed with its process. Units: ns.
  int64_t run_limit_ns = 10'000'000'000;
};

/// Runs artifacts of kind kCudaCubin on device 0.
class CudaDevice final : public Device {
 public:
  /// Asks the driver, without making a context in this process. Errors: CudaMissing.
  static Result<std::unique_ptr<CudaDevice>> open(const CudaDeviceOptions& options);

  JobOutcome run(const Job& job) override;
  std::vector<Measurement> compare(std::span<const Job> jobs, const TimingOptions& timing) override;

 private:
  explicit CudaDevice(const CudaDeviceOptions& options);
  CacheState cache_;
  WorkerDevice workers_;
};

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_DEVICE_H_
