#include "ir/analysis/masks/masks.h"

#include "ir/analysis/accumulator.h"
#include "ir/arith/loop_index.h"
#include "ir/equal.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace prunerc::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool contains(std::span<const Linear> all, const Linear& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

void append_new(std::vector<Linear>* out, const Linear& one) {
  if (!one.overflow && !contains(*out, one)) out->push_back(one);
}

// The comparisons in a conjunction as forms that are at most 0 where it holds.
std::vector<Linear> comparisons(IrBuilder& b, Expr condition, const VarRanges& ranges) {
  std::vector<Linear> out;
  for (Expr part : conjuncts(condition)) {
    const BinaryNode* n = as_binary(part);
    if (n == nullptr || n->lhs.dtype() != DType::kI64 || has_data(part)) continue;
    const bool is_equal = n->kind == ExprKind::kEq;
    if (!is_equal && n->kind != ExprKind::kLe && n->kind != ExprKind::kLt) continue;
    const Linear difference = to_linear(b, n->lhs, ranges) - to_linear(b, n->rhs, ranges);
    append_new(&out, difference + (n->kind == ExprKind::kLt ? 1 : 0));
    if (is_equal) append_new(&out, difference * -1);
  }
  return out;
}

const Term* term_with(const Linear& linear, const Term& like) {
  for (const Term& term : linear.terms) {
    if (compare_atoms(term, like) == 0) return &term;
  }
  return nullptr;
}

// The outermost blocks, in the order of the text.
std::vector<const Block*> outermost_blocks(Stmt root) {
  std::vector<const Block*> out;
  walk(
      root,
      [&](Stmt s) {
        const Block* block = s.as<Block>();
        if (block != nullptr) out.push_back(block);
        return block == nullptr;
      },
      [](Expr) {});
  return out;
}

bool has_loop_or_block(Stmt root) {
  bool found = false;
  walk(
      root,
      [&](Stmt s) {
        found = found || s.as<Block>() != nullptr || s.as<Loop>() != nullptr;
        return !found;
      },
      [](Expr) {});
  return found;
}

template <typename F>
void for_each_load(Expr e, F&& f) {
  walk(e, [&](Expr part) {
    if (const Load* load = part.as<Load>()) f(*load);
    return true;
  });
}

template <typename F>
void for_each_load(Stmt s, F&& f) {
  walk(
      s, [](Stmt) { return true; }, [&](Expr e) { for_each_load(e, f); });
}

std::vector<const Store*> stores_in(Stmt s) {
  std::vector<const Store*> out;
  walk(
      s,
      [&](Stmt part) {
        if (const Store* store = part.as<Store>()) out.push_back(store);
        return true;
      },
      [](Expr) {});
  return out;
}

// What the loops of a block that computes a tile repeat; the body of others.
Stmt below_loops(const Block& block, VarRanges* ranges = nullptr,
                 std::vector<VarId>* vars = nullptr) {
  Stmt s = block.body;
  while (const Loop* loop = s.as<Loop>()) {
    if (ranges != nullptr) ranges->bind(loop->var, loop->extent);
    if (vars != nullptr) vars->push_back(loop->var->id);
    s = loop->body;
  }
  return s;
}

VarRanges ranges_within(const Block& block) {
  VarRanges ranges = ranges_of(block);
  below_loops(block, &ranges);
  return ranges;
}

// The element that all stores of one step write; null if there are several.
const Store* only_element(const Block& block) {
  const Stmt body = below_loops(block);
  if (has_loop_or_block(body)) return nullptr;
  const std::vector<const Store*> stores = stores_in(body);
  for (const Store* store : stores) {
    if (store->buffer != stores[0]->buffer) return nullptr;
    if (!structural_equal(store->indices, stores[0]->indices)) return nullptr;
  }
  return stores.empty() ? nullptr : stores[0];
}

bool is_integer_division(Expr e) {
  return e.kind() == ExprKind::kFloorDiv || e.kind() == ExprKind::kFloorMod;
}

