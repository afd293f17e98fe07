#include "schedule/primitive/accumulator.h"

#include "ir/equal.h"
#include "ir/visit.h"
#include "schedule/primitive/reducer.h"

#include <algorithm>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

Target target_of(const Store& store) {
  return {store.buffer, {store.indices.begin(), store.indices.end()}};
}

std::vector<Target> targets_of(const Accumulator& how) {
  std::vector<Target> out;
  for (const Store* store : how.targets) out.push_back(target_of(*store));
  return out;
}

Expr load(IrBuilder& b, const Target& target) { return b.load(target.buffer, target.indices); }

bool is_load_of(Expr e, const Store& store) {
  const Load* found = e.as<Load>();
  return found != nullptr && found->buffer == store.buffer &&
         std::equal(found->indices.begin(), found->indices.end(), store.indices.begin(),
                    [](Expr x, Expr y) { return structural_equal(x, y); });
}

bool holds_load_of(Expr e, std::span<const Store* const> stores) {
  bool found = false;
  walk(e, [&](Expr part) {
    const Load* l = part.as<Load>();
    for (const Store* store : stores) found |= l != nullptr && l->buffer == store->buffer;
    return !found;
  });
  return found;
}

// Two stores to different buffers at one place that reduction variables do not decide.
std::vector<const Store*> two_stores(const Block& block) {
  const Seq* seq = block.body.as<Seq>();
  if (seq == nullptr || seq->stmts.size() != 2) return {};
  const Store* first = seq->stmts[0].as<Store>();
  const Store* second = seq->stmts[1].as<Store>();
  if (first == nullptr || second == nullptr || first->buffer == second->buffer) return {};
  const bool same =
      std::equal(first->indices.begin(), first->indices.end(), second->indices.begin(),
                 second->indices.end(), [](Expr x, Expr y) { return structural_equal(x, y); });
  if (!same) return {};
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
    if (part.defined() && holds_load_of(part, found.targets)) return std::nullopt;
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

Stmt step_best(IrBuilder& b, const Accumulator& how, std::span<const Target> targets,
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

Stmt step_softmax(IrBuilder& b, std::span<const Target> targets, std::span<const Expr> element) {
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

std::optional<Accumulator> match_accumulator(IrBuilder& b, const Block& block) {
  if (const std::optional<Reducer> single = match_reducer(block)) {
    return Accumulator{AccumulatorKind::kSingle, single->op, {single->store}, {single->update}};
  }
  std::optional<Accumulator> found = match_best(b, block);
  return found ? found : match_softmax(b, block);
}

Stmt accumulate(IrBuilder& b, const Accumulator& how, std::span<const Target> targets,
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

std::vector<Expr> element_of(IrBuilder& b, const Accumulator& how,
                             std::span<const Target> partial) {
  if (how.kind == AccumulatorKind::kSingle) return {load(b, partial[0])};
  const Expr first = load(b, partial[0]);
  const Expr second = load(b, partial[1]);
  if (how.kind == AccumulatorKind::kSoftmax) return {first, second};
  return {b.le(b.int_imm(0), first), second, first};
}

Stmt start_from_nothing(IrBuilder& b, const Accumulator& how, std::span<const Target> targets) {
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

}  // namespace prunerc::schedule
