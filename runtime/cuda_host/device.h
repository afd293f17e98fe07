// Emitted CUDA kernels on the CPU: a device that checks what they do and refuses to time them.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_DEVICE_H_
#define PRUNERC_RUNTIME_CUDA_HOST_DEVICE_H_

#include "runtime/worker/device.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::runtime::cuda_host {

struct HostDeviceOptions {
  int num_threads = 1;
  /// Command that starts a worker; its main must call dispatch_host_worker. For kernels with a race
  /// or bounds checker: the executable of that kind.
  std::vector<std::string> worker_argv = {"/proc/self/exe", "__cuda_host_worker"};
  /// No run may take longer. Units: ns.
  int64_t run_limit_ns = 60'000'000'000;
  /// A checker keeps shadow memory, which a limit on addresses would not leave room for.
  enum class Memory : uint8_t { kLimited, kUnlimited } memory = Memory::kLimited;
};

/// Runs artifacts of kind kCudaHostObject. A race is kWrongResult, an access out of bounds, a
/// deadlock or another fault of a kernel is kCrash; `detail` says where in the kernel's text.
class HostDevice final : public Device {
 public:
  explicit HostDevice(HostDeviceOptions options);

  JobOutcome run(const Job& job) override;
  /// Every measurement is kRunError.
  std::vector<Measurement> compare(std::span<const Job> jobs, const TimingOptions& timing) override;

 private:
  WorkerDevice workers_;
};

/// A sanitizer's report in one line: "data race: write at kernel.cu:26, read at kernel.cu:31";
/// empty if the text holds none.
std::string summarize_report(std::string_view log);

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_DEVICE_H_
