#include "costmodel/latency/matrix_tile.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

/// Cycles of an instruction of few rows, and how many slots of multiply-adds a cycle has on the cores that have the
/// unit. Measured on a Sapphire Rapids core: as many cycles as rows of A, at least ten; as many as rows of B where the
/// instruction before had another tile of B. Sums of one accumulator follow each other without a gap.
constexpr double kLeastCycles = 10;
constexpr double kSlotsPerCycle = 2;
/// Of eight tile registers, beside one for each operand.
constexpr double kAccumulators = 6;

double extent_of(const Nest& nest, std::size_t iter) {
  return static_cast<double>(nest.tensor->block().iters[iter].extent.as<ir::IntImm>()->value);
}

double rows_of_a(const Nest& nest) { return extent_of(nest, 0); }
double rows_of_b(const Nest& nest) { return extent_of(nest, 2); }

// The instruction's first loop, over the rows of A and C.
std::size_t first_loop(const Nest& nest) {
  std::size_t at = nest.loops.size() - 1;
  while (at > 0 && nest.loops[at].in_instruction) --at;
  return at;
}

bool is_b(const Nest& nest, const NestAccess& a) {
  return !a.is_write && a.moves[first_loop(nest)].is(0);
}

}  // namespace

bool is_matrix_tile(const Nest& nest) {
  return nest.tensor != nullptr && nest.tensor->uses_tiles();
}

double tile_rows(const Nest& nest, const NestAccess& a) {
  return is_b(nest, a) ? rows_of_b(nest) : rows_of_a(nest);
}

Sym is_crowded(const AccessCost& accumulator) {
  return logical_and(logical_not(accumulator.in_loop), less(kAccumulators, accumulator.copies));
}

Sym matrix_slots(const Nest& nest, const Tile& tile, Sym copies) {
  const double cycles = std::max(kLeastCycles, nest.tensor->slots / kSlotsPerCycle);
  const double more = std::max(0.0, rows_of_b(nest) - cycles);
  Sym with_same_b = 1, is_same = 1;
  for (std::size_t i = first_loop(nest); i-- > 0;) {
    const NestLoop& loop = nest.loops[i];
    Sym moves = 0;
    for (const NestAccess& a : nest.accesses) {
      if (is_b(nest, a)) moves = logical_or(moves, logical_and(less(1, loop.extent), a.moves[i]));
    }
    is_same = logical_and(is_same, logical_and(tile.inside[i], logical_not(moves)));
    with_same_b *= select(is_same, loop.extent, 1);
  }
  return kSlotsPerCycle * copies * (cycles + more / with_same_b);
}

}  // namespace prunerc::costmodel