// (x op e) == x
std::optional<double> identity_value(ExprKind op, DType dtype) {
  switch (op) {
    case ExprKind::kAdd: return 0;
    case ExprKind::kMul: return 1;
    case ExprKind::kMax: return is_float(dtype) ? std::optional(-kInfinity) : std::nullopt;
    case ExprKind::kMin: return is_float(dtype) ? std::optional(kInfinity) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

Masks::Masks(IrBuilder& b, const Program& program, Unneeded unneeded) : b_(b), unneeded_(unneeded) {
  for (const BufferId id : program.params()) needs_[id] = std::nullopt;
  if (!program.root().defined()) return;
  const std::vector<const Block*> blocks = outermost_blocks(program.root());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const Store* store : stores_in(blocks[i]->body)) {
      ++num_stores_[store->buffer];
      last_store_[store->buffer] = i;
      std::vector<const Block*>& writers = writers_[store->buffer];
      if (writers.empty() || writers.back() != blocks[i]) writers.push_back(blocks[i]);
    }
  }
  // What stands outside of blocks, and what is read before the last one has written it.
  walk(
      program.root(),
      [&](Stmt s) {
        if (const Store* store = s.as<Store>()) {
          needs_[store->buffer] = std::nullopt;
          ++num_stores_[store->buffer];
        }
        return s.as<Block>() == nullptr;
      },
      [&](Expr e) { need_all(e); });
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const IterVar& iter : blocks[i]->iters) need_all(iter.binding);
    if (blocks[i]->guard.defined()) need_all(blocks[i]->guard);
    for_each_load(blocks[i]->init, [&](const Load& load) { needs_[load.buffer] = std::nullopt; });
    for_each_load(blocks[i]->body, [&](const Load& load) {
      const auto last = last_store_.find(load.buffer);
      if (last != last_store_.end() && i < last->second) needs_[load.buffer] = std::nullopt;
    });
  }
  for (const Block* block : blocks) find_values(*block);
  for (std::size_t i = blocks.size(); i-- > 0;) find_needs(*blocks[i]);
}

// ---- values ----

std::vector<Linear> Masks::conditions_in(Expr value, const VarRanges& ranges) {
  std::vector<Linear> out;
  walk(value, [&](Expr part) {
    if (const Select* select = part.as<Select>()) {
      for (const Linear& c : comparisons(b_, select->condition, ranges)) append_new(&out, c);
    }
    if (const Load* load = part.as<Load>()) {
      for (const Outside& outside : values_[load->buffer]) {
        append_new(&out, at(outside.inside, load->indices, ranges));
      }
    }
    return true;
  });
  return out;
}

// Where `condition`, one of `all`, is above 0; nullopt: not always the same.
std::optional<double> Masks::value_outside(Expr e, const Linear& condition,
                                           std::span<const Linear> all, const VarRanges& ranges) {
  if (const IntImm* imm = e.as<IntImm>()) return static_cast<double>(imm->value);
  if (const FloatImm* imm = e.as<FloatImm>()) return imm->value;
  if (const Select* select = e.as<Select>()) {
    const std::optional<double> no = value_outside(select->on_false, condition, all, ranges);
    if (contains(comparisons(b_, select->condition, ranges), condition)) return no;
    const std::optional<double> yes = value_outside(select->on_true, condition, all, ranges);
    return yes == no ? yes : std::nullopt;
  }
  if (const Load* load = e.as<Load>()) {
    for (const Outside& outside : values_[load->buffer]) {
      if (at(outside.inside, load->indices, ranges) == condition) return outside.value;
    }
    return std::nullopt;
  }
  if (const Cast* cast = e.as<Cast>()) {
    const std::optional<double> x = value_outside(cast->operand, condition, all, ranges);
    const bool keeps = x && (*x == 0 || (std::isinf(*x) && is_float(e.dtype())));
    return keeps && e.dtype() != DType::kBool ? x : std::nullopt;
  }
  if (const Call* call = e.as<Call>()) {
    const bool is_exp = call->intrinsic == Intrinsic::kExp;
    if (!is_exp || value_outside(call->args[0], condition, all, ranges) != -kInfinity) return {};
    return 0;
  }
  const BinaryNode* n = as_binary(e);
  if (n == nullptr || !is_float(e.dtype())) return std::nullopt;
  const std::optional<double> x = value_outside(n->lhs, condition, all, ranges);
  const std::optional<double> y = value_outside(n->rhs, condition, all, ranges);
  switch (n->kind) {
    case ExprKind::kMul:
      if (x == 0.0 || y == 0.0) return 0;
      return x && y ? std::optional(*x * *y) : std::nullopt;
    case ExprKind::kDiv:
      if (x != 0.0) return std::nullopt;
      return (y && *y != 0) || is_of_full_row(*n, all, ranges) ? x : std::nullopt;
    case ExprKind::kAdd:
      if (x == -kInfinity || y == -kInfinity) {
        return x == kInfinity || y == kInfinity ? std::nullopt : std::optional(-kInfinity);
      }
      return x == 0.0 && y == 0.0 ? x : std::nullopt;
    case ExprKind::kSub:
      if (x == -kInfinity) {
        const bool is_finite = y && std::isfinite(*y);
        return is_finite || is_of_full_row(*n, all, ranges) ? x : std::nullopt;
      }
      return x == 0.0 && y == 0.0 ? x : std::nullopt;
    default: return std::nullopt;
  }
}

