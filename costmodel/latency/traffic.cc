#include "costmodel/latency/traffic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace prunerc::costmodel {
namespace {

/// Share of a cache that data can use before replacement starts to hurt.
constexpr double kUsableShare = 0.8;

struct Cache {
  double bytes;
  double num_sets;  // for conflicts of equal low address bits; 1: not modelled
  double line;
};

/// What one access touches while the loops from some depth inwards run.
struct Footprint {
  double bytes = 0;  // whole lines
  double occupied =
      0;  // bytes of cache it takes: more than `bytes` where rows compete for few sets
};

Footprint footprint(const NestTable& table, const Nest& nest, const NestAccess& a, int depth,
                    const Cache& cache) {
  const std::vector<double>& shape = table.shape(a.buffer);
  // Loops outside the buffer's home reuse the same memory.
  const int from = std::max(depth, table.home_depth(a.buffer));
  const auto element = static_cast<double>(a.element_bytes);
  double run_bytes = element;  // contiguous along the innermost dimensions
  double rows = 1;
  double row_stride = element;
  double conflict_stride = 0;
  bool contiguous = true;
  for (std::size_t d = a.indices.size(); d > 0; --d) {
    const double extent = shape[d - 1];
    const double touched = std::min(extent, table.distinct(nest, a.indices[d - 1], from));
    if (contiguous) {
      const double reach = std::min(extent, table.span(nest, a.indices[d - 1], from) + 1);
      run_bytes = reach * row_stride;
      contiguous = touched >= extent;
    } else if (touched > 1 && rows == 1 && row_stride < cache.line) {
      run_bytes = touched * row_stride;  // several steps share a line
    } else if (touched > 1) {
      if (conflict_stride == 0) conflict_stride = row_stride;
      rows *= touched;
    }
    row_stride *= extent;
  }
  const double lines_per_row = std::max(1.0, std::ceil(run_bytes / cache.line));
  Footprint out;
  out.bytes = rows * lines_per_row * cache.line;
  out.occupied = out.bytes;
  if (rows > 1 && conflict_stride > 0 && cache.num_sets > 1) {
    const double line_stride = std::fmod(conflict_stride / cache.line, cache.num_sets);
    const auto step = static_cast<int64_t>(line_stride);
    const auto sets = static_cast<int64_t>(cache.num_sets);
    if (line_stride == static_cast<double>(step)) {
      const double starts = static_cast<double>(step == 0 ? 1 : sets / std::gcd(step, sets));
      const double used = std::min(cache.num_sets, starts * lines_per_row);
      if (rows > starts) out.occupied = out.bytes * cache.num_sets / used;
    }
  }
  return out;
}

double occupied(const NestTable& table, const Nest& nest, int depth, const Cache& cache) {
  double total = 0;
  for (const NestAccess& a : nest.accesses) {
    total += footprint(table, nest, a, depth, cache).occupied;
  }
  return total;
}

bool depends(const NestTable& table, const Nest& nest, const NestAccess& a, int depth) {
  if (depth < table.home_depth(a.buffer)) return false;
  return std::any_of(a.indices.begin(), a.indices.end(),
                     [&](ir::Expr e) { return table.depends(nest, e, depth); });
}

int common_depth(const Nest& a, const Nest& b) {
  std::size_t depth = 0;
  while (depth < a.loops.size() && depth < b.loops.size() &&
         a.loops[depth].id == b.loops[depth].id) {
    ++depth;
  }
  return static_cast<int>(depth);
}

/// Does an earlier nest leave what `a` reads in the cache? Then only the loops above `shared` bring
/// it in.
bool is_resident(const NestTable& table, std::size_t nest_idx, const NestAccess& a,
                 const Cache& cache) {
  const std::vector<Nest>& nests = table.nests();
  const Nest& nest = nests[nest_idx];
  for (std::size_t p = nest_idx; p > 0; --p) {
    const Nest& earlier = nests[p - 1];
    const bool touches =
        std::any_of(earlier.accesses.begin(), earlier.accesses.end(),
                    [&](const NestAccess& other) { return other.buffer == a.buffer; });
    if (!touches) continue;
    const int depth = common_depth(earlier, nest);
    double total = 0;
    for (std::size_t i = p - 1; i <= nest_idx; ++i) {
      total += occupied(table, nests[i], depth, cache);
    }
    return total <= cache.bytes;
  }
  return false;
}

double missed_bytes(const NestTable& table, std::size_t nest_idx, const Cache& cache,
                    bool whole_fits) {
  const Nest& nest = table.nests()[nest_idx];
  const int num_loops = static_cast<int>(nest.loops.size());
  int depth = num_loops;
  while (depth > 0 && occupied(table, nest, depth - 1, cache) <= cache.bytes) --depth;
  // Measurements repeat: what fits as a whole is there from the run before.
  if (depth == 0 && whole_fits) return 0;
  double total = 0;
  for (const NestAccess& a : nest.accesses) {
    double bytes = footprint(table, nest, a, depth, cache).bytes;
    if (is_resident(table, nest_idx, a, cache)) continue;
    for (int i = depth - 1; i >= 0; --i) {
      // The loop just outside finds again what does not move with it.
      if (i == depth - 1 && !depends(table, nest, a, i)) continue;
      if (i < table.home_depth(a.buffer)) continue;
      bytes *= static_cast<double>(nest.loops[static_cast<std::size_t>(i)].extent);
    }
    // A written line is read first and written back later.
    total += bytes * (a.is_write ? 2 : 1);
  }
  return total;
}

}  // namespace

std::vector<Traffic> estimate_traffic(const NestTable& table, const ir::Target& target) {
  const double line =
      target.cache_line_bytes > 0 ? static_cast<double>(target.cache_line_bytes) : 64.0;
  const double l1 = static_cast<double>(std::max<int64_t>(target.l1d_bytes, 32 * 1024));
  const double l2 = static_cast<double>(std::max<int64_t>(target.l2_bytes, 256 * 1024));
  const double l3 = static_cast<double>(std::max<int64_t>(target.l3_bytes, 4 * 1024 * 1024));
  // 4 KiB and 64 KiB: what sets times lines make in every x86 core of the table, within a factor of
  // two.
  const Cache caches[] = {
      {l1 * kUsableShare, 64, line}, {l2 * kUsableShare, 1024, line}, {l3 * kUsableShare, 1, line}};
  double whole = 0;
  for (const Nest& nest : table.nests()) {
    for (const NestAccess& a : nest.accesses) {
      whole += footprint(table, nest, a, 0, caches[2]).bytes;
    }
  }
  std::vector<Traffic> out(table.nests().size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].l1_miss_bytes = missed_bytes(table, i, caches[0], whole <= caches[0].bytes);
    out[i].l2_miss_bytes = missed_bytes(table, i, caches[1], whole <= caches[1].bytes);
    out[i].l3_miss_bytes = missed_bytes(table, i, caches[2], whole <= caches[2].bytes);
  }
  return out;
}

}  // namespace prunerc::costmodel
