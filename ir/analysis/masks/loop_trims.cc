#include "ir/analysis/masks/loop_trims.h"

#include "ir/analysis/masks/masks.h"
#include "ir/arith/simplify.h"
#include "ir/evaluate_int.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace prunerc::ir {
namespace {

using Loops = std::vector<const Loop*>;

// A block with the loops around it, outermost first.
struct Site {
  const Block* block;
  Loops loops;
  VarRanges ranges;
};

// Do all threads of a block take the same way through the loop?
bool is_uniform(const Loop& loop) {
  return is_block_axis(loop.loop_kind) || loop.loop_kind == LoopKind::kSerial;
}

class LoopTrims {
 public:
  LoopTrims(IrBuilder& b, const Program& program) : b_(b), program_(program) {
    visit(program.root());
    if (!has_masks_) candidates_.clear();
    if (!candidates_.empty()) masks_.emplace(b, program, Unneeded::kRun);
  }

  std::map<LoopId, LoopTrim> run() {
    std::map<LoopId, LoopTrim> out;
    for (const Loops& nest : candidates_) {
      const LoopTrim part = part_of(needed_in(nest), nest);
      if (part.iterations.defined()) out[nest.back()->id] = part;
    }
    return out;
  }

 private:
  // The iterations in which something is needed: `first` and up to `end`. Null: as far as the loop goes.
  struct Needed {
    Expr first, end;
  };

  void visit(Stmt s) {
    if (!s.defined()) return;
    const VarRanges::Mark mark = ranges_.mark();
    if (const Block* block = s.as<Block>()) {
      sites_.push_back({block, loops_, ranges_});
      return visit_block(*block);
    }
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr) {
      ranges_.bind(loop->var, loop->extent);
      loops_.push_back(loop);
      if (may_be_trimmed()) candidates_.push_back(loops_);
    }
    // What stands outside of blocks says nothing of who needs it.
    if (s.as<Store>() != nullptr) opaque_.insert(opaque_.end(), loops_.begin(), loops_.end());
    for_each_child(
        s, [&](Stmt child) { visit(child); }, [&](Expr e) { touch_loads(e); });
    if (loop != nullptr) loops_.pop_back();
    ranges_.rewind(mark);
  }

  // Whether the innermost loop is one that the threads of a block run together.
  bool may_be_trimmed() const {
    const Loop& loop = *loops_.back();
    bool has_threads = false;
    walk(
        loop.body,
        [&](Stmt s) {
          const Loop* inner = s.as<Loop>();
          has_threads = has_threads || (inner != nullptr && is_lane_axis(inner->loop_kind));
          return !has_threads && s.as<Block>() == nullptr;
        },
        [](Expr) {});
    return loop.loop_kind == LoopKind::kSerial && constant_value(loop.extent).value_or(0) > 1 &&
           has_threads && is_block_axis(loops_[0]->loop_kind) &&
           std::all_of(loops_.begin(), loops_.end(), [](const Loop* l) { return is_uniform(*l); });
  }

  // Values pass from one iteration of a loop to the next where a block that writes them reduces over it.
  void visit_block(const Block& block) {
    std::size_t depth = loops_.size();
    for (const IterVar& iter : block.iters) {
      touch_loads(iter.binding);
      if (iter.kind == IterKind::kSpatial) continue;
      for (std::size_t i = 0; i < depth; ++i) {
        if (mentions(iter.binding, loops_[i]->var->id)) depth = i;
      }
    }
    if (block.guard.defined()) touch_loads(block.guard);
    for (Stmt part : {block.init, block.body}) {
      walk(
          part,
          [&](Stmt s) {
            if (const Store* store = s.as<Store>()) touch(store->buffer, depth);
            return true;
          },
          [&](Expr e) { touch_loads(e); });
    }
  }

  void touch_loads(Expr e) {
    walk(e, [&](Expr part) {
      if (const Load* load = part.as<Load>()) touch(load->buffer, loops_.size());
      has_masks_ = has_masks_ || part.as<Select>() != nullptr;
      return true;
    });
  }

  void touch(BufferId id, std::size_t depth) {
    const auto end = loops_.begin() + static_cast<std::ptrdiff_t>(depth);
    const auto [it, is_new] = homes_.emplace(id, Loops(loops_.begin(), end));
    Loops& home = it->second;
    if (is_new) return;
    home.erase(std::mismatch(home.begin(), home.end(), loops_.begin(), end).first, home.end());
  }

