#include "costmodel/latency/core.h"

#include "costmodel/latency/traffic.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

/// Instructions a core can start per cycle besides what the ports below limit. Zen 4/5 and Golden
/// Cove: 6 to 8.
constexpr double kIssueWidth = 5;
/// Counter, compare, branch of a loop that is not unrolled.
constexpr double kLoopCycles = 1;
/// Leaving a loop: one mispredicted branch now and then, and refilling the pipeline. Predictors
/// know the end of a short one.
constexpr double kLoopExitCycles = 6, kShortExitCycles = 1;
constexpr double kShortLoop = 32;
constexpr double kDivideSlots = 8;
/// Loads of single elements started per cycle: a Zen 4 core starts one load of 64 bytes, but two of
/// what fits half a register.
constexpr double kScalarLoadPorts = 2;
/// Operations that wait for others fill the schedulers of the vector units (64 places on Zen 4): a
/// chain that is shorter runs beside the next one.
constexpr double kWaiting = 64;
/// Beyond so many statement instances the loop body leaves the decoded-instruction cache.
constexpr double kDecodedCache = 1500;
constexpr double kSlowDecode = 1.6;

/// One accumulator too many and the register allocator moves most of them: measured on a Zen 5
/// core, 8 x 4 vectors take twice the time of 6 x 4 per multiply-add.
constexpr double kSpillFactor = 1.8;

/// An accumulator whose lanes are masked stays in memory: the compiler keeps no masked store in a
/// register, and the next masked load waits for it. Measured on Zen 4 and 5 cores: 30 cycles from
/// one update to the next, 4 for each of several.
constexpr double kMaskedLatency = 30, kMaskedCycles = 4;

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
      tile.vectors = ceil(loop.extent / most);
      continue;
    }
    const Sym unrolled = loop.kind == ir::LoopKind::kUnrolled ? Sym(1) : equal(loop.extent, 1);
    tile.inside[i] = both(tile.is_all, unrolled);
    tile.is_serial[i] = both(tile.is_all, negate(unrolled));
    tile.is_all = tile.inside[i];
  }
  return tile;
}

/// Operations on memory and registers of one access per pass through the tile.
struct AccessCost {
  Sym copies = 1;     // different places among the unrolled copies
  Sym instances = 1;  // unrolled copies that move it
  Sym uops = 1;       // accesses of L1 for one copy
  Sym in_loop = 1;    // truth; else kept in registers over the serial loop
  Sym moves_with_lanes = 0;
};

/// Part of what overlapping windows share that is in registers at a time. Measured: any value from
/// a quarter to 0.7 orders depthwise convolutions alike.
constexpr double kHeldRows = 0.4;

/// Largest step between lanes that is loaded as vectors (interleaved accesses of the back end).
/// Measured on a Zen 4 core: a depthwise convolution of stride 2 takes a tenth of what gathers
/// would.
constexpr double kShuffledStep = 4;

// Places that the unrolled copies touch. Rows of a window that overlap are loaded once: 4 rows of
// outputs read 6 rows of inputs in 3 x 4 instances.
Sym different_places(const Nest& nest, const NestAccess& a, const Tile& tile) {
  Sym places = 1;
  for (const IndexFacts& index : a.facts) {
    Sym values = 1, span = 1;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      if (nest.loops[i].kind != ir::LoopKind::kUnrolled) continue;
      const Sym counts = both(tile.inside[i], index.moves[i]);
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
  // Loops outside the buffer's home find it in the same place.
  for (auto i = static_cast<std::size_t>(table.home_depth(a.buffer)); i < nest.loops.size(); ++i) {
    if (static_cast<int>(i) == tile.vector_loop) continue;
    const Sym step = abs(table.address_step(a, i));
    const Sym shifts = both(less(0, step), less(twos_part(step), tile.lanes));
    aligned *= select(shifts, 1 / max(1, min(line, nest.loops[i].extent)), 1);
  }
  return lost * (1 - aligned) * (tile.lanes - 1) / line;
}

AccessCost cost_of(const NestTable& table, const Nest& nest, const NestAccess& a, const Tile& tile,
                   const ir::Target& target) {
  AccessCost cost;
  cost.in_loop = tile.is_all;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    cost.in_loop = either(cost.in_loop, both(tile.is_serial[i], a.moves[i]));
    if (nest.loops[i].kind != ir::LoopKind::kUnrolled) continue;
    cost.copies *= select(both(tile.inside[i], a.moves[i]), nest.loops[i].extent, 1);
  }
  cost.instances = cost.copies;
  cost.copies = min(cost.copies, different_places(nest, a, tile));
  if (tile.vector_loop < 0) return cost;
  const Sym step = abs(table.address_step(a, static_cast<std::size_t>(tile.vector_loop)));
  cost.moves_with_lanes = both(negate(equal(step, 0)), less(1, tile.lanes));
  cost.copies *= select(cost.moves_with_lanes, tile.vectors, 1);
  cost.instances *= select(cost.moves_with_lanes, tile.vectors, 1);
  // A gather or scatter moves lane by lane; small steps are whole vectors and shuffles.
  const Sym gathers = both(cost.moves_with_lanes, negate(equal(step, 1)));
  const Sym apart = select(less_equal(step, kShuffledStep), 1.25 * step, tile.lanes * 1.5);
  cost.uops = select(gathers, apart, 1);
  const Sym is_vector = both(cost.moves_with_lanes, less_equal(step, kShuffledStep));
  cost.uops *= select(is_vector, 1 + crossings(table, nest, a, tile, target), 1);
  if (a.is_masked) cost.uops += less(1, tile.lanes);
  return cost;
}

