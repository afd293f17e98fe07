#include "ir/net/pass/channel.h"

#include "ir/net/pass/stage.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace prunerc::net {
namespace {

using ir::Expr;
using ir::Load;

/// Factors may be moved where a product and a sum are not rounded to few digits.
bool is_wide(ir::DType dtype) { return dtype == ir::DType::kF32 || dtype == ir::DType::kF64; }

std::optional<std::size_t> input_of(const ir::Program& program, ir::BufferId buffer) {
  for (std::size_t i = 0; i < program.params().size(); ++i) {
    if (program.params()[i] != buffer) continue;
    if (program.buffer(buffer).role != ir::BufferRole::kInput) return std::nullopt;
    return i;
  }
  return std::nullopt;
}

bool is_output(const ir::Program& program, ir::BufferId buffer) {
  return program.buffer(buffer).role == ir::BufferRole::kOutput;
}

// Each subscript is a variable of its own.
bool is_plain(const ir::Store& store) {
  std::vector<ir::VarId> seen;
  for (const Expr index : store.indices) {
    const ir::Var* var = index.as<ir::Var>();
    if (var == nullptr || std::find(seen.begin(), seen.end(), var->id) != seen.end()) return false;
    seen.push_back(var->id);
  }
  return true;
}

bool is_same_place(const Load& load, const ir::Store& store) {
  return std::equal(load.indices.begin(), load.indices.end(), store.indices.begin(),
                    store.indices.end(), [](Expr a, Expr b) {
                      const ir::Var *x = a.as<ir::Var>(), *y = b.as<ir::Var>();
                      return x != nullptr && y != nullptr && x->id == y->id;
                    });
}

// Whether the load's axis may have more elements than the store's, which are not read.
enum class Rest : uint8_t { kNone, kAny };

// By axis of the store: the axis of the load, of as many elements but for `rest`, whose subscript is
// its variable, which no other subscript mentions.
std::vector<std::size_t> axes_of(const ir::Program& program, const Load& load,
                                 const ir::Store& store, Rest rest) {
  const ir::Buffer &from = program.buffer(load.buffer), &to = program.buffer(store.buffer);
  std::vector<std::size_t> axes;
  for (std::size_t at = 0; at < store.indices.size(); ++at) {
    const ir::VarId id = store.indices[at].as<ir::Var>()->id;
    std::size_t axis = kNoAxis, num_mentions = 0;
    for (std::size_t d = 0; d < load.indices.size(); ++d) {
      if (!ir::mentions(load.indices[d], id)) continue;
      ++num_mentions;
      const int64_t left = extent_of(from.shape[d]) - extent_of(to.shape[at]);
      if (load.indices[d].as<ir::Var>() != nullptr && (rest == Rest::kAny ? left >= 0 : left == 0))
        axis = d;
    }
    axes.push_back(num_mentions == 1 ? axis : kNoAxis);
  }
  return axes;
}

// The one axis along which the load varies, where its other subscripts are 0.
bool find_axis(const ir::Program& program, const Load& load, const ir::Store& store,
               ChannelOp* out) {
  const std::vector<std::size_t> axes = axes_of(program, load, store, Rest::kAny);
  for (std::size_t d = 0; d < load.indices.size(); ++d) {
    if (ir::constant_value(load.indices[d]) == 0) continue;
    const auto found = std::find(axes.begin(), axes.end(), d);
    if (found == axes.end() || out->axis != kNoAxis) return false;
    out->axis = static_cast<std::size_t>(found - axes.begin());
    out->vector_axis = d;
  }
  return true;
}

char op_of(Expr e) {
  switch (e.kind()) {
    case ir::ExprKind::kMul: return '*';
    case ir::ExprKind::kDiv: return '/';
    case ir::ExprKind::kAdd: return '+';
    default: return 0;
  }
}

int64_t num_loads(const std::vector<const Load*>& loads, ir::BufferId buffer) {
  return std::count_if(loads.begin(), loads.end(),
                       [&](const Load* load) { return load->buffer == buffer; });
}

// b of Y = acc + b, in either order, where acc is the sum; `loads`: all of the program.
std::optional<WeightedSum::Part> bias_of(const ir::Program& program, const Stage& sum,
                                         const Stage& added,
                                         const std::vector<const Load*>& loads) {
  const ir::Add* const value = added.value.as<ir::Add>();
  if (value == nullptr || !is_plain(*added.store)) return std::nullopt;
  const Load *acc = value->lhs.as<Load>(), *b = value->rhs.as<Load>();
  if (acc != nullptr && acc->buffer != sum.store->buffer) std::swap(acc, b);
  if (acc == nullptr || b == nullptr || acc->buffer != sum.store->buffer ||
      num_loads(loads, acc->buffer) != 1 || num_loads(loads, b->buffer) != 1 ||
      !is_same_place(*acc, *added.store) ||
      !same_shape(program.buffer(acc->buffer), program.buffer(added.store->buffer)))
    return std::nullopt;
  const std::optional<std::size_t> input = input_of(program, b->buffer);
  if (!input) return std::nullopt;
  return WeightedSum::Part{*input, axes_of(program, *b, *added.store, Rest::kNone)};
}

std::optional<ChannelOp> match_sides(const ir::Program& program, const ir::Store& store, char op,
                                     Expr whole, Expr vector) {
  const Load* const x = whole.as<Load>();
  if (x == nullptr || !is_same_place(*x, store)) return std::nullopt;
  if (!same_shape(program.buffer(x->buffer), program.buffer(store.buffer))) return std::nullopt;
  const std::optional<std::size_t> input = input_of(program, x->buffer);
  if (!input) return std::nullopt;
  ChannelOp found;
  found.op = op;
  found.whole = *input;
  if (const ir::FloatImm* number = vector.as<ir::FloatImm>()) {
    found.number = number->value;
    return found;
  }
  const Load* const v = vector.as<Load>();
  if (v == nullptr || v->buffer == x->buffer || !find_axis(program, *v, store, &found))
    return std::nullopt;
  found.vector = input_of(program, v->buffer);
  if (!found.vector) return std::nullopt;
  return found;
}

}  // namespace

