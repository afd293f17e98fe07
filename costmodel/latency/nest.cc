#include "costmodel/latency/nest.h"

#include "costmodel/latency/body.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::Stmt;

/// Of a swizzle. Units: bytes.
constexpr double kNarrowestPanel = 32, kWidestPanel = 128;
constexpr double kMostRowBytes = 1e9;  // as good as any more

bool holds_loops(Stmt s) {
  bool found = false;
  ir::walk(
      s,
      [&](Stmt part) {
        found = found || part.as<ir::Block>() != nullptr || part.as<ir::Loop>() != nullptr;
        return !found;
      },
      [](Expr) {});
  return found;
}

// The value where every variable is 0; nullopt if that needs more than sums, products and the digits
// of 0.
std::optional<Poly> at_zero(ParamSpace& space, Expr e) {
  if (e.as<ir::Var>() != nullptr) return Poly(0);
  if (std::optional<Poly> p = space.polynomial(e)) return p;
  const ir::BinaryNode* binary = ir::as_binary(e);
  if (binary == nullptr) return std::nullopt;
  const std::optional<Poly> l = at_zero(space, binary->lhs), r = at_zero(space, binary->rhs);
  if (!l || !r) return std::nullopt;
  if (e.kind() == ExprKind::kAdd) return *l + *r;
  if (e.kind() == ExprKind::kSub) return *l - *r;
  if (e.kind() == ExprKind::kMul) return space.multiply(*l, *r);
  const bool is_digit = e.kind() == ExprKind::kFloorDiv || e.kind() == ExprKind::kFloorMod;
  if (is_digit && space.symbol(*l).is(0)) return Poly(0);
  return std::nullopt;
}

template <typename Test>
bool has_access(const Nest& nest, const Test& test) {
  return std::any_of(nest.accesses.begin(), nest.accesses.end(), test);
}

}  // namespace

int common_depth(const Nest& a, const Nest& b) {
  std::size_t depth = 0;
  while (depth < a.loops.size() && depth < b.loops.size() &&
         a.loops[depth].id == b.loops[depth].id) {
    ++depth;
  }
  return static_cast<int>(depth);
}

NestTable::NestTable(const ir::Program& program, ParamSpace& space)
    : program_(&program), space_(&space) {
  binding_.resize(static_cast<std::size_t>(program.next_ids().var));
  panels_.resize(program.buffers().size());
  collect(program.root(), nullptr);
  find_alloc_depths();
  compute_shapes();
  compute_strides();
  find_registers();
  number_slices();
  find_reductions();
}

void NestTable::collect(Stmt s, const ir::Block* block) {
  if (!s.defined()) return;
  if (const auto* loop = s.as<ir::Loop>()) {
    collect_loop(*loop, block);
  } else if (const auto* inner = s.as<ir::Block>()) {
    collect_block(*inner);
  } else if (s.as<ir::Store>() != nullptr) {
    add_nest(block, s, false);
  } else {
    ir::for_each_child(
        s, [&](Stmt child) { collect(child, block); }, [](Expr) {});
  }
}

// Of an instruction of the CPU the first loop runs over its lanes, or rows, and what is inside takes no
// time of its own.
void NestTable::collect_loop(const ir::Loop& loop, const ir::Block* block) {
  const Poly trips = space_->polynomial(loop.extent).value_or(Poly(1));
  NestLoop entry{&loop, loop.id, loop.var->id, space_->symbol(trips), trips, loop.loop_kind};
  const ir::TensorIntrinsic* const outside = tensor_;
  if (tensor_ != nullptr) {
    entry.kind = ir::LoopKind::kUnrolled;
    entry.in_instruction = true;
  } else if (const auto name = ir::tensor_of(loop)) {
    const Result<const ir::TensorIntrinsic*> found = ir::find_tensor(*name);
    if (found.ok() && (*found)->family == "cpu") {
      tensor_ = *found;
      entry.kind = ir::LoopKind::kVectorized;
    }
  }
  stack_.push_back(entry);
  collect(loop.body, block);
  stack_.pop_back();
  tensor_ = outside;
}