double arithmetic_slots(const NestOps& ops) {
  const double fused = std::min(ops.add, ops.mul);
  // Comparisons and blends run on other pipes as well.
  const double other_pipes = ops.simple * 0.6;
  const double full = ops.add + ops.mul - fused + ops.special;
  return full + other_pipes + ops.divide * kDivideSlots;
}

/// Whole tiles run without their guard; what is left is the test per tile and the tail.
constexpr double kGuardShare = 0.1;

/// Times that something is done which loops below do not change: it moves out of these.
Sym runs_of(const Nest& nest, const Tile& tile, const std::vector<Sym>& moves) {
  Sym runs = 1, moved = 0;
  for (std::size_t i = nest.loops.size(); i-- > 0;) {
    if (static_cast<int>(i) == tile.vector_loop) continue;
    const Sym is_loop = both(negate(tile.inside[i]), less(1, nest.loops[i].extent));
    moved = either(moved, both(is_loop, moves[i]));
    runs *= select(both(moved, is_loop), nest.loops[i].extent, 1);
  }
  return runs;
}

// Charged in each pass, though the test of a whole tile stands outside: tiles that reach beyond the
// end waste more than their share of the rows.
Sym guard_slots(const Nest& nest, Sym copies) {
  return select(nest.is_guarded, 1 + kGuardShare * copies, 0);
}

// A condition that stands still in the innermost loop is evaluated outside of it; its mask stays in
// a register.
Sym condition_slots(const Nest& nest, const Tile& tile, Sym copies) {
  Sym slots = 0;
  for (const NestCondition& c : nest.conditions) {
    Sym moves = 0;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      moves = either(moves, both(tile.is_serial[i], c.moves[i]));
    }
    slots += copies * select(moves, c.cost, 0.25);
  }
  return slots;
}

/// What one pass through the tile needs.
struct Pass {
  Sym passes = 1;  // how many there are
  Sym copies = 1, loads = 0, stores = 0;
  Sym scalars = 0;  // loads of one element for all lanes, mostly operands of arithmetic
  Sym latency = 0;  // of the accumulators' chain
  Sym chain = 0;    // passes until it begins anew
  Sym setup = 0;    // loads and stores outside of the serial loops, of the whole nest
  Sym registers = 0;
  // Of accumulators that stay in memory where their lanes are masked: how many updates there are,
  // and how many of them wait for each other.
  Sym masked_updates = 0, masked_links = 0;
};

