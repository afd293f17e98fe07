#include "codegen/cpu/tile_registers.h"

#include "ir/support/check.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace prunerc::codegen {
namespace {

/// Products that follow each other without a loop's begin or end between them.
using Line = std::vector<TileProduct>;

// Names of what a product wants. The instruction takes no register twice, so one matrix by itself is
// two.
int64_t wanted_a(const TileProduct& product) { return 2 * static_cast<int64_t>(product.a); }
int64_t wanted_b(const TileProduct& product) { return 2 * static_cast<int64_t>(product.b) + 1; }

void find_lines(const std::vector<TileItem>& items, std::vector<Line>* out) {
  bool is_open = false;
  for (const TileItem& item : items) {
    if (item.loop != nullptr) {
      find_lines(item.body, out);
      is_open = false;
      continue;
    }
    if (!is_open) out->emplace_back();
    is_open = true;
    out->back().push_back(item.product);
  }
}

enum class Pooling { kApart, kShared };

/// Registers for factors: as many for A, then as many for B; if these have one size, all for both.
struct Pools {
  int a = 0, b = 0;
  Pooling pooling = Pooling::kApart;

  bool are_shared() const { return pooling == Pooling::kShared; }
  int num_registers() const { return are_shared() ? a : a + b; }
};

// Registers of one pool while a line runs.
class Pool {
 public:
  explicit Pool(int size) : held_(static_cast<std::size_t>(size), kNothing) {}

  // Of `wanted` (all factors of the line that use this pool, in order) the one at `at`; `kept` must
  // stay.
  std::pair<int, bool> take(std::span<const int64_t> wanted, std::size_t at, int kept) {
    std::size_t best = held_.size(), latest = 0;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (held_[i] == wanted[at]) return {static_cast<int>(i), false};
      if (static_cast<int>(i) == kept) continue;
      const std::span<const int64_t> rest = wanted.subspan(at);
      const auto next =
          static_cast<std::size_t>(std::find(rest.begin(), rest.end(), held_[i]) - rest.begin());
      if (best == held_.size() || next > latest) {
        best = i;
        latest = next;
      }
    }
    PRUNERC_CHECK(best < held_.size(), "two factors have two registers");
    held_[best] = wanted[at];
    return {static_cast<int>(best), true};
  }

 private:
  static constexpr int64_t kNothing = -1;  // never wanted, so taken first
  std::vector<int64_t> held_;
};

void assign_line(const Line& line, const Pools& pools, std::vector<TileUse>* out) {
  constexpr int kNone = -1;
  Pool a(pools.a), b(pools.are_shared() ? 0 : pools.b);
  std::vector<int64_t> all_a, all_b, all;
  for (const TileProduct& product : line) {
    all_a.push_back(wanted_a(product));
    all_b.push_back(wanted_b(product));
    all.insert(all.end(), {all_a.back(), all_b.back()});
  }
  for (std::size_t i = 0; i < line.size(); ++i) {
    TileUse use;
    if (pools.are_shared()) {
      std::tie(use.a, use.loads_a) = a.take(all, 2 * i, kNone);
      std::tie(use.b, use.loads_b) = a.take(all, 2 * i + 1, use.a);
    } else {
      std::tie(use.a, use.loads_a) = a.take(all_a, i, kNone);
      std::tie(use.b, use.loads_b) = b.take(all_b, i, kNone);
      use.b += pools.a;
    }
    out->push_back(use);
  }
}

/// A choice of pools and what it leads to; registers of factors are counted from 0.
struct Choice {
  Pools pools;
  std::vector<TileUse> uses;
  int64_t num_loads = 0;
};

// What the lines can use at most: more registers would stay empty.
Pools most_registers(const std::vector<Line>& lines, Pooling pooling) {
  Pools most{1, 1, pooling};
  for (const Line& line : lines) {
    std::set<int64_t> a, b;
    for (const TileProduct& product : line) {
      a.insert(wanted_a(product));
      (most.are_shared() ? a : b).insert(wanted_b(product));
    }
    most.a = std::max(most.a, static_cast<int>(a.size()));
    most.b = std::max(most.b, static_cast<int>(b.size()));
  }
  return most;
}

