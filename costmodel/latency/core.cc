#include "costmodel/latency/core.h"

#include "costmodel/latency/matrix_tile.h"
#include "costmodel/latency/tile.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

/// Instructions a core can start per cycle besides what the ports below limit. Zen 4/5 and Golden
/// Cove: 6 to 8.
constexpr double kIssueWidth = 5;
/// Counter, compare, branch of the innermost loop; those of the loops around it run beside it.
constexpr double kLoopCycles = 1;
/// Leaving a loop: one mispredicted branch now and then, and refilling the pipeline. Predictors
/// know the end of a short one.
constexpr double kLoopExitCycles = 6;
constexpr double kShortLoop = 32;
constexpr double kDivideSlots = 8;
/// Loads of single elements started per cycle: a Zen 4 core starts one load of 64 bytes, but two of
/// what fits half a register.
constexpr double kScalarLoadPorts = 2;
/// Operations that wait for others fill the schedulers of the vector units (64 places on Zen 4): a
/// chain that is shorter runs beside the next one.
constexpr double kSchedulerEntries = 64;
/// Beyond so many statement instances the loop body leaves the decoded-instruction cache.
constexpr double kUopCacheInstances = 1500;
constexpr double kDecodeFactor = 1.6;

/// One accumulator too many and the register allocator moves most of them: measured on a Zen 5
/// core, 8 x 4 vectors take twice the time of 6 x 4 per multiply-add.
constexpr double kSpillFactor = 1.8;

/// An accumulator whose lanes are masked stays in memory: the compiler keeps no masked store in a
/// register, and the next masked load waits for it. Measured on Zen 4 and 5 cores: 30 cycles from
/// one update to the next, 4 for each of several.
constexpr double kMaskedLatency = 30, kMaskedCycles = 4;

/// Part of what overlapping windows share that is in registers at a time. Measured: any value from
/// a quarter to 0.7 orders depthwise convolutions alike.
constexpr double kWindowRowsInRegisters = 0.4;

/// From the last of a sum to the first use of its total, for all lanes, in the loop around both:
/// nothing of the next iteration is far enough yet to run beside it. Measured on a Zen 5 core: a
/// layer norm of rows of 384 waits 80 cycles a row for mean and variance; with twice as many the
/// order of softmax programs stays the same.
constexpr double kReductionWaitCycles = 60;

double arithmetic_slots(const NestOps& ops) {
  const double fused = std::min(ops.add, ops.mul);
  // Comparisons and blends run on other pipes as well.
  const double other_pipes = ops.simple * 0.6;
  const double full = ops.add + ops.mul - fused + ops.special;
  return full + other_pipes + ops.divide * kDivideSlots;
}

/// Whole tiles run without their guard; what is left is the test per tile and the tail.
constexpr double kGuardShare = 0.1;

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
      moves = logical_or(moves, logical_and(tile.is_serial[i], c.moves[i]));
    }
    slots += copies * select(moves, c.cost, 0.25);
  }
  return slots;
}

/// Arithmetic in slots of a multiply-add port.
struct Work {
  Sym in_pass = 0;  // of one pass through the tile
  Sym outside = 0;  // of what moves out of the innermost loop, of the whole nest
};

Work count_work(const Nest& nest, const Tile& tile, const ir::Target& target, Sym copies) {
  Work out;
  if (nest.tensor != nullptr) {
    out.in_pass = is_matrix_tile(nest) ? matrix_slots(nest, tile, target, copies)
                                       : copies * nest.tensor->slots;
    return out;
  }
  for (const NestWork& part : nest.work) {
    const double slots = arithmetic_slots(part.ops);
    if (part.is_carried) {
      out.in_pass += copies * slots;
      continue;
    }
    Sym different = 1, in_loop = tile.is_all;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      in_loop = logical_or(in_loop, logical_and(tile.is_serial[i], part.moves[i]));
      const bool is_vector = static_cast<int>(i) == tile.vector_loop;
      const bool is_unrolled = nest.loops[i].kind == ir::LoopKind::kUnrolled;
      if (!is_vector && !is_unrolled) continue;
      const Sym counts = is_vector ? part.moves[i] : logical_and(tile.inside[i], part.moves[i]);
      different *= select(counts, is_vector ? tile.vectors : nest.loops[i].extent, 1);
    }
    out.in_pass += select(in_loop, different * slots, 0);
    out.outside += select(in_loop, 0, different * slots * hoisted_runs(nest, tile, part.moves));
  }
  return out;
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

