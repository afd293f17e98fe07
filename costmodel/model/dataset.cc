#include "costmodel/model/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace prunerc::costmodel::model {
namespace {

/// Groups of more programs are judged by so many neighbours of each: enough, and not quadratic.
constexpr std::size_t kMostNeighbours = 512;

template <typename T>
void shuffle(std::vector<T>* items, Rng& rng) {
  for (std::size_t i = items->size(); i > 1; --i) {
    std::swap((*items)[i - 1], (*items)[static_cast<std::size_t>(rng.below(i))]);
  }
}

const Outcome& outcome(const Dataset& data, int program) {
  return data.outcomes[static_cast<std::size_t>(program)];
}

// Places in `which`, by group.
std::vector<std::vector<std::size_t>> grouped(const Dataset& data, std::span<const int> which) {
  std::map<std::pair<int32_t, int32_t>, std::vector<std::size_t>> by_key;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const Outcome& o = outcome(data, which[i]);
    by_key[{o.task, o.platform}].push_back(i);
  }
  std::vector<std::vector<std::size_t>> result;
  for (auto& [key, places] : by_key) result.push_back(std::move(places));
  return result;
}

std::vector<int> all_of(const Dataset& data) {
  std::vector<int> which(static_cast<std::size_t>(data.size()));
  for (std::size_t i = 0; i < which.size(); ++i) which[i] = static_cast<int>(i);
  return which;
}

// Failed programs are slower than all others.
double time_of(const Outcome& o) {
  return o.ns > 0 ? o.ns : std::numeric_limits<double>::infinity();
}

}  // namespace

void Dataset::add(const ProgramView& program, const Outcome& measured) {
  append(program, &inputs);
  outcomes.push_back(measured);
}

std::vector<std::vector<int>> groups_of(const Dataset& data) {
  std::vector<std::vector<int>> result;
  for (const std::vector<std::size_t>& places : grouped(data, all_of(data))) {
    result.emplace_back(places.begin(), places.end());
  }
  return result;
}

Targets targets_of(const Dataset& data) {
  const auto count = static_cast<std::size_t>(data.size());
  Targets targets{std::vector<float>(count, 0),
                  std::vector<float>(count, std::numeric_limits<float>::infinity())};
  for (const std::vector<int>& group : groups_of(data)) {
    double best = std::numeric_limits<double>::infinity(), sum = 0;
    int ran = 0;
    for (const int i : group) {
      const double ns = outcome(data, i).ns;
      if (ns <= 0) continue;
      best = std::min(best, ns);
      sum += std::log(ns);
      ++ran;
    }
    for (const int i : group) {
      const double ns = outcome(data, i).ns;
      if (ns <= 0) continue;
      targets.label[static_cast<std::size_t>(i)] = static_cast<float>(best / ns);
      targets.log_latency[static_cast<std::size_t>(i)] =
          static_cast<float>(std::log(ns) - sum / ran);
    }
  }
  return targets;
}

std::vector<std::vector<int>> draw_lists(const Dataset& data, std::span<const int> which,
                                         int length, Rng& rng) {
  std::vector<std::vector<int>> lists;
  for (std::vector<std::size_t>& places : grouped(data, which)) {
    if (places.size() < 2) continue;
    shuffle(&places, rng);
    const auto size = static_cast<int>(places.size());
    const int parts = std::max(1, (size + length / 2) / length);
    for (int part = 0; part < parts; ++part) {
      const auto first = static_cast<std::ptrdiff_t>(int64_t{size} * part / parts);
      const auto end = static_cast<std::ptrdiff_t>(int64_t{size} * (part + 1) / parts);
      std::vector<int>& list = lists.emplace_back();
      for (std::ptrdiff_t i = first; i < end; ++i) {
        list.push_back(which[places[static_cast<std::size_t>(i)]]);
      }
    }
  }
  shuffle(&lists, rng);
  return lists;
}

double pairwise_accuracy(const Dataset& data, std::span<const int> which,
                         std::span<const float> scores) {
  double sum = 0;
  int groups = 0;
  for (const std::vector<std::size_t>& places : grouped(data, which)) {
    double right = 0, all = 0;
    for (std::size_t a = 0; a < places.size(); ++a) {
      const std::size_t end = std::min(places.size(), a + 1 + kMostNeighbours);
      for (std::size_t b = a + 1; b < end; ++b) {
        const double left_ns = time_of(outcome(data, which[places[a]]));
        const double right_ns = time_of(outcome(data, which[places[b]]));
        if (left_ns == right_ns) continue;
        const float left = scores[places[a]], other = scores[places[b]];
        all += 1;
        right += left == other ? 0.5 : ((left_ns < right_ns) == (left > other) ? 1 : 0);
      }
    }
    if (all == 0) continue;
    sum += right / all;
    ++groups;
  }
  return groups == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / groups;
}

}  // namespace prunerc::costmodel::model