std::optional<ChannelOp> match_channel_op(const ir::Program& program) {
  const std::vector<const ir::Block*> blocks = blocks_of(program);
  if (blocks.size() != 1) return std::nullopt;
  const std::optional<Stage> stage = stage_of(*blocks[0]);
  if (!stage || stage->reduces || !is_output(program, stage->store->buffer)) return std::nullopt;
  const ir::BinaryNode* const value = ir::as_binary(stage->value);
  const char op = op_of(stage->value);
  if (value == nullptr || op == 0 || !is_wide(stage->value.dtype()) || !is_plain(*stage->store))
    return std::nullopt;
  std::optional<ChannelOp> found = match_sides(program, *stage->store, op, value->lhs, value->rhs);
  if (!found && op != '/') found = match_sides(program, *stage->store, op, value->rhs, value->lhs);
  return found;
}

std::optional<WeightedSum> match_weighted_sum(const ir::Program& program) {
  std::optional<Stage> sum, added;
  std::vector<const Load*> loads;
  for (const ir::Block* block : blocks_of(program)) {
    const std::optional<Stage> stage = stage_of(*block);
    if (!stage) return std::nullopt;
    for (const Load* load : loads_of(stage->value)) loads.push_back(load);
    if (stage->reduces) {
      if (sum || !is_linear(*stage)) return std::nullopt;
      sum = stage;
    } else if (is_output(program, stage->store->buffer)) {
      if (added) return std::nullopt;
      added = stage;
    }
  }
  if (!sum || !is_plain(*sum->store) || !is_wide(sum->value.dtype())) return std::nullopt;
  WeightedSum found;
  if (is_output(program, sum->store->buffer) == added.has_value()) return std::nullopt;
  if (added) {
    found.bias = bias_of(program, *sum, *added, loads);
    if (!found.bias) return std::nullopt;
  }
  for (const Load* load : loads_of(sum->value)) {
    const std::optional<std::size_t> input = input_of(program, load->buffer);
    if (!input || num_loads(loads, load->buffer) != 1) continue;
    if (program.buffer(load->buffer).dtype != sum->value.dtype()) continue;
    found.weights.push_back({*input, axes_of(program, *load, *sum->store, Rest::kNone)});
  }
  return found;
}

}  // namespace prunerc::net
