// Layouts of intermediates and orders of loops, read off the stages around them.
#include "ir/analysis/views/stages.h"
#include "ir/query.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace prunerc::ir {
namespace {

using Order = std::vector<std::size_t>;  // new position -> old position

// Sorts positions by keys; one without a key stays behind the one before it.
Order order_by(const std::vector<std::optional<std::size_t>>& keys) {
  std::vector<std::size_t> filled;
  std::size_t last = 0;
  for (const std::optional<std::size_t>& key : keys) filled.push_back(last = key.value_or(last));
  Order order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return filled[a] < filled[b]; });
  return order;
}

bool is_identity(const Order& order) { return std::is_sorted(order.begin(), order.end()); }

std::size_t num_spatial(const Stage& stage) {
  return static_cast<std::size_t>(
      std::count_if(stage.iters.begin(), stage.iters.end(),
                    [](const IterVar& iter) { return iter.kind == IterKind::kSpatial; }));
}

void reorder_iters(Stages& stages, Stage& stage, const Order& order) {
  if (is_identity(order)) return;
  const std::vector<IterVar> old = stage.iters;
  for (std::size_t i = 0; i < order.size(); ++i) stage.iters[i] = old[order[i]];
  stage.is_changed = stages.is_changed = true;
}

// Spatial loops run as the subscripts of what is written stand.
void follow_target(Stages& stages, Stage& stage) {
  const std::vector<const Store*> stores = stores_of(stage.block.body);
  if (stores.empty()) return;
  std::vector<std::optional<std::size_t>> keys(num_spatial(stage));
  for (std::size_t d = 0; d < stores[0]->indices.size(); ++d) {
    const std::optional<std::size_t> iter = stage.spatial_in(stores[0]->indices[d]);
    if (!iter) continue;
    if (stores[0]->indices[d].as<Var>() == nullptr || keys[*iter]) return;
    keys[*iter] = d;
  }
  Order order = order_by(keys);
  for (std::size_t i = order.size(); i < stage.iters.size(); ++i) order.push_back(i);
  reorder_iters(stages, stage, order);
}

// Reduction loops run as the subscripts stand of the operand that moves with most of them.
void order_reduction(Stages& stages, Stage& stage) {
  const std::size_t first = num_spatial(stage);
  const auto keys_of = [&](const Load& load) {
    std::vector<std::optional<std::size_t>> keys(stage.iters.size() - first);
    for (std::size_t d = 0; d < load.indices.size(); ++d) {
      for (std::size_t i = first; i < stage.iters.size(); ++i) {
        std::optional<std::size_t>& key = keys[i - first];
        if (!key && mentions(load.indices[d], stage.iters[i].var->id)) key = d;
      }
    }
    return keys;
  };
  std::size_t most = 0;
  std::vector<std::optional<std::size_t>> best;
  for (const Load* load : loads_of(stage.block.body)) {
    auto keys = keys_of(*load);
    const auto moves = static_cast<std::size_t>(
        std::count_if(keys.begin(), keys.end(), [](const auto& key) { return key.has_value(); }));
    if (moves <= most) continue;
    most = moves;
    best = std::move(keys);
  }
  if (best.empty()) return;
  Order order(first);
  std::iota(order.begin(), order.end(), 0);
  for (const std::size_t i : order_by(best)) order.push_back(first + i);
  reorder_iters(stages, stage, order);
}

// Dimensions of a buffer in the order of the loops along which a load of it runs; nullopt if the
// load takes whole dimensions at once or mixes variables.
std::optional<Order> order_in_reader(const IrBuilder& b, const Stage& reader, const Load& load) {
  std::vector<std::optional<std::size_t>> keys;
  for (std::size_t d = 0; d < load.indices.size(); ++d) {
    const std::optional<std::size_t> iter = reader.spatial_in(load.indices[d]);
    if (!iter && constant_value(b.buffer(load.buffer).shape[d]) != 1) return std::nullopt;
    if (iter && std::find(keys.begin(), keys.end(), iter) != keys.end()) return std::nullopt;
    keys.push_back(iter);
  }
  return order_by(keys);
}

std::optional<Order> order_in_readers(const Stages& stages, BufferId buffer, std::size_t writer) {
  std::optional<Order> common;
  for (std::size_t i = 0; i < stages.list.size(); ++i) {
    if (i == writer) continue;
    for (const Load* load : loads_of(stages.list[i].block.body)) {
      if (load->buffer != buffer) continue;
      const std::optional<Order> order = order_in_reader(stages.b, stages.list[i], *load);
      if (!order || (common && *common != *order)) return std::nullopt;
      common = order;
    }
  }
  return common;
}

// The order of what an elementwise stage reads along all its loops, for what it writes.
std::optional<Order> order_in_sources(const Stage& writer) {
  if (writer.reduces()) return std::nullopt;
  for (const Load* load : loads_of(writer.block.body)) {
    std::vector<std::optional<std::size_t>> keys(writer.iters.size());
    for (std::size_t d = 0; d < load->indices.size(); ++d) {
      const std::optional<std::size_t> iter = writer.spatial_in(load->indices[d]);
      if (iter && !keys[*iter]) keys[*iter] = d;
    }
    bool is_whole = true;
    for (std::size_t i = 0; i < keys.size(); ++i)
      is_whole = is_whole && (keys[i] || constant_value(writer.iters[i].extent) == 1);
    if (is_whole) return order_by(keys);
  }
  return std::nullopt;
}

void lay_out(Stages& stages, BufferId id, const Order& order) {
  if (is_identity(order)) return;
  Buffer buffer = stages.b.buffer(id);
  std::vector<Expr> shape;
  for (const std::size_t d : order) shape.push_back(buffer.shape[d]);
  buffer.shape = stages.b.copy(shape);
  stages.b.set_buffer(buffer);
  move_elements(stages, id, [&](std::span<const Expr> indices, const Stage&) {
    Element out{id, {}};
    for (const std::size_t d : order) out.indices.push_back(indices[d]);
    return out;
  });
}

// The intermediate that the stage alone writes, by one store along its loops.
std::optional<BufferId> result_of(const Stages& stages, const Stage& stage) {
  std::optional<BufferId> found;
  for (const Store* store : stores_of(stage.block.body)) {
    if (found) return std::nullopt;
    found = store->buffer;
  }
  if (!found || stages.b.buffer(*found).role != BufferRole::kIntermediate) return std::nullopt;
  return stages.num_writers(*found) == 1 ? found : std::nullopt;
}

}  // namespace

void order_stages(Stages& stages) {
  std::vector<bool> is_free(stages.list.size(), false);
  for (std::size_t i = stages.list.size(); i-- > 0;) {
    if (const std::optional<BufferId> result = result_of(stages, stages.list[i])) {
      const std::optional<Order> order = order_in_readers(stages, *result, i);
      is_free[i] = !order;
      if (order) lay_out(stages, *result, *order);
    }
    follow_target(stages, stages.list[i]);
  }
  for (std::size_t i = 0; i < stages.list.size(); ++i) {
    Stage& stage = stages.list[i];
    if (!stage.is_changed) continue;
    const std::optional<BufferId> result = result_of(stages, stage);
    if (is_free[i] && result) {
      if (const std::optional<Order> order = order_in_sources(stage)) {
        const bool fits = order->size() == stages.b.buffer(*result).shape.size();
        if (fits) lay_out(stages, *result, *order);
        follow_target(stages, stage);
      }
    }
    if (stage.reduces()) order_reduction(stages, stage);
  }
}

}  // namespace prunerc::ir
