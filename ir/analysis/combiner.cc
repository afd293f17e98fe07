#include "ir/analysis/combiner.h"

#include "ir/analysis/accumulator.h"
#include "ir/analysis/real_value.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/support/rng.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace prunerc::ir {

namespace {

using Values = std::vector<Sample>;

/// kGeneric: as kReals, and integers above 0.
enum class Draw { kSmall, kConstants, kReals, kGeneric };
constexpr Draw kDraws[] = {Draw::kSmall, Draw::kConstants, Draw::kReals};
/// Of each kind. A wrong equation that differs at one of four points escapes with 2^-9 where ties
/// decide, and not at all where it is an identity of real functions.
constexpr int kTrials = 24;
constexpr int kMostElements = 3;  // in a partial result
/// Where values grow beyond it something nearly cancels or overflows; doubles say little there.
constexpr double kTame = 1e3;

// The largest subexpressions without a load of `own`, constants apart: what one instance brings.
void collect_elements(Expr e, const std::set<BufferId>& own, std::vector<Expr>* out) {
  bool reads_own = false;
  bool constant = true;
  walk(e, [&](Expr part) {
    const Load* load = part.as<Load>();
    reads_own |= load != nullptr && own.count(load->buffer) > 0;
    constant &= load == nullptr && part.as<Var>() == nullptr;
    return true;
  });
  if (constant) return;
  if (reads_own) {
    if (e.as<Load>() == nullptr) {
      for_each_child(e, [&](Expr child) { collect_elements(child, own, out); });
    }
    return;
  }
  const bool known =
      std::any_of(out->begin(), out->end(), [&](Expr other) { return structural_equal(e, other); });
  if (!known) out->push_back(e);
}

// A block's tuple as a function on sample points.
class Reduction {
 public:
  Reduction(const Block& block, const Tuple& tuple) : block_(block), tuple_(tuple) {
    for (const TupleStore& s : tuple.step) own_.insert(s.store->buffer);
    for (const TupleStore& s : tuple.step) {
      collect_elements(s.store->value, own_, &elements_);
      walk(s.store->value, [&](Expr part) {
        if (const FloatImm* imm = part.as<FloatImm>()) constants_.push_back(imm->value);
        return true;
      });
    }
  }

  const std::vector<Expr>& elements() const { return elements_; }

  /// Forgets all leaves.
  void restart(uint64_t trial, Draw draw) {
    rng_ = Rng(trial, static_cast<uint64_t>(draw));
    draw_ = draw;
    leaves_.clear();
    recent_.clear();
    num_elements_ = 0;
    fits_ = true;
    offset_ = rng_.between(0, 1 << 20);
    direction_ = rng_.chance(0.5) ? 1 : -1;
  }
  int fresh_element() {
    const int element = num_elements_++;
    if (partials_.empty()) return element;
    const Values once = step(start(), element);
    for (std::size_t t = 0; t < partials_.size(); ++t) {
      const DType dtype = partials_[t].dtype();
      fits_ = fits_ && same_value(dtype, once[t], this->element(partials_[t], element));
    }
    return element;
  }

  /// From now on elements are partial results themselves: one by itself leaves itself.
  void expect_partials(std::vector<Expr> partials) { partials_ = std::move(partials); }
  /// Were all elements since the restart such?
  bool fits() const { return fits_; }

  bool is_infinite(int element) {
    return std::any_of(elements_.begin(), elements_.end(), [&](Expr e) {
      return is_float(e.dtype()) && std::isinf(this->element(e, element).real);
    });
  }

  Sample element(Expr e, int element) {
    return evaluate_at(e, [&](Expr leaf) { return value_of(leaf, element); });
  }

  Values start() {
    Values out;
    for (const TupleStore& s : tuple_.start) {
      out.push_back(evaluate_at(s.store->value, [&](Expr leaf) { return value_of(leaf, 0); }));
    }
    return out;
  }

