#include "costmodel/latency/tile.h"

#include "costmodel/latency/matrix_tile.h"
#include "costmodel/latency/traffic.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

/// Largest step between lanes that is loaded as vectors (interleaved accesses of the back end).
/// Measured on a Zen 4 core: a depthwise convolution of stride 2 takes a tenth of what gathers
/// would.
constexpr double kMaxShuffledStep = 4;

/// Of a vector that is a column of a loaded tile: its load and its shuffles.
constexpr double kColumnAccesses = 3;

// Places that the unrolled copies touch. Rows of a window that overlap are loaded once: 4 rows of
// outputs read 6 rows of inputs in 3 x 4 instances.
Sym different_places(const Nest& nest, const NestAccess& a, const Tile& tile) {
  Sym places = 1;
  for (const IndexFacts& index : a.facts) {
    Sym values = 1, span = 1;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      if (nest.loops[i].kind != ir::LoopKind::kUnrolled || nest.loops[i].in_instruction) continue;
      const Sym counts = logical_and(tile.inside[i], index.moves[i]);
      values *= select(counts, nest.loops[i].extent, 1);
      span += select(counts, (nest.loops[i].extent - 1) * max(1, abs(index.step[i])), 0);
    }
    places *= min(values, span);
  }
  return places;
}

// Accesses more for each vector because it reaches into a second line: of 64 bytes nearly all do
// that do not begin at a line. Where neighbours along a loop are not whole vectors apart, one
// iteration in so many is aligned. Cores that load half a vector at a time (Zen 4) lose half of it.
Sym crossings(const NestTable& table, const Nest& nest, const NestAccess& a, const Tile& tile,
              const ir::Target& target) {
  const double line = line_bytes(target) / static_cast<double>(a.element_bytes);
  const double lost = std::min(1.0, 0.5 * static_cast<double>(target.load_ports));
  Sym aligned = 1;
  // Loops outside the buffer's allocation find it in the same place.
  for (auto i = static_cast<std::size_t>(table.alloc_depth(a.buffer)); i < nest.loops.size(); ++i) {
    if (static_cast<int>(i) == tile.vector_loop) continue;
    const Sym step = abs(table.address_step(a, i));
    const Sym shifts = logical_and(less(0, step), less(power_of_two_factor(step), tile.lanes));
    aligned *= select(shifts, 1 / max(1, min(line, nest.loops[i].extent)), 1);
  }
  return lost * (1 - aligned) * (tile.lanes - 1) / line;
}

// A tile of as many rows as lanes, read across its rows: loaded as it lies, its columns come from shuffles.
Sym is_column(const NestTable& table, const Nest& nest, const NestAccess& a, const Tile& tile) {
  if (!a.is_read || tile.vector_loop < 1) return 0;
  const auto rows = static_cast<std::size_t>(tile.vector_loop) - 1;
  if (nest.loops[rows].kind != ir::LoopKind::kUnrolled) return 0;
  return logical_and(equal(table.address_step(a, rows), 1),
                     equal(nest.loops[rows].extent, tile.lanes));
}

// What changes with the vectorized loop.
void spread_over_lanes(const NestTable& table, const Nest& nest, const NestAccess& a,
                       const Tile& tile, const ir::Target& target, AccessCost* cost) {
  const Sym step = abs(table.address_step(a, static_cast<std::size_t>(tile.vector_loop)));
  cost->moves_with_lanes = logical_and(logical_not(equal(step, 0)), less(1, tile.lanes));
  cost->copies *= select(cost->moves_with_lanes, tile.vectors, 1);
  cost->instances *= select(cost->moves_with_lanes, tile.vectors, 1);
  if (nest.tensor != nullptr) {
    cost->uops = select(cost->moves_with_lanes, 1 + crossings(table, nest, a, tile, target), 1);
    return;
  }
  // A gather or scatter moves lane by lane; small steps are whole vectors and shuffles.
  const Sym gathers = logical_and(cost->moves_with_lanes, logical_not(equal(step, 1)));
  const Sym gathered = select(is_column(table, nest, a, tile), kColumnAccesses, tile.lanes * 1.5);
  // Where lanes share elements, as in i // 2, there is still a load and its shuffle.
  const Sym apart = select(less_equal(step, kMaxShuffledStep), 1.25 * max(1, step), gathered);
  cost->uops = select(gathers, apart, 1);
  const Sym is_vector = logical_and(cost->moves_with_lanes, less_equal(step, kMaxShuffledStep));
  cost->uops *= select(is_vector, 1 + crossings(table, nest, a, tile, target), 1);
  if (a.is_masked) cost->uops += less(1, tile.lanes);
}

}  // namespace

