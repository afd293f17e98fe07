#include "costmodel/latency/warp.h"

#include "ir/thread_axis.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

constexpr double kWarp = 32;
constexpr double kBanks = 32;
constexpr double kBankBytes = 4;

/// Lanes beside each other whose equal requests are one.
constexpr double kMostAlike = 2;

/// A loop whose iterations one warp runs at once, or a digit of its variable: the number of those and
/// the elements between neighbours.
struct WarpLoop {
  Sym extent;
  Sym step;
  bool is_vector;
};

// Elements between neighbours along each dimension, as banks see them. A swizzle moves a piece on by one
// from row to row, whatever is between them, eight times; tiles begin in the same bank.
std::vector<Sym> bank_strides(const NestTable& table, const NestAccess& a) {
  std::vector<Sym> out = table.strides(a.buffer);
  if (table.panel(a.buffer).is(0)) return out;
  const auto bytes = static_cast<double>(a.element_bytes);
  std::fill(out.begin(), out.end(), Sym(kBanks * kBankBytes / bytes));
  out.end()[-1] = 1;
  out.end()[-2] = kAccessBytes / bytes;
  return out;
}

// Lanes along a row: of a swizzled one some in a panel, then panels, which begin in the same bank. `columns`
// of the step are along the row.
void add_lanes(const NestTable& table, const NestAccess& a, Sym extent, Sym step, Sym columns,
               std::vector<WarpLoop>* out) {
  const auto bytes = static_cast<double>(a.element_bytes);
  const Sym panel = table.panel(a.buffer) / bytes;
  if (panel.is(0)) {
    out->push_back({extent, step, false});
    return;
  }
  const Sym is_along = logical_and(less(0, columns), equal(step, columns));
  const Sym inside = select(is_along, min(extent, max(1, floor(panel / max(1, columns)))), extent);
  out->push_back({inside, step, false});
  out->push_back({max(1, extent / inside), kBanks * kBankBytes / bytes, false});
}

// A fused copy's x // 16 and x % 16: after as many lanes as the quotient stands still the remainder
// begins again, so these are one digit and the quotient's steps another.
void add_digits(const NestTable& table, const NestAccess& a, std::size_t depth, Sym extent,
                std::vector<WarpLoop>* out) {
  const std::vector<Sym> strides = bank_strides(table, a);
  Sym columns = 0;
  Sym slowest = 0, inner = 0, outer = 0;
  bool has_quotient = false;
  for (std::size_t d = 0; d < a.facts.size(); ++d) {
    const Sym step = abs(a.facts[d].step[depth]);
    columns = step;  // of the last dimension
    if (range_of(step).is_integer) {
      inner += step * strides[d];
      continue;
    }
    has_quotient = true;
    const Sym is_quotient = less(step, 1);
    slowest = max(slowest, select(is_quotient, step, 0));
    inner += select(is_quotient, 0, step * strides[d]);
    outer += select(is_quotient, step * strides[d], 0);
  }
  if (!has_quotient) return add_lanes(table, a, extent, inner, columns, out);
  const Sym lanes = select(less(0, slowest), min(extent, 1 / max(1e-9, slowest)), extent);
  add_lanes(table, a, lanes, inner, columns, out);
  out->push_back({max(1, extent / lanes), outer * lanes, false});
}

// The fastest first: lanes of a vector, then threads.
std::vector<WarpLoop> warp_loops(const NestTable& table, const Nest& nest, const NestAccess& a) {
  std::vector<WarpLoop> out;
  for (std::size_t i = nest.loops.size(); i-- > 0;) {
    if (nest.loops[i].kind != ir::LoopKind::kVectorized) continue;
    out.push_back({nest.loops[i].extent, abs(table.address_step(a, i)), true});
  }
  Sym left = kWarp;
  for (const ir::LoopKind kind :
       {ir::LoopKind::kThreadX, ir::LoopKind::kThreadY, ir::LoopKind::kThreadZ}) {
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      if (nest.loops[i].kind != kind) continue;
      const Sym extent = min(nest.loops[i].extent, left);
      add_digits(table, a, i, extent, &out);
      left = max(1, left / extent);
    }
  }
  return out;
}

