// Region cover and stage pipelines: is everything that a block reads written before, in each
// iteration that they share?
#include "ir/analysis/dependence.h"
#include "ir/analysis/region.h"
#include "ir/arith/iter_map.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <optional>

namespace prunerc::ir {
namespace {

bool mentions_loop(const Term& term, std::span<const Loop* const> loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const Loop* loop) { return mentions(term.factors(), loop->var->id); });
}

// One level of the comparison: the position just inside `common` (null: the scope itself).
class CoverCheck {
 public:
  CoverCheck(const Program& program, const LoopIndex& index, const Loop* common,
             const Block& consumer)
      : index_(index),
        common_(common),
        b_(program),
        scope_(scope_ranges(program, index, common, consumer)) {}

  Proof covered(const Block& consumer, const Access& read,
                std::span<const Block* const> producers) {
    const BufferRegion needed = upper_bound(consumer, read);
    std::vector<BufferRegion> written;
    bool all_known = true;
    for (const Block* producer : producers) {
      for (const Access& write : producer->writes) {
        if (write.buffer != read.buffer) continue;
        std::optional<BufferRegion> box = written_box(*producer, write);
        all_known = all_known && box.has_value();
        if (box.has_value()) written.push_back(*std::move(box));
      }
    }
    Proof best = Proof::kNo;
    for (const BufferRegion& box : written) {
      const Proof one = covers(b_, box, needed, scope_);
      if (one == Proof::kYes) return one;
      if (one == Proof::kUnknown) best = one;
    }
    if (written.size() > 1) return cover_together(written, needed) ? Proof::kYes : Proof::kUnknown;
    // What is needed is an upper bound: it refutes only if it is read for certain.
    const bool refuted = best == Proof::kNo && all_known && is_really_read(consumer, read);
    return refuted ? Proof::kNo : Proof::kUnknown;
  }

 private:
  static VarRanges scope_ranges(const Program& program, const LoopIndex& index, const Loop* common,
                                const Block& consumer) {
    if (common != nullptr) return ranges_inside(program, index, common->id);
    const Block* outer = index.parent_block(consumer.id);
    if (outer == nullptr) return VarRanges(program.domain());
    VarRanges ranges = ranges_around(program, index, outer->id);
    bind_iters(ranges, *outer);
    return ranges;
  }

  std::vector<const Loop*> inner_loops(const Block& block) const {
    std::vector<const Loop*> loops = index_.enclosing_loops(block.id);
    if (common_ == nullptr) return loops;
    const auto at = std::find(loops.begin(), loops.end(), common_);
    return {at == loops.end() ? loops.begin() : at + 1, loops.end()};
  }

  BufferRegion upper_bound(const Block& block, const Access& access) {
    VarRanges ranges = scope_;
    std::vector<VarId> inner;
    for (const Loop* loop : inner_loops(block)) {
      ranges.bind(loop->var, loop->extent);
      inner.push_back(loop->var->id);
    }
    if (block.guard.defined()) ranges.assume(block.guard);
    const BufferRegion relaxed = relax_region(b_, bound_region(b_, block, access), inner, ranges);
    return clip_to_buffer(b_, relaxed, scope_);
  }

  // Is every element of the upper bound read, in every iteration of the shared loops?
  bool is_really_read(const Block& consumer, const Access& read) {
    const std::optional<BufferRegion> exact = exact_region(consumer, read, consumer.guard);
    if (!exact.has_value()) return false;
    const BufferRegion inside = clip_to_buffer(b_, *exact, scope_);
    const bool empty_somewhere =
        std::any_of(inside.box.begin(), inside.box.end(), [&](const Range& range) {
          return prove(b_.le(b_.int_imm(1), range.extent), scope_) != Proof::kYes;
        });
    return !empty_somewhere &&
           covers(b_, inside, upper_bound(consumer, read), scope_) == Proof::kYes;
  }