// What the elements of a buffer are made of: inputs, and what is accumulated.
std::set<BufferId> Masks::roots_of(BufferId of) {
  std::set<BufferId> seen, out;
  std::vector<BufferId> rest = {of};
  while (!rest.empty()) {
    const BufferId id = rest.back();
    rest.pop_back();
    if (!seen.insert(id).second) continue;
    const std::vector<const Block*>& writers = writers_[id];
    const bool is_made =
        !writers.empty() && std::none_of(writers.begin(), writers.end(), [&](const Block* block) {
          return match_accumulator(b_, *block).has_value();
        });
    if (!is_made) out.insert(id);
    for (const Block* block : writers) {
      if (!is_made) break;
      for_each_load(block->body, [&](const Load& load) { rest.push_back(load.buffer); });
    }
  }
  return out;
}

// Whether it is above 0 where no condition makes it 0.
bool Masks::is_positive(Expr e) {
  if (const Cast* cast = e.as<Cast>()) return is_float(e.dtype()) && is_positive(cast->operand);
  if (const Call* call = e.as<Call>()) return call->intrinsic == Intrinsic::kExp;
  if (const Mul* product = e.as<Mul>())
    return is_positive(product->lhs) && is_positive(product->rhs);
  if (const Select* select = e.as<Select>()) {
    const FloatImm* no = select->on_false.as<FloatImm>();
    return no != nullptr && no->value == 0 && is_positive(select->on_true);
  }
  const Load* load = e.as<Load>();
  if (load == nullptr || num_stores_[load->buffer] != 1 || writers_[load->buffer].size() != 1)
    return false;
  const Store* store = below_loops(*writers_[load->buffer][0]).as<Store>();
  return store != nullptr && !loads_from(store->value, load->buffer) && is_positive(store->value);
}

// In e / d or x - m: whether d is the sum, or m the maximum, of a row of what stands before it, of
// which the conditions leave something.
bool Masks::is_of_full_row(const BinaryNode& n, std::span<const Linear> all,
                           const VarRanges& ranges) {
  const Var* const along = every_row_has_one(n.rhs, all, ranges);
  Expr of_row = n.rhs;
  while (const Cast* cast = of_row.as<Cast>()) of_row = cast->operand;
  if (along == nullptr || of_row.as<Load>() == nullptr) return false;
  std::set<BufferId> row;
  for_each_load(n.lhs, [&](const Load& load) {
    if (mentions(load.indices, along->id)) row.merge(roots_of(load.buffer));
  });
  if (row.empty()) return false;
  const ExprKind op = n.kind == ExprKind::kDiv ? ExprKind::kAdd : ExprKind::kMax;
  std::set<BufferId> seen;
  std::vector<BufferId> rest = {of_row.as<Load>()->buffer};
  while (!rest.empty()) {
    const BufferId id = rest.back();
    rest.pop_back();
    if (!seen.insert(id).second) continue;
    for (const Block* block : writers_[id]) {
      const std::optional<Accumulator> how = match_accumulator(b_, *block);
      if (!how) continue;
      const bool is_softmax = how->kind == AccumulatorKind::kSoftmax;
      if (!is_softmax && (how->kind != AccumulatorKind::kSingle || how->op != op)) continue;
      std::set<BufferId> summed;
      for_each_load(how->element.back(), [&](const Load& load) {
        summed.merge(roots_of(load.buffer));
        rest.push_back(load.buffer);
      });
      const bool has_row = std::includes(summed.begin(), summed.end(), row.begin(), row.end());
      if (has_row && (is_softmax || op == ExprKind::kMax || is_positive(how->element[0])))
        return true;
    }
  }
  return false;
}

