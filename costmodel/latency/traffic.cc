#include "costmodel/latency/traffic.h"

#include <algorithm>
#include <map>
#include <utility>

namespace prunerc::costmodel {
namespace {

/// Parts of a cache: data that needs no more than the first is all there when it comes round again,
/// of what reaches the second nothing is.
constexpr double kUsableShare = 0.8, kLostShare = 1.2;

struct Cache {
  double bytes;
  double num_sets;  // for conflicts of equal low address bits; a power of two; 1: not modelled

  /// Part of so many bytes that is still there when they come round again.
  Sym kept(Sym touched) const {
    return max(0, min(1, (kLostShare - touched / bytes) / (kLostShare - kUsableShare)));
  }
};

/// What one access touches while the loops from some depth inwards run.
struct Footprint {
  Sym bytes;  // whole lines
  Sym rows, lines_per_row;
  Sym row_stride;  // bytes between rows that compete for sets; 0: none
};

Footprint footprint(const NestTable& table, const NestAccess& a, int depth, double line) {
  const std::vector<Sym>& shape = table.shape(a.buffer);
  const std::vector<Sym>& strides = table.strides(a.buffer);
  // Loops outside the buffer's allocation reuse the same memory.
  const auto from = static_cast<std::size_t>(std::max(depth, table.alloc_depth(a.buffer)));
  const auto element = static_cast<double>(a.element_bytes);
  Sym run_bytes = element;  // contiguous along the innermost dimensions
  Footprint out{0, 1, 1, 0};
  Sym is_run = 1;  // truth: the dimensions so far are touched as a whole
  for (std::size_t d = a.facts.size(); d-- > 0;) {
    const Sym extent = shape[d];
    const Sym stride = strides[d] * element;
    const Sym touched = min(extent, a.facts[d].distinct[from]);
    const Sym reach = min(extent, a.facts[d].reach[from]);
    const Sym moves = logical_and(logical_not(is_run), less(1, touched));
    // Several steps share a line.
    const Sym is_dense = logical_and(moves, logical_and(equal(out.rows, 1), less(stride, line)));
    const Sym is_row = logical_and(moves, logical_not(is_dense));
    run_bytes = select(is_run, reach * stride, select(is_dense, touched * stride, run_bytes));
    out.row_stride = select(logical_and(is_row, equal(out.row_stride, 0)), stride, out.row_stride);
    out.rows *= select(is_row, touched, 1);
    is_run = logical_and(is_run, less_equal(extent, touched));
  }
  out.lines_per_row = max(1, ceil(run_bytes / line));
  out.bytes = out.rows * out.lines_per_row * line;
  return out;
}

// Bytes of cache that a footprint takes: more than its own where rows compete for few sets.
Sym occupied(const Footprint& f, const Cache& cache, double line) {
  if (cache.num_sets <= 1 || f.rows.is(1) || f.row_stride.is(0)) return f.bytes;
  const Sym lines = f.row_stride / line;
  const Sym step = lines - floor(lines / cache.num_sets) * cache.num_sets;
  const Sym is_whole = equal(step, floor(step));
  const Sym starts =
      select(equal(step, 0), 1,
             cache.num_sets / min(cache.num_sets, max(1, power_of_two_factor(floor(step)))));
  const Sym used = min(cache.num_sets, starts * f.lines_per_row);
  const Sym competes =
      logical_and(logical_and(is_whole, less(0, f.row_stride)), less(starts, f.rows));
  return select(competes, f.bytes * (cache.num_sets / used), f.bytes);
}

/// Rows that prefetchers follow at a time: with as many, half of them are forgotten between two
/// visits. Measured on a Zen 4 core: columns of 1024 reduced over tiles of r rows a page apart
/// take 35 us for r = 4, 50 for 14, 72 for 26, 100 for 45 and 130 for 150.
constexpr double kPrefetcherStreams = 30;

/// Neighbouring lines that an access takes before it jumps, and the share of the jumps that no
/// prefetcher foresees.
struct Visits {
  Sym lines = 1, share = 0;
};

// by_depth: footprints of the loops from each depth inwards. The unrolled loops inside all others
// are one visit, in whatever order.
Visits visits_of(const Nest& nest, const std::vector<Footprint>& by_depth) {
  Visits out;
  Sym rows = 1, is_tile = 1, is_open = 1;
  for (std::size_t d = nest.loops.size(); d-- > 0;) {
    const NestLoop& loop = nest.loops[d];
    const bool is_unrolled =
        loop.kind == ir::LoopKind::kUnrolled || loop.kind == ir::LoopKind::kVectorized;
    if (!is_unrolled) is_tile = logical_and(is_tile, equal(loop.extent, 1));
    const Footprint& f = by_depth[d];
    const Sym has_rows = less(1, f.rows);
    // Where rows grow it has been at all of them and comes back to go on with each.
    const Sym comes_back = logical_and(has_rows, less(out.lines, f.lines_per_row));
    is_open = logical_or(is_tile, logical_and(is_open, logical_not(comes_back)));
    out.lines = select(logical_or(is_tile, logical_and(is_open, logical_not(has_rows))),
                       f.lines_per_row, out.lines);
    rows = select(logical_or(is_tile, logical_and(is_open, has_rows)), f.rows, rows);
  }
  out.share = rows * rows / (rows * rows + kPrefetcherStreams * kPrefetcherStreams);
  return out;
}

class Estimator {
 public:
  Estimator(const NestTable& table, double line, double constants_bytes)
      : table_(table), line_(line), constants_bytes_(constants_bytes) {
    for (const Nest& nest : table.nests()) {
      std::vector<std::vector<Footprint>> by_access;
      for (const NestAccess& a : nest.accesses) {
        std::vector<Footprint> by_depth;
        for (int d = 0; d <= static_cast<int>(nest.loops.size()); ++d) {
          by_depth.push_back(footprint(table, a, d, line));
        }
        by_access.push_back(std::move(by_depth));
      }
      visits_.emplace_back();
      for (const std::vector<Footprint>& by_depth : by_access) {
        visits_.back().push_back(visits_of(nest, by_depth));
      }
      footprints_.push_back(std::move(by_access));
    }
  }

