// Scope local: registers. Each thread has a copy of its own, so that an element has the value that
// the program means in the threads that wrote it only. What is written outside of an axis every
// thread along it has written for itself; what threads reduce together they all get.
#include "ir/fpv/machine.h"

namespace prunerc::ir {

// Who the lane is, as a number: its kernel and, for each axis of the level, index + 1 or 0 outside.
uint64_t FpMachine::holder(std::size_t level, int lane) const {
  const Level& running = levels_[level];
  const uint64_t all = kernel_ * strides_[level][kNumAxes];
  if (kernel_ == 0 || !running.is_active) return all;
  return all + running.me + running.lane_step * static_cast<uint64_t>(lane) - running.launch;
}

bool FpMachine::holds(std::size_t level, uint64_t owner, uint64_t reader) const {
  const std::array<uint64_t, kNumAxes + 1>& strides = strides_[level];
  for (std::size_t axis = kNumAxes + 1; axis-- > 0;) {
    const uint64_t x = owner / strides[axis];
    const uint64_t y = reader / strides[axis];
    const bool is_kernel = axis == kNumAxes;
    if (x != y && (is_kernel || x != 0)) return false;
    owner -= x * strides[axis];
    reader -= y * strides[axis];
  }
  return true;
}

bool FpMachine::check_owners(const FpAccess& a, const Place& place) {
  if (!code_.buffers[static_cast<std::size_t>(a.buffer)].has_owners) return true;
  const FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  for (std::size_t level = 0; level < kNumConcurrencies; ++level) {
    for (int l = 0; l < n_; ++l) {
      if (!is_on(l)) continue;
      const uint64_t owner = m.owner[level][static_cast<std::size_t>(place.position(l))];
      const uint64_t reader = holder(level, l);
      if (owner == reader || holds(level, owner, reader)) continue;
      return fail(FpFailure::kInvalid,
                  element_name(a.buffer, place.position(l)) +
                      " of scope local is read by a thread that has not written it");
    }
  }
  return true;
}

void FpMachine::note_owners(const FpAccess& a, const Place& place) {
  if (!code_.buffers[static_cast<std::size_t>(a.buffer)].has_owners) return;
  FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  for (std::size_t level = 0; level < kNumConcurrencies; ++level) {
    const bool combines =
        level == static_cast<std::size_t>(Concurrency::kThread) && a.combined_axes != 0;
    for (int l = 0; l < n_; ++l) {
      if (!is_on(l)) continue;
      uint64_t owner = holder(level, l);
      for (std::size_t axis = 0; axis < kNumAxes && combines; ++axis) {
        if ((a.combined_axes >> axis & 1) == 0) continue;
        const uint64_t around = owner / strides_[level][axis + 1] * strides_[level][axis + 1];
        owner = around + (owner - around) % strides_[level][axis];
      }
      m.owner[level][static_cast<std::size_t>(place.position(l))] = owner;
    }
  }
}

}  // namespace prunerc::ir