  // A box that holds, within the buffer, only elements that the producer writes.
  std::optional<BufferRegion> written_box(const Block& producer, const Access& write) {
    std::optional<BufferRegion> exact = exact_region(producer, write, producer.guard);
    if (exact.has_value() || !producer.guard.defined() || !guard_is_domain(producer, write))
      return exact;
    // The guard cuts nothing but what lies outside the buffer.
    return exact_region(producer, write, Expr());
  }

  bool holds(Expr condition) { return prove(condition, scope_) == Proof::kYes; }
  Expr end_of(const Range& range) { return b_.add(range.min, range.extent); }

  // Takes what a box covers off the lower end of what is left, as long as some box fits.
  bool cover_together(std::vector<BufferRegion>& boxes, BufferRegion left) {
    for (std::size_t i = 0; i < boxes.size();) {
      std::optional<std::size_t> open;  // the dimension that the box does not cover whole
      bool fits = true;
      for (std::size_t d = 0; d < left.box.size() && fits; ++d) {
        const Range& box = boxes[i].box[d];
        fits = holds(b_.le(box.min, left.box[d].min));
        if (!fits || holds(b_.le(end_of(left.box[d]), end_of(box)))) continue;
        fits = !open.has_value() && holds(b_.le(left.box[d].min, end_of(box)));
        open = d;
      }
      if (fits && !open.has_value()) return true;
      if (!fits) {
        ++i;
        continue;
      }
      const Expr end = end_of(left.box[*open]);
      left.box[*open].min = end_of(boxes[i].box[*open]);
      left.box[*open].extent = b_.sub(end, left.box[*open].min);
      boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    }
    return false;
  }

  // The elements touched, if they fill a box; nullopt if that is not known.
  std::optional<BufferRegion> exact_region(const Block& producer, const Access& write, Expr guard) {
    VarRanges ranges = scope_;
    const std::vector<const Loop*> loops = inner_loops(producer);
    std::vector<const Var*> vars;
    for (const Loop* loop : loops) {
      ranges.bind(loop->var, loop->extent);
      vars.push_back(loop->var);
    }
    const BufferRegion bound = bound_region(b_, producer, write);
    std::vector<Expr> steps;     // per dimension, the part that depends on the inner loops
    std::vector<Linear> bases;   // the rest
    std::vector<int64_t> sizes;  // elements touched at once
    for (const Range& range : bound.box) {
      const Linear extent = to_linear(b_, range.extent, ranges);
      if (!extent.is_constant() || extent.constant < 1) return std::nullopt;
      const Linear first = to_linear(b_, range.min, ranges);
      if (first.overflow || first.has_data) return std::nullopt;
      Linear base = Linear::of(first.constant);
      Linear step;
      for (const Term& t : first.terms) {
        (mentions_loop(t, loops) ? step : base).terms.push_back(t);
      }
      steps.push_back(to_expr(b_, step));
      bases.push_back(base);
      sizes.push_back(extent.constant);
    }
    const IterMapResult map =
        detect_iter_map(b_, steps, vars, guard, ranges, IterMapLevel::kSurjective);
    if (!map.ok()) return std::nullopt;
    BufferRegion out;
    out.buffer = write.buffer;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const IterSum& sum = map.map.indices[i];
      Term stride;
      stride.coef = sizes[i];
      if (!sum.splits.empty()) stride = sum.splits.back().scale;
      // Windows at most as far apart as they are wide leave no holes.
      if (stride.degree != 0 || stride.coef > sizes[i]) return std::nullopt;
      const Linear last = (map.map.extents[i] + -1) * stride.coef;
      out.box.push_back({to_expr(b_, bases[i] + sum.base), to_expr(b_, last + sizes[i])});
    }
    return out;
  }

  // Does the guard say no more than that the iterations, which are the positions written, lie
  // within the buffer?
  bool guard_is_domain(const Block& producer, const Access& write) {
    VarRanges ranges = scope_;
    for (const Loop* loop : inner_loops(producer)) ranges.bind(loop->var, loop->extent);
    for (std::size_t i = 0; i < write.region.size(); ++i) {
      const Var* v = write.region[i].min.as<Var>();
      const auto iter =
          std::find_if(producer.iters.begin(), producer.iters.end(),
                       [&](const IterVar& it) { return v != nullptr && it.var->id == v->id; });
      if (iter == producer.iters.end()) continue;
      ranges.assume(b_.lt(iter->binding, b_.buffer(write.buffer).shape[i]));
      ranges.assume(b_.le(b_.int_imm(0), iter->binding));
    }
    return prove(producer.guard, ranges) == Proof::kYes;
  }

  const LoopIndex& index_;
  const Loop* common_;
  IrBuilder b_;
  VarRanges scope_;
};

