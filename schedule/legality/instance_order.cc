#include "schedule/legality/instance_order.h"

#include "ir/analysis/accumulator.h"
#include "ir/analysis/carried.h"
#include "ir/analysis/combiner.h"
#include "ir/arith/iter_map.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/visit.h"
#include "schedule/legality/access_region.h"

#include <algorithm>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

bool is_unit(Expr extent) { return constant(extent) == 1; }

// The number of the tile that the range is, if it is one: [E*q, E*q + E).
Expr tile_number(IrBuilder& b, const Range& range, const VarRanges& ranges) {
  const std::optional<int64_t> extent = constant(range.extent);
  Linear min = to_linear(b, range.min, ranges);
  if (!extent || *extent < 1 || min.overflow || min.constant % *extent != 0) return {};
  min.constant /= *extent;
  for (Term& term : min.terms) {
    if (term.coef % *extent != 0) return {};
    term.coef /= *extent;
  }
  return to_expr(b, min);
}

// Do the spatial variables follow from the elements that are written? Dimensions that an instance
// writes an interval of count by the number of the tile, or not at all.
bool element_determines_spatial(IrBuilder& b, const Block& block, const Access& write) {
  std::vector<const Var*> wanted;
  VarRanges ranges;
  for (const IterVar& iter : block.iters) ranges.bind(iter.var, iter.extent);
  std::vector<Expr> indices;
  for (const Range& range : write.region) {
    const Expr index = is_unit(range.extent) ? range.min : tile_number(b, range, ranges);
    if (index.defined()) indices.push_back(index);
  }
  bool each_is_subscript = true;
  for (const IterVar& iter : block.iters) {
    if (iter.kind != IterKind::kSpatial || is_unit(iter.extent)) continue;
    wanted.push_back(iter.var);
    each_is_subscript &= std::any_of(indices.begin(), indices.end(), [&](Expr index) {
      const Var* var = index.as<Var>();
      return var != nullptr && var->id == iter.var->id;
    });
  }
  return each_is_subscript ||
         detect_iter_map(b, indices, wanted, {}, ranges, IterMapLevel::kBijective).ok();
}

// value >= 0 as a linear form; nullopt if the condition is no comparison of integers.
std::optional<Linear> nonnegative(IrBuilder& b, Expr condition, const VarRanges& ranges) {
  const BinaryNode* node = as_binary(condition);
  const bool less = condition.kind() == ExprKind::kLt;
  if (node == nullptr || (!less && condition.kind() != ExprKind::kLe)) return std::nullopt;
  if (node->lhs.dtype() != DType::kI64) return std::nullopt;
  Linear out = to_linear(b, node->rhs, ranges) - to_linear(b, node->lhs, ranges);
  if (less) out.constant -= 1;
  return out;
}

// Does fact >= 0 imply goal >= 0? With fact = q*goal + rest and rest <= q - 1 it does, since then
// q*goal >= 1 - q.
bool implies(const Linear& fact, const Linear& goal, const VarRanges& ranges) {
  if (goal.terms.empty()) return goal.constant >= 0;
  for (const Term& term : fact.terms) {
    if (compare_atoms(term, goal.terms[0]) != 0) continue;
    const int64_t q = term.coef / goal.terms[0].coef;
    if (q < 1) return false;
    const Interval rest = interval_of(fact - goal * q, ranges);
    return rest.hi <= q - 1;
  }
  return false;
}

}  // namespace

bool is_identity(ExprKind op, Expr value) {
  IrBuilder b("identity");
  return structural_equal(value, identity_of(b, op, value.dtype()));
}

bool has_reduce_iters(const Block& block) {
  return std::any_of(block.iters.begin(), block.iters.end(), [](const IterVar& iter) {
    return iter.kind == IterKind::kReduce && !is_unit(iter.extent);
  });
}