  /// Bytes of all that the program touches.
  Sym whole() const {
    return touched(0, footprints_.size(), [&](std::size_t nest, std::size_t access) {
      return footprints_[nest][access][0].bytes;
    });
  }

  struct Missed {
    Sym bytes = 0, visits = 0;  // visits: as in Traffic
  };
  /// What a nest fetches from beyond the cache; `whole` as below.
  Missed missed(std::size_t nest_idx, const Cache& cache, Sym whole) const {
    // Parts of the program's data, and of its constants, that stay from one run to the next.
    const Sym all_kept = cache.kept(whole);
    const Sym constants_kept =
        constants_bytes_ == 0 ? all_kept : cache.kept(max(whole, constants_bytes_));
    const Nest& nest = table_.nests()[nest_idx];
    const std::size_t num_loops = nest.loops.size();
    std::vector<Sym> bytes_at(num_loops, Sym(0));  // of all accesses, by depth
    for (std::size_t d = 0; d < num_loops; ++d) {
      for (const auto& access : footprints_[nest_idx]) bytes_at[d] += access[d].bytes;
    }
    Missed total;
    for (std::size_t a = 0; a < nest.accesses.size(); ++a) {
      const Sym resident = resident_part(nest_idx, nest.accesses[a], cache);
      if (resident.is(1)) continue;
      Sym bytes = fetched(nest_idx, a, num_loops);
      // Rows that compete for few sets drive each other out, and nothing else.
      Sym stays = 1;
      for (std::size_t d = num_loops; d-- > 0;) {
        const Sym own = occupied(footprints_[nest_idx][a][d], cache, line_);
        stays = min(stays, cache.kept(max(bytes_at[d], own)));
        bytes += stays * min(0, fetched(nest_idx, a, d) - bytes);
      }
      // A written line is read first and written back later. Measurements repeat: what fits as a
      // whole is there from the run before.
      const ir::BufferId buffer = nest.accesses[a].buffer;
      const bool is_const = table_.program().buffer(buffer).is_const;
      bytes *= 1 - max(resident, min(stays, is_const ? constants_kept : all_kept));
      total.bytes += bytes * (nest.accesses[a].is_write ? 2 : 1);
      const Visits& visits = visits_[nest_idx][a];
      total.visits += bytes / line_ / visits.lines * visits.share;
    }
    return total;
  }