double vector_registers(const ir::Target& target) {
  return static_cast<double>(std::max<int64_t>(target.num_vector_registers, 16));
}

Tile find_tile(const Nest& nest, const ir::Target& target) {
  Tile tile;
  tile.inside.assign(nest.loops.size(), Sym(0));
  tile.is_serial.assign(nest.loops.size(), Sym(0));
  for (std::size_t i = nest.loops.size(); i-- > 0;) {
    const NestLoop& loop = nest.loops[i];
    if (loop.kind == ir::LoopKind::kVectorized && tile.vector_loop < 0) {
      tile.vector_loop = static_cast<int>(i);
      const auto most = static_cast<double>(target.lanes(nest.widest_bytes));
      tile.lanes = min(most, loop.extent);
      tile.vectors = is_matrix_tile(nest) ? Sym(1) : ceil(loop.extent / most);
      continue;
    }
    const Sym unrolled = loop.kind == ir::LoopKind::kUnrolled ? Sym(1) : equal(loop.extent, 1);
    tile.inside[i] = logical_and(tile.is_all, unrolled);
    tile.is_serial[i] = logical_and(tile.is_all, logical_not(unrolled));
    tile.is_all = tile.inside[i];
  }
  return tile;
}

AccessCost cost_of(const NestTable& table, const Nest& nest, const NestAccess& a, const Tile& tile,
                   const ir::Target& target) {
  AccessCost cost;
  cost.in_loop = tile.is_all;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    cost.in_loop = logical_or(cost.in_loop, logical_and(tile.is_serial[i], a.moves[i]));
    if (nest.loops[i].kind != ir::LoopKind::kUnrolled || nest.loops[i].in_instruction) continue;
    cost.copies *= select(logical_and(tile.inside[i], a.moves[i]), nest.loops[i].extent, 1);
  }
  cost.instances = cost.copies;
  cost.copies = min(cost.copies, different_places(nest, a, tile));
  if (is_matrix_tile(nest)) {
    // Whole rows, which memory alone holds between instructions.
    cost.uops = tile_rows(nest, a);
    cost.moves_with_lanes = 1;
    cost.reads = a.is_read ? 1 : 0;
    cost.writes = a.is_write ? 1 : 0;
    return cost;
  }
  if (tile.vector_loop >= 0) spread_over_lanes(table, nest, a, tile, target, &cost);
  // Counted as this nest moves it: where another reads lane by lane what was written as vectors, it
  // pays a load for each, about what taking a lane out of a register costs.
  const Sym is_register =
      logical_and(table.in_registers(a.buffer), less_equal(cost.copies, vector_registers(target)));
  const bool is_left = table.program().buffer(a.buffer).role != ir::BufferRole::kIntermediate &&
                       !table.is_written_after(nest, a.buffer);
  cost.reads = a.is_read ? logical_not(is_register) : Sym(0);
  cost.writes = !a.is_write ? Sym(0) : is_left ? Sym(1) : logical_not(is_register);
  return cost;
}

Sym hoisted_runs(const Nest& nest, const Tile& tile, const std::vector<Sym>& moves) {
  Sym runs = 1, moved = 0;
  for (std::size_t i = nest.loops.size(); i-- > 0;) {
    if (static_cast<int>(i) == tile.vector_loop) continue;
    const Sym is_loop = logical_and(logical_not(tile.inside[i]), less(1, nest.loops[i].extent));
    moved = logical_or(moved, logical_and(is_loop, moves[i]));
    runs *= select(logical_and(moved, is_loop), nest.loops[i].extent, 1);
  }
  return runs;
}

}  // namespace prunerc::costmodel
