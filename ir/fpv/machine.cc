#include "ir/fpv/machine.h"

#include "ir/int_math.h"
#include "ir/support/check.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

// Beyond what an expression of the deepest allowed nesting needs through slots.
constexpr int32_t kSpareDepth = 64;

}  // namespace

FpMachine::FpMachine(const FpCode& code, FpWorld& world, int64_t max_steps)
    : code_(code),
      world_(world),
      max_steps_(max_steps),
      vars_(code.slots.size(), 0),
      versions_(code.slots.size(), 0),
      f_(static_cast<std::size_t>(code.depth + kSpareDepth)),
      i_(static_cast<std::size_t>(code.depth + kSpareDepth)) {
  for (std::size_t level = 0; level < kNumConcurrencies; ++level) {
    uint64_t stride = 1;
    for (std::size_t axis = 0; axis < kNumAxes; ++axis) {
      strides_[level][axis] = stride;
      stride *= static_cast<uint64_t>(code.axes[level][axis]) + 1;
    }
    strides_[level][kNumAxes] = stride;
  }
  input_cone_ = cones_.id_of(kAtomCone);
  for (const FpConstant& c : code.constants) {
    constants_.push_back(world.of_float(c.value, c.dtype));
    const bool is_opaque = FpWorld::is_opaque(c.value, c.dtype);
    constant_cones_.push_back(cones_.id_of(is_opaque ? opaque_cone() : cone_of(c.value)));
  }
}

void FpMachine::set_inputs() {
  memory_.clear();
  memory_.resize(code_.buffers.size());
  // Inputs are numbered among themselves, so that two programs of one signature see the same.
  int input = 0;
  for (std::size_t b = 0; b < code_.buffers.size(); ++b) {
    const FpBuffer& buffer = code_.buffers[b];
    FpMemory& m = memory_[b];
    const auto count = static_cast<std::size_t>(buffer.num_elements);
    const bool is_input = buffer.role == BufferRole::kInput;
    if (is_float(buffer.dtype)) {
      m.p.reset(count);
      m.q.reset(count);
      if (world_.is_wide()) m.p2.reset(count);
      if (world_.is_wide()) m.q2.reset(count);
      if (!is_input) m.cone.reset(count);
    } else {
      m.v.reset(count);
    }
    // Of a sample little is read.
    const bool is_lazy = is_input && !code_.windows.empty();
    if (!is_input || is_lazy) m.written.reset(count);
    for (std::size_t level = 0; level < kNumConcurrencies && buffer.may_race; ++level) {
      m.writer[level].reset(count);
      m.reader[level].reset(count);
    }
    for (std::size_t level = 0; level < kNumConcurrencies && buffer.has_owners; ++level) {
      m.owner[level].reset(count);
    }
    if (!is_input) continue;
    if (is_lazy) m.input = input;
    for (int64_t i = 0; !is_lazy && i < buffer.num_elements; ++i) {
      set_input(m, input, buffer.dtype, i);
    }
    ++input;
  }
}

void FpMachine::set_input(FpMemory& m, int input, DType dtype, int64_t position) {
  const auto at = static_cast<std::size_t>(position);
  const auto which = static_cast<uint64_t>(input);
  if (is_float(dtype)) {
    m.set(at, world_.input(which, position));
  } else {
    m.v[at] = world_.int_input(dtype, which, position, code_.largest_param_extent);
  }
}

bool FpMachine::run() {
  set_inputs();
  exec(code_.root);
  if (failed()) return false;
  for (std::size_t b = 0; b < code_.buffers.size(); ++b) {
    if (code_.buffers[b].role != BufferRole::kOutput) continue;
    const FpMemory& m = memory_[b];
    const auto buffer = static_cast<int32_t>(b);
    const int64_t unwritten = find_watched(code_, buffer, [&](int64_t position) {
      return m.written[static_cast<std::size_t>(position)] != m.stamp;
    });
    if (unwritten < 0) continue;
    return fail(FpFailure::kInvalid,
                "output element " + element_name(buffer, unwritten) + " is never written");
  }
  if (world_.undefined()) return fail(FpFailure::kUnsupported, "arithmetic on infinities");
  if (world_.too_large()) return fail(FpFailure::kUnsupported, "so many maxima");
  return true;
}

