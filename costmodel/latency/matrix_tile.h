// Instructions on matrix tiles (AMX): what their operands take to come and go, and the unit that multiplies.
#ifndef PRUNERC_COSTMODEL_LATENCY_MATRIX_TILE_H_
#define PRUNERC_COSTMODEL_LATENCY_MATRIX_TILE_H_

#include "costmodel/latency/tile.h"

namespace prunerc::costmodel {

bool is_matrix_tile(const Nest& nest);

/// Rows of a tile register that an operand fills, each of which is a load or a store of one vector.
double tile_rows(const Nest& nest, const NestAccess& a);

/// Loads that run in the time of a row that is stored. Measured: 16 cycles for a tile, two loads in each.
constexpr double kLoadsOfStoredRow = 2;
/// Cycles for each row of an instruction whose sums come from memory and go there. Measured: 29 for 16 rows.
constexpr double kMemoryRowCycles = 1.8;
/// From an instruction to the next one that adds to the same sums. Measured.
constexpr double kTileSumCycles = 52;

/// Truth: each instruction loads and stores its sums, as there are more than tile registers hold. `sum`: of these.
Sym has_sums_in_memory(const AccessCost& sum);

/// Truth: what runs right before the nest sets its sums, and nothing else, to 0: then they begin in tile registers,
/// and it is not emitted. `nest` is one of table.nests(), no copy.
Sym begins_at_zero(const NestTable& table, const Nest& nest);
/// The same of the nest that sets them.
Sym is_spared_fill(const NestTable& table, const Nest& nest);

/// Slots of the target's multiply-add ports that the unit takes for one pass through the tile, which has so many
/// instructions.
Sym matrix_slots(const Nest& nest, const Tile& tile, const ir::Target& target, Sym copies);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_MATRIX_TILE_H_