// The one variable that `of_row` is the same for, if all conditions hold for some value of it: then
// a row's maximum is no -inf, and its sum no 0, because of them. Exact if the coefficients are 1.
const Var* Masks::every_row_has_one(Expr of_row, std::span<const Linear> all,
                                    const VarRanges& ranges) {
  const Var* along = nullptr;
  for (const Linear& condition : all) {
    for (const Term& term : condition.terms) {
      for (Expr atom : term.factors()) {
        const Var* var = atom.as<Var>();
        if (var == nullptr) return nullptr;
        if (mentions(of_row, var->id)) continue;
        if (along != nullptr && along->id != var->id) return nullptr;
        along = var;
      }
    }
  }
  if (along == nullptr) return nullptr;
  const Interval range = ranges.interval(along->id);
  if (!range.is_bounded()) return nullptr;
  const Linear variable = Linear::of(Expr(along));
  const Term like = variable.terms[0];
  std::vector<Linear> above = {variable + -range.hi}, below = {variable * -1 + range.lo};
  for (const Linear& condition : all) {
    const Term* term = term_with(condition, like);
    if (term == nullptr) {
      if (mentions(to_expr(b_, condition), along->id)) return nullptr;
      if (interval_of(condition, ranges).hi > 0) return nullptr;
    } else if (term->coef == 1) {
      above.push_back(condition);
    } else if (term->coef == -1) {
      below.push_back(condition);
    } else {
      return nullptr;
    }
  }
  for (const Linear& a : above) {
    for (const Linear& c : below) {
      const Linear sum = a + c;
      if (sum.overflow || interval_of(sum, ranges).hi > 0) return nullptr;
    }
  }
  return along;
}

void Masks::find_values(const Block& block) {
  const Store* store = below_loops(block).as<Store>();
  if (store == nullptr || num_stores_[store->buffer] != 1) return;
  if (loads_from(store->value, store->buffer)) return;
  const VarRanges ranges = ranges_within(block);
  const std::vector<Linear> all = conditions_in(store->value, ranges);
  std::vector<Outside> found;
  for (const Linear& condition : all) {
    const std::optional<double> value = value_outside(store->value, condition, all, ranges);
    if (!value) continue;
    const std::optional<HalfSpace> inside = half_space(condition, store->indices, ranges);
    if (inside) found.push_back({*inside, *value});
  }
  if (!found.empty()) values_[store->buffer] = std::move(found);
}

// ---- needs ----

void Masks::collect_uses(Expr e, const VarRanges& ranges, const Use& around,
                         std::vector<Use>* out) {
  Use inner = around;
  if (const Load* load = e.as<Load>()) {
    inner.load = load;
    out->push_back(inner);
    inner.is_address = true;
  }
  if (const Select* select = e.as<Select>()) {
    // A condition may be what keeps an address that data say within a buffer.
    Use chosen = inner;
    for (Expr side : {select->on_true, select->on_false}) {
      for_each_load(side, [&](const Load& load) {
        for (Expr index : load.indices) chosen.is_address = chosen.is_address || has_load(index);
      });
    }
    collect_uses(select->condition, ranges, chosen, out);
    collect_uses(select->on_false, ranges, inner, out);
    for (const Linear& c : comparisons(b_, select->condition, ranges)) append_new(&inner.where, c);
    collect_uses(select->on_true, ranges, inner, out);
    return;
  }
  if (is_integer_division(e)) inner.is_address = true;
  for_each_child(e, [&](Expr child) { collect_uses(child, ranges, inner, out); });
}

void Masks::need(const Use& use, const VarRanges& ranges) {
  const BufferId id = use.load->buffer;
  const auto seen = needs_.find(id);
  if (seen != needs_.end() && !seen->second) return;
  if (use.is_address) {
    needs_[id] = std::nullopt;
    return;
  }
  std::vector<HalfSpace> spaces;
  for (const Linear& condition : use.where) {
    const std::optional<HalfSpace> space = half_space(condition, use.load->indices, ranges);
    if (!space) continue;
    const bool is_common =
        seen == needs_.end() ||
        std::find(seen->second->begin(), seen->second->end(), *space) != seen->second->end();
    if (is_common) spaces.push_back(*space);
  }
  if (spaces.empty()) {
    needs_[id] = std::nullopt;
  } else {
    needs_[id] = std::move(spaces);
  }
}

void Masks::need_all(Expr e) {
  for_each_load(e, [&](const Load& load) { needs_[load.buffer] = std::nullopt; });
}

std::vector<Linear> Masks::needs_of_writes(const Block& block, const VarRanges& ranges) {
  std::vector<Linear> out;
  const Store* store = only_element(block);
  if (store == nullptr) return out;
  const auto found = needs_.find(store->buffer);
  if (found == needs_.end() || !found->second) return out;
  for (const HalfSpace& space : *found->second) {
    append_new(&out, at(space, store->indices, ranges));
  }
  return out;
}