  Values step(const Values& from, int element) {
    std::unordered_map<BufferId, Sample> now;
    for (std::size_t t = 0; t < tuple_.size(); ++t) now[tuple_.start[t].store->buffer] = from[t];
    for (const TupleStore& s : tuple_.step) {
      now[s.store->buffer] = evaluate_at(s.store->value, [&](Expr leaf) {
        const Load* load = leaf.as<Load>();
        const auto held = load == nullptr ? now.end() : now.find(load->buffer);
        return held != now.end() ? held->second : value_of(leaf, element);
      });
    }
    Values out;
    for (const TupleStore& s : tuple_.start) out.push_back(now[s.store->buffer]);
    return out;
  }

  /// The result of one to three elements that no one has seen.
  Values partial() {
    Values out = start();
    const int64_t count = rng_.between(1, kMostElements);
    for (int64_t i = 0; i < count; ++i) out = step(out, fresh_element());
    return out;
  }

 private:
  // Does the leaf depend on the element, or is it one for all instances of a sum?
  bool varies(Expr leaf) const {
    return std::any_of(block_.iters.begin(), block_.iters.end(), [&](const IterVar& iter) {
      return iter.kind != IterKind::kSpatial && mentions(leaf, iter.var->id);
    });
  }

  Sample value_of(Expr leaf, int element) {
    const uint64_t owner = varies(leaf) ? static_cast<uint64_t>(element) + 1 : 0;
    const auto [entry, is_new] = leaves_.try_emplace(hash_combine(leaf.hash(), owner));
    if (is_new) entry->second = leaf.as<Var>() != nullptr ? position(leaf, owner) : drawn(leaf);
    return entry->second;
  }

  // Elements stand at different positions, as far as there are that many.
  Sample position(Expr var, uint64_t owner) {
    int64_t extent = 1 << 20;
    for (const IterVar& iter : block_.iters) {
      if (var.is(Expr(iter.var))) extent = constant_value(iter.extent).value_or(extent);
    }
    const int64_t at = (offset_ + direction_ * static_cast<int64_t>(owner)) % extent;
    return {0, at < 0 ? at + extent : at};
  }

  Sample drawn(Expr leaf) {
    if (!is_float(leaf.dtype())) {
      const int64_t most = draw_ == Draw::kSmall ? 2 : 20;
      const int64_t least = draw_ == Draw::kGeneric ? 1 : -most;
      return {0, wrap_to(leaf.dtype(), rng_.between(least, most))};
    }
    if (draw_ == Draw::kSmall) return {static_cast<double>(rng_.between(-2, 2)), 0};
    if (draw_ == Draw::kConstants && !constants_.empty() && rng_.chance(0.5)) {
      return {constants_[rng_.below(constants_.size())] + static_cast<double>(rng_.between(-1, 1)),
              0};
    }
    // Some values occur twice, so that ties do.
    if (!recent_.empty() && rng_.chance(0.25)) {
      return {recent_[rng_.below(recent_.size())], 0};
    }
    recent_.push_back(6 * rng_.uniform() - 3);
    return {recent_.back(), 0};
  }

  const Block& block_;
  const Tuple& tuple_;
  std::set<BufferId> own_;
  std::vector<Expr> elements_, partials_;
  bool fits_ = true;
  std::vector<double> constants_;
  Rng rng_{0};
  Draw draw_ = Draw::kSmall;
  std::unordered_map<uint64_t, Sample> leaves_;
  std::vector<double> recent_;
  int num_elements_ = 0;
  int64_t offset_ = 0, direction_ = 1;
};

DType dtype_of(const Tuple& tuple, std::size_t t) { return tuple.start[t].store->value.dtype(); }

// The element that a target holds after one step, for each target; empty if one holds none.
std::vector<Expr> lifted(Reduction& of, const Tuple& tuple, std::span<const Draw> draws) {
  const std::vector<Expr>& elements = of.elements();
  std::vector<std::vector<bool>> equal(tuple.size(), std::vector<bool>(elements.size(), true));
  for (const Draw draw : draws) {
    for (uint64_t trial = 0; trial < kTrials; ++trial) {
      of.restart(trial, draw);
      const int x = of.fresh_element();
      const Values once = of.step(of.start(), x);
      // Of an infinite one nothing may be left: it may be what the init holds.
      if (of.is_infinite(x)) continue;
      for (std::size_t t = 0; t < tuple.size(); ++t) {
        for (std::size_t m = 0; m < elements.size(); ++m) {
          equal[t][m] = equal[t][m] && elements[m].dtype() == dtype_of(tuple, t) &&
                        same_value(dtype_of(tuple, t), once[t], of.element(elements[m], x));
        }
      }
    }
  }
  std::vector<Expr> out;
  for (std::size_t t = 0; t < tuple.size(); ++t) {
    const auto found = std::find(equal[t].begin(), equal[t].end(), true);
    if (found == equal[t].end()) return {};
    out.push_back(elements[static_cast<std::size_t>(found - equal[t].begin())]);
  }
  return out;
}

// What the step stores, with elements replaced by what a partial result holds.
class Reading {
 public:
  Reading(IrBuilder& b, const Tuple& tuple, std::span<const Expr> elements)
      : b_(b), tuple_(tuple), elements_(elements) {}