// Rows of an operand on matrix tiles, which fill no vector registers. `begins`: of the innermost loop.
void count_tile_rows(const NestTable& table, const Nest& nest, const Tile& tile,
                     const NestAccess& a, const AccessCost& cost, Sym begins, Pass* pass) {
  const Sym rows = cost.copies * cost.uops;
  if (!a.is_write) {
    pass->loads += select(cost.in_loop, rows, 0);
    pass->setup += select(cost.in_loop, 0, rows * begins);
    return;
  }
  const Sym in_memory = has_sums_in_memory(cost);
  const Sym all_rows = select(in_memory, pass->copies * cost.uops, 0);
  const Sym loads = logical_not(begins_at_zero(table, nest));
  pass->loads += select(cost.in_loop, rows * loads, all_rows);
  pass->stores += select(cost.in_loop, rows, kMemoryRowCycles * all_rows);
  const Sym runs = hoisted_runs(nest, tile, a.moves);
  pass->setup +=
      select(logical_or(cost.in_loop, in_memory), 0, rows * (loads + kLoadsOfStoredRow) * runs);
  const Sym links = pass->copies / max(1, cost.copies);
  pass->latency = max(pass->latency, select(cost.in_loop, 0, links * kTileSumCycles));
  pass->chain = max(pass->chain, select(cost.in_loop, 0, pass->passes / runs));
}

Pass count_pass(const NestTable& table, const Nest& nest, const Tile& tile,
                const ir::Target& target) {
  Pass pass;
  pass.copies = tile.vectors;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (nest.loops[i].kind != ir::LoopKind::kUnrolled || nest.loops[i].in_instruction) continue;
    pass.copies *= select(tile.inside[i], nest.loops[i].extent, 1);
  }
  Sym begins = 1;  // of the innermost loop
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (static_cast<int>(i) == tile.vector_loop) continue;
    begins *= select(logical_or(tile.inside[i], tile.is_serial[i]), 1, nest.loops[i].extent);
    pass.passes *= select(tile.inside[i], 1, nest.loops[i].extent);
  }
  const auto fma_latency = static_cast<double>(std::max<int64_t>(1, target.fma_latency_cycles));
  // AVX-512 instructions broadcast an operand in memory.
  const bool has_broadcast = target.num_vector_registers >= 32;
  Sym scalars = 0;
  for (const NestAccess& a : nest.accesses) {
    const AccessCost cost = cost_of(table, nest, a, tile, target);
    if (is_matrix_tile(nest)) {
      count_tile_rows(table, nest, tile, a, cost, begins, &pass);
      continue;
    }
    const Sym uops = cost.copies * cost.uops;
    const Sym loads = select(logical_and(cost.in_loop, cost.reads), uops, 0);
    pass.loads += select(cost.moves_with_lanes, loads, 0);
    pass.scalars += select(cost.moves_with_lanes, 0, loads);
    pass.stores += select(logical_and(cost.in_loop, cost.writes), uops, 0);
    // What several instances use stays in registers: vectors of the operand that the rows share,
    // and a part of the rows that windows share. The scalars of the other operand pass through one
    // register, unless each is used once, as an operand in memory that is broadcast.
    const Sym is_shared = less(cost.copies, pass.copies);
    const Sym overlaps = less(cost.copies, cost.instances);
    const Sym vectors =
        select(is_shared, select(overlaps, kWindowRowsInRegisters, 1) * cost.copies, 1);
    const Sym scalar = has_broadcast ? is_shared : Sym(1);
    if (a.is_write) {
      pass.registers += select(cost.in_loop, 0, cost.copies);
    } else {
      pass.registers += select(logical_and(cost.in_loop, cost.moves_with_lanes), vectors, 0);
      scalars = max(scalars, select(logical_and(cost.in_loop, logical_not(cost.moves_with_lanes)),
                                    scalar, 0));
    }
    const Sym runs = a.is_write ? hoisted_runs(nest, tile, a.moves) : begins;
    pass.setup += select(cost.in_loop, 0, uops * (cost.reads + cost.writes) * runs);
    if (!a.is_read || !a.is_write) continue;
    const Sym links = pass.copies / max(1, cost.copies);
    pass.latency = max(pass.latency, select(cost.in_loop, 0, links * fma_latency));
    const bool is_memory = table.alloc_depth(a.buffer) == 0 &&
                           table.program().buffer(a.buffer).scope == ir::Scope::kGlobal;
    if (is_memory) {
      const Sym updates = logical_and(logical_not(cost.in_loop), cost.moves_with_lanes);
      pass.masked_updates += select(updates, cost.copies * links, 0);
      pass.masked_links = max(pass.masked_links, select(updates, links, 0));
    }
    pass.chain = max(pass.chain, select(cost.in_loop, 0, pass.passes / runs));
  }
  pass.registers += scalars;
  return pass;
}

// Truth, by loop: the nest before this one runs in it as well, and has paid for it. A block's init
// runs in the first iteration of the loops of its sum, so these are not, nor what is inside them.
std::vector<Sym> shared_loops(const NestTable& table, const Nest& nest) {
  std::vector<Sym> shared(nest.loops.size(), Sym(0));
  if (&nest == &table.nests().front()) return shared;
  const Nest& before = *(&nest - 1);
  const auto common = static_cast<std::size_t>(common_depth(before, nest));
  Sym so_far = 1;
  for (std::size_t i = 0; i < common; ++i) {
    so_far = logical_and(so_far, equal(before.loops[i].extent, nest.loops[i].extent));
    shared[i] = so_far;
  }
  return shared;
}

