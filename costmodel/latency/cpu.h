// The roofline of a program on a CPU: threads, uneven splits, bandwidths.
#ifndef PRUNERC_COSTMODEL_LATENCY_CPU_H_
#define PRUNERC_COSTMODEL_LATENCY_CPU_H_

#include "costmodel/latency/nest.h"
#include "costmodel/latency/symbols.h"

namespace prunerc::costmodel {

/// Of one core where the platform was not measured; of the order that x86 server cores reach.
inline constexpr double kMemoryBytesPerCycle = 8;

/// Adds the terms of all nests and their sums.
void add_cpu_terms(const NestTable& table, const ir::Target& target, const TermModel& model,
                   LatencySymbols* out);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_CPU_H_