std::string FpMachine::element_name(int32_t buffer, int64_t position) const {
  const FpBuffer& info = code_.buffers[static_cast<std::size_t>(buffer)];
  std::string indices;
  for (std::size_t d = info.shape.size(); d-- > 0;) {
    indices = std::to_string(position % info.shape[d]) + (indices.empty() ? "" : ", ") + indices;
    position /= info.shape[d];
  }
  return info.name + "[" + indices + "]";
}

bool FpMachine::step(int64_t n) {
  if (failed()) return false;
  steps_ += n;
  if (steps_ <= max_steps_) return true;
  return fail(FpFailure::kUnsupported, "more than " + std::to_string(max_steps_) + " steps");
}

int FpMachine::first_on() const {
  for (int l = 0; l < n_; ++l) {
    if (is_on(l)) return l;
  }
  return -1;
}

void FpMachine::exec(int32_t index) {
  if (index < 0 || failed()) return;
  const FpStmt& s = code_.stmts[static_cast<std::size_t>(index)];
  switch (s.kind) {
    case FpStmtKind::kSeq:
      for (int32_t i = 0; i < s.count; ++i) {
        exec(code_.children[static_cast<std::size_t>(s.first + i)]);
      }
      return;
    case FpStmtKind::kLoop: return exec_loop(s);
    case FpStmtKind::kLanes: return exec_lanes(s);
    case FpStmtKind::kBlock: return exec_block(s);
    case FpStmtKind::kStore: return exec_store(s);
    case FpStmtKind::kIf: return exec_if(s);
    case FpStmtKind::kForget:
      for (int32_t i = 0; i < s.count; ++i) {
        forget(code_.children[static_cast<std::size_t>(s.first + i)]);
      }
      return;
    case FpStmtKind::kKernel:
      kernel_ = ++num_kernels_;
      exec(s.body);
      kernel_ = 0;
      return;
  }
  PRUNERC_UNREACHABLE("statement kind");
}

// Starts a launch if the loop is the outermost one of its concurrency.
void FpMachine::enter(const FpStmt& loop, Level* saved) {
  const auto which = static_cast<std::size_t>(loop.concurrency);
  Level& level = levels_[which];
  *saved = level;
  if (level.is_active) return;
  level.is_active = true;
  level.launch = next_name_[which];
  level.me = level.launch;
  level.lane_step = 0;
  // One more name than there are threads: that of several.
  next_name_[which] += strides_[which][kNumAxes] + 1;
}

void FpMachine::exec_loop(const FpStmt& s) {
  eval_int(s.expr, 0);
  const int64_t extent = i_[0].v[0];
  const bool concurrent = s.concurrency != Concurrency::kNone;
  const auto which = static_cast<std::size_t>(std::max(0, static_cast<int>(s.concurrency)));
  const uint64_t stride = strides_[which][static_cast<std::size_t>(s.axis)];
  // Concurrent iterations have no order: every other world takes the other one.
  const bool backward = concurrent && !s.has_order && (world_.seed() & 1) != 0;
  Level saved;
  if (concurrent) enter(s, &saved);
  const uint64_t around = levels_[which].me;
  for (int64_t i = 0; i < extent && step(1); ++i) {
    const int64_t index = backward ? extent - 1 - i : i;
    if (concurrent) levels_[which].me = around + static_cast<uint64_t>(index + 1) * stride;
    set_var(s.slot, index);
    exec(s.body);
  }
  if (concurrent) levels_[which] = saved;
}

void FpMachine::exec_lanes(const FpStmt& s) {
  eval_int(s.expr, 0);
  const int64_t extent = i_[0].v[0];
  const bool concurrent = s.concurrency != Concurrency::kNone;
  const auto which = static_cast<std::size_t>(std::max(0, static_cast<int>(s.concurrency)));
  Level saved;
  if (concurrent) enter(s, &saved);
  const uint64_t around = levels_[which].me;
  if (concurrent) levels_[which].lane_step = strides_[which][static_cast<std::size_t>(s.axis)];
  for (int64_t start = 0; start < extent && !failed();) {
    n_ = static_cast<int>(std::min<int64_t>(kLanes, extent - start));
    set_var(s.slot, start);
    if (s.one_at_a_time || (s.num_pairs > 0 && n_ > 1 && lanes_overlap(s))) n_ = 1;
    if (!step(n_)) break;
    if (concurrent) {
      levels_[which].me = around + static_cast<uint64_t>(start + 1) * levels_[which].lane_step;
    }
    const int lanes = n_;
    exec(s.body);
    start += lanes;
  }
  n_ = 1;
  if (concurrent) levels_[which] = saved;
}