bool only_loops_and_blocks(Stmt s) {
  if (!s.defined() || s.kind() == StmtKind::kBlock) return true;
  if (s.kind() == StmtKind::kStore || s.kind() == StmtKind::kIf || s.kind() == StmtKind::kAlloc)
    return false;
  bool fine = true;
  for_each_child(
      s, [&](Stmt child) { fine = fine && only_loops_and_blocks(child); }, [](Expr) {});
  return fine;
}

BlockFault to_fault(Proof proof) {
  return proof == Proof::kYes  ? BlockFault::kNone
         : proof == Proof::kNo ? BlockFault::kNotCovered
                               : BlockFault::kCoverUnknown;
}

BlockFault cover_fault(const Program& program, const LoopIndex& index, const ScopeDeps& deps,
                       const Block& consumer) {
  Proof all = Proof::kYes;
  for (const Access& read : consumer.reads) {
    // Producers by the innermost loop that they share with the consumer.
    std::vector<std::pair<const Loop*, std::vector<const Block*>>> levels;
    for (const DepEdge& e : deps.edges) {
      const bool feeds =
          e.to == consumer.id && e.kind == DepKind::kReadAfterWrite && e.buffer == read.buffer;
      if (!feeds) continue;
      const Loop* common = index.lowest_common_loop(e.from, consumer.id);
      const auto level = std::find_if(levels.begin(), levels.end(),
                                      [&](const auto& entry) { return entry.first == common; });
      if (level == levels.end()) {
        levels.push_back({common, {index.block(e.from)}});
      } else {
        level->second.push_back(index.block(e.from));
      }
    }
    for (const auto& [common, producers] : levels) {
      CoverCheck check(program, index, common, consumer);
      all = all && check.covered(consumer, read, producers);
    }
  }
  return to_fault(all);
}

}  // namespace

BlockFault check_region_cover(const Program& program, const LoopIndex& index, BlockId consumer) {
  const Block* block = index.block(consumer);
  if (block == nullptr) return BlockFault::kUnknownBlock;
  const Block* outer = index.parent_block(consumer);
  const ScopeDeps deps = scope_dependences(index, outer == nullptr ? BlockId() : outer->id);
  return cover_fault(program, index, deps, *block);
}

BlockFault check_stage_pipeline(const Program& program, const LoopIndex& index, BlockId scope) {
  const Block* outer = index.block(scope);
  if (scope.valid() && outer == nullptr) return BlockFault::kUnknownBlock;
  const ScopeDeps deps = scope_dependences(index, scope);
  for (const DepEdge& e : deps.edges) {
    if (e.kind == DepKind::kWriteAfterRead) return BlockFault::kWriteAfterRead;
  }
  const Stmt inside = outer == nullptr ? program.root() : outer->body;
  if (!only_loops_and_blocks(inside)) return BlockFault::kOpaqueStatement;
  for (BlockId id : deps.blocks) {
    const BlockFault fault = cover_fault(program, index, deps, *index.block(id));
    if (fault != BlockFault::kNone) return fault;
  }
  return BlockFault::kNone;
}

}  // namespace prunerc::ir