void NestTable::collect_block(const ir::Block& block) {
  for (const ir::IterVar& iter : block.iters) {
    binding_[static_cast<std::size_t>(iter.var->id.value)] = iter.binding;
  }
  read_alignment(block);
  read_swizzles(block);
  if (block.init.defined()) add_nest(&block, block.init, true);
  if (holds_loops(block.body)) {
    collect(block.body, &block);
  } else {
    add_nest(&block, block.body, false);
  }
}

// schedule's storage_align: align_factor_W_A and align_offset_W_A say that rows of axis A of the
// W-th written buffer start at multiples of factor, plus offset, in elements.
void NestTable::read_alignment(const ir::Block& block) {
  for (const ir::Attr& attr : block.attrs) {
    for (const std::string_view prefix : {"align_factor_", "align_offset_"}) {
      if (!attr.key.starts_with(prefix)) continue;
      const char* const end = attr.key.data() + attr.key.size();
      std::size_t write = 0, axis = 0;
      const auto [bar, bad] = std::from_chars(attr.key.data() + prefix.size(), end, write);
      if (bad != std::errc() || bar == end || write >= block.writes.size()) continue;
      if (std::from_chars(bar + 1, end, axis).ec != std::errc()) continue;
      const ir::BufferId buffer = block.writes[write].buffer;
      auto at = std::find_if(alignments_.begin(), alignments_.end(), [&](const RowAlignment& r) {
        return r.buffer == buffer && r.axis == axis;
      });
      if (at == alignments_.end()) at = alignments_.insert(at, {buffer, axis});
      (prefix == "align_factor_" ? at->factor : at->offset) = attr.value;
    }
  }
}

// schedule's swizzle: swizzle_W says how many bytes the rows of the W-th written buffer have, which the widest
// panels divide that can (ir/tensor/bulk_copy.h).
void NestTable::read_swizzles(const ir::Block& block) {
  constexpr std::string_view kPrefix = "swizzle_";
  for (const ir::Attr& attr : block.attrs) {
    if (!attr.key.starts_with(kPrefix)) continue;
    const char* const end = attr.key.data() + attr.key.size();
    std::size_t write = 0;
    const auto read = std::from_chars(attr.key.data() + kPrefix.size(), end, write);
    if (read.ec != std::errc() || read.ptr != end || write >= block.writes.size()) continue;
    const bool is_shared = program_->buffer(block.writes[write].buffer).scope == ir::Scope::kShared;
    if (!is_shared || block.writes[write].region.size() < 2) continue;
    const Sym row = max(1, min(kMostRowBytes, space_->attr(block, attr.key)));
    const Sym panel = min(kWidestPanel, power_of_two_factor(row));
    // A program's text may say what is no swizzle.
    if (range_of(panel).hi < kNarrowestPanel) continue;
    panels_[static_cast<std::size_t>(block.writes[write].buffer.value)] = panel;
  }
}

void NestTable::add_nest(const ir::Block* block, Stmt body, bool is_init) {
  Nest nest;
  nest.block = block;
  nest.body = body;
  nest.loops = stack_;
  nest.is_init = is_init;
  nest.tensor = tensor_;
  read_body(*program_, body, &nest);
  if (is_init) {
    // The init runs in the first reduction iteration only.
    IndexReader reader(*space_, nest.loops, binding_);
    std::vector<Sym> once(nest.loops.size());
    for (const ir::IterVar& iter : block->iters) {
      if (iter.kind == ir::IterKind::kSpatial) continue;
      const std::vector<Sym> moves = reader.moves(iter.binding);
      for (std::size_t i = 0; i < once.size(); ++i) once[i] = logical_or(once[i], moves[i]);
    }
    for (std::size_t i = 0; i < once.size(); ++i) {
      if (once[i].is(0)) continue;
      nest.loops[i].extent = select(once[i], 1, nest.loops[i].extent);
      nest.loops[i].trips = space_->poly(nest.loops[i].extent);
    }
  }
  read_subscripts(&nest);
  nests_.push_back(std::move(nest));
}