  // Does every iteration of the loop begin with a buffer of its own?
  bool is_of_iteration(BufferId id, const Loop* loop) const {
    const Loops& home = homes_.at(id);
    return program_.buffer(id).role == BufferRole::kIntermediate &&
           std::find(home.begin(), home.end(), loop) != home.end();
  }

  bool leaves_something(const Block& block, const Loop* loop) const {
    bool leaves = false;
    for (Stmt part : {block.init, block.body}) {
      walk(
          part,
          [&](Stmt s) {
            const Store* store = s.as<Store>();
            leaves = leaves || (store != nullptr && !is_of_iteration(store->buffer, loop));
            return !leaves;
          },
          [](Expr) {});
    }
    return leaves;
  }

  // Registers that are told apart by iterations want as many of these as the text says.
  bool indexes_registers(const Site& site, const Loop* loop) const {
    std::vector<VarId> vars;
    for (const IterVar& iter : site.block->iters) {
      if (mentions(iter.binding, loop->var->id)) vars.push_back(iter.var->id);
    }
    const auto does = [&](const Access& access) {
      if (program_.buffer(access.buffer).scope != Scope::kLocal) return false;
      if (is_of_iteration(access.buffer, loop)) return false;
      return std::any_of(access.region.begin(), access.region.end(),
                         [&](const Range& range) { return mentions(range.min, vars); });
    };
    const Block& block = *site.block;
    return std::any_of(block.reads.begin(), block.reads.end(), does) ||
           std::any_of(block.writes.begin(), block.writes.end(), does);
  }

  Needed needed_in(const Loops& nest) {
    const Loop* const loop = nest.back();
    if (std::find(opaque_.begin(), opaque_.end(), loop) != opaque_.end()) return {};
    std::optional<Needed> all;
    for (const Site& site : sites_) {
      if (std::find(site.loops.begin(), site.loops.end(), loop) == site.loops.end()) continue;
      if (combines_threads(site, nest.size()) || indexes_registers(site, loop)) return {};
      if (!leaves_something(*site.block, loop)) continue;
      const Needed one = needed_for(site, nest);
      all = all ? either(*all, one) : one;
    }
    return all.value_or(Needed{});
  }

  Needed either(const Needed& x, const Needed& y) {
    Needed out;
    if (x.first.defined() && y.first.defined()) out.first = b_.min(x.first, y.first);
    if (x.end.defined() && y.end.defined()) out.end = b_.max(x.end, y.end);
    return out;
  }

  // One iteration runs in any case. Null iterations: all of them.
  // Registers of a reduction leave a serial loop that its places depend on (codegen, find_alloc_points).
  static bool varies_in_block(Expr first, const Loops& nest) {
    return std::any_of(nest.begin(), nest.end() - 1, [&](const Loop* outer) {
      return !is_block_axis(outer->loop_kind) && mentions(first, outer->var->id);
    });
  }

  LoopTrim part_of(const Needed& needed, const Loops& nest) {
    const Loop& loop = *nest.back();
    const VarRanges ranges = ranges_of_loops(nest.size() - 1, nest);
    const Expr one = b_.int_imm(1);
    Expr end = loop.extent, first = b_.int_imm(0);
    if (needed.end.defined()) {
      end = simplify(b_, b_.min(loop.extent, b_.max(needed.end, one)), ranges);
    }
    if (needed.first.defined()) {
      first = simplify(b_, b_.max(first, b_.min(needed.first, b_.sub(end, one))), ranges);
      if (varies_in_block(first, nest)) first = b_.int_imm(0);
    }
    const bool is_whole = constant_value(end) == constant_value(loop.extent);
    if (constant_value(first) == 0) {
      return is_whole ? LoopTrim{} : LoopTrim{{}, end, share_of(end, nest)};
    }
    const Expr iterations = simplify(b_, b_.sub(end, first), ranges);
    return {first, iterations, share_of(iterations, nest)};
  }

  // The mean over the iterations of the loops around, which are not many.
  static double share_of(Expr end, const Loops& nest) {
    constexpr int64_t kMostPoints = int64_t{1} << 12;
    Loops over;
    int64_t num_points = 1;
    for (const Loop* loop : nest) {
      if (!mentions(end, loop->var->id)) continue;
      const int64_t extent = constant_value(loop->extent).value_or(0);
      if (extent < 1 || extent > kMostPoints / num_points) return 1;
      num_points *= extent;
      over.push_back(loop);
    }
    double sum = 0;
    for (int64_t point = 0; point < num_points; ++point) {
      const auto leaf = [&](Expr e) -> std::optional<int64_t> {
        const Var* var = e.as<Var>();
        int64_t rest = point;
        for (const Loop* loop : over) {
          const int64_t extent = *constant_value(loop->extent);
          if (var != nullptr && var->id == loop->var->id) return rest % extent;
          rest /= extent;
        }
        return std::nullopt;
      };
      const std::optional<int64_t> iterations = evaluate_int(end, leaf);
      if (!iterations) return 1;
      sum += static_cast<double>(*iterations);
    }
    const auto whole = static_cast<double>(*constant_value(nest.back()->extent));
    return sum / (static_cast<double>(num_points) * whole);
  }