  // Null if an element is none of a partial result.
  const Combiner* run() {
    for (std::size_t t = 0; t < tuple_.size(); ++t) {
      const Buffer& buffer = b_.buffer(tuple_.start[t].store->buffer);
      left_.push_back(b_.fresh_var(buffer.name, buffer.dtype));
      right_.push_back(b_.fresh_var(buffer.name, buffer.dtype));
      now_[buffer.id] = left_.back();
    }
    for (const TupleStore& s : tuple_.step) now_[s.store->buffer] = go(s.store->value);
    std::vector<Expr> results;
    for (const TupleStore& s : tuple_.start) results.push_back(now_[s.store->buffer]);
    return sound_ ? b_.combiner({left_, right_, results}) : nullptr;
  }

 private:
  Expr go(Expr e) {
    for (std::size_t t = 0; t < elements_.size(); ++t) {
      if (structural_equal(e, elements_[t])) return right_[t];
    }
    if (const Load* load = e.as<Load>()) {
      const auto held = now_.find(load->buffer);
      sound_ = sound_ && held != now_.end();
      return sound_ ? held->second : e;
    }
    sound_ = sound_ && e.as<Var>() == nullptr && e.as<TileParam>() == nullptr;
    return map_children(b_, e, [this](Expr child) { return go(child); });
  }

  IrBuilder& b_;
  const Tuple& tuple_;
  std::span<const Expr> elements_;
  std::vector<const Var*> left_, right_;
  std::unordered_map<BufferId, Expr> now_;
  bool sound_ = true;
};

// The same results up to the names of the variables.
bool same_combination(IrBuilder& b, const Combiner& x, const Combiner& y) {
  VarMap rename;
  for (std::size_t t = 0; t < x.results.size(); ++t) {
    rename[x.left[t]->id] = y.left[t];
    rename[x.right[t]->id] = y.right[t];
  }
  return std::equal(x.results.begin(), x.results.end(), y.results.begin(),
                    [&](Expr a, Expr c) { return structural_equal(substitute(b, a, rename), c); });
}

// Under loops, an element combines with its own and with what stands outside the loops.
bool is_elementwise(const Tuple& tuple, const Combiner& combiner) {
  for (std::size_t t = 0; t < tuple.size(); ++t) {
    for (std::size_t other = 0; other < tuple.size(); ++other) {
      if (other == t || tuple.start[other].loops.empty()) continue;
      if (mentions(combiner.results[t], combiner.left[other]->id) ||
          mentions(combiner.results[t], combiner.right[other]->id)) {
        return false;
      }
    }
  }
  return true;
}

// Tries the equations of a combiner.
class Trial {
 public:
  Trial(IrBuilder& b, Reduction& of, const Tuple& tuple, const Combiner& combiner)
      : b_(b), of_(of), tuple_(tuple), combiner_(combiner) {}

  /// "" if they hold, or the point says nothing.
  std::string run(uint64_t trial, Draw draw) {
    of_.restart(trial, draw);
    fault_.clear();
    tame_ = true;
    const Values none = of_.start();
    const Values p = of_.partial(), q = of_.partial(), r = of_.partial();
    const int x = of_.fresh_element();
    expect(combine(p, none), p, "a result combined with the init is another");
    expect(combine(none, p), p, "the init combined with a result is another");
    expect(combine(p, q), combine(q, p), "it depends on the order");
    expect(combine(combine(p, q), r), combine(p, combine(q, r)), "it depends on the grouping");
    expect(of_.step(p, x), combine(p, of_.step(none, x)), "the body's step is another");
    if (!counts()) fault_.clear();
    return fault_;
  }