namespace {

Touch touch_of(const Block& block, const Access& access, InstancePairs pairs) {
  Touch out{{}, {}, {}, {access.buffer, {access.region.begin(), access.region.end()}}};
  for (const IterVar& iter : block.iters) {
    const bool distinguishes = iter.kind == IterKind::kSpatial || pairs == InstancePairs::kAll;
    (distinguishes ? out.chain : out.inner).push_back({iter.var, iter.extent});
  }
  return out;
}

/// What a primitive spends on a block whose subscripts have no closed form.
constexpr ProveOptions kPrimitiveEffort = {.max_points = 20'000};

}  // namespace

Proof instances_meet(const Block& block, const Access& x, const Access& y, InstancePairs pairs,
                     const ProveOptions& options, const InstanceLimits& limits) {
  Touch from = touch_of(block, x, pairs);
  Touch to = touch_of(block, y, pairs);
  for (Touch* touch : {&from, &to}) {
    for (const Loop* loop : limits.loops) touch->inner.push_back({loop->var, loop->extent});
    touch->conditions = limits.conditions;
  }
  return share_element(from, to, PointOrder::kDifferent, VarRanges(), options);
}

std::string accumulation_fault(IrBuilder& b, const Block& block) {
  Stmt inside = block.body;
  while (const Loop* loop = inside.as<Loop>()) inside = loop->body;
  if (match_reducer(block, inside) || match_accumulator(b, block)) return {};
  std::string fault;
  if (find_combiner(b, block, &fault)) return {};
  return fault.empty() ? "its reduction is no sum, product, minimum or maximum into one element, "
                         "and no `combine` after its init says how two partial results make one"
                       : "its combiner does not hold: " + fault;
}

namespace {

// What a reduction stores without an init is its own between two stores: it says nothing of the
// result, the last instance's value stays, and each part of the reduction has its own.
std::string scratch_fault(const Program& program, const Block& block) {
  if (!block.init.defined()) return {};
  const std::vector<BufferId> targets = stored_in_order(block.init);
  for (const BufferId buffer : stored_in_order(block.body)) {
    if (std::find(targets.begin(), targets.end(), buffer) != targets.end()) continue;
    bool is_read = program.buffer(buffer).role != BufferRole::kIntermediate;
    walk(
        program.root(),
        [&](Stmt s) {
          const Block* other = s.as<Block>();
          return !is_read && (other == nullptr || other->id != block.id);
        },
        [&](Expr e) { is_read = is_read || loads_from(e, buffer); });
    if (is_read)
      return "others read '" + std::string(program.buffer(buffer).name) +
             "', which it stores without an init";
  }
  return {};
}

}  // namespace

std::string order_fault(IrBuilder& b, const Program& program, const Block& block) {
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kOpaque && !is_unit(iter.extent)) {
      return "variable '" + std::string(iter.var->name) + "' is opaque";
    }
  }
  for (const Access& write : block.writes) {
    if (!element_determines_spatial(b, block, write) &&
        instances_meet(block, write, write, InstancePairs::kSpatial, kPrimitiveEffort) !=
            Proof::kNo) {
      return "its spatial variables may write one element twice";
    }
    for (const Access& read : block.reads) {
      if (read.buffer == write.buffer && !same_region(read, write) &&
          instances_meet(block, read, write, InstancePairs::kAll, kPrimitiveEffort) != Proof::kNo) {
        return "it reads other elements of a buffer that it writes";
      }
    }
  }
  if (!has_reduce_iters(block)) return {};
  const std::string fault = accumulation_fault(b, block);
  return fault.empty() ? scratch_fault(program, block) : fault;
}

namespace {

// Does every reduction variable ascend from 0 along the loops, one of which may feed variables of
// both kinds?
bool ascends_from_zero(const Block& block, const IterMap& map) {
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].kind == IterKind::kSpatial) continue;
    if (!map.indices[i].base.is_constant(0)) return false;
    for (const IterSplit& split : map.indices[i].splits) {
      // A part of several loops fused together does not ascend in another order of these loops.
      const IterMark& mark = map.marks[static_cast<std::size_t>(split.mark)];
      const bool is_loop = mark.var.defined();
      const bool is_whole = split.lower.degree == 0 && split.lower.coef == 1 &&
                            compare_atoms(split.extent, mark.extent) == 0 &&
                            split.extent.coef == mark.extent.coef;
      if (split.scale.coef <= 0 || (!is_loop && !is_whole)) return false;
    }
  }
  return true;
}

// Does the expression mention a loop that feeds such a variable?
bool mentions_feeder(Expr e, const Block& block, const std::vector<const Loop*>& loops,
                     bool of_spatial) {
  return std::any_of(loops.begin(), loops.end(), [&](const Loop* loop) {
    return mentions(e, loop->var->id) &&
           std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
             return (iter.kind == IterKind::kSpatial) == of_spatial &&
                    mentions(iter.binding, loop->var->id);
           });
  });
}

// The parts of a sum with and without the loops.
struct Parted {
  Linear inside, around;
};
Parted parted(const Linear& sum, const std::vector<const Loop*>& loops) {
  Parted out{Linear::of(int64_t{0}), Linear::of(sum.constant)};
  for (const Term& term : sum.terms) {
    bool is_inside = false;
    for (Expr factor : term.factors()) {
      for (const Loop* loop : loops) is_inside |= mentions(factor, loop->var->id);
    }
    Linear& part = is_inside ? out.inside : out.around;
    part = part + Linear::of(term);
  }
  return out;
}

