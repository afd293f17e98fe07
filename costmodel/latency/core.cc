#include "costmodel/latency/core.h"

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel {
namespace {

/// Instructions a core can start per cycle besides what the ports below limit. Zen 4/5 and Golden
/// Cove: 6 to 8.
constexpr double kIssueWidth = 5;
/// Counter, compare, branch of a loop that is not unrolled.
constexpr double kLoopCycles = 1;
/// Leaving a loop: one mispredicted branch now and then, and refilling the pipeline.
constexpr double kLoopExitCycles = 6;
constexpr double kDivideSlots = 8;
/// Beyond so many statement instances the loop body leaves the decoded-instruction cache.
constexpr double kDecodedCache = 1500;
constexpr double kSlowDecode = 1.6;

/// One accumulator too many and the register allocator moves most of them: measured on a Zen 5
/// core, 8 x 4 vectors take twice the time of 6 x 4 per multiply-add.
constexpr double kSpillFactor = 1.8;

/// The innermost loops that become straight-line code: all unrolled and vectorized loops with no
/// serial loop inside, and a vectorized loop anywhere.
struct Tile {
  std::vector<int> loops;  // depths
  int vector_loop = -1;
  double lanes = 1;
  double vectors = 1;  // registers per statement along the vectorized loop
  int serial = -1;     // innermost loop that stays a loop
};

Tile find_tile(const Nest& nest, const ir::Target& target) {
  Tile tile;
  bool inside = true;
  for (int i = static_cast<int>(nest.loops.size()) - 1; i >= 0; --i) {
    const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    const bool vectorized = loop.kind == ir::LoopKind::kVectorized && tile.vector_loop < 0;
    if (vectorized) {
      tile.vector_loop = i;
      const auto most = static_cast<double>(target.lanes(nest.widest_bytes));
      tile.lanes = std::min(most, static_cast<double>(loop.extent));
      tile.vectors = std::ceil(static_cast<double>(loop.extent) / most);
    } else if (inside && (loop.kind == ir::LoopKind::kUnrolled || loop.extent == 1)) {
      tile.loops.push_back(i);
    } else {
      if (inside) tile.serial = i;
      inside = false;
    }
  }
  return tile;
}

bool access_depends(const NestTable& table, const Nest& nest, const NestAccess& a, int depth) {
  return std::any_of(a.indices.begin(), a.indices.end(),
                     [&](ir::Expr e) { return table.depends(nest, e, depth); });
}

// Elements between neighbours along a loop in the buffer as allocated.
double address_step(const NestTable& table, const Nest& nest, const NestAccess& a, int depth) {
  double stride = 1;
  double total = 0;
  const std::vector<double>& shape = table.shape(a.buffer);
  for (std::size_t d = a.indices.size(); d > 0; --d) {
    total += stride * table.step(nest, a.indices[d - 1], depth);
    stride *= shape[d - 1];
  }
  return total;
}

/// Operations on memory and registers of one access per pass through the tile.
struct AccessCost {
  double copies = 1;    // different places among the unrolled copies
  double uops = 1;      // instructions to load or store one copy
  bool in_loop = true;  // false: kept in registers over the serial loop
  bool moves_with_lanes = false;
};

AccessCost cost_of(const NestTable& table, const Nest& nest, const NestAccess& a,
                   const Tile& tile) {
  AccessCost cost;
  for (const int depth : tile.loops) {
    if (access_depends(table, nest, a, depth)) {
      cost.copies *= static_cast<double>(nest.loops[static_cast<std::size_t>(depth)].extent);
    }
  }
  if (tile.vector_loop >= 0) {
    const double step = std::abs(address_step(table, nest, a, tile.vector_loop));
    cost.moves_with_lanes = step != 0;
    if (step == 1) {
      cost.copies *= tile.vectors;
    } else if (step != 0) {
      // A gather or scatter moves lane by lane.
      cost.copies *= tile.vectors;
      cost.uops = tile.lanes * 1.5;
    }
  }
  if (a.is_masked && tile.vector_loop >= 0) cost.uops += 1;
  if (tile.serial >= 0 && !access_depends(table, nest, a, tile.serial)) cost.in_loop = false;
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

double guard_slots(const Nest& nest, double copies) {
  return nest.block != nullptr && nest.block->guard.defined() ? 1 + kGuardShare * copies : 0;
}

// A condition that stands still in the innermost loop is evaluated outside of it; its mask stays in
// a register.
double condition_slots(const NestTable& table, const Nest& nest, const Tile& tile, double copies) {
  double slots = 0;
  for (const NestCondition& c : nest.conditions) {
    const bool moves = tile.serial >= 0 && table.depends(nest, c.condition, tile.serial);
    slots += copies * (moves ? c.cost : 0.25);
  }
  return slots;
}

}  // namespace

CoreCost core_cost(const NestTable& table, const Nest& nest, const ir::Target& target) {
  const Tile tile = find_tile(nest, target);
  double unrolled = 1;
  for (const int depth : tile.loops) {
    unrolled *= static_cast<double>(nest.loops[static_cast<std::size_t>(depth)].extent);
  }
  const double copies = unrolled * tile.vectors;
  const double registers = static_cast<double>(std::max<int64_t>(target.num_vector_registers, 16));

  double loads = 0, stores = 0, latency = 0, setup = 0;
  CoreCost out;
  for (const NestAccess& a : nest.accesses) {
    const AccessCost cost = cost_of(table, nest, a, tile);
    const bool accumulates = a.is_read && a.is_write && !cost.in_loop;
    if (cost.in_loop) {
      loads += a.is_read ? cost.copies * cost.uops : 0;
      stores += a.is_write ? cost.copies * cost.uops : 0;
      if (a.is_read && !a.is_write) {
        // A scalar that is broadcast is an operand in memory; vectors are held while the rows use
        // them.
        out.tile_registers +=
            cost.moves_with_lanes ? std::min(cost.copies, std::max(1.0, tile.vectors)) : 0;
      }
      continue;
    }
    setup += cost.copies * cost.uops * ((a.is_read ? 1 : 0) + (a.is_write ? 1 : 0));
    if (a.is_write) out.tile_registers += cost.copies;
    if (!accumulates) continue;
    const double chain = copies / std::max(1.0, cost.copies);
    latency = std::max(
        latency, chain * static_cast<double>(std::max<int64_t>(1, target.fma_latency_cycles)));
  }
  // What does not fit into registers is written and read in every pass.
  const double spilled = std::max(0.0, out.tile_registers - registers);
  loads += spilled;
  stores += spilled;

  const auto ports = static_cast<double>(std::max<int64_t>(1, target.fma_ports));
  const auto load_ports = static_cast<double>(std::max<int64_t>(1, target.load_ports));
  const double slots = copies * arithmetic_slots(nest.ops) + guard_slots(nest, copies) +
                       0.6 * condition_slots(table, nest, tile, copies);
  const double issue = (slots + 0.5 * loads + stores + 1) / kIssueWidth;
  double pass = std::max({slots / ports, loads / load_ports, stores, latency, issue});
  out.code_size = copies;
  if (spilled > 0) pass *= kSpillFactor;
  if (copies > kDecodedCache) pass *= kSlowDecode;

  double passes = 1;
  double overhead = 0;
  bool innermost = true;
  for (int i = static_cast<int>(nest.loops.size()) - 1; i >= 0; --i) {
    const bool in_tile = i == tile.vector_loop ||
                         std::find(tile.loops.begin(), tile.loops.end(), i) != tile.loops.end();
    const NestLoop& loop = nest.loops[static_cast<std::size_t>(i)];
    const auto extent = static_cast<double>(loop.extent);
    if (in_tile) continue;
    if (loop.kind == ir::LoopKind::kUnrolled) out.code_size *= extent;
    // Costs so far are those of one run of the loops inside; now they repeat.
    overhead =
        overhead * extent +
        (innermost ? kLoopCycles * 0.5 * extent + setup / load_ports : kLoopCycles * extent) +
        kLoopExitCycles;
    passes *= extent;
    innermost = false;
  }
  out.cycles = passes * pass + overhead + (innermost ? setup : 0);
  return out;
}

}  // namespace prunerc::costmodel
