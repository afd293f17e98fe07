#include "costmodel/latency/matrix_tile.h"

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel {
namespace {

/// Cycles of an instruction of few rows. Measured on a Sapphire Rapids core: as many cycles as rows of A, at least ten;
/// as many as rows of B where the instruction before had another tile of B.
constexpr double kLeastCycles = 10;
/// Of eight tile registers, beside one for each operand.
constexpr double kAccumulators = 6;

double extent_of(const Nest& nest, std::size_t iter) {
  return static_cast<double>(nest.tensor->block().iters[iter].extent.as<ir::IntImm>()->value);
}

double rows_of_a(const Nest& nest) { return extent_of(nest, 0); }
double columns(const Nest& nest) { return extent_of(nest, 1); }
double rows_of_b(const Nest& nest) { return extent_of(nest, 2); }

// The instruction's outermost loop, taken to be that over the rows of A and C: so sketches order them. Where it is
// another (any order is legal), A and B change places, and numbers of rows are wrong.
std::size_t first_loop(const Nest& nest) {
  std::size_t at = nest.loops.size() - 1;
  while (at > 0 && nest.loops[at].in_instruction) --at;
  return at;
}

bool is_b(const Nest& nest, const NestAccess& a) {
  return !a.is_write && a.moves[first_loop(nest)].is(0);
}

const NestAccess* written(const Nest& nest) {
  const auto at = std::find_if(nest.accesses.begin(), nest.accesses.end(),
                               [](const NestAccess& a) { return a.is_write; });
  return at == nest.accesses.end() ? nullptr : &*at;
}

bool is_zero(ir::Expr e) {
  if (const auto* real = e.as<ir::FloatImm>())
    return real->value == 0 && !std::signbit(real->value);
  const auto* whole = e.as<ir::IntImm>();
  return whole != nullptr && whole->value == 0;
}

// The nest before, if it stores zeros in the buffer of the sums; null otherwise.
const Nest* fill_before(const NestTable& table, const Nest& nest, const NestAccess& sum) {
  if (&nest == &table.nests().front()) return nullptr;
  const Nest& before = *(&nest - 1);
  const auto* store = before.body.as<ir::Store>();
  const bool is_fill = store != nullptr && store->buffer == sum.buffer && is_zero(store->value);
  return is_fill ? &before : nullptr;
}

}  // namespace

bool is_matrix_tile(const Nest& nest) {
  return nest.tensor != nullptr && nest.tensor->uses_tiles();
}

double tile_rows(const Nest& nest, const NestAccess& a) {
  return is_b(nest, a) ? rows_of_b(nest) : rows_of_a(nest);
}

Sym has_sums_in_memory(const AccessCost& sum) {
  return logical_and(logical_not(sum.in_loop), less(kAccumulators, sum.copies));
}

Sym begins_at_zero(const NestTable& table, const Nest& nest) {
  const NestAccess* sum = written(nest);
  const Nest* fill = sum != nullptr ? fill_before(table, nest, *sum) : nullptr;
  if (fill == nullptr) return 0;
  const auto depth = static_cast<std::size_t>(common_depth(*fill, nest));
  const bool is_last = &nest == &table.nests().back();
  if (!is_last && common_depth(nest, *(&nest + 1)) > common_depth(*fill, nest)) return 0;
  Sym stays = 1, sums = 1, filled = 1;
  for (std::size_t i = depth; i < first_loop(nest); ++i) {
    const NestLoop& loop = nest.loops[i];
    if (loop.kind == ir::LoopKind::kParallel) return 0;
    if (loop.kind == ir::LoopKind::kUnrolled) {
      sums *= select(sum->moves[i], loop.extent, 1);
      continue;
    }
    stays = logical_and(stays, logical_or(less_equal(loop.extent, 1), logical_not(sum->moves[i])));
  }
  for (std::size_t i = depth; i < fill->loops.size(); ++i) filled *= fill->loops[i].extent;
  const Sym is_exact = equal(filled, sums * (rows_of_a(nest) * columns(nest)));
  return logical_and(logical_and(stays, is_exact), less_equal(sums, kAccumulators));
}

Sym is_spared_fill(const NestTable& table, const Nest& nest) {
  if (&nest == &table.nests().back()) return 0;
  const Nest& next = *(&nest + 1);
  return is_matrix_tile(next) ? begins_at_zero(table, next) : Sym(0);
}

Sym matrix_slots(const Nest& nest, const Tile& tile, const ir::Target& target, Sym copies) {
  const double cycles = std::max(kLeastCycles, rows_of_a(nest));
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
  const auto ports = static_cast<double>(std::max<int64_t>(1, target.fma_ports));
  return ports * copies * (cycles + more / with_same_b);
}

}  // namespace prunerc::costmodel
