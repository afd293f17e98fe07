#include "ir/analysis/accumulator.h"

#include "ir/equal.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>

namespace prunerc::ir {

namespace {

Held target_of(const Store& store) {
  return {store.buffer, {store.indices.begin(), store.indices.end()}};
}

std::vector<Held> targets_of(const Accumulator& how) {
  std::vector<Held> out;
  for (const Store* store : how.targets) out.push_back(target_of(*store));
  return out;
}

Expr load(IrBuilder& b, const Held& target) { return b.load(target.buffer, target.indices); }

bool is_reducer_op(ExprKind kind) {
  return kind == ExprKind::kAdd || kind == ExprKind::kMul || kind == ExprKind::kMin ||
         kind == ExprKind::kMax;
}

bool is_load_of(Expr e, const Store& store) {
  const Load* found = e.as<Load>();
  return found != nullptr && found->buffer == store.buffer &&
         structural_equal(found->indices, store.indices);
}

bool loads_from_any(Expr e, std::span<const Store* const> stores) {
  return std::any_of(stores.begin(), stores.end(),
                     [&](const Store* store) { return loads_from(e, store->buffer); });
}

// Two stores to different buffers at one place that reduction variables do not decide.
std::vector<const Store*> two_stores(const Block& block) {
  const Seq* seq = block.body.as<Seq>();
  if (seq == nullptr || seq->stmts.size() != 2) return {};
  const Store* first = seq->stmts[0].as<Store>();
  const Store* second = seq->stmts[1].as<Store>();
  if (first == nullptr || second == nullptr || first->buffer == second->buffer) return {};
  if (!structural_equal(first->indices, second->indices)) return {};
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kSpatial) continue;
    for (Expr index : first->indices) {
      if (mentions(index, iter.var->id)) return {};
    }
  }
  return {first, second};
}

// The accumulator if its step, built anew from the element, is the block's body.
std::optional<Accumulator> confirm(IrBuilder& b, const Block& block, Accumulator found) {
  for (Expr part : found.element) {
    if (part.defined() && loads_from_any(part, found.targets)) return std::nullopt;
  }
  const Stmt step = accumulate(b, found, targets_of(found), found.element);
  if (!structural_equal(step, block.body)) return std::nullopt;
  return found;
}

// join(old, x), or select(c, join(old, x), old): x and c.
bool match_join(Expr value, const Store& store, Accumulator* out, Expr* condition, Expr* x) {
  if (const Select* choice = value.as<Select>()) {
    if (!is_load_of(choice->on_false, store)) return false;
    *condition = choice->condition;
    value = choice->on_true;
  }
  const BinaryNode* join = as_binary(value);
  const bool picks = value.kind() == ExprKind::kMax || value.kind() == ExprKind::kMin;
  if (!picks || !is_load_of(join->lhs, store)) return false;
  out->op = value.kind();
  *x = join->rhs;
  return true;
}

std::optional<Accumulator> match_best(IrBuilder& b, const Block& block) {
  Accumulator out;
  out.kind = AccumulatorKind::kBest;
  out.targets = two_stores(block);
  if (out.targets.empty()) return std::nullopt;
  const Select* position = out.targets[0]->value.as<Select>();
  Expr condition;
  Expr x;
  if (position == nullptr || position->on_true.dtype() != DType::kI64 ||
      !match_join(out.targets[1]->value, *out.targets[1], &out, &condition, &x)) {
    return std::nullopt;
  }
  out.element = {condition, x, position->on_true};
  return confirm(b, block, std::move(out));
}

std::optional<Accumulator> match_softmax(IrBuilder& b, const Block& block) {
  Accumulator out;
  out.kind = AccumulatorKind::kSoftmax;
  out.targets = two_stores(block);
  if (out.targets.empty()) return std::nullopt;
  Expr condition;
  Expr x;
  const Add* sum = out.targets[0]->value.as<Add>();
  if (sum == nullptr || !is_float(out.targets[0]->value.dtype()) ||
      !match_join(out.targets[1]->value, *out.targets[1], &out, &condition, &x) ||
      condition.defined() || out.op != ExprKind::kMax ||
      x.dtype() != out.targets[0]->value.dtype()) {
    return std::nullopt;
  }
  const Mul* weighted = sum->rhs.as<Mul>();
  out.element = {weighted == nullptr ? Expr() : weighted->lhs, x};
  return confirm(b, block, std::move(out));
}

Stmt step_best(IrBuilder& b, const Accumulator& how, std::span<const Held> targets,
               std::span<const Expr> element) {
  const bool is_max = how.op == ExprKind::kMax;
  const Expr condition = element[0];
  const Expr x = element[1];
  const Expr at = element[2];
  const Expr position = load(b, targets[0]);
  const Expr value = load(b, targets[1]);
  const Expr better = is_max ? b.lt(value, x) : b.lt(x, value);
  const Expr as_good = b.logical_and(b.eq(x, value), b.lt(at, position));
  Expr takes = b.logical_or(b.lt(position, b.int_imm(0)), b.logical_or(better, as_good));
  Expr best = b.binary(how.op, value, x);
  if (condition.defined()) {
    takes = b.logical_and(condition, takes);
    best = b.select(condition, best, value);
  }
  return b.seq({b.store(targets[0].buffer, targets[0].indices, b.select(takes, at, position)),
                b.store(targets[1].buffer, targets[1].indices, best)});
}

