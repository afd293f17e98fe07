// Devices as Pruner's analyzer knows them: GPUs, and CPUs as if they were some.
#ifndef PRUNERC_COSTMODEL_PRUNER_DEVICE_H_
#define PRUNERC_COSTMODEL_PRUNER_DEVICE_H_

#include "ir/support/result.h"
#include "ir/target.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace prunerc::costmodel {

/// What the formulas need of a device. On a CPU a lane of a vector stands for a thread, a vector for a
/// warp, a parallel task for a block, a hardware thread for a multiprocessor, its L2 for shared memory,
/// and the vector registers for those of a thread (DESIGN.md, D30).
struct PrunerDevice {
  std::string_view name;
  double peak_gflops = 0;     // f32, of the whole device
  double bandwidth_gb_s = 0;  // of DRAM; 10^9 bytes per second
  double num_sms = 0;
  double blocks_per_sm = 1;  // at the same time
  double partitions_per_sm = 4;
  double warp_size = 32;
  double registers_per_thread = 128;  // elements
  // Of the paper only; the release has no such numbers.
  double shared_bytes_per_sm = 0;
  double transaction_bytes = 32;
  double tensor_gflops = 0;  // f16, dense; 0: tensor instructions are as fast as others
  int64_t vector_bytes = 0;  // of a CPU's registers; 0: a GPU
};

/// The table of the released source (ORIGINAL.md), as it was published: K80 is the whole board of
/// two dies, and Orin is no variant that is sold. Later devices are ours, from their data sheets.
std::span<const PrunerDevice> pruner_devices();
/// Errors: TargetUnknown.
Result<PrunerDevice> find_pruner_device(std::string_view name);
/// From a target's attributes and, where there are, measured rates.
PrunerDevice pruner_device(const ir::Target& target);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_PRUNER_DEVICE_H_
