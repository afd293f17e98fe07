#include "ir/net/memory.h"

#include <algorithm>

namespace prunerc::net {
namespace {

/// An intermediate: written by call `first`, read last by call `last`.
struct Life {
  std::size_t tensor = 0;
  std::size_t first = 0, last = 0;
  int64_t bytes = 0;
};

int64_t align_up(int64_t n) {
  return (n + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

bool lies_here(const Tensor& tensor) {
  return tensor.role == Role::kIntermediate && !tensor.is_const;
}

std::vector<Life> lives_of(const Net& net, Reuse reuse) {
  std::vector<Life> lives;
  std::vector<std::size_t> place(net.tensors.size());
  for (std::size_t i = 0; i < net.calls.size(); ++i) {
    for (const std::size_t result : net.calls[i].results) {
      if (!lies_here(net.tensors[result])) continue;
      place[result] = lives.size();
      const std::size_t last = reuse == Reuse::kKept ? net.calls.size() : i;
      lives.push_back({result, i, last, align_up(size_bytes(net.tensors[result]))});
    }
    for (const std::size_t arg : net.calls[i].args) {
      if (!lies_here(net.tensors[arg])) continue;
      Life& life = lives[place[arg]];
      life.last = std::max(life.last, i);
    }
  }
  return lives;
}

}  // namespace

MemoryPlan plan_memory(const Net& net, Reuse reuse) {
  std::vector<Life> lives = lives_of(net, reuse);
  MemoryPlan plan;
  plan.offsets.assign(net.tensors.size(), -1);
  std::vector<int64_t> alive(net.calls.size() + 1);
  for (const Life& life : lives) {
    for (std::size_t i = life.first; i <= life.last && i < alive.size(); ++i)
      alive[i] += life.bytes;
  }
  for (const int64_t bytes : alive) plan.lower_bound = std::max(plan.lower_bound, bytes);
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  for (std::size_t i = 0; i < lives.size(); ++i) {
    // The others that are alive with it, by place.
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (std::size_t j = 0; j < i; ++j) {
      if (lives[j].first > lives[i].last || lives[i].first > lives[j].last) continue;
      const int64_t at = plan.offsets[lives[j].tensor];
      taken.emplace_back(at, at + lives[j].bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - offset >= lives[i].bytes) break;
      offset = std::max(offset, end);
    }
    plan.offsets[lives[i].tensor] = offset;
    plan.bytes = std::max(plan.bytes, offset + lives[i].bytes);
  }
  return plan;
}

}  // namespace prunerc::net