void NestTable::read_subscripts(Nest* nest) const {
  nest->is_guarded = 0;
  nest->masked = 0;
  nest->active = 1;
  IndexReader reader(*space_, nest->loops, binding_);
  if (nest->block != nullptr && nest->block->guard.defined()) {
    read_guard(nest->block->guard, &reader, nest);
  }
  for (NestAccess& access : nest->accesses) {
    access.facts.clear();
    access.moves.assign(nest->loops.size(), Sym(0));
    for (const Expr index : access.indices) {
      access.facts.push_back(reader.read(index));
      for (std::size_t i = 0; i < access.moves.size(); ++i) {
        access.moves[i] = logical_or(access.moves[i], access.facts.back().moves[i]);
      }
    }
  }
  for (NestCondition& c : nest->conditions) c.moves = reader.moves(c.condition);
  for (NestWork& work : nest->work) {
    work.moves.assign(nest->loops.size(), Sym(0));
    for (const Expr variable : work.variables) {
      const std::vector<Sym> moves = reader.moves(variable);
      for (std::size_t i = 0; i < moves.size(); ++i) {
        work.moves[i] = logical_or(work.moves[i], moves[i]);
      }
    }
  }
}

// Bounds of sums are decided, and told to the reader; what else there is may fail.
void NestTable::read_guard(Expr condition, IndexReader* reader, Nest* nest) const {
  if (const auto* sides = condition.as<ir::And>()) {
    read_guard(sides->lhs, reader, nest);
    read_guard(sides->rhs, reader, nest);
    return;
  }
  const auto* lt = condition.as<ir::Lt>();
  const auto* le = condition.as<ir::Le>();
  const ir::BinaryNode* sides = lt;
  if (lt == nullptr) sides = le;
  const std::optional<Poly> bound = sides ? space_->polynomial(sides->rhs) : std::nullopt;
  const std::optional<Poly> first = sides ? at_zero(*space_, sides->lhs) : std::nullopt;
  if (!bound || !first) {
    nest->is_guarded = 1;
    return;
  }
  const Sym room = max(0, space_->symbol((lt != nullptr ? *bound - 1 : *bound) - *first));
  const IndexFacts facts = reader->read(sides->lhs);
  const Sym reach = facts.reach[0];
  reader->limit(sides->lhs, room);
  nest->is_guarded = logical_or(nest->is_guarded, less(room, reach - 1));
  nest->active *= min(1, (room + 1) / reach);
  // The last of the vectors along the guarded axis is cut, unless the axis ends with a whole one.
  Sym vectors = 1, lanes = 1;
  for (std::size_t i = 0; i < nest->loops.size(); ++i) {
    const NestLoop& loop = nest->loops[i];
    const bool is_vector = loop.kind == ir::LoopKind::kVectorized;
    (is_vector ? lanes : vectors) *= select(facts.moves[i], loop.extent, 1);
  }
  const Sym whole = floor((room + 1) / lanes) * lanes;
  const Sym is_cut =
      logical_and(less(1, lanes), logical_and(less(whole, room + 1), less(room, reach - 1)));
  nest->masked = max(nest->masked, select(is_cut, 1 / vectors, 0));
}

void NestTable::find_alloc_depths() {
  const std::size_t num_buffers = program_->buffers().size();
  std::vector<const Nest*> first(num_buffers, nullptr);
  alloc_depth_.assign(num_buffers, 0);
  for (const Nest& nest : nests_) {
    for (const NestAccess& access : nest.accesses) {
      const auto b = static_cast<std::size_t>(access.buffer.value);
      const int num_loops = static_cast<int>(nest.loops.size());
      if (first[b] == nullptr) {
        first[b] = &nest;
        alloc_depth_[b] = num_loops;
      }
      int common = 0;
      const int limit = std::min(alloc_depth_[b], num_loops);
      while (common < limit && first[b]->loops[static_cast<std::size_t>(common)].id ==
                                   nest.loops[static_cast<std::size_t>(common)].id) {
        ++common;
      }
      alloc_depth_[b] = common;
    }
  }
  access_depth_ = alloc_depth_;
}

