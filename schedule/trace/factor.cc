#include "schedule/trace/factor.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <tuple>

namespace prunerc::schedule {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? kMax : out;
}

int64_t compositions(int items, int bins) {
  return static_cast<int64_t>(std::min<uint64_t>(ir::compositions(items, bins), kMax));
}

int64_t count_uncapped(int64_t extent, int num_tiles) {
  int64_t out = 1;
  for (const auto& [prime, power] : prime_factors(extent)) {
    out = saturating_mul(out, compositions(power, num_tiles));
  }
  return out;
}

// A uniformly random distribution of `power` copies of `prime` over the `bins` tiles.
void spread(int64_t prime, int power, int bins, Rng& rng, std::span<int64_t> tiles) {
  for (int bin = 0; bin < bins - 1; ++bin) {
    // The share of this bin is k with weight compositions(power - k, bins - bin - 1).
    int64_t pick =
        static_cast<int64_t>(rng.below(static_cast<uint64_t>(compositions(power, bins - bin))));
    int share = 0;
    while (share < power) {
      const int64_t weight = compositions(power - share, bins - bin - 1);
      if (pick < weight) break;
      pick -= weight;
      ++share;
    }
    for (int k = 0; k < share; ++k) tiles[static_cast<std::size_t>(bin)] *= prime;
    power -= share;
  }
  if (bins == 0) return;
  for (int k = 0; k < power; ++k) tiles[static_cast<std::size_t>(bins - 1)] *= prime;
}

std::vector<int64_t> random_uncapped(int64_t extent, int num_tiles, Rng& rng) {
  std::vector<int64_t> tiles(static_cast<std::size_t>(num_tiles), 1);
  for (const auto& [prime, power] : prime_factors(extent)) {
    spread(prime, power, num_tiles, rng, tiles);
  }
  return tiles;
}

}  // namespace

int64_t count_perfect_tiles(int64_t extent, int num_tiles, int64_t max_innermost) {
  if (max_innermost == 0 || max_innermost >= extent) return count_uncapped(extent, num_tiles);
  int64_t total = 0;
  for (const int64_t inner : divisors(extent)) {
    if (inner > max_innermost) break;
    const int64_t rest = count_uncapped(extent / inner, num_tiles - 1);
    if (__builtin_add_overflow(total, rest, &total)) return kMax;
  }
  return total;
}

std::vector<int64_t> random_perfect_tile(int64_t extent, int num_tiles, int64_t max_innermost,
                                         Rng& rng) {
  if (max_innermost == 0 || max_innermost >= extent) {
    return random_uncapped(extent, num_tiles, rng);
  }
  int64_t pick = static_cast<int64_t>(
      rng.below(static_cast<uint64_t>(count_perfect_tiles(extent, num_tiles, max_innermost))));
  int64_t chosen = 1;
  for (const int64_t inner : divisors(extent)) {
    if (inner > max_innermost) break;
    const int64_t weight = count_uncapped(extent / inner, num_tiles - 1);
    chosen = inner;
    if (pick < weight) break;
    pick -= weight;
  }
  std::vector<int64_t> tiles = {chosen};
  if (num_tiles > 1) {
    tiles = random_uncapped(extent / chosen, num_tiles - 1, rng);
    tiles.push_back(chosen);
  }
  return tiles;
}

namespace {

// How often `prime` divides n.
int multiplicity(int64_t n, int64_t prime) {
  int out = 0;
  for (; n % prime == 0; n /= prime) ++out;
  return out;
}

// Ways to give `inner` of `power` equal primes to the last tiles and the rest to the first.
int64_t ways(int power, int inner, int num_tiles, int partition) {
  return saturating_mul(compositions(inner, num_tiles - partition),
                        compositions(power - inner, partition));
}

}  // namespace

int64_t count_partitioned_tiles(int64_t extent, int num_tiles, int partition,
                                int64_t inner_factor) {
  int64_t out = 1;
  for (const auto& [prime, power] : prime_factors(extent)) {
    int64_t total = 0;
    for (int inner = multiplicity(inner_factor, prime); inner <= power; ++inner) {
      if (__builtin_add_overflow(total, ways(power, inner, num_tiles, partition), &total)) {
        return kMax;
      }
    }
    out = saturating_mul(out, total);
  }
  return out;
}

std::vector<int64_t> random_partitioned_tile(int64_t extent, int num_tiles, int partition,
                                             int64_t inner_factor, Rng& rng) {
  std::vector<int64_t> tiles(static_cast<std::size_t>(num_tiles), 1);
  const std::span<int64_t> all = tiles;
  const auto cut = static_cast<std::size_t>(partition);
  for (const auto& [prime, power] : prime_factors(extent)) {
    const int least = multiplicity(inner_factor, prime);
    int64_t total = 0;
    for (int inner = least; inner <= power; ++inner) {
      total += ways(power, inner, num_tiles, partition);
    }
    int64_t pick = static_cast<int64_t>(rng.below(static_cast<uint64_t>(total)));
    int inner = least;
    for (; pick >= ways(power, inner, num_tiles, partition); ++inner) {
      pick -= ways(power, inner, num_tiles, partition);
    }
    spread(prime, inner, num_tiles - partition, rng, all.subspan(cut));
    spread(prime, power - inner, partition, rng, all.first(cut));
  }
  return tiles;
}

std::shared_ptr<const ir::TileSpace> covering_tiles(int64_t extent, int num_tiles,
                                                    int64_t max_innermost) {
  using Key = std::tuple<int64_t, int, int64_t>;
  /// A network has some hundred different axes.
  constexpr std::size_t kMostKept = 512;
  static std::mutex mutex;
  static std::map<Key, std::shared_ptr<const ir::TileSpace>> kept;
  const Key key(extent, num_tiles, max_innermost);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (const auto found = kept.find(key); found != kept.end()) return found->second;
  }
  auto made = std::make_shared<const ir::TileSpace>(extent, num_tiles, ir::TileKind::kCovering,
                                                    max_innermost);
  const std::lock_guard<std::mutex> lock(mutex);
  if (kept.size() >= kMostKept) kept.clear();
  kept.emplace(key, made);
  return made;
}

bool fits_covering(int64_t extent, int num_tiles, int64_t max_innermost,
                   std::span<const int64_t> inner) {
  if (static_cast<int>(inner.size()) + 1 != num_tiles) return false;
  const int64_t limit = extent + extent / ir::TileSpace::kMaxWaste;
  int64_t product = 1;
  for (const int64_t tile : inner) {
    if (tile < 1 || tile > limit / product) return false;
    product *= tile;
  }
  if (max_innermost > 0 && !inner.empty() && inner.back() > max_innermost) return false;
  return (extent + product - 1) / product * product <= limit;
}

}  // namespace prunerc::schedule