 private:
  // Bytes of all that nests first..last-1 touch: a slice of a buffer counts with the most that one
  // access does.
  template <typename BytesOf>
  Sym touched(std::size_t first, std::size_t last, const BytesOf& bytes_of) const {
    std::map<std::pair<int32_t, int>, Sym> most;
    for (std::size_t i = first; i < last; ++i) {
      const std::vector<NestAccess>& accesses = table_.nests()[i].accesses;
      for (std::size_t a = 0; a < accesses.size(); ++a) {
        Sym& of_slice =
            most.try_emplace({accesses[a].buffer.value, accesses[a].slice}).first->second;
        of_slice = max(of_slice, bytes_of(i, a));
      }
    }
    Sym total = 0;
    for (const auto& [slice, bytes] : most) total += bytes;
    return total;
  }

  // Bytes that an access brings in if the cache holds what the loops from `depth` inwards touch:
  // the loop just outside finds again what its last iteration touched, parts of lines included, and
  // so brings in its own footprint; those further out begin anew.
  Sym fetched(std::size_t nest_idx, std::size_t access, std::size_t depth) const {
    const Nest& nest = table_.nests()[nest_idx];
    const NestAccess& a = nest.accesses[access];
    const auto alloc_depth = static_cast<std::size_t>(table_.alloc_depth(a.buffer));
    const std::size_t outside = depth > alloc_depth ? depth - 1 : depth;
    Sym bytes = footprints_[nest_idx][access][outside].bytes;
    for (std::size_t i = alloc_depth; i < outside; ++i) bytes *= nest.loops[i].extent;
    return bytes;
  }

  // Part of what `a` touches that an earlier nest leaves in the cache.
  Sym resident_part(std::size_t nest_idx, const NestAccess& a, const Cache& cache) const {
    const std::vector<Nest>& nests = table_.nests();
    for (std::size_t p = nest_idx; p-- > 0;) {
      const bool touches = std::any_of(nests[p].accesses.begin(), nests[p].accesses.end(),
                                       [&](const NestAccess& other) {
                                         return other.buffer == a.buffer && other.slice == a.slice;
                                       });
      if (!touches) continue;
      const auto depth = static_cast<std::size_t>(common_depth(nests[p], nests[nest_idx]));
      return cache.kept(touched(p, nest_idx + 1, [&](std::size_t i, std::size_t access) {
        const std::size_t within = std::min(depth, nests[i].loops.size());
        return occupied(footprints_[i][access][within], cache, line_);
      }));
    }
    return 0;
  }

  const NestTable& table_;
  const double line_;
  const double constants_bytes_;
  std::vector<std::vector<std::vector<Footprint>>> footprints_;  // by nest, access, depth
  std::vector<std::vector<Visits>> visits_;                      // by nest, access
};

}  // namespace

double line_bytes(const ir::Target& target) {
  return target.cache_line_bytes > 0 ? static_cast<double>(target.cache_line_bytes) : 64.0;
}

std::vector<Traffic> estimate_traffic(const NestTable& table, const ir::Target& target) {
  const double line = line_bytes(target);
  const double l1 = static_cast<double>(std::max<int64_t>(target.l1d_bytes, 32 * 1024));
  const double l2 = static_cast<double>(std::max<int64_t>(target.l2_bytes, 256 * 1024));
  const double l3 = static_cast<double>(std::max<int64_t>(target.l3_bytes, 4 * 1024 * 1024));
  // 4 KiB and 64 KiB: what sets times lines make in every x86 core of the table, within a factor of
  // two.
  const Cache caches[] = {{l1, 64}, {l2, 1024}, {l3, 1}};
  const Estimator estimator(table, line, static_cast<double>(target.constants_bytes));
  const Sym whole = estimator.whole();
  std::vector<Traffic> out(table.nests().size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto missed = [&](const Cache& cache) { return estimator.missed(i, cache, whole); };
    const auto l1_missed = missed(caches[0]), l2_missed = missed(caches[1]),
               l3_missed = missed(caches[2]);
    out[i] = {l1_missed.bytes,  l2_missed.bytes,  l3_missed.bytes,
              l1_missed.visits, l2_missed.visits, l3_missed.visits};
  }
  return out;
}

}  // namespace prunerc::costmodel
