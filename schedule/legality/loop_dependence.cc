#include "schedule/legality/loop_dependence.h"

#include "ir/analysis/carried.h"
#include "ir/analysis/region.h"
#include "ir/arith/iter_map.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/visit.h"
#include "schedule/legality/access_region.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

// One access of a leaf block, relaxed over the loops inside the chain.
struct BoxAccess {
  BufferRegion region;
  bool is_write = false;
  std::size_t leaf_idx = 0;
  const Access* declared = nullptr;
};

// (var // lower) % extent of a variable of the chain.
struct Digit {
  std::size_t var_idx;
  int64_t lower;
  int64_t extent;
};

class Chain {
 public:
  Chain(IrBuilder& b, const Program& program, const Site& top, std::span<const Loop* const> loops)
      : b_(b),
        loops_(loops),
        leaves_(leaves(loops.back()->body)),
        ranges_(ranges_at(program, top)) {
    for (Stmt s : top.path) {
      const Loop* loop = s.as<Loop>();
      if (loop != nullptr && loop != loops[0]) outer_.push_back(loop);
    }
    for (const Loop* loop : loops) {
      if (loop != loops[0]) ranges_.bind(loop->var, loop->extent);
      extents_.push_back(constant(loop->extent).value_or(0));
    }
  }

  /// Those of buffers that are written somewhere below: others make nothing depend on anything.
  std::vector<BoxAccess> accesses();
  bool disjoint_slabs(const std::vector<BoxAccess>& accesses, BufferId buffer);
  bool covered(const std::vector<BoxAccess>& accesses, BufferId buffer);
  bool writes_once(BufferId buffer);
  bool apart(BufferId buffer);

 private:
  bool covers_box(const LeafBlock& writer, const Access& write, const LeafBlock& reader,
                  const Access& read);
  bool covers_in_common(const LeafBlock& writer, const Access& write, const LeafBlock& reader,
                        const Access& read);

  // One dimension of one access: atoms of the chain with their coefficients, and the rest.
  struct Dim {
    std::vector<Term> atoms;
    Linear rest;
    int64_t extent = 0;
  };
  std::optional<std::size_t> var_of(Expr e) const;
  std::optional<Digit> as_digit(Expr atom) const;
  std::optional<Dim> dim(const Range& range);
  void resolve(const std::vector<const BufferRegion*>& regions, std::size_t d,
               std::vector<Digit>& resolved);
  bool determines(std::vector<Digit> digits, std::size_t var_idx) const;

  IrBuilder& b_;
  std::span<const Loop* const> loops_;
  std::vector<const Loop*> outer_;  // around the chain, outermost first
  std::vector<int64_t> extents_;
  std::vector<LeafBlock> leaves_;
  VarRanges ranges_;
};

std::vector<BoxAccess> Chain::accesses() {
  std::vector<BoxAccess> out;
  const auto is_written = [this](BufferId buffer) {
    return std::any_of(leaves_.begin(), leaves_.end(),
                       [&](const LeafBlock& leaf) { return writes(*leaf.block, buffer); });
  };
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const LeafBlock& leaf = leaves_[i];
    for (const Access& access : leaf.block->reads) {
      if (!is_written(access.buffer)) continue;
      out.push_back({access_box(b_, leaf, access, ranges_), false, i, &access});
    }
    for (const Access& access : leaf.block->writes) {
      out.push_back({access_box(b_, leaf, access, ranges_), true, i, &access});
    }
  }
  return out;
}

std::optional<std::size_t> Chain::var_of(Expr e) const {
  const Var* var = e.as<Var>();
  for (std::size_t i = 0; var != nullptr && i < loops_.size(); ++i) {
    if (loops_[i]->var->id == var->id) return i;
  }
  return std::nullopt;
}

// Nullopt if the atom is not a digit of one variable of the chain.
std::optional<Digit> Chain::as_digit(Expr atom) const {
  if (const std::optional<std::size_t> idx = var_of(atom)) return Digit{*idx, 1, extents_[*idx]};
  const BinaryNode* node = as_binary(atom);
  if (node == nullptr) return std::nullopt;
  const std::optional<int64_t> by = constant(node->rhs);
  if (!by || *by < 1) return std::nullopt;
  const std::optional<Digit> of = as_digit(node->lhs);
  if (!of) return std::nullopt;
  const bool topmost = of->lower * of->extent >= extents_[of->var_idx];
  if (atom.kind() == ExprKind::kFloorMod) {
    // (x % e) % m is x % m only if m divides e.
    if (*by < of->extent && !topmost && of->extent % *by != 0) return std::nullopt;
    return Digit{of->var_idx, of->lower, std::min(of->extent, *by)};
  }
  // (v % m) // l is a digit only if l divides m; the topmost digit may be ragged.
  if (atom.kind() != ExprKind::kFloorDiv || (of->extent % *by != 0 && !topmost)) {
    return std::nullopt;
  }
  return Digit{of->var_idx, of->lower * *by, (of->extent + *by - 1) / *by};
}