void Masks::find_needs(const Block& block) {
  const Store* element = only_element(block);
  if (element == nullptr) {
    for_each_load(block.body, [&](const Load& load) { needs_[load.buffer] = std::nullopt; });
    return;
  }
  const VarRanges ranges = ranges_within(block);
  // What a running sum reads of itself carries on to all elements behind.
  for_each_load(block.body, [&](const Load& load) {
    const bool is_own = load.buffer == element->buffer;
    if (is_own && !structural_equal(load.indices, element->indices))
      needs_[load.buffer] = std::nullopt;
  });
  Use around;
  const bool is_tile = block.body.as<Loop>() != nullptr;
  if (unneeded_ == Unneeded::kLeftOut && !is_tile) around.where = needs_of_writes(block, ranges);
  std::vector<Use> uses;
  walk(
      block.body, [](Stmt) { return true; },
      [&](Expr e) { collect_uses(e, ranges, around, &uses); });
  for (Expr index : element->indices) {
    // Where it writes is no matter of what is needed.
    std::vector<Use> addresses;
    collect_uses(index, ranges, around, &addresses);
    for (Use& use : addresses) {
      use.is_address = true;
      uses.push_back(use);
    }
  }
  const bool finds_places = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    return use.is_address && use.load->buffer == element->buffer;
  });
  for (Use& use : uses) {
    if (finds_places) use.where.clear();
    const bool is_own = use.load->buffer == element->buffer && !use.is_address &&
                        structural_equal(use.load->indices, element->indices);
    // A stage that changes its elements in place reads all of them where nobody leaves any out.
    const bool runs_whole = unneeded_ == Unneeded::kRun && !block.init.defined();
    if (!is_own || runs_whole) need(use, ranges);
  }
}

std::vector<Linear> Masks::needed_where(const Block& block, bool by_updates) {
  if (only_element(block) == nullptr) return {};
  VarRanges ranges = ranges_of(block);
  std::vector<VarId> inner;
  const Stmt step = below_loops(block, &ranges, &inner);
  std::vector<Linear> found = needs_of_writes(block, ranges);
  const std::optional<Reducer> reducer = by_updates ? match_reducer(block, step) : std::nullopt;
  const std::optional<double> identity =
      reducer ? identity_value(reducer->op, reducer->update.dtype()) : std::nullopt;
  if (identity) {
    const std::vector<Linear> all = conditions_in(reducer->update, ranges);
    for (const Linear& condition : all) {
      if (value_outside(reducer->update, condition, all, ranges) == identity) {
        append_new(&found, condition);
      }
    }
  }
  if (inner.empty()) return found;
  // A tile is needed where some step of it is.
  std::vector<Linear> out;
  for (const Linear& condition : found) {
    const std::optional<Linear> least = eliminate_vars(b_, condition, Bound::kLower, ranges, inner);
    if (least && !mentions(to_expr(b_, *least), inner)) append_new(&out, *least);
  }
  return out;
}

// ---- indices ----

Linear Masks::at(const HalfSpace& space, std::span<const Expr> indices, const VarRanges& ranges) {
  Linear out = Linear::of(space.constant);
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (space.coefs[d] != 0) out = out + to_linear(b_, indices[d], ranges) * space.coefs[d];
  }
  return out;
}

// The condition over variables as one over indices: each index has a term that no other one has.
std::optional<Masks::HalfSpace> Masks::half_space(const Linear& condition,
                                                  std::span<const Expr> indices,
                                                  const VarRanges& ranges) {
  std::vector<Linear> forms;
  for (Expr index : indices) {
    if (has_data(index)) return std::nullopt;
    forms.push_back(to_linear(b_, index, ranges));
    if (forms.back().overflow) return std::nullopt;
  }
  HalfSpace out{std::vector<int64_t>(indices.size(), 0), 0};
  Linear rest = condition;
  for (std::size_t d = 0; d < forms.size(); ++d) {
    for (const Term& term : forms[d].terms) {
      const bool is_shared = std::any_of(forms.begin(), forms.end(), [&](const Linear& other) {
        return &other != &forms[d] && term_with(other, term) != nullptr;
      });
      if (is_shared) continue;
      const Term* wanted = term_with(rest, term);
      if (wanted == nullptr) break;
      if (wanted->coef % term.coef != 0) return std::nullopt;
      out.coefs[d] = wanted->coef / term.coef;
      rest = rest - forms[d] * out.coefs[d];
      break;
    }
  }
  if (!rest.is_constant()) return std::nullopt;
  out.constant = rest.constant;
  return out;
}

}  // namespace prunerc::ir