// Truth: a loop of its own stays around the tile, or it runs in none of another's.
Sym has_loop(const Nest& nest, const Tile& tile, const std::vector<Sym>& shared) {
  Sym out = shared.empty() ? Sym(1) : logical_not(shared[0]);
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (static_cast<int>(i) == tile.vector_loop) continue;
    const Sym stays = logical_and(logical_not(tile.inside[i]), less(1, nest.loops[i].extent));
    out = logical_or(out, logical_and(logical_not(shared[i]), stays));
  }
  return out;
}

// Cycles of leaving its own loops around the tile.
Sym exit_cycles(const Nest& nest, const Tile& tile, const std::vector<Sym>& shared) {
  Sym cycles = 0;
  for (std::size_t i = nest.loops.size(); i-- > 0;) {
    if (static_cast<int>(i) == tile.vector_loop) continue;
    const NestLoop& loop = nest.loops[i];
    const Sym is_loop = logical_not(logical_or(tile.inside[i], equal(loop.extent, 1)));
    const Sym is_free = logical_or(shared[i], less_equal(loop.extent, kShortLoop));
    const Sym own = select(is_free, 0, kLoopExitCycles);
    cycles = select(is_loop, cycles * loop.extent + own, cycles);
  }
  return cycles;
}

// Cycles in which a nest waits for what earlier ones of the same iteration have summed up, or made
// of that: a mean, a root.
Sym waiting(const NestTable& table, const Nest& nest, const Tile& tile) {
  Sym cycles = 0;
  if (tile.vector_loop < 0) return cycles;
  for (const NestAccess& a : nest.accesses) {
    const auto alloc_depth = static_cast<std::size_t>(table.alloc_depth(a.buffer));
    if (a.is_write || alloc_depth == 0 || !table.holds_reduction(a.buffer)) continue;
    Sym runs = 1;
    for (std::size_t i = 0; i < alloc_depth; ++i) {
      runs *= nest.loops[i].extent;
    }
    const Sym moves = a.moves[static_cast<std::size_t>(tile.vector_loop)];
    const Sym for_all_lanes = logical_and(less(1, tile.lanes), logical_not(moves));
    cycles = max(cycles, select(for_all_lanes, kReductionWaitCycles * runs, 0));
  }
  return cycles;
}

// Of a fill that is not emitted: leaving the loops that it has in common with the next nest, which
// counts them as paid for.
Sym spared_cycles(const Nest& nest, const Tile& tile, std::vector<Sym> shared) {
  const auto common = static_cast<std::size_t>(common_depth(nest, *(&nest + 1)));
  for (std::size_t i = common; i < shared.size(); ++i) shared[i] = 1;
  return exit_cycles(nest, tile, shared);
}

}  // namespace

CoreCost core_cost(const NestTable& table, const Nest& nest, const ir::Target& target) {
  const Tile tile = find_tile(nest, target);
  Pass pass = count_pass(table, nest, tile, target);
  const double registers = vector_registers(target);
  CoreCost out;
  out.tile_registers = pass.registers;
  // What does not fit into registers is written and read in every pass.
  const Sym spilled = max(0, pass.registers - registers);
  pass.loads += spilled;
  pass.stores += spilled;

  const auto ports = static_cast<double>(std::max<int64_t>(1, target.fma_ports));
  const auto load_ports = static_cast<double>(std::max<int64_t>(1, target.load_ports));
  const Work work = count_work(nest, tile, target, pass.copies);
  const Sym slots = work.in_pass + guard_slots(nest, pass.copies) +
                    0.6 * condition_slots(nest, tile, pass.copies);
  const Sym instructions = slots + 0.5 * (pass.loads + pass.scalars) + pass.stores + 1;
  const Sym loading =
      pass.loads / load_ports + pass.scalars / std::max(load_ports, kScalarLoadPorts);
  const Sym latency = pass.latency * min(1, pass.chain * work.in_pass / kSchedulerEntries);
  Sym cycles =
      max(max(slots / ports, loading), max(max(pass.stores, latency), instructions / kIssueWidth));
  const std::vector<Sym> shared = shared_loops(table, nest);
  cycles = max(cycles, select(has_loop(nest, tile, shared), kLoopCycles, 0));
  cycles *= select(less(0, spilled), kSpillFactor, 1);
  cycles *= select(less(kUopCacheInstances, pass.copies), kDecodeFactor, 1);

  const Sym masked =
      max(cycles, max(pass.masked_links * kMaskedLatency, pass.masked_updates * kMaskedCycles));
  cycles += nest.masked * (masked - cycles);

  out.code_size = pass.copies;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    const NestLoop& loop = nest.loops[i];
    if (static_cast<int>(i) == tile.vector_loop || loop.kind != ir::LoopKind::kUnrolled) continue;
    out.code_size *= select(tile.inside[i], 1, loop.extent);
  }
  out.cycles = pass.passes * cycles + exit_cycles(nest, tile, shared) + pass.setup / load_ports +
               work.outside / ports + waiting(table, nest, tile);
  const Sym is_spared = is_spared_fill(table, nest);
  if (is_spared.is(0)) return out;
  out.cycles = select(is_spared, spared_cycles(nest, tile, shared), out.cycles);
  return out;
}

}  // namespace prunerc::costmodel
