#include "runtime/cuda/device.h"

#include "runtime/cuda/driver.h"

#include <limits>

namespace prunerc::runtime::cuda {
namespace {

/// A context costs a second or three under CUPTI, a job a tenth of one. CUPTI keeps a little for
/// every launch; its times fail after some 25 million, and a thousand jobs are a quarter million.
constexpr int kJobsPerWorker = 1000;
/// The driver's cache of compiled kernels grows to a gibibyte by default, in one file.
constexpr int64_t kFileBytes = int64_t{4} << 30;
constexpr int64_t kWorkerAgeNs = int64_t{300} * 1'000'000'000;

WorkerOptions worker_options(const CudaDeviceOptions& options) {
  WorkerOptions result;
  result.worker_argv = options.worker_argv;
  // The driver reserves more addresses than any machine has memory.
  result.memory_limit_bytes = std::numeric_limits<int64_t>::max();
  result.run_limit_ns = options.run_limit_ns;
  result.unchecked_run_limit_ns = options.run_limit_ns;
  result.max_jobs_per_worker = kJobsPerWorker;
  result.max_worker_age_ns = kWorkerAgeNs;
  result.file_limit_bytes = kFileBytes;
  // Where the driver, NVRTC and CUPTI are found, which devices are seen, where caches go.
  result.environment = {"CUDA_*", "NVIDIA_*", "HOME", "XDG_CACHE_HOME", "VIRTUAL_ENV", "TMPDIR"};
  return result;
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaDeviceOptions& options) {
  PRUNERC_TRY_VOID(driver());
  return std::unique_ptr<CudaDevice>(new CudaDevice(options));
}

CudaDevice::CudaDevice(const CudaDeviceOptions& options)
    : cache_(options.cache), workers_(worker_options(options)) {}

JobOutcome CudaDevice::run(const Job& job) {
  Job own = job;
  if (own.timing) own.timing->cache = cache_;
  return workers_.run(own);
}

std::vector<Measurement> CudaDevice::compare(std::span<const Job> jobs,
                                             const TimingOptions& timing) {
  TimingOptions own = timing;
  own.cache = cache_;
  return workers_.compare(jobs, own);
}

}  // namespace prunerc::runtime::cuda