// Rounds of shared memory. A lane's access of more than kAccessBytes is several; lanes that together
// ask for 128 bytes are a phase, of whatever size each is, and phases share nothing. In a phase:
// different words of the lanes over the banks that they reach.
Sym rounds(const NestTable& table, const NestAccess& a, const std::vector<WarpLoop>& loops,
           Sym width) {
  const auto bytes = static_cast<double>(a.element_bytes);
  Sym lane_bytes = width * bytes;
  Sym lanes = 1;
  for (const WarpLoop& loop : loops) {
    const Sym stands = equal(loop.step, 0);
    if (loop.is_vector) lane_bytes *= select(stands, 1, loop.extent);
    if (!loop.is_vector) lanes *= loop.extent;
  }
  const Sym piece = min(kAccessBytes, lane_bytes);
  Sym words = max(1, ceil(piece / kBankBytes));
  Sym banks = words;
  // Neighbouring lanes that ask shared memory for the same bytes ask once.
  Sym alike = 1, is_first = table.program().buffer(a.buffer).scope == ir::Scope::kShared ? 1 : 0;
  for (const WarpLoop& loop : loops) {
    if (loop.is_vector) continue;
    const Sym is_one = equal(loop.extent, 1);
    const Sym stands = logical_and(logical_not(is_one), equal(loop.step, 0));
    alike = select(logical_and(is_first, stands), kMostAlike, alike);
    is_first = logical_and(is_first, is_one);
    if (is_first.is(0)) break;
  }
  const Sym phase = kBanks / words * alike;  // lanes
  Sym left = phase;
  for (const WarpLoop& loop : loops) {
    if (loop.is_vector) continue;
    const Sym extent = min(loop.extent, left);
    left = max(1, left / extent);
    const Sym step = loop.step * bytes;
    // Neighbours within one word share it.
    const Sym word_step = floor(step / kBankBytes);
    const Sym others = select(less(step, kBankBytes), max(1, extent * step / kBankBytes), extent);
    const Sym moves = logical_not(equal(step, 0));
    const Sym places =
        kBanks /
        min(kBanks,
            max(1, power_of_two_factor(min(1e9, select(less(step, kBankBytes), 1, word_step)))));
    // `places` start banks; each holds what the loops inside reach, unless they overlap.
    const Sym reached = min(kBanks, banks * min(others, places));
    banks = select(moves, reached, banks);
    words *= select(moves, others, 1);
  }
  return lane_bytes / piece * max(1, lanes / phase) * max(1, words / banks);
}

}  // namespace

WarpRequest warp_request(const NestTable& table, const Nest& nest, const NestAccess& a,
                         double granule) {
  return warp_request(table, nest, a, granule, 1);
}

WarpRequest warp_request(const NestTable& table, const Nest& nest, const NestAccess& a,
                         double granule, Sym width) {
  const std::vector<WarpLoop> loops = warp_loops(table, nest, a);
  const auto bytes = static_cast<double>(a.element_bytes);
  WarpRequest out;
  out.lane_bytes = width * bytes;
  out.useful_bytes = out.lane_bytes;
  Sym run = out.lane_bytes, count = 1;  // pieces of contiguous bytes
  for (const WarpLoop& loop : loops) {
    const Sym step = loop.step * bytes;
    const Sym stands = equal(step, 0);
    const Sym joins = logical_or(less_equal(step, run), less(step, granule));
    run += select(joins, (loop.extent - 1) * step, 0);
    count *= select(joins, 1, loop.extent);
    out.useful_bytes *= select(stands, 1, loop.extent);
    if (loop.is_vector) out.lane_bytes *= select(stands, 1, loop.extent);
  }
  out.sectors = count * ceil(run / granule);
  out.shared_wavefronts = rounds(table, a, loops, width);
  return out;
}

ThreadExtents thread_extents(const Nest& nest) {
  ThreadExtents out;
  for (const NestLoop& loop : nest.loops) {
    if (ir::is_block_axis(loop.kind)) {
      out.blocks *= loop.extent;
    } else if (ir::is_lane_axis(loop.kind)) {
      out.threads *= loop.extent;
    } else {
      out.per_thread *= loop.extent;
      if (ir::is_thread_axis(loop.kind)) out.vthreads *= loop.extent;
    }
  }
  return out;
}

}  // namespace prunerc::costmodel
