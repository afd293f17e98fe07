#include "search/space/gene_table.h"

#include "ir/support/check.h"
#include "ir/tile_space.h"
#include "schedule/schedule.h"
#include "schedule/trace/factor.h"

#include <memory>

namespace prunerc::search {
namespace {

using schedule::Decision;
using schedule::PrimitiveKind;

bool is_categorical(const schedule::DecisionSpace& space) {
  return space.primitive == PrimitiveKind::kSampleCategorical;
}
bool is_covering(const schedule::DecisionSpace& space) {
  return space.primitive == PrimitiveKind::kSampleCoveringTile;
}
/// Spaces of ir::TileSpace; partitioned tiles have none.
bool has_tile_space(const schedule::DecisionSpace& space) {
  return is_covering(space) || space.primitive == PrimitiveKind::kSamplePerfectTile;
}
std::shared_ptr<const ir::TileSpace> tile_space(const schedule::DecisionSpace& space) {
  if (is_covering(space)) {
    return schedule::covering_tiles(space.extent, space.num_tiles, space.max_innermost);
  }
  return std::make_shared<const ir::TileSpace>(space.extent, space.num_tiles,
                                               ir::TileKind::kPerfect, space.max_innermost);
}

}  // namespace

GeneTable::GeneTable(const schedule::DecisionSpace& space, uint64_t seed) : space_(space) {
  if (space.primitive == PrimitiveKind::kSampleComputeLocation) is_fixed_ = true;
  const int64_t count = space.count();
  PRUNERC_CHECK(count > 0, "a decision has at least one value");
  const bool can_list = is_categorical(space) || has_tile_space(space);
  if (can_list && count <= kMaxListed) {
    list_all();
  } else {
    sample(seed);
  }
  num_drawn_ = size();
}

GeneTable::GeneTable(Decision only) : is_fixed_(true) {
  add(std::move(only));
  num_drawn_ = 1;
}

void GeneTable::list_all() {
  if (is_categorical(space_)) {
    for (std::size_t i = 0; i < space_.values.size(); ++i) add({static_cast<int64_t>(i)});
    return;
  }
  const std::shared_ptr<const ir::TileSpace> tiles = tile_space(space_);
  for (uint64_t rank = 0; rank < tiles->count(); ++rank) {
    const std::vector<int64_t> all = tiles->unrank(rank);
    add(Decision(all.begin() + (is_covering(space_) ? 1 : 0), all.end()));
  }
}

void GeneTable::sample(uint64_t seed) {
  Rng rng(seed, static_cast<uint64_t>(space_.instruction_idx));
  const auto tiles = has_tile_space(space_) ? tile_space(space_) : nullptr;
  for (int64_t i = 0; i < kMaxListed; ++i) {
    if (tiles == nullptr) {
      add(schedule::random_decision(space_, rng));
      continue;
    }
    const std::vector<int64_t> drawn = tiles->sample(rng);
    add(Decision(drawn.begin() + (is_covering(space_) ? 1 : 0), drawn.end()));
  }
}

std::vector<double> GeneTable::levels_of(const Decision& decision) const {
  if (is_fixed_) return std::vector<double>(decision.begin(), decision.end());
  if (is_categorical(space_)) {
    return {static_cast<double>(space_.values[static_cast<std::size_t>(decision[0])])};
  }
  std::vector<double> out;
  if (is_covering(space_)) {
    int64_t product = 1;
    for (const int64_t tile : decision) product *= tile;
    out.push_back(static_cast<double>((space_.extent + product - 1) / product));
  }
  for (const int64_t tile : decision) out.push_back(static_cast<double>(tile));
  return out;
}

int32_t GeneTable::add(Decision decision) {
  const auto [at, is_new] = genes_.try_emplace(decision, size());
  if (!is_new) return at->second;
  const std::vector<double> levels = levels_of(decision);
  columns_.resize(levels.size());
  for (std::size_t l = 0; l < levels.size(); ++l) columns_[l].push_back(levels[l]);
  decisions_.push_back(std::move(decision));
  neighbours_.emplace_back();
  return size() - 1;
}

int32_t GeneTable::find(const Decision& decision) {
  const auto known = genes_.find(decision);
  if (known != genes_.end()) return known->second;
  if (is_fixed_ || !space_.contains(decision)) return -1;
  return add(decision);
}

int32_t GeneTable::neighbour(int32_t gene, Rng& rng) {
  if (is_fixed_) return gene;
  if (is_categorical(space_)) {
    // Values are sorted: mostly one step, now and then anywhere.
    if (size() == 1) return gene;
    constexpr double kStepShare = 0.6;
    if (!rng.chance(kStepShare)) return draw(rng);
    const int32_t step = rng.chance(0.5) ? 1 : -1;
    const bool leaves = gene + step < 0 || gene + step >= size();
    return leaves ? gene - step : gene + step;
  }
  const auto at = static_cast<std::size_t>(gene);
  if (!has_tile_space(space_)) {
    return add(schedule::mutate_decision(space_, decisions_[at], rng));
  }
  if (neighbours_[at].empty()) {
    const std::vector<double> levels = levels_of(decisions_[at]);
    const std::vector<int64_t> tiles(levels.begin(), levels.end());
    std::vector<int32_t> found;
    for (const std::vector<int64_t>& neighbour : tile_space(space_)->neighbours(tiles)) {
      found.push_back(
          add(Decision(neighbour.begin() + (is_covering(space_) ? 1 : 0), neighbour.end())));
    }
    if (found.empty()) found.push_back(gene);
    neighbours_[at] = std::move(found);
  }
  return neighbours_[at][rng.below(neighbours_[at].size())];
}

}  // namespace prunerc::search
