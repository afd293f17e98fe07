// What the driver says of device 0: its attributes as a target.
#ifndef PRUNERC_RUNTIME_CUDA_ATTRIBUTES_H_
#define PRUNERC_RUNTIME_CUDA_ATTRIBUTES_H_

#include "ir/target.h"
#include "runtime/cuda/driver.h"

#include <string>

namespace prunerc::runtime::cuda {

struct DeviceDescription {
  std::string name;        ///< "NVIDIA H200"
  int driver_version = 0;  ///< 13000: of CUDA that the driver knows
  /// The table's entry for the compute capability (sm_90a before sm_90; else the highest below it
  /// of the same generation) with the device's counts, sizes and clocks. Bandwidth is what the
  /// memory's clock and width allow; an attribute that a driver does not tell leaves the table's.
  ir::Target target;
};

/// Makes no context. Errors: CudaCall; TargetUnknown for a generation that is not in the table.
Result<DeviceDescription> describe_device(const Driver& api);

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_ATTRIBUTES_H_