Pass count_pass(const NestTable& table, const Nest& nest, const Tile& tile,
                const ir::Target& target) {
  Pass pass;
  pass.copies = tile.vectors;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (nest.loops[i].kind != ir::LoopKind::kUnrolled) continue;
    pass.copies *= select(tile.inside[i], nest.loops[i].extent, 1);
  }
  Sym begins = 1;  // of the innermost loop
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (static_cast<int>(i) == tile.vector_loop) continue;
    begins *= select(either(tile.inside[i], tile.is_serial[i]), 1, nest.loops[i].extent);
    pass.passes *= select(tile.inside[i], 1, nest.loops[i].extent);
  }
  const auto fma_latency = static_cast<double>(std::max<int64_t>(1, target.fma_latency_cycles));
  // AVX-512 instructions broadcast an operand in memory.
  const bool has_broadcast = target.num_vector_registers >= 32;
  Sym scalars = 0;
  for (const NestAccess& a : nest.accesses) {
    const AccessCost cost = cost_of(table, nest, a, tile, target);
    const Sym uops = cost.copies * cost.uops;
    if (a.is_read) {
      const Sym loads = select(cost.in_loop, uops, 0);
      pass.loads += select(cost.moves_with_lanes, loads, 0);
      pass.scalars += select(cost.moves_with_lanes, 0, loads);
    }
    if (a.is_write) pass.stores += select(cost.in_loop, uops, 0);
    // What several instances use stays in registers: vectors of the operand that the rows share,
    // and a part of the rows that windows share. The scalars of the other operand pass through one
    // register, unless each is used once, as an operand in memory that is broadcast.
    const Sym is_shared = less(cost.copies, pass.copies);
    const Sym overlaps = less(cost.copies, cost.instances);
    const Sym vectors = select(is_shared, select(overlaps, kHeldRows, 1) * cost.copies, 1);
    const Sym scalar = has_broadcast ? is_shared : Sym(1);
    if (a.is_write) {
      pass.registers += select(cost.in_loop, 0, cost.copies);
    } else {
      pass.registers += select(both(cost.in_loop, cost.moves_with_lanes), vectors, 0);
      scalars = max(scalars, select(both(cost.in_loop, negate(cost.moves_with_lanes)), scalar, 0));
    }
    const double ways = (a.is_read ? 1 : 0) + (a.is_write ? 1 : 0);
    const Sym runs = a.is_write ? runs_of(nest, tile, a.moves) : begins;
    pass.setup += select(cost.in_loop, 0, uops * ways * runs);
    if (!a.is_read || !a.is_write) continue;
    const Sym links = pass.copies / max(1, cost.copies);
    pass.latency = max(pass.latency, select(cost.in_loop, 0, links * fma_latency));
    const bool is_memory = table.home_depth(a.buffer) == 0 &&
                           table.program().buffer(a.buffer).scope == ir::Scope::kGlobal;
    if (is_memory) {
      const Sym updates = both(negate(cost.in_loop), cost.moves_with_lanes);
      pass.masked_updates += select(updates, cost.copies * links, 0);
      pass.masked_links = max(pass.masked_links, select(updates, links, 0));
    }
    pass.chain = max(pass.chain, select(cost.in_loop, 0, pass.passes / runs));
  }
  pass.registers += scalars;
  return pass;
}

// Cycles of the loops around the tile, besides the passes through it: the innermost one's counter
// runs beside them.
Sym loop_overhead(const Nest& nest, const Tile& tile) {
  Sym overhead = 0, is_innermost = 1;
  for (std::size_t i = nest.loops.size(); i-- > 0;) {
    if (static_cast<int>(i) == tile.vector_loop) continue;
    const NestLoop& loop = nest.loops[i];
    const Sym is_loop = negate(either(tile.inside[i], equal(loop.extent, 1)));
    const Sym counter = select(is_innermost, 0, kLoopCycles * loop.extent);
    const Sym exit = select(less_equal(loop.extent, kShortLoop), kShortExitCycles, kLoopExitCycles);
    overhead = select(is_loop, overhead * loop.extent + counter + exit, overhead);
    is_innermost = both(is_innermost, negate(is_loop));
  }
  return overhead;
}

}  // namespace

CoreCost core_cost(const NestTable& table, const Nest& nest, const ir::Target& target) {
  const Tile tile = find_tile(nest, target);
  Pass pass = count_pass(table, nest, tile, target);
  const double registers = static_cast<double>(std::max<int64_t>(target.num_vector_registers, 16));
  CoreCost out;
  out.tile_registers = pass.registers;
  // What does not fit into registers is written and read in every pass.
  const Sym spilled = max(0, pass.registers - registers);
  pass.loads += spilled;
  pass.stores += spilled;

  const auto ports = static_cast<double>(std::max<int64_t>(1, target.fma_ports));
  const auto load_ports = static_cast<double>(std::max<int64_t>(1, target.load_ports));
  const Sym arithmetic = pass.copies * arithmetic_slots(nest.ops);
  const Sym slots =
      arithmetic + guard_slots(nest, pass.copies) + 0.6 * condition_slots(nest, tile, pass.copies);
  const Sym instructions = slots + 0.5 * (pass.loads + pass.scalars) + pass.stores + 1;
  const Sym loading =
      pass.loads / load_ports + pass.scalars / std::max(load_ports, kScalarLoadPorts);
  const Sym latency = pass.latency * min(1, pass.chain * arithmetic / kWaiting);
  Sym cycles =
      max(max(slots / ports, loading), max(max(pass.stores, latency), instructions / kIssueWidth));
  cycles = max(cycles, kLoopCycles);
  cycles *= select(less(0, spilled), kSpillFactor, 1);
  cycles *= select(less(kDecodedCache, pass.copies), kSlowDecode, 1);

  const Sym masked =
      max(cycles, max(pass.masked_links * kMaskedLatency, pass.masked_updates * kMaskedCycles));
  cycles += nest.masked * (masked - cycles);

  out.code_size = pass.copies;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    const NestLoop& loop = nest.loops[i];
    if (static_cast<int>(i) == tile.vector_loop || loop.kind != ir::LoopKind::kUnrolled) continue;
    out.code_size *= select(tile.inside[i], 1, loop.extent);
  }
  out.cycles = pass.passes * cycles + loop_overhead(nest, tile) + pass.setup / load_ports;
  return out;
}

}  // namespace prunerc::costmodel
