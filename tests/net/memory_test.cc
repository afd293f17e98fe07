// Where tensors lie: no two that are alive at once overlap, and little is wasted.
#include "ir/net/memory.h"

#include "ir/support/rng.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace prunerc::net {
namespace {

std::size_t add_tensor(Net& net, Role role, int64_t elements) {
  Tensor tensor;
  tensor.name = "t" + std::to_string(net.tensors.size());
  tensor.shape = {elements};
  tensor.role = role;
  net.tensors.push_back(tensor);
  return net.tensors.size() - 1;
}

/// A net of calls that read any earlier tensors, most of them recent ones.
Net random_net(Rng& rng) {
  Net net;
  net.inputs.push_back(add_tensor(net, Role::kInput, 100));
  add_tensor(net, Role::kConst, 1000);
  const int64_t num_calls = rng.between(1, 40);
  for (int64_t i = 0; i < num_calls; ++i) {
    Call call;
    const auto last = static_cast<int64_t>(net.tensors.size()) - 1;
    for (int64_t a = rng.between(1, 3); a > 0; --a) {
      const int64_t far = rng.between(0, 9) == 0 ? last : std::min<int64_t>(last, 3);
      call.args.push_back(static_cast<std::size_t>(rng.between(last - far, last)));
    }
    for (int64_t r = rng.between(1, 2); r > 0; --r) {
      const Role role = rng.between(0, 7) == 0 ? Role::kOutput : Role::kIntermediate;
      call.results.push_back(add_tensor(net, role, rng.between(1, 5000)));
    }
    net.calls.push_back(call);
  }
  return net;
}

// What a run sees: each call writes its results into memory, and every later reader finds them.
void check_values(const Net& net, const MemoryPlan& plan, bool all_at_end) {
  std::vector<int> owner(static_cast<std::size_t>(plan.bytes), -1);
  const auto holds = [&](std::size_t tensor) {
    const int64_t at = plan.offsets[tensor];
    for (int64_t b = at; b < at + size_bytes(net.tensors[tensor]); ++b) {
      if (owner[static_cast<std::size_t>(b)] != static_cast<int>(tensor)) return false;
    }
    return true;
  };
  const auto is_placed = [&](std::size_t tensor) {
    return net.tensors[tensor].role == Role::kIntermediate;
  };
  for (const Call& call : net.calls) {
    // Results are written while arguments are read.
    for (const std::size_t result : call.results) {
      if (!is_placed(result)) continue;
      const int64_t at = plan.offsets[result];
      REQUIRE(at >= 0);
      REQUIRE(at % kTensorAlignment == 0);
      REQUIRE(at + size_bytes(net.tensors[result]) <= plan.bytes);
      std::fill_n(owner.begin() + at, size_bytes(net.tensors[result]), static_cast<int>(result));
    }
    for (const auto* list : {&call.args, &call.results}) {
      for (const std::size_t tensor : *list) {
        if (is_placed(tensor)) CHECK(holds(tensor));
      }
    }
  }
  if (!all_at_end) return;
  for (std::size_t i = 0; i < net.tensors.size(); ++i) {
    if (is_placed(i)) CHECK(holds(i));
  }
}

}  // namespace

TEST_CASE("no call overwrites what a later one reads") {
  double bytes = 0, bound = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed, 1);
    const Net net = random_net(rng);
    const MemoryPlan plan = plan_memory(net);
    CHECK(plan.bytes >= plan.lower_bound);
    check_values(net, plan, false);
    for (std::size_t i = 0; i < net.tensors.size(); ++i)
      CHECK((plan.offsets[i] >= 0) == (net.tensors[i].role == Role::kIntermediate));
    bytes += static_cast<double>(plan.bytes);
    bound += static_cast<double>(plan.lower_bound);
  }
  CHECK(bytes < 1.1 * bound);
}

TEST_CASE("tensors that are kept are all there at the end") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed, 2);
    const Net net = random_net(rng);
    const MemoryPlan plan = plan_memory(net, Reuse::kKept);
    CHECK(plan.bytes == plan.lower_bound);
    check_values(net, plan, true);
  }
}

TEST_CASE("a chain takes the two largest neighbours") {
  Net net;
  std::size_t before = add_tensor(net, Role::kInput, 16);
  for (const int64_t elements : {160, 16, 320, 64, 16}) {
    const std::size_t result = add_tensor(net, Role::kIntermediate, elements);
    net.calls.push_back({"c", "op", {}, {before}, {result}, 0});
    before = result;
  }
  const MemoryPlan plan = plan_memory(net);
  CHECK(plan.lower_bound == 4 * (320 + 64));
  CHECK(plan.bytes == plan.lower_bound);
  CHECK(plan_memory(Net()).bytes == 0);
}

}  // namespace prunerc::net