// All choices that leave room for the sums, those with the fewest loads first.
std::vector<Choice> choices_for(const std::vector<Line>& lines, int num_free, Pooling pooling) {
  const Pools most = most_registers(lines, pooling);
  const bool is_shared = most.are_shared();
  std::vector<Choice> out;
  for (int a = is_shared ? 2 : 1; a <= std::min(most.a, num_free); ++a) {
    for (int b = is_shared ? 0 : 1; b <= (is_shared ? 0 : std::min(most.b, num_free - a)); ++b) {
      Choice choice{{a, b, pooling}, {}, 0};
      for (const Line& line : lines) assign_line(line, choice.pools, &choice.uses);
      for (const TileUse& use : choice.uses) choice.num_loads += use.loads_a + use.loads_b;
      out.push_back(std::move(choice));
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Choice& x, const Choice& y) {
    return std::pair(x.num_loads, x.pools.num_registers()) <
           std::pair(y.num_loads, y.pools.num_registers());
  });
  return out;
}

// Registers of these sizes, those first that have them already; nullopt if there are not enough.
std::optional<std::vector<int>> find_registers(const std::vector<TileShape>& sizes,
                                               TileConfig* config) {
  std::vector<int> out;
  std::array<bool, kNumTileRegisters> taken{};
  for (const TileShape& size : sizes) {
    int found = -1;
    for (const TileShape& wanted : {size, TileShape{}}) {
      for (int i = 0; i < kNumTileRegisters && found < 0; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (!taken[at] && (*config)[at] == wanted) found = i;
      }
    }
    if (found < 0) return std::nullopt;
    taken[static_cast<std::size_t>(found)] = true;
    (*config)[static_cast<std::size_t>(found)] = size;
    out.push_back(found);
  }
  return out;
}

// The plan of a choice from these sizes on; nullopt if they do not leave enough registers.
std::optional<TilePlan> plan_of(const TileRegion& region, const Choice& choice,
                                const TileConfig& config) {
  TilePlan plan;
  plan.config = config;
  std::vector<TileShape> sizes(region.sums.size(), region.sum);
  sizes.insert(sizes.end(), static_cast<std::size_t>(choice.pools.a), region.a);
  sizes.insert(sizes.end(), static_cast<std::size_t>(choice.pools.b), region.b);
  const std::optional<std::vector<int>> found = find_registers(sizes, &plan.config);
  if (!found) return std::nullopt;
  const auto factors = found->begin() + static_cast<std::ptrdiff_t>(region.sums.size());
  plan.sums.assign(found->begin(), factors);
  plan.uses = choice.uses;
  for (TileUse& use : plan.uses) {
    use.a = factors[use.a];
    use.b = factors[use.b];
  }
  return plan;
}

}  // namespace

std::array<uint8_t, 64> config_bytes(const TileConfig& config) {
  constexpr std::size_t kPalette = 0, kRowBytes = 16, kRows = 48;
  std::array<uint8_t, 64> bytes{};
  bytes[kPalette] = 1;
  for (std::size_t i = 0; i < config.size(); ++i) {
    bytes[kRowBytes + 2 * i] = static_cast<uint8_t>(config[i].bytes);  // the low half of 16 bits
    bytes[kRows + i] = static_cast<uint8_t>(config[i].rows);
  }
  return bytes;
}

TilePlan plan_tiles(const TileRegion& region, const TileConfig* in_force) {
  std::vector<Line> lines;
  find_lines(region.items, &lines);
  const int num_free = kNumTileRegisters - static_cast<int>(region.sums.size());
  const Pooling pooling = region.a == region.b ? Pooling::kShared : Pooling::kApart;
  const std::vector<Choice> choices = choices_for(lines, num_free, pooling);
  if (in_force != nullptr) {
    for (const Choice& choice : choices) {
      if (std::optional<TilePlan> plan = plan_of(region, choice, *in_force))
        return *std::move(plan);
    }
  }
  std::optional<TilePlan> plan = plan_of(region, choices.front(), {});
  PRUNERC_CHECK(plan.has_value(), "two registers are left beside the sums");
  plan->has_own_config = true;
  return *std::move(plan);
}

}  // namespace prunerc::codegen
