// How many bytes a nest moves into each cache, from the size of what is touched at each loop level.
#ifndef PRUNERC_COSTMODEL_LATENCY_TRAFFIC_H_
#define PRUNERC_COSTMODEL_LATENCY_TRAFFIC_H_

#include "costmodel/latency/nest.h"
#include "ir/target.h"

#include <vector>

namespace prunerc::costmodel {

/// Bytes that miss in each level, for the whole nest and all threads together.
struct Traffic {
  Sym l1_miss_bytes;
  Sym l2_miss_bytes;
  Sym l3_miss_bytes;
  /// Of the lines that miss in each level those that no prefetcher has brought: the first of each
  /// run of neighbours, where too many runs go on at a time.
  Sym l1_miss_visits, l2_miss_visits, l3_miss_visits;
};

/// Of a cache line; 64 where the target does not say.
double line_bytes(const ir::Target& target);

/// One entry per nest of the table.
std::vector<Traffic> estimate_traffic(const NestTable& table, const ir::Target& target);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_TRAFFIC_H_
