// What one core spends on a nest if every access hits L1.
#ifndef PRUNERC_COSTMODEL_LATENCY_CORE_H_
#define PRUNERC_COSTMODEL_LATENCY_CORE_H_

#include "costmodel/latency/nest.h"
#include "ir/target.h"

namespace prunerc::costmodel {

struct CoreCost {
  Sym cycles;     // of all iterations, on one core
  Sym code_size;  // statement instances in the code
  Sym tile_registers;
};

CoreCost core_cost(const NestTable& table, const Nest& nest, const ir::Target& target);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_CORE_H_
