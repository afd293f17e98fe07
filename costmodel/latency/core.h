// What one core spends on a nest if every access hits L1.
#ifndef PRUNERC_COSTMODEL_LATENCY_CORE_H_
#define PRUNERC_COSTMODEL_LATENCY_CORE_H_

#include "costmodel/latency/nest.h"
#include "ir/target.h"

namespace prunerc::costmodel {

struct CoreCost {
  double cycles = 0;     // of all iterations, on one core
  double code_size = 0;  // statement instances in the code
  double tile_registers = 0;
};

CoreCost core_cost(const NestTable& table, const Nest& nest, const ir::Target& target);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_CORE_H_