void NestTable::compute_shapes() {
  shapes_.resize(program_->buffers().size());
  declared_shapes_.resize(shapes_.size());
  for (std::size_t b = 0; b < shapes_.size(); ++b) {
    const ir::Buffer& buffer = program_->buffers()[b];
    for (const Expr extent : buffer.shape) {
      declared_shapes_[b].push_back(max(1, space_->value(extent).value_or(1)));
    }
    if (buffer.role == ir::BufferRole::kIntermediate) {
      shapes_[b].assign(declared_shapes_[b].size(), Sym(1));
    } else {
      alloc_depth_[b] = 0;
      shapes_[b] = declared_shapes_[b];
    }
  }
  for (const Nest& nest : nests_) {
    for (const NestAccess& access : nest.accesses) {
      const auto b = static_cast<std::size_t>(access.buffer.value);
      const ir::Buffer& buffer = program_->buffers()[b];
      if (buffer.role != ir::BufferRole::kIntermediate) continue;
      // Threads share a buffer in shared memory, wherever their loops stand.
      std::vector<bool> is_kept(nest.loops.size());
      for (std::size_t i = 0; i < is_kept.size(); ++i) {
        const ir::LoopKind kind = nest.loops[i].kind;
        const bool is_thread = ir::is_thread_axis(kind) && !ir::is_block_axis(kind);
        is_kept[i] = static_cast<int>(i) >= alloc_depth_[b] ||
                     (buffer.scope == ir::Scope::kShared && is_thread);
      }
      const std::vector<Sym> used = box(nest, access, is_kept);
      for (std::size_t d = 0; d < used.size(); ++d) {
        shapes_[b][d] = max(shapes_[b][d], used[d]);
      }
    }
  }
}

// Parts of a packed buffer begin apart, and what cannot be told begins at its start.
void NestTable::number_slices() {
  std::vector<std::vector<std::vector<Poly>>> begins(program_->buffers().size());
  for (Nest& nest : nests_) {
    for (NestAccess& a : nest.accesses) {
      std::vector<Poly> begin;
      for (const Expr index : a.indices) {
        begin.push_back(at_zero(*space_, index).value_or(Poly(0)));
      }
      auto& known = begins[static_cast<std::size_t>(a.buffer.value)];
      const auto at = std::find_if(known.begin(), known.end(), [&](const auto& other) {
        return std::equal(begin.begin(), begin.end(), other.begin(),
                          [](const Poly& x, const Poly& y) { return (x - y).is(0); });
      });
      a.slice = static_cast<int>(at - known.begin());
      if (at == known.end()) known.push_back(std::move(begin));
    }
  }
}

// A parameter that one nest writes goes to memory; what several write in turn, as a sum and its
// start do, need not in between.
void NestTable::find_registers() {
  std::vector<int> writers(program_->buffers().size(), 0);
  for (const Nest& nest : nests_) {
    for (const NestAccess& a : nest.accesses) {
      if (a.is_write) ++writers[static_cast<std::size_t>(a.buffer.value)];
    }
  }
  for (std::size_t b = 0; b < writers.size(); ++b) {
    const bool is_intermediate = program_->buffers()[b].role == ir::BufferRole::kIntermediate;
    in_registers_.push_back(writers[b] > (is_intermediate ? 0 : 1) ? 1 : 0);
  }
  for (const Nest& nest : nests_) {
    for (const NestAccess& a : nest.accesses) {
      const auto b = static_cast<std::size_t>(a.buffer.value);
      // A sum whose start shares all its loops is indexed all the same inside the sum's own.
      const bool is_sum = a.is_read && a.is_write;
      Sym in_sum = 0;
      for (std::size_t i = 0; i < nest.loops.size(); ++i) {
        const NestLoop& loop = nest.loops[i];
        const Sym is_indexed = logical_and(less(1, loop.extent), a.moves[i]);
        const bool is_named =
            loop.kind == ir::LoopKind::kUnrolled || loop.kind == ir::LoopKind::kVectorized;
        const Sym counts = static_cast<int>(i) >= access_depth_[b] ? Sym(1) : in_sum;
        if (!is_named)
          in_registers_[b] =
              logical_and(in_registers_[b], logical_not(logical_and(counts, is_indexed)));
        if (is_sum)
          in_sum = logical_or(in_sum, logical_and(less(1, loop.extent), logical_not(a.moves[i])));
      }
    }
  }
}