  /// Did the last point say anything?
  bool counts() const { return of_.fits() && tame_; }

 private:
  Values combine(const Values& left, const Values& right) {
    Values out;
    for (Expr result : combiner_.results) {
      out.push_back(evaluate_at(result, [&](Expr leaf) {
        for (std::size_t t = 0; t < left.size(); ++t) {
          if (leaf.as<Var>()->id == combiner_.left[t]->id) return left[t];
          if (leaf.as<Var>()->id == combiner_.right[t]->id) return right[t];
        }
        PRUNERC_UNREACHABLE("a combiner is closed");
      }));
      tame_ = tame_ && std::fabs(out.back().real) <= kTame;  // nor is it no number
    }
    return out;
  }

  void expect(const Values& a, const Values& b, std::string_view otherwise) {
    for (std::size_t t = 0; t < a.size() && fault_.empty(); ++t) {
      if (same_value(dtype_of(tuple_, t), a[t], b[t])) continue;
      fault_ = std::string(otherwise) + " in '" +
               std::string(b_.buffer(tuple_.start[t].store->buffer).name) + "'";
    }
  }

  const IrBuilder& b_;
  Reduction& of_;
  const Tuple& tuple_;
  const Combiner& combiner_;
  std::string fault_;
  bool tame_ = true;
};

}  // namespace

std::optional<CombinedTuple> read_combiner(IrBuilder& b, const Block& block) {
  std::optional<Tuple> tuple = read_tuple(block);
  if (!tuple) return std::nullopt;
  Reduction reduction(block, *tuple);
  constexpr Draw kGeneric[] = {Draw::kGeneric};
  const bool declared = block.combiner != nullptr;
  const std::vector<Expr> elements =
      lifted(reduction, *tuple, declared ? std::span<const Draw>(kGeneric) : kDraws);
  const Combiner* read = elements.empty() ? nullptr : Reading(b, *tuple, elements).run();
  CombinedTuple out{std::move(*tuple), declared ? block.combiner : read, {}};
  if (declared && read != nullptr && same_combination(b, *read, *block.combiner)) {
    out.partials = elements;
  }
  return out.combiner == nullptr ? std::nullopt : std::optional(std::move(out));
}

std::optional<CombinedTuple> find_combiner(IrBuilder& b, const Block& block, std::string* fault) {
  const auto wrong = [&](std::string why) {
    if (block.combiner != nullptr) *fault = std::move(why);
    return std::nullopt;
  };
  fault->clear();
  std::optional<CombinedTuple> out = read_combiner(b, block);
  if (!out) return wrong("its init and its body are no elementwise steps of one tuple");
  if (!is_elementwise(out->tuple, *out->combiner)) return wrong("it mixes elements under loops");
  Reduction reduction(block, out->tuple);
  reduction.expect_partials(out->partials);
  Trial trial(b, reduction, out->tuple, *out->combiner);
  int tried = 0;
  for (const Draw draw : {Draw::kSmall, Draw::kConstants, Draw::kReals, Draw::kGeneric}) {
    for (uint64_t i = 0; i < kTrials; ++i) {
      std::string found = trial.run(i, draw);
      if (!found.empty()) return wrong(std::move(found));
      tried += trial.counts() ? 1 : 0;
    }
  }
  if (tried < kTrials) return wrong("too few points at which it could be tried");
  return out;
}

std::optional<CombinedTuple> known_combination(IrBuilder& b, const Block& block) {
  const std::optional<Accumulator> how =
      block.combiner != nullptr ? std::nullopt : match_accumulator(b, block);
  if (!how) {
    std::string fault;
    return find_combiner(b, block, &fault);
  }
  std::optional<Tuple> tuple = read_tuple(block);
  if (!tuple || tuple->size() != how->targets.size()) return std::nullopt;
  for (std::size_t t = 0; t < tuple->size(); ++t) {
    if (tuple->start[t].store->buffer != how->targets[t]->buffer) return std::nullopt;
  }
  return CombinedTuple{std::move(*tuple), combiner_of(b, *how), {}};
}

}  // namespace prunerc::ir
