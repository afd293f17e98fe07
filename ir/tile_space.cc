#include "ir/tile_space.h"

#include "ir/int_math.h"
#include "ir/support/check.h"

#include <algorithm>
#include <limits>

namespace prunerc::ir {
namespace {

constexpr uint64_t kMaxCount = std::numeric_limits<uint64_t>::max();
// Nothing tiles deeper; it keeps every count of a covering space below 2^63.
constexpr int kMaxLevels = 12;

uint64_t saturating_mul(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? kMaxCount : out;
}
uint64_t saturating_add(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? kMaxCount : out;
}

uint64_t count_uncapped(const std::vector<std::pair<int64_t, int>>& factors, int levels) {
  uint64_t out = 1;
  for (const auto& [prime, power] : factors) out = saturating_mul(out, compositions(power, levels));
  return out;
}

/// Multiplies tiles[level] by prime^share for the distribution number `rank` of `power` copies.
void unrank_shares(int64_t prime, int power, uint64_t rank, std::span<int64_t> tiles) {
  const int levels = static_cast<int>(tiles.size());
  for (int level = 0; level < levels; ++level) {
    int share = level == levels - 1 ? power : 0;
    while (level < levels - 1) {
      const uint64_t weight = compositions(power - share, levels - 1 - level);
      if (rank < weight) break;
      rank -= weight;
      ++share;
    }
    for (int i = 0; i < share; ++i) tiles[static_cast<std::size_t>(level)] *= prime;
    power -= share;
  }
}

}  // namespace

uint64_t compositions(int items, int bins) {
  if (bins == 0) return items == 0 ? 1 : 0;
  uint64_t out = 1;
  for (int i = 1; i <= items; ++i) {
    const uint64_t scaled = saturating_mul(out, static_cast<uint64_t>(bins - 1 + i));
    if (scaled == kMaxCount) return kMaxCount;
    out = scaled / static_cast<uint64_t>(i);
  }
  return out;
}

std::vector<std::pair<int64_t, int>> prime_factors(int64_t n) {
  std::vector<std::pair<int64_t, int>> out;
  const auto strip = [&](int64_t p) {
    int power = 0;
    for (; n % p == 0; n /= p) ++power;
    if (power > 0) out.emplace_back(p, power);
  };
  if (n < 2) return out;
  strip(2);
  constexpr int64_t kLastTried = int64_t{1} << 20;
  for (int64_t p = 3; p <= n / p && p <= kLastTried; p += 2) strip(p);
  if (n > 1) out.emplace_back(n, 1);
  return out;
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> out = {1};
  for (const auto& [prime, power] : prime_factors(n)) {
    const std::size_t known = out.size();
    int64_t scale = 1;
    for (int i = 0; i < power; ++i) {
      scale *= prime;
      for (std::size_t k = 0; k < known; ++k) out.push_back(out[k] * scale);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

TileSpace::TileSpace(int64_t extent, int levels, TileKind kind, int64_t max_innermost)
    : extent_(extent), levels_(levels), kind_(kind), max_innermost_(max_innermost) {
  if (extent < 1 || levels < 1 || levels > kMaxLevels || max_innermost < 0) return;
  if (levels == 1) {
    count_ = max_innermost == 0 || extent <= max_innermost ? 1 : 0;
  } else if (kind == TileKind::kPerfect) {
    count_perfect();
  } else if (extent <= kMaxCoveringExtent) {
    count_covering();
  }
}

void TileSpace::count_perfect() {
  if (max_innermost_ == 0) {
    count_ = count_uncapped(prime_factors(extent_), levels_);
    return;
  }
  const std::vector<std::pair<int64_t, int>> factors = prime_factors(extent_);
  for (int64_t innermost : divisors(extent_)) {
    if (innermost > max_innermost_) break;
    innermost_.emplace_back(innermost, count_);
    std::vector<std::pair<int64_t, int>> rest = factors;
    for (auto& [prime, power] : rest) {
      for (int64_t d = innermost; d % prime == 0; d /= prime) --power;
    }
    count_ = saturating_add(count_, count_uncapped(rest, levels_ - 1));
  }
}

std::vector<int64_t> TileSpace::unrank_perfect(uint64_t rank) const {
  std::vector<int64_t> tiles(static_cast<std::size_t>(levels_), 1);
  std::span<int64_t> free(tiles);
  int64_t rest = extent_;
  if (!innermost_.empty()) {
    const auto after =
        std::upper_bound(innermost_.begin(), innermost_.end(), rank,
                         [](uint64_t value, const auto& group) { return value < group.second; });
    const auto& [innermost, first_rank] = *(after - 1);
    tiles.back() = innermost;
    rest /= innermost;
    rank -= first_rank;
    free = free.first(free.size() - 1);
  }
  for (const auto& [prime, power] : prime_factors(rest)) {
    const uint64_t ways = compositions(power, static_cast<int>(free.size()));
    unrank_shares(prime, power, rank % ways, free);
    rank /= ways;
  }
  return tiles;
}

TileSpace::ProductCounts::ProductCounts(int64_t bound, int max_k) : bound_(bound) {
  while ((root_ + 1) * (root_ + 1) <= bound_) ++root_;
  const auto size = static_cast<std::size_t>(2 * root_ + 2);
  counts_.assign(static_cast<std::size_t>(max_k + 1), std::vector<uint64_t>(size, 0));
  std::vector<int64_t> values;
  for (int64_t x = 1; x <= root_; ++x) values.push_back(x);
  for (int64_t t = 1; t <= root_; ++t) values.push_back(bound_ / t);
  for (int k = 0; k <= max_k; ++k) {
    for (int64_t x : values) {
      uint64_t total = k == 0 ? 1 : 0;
      for (int64_t t = 1; k > 0 && t <= x;) {
        const int64_t quotient = x / t;
        const int64_t last = x / quotient;
        total += static_cast<uint64_t>(last - t + 1) * at(k - 1, quotient);
        t = last + 1;
      }
      counts_[static_cast<std::size_t>(k)][index(x)] = total;
    }
  }
}

std::size_t TileSpace::ProductCounts::index(int64_t x) const {
  return static_cast<std::size_t>(x <= root_ ? x : root_ + bound_ / x);
}

bool TileSpace::ProductCounts::has(int64_t x) const {
  return x <= root_ || (x <= bound_ && bound_ / (bound_ / x) == x);
}

uint64_t TileSpace::ProductCounts::at(int k, int64_t x) const {
  return x < 1 ? 0 : counts_[static_cast<std::size_t>(k)][index(x)];
}

uint64_t TileSpace::count_up_to(int k, int64_t x) const {
  return upper_.has(x) ? upper_.at(k, x) : lower_.at(k, x);
}

void TileSpace::count_covering() {
  const int64_t limit = extent_ + extent_ / kMaxWaste;
  upper_ = ProductCounts(limit, levels_ - 2);
  lower_ = ProductCounts(extent_ - 1, levels_ - 2);
  // Products of the inner tiles in runs that share the outermost tile.
  for (int64_t low = 1; low <= limit;) {
    const int64_t outermost = ceil_div(extent_, low);
    const int64_t last = outermost == 1 ? limit : (extent_ - 1) / (outermost - 1);
    const int64_t high = std::min(last, limit / outermost);
    const uint64_t num = low <= high ? count_band(low, high) : 0;
    if (num > 0) bands_.push_back({outermost, low, high, count_, num});
    count_ += num;
    low = last + 1;
  }
}

// Calls f(first, last, ways) for runs of innermost tiles that leave equally many ways for the other
// k - 1 inner tiles to bring the product into [low, high]; f returns whether to go on.
template <typename F>
void TileSpace::for_each_run(int k, int64_t cap, int64_t low, int64_t high, F&& f) const {
  for (int64_t t = 1; t <= std::min(cap, high);) {
    const int64_t quotient = high / t;
    const int64_t below = (low - 1) / t;
    int64_t last = high / quotient;
    if (below > 0) last = std::min(last, (low - 1) / below);
    last = std::min(last, cap);
    if (!f(t, last, count_up_to(k - 1, quotient) - count_up_to(k - 1, below))) return;
    t = last + 1;
  }
}

uint64_t TileSpace::count_band(int64_t low, int64_t high) const {
  const int64_t cap = max_innermost_ == 0 ? high : max_innermost_;
  uint64_t total = 0;
  for_each_run(levels_ - 1, cap, low, high, [&](int64_t first, int64_t last, uint64_t ways) {
    total += static_cast<uint64_t>(last - first + 1) * ways;
    return true;
  });
  return total;
}

int64_t TileSpace::unrank_factor(int k, int64_t cap, int64_t low, int64_t high,
                                 uint64_t* rank) const {
  int64_t chosen = 0;
  for_each_run(k, cap, low, high, [&](int64_t first, int64_t last, uint64_t ways) {
    const uint64_t total = static_cast<uint64_t>(last - first + 1) * ways;
    if (*rank >= total) {
      *rank -= total;
      return true;
    }
    chosen = first + static_cast<int64_t>(*rank / ways);
    *rank %= ways;
    return false;
  });
  PRUNERC_CHECK(chosen > 0, "a rank below the count");
  return chosen;
}

std::vector<int64_t> TileSpace::unrank_covering(uint64_t rank) const {
  const auto after =
      std::upper_bound(bands_.begin(), bands_.end(), rank,
                       [](uint64_t value, const Band& band) { return value < band.first_rank; });
  const Band& band = *(after - 1);
  rank -= band.first_rank;
  std::vector<int64_t> tiles(static_cast<std::size_t>(levels_), 1);
  tiles[0] = band.outermost;
  int64_t low = band.low;
  int64_t high = band.high;
  int64_t cap = max_innermost_ == 0 ? high : max_innermost_;
  for (int level = levels_ - 1; level >= 1; --level) {
    const int64_t tile = unrank_factor(level, cap, low, high, &rank);
    tiles[static_cast<std::size_t>(level)] = tile;
    low = (low - 1) / tile + 1;
    high /= tile;
    cap = high;
  }
  return tiles;
}

std::vector<int64_t> TileSpace::unrank(uint64_t rank) const {
  PRUNERC_CHECK(rank < count_, "unrank of a number below the count");
  if (levels_ == 1) return {extent_};
  return kind_ == TileKind::kPerfect ? unrank_perfect(rank) : unrank_covering(rank);
}

bool TileSpace::contains(std::span<const int64_t> tiles) const {
  if (count_ == 0 || static_cast<int>(tiles.size()) != levels_) return false;
  if (max_innermost_ > 0 && tiles.back() > max_innermost_) return false;
  const int64_t limit = kind_ == TileKind::kPerfect ? extent_ : extent_ + extent_ / kMaxWaste;
  int64_t product = 1;
  for (std::size_t i = tiles.size(); i-- > 0;) {
    if (tiles[i] < 1 || tiles[i] > limit / product) return false;
    if (i == 0 && kind_ == TileKind::kCovering) return tiles[0] == ceil_div(extent_, product);
    product *= tiles[i];
  }
  return product == extent_;
}

std::vector<std::vector<int64_t>> TileSpace::neighbours(std::span<const int64_t> tiles) const {
  std::vector<std::vector<int64_t>> out;
  const std::vector<int64_t> start(tiles.begin(), tiles.end());
  const auto offer = [&](std::vector<int64_t> candidate) {
    const bool is_new = candidate != start && contains(candidate) &&
                        std::find(out.begin(), out.end(), candidate) == out.end();
    if (is_new) out.push_back(std::move(candidate));
  };
  if (kind_ == TileKind::kPerfect) {
    for (std::size_t from = 0; from < start.size(); ++from) {
      for (const auto& [prime, power] : prime_factors(start[from])) {
        for (std::size_t to = 0; to < start.size(); ++to) {
          std::vector<int64_t> moved = start;
          moved[from] /= prime;
          moved[to] *= prime;
          offer(std::move(moved));
        }
      }
    }
    return out;
  }
  for (std::size_t level = 1; level < start.size(); ++level) {
    for (int64_t size : {start[level] - 1, start[level] + 1, start[level] / 2, start[level] * 2}) {
      std::vector<int64_t> moved = start;
      moved[level] = size;
      int64_t inner = 1;
      for (std::size_t i = 1; i < moved.size(); ++i) {
        // A product beyond twice the extent covers with waste anyway; stop before it overflows.
        if (inner > 2 * extent_) break;
        inner *= std::max<int64_t>(moved[i], 1);
      }
      moved[0] = ceil_div(extent_, inner);
      offer(std::move(moved));
    }
  }
  return out;
}

uint64_t count_perfect_tiles(int64_t extent, int levels, int64_t max_innermost) {
  return TileSpace(extent, levels, TileKind::kPerfect, max_innermost).count();
}

}  // namespace prunerc::ir
