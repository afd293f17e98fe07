#include "ir/net/pass/remove_dead.h"

#include "ir/net/pass/fuse.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace prunerc::net {
namespace {

// Tensors move; what is not `kept` has no call.
void keep_tensors(Net& net, const std::vector<bool>& kept) {
  std::vector<std::size_t> place(net.tensors.size());
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < net.tensors.size(); ++i) {
    place[i] = tensors.size();
    if (kept[i]) tensors.push_back(std::move(net.tensors[i]));
  }
  net.tensors = std::move(tensors);
  const auto move = [&](std::vector<std::size_t>& list) {
    for (std::size_t& tensor : list) tensor = place[tensor];
  };
  move(net.inputs);
  move(net.outputs);
  for (Call& call : net.calls) {
    move(call.args);
    move(call.results);
  }
}

}  // namespace

Result<Net> remove_dead(const Net& net) {
  std::vector<bool> is_read(net.tensors.size());
  for (const std::size_t output : net.outputs) is_read[output] = true;
  std::vector<Call> calls;
  for (std::size_t c = net.calls.size(); c-- > 0;) {
    const Call& call = net.calls[c];
    if (std::none_of(call.results.begin(), call.results.end(),
                     [&](std::size_t result) { return is_read[result]; }))
      continue;
    for (const std::size_t arg : call.args) is_read[arg] = true;
    // A result that nobody reads has its name all the same.
    for (const std::size_t result : call.results) is_read[result] = true;
    calls.push_back(call);
  }
  const bool has_dead_const = [&] {
    for (std::size_t i = 0; i < net.tensors.size(); ++i) {
      if (net.tensors[i].role == Role::kConst && !is_read[i]) return true;
    }
    return false;
  }();
  if (calls.size() == net.calls.size() && !has_dead_const) return net;
  std::reverse(calls.begin(), calls.end());
  Net out = net;
  out.calls = std::move(calls);
  for (const std::size_t input : net.inputs) is_read[input] = true;
  keep_tensors(out, is_read);
  return compile_again(out);
}

}  // namespace prunerc::net
