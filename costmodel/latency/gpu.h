// The roofline of a program on a GPU: each kernel against every unit of the device, with occupancy
// and waves.
#ifndef PRUNERC_COSTMODEL_LATENCY_GPU_H_
#define PRUNERC_COSTMODEL_LATENCY_GPU_H_

#include "costmodel/latency/nest.h"
#include "costmodel/latency/symbols.h"

namespace prunerc::costmodel {

/// Adds the terms of all kernels, their sums, and the device's limits.
void add_gpu_terms(const NestTable& table, const ir::Target& target, const TermModel& model,
                   LatencySymbols* out);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_GPU_H_