Stmt step_softmax(IrBuilder& b, std::span<const Held> targets, std::span<const Expr> element) {
  const Expr weight = element[0];
  const Expr x = element[1];
  const Expr largest = load(b, targets[1]);
  const Expr now = b.max(largest, x);
  const auto power = [&](Expr exponent) {
    const Expr distance = b.sub(exponent, now);
    return b.call(Intrinsic::kExp, {&distance, 1});
  };
  const Expr grown = weight.defined() ? b.mul(weight, power(x)) : power(x);
  const Expr sum = b.add(b.mul(load(b, targets[0]), power(largest)), grown);
  return b.seq({b.store(targets[0].buffer, targets[0].indices, sum),
                b.store(targets[1].buffer, targets[1].indices, now)});
}

}  // namespace

std::optional<Reducer> match_reducer(const Block& block, Stmt inside) {
  const Store* store = inside.as<Store>();
  const BinaryNode* value = store == nullptr ? nullptr : as_binary(store->value);
  if (value == nullptr || !is_reducer_op(value->kind)) return std::nullopt;
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kSpatial) continue;
    for (Expr index : store->indices) {
      if (mentions(index, iter.var->id)) return std::nullopt;
    }
  }
  const bool left = is_load_of(value->lhs, *store);
  const Expr update = left ? value->rhs : value->lhs;
  if (!left && !is_load_of(value->rhs, *store)) return std::nullopt;
  if (loads_from(update, store->buffer)) return std::nullopt;
  return Reducer{value->kind, store, update};
}

std::optional<Reducer> match_reducer(const Block& block) {
  return match_reducer(block, block.body);
}

Expr identity_of(IrBuilder& b, ExprKind op, DType dtype) {
  if (op == ExprKind::kAdd) return b.constant(0, dtype);
  if (op == ExprKind::kMul) return b.constant(1, dtype);
  const bool is_min = op == ExprKind::kMin;
  if (is_float(dtype)) return b.float_imm(is_min ? HUGE_VAL : -HUGE_VAL, dtype);
  return b.int_imm(is_min ? max_int(dtype) : min_int(dtype), dtype);
}

std::optional<Accumulator> match_accumulator(IrBuilder& b, const Block& block) {
  if (const std::optional<Reducer> single = match_reducer(block)) {
    return Accumulator{AccumulatorKind::kSingle, single->op, {single->store}, {single->update}};
  }
  std::optional<Accumulator> found = match_best(b, block);
  return found ? found : match_softmax(b, block);
}

Stmt accumulate(IrBuilder& b, const Accumulator& how, std::span<const Held> targets,
                std::span<const Expr> element) {
  switch (how.kind) {
    case AccumulatorKind::kSingle:
      return b.store(targets[0].buffer, targets[0].indices,
                     b.binary(how.op, load(b, targets[0]), element[0]));
    case AccumulatorKind::kBest: return step_best(b, how, targets, element);
    case AccumulatorKind::kSoftmax: return step_softmax(b, targets, element);
  }
  PRUNERC_UNREACHABLE("accumulator kind");
}

namespace {

// The element that a partial result with these values is.
std::vector<Expr> element_of(IrBuilder& b, AccumulatorKind kind, std::span<const Expr> held) {
  if (kind == AccumulatorKind::kSingle) return {held[0]};
  if (kind == AccumulatorKind::kSoftmax) return {held[0], held[1]};
  return {b.le(b.int_imm(0), held[0]), held[1], held[0]};
}

}  // namespace

std::vector<Expr> element_of(IrBuilder& b, const Accumulator& how, std::span<const Held> partial) {
  std::vector<Expr> held;
  for (const Held& target : partial) held.push_back(load(b, target));
  return element_of(b, how.kind, held);
}

const Combiner* combiner_of(IrBuilder& b, const Accumulator& how) {
  std::vector<const Var*> left, right;
  std::vector<Expr> held;
  for (const Store* store : how.targets) {
    const Buffer buffer = b.buffer(store->buffer);
    left.push_back(b.fresh_var(buffer.name, buffer.dtype));
    right.push_back(b.fresh_var(buffer.name, buffer.dtype));
    held.push_back(Expr(right.back()));
  }
  const Stmt step = accumulate(b, how, targets_of(how), element_of(b, how.kind, held));
  // No step reads what an earlier store of its own has changed, so that loads are what was held.
  const ExprFn as_held = [&](Expr e) -> Expr {
    for (std::size_t t = 0; t < how.targets.size(); ++t) {
      if (is_load_of(e, *how.targets[t])) return left[t];
    }
    return map_children(b, e, as_held);
  };
  std::vector<Expr> results;
  const auto add = [&](Stmt s) { results.push_back(as_held(s.as<Store>()->value)); };
  if (const Seq* seq = step.as<Seq>()) {
    for (Stmt s : seq->stmts) add(s);
  } else {
    add(step);
  }
  return b.combiner({left, right, results});
}

Stmt start_from_nothing(IrBuilder& b, const Accumulator& how, std::span<const Held> targets) {
  std::vector<Stmt> stores;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const DType dtype = b.buffer(targets[i].buffer).dtype;
    Expr value = identity_of(b, how.op, dtype);
    if (how.kind == AccumulatorKind::kBest && i == 0) value = b.int_imm(-1);
    if (how.kind == AccumulatorKind::kSoftmax && i == 0) value = b.constant(0, dtype);
    stores.push_back(b.store(targets[i].buffer, targets[i].indices, value));
  }
  return b.seq(stores);
}

bool starts_from_nothing(IrBuilder& b, const Accumulator& how, const Block& block) {
  return block.init.defined() &&
         structural_equal(block.init, start_from_nothing(b, how, targets_of(how)));
}

}  // namespace prunerc::ir
