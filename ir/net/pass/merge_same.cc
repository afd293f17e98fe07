#include "ir/net/pass/merge_same.h"

#include "ir/net/pass/remove_dead.h"

#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace prunerc::net {
namespace {

// By tensor: the first constant that holds the same.
std::vector<std::size_t> first_of_constants(const Net& net) {
  // Numbers by their bits: -0 is not 0, and NaN has no order.
  using Key = std::tuple<std::string, std::string, std::optional<uint64_t>>;
  std::map<Key, std::size_t> known;
  std::vector<std::size_t> first(net.tensors.size());
  for (std::size_t i = 0; i < net.tensors.size(); ++i) {
    const Tensor& tensor = net.tensors[i];
    first[i] = i;
    if (tensor.role != Role::kConst) continue;
    Key key(type_text(tensor), tensor.value ? "" : tensor.weight, std::nullopt);
    if (tensor.value) std::get<2>(key) = std::bit_cast<uint64_t>(*tensor.value);
    first[i] = known.emplace(std::move(key), i).first->second;
  }
  return first;
}

}  // namespace

Result<Net> merge_same(const Net& net) {
  using Key =
      std::tuple<std::string, std::map<std::string, std::string>, std::vector<std::size_t>, bool>;
  std::vector<std::size_t> first = first_of_constants(net);
  std::map<Key, std::size_t> known;
  Net out = net;
  for (Call& call : out.calls) {
    for (std::size_t& arg : call.args) arg = first[arg];
    // What is const would not be any more if it were read from a call of each run.
    const auto [found, is_new] =
        known.emplace(Key(call.op, call.bindings, call.args, is_const(net, call)),
                      static_cast<std::size_t>(&call - out.calls.data()));
    if (is_new) continue;
    const Call& earlier = out.calls[found->second];
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      if (net.tensors[call.results[i]].role == Role::kIntermediate)
        first[call.results[i]] = earlier.results[i];
    }
  }
  // Nobody reads the others any more.
  return remove_dead(out);
}

}  // namespace prunerc::net
