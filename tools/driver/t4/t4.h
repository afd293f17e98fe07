// Pools of what other autotuners measured: their kernels as our programs, their times as recorded.
#ifndef PRUNERC_TOOLS_DRIVER_T4_T4_H_
#define PRUNERC_TOOLS_DRIVER_T4_T4_H_

#include "ir/support/result.h"
#include "search/record/pool.h"
#include "tools/driver/t4/t4_file.h"

#include <string>

namespace prunerc {

/// The target of a device by its maker's name ("NVIDIA GeForce RTX 3090"), or by one of ours.
/// Errors: T4Device.
Result<ir::Target> t4_device(const std::string& name);

/// The file's rows as a pool of its kernel on the device, which is the file's if `device` is empty.
/// Every row stays, also those that the device's limits would refuse. Errors: T4Device, T4Kernel,
/// T4Damaged. `path` is for messages. Cost: a replay for each row, by all threads.
Result<search::Pool> import_t4(const T4File& file, const std::string& path,
                               const std::string& device);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_T4_T4_H_
