#include "ir/net/pass/layout.h"
#include "ir/net/pass/stage.h"
#include "ir/query.h"

#include <algorithm>
#include <numeric>

namespace prunerc::net {
namespace {

constexpr std::size_t kImageRank = 4;
constexpr std::size_t kChannelAxis = 1;
/// An input of so few channels (colours) is read where it lies: a copy would cost more.
constexpr int64_t kFewChannels = 4;

bool is_image(const ir::Buffer& buffer) {
  return buffer.shape.size() == kImageRank && !buffer.is_const;
}

// Does each axis of the load follow the same axis of what is stored, or run by itself?
bool keeps_axes(const ir::Load& load, const Stage& stage) {
  for (std::size_t axis = 0; axis < kImageRank; ++axis) {
    const bool follows_another = ir::any_var(load.indices[axis], [&](ir::VarId id) {
      return !ir::mentions(stage.store->indices[axis], id) &&
             std::find(stage.reduce_vars.begin(), stage.reduce_vars.end(), id) ==
                 stage.reduce_vars.end();
    });
    if (follows_another || ir::has_load(load.indices[axis])) return false;
  }
  return true;
}

// A sum of products with a const filter that holds channels of the result, and no place in it.
bool is_convolution(const ir::Program& program, const Stage& stage) {
  if (!is_linear(stage)) return false;
  for (const ir::Load* load : loads_of(stage.value)) {
    if (!program.buffer(load->buffer).is_const) continue;
    const auto moves_with = [&](std::size_t axis) {
      return ir::any_var(stage.store->indices[axis],
                         [&](ir::VarId id) { return ir::mentions(load->indices, id); });
    };
    return moves_with(kChannelAxis) && !moves_with(2) && !moves_with(3);
  }
  return false;
}

struct Place {
  bool is_kept = false;
  bool is_convolution = false;
};

// Batch, channels, rows and columns of images are where they were.
Place place_of(const ir::Program& program) {
  Place place;
  for (const ir::Block* block : blocks_of(program)) {
    const std::optional<Stage> stage = stage_of(*block);
    if (!stage) return {};
    if (!is_image(program.buffer(stage->store->buffer))) continue;
    bool reads_image = false;
    for (const ir::Load* load : loads_of(stage->value)) {
      if (!is_image(program.buffer(load->buffer))) continue;
      if (!keeps_axes(*load, *stage)) return {};
      reads_image = true;
    }
    place.is_kept = place.is_kept || reads_image;
    place.is_convolution = place.is_convolution || (reads_image && is_convolution(program, *stage));
  }
  return place;
}

class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  std::size_t root(std::size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

 private:
  std::vector<std::size_t> parent_;
};

bool can_turn(const Net& net, const Graph& graph, std::size_t t) {
  const Tensor& tensor = net.tensors[t];
  if (tensor.shape.size() != kImageRank || graph.is_const[t]) return false;
  return tensor.role != Role::kInput || tensor.shape[kChannelAxis] > kFewChannels;
}

}  // namespace

std::vector<bool> turned_tensors(const Net& net, const Graph& graph) {
  Sets sets(net.tensors.size());
  std::vector<bool> convolves(net.tensors.size(), false);
  for (std::size_t c = 0; c < net.calls.size(); ++c) {
    if (graph.is_const_call[c]) continue;
    const Call& call = net.calls[c];
    const Place place = place_of(net.programs[call.program]);
    if (!place.is_kept) continue;
    std::vector<std::size_t> touched;
    for (const std::size_t t : call.args)
      if (can_turn(net, graph, t)) touched.push_back(t);
    for (const std::size_t t : call.results)
      if (can_turn(net, graph, t)) touched.push_back(t);
    for (const std::size_t t : touched) {
      sets.join(t, touched[0]);
      convolves[t] = convolves[t] || place.is_convolution;
    }
  }
  std::vector<bool> root_convolves(net.tensors.size(), false), turned(net.tensors.size(), false);
  for (std::size_t t = 0; t < net.tensors.size(); ++t)
    if (convolves[t]) root_convolves[sets.root(t)] = true;
  for (std::size_t t = 0; t < net.tensors.size(); ++t)
    turned[t] = root_convolves[sets.root(t)] && can_turn(net, graph, t);
  return turned;
}

}  // namespace prunerc::net