// The same where no loop, and no part of the guard, has to do with variables of both kinds. Then an
// element's instances have the spatial loops in common, and it is enough that the guard holds where
// the others are 0, and that a reduction variable is what the loops around say, from 0 on, plus
// what is 0 there and never below: all of them are 0 there or nowhere.
bool begins_with_loops(IrBuilder& b, const Block& block, const std::vector<const Loop*>& loops,
                       const VarRanges& ranges) {
  VarMap start;
  for (const Loop* loop : loops) {
    if (mentions_feeder(loop->var, block, loops, true) &&
        mentions_feeder(loop->var, block, loops, false)) {
      return false;
    }
    start[loop->var->id] = b.int_imm(0);
  }
  for (Expr part : conjuncts(block.guard)) {
    if (!mentions_feeder(part, block, loops, false)) continue;
    if (mentions_feeder(part, block, loops, true)) return false;
    if (prove(substitute(b, part, start), ranges, kPrimitiveEffort) != Proof::kYes) return false;
  }
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kSpatial) continue;
    const Linear sum = to_linear(b, iter.binding, ranges);
    const auto [inside, around] = parted(sum, loops);
    if (sum.overflow || interval_of(inside, ranges).lo < 0) return false;
    if (constant(simplify(b, substitute(b, to_expr(b, inside), start), ranges)) != 0) return false;
    if (around.is_constant() ? around.constant != 0 : interval_of(around, ranges).lo < 0) {
      return false;
    }
  }
  return true;
}

// Do different points of the loops give different instances? Point by point.
bool instances_differ(IrBuilder& b, const Block& block, const std::vector<const Loop*>& loops,
                      const VarRanges& ranges) {
  Touch touch;
  for (const Loop* loop : loops) touch.chain.push_back({loop->var, loop->extent});
  if (block.guard.defined()) touch.conditions.push_back(block.guard);
  for (const IterVar& iter : block.iters) touch.region.box.push_back({iter.binding, b.int_imm(1)});
  return share_element(touch, touch, PointOrder::kDifferent, ranges, kPrimitiveEffort) ==
         Proof::kNo;
}

}  // namespace

Result<void> check_instances_once(IrBuilder& b, const Block& block,
                                  const std::vector<const Loop*>& loops, const VarRanges& ranges) {
  std::vector<const Var*> vars;
  for (const Loop* loop : loops) vars.push_back(loop->var);
  std::vector<Expr> bindings;
  for (const IterVar& iter : block.iters) bindings.push_back(iter.binding);
  // What is injective without the guard is so with it; a guard may relate loops that are not asked
  // about.
  IterMapResult found = detect_iter_map(b, bindings, vars, {}, ranges, IterMapLevel::kBijective);
  if (!found.ok() && block.guard.defined()) {
    found = detect_iter_map(b, bindings, vars, block.guard, ranges, IterMapLevel::kBijective);
  }
  if (!found.ok() && !instances_differ(b, block, loops, ranges)) {
    return error(Diag::kBlockOrderFixed, block.id, std::string(to_string(found.error)));
  }
  if ((found.ok() && ascends_from_zero(block, found.map)) ||
      begins_with_loops(b, block, loops, ranges)) {
    return {};
  }
  return error(Diag::kBlockOrderFixed, block.id,
               std::string("a reduction variable does not ascend from 0"));
}

Expr guard_within_domain(IrBuilder& b, const Block& block, const VarRanges& ranges) {
  if (!block.guard.defined()) return {};
  std::vector<Linear> facts;
  for (const IterVar& iter : block.iters) {
    const Linear binding = to_linear(b, iter.binding, ranges);
    Linear below = to_linear(b, iter.extent, ranges) - binding;
    below.constant -= 1;
    facts.push_back(binding);
    facts.push_back(below);
  }
  Expr out;
  for (Expr conjunct : conjuncts(block.guard)) {
    const std::optional<Linear> goal = nonnegative(b, conjunct, ranges);
    const bool implied = goal && std::any_of(facts.begin(), facts.end(), [&](const Linear& fact) {
                           return implies(fact, *goal, ranges);
                         });
    if (!implied) out = conjoin(b, out, conjunct);
  }
  return out;
}

bool guard_cuts_only_domain(IrBuilder& b, const Block& block, const VarRanges& ranges) {
  return !guard_within_domain(b, block, ranges).defined();
}

}  // namespace prunerc::schedule
