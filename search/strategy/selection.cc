#include "search/strategy/selection.h"

#include <algorithm>
#include <map>
#include <set>

namespace prunerc::search {
namespace {

/// Of the draft, for one cluster.
constexpr double kClusterShare = 1.0 / 8;

class Selection {
 public:
  Selection(const DraftSpace& space, std::size_t size) : space_(space), size_(size) {}

  bool is_full() const { return picks_.size() >= size_; }
  void take(int sketch, const Drafted& drafted, std::size_t cluster_cap) {
    if (is_full() || taken_.count({sketch, drafted.key}) > 0) return;
    std::size_t& members = clusters_[cluster_of(sketch, drafted)];
    if (members >= cluster_cap) return;
    ++members;
    taken_.insert({sketch, drafted.key});
    picks_.push_back({sketch, drafted});
  }
  std::vector<DraftPick>& picks() { return picks_; }

 private:
  std::vector<int64_t> cluster_of(int sketch, const Drafted& drafted) const {
    std::vector<int64_t> cluster = {sketch};
    const DraftSketch& from = space_.sketches[static_cast<std::size_t>(sketch)];
    for (std::size_t d = 0; d < from.tables.size(); ++d) {
      const schedule::Decision& decision = from.tables[d].decision(drafted.genes[d]);
      // Choices say nothing about shapes.
      if (decision.size() > 1) cluster.push_back(decision.back());
    }
    return cluster;
  }

  const DraftSpace& space_;
  std::size_t size_;
  std::vector<DraftPick> picks_;
  std::set<std::pair<int, uint64_t>> taken_;
  std::map<std::vector<int64_t>, std::size_t> clusters_;
};

bool better(const DraftPick& a, const DraftPick& b) {
  if (a.drafted.ns != b.drafted.ns) return a.drafted.ns < b.drafted.ns;
  return a.sketch != b.sketch ? a.sketch < b.sketch : a.drafted.key < b.drafted.key;
}

}  // namespace

std::vector<DraftPick> select_draft(const std::vector<SketchOffer>& offers, const DraftSpace& space,
                                    const SelectionOptions& options) {
  std::vector<DraftPick> all;
  for (std::size_t s = 0; s < offers.size(); ++s) {
    for (const Drafted& drafted : offers[s].best) all.push_back({static_cast<int>(s), drafted});
  }
  std::sort(all.begin(), all.end(), better);
  const auto share = [&](double part) {
    return static_cast<std::size_t>(part * static_cast<double>(options.size));
  };
  const std::size_t num_uniform = share(options.uniform_share);
  Selection chosen(space, options.size - num_uniform);
  const std::size_t any = options.size;
  const std::size_t quota =
      share(options.stratified_share) / std::max<std::size_t>(offers.size(), 1);
  for (std::size_t s = 0; s < offers.size(); ++s) {
    for (std::size_t i = 0; i < std::min(quota, offers[s].best.size()); ++i) {
      chosen.take(static_cast<int>(s), offers[s].best[i], any);
    }
  }
  const std::size_t cap = std::max<std::size_t>(share(kClusterShare), 1);
  for (const DraftPick& pick : all) chosen.take(pick.sketch, pick.drafted, cap);
  for (const DraftPick& pick : all) chosen.take(pick.sketch, pick.drafted, any);
  std::vector<DraftPick> picks = std::move(chosen.picks());
  std::sort(picks.begin(), picks.end(), better);
  // The uniform ones in turns, one of each sketch.
  Selection rest(space, options.size);
  for (const DraftPick& pick : picks) rest.take(pick.sketch, pick.drafted, any);
  bool any_left = true;
  for (std::size_t i = 0; any_left && !rest.is_full(); ++i) {
    any_left = false;
    for (std::size_t s = 0; s < offers.size(); ++s) {
      if (i >= offers[s].sample.size()) continue;
      any_left = true;
      rest.take(static_cast<int>(s), offers[s].sample[i], any);
    }
  }
  return std::move(rest.picks());
}

}  // namespace prunerc::search
