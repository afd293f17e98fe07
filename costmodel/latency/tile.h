// Tile: the innermost loops of a nest as straight-line code, and what an access costs in one pass
// through it.
#ifndef PRUNERC_COSTMODEL_LATENCY_TILE_H_
#define PRUNERC_COSTMODEL_LATENCY_TILE_H_

#include "costmodel/latency/nest.h"
#include "ir/target.h"

#include <vector>

namespace prunerc::costmodel {

/// The innermost loops that become straight-line code: all unrolled and vectorized loops with no
/// serial loop inside, and a vectorized loop anywhere. Loops of one iteration are none.
struct Tile {
  std::vector<Sym> inside;     // truth, by loop: part of it
  std::vector<Sym> is_serial;  // truth, by loop: the innermost one that stays a loop
  Sym is_all = 1;              // truth: no loop stays
  int vector_loop = -1;
  Sym lanes = 1;
  Sym vectors = 1;  // registers per statement along the vectorized loop
};

/// Vector registers of the target; at least 16, which every x86 core has.
double vector_registers(const ir::Target& target);

Tile find_tile(const Nest& nest, const ir::Target& target);

/// Operations on memory and registers of one access per pass through the tile.
struct AccessCost {
  Sym copies = 1;     // different places among the unrolled copies
  Sym instances = 1;  // unrolled copies that move it
  Sym uops = 1;       // accesses of L1 for one copy
  Sym in_loop = 1;    // truth; else kept in registers over the serial loop
  Sym moves_with_lanes = 0;
  Sym reads = 0, writes = 0;  // truth: whether it loads, stores; else it never leaves registers
};

/// `nest` is one of table.nests(), no copy.
AccessCost cost_of(const NestTable& table, const Nest& nest, const NestAccess& a, const Tile& tile,
                   const ir::Target& target);

/// Times that something is done which loops below do not change: it moves out of these.
Sym hoisted_runs(const Nest& nest, const Tile& tile, const std::vector<Sym>& moves);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_TILE_H_