// Whether a store may touch what another access of the loop touches in another lane.
bool FpMachine::lanes_overlap(const FpStmt& s) {
  for (int32_t i = 0; i < s.num_pairs; ++i) {
    const auto [store, other] = code_.pairs[static_cast<std::size_t>(s.first_pair + i)];
    const FpAffine& a = code_.accesses[static_cast<std::size_t>(store)].flat;
    const FpAffine& b = code_.accesses[static_cast<std::size_t>(other)].flat;
    const int64_t a0 = base_of(a, 0);
    const int64_t b0 = base_of(b, 0);
    if (a0 == b0 && a.lane_coefficient == b.lane_coefficient && a.lane_coefficient != 0) continue;
    const int64_t a1 = wrapping_add(a0, wrapping_mul(a.lane_coefficient, n_ - 1));
    const int64_t b1 = wrapping_add(b0, wrapping_mul(b.lane_coefficient, n_ - 1));
    if (std::max(a0, a1) < std::min(b0, b1) || std::max(b0, b1) < std::min(a0, a1)) continue;
    return true;
  }
  return false;
}

// Runs s in the lanes where the condition is as wanted.
void FpMachine::exec_under(int32_t s, const IntLanes& condition, bool wanted) {
  if (s < 0 || failed()) return;
  if (condition.is_uniform) {
    if ((condition.v[0] != 0) == wanted) exec(s);
    return;
  }
  Mask mask;
  int count = 0;
  for (int l = 0; l < n_; ++l) {
    const bool on = is_on(l) && (condition.v[l] != 0) == wanted;
    mask.on[l] = on ? 1 : 0;
    count += on ? 1 : 0;
  }
  if (count == 0) return;
  const Mask* saved = mask_;
  mask_ = count == n_ ? nullptr : &mask;
  exec(s);
  mask_ = saved;
}

void FpMachine::exec_if(const FpStmt& s) {
  eval_int(s.expr, 0);
  if (failed()) return;
  const IntLanes condition = i_[0];
  exec_under(s.body, condition, true);
  exec_under(s.other, condition, false);
}

void FpMachine::exec_block(const FpStmt& s) {
  if (s.expr < 0) return exec_init(s);
  eval_int(s.expr, 0);
  if (failed()) return;
  const IntLanes& guard = i_[0];
  if (guard.is_uniform) {
    if (guard.v[0] != 0) exec_init(s);
    return;
  }
  Mask mask;
  int count = 0;
  for (int l = 0; l < n_; ++l) {
    const bool on = is_on(l) && guard.v[l] != 0;
    mask.on[l] = on ? 1 : 0;
    count += on ? 1 : 0;
  }
  if (count == 0) return;
  const Mask* saved = mask_;
  mask_ = count == n_ ? nullptr : &mask;
  exec_init(s);
  mask_ = saved;
}

bool FpMachine::bind(const FpStmt& block, const FpIter& iter) {
  eval_int(iter.extent, 0);
  const IntLanes extent = i_[0];
  eval_affine(iter.binding, 0);
  if (failed()) return false;
  for (int l = 0; l < n_; ++l) {
    const int64_t value = i_[0].at(l);
    if (!is_on(l) || (value >= 0 && value < extent.at(l))) continue;
    return fail(FpFailure::kInvalid,
                "variable '" + code_.names[static_cast<std::size_t>(iter.name)] + "' of block @B" +
                    std::to_string(block.block) + " takes value " + std::to_string(value) +
                    " outside its extent");
  }
  return true;
}

// The iteration variables, the init where all reduction iterations are 0, and the body.
void FpMachine::exec_init(const FpStmt& s) {
  IntLanes starts;
  starts.set_uniform(1);
  for (int32_t i = 0; i < s.count; ++i) {
    const FpIter& iter = code_.iters[static_cast<std::size_t>(s.first + i)];
    if (iter.needs_check && !bind(s, iter)) return;
    if (s.other < 0 || !iter.is_reduce) continue;
    eval_affine(iter.binding, 0);
    if (failed()) return;
    if (i_[0].is_uniform && starts.is_uniform) {
      starts.v[0] &= i_[0].v[0] == 0 ? 1 : 0;
      continue;
    }
    starts.spread(n_);
    for (int l = 0; l < n_; ++l) starts.v[l] &= i_[0].at(l) == 0 ? 1 : 0;
  }
  exec_under(s.other, starts, true);
  exec(s.body);
}

}  // namespace prunerc::ir