bool NestTable::is_written_after(const Nest& nest, ir::BufferId buffer) const {
  return std::any_of(
      nests_.begin() + (&nest - nests_.data()) + 1, nests_.end(), [&](const Nest& later) {
        return has_access(later,
                          [&](const NestAccess& a) { return a.buffer == buffer && a.is_write; });
      });
}

void NestTable::find_reductions() {
  holds_reduction_.resize(program_->buffers().size());
  for (const Nest& nest : nests_) {
    const bool reads_sums = has_access(nest, [&](const NestAccess& a) {
      return a.is_read && (a.is_write || holds_reduction(a.buffer));
    });
    for (const NestAccess& a : nest.accesses) {
      if (a.is_write && reads_sums)
        holds_reduction_[static_cast<std::size_t>(a.buffer.value)] = true;
    }
  }
}

std::vector<Sym> NestTable::box(const Nest& nest, const NestAccess& a,
                                const std::vector<bool>& is_kept) const {
  std::vector<Sym> trips;
  bool is_suffix = true;  // what the facts by depth already say
  std::size_t first = 0;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    trips.push_back(is_kept[i] ? nest.loops[i].extent : Sym(1));
    if (is_kept[i]) continue;
    is_suffix = is_suffix && first == i;
    first = i + 1;
  }
  if (!is_suffix) return box_within(nest, a, trips);
  const std::vector<Sym>& full = declared_shapes_[static_cast<std::size_t>(a.buffer.value)];
  std::vector<Sym> out;
  for (std::size_t d = 0; d < a.facts.size(); ++d) {
    out.push_back(min(full[d], a.facts[d].reach[first]));
  }
  return out;
}

std::vector<Sym> NestTable::box_within(const Nest& nest, const NestAccess& a,
                                       const std::vector<Sym>& trips) const {
  std::vector<NestLoop> loops = nest.loops;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].extent.same(trips[i])) continue;
    loops[i].extent = trips[i];
    loops[i].trips = space_->poly(trips[i]);
  }
  IndexReader reader(*space_, loops, binding_);
  if (nest.block != nullptr && nest.block->guard.defined()) {
    Nest limited;  // what the guard says besides is of no interest
    read_guard(nest.block->guard, &reader, &limited);
  }
  const std::vector<Sym>& full = declared_shapes_[static_cast<std::size_t>(a.buffer.value)];
  std::vector<Sym> out;
  for (std::size_t d = 0; d < a.indices.size(); ++d) {
    out.push_back(min(full[d], reader.read(a.indices[d]).reach[0]));
  }
  return out;
}

void NestTable::compute_strides() {
  for (std::size_t b = 0; b < shapes_.size(); ++b) {
    std::vector<Sym> strides(shapes_[b].size());
    Sym elements = 1;
    for (std::size_t d = shapes_[b].size(); d-- > 0;) {
      for (const RowAlignment& row : alignments_) {
        if (row.buffer != program_->buffers()[b].id || row.axis != d) continue;
        const auto factor = static_cast<double>(std::max<int64_t>(row.factor, 1));
        const auto offset = static_cast<double>(row.offset);
        elements = ceil(max(0, elements - offset) / factor) * factor + offset;
      }
      strides[d] = elements;
      elements *= shapes_[b][d];
    }
    strides_.push_back(std::move(strides));
  }
}

Sym NestTable::address_step(const NestAccess& a, std::size_t depth) const {
  const std::vector<Sym>& stride = strides(a.buffer);
  Sym total = 0;
  for (std::size_t d = a.facts.size(); d > 0; --d) {
    total += stride[d - 1] * a.facts[d - 1].step[depth];
  }
  return total;
}

}  // namespace prunerc::costmodel
