#include "ir/domain.h"

#include "ir/evaluate_int.h"
#include "ir/tile_space.h"

#include <algorithm>
#include <limits>

namespace prunerc::ir {
namespace {

uint64_t saturating_mul(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<uint64_t>::max() : out;
}

}  // namespace

std::optional<int64_t> evaluate_params(Expr e, std::span<const int64_t> params) {
  return evaluate_int(e, [&](Expr leaf) -> std::optional<int64_t> {
    const TileParam* p = leaf.as<TileParam>();
    const auto index = p == nullptr ? params.size() : static_cast<std::size_t>(p->id.value);
    return index < params.size() ? std::optional(params[index]) : std::nullopt;
  });
}

bool satisfies_constraints(const Domain& domain, std::span<const int64_t> params) {
  return std::all_of(domain.constraints.begin(), domain.constraints.end(), [&](Expr constraint) {
    return evaluate_params(constraint, params).value_or(0) != 0;
  });
}

DomainSpace::DomainSpace(const Domain& domain) : num_params_(domain.names.size()) {
  for (const TileVector& tiles : domain.tiles) {
    groups_.push_back({{tiles.params.begin(), tiles.params.end()}, TileSpace(tiles), {}});
  }
  for (const Choice& choice : domain.choices) {
    Group group{{choice.param}, TileSpace(1, 1, TileKind::kPerfect, 0), {}};
    group.values.assign(choice.values.begin(), choice.values.end());
    groups_.push_back(std::move(group));
  }
  for (const Group& group : groups_) count_ = saturating_mul(count_, group.count());
}

void DomainSpace::set(const Group& group, uint64_t rank, std::vector<int64_t>* params) const {
  if (!group.values.empty()) {
    (*params)[static_cast<std::size_t>(group.params[0].value)] =
        group.values[static_cast<std::size_t>(rank)];
    return;
  }
  set(group, group.tiles.unrank(rank), params);
}

void DomainSpace::set(const Group& group, const std::vector<int64_t>& values,
                      std::vector<int64_t>* params) const {
  for (std::size_t i = 0; i < group.params.size(); ++i) {
    (*params)[static_cast<std::size_t>(group.params[i].value)] = values[i];
  }
}

std::vector<int64_t> DomainSpace::values_of(const Group& group,
                                            std::span<const int64_t> params) const {
  std::vector<int64_t> values;
  for (ParamId id : group.params) values.push_back(params[static_cast<std::size_t>(id.value)]);
  return values;
}

std::vector<int64_t> DomainSpace::unrank(uint64_t rank) const {
  std::vector<int64_t> params(num_params_, 1);
  for (const Group& group : groups_) {
    set(group, rank % group.count(), &params);
    rank /= group.count();
  }
  return params;
}

std::vector<int64_t> DomainSpace::sample(Rng& rng) const {
  std::vector<int64_t> params(num_params_, 1);
  for (const Group& group : groups_) set(group, rng.below(group.count()), &params);
  return params;
}

bool DomainSpace::contains(std::span<const int64_t> params) const {
  if (params.size() != num_params_) return false;
  return std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    const std::vector<int64_t> values = values_of(group, params);
    if (group.values.empty()) return group.tiles.contains(values);
    return std::find(group.values.begin(), group.values.end(), values[0]) != group.values.end();
  });
}

std::vector<int64_t> DomainSpace::mutate(std::span<const int64_t> params, Rng& rng) const {
  std::vector<int64_t> out(params.begin(), params.end());
  if (groups_.empty()) return out;
  const std::size_t start = static_cast<std::size_t>(rng.below(groups_.size()));
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[(start + i) % groups_.size()];
    if (group.count() < 2) continue;  // nothing to change here: take the next one
    const std::vector<int64_t> before = values_of(group, params);
    if (group.values.empty()) {
      const std::vector<std::vector<int64_t>> steps = group.tiles.neighbours(before);
      if (steps.empty()) continue;
      set(group, steps[static_cast<std::size_t>(rng.below(steps.size()))], &out);
    } else {
      uint64_t rank = rng.below(group.count() - 1);
      // The value that is there now is passed over.
      if (group.values[static_cast<std::size_t>(rank)] == before[0]) rank = group.count() - 1;
      set(group, rank, &out);
    }
    return out;
  }
  return out;
}

std::vector<int64_t> DomainSpace::crossover(std::span<const int64_t> a, std::span<const int64_t> b,
                                            Rng& rng) const {
  std::vector<int64_t> out(a.begin(), a.end());
  for (const Group& group : groups_) {
    if (rng.chance(0.5)) set(group, values_of(group, b), &out);
  }
  return out;
}

}  // namespace prunerc::ir