  static VarRanges ranges_of_loops(std::size_t depth, const Loops& nest) {
    VarRanges out;
    for (std::size_t i = 0; i < depth; ++i) out.bind(nest[i]->var, nest[i]->extent);
    return out;
  }

  // Whether threads of loops inside add up to one result: that reduction's loops become several.
  static bool combines_threads(const Site& site, std::size_t depth) {
    for (const IterVar& iter : site.block->iters) {
      if (iter.kind == IterKind::kSpatial) continue;
      for (std::size_t i = depth; i < site.loops.size(); ++i) {
        const Loop& inner = *site.loops[i];
        if (is_lane_axis(inner.loop_kind) && mentions(iter.binding, inner.var->id)) return true;
      }
    }
    return false;
  }

  Needed needed_for(const Site& site, const Loops& nest) {
    const Block& block = *site.block;
    // Which iteration initialises is not to be changed.
    if (block.init.defined() && reduces_over(block, *nest.back())) return {};
    Needed out;
    // Nor is an element whose updates add nothing to stay without a first value.
    for (const Linear& condition : masks_->needed_where(block, !block.init.defined())) {
      const std::optional<double> share = share_where(block, {&condition, 1});
      if (!share || *share > 1 - kLeastMaskedPart) continue;
      const Needed one = needed_by(condition, site, nest);
      if (one.end.defined()) out.end = out.end.defined() ? b_.min(out.end, one.end) : one.end;
      if (one.first.defined()) {
        out.first = out.first.defined() ? b_.max(out.first, one.first) : one.first;
      }
    }
    return out;
  }

  // The iterations in which the condition holds for some instance, if they are the first or the last ones.
  Needed needed_by(const Linear& condition, const Site& site, const Loops& nest) {
    VarMap bindings;
    for (const IterVar& iter : site.block->iters) bindings[iter.var->id] = iter.binding;
    std::vector<VarId> inner;
    for (std::size_t i = nest.size(); i < site.loops.size(); ++i) {
      inner.push_back(site.loops[i]->var->id);
    }
    const Expr value = substitute(b_, to_expr(b_, condition), bindings);
    const std::optional<Linear> least =
        eliminate_vars(b_, to_linear(b_, value, site.ranges), Bound::kLower, site.ranges, inner);
    if (!least || least->overflow || least->has_data) return {};
    // step * v + rest <= 0
    const VarId v = nest.back()->var->id;
    Linear rest = Linear::of(least->constant);
    int64_t step = 0;
    for (const Term& term : least->terms) {
      const Var* var = term.degree == 1 ? term.atoms[0].as<Var>() : nullptr;
      if (var != nullptr && var->id == v) {
        step = term.coef;
      } else {
        rest = rest + Linear::of(term);
      }
    }
    const Linear others = rest * -1;
    const Expr bound = to_expr(b_, others);
    if (step == 0 || rest.overflow || mentions(bound, v) || mentions(bound, inner)) return {};
    if (step > 0) return {{}, b_.add(b_.floordiv(bound, b_.int_imm(step)), b_.int_imm(1))};
    // v >= rest / -step
    return {b_.floordiv(to_expr(b_, rest + (-step - 1)), b_.int_imm(-step)), {}};
  }

  IrBuilder& b_;
  const Program& program_;
  std::optional<Masks> masks_;
  VarRanges ranges_;
  Loops loops_;                    // around the statement at hand
  std::vector<Loops> candidates_;  // each with the loops around it
  std::vector<Site> sites_;
  Loops opaque_;  // with stores outside of blocks
  bool has_masks_ = false;
  std::map<BufferId, Loops> homes_;  // the loops in whose iterations a buffer begins anew
};

}  // namespace

std::map<LoopId, LoopTrim> masked_loop_trims(IrBuilder& b, const Program& program) {
  if (!program.root().defined()) return {};
  return LoopTrims(b, program).run();
}

}  // namespace prunerc::ir