std::optional<Chain::Dim> Chain::dim(const Range& range) {
  const std::optional<int64_t> extent = constant(range.extent);
  const Linear linear = to_linear(b_, range.min, ranges_);
  if (!extent || linear.overflow || has_load(range.min)) return std::nullopt;
  Dim out;
  out.extent = *extent;
  out.rest = Linear::of(linear.constant);
  for (const Term& term : linear.terms) {
    bool inside = false;
    for (Expr atom : term.factors()) {
      for (const Loop* loop : loops_) inside |= mentions(atom, loop->var->id);
    }
    if (!inside) {
      out.rest.terms.push_back(term);
    } else if (term.degree == 1 && as_digit(term.atoms[0])) {
      out.atoms.push_back(term);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

// Adds the digits whose value decides in which slab of dimension d all accesses lie.
void Chain::resolve(const std::vector<const BufferRegion*>& regions, std::size_t d,
                    std::vector<Digit>& resolved) {
  const std::optional<Dim> first = dim(regions[0]->box[d]);
  if (!first) return;
  int64_t lo = 0;
  int64_t hi = first->extent;
  for (std::size_t i = 1; i < regions.size(); ++i) {
    const std::optional<Dim> other = dim(regions[i]->box[d]);
    if (!other || other->atoms.size() != first->atoms.size()) return;
    for (std::size_t k = 0; k < first->atoms.size(); ++k) {
      if (other->atoms[k].coef != first->atoms[k].coef ||
          !structural_equal(other->atoms[k].atoms[0], first->atoms[k].atoms[0])) {
        return;
      }
    }
    const Linear shift = other->rest - first->rest;
    if (!shift.is_constant()) return;
    lo = std::min(lo, shift.constant);
    hi = std::max(hi, shift.constant + other->extent);
  }
  // A digit is resolved if one step of it is wider than all that the smaller ones and the box can
  // span.
  std::vector<Term> atoms = first->atoms;
  std::sort(atoms.begin(), atoms.end(),
            [](const Term& x, const Term& y) { return std::abs(x.coef) < std::abs(y.coef); });
  int64_t spread = hi - lo - 1;
  for (const Term& term : atoms) {
    const Digit digit = *as_digit(term.atoms[0]);
    if (std::abs(term.coef) > spread) resolved.push_back(digit);
    int64_t reach = 0;
    if (__builtin_mul_overflow(std::abs(term.coef), digit.extent - 1, &reach) ||
        __builtin_add_overflow(spread, reach, &spread)) {
      return;
    }
  }
}

// Do the digits cover every place of the variable, from 1 up to its extent?
bool Chain::determines(std::vector<Digit> digits, std::size_t var_idx) const {
  std::sort(digits.begin(), digits.end(),
            [](const Digit& x, const Digit& y) { return x.lower < y.lower; });
  int64_t known = 1;  // the variable modulo this is known
  for (const Digit& digit : digits) {
    if (digit.var_idx != var_idx || digit.lower > known) continue;
    // An overlapping digit tells the remainder modulo lower*extent only if it starts at a place
    // that is known.
    if (known % digit.lower == 0) known = std::max(known, digit.lower * digit.extent);
  }
  return known >= extents_[var_idx] && extents_[var_idx] > 0;
}

bool Chain::disjoint_slabs(const std::vector<BoxAccess>& accesses, BufferId buffer) {
  std::vector<const BufferRegion*> regions;
  for (const BoxAccess& access : accesses) {
    if (access.region.buffer == buffer) regions.push_back(&access.region);
  }
  std::vector<Digit> resolved;
  for (std::size_t d = 0; d < regions[0]->box.size(); ++d) resolve(regions, d, resolved);
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (extents_[i] != 1 && !determines(resolved, i)) return false;
  }
  return true;
}

// Is every read of the buffer preceded, in the same iteration, by a write of all that it reads? What
// a reduction has so far, over a loop of the chain or around it, is of earlier iterations, too.
bool Chain::covered(const std::vector<BoxAccess>& accesses, BufferId buffer) {
  for (const LeafBlock& leaf : leaves_) {
    if (!writes(*leaf.block, buffer)) continue;
    const auto feeds = [&](const Loop* loop) { return feeds_reduction(*loop, *leaf.block); };
    if (std::any_of(loops_.begin(), loops_.end(), feeds)) return false;
    if (std::any_of(outer_.begin(), outer_.end(), feeds)) return false;
  }
  auto covers_read = [&](const BoxAccess& write, const BoxAccess& read) {
    if (!write.is_write || write.region.buffer != buffer) return false;
    const LeafBlock& writer = leaves_[write.leaf_idx];
    if (write.leaf_idx == read.leaf_idx) {
      // A reduction reads the element that its own init wrote.
      return writer.block->init.defined() && same_region(*write.declared, *read.declared);
    }
    if (write.leaf_idx >= read.leaf_idx) return false;
    const LeafBlock& reader = leaves_[read.leaf_idx];
    // Loops that both stand in: what their later iterations write comes too late for earlier reads.
    const bool in_turns =
        !writer.loops.empty() && !reader.loops.empty() && writer.loops[0] == reader.loops[0];
    return (!in_turns && covers_box(writer, *write.declared, reader, *read.declared)) ||
           covers_in_common(writer, *write.declared, reader, *read.declared);
  };
  for (const BoxAccess& read : accesses) {
    if (read.is_write || read.region.buffer != buffer) continue;
    const bool found = std::any_of(accesses.begin(), accesses.end(), [&](const BoxAccess& write) {
      return covers_read(write, read);
    });
    if (!found) return false;
  }
  return true;
}

// Does the writer, in all its iterations, write what the reader reads in all of its own?
bool Chain::covers_box(const LeafBlock& writer, const Access& write, const LeafBlock& reader,
                       const Access& read) {
  const BufferRegion needed = access_box(b_, reader, read, ranges_);
  const BufferRegion written = access_box(b_, writer, write, ranges_);
  // What an edge leaves out nobody writes, as far as this block is the only one that writes.
  const bool is_only_writer =
      std::none_of(leaves_.begin(), leaves_.end(), [&](const LeafBlock& leaf) {
        return leaf.block != writer.block && writes(*leaf.block, write.buffer);
      });
  if (!is_only_writer && writer.block->guard.defined()) return false;
  // A window over the edge of the buffer reads only what is inside.
  const auto is_covered_by = [&](const BufferRegion& box) {
    return covers(b_, box, needed, ranges_) == Proof::kYes ||
           covers(b_, box, clip_to_buffer(b_, needed, ranges_), ranges_) == Proof::kYes;
  };
  if (is_covered_by(written) && writes_whole_box(b_, writer, write, ranges_)) return true;
  const std::optional<BufferRegion> cut = guarded_box(b_, writer, write, ranges_);
  return cut && is_covered_by(*cut);
}

// The same in each iteration of the loops that both stand in: what several of them touch together
// need not be a box.
bool Chain::covers_in_common(const LeafBlock& writer, const Access& write, const LeafBlock& reader,
                             const Access& read) {
  std::size_t common = 0;
  while (common < writer.loops.size() && common < reader.loops.size() &&
         writer.loops[common] == reader.loops[common]) {
    ++common;
  }
  if (common == 0) return false;
  const auto inside = [&](const LeafBlock& leaf) {
    return LeafBlock{leaf.block,
                     {leaf.loops.begin() + static_cast<std::ptrdiff_t>(common), leaf.loops.end()}};
  };
  const VarRanges::Mark mark = ranges_.mark();
  for (std::size_t i = 0; i < common; ++i) {
    ranges_.bind(writer.loops[i]->var, writer.loops[i]->extent);
  }
  const bool ok = covers_box(inside(writer), write, inside(reader), read);
  ranges_.rewind(mark);
  return ok;
}

// Is the buffer accessed by one block alone, each iteration at elements of its own? So it is if the
// element determines the iteration: of the chain and of what moves the element inside, or of some
// loops around as well, which a fused index may need (only what differs inside counts then).
bool Chain::writes_once(BufferId buffer) {
  const LeafBlock* writer = nullptr;
  const Access* write = nullptr;
  for (const LeafBlock& leaf : leaves_) {
    for (const auto* list : {&leaf.block->writes, &leaf.block->reads}) {
      for (const Access& access : *list) {
        if (access.buffer != buffer) continue;
        if (writer != nullptr && (writer != &leaf || !same_region(*write, access))) return false;
        writer = &leaf;
        write = &access;
      }
    }
  }
  if (writer == nullptr || !is_point(*write)) return false;
  const VarRanges::Mark mark = ranges_.mark();
  std::vector<const Var*> vars;
  for (const Loop* loop : outer_) vars.push_back(loop->var);
  for (const Loop* loop : loops_) vars.push_back(loop->var);
  for (const Loop* loop : writer->loops) ranges_.bind(loop->var, loop->extent);
  std::vector<Expr> indices;
  for (const Range& range : bound_region(b_, *writer->block, *write).box) {
    indices.push_back(simplify(b_, range.min, ranges_));
    // Data may differ in each iteration.
    if (has_load(range.min)) {
      ranges_.rewind(mark);
      return false;
    }
  }
  // Instances that the edge of the domain leaves out may be thought to run: that makes it harder.
  const Expr guard = guard_within_domain(b_, *writer->block, ranges_);
  // A loop inside that no index depends on, as a sum's, comes back to the iteration's own element.
  for (const Loop* loop : writer->loops) {
    const auto moves = [&](Expr e) { return mentions(e, loop->var->id); };
    if (std::any_of(indices.begin(), indices.end(), moves) || (guard.defined() && moves(guard))) {
      vars.push_back(loop->var);
    }
  }
  bool found = false;
  for (std::size_t first = outer_.size() + 1; first-- > 0 && !found;) {
    found = detect_iter_map(b_, indices, std::span(vars).subspan(first), guard, ranges_,
                            IterMapLevel::kBijective)
                .ok();
  }
  ranges_.rewind(mark);
  return found;
}

// Do two different iterations never touch one element, one of them writing? Element by element.
bool Chain::apart(BufferId buffer) {
  struct Found {
    Touch touch;
    bool writes;
  };
  std::vector<Found> found;
  for (const LeafBlock& leaf : leaves_) {
    for (const auto* list : {&leaf.block->reads, &leaf.block->writes}) {
      for (const Access& access : *list) {
        if (access.buffer != buffer) continue;
        found.push_back(
            {touch_of(b_, leaf, access, loops_, leaf.loops), list == &leaf.block->writes});
      }
    }
  }
  for (std::size_t x = 0; x < found.size(); ++x) {
    for (std::size_t y = x; y < found.size(); ++y) {
      if (!found[x].writes && !found[y].writes) continue;
      if (share_element(found[x].touch, found[y].touch, PointOrder::kDifferent, ranges_,
                        kTouchEffort) != Proof::kNo) {
        return false;
      }
    }
  }
  return true;
}

bool accessed_outside(const Program& program, BufferId buffer, Stmt inside) {
  bool found = false;
  walk(
      program.root(),
      [&](Stmt s) {
        if (s.is(inside) || found) return false;
        const Block* block = s.as<Block>();
        if (block == nullptr) return true;
        for (const Access& access : block->reads) found |= access.buffer == buffer;
        for (const Access& access : block->writes) found |= access.buffer == buffer;
        return false;
      },
      [](Expr) {});
  return found;
}

}  // namespace

BufferId dependent_buffer(IrBuilder& b, const Program& program, const Site& top,
                          std::span<const Loop* const> chain, Privatization privatization,
                          Effort effort, std::span<const BufferId> except) {
  Chain analysis(b, program, top, chain);
  const std::vector<BoxAccess> accesses = analysis.accesses();
  std::vector<BufferId> done(except.begin(), except.end());
  for (const BoxAccess& access : accesses) {
    const BufferId buffer = access.region.buffer;
    if (!access.is_write || std::find(done.begin(), done.end(), buffer) != done.end()) continue;
    done.push_back(buffer);
    if (analysis.disjoint_slabs(accesses, buffer)) continue;
    const Buffer& about = program.buffer(buffer);
    const bool may_own =
        privatization == Privatization::kAlways ||
        (privatization == Privatization::kUnlessShared && about.scope != ir::Scope::kShared);
    const bool own = may_own && about.role == BufferRole::kIntermediate &&
                     !accessed_outside(program, buffer, chain.back()) &&
                     analysis.covered(accesses, buffer);
    if (own ||
        (effort == Effort::kExact && (analysis.writes_once(buffer) || analysis.apart(buffer)))) {
      continue;
    }
    return buffer;
  }
  return {};
}

bool lives_in_iteration(IrBuilder& b, const Program& program, const Site& site, BufferId buffer) {
  const Loop* loop = site.loop();
  Chain analysis(b, program, site, {&loop, 1});
  return program.buffer(buffer).role == BufferRole::kIntermediate &&
         !accessed_outside(program, buffer, loop) && analysis.covered(analysis.accesses(), buffer);
}

}  // namespace prunerc::schedule
