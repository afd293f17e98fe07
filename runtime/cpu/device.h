// Runs CPU kernels in worker processes.
#ifndef PRUNERC_RUNTIME_CPU_DEVICE_H_
#define PRUNERC_RUNTIME_CPU_DEVICE_H_

#include "runtime/worker/device.h"

namespace prunerc::runtime {

class CpuDevice final : public WorkerDevice {
 public:
  /// Without a command in the options, workers are this executable; its main must call
  /// dispatch_worker.
  explicit CpuDevice(WorkerOptions options = {});
};

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_DEVICE_H_
