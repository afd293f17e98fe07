// Instructions on matrix tiles (AMX): what their operands take to come and go, and the unit that multiplies.
#ifndef PRUNERC_COSTMODEL_LATENCY_MATRIX_TILE_H_
#define PRUNERC_COSTMODEL_LATENCY_MATRIX_TILE_H_

#include "costmodel/latency/tile.h"

namespace prunerc::costmodel {

bool is_matrix_tile(const Nest& nest);

/// Rows of a tile register that an operand fills, each of which is a load or a store of one vector.
double tile_rows(const Nest& nest, const NestAccess& a);

/// A row that is stored, in rows that are loaded; in cycles where an instruction waits for it. Measured: an accumulator
/// in memory doubles what an instruction takes.
constexpr double kTileStoreLoads = 2;

/// Truth: more accumulators than stay in tile registers, so that each instruction loads and stores its own.
Sym is_crowded(const AccessCost& accumulator);

/// Slots of a multiply-add port that the unit takes for one pass through the tile, which has so many instructions.
Sym matrix_slots(const Nest& nest, const Tile& tile, Sym copies);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_MATRIX_TILE_H_
