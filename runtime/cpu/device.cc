#include "runtime/cpu/device.h"

#include "runtime/cpu/worker.h"

#include <utility>

namespace prunerc::runtime {
namespace {

WorkerOptions with_command(WorkerOptions options) {
  if (options.worker_argv.empty()) options.worker_argv = {"/proc/self/exe", kWorkerArgument};
  return options;
}

}  // namespace

CpuDevice::CpuDevice(WorkerOptions options) : WorkerDevice(with_command(std::move(options))) {}

}  // namespace prunerc::runtime
