#include "ir/fpv/machine.h"
#include "ir/int_math.h"

#include <algorithm>
#include <cstring>

namespace prunerc::ir {

void FpMachine::forget(int32_t buffer) {
  FpMemory& m = memory_[static_cast<std::size_t>(buffer)];
  ++m.stamp;
  // Iterations that run now are older: what they do to it from here on cannot race, it is theirs.
  for (std::size_t level = 0; level < kNumConcurrencies; ++level) {
    m.forgotten_at[level] = next_name_[level]++;
  }
}

bool FpMachine::check_bounds(const FpAccess& a, const FpAccess::Check& check, int d, Place* out) {
  const auto outside = [&](int64_t index) {
    return fail(FpFailure::kInvalid, "index " + std::to_string(index) + " of dimension " +
                                         std::to_string(check.dim) + " is outside buffer '" +
                                         code_.buffers[static_cast<std::size_t>(a.buffer)].name +
                                         "'");
  };
  if (check.index.varying.empty()) {
    const int64_t first = base_of(check.index, d);
    const auto index_of = [&](int lane) {
      return wrapping_add(first, wrapping_mul(check.index.lane_coefficient, lane));
    };
    const int64_t last = index_of(n_ - 1);
    if (std::min(first, last) >= 0 && std::max(first, last) < check.extent) return true;
    for (int l = 0; l < n_; ++l) {
      const int64_t index = index_of(l);
      if (is_on(l) && (index < 0 || index >= check.extent)) return outside(index);
    }
  } else {
    eval_affine(check.index, d);
    for (int l = 0; l < n_ && !failed(); ++l) {
      const int64_t index = i_[static_cast<std::size_t>(d)].at(l);
      if (is_on(l) && (index < 0 || index >= check.extent)) return outside(index);
    }
  }
  out->in_bounds = false;
  return !failed();
}

// Where the access goes in each lane; false after a failure.
bool FpMachine::locate(const FpAccess& a, int d, Place* out) {
  if (a.flat.varying.empty()) {
    out->base = base_of(a.flat, d);
    out->stride = a.flat.lane_coefficient;
  } else {
    eval_affine(a.flat, d);
    out->is_affine = false;
    out->in_bounds = mask_ == nullptr;
    for (int l = 0; l < n_; ++l) out->at[l] = i_[static_cast<std::size_t>(d)].at(l);
  }
  for (const FpAccess::Check& check : a.checks) {
    if (!check_bounds(a, check, d, out)) return false;
  }
  return !failed();
}

// Makes elements of an input that are read for the first time.
bool FpMachine::fill(const FpAccess& a, const Place& place) {
  FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  for (int l = 0; l < n_; ++l) {
    const int64_t position = is_on(l) ? place.position(l) : -1;
    if (position < 0 || m.written[static_cast<std::size_t>(position)] == m.stamp) continue;
    m.written[static_cast<std::size_t>(position)] = m.stamp;
    set_input(m, m.input, code_.buffers[static_cast<std::size_t>(a.buffer)].dtype, position);
  }
  return true;
}

bool FpMachine::check_written(const FpAccess& a, const Place& place) {
  const FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  if (m.input >= 0) return fill(a, place);
  if (m.written.empty()) return true;  // an input
  const int lanes = place.is_affine && place.stride == 0 ? 1 : n_;
  if (lanes == 1) {
    if (m.written[static_cast<std::size_t>(place.position(first_on()))] == m.stamp) return true;
  } else if (place.is_affine && place.stride == 1 && mask_ == nullptr) {
    const uint32_t* at = m.written.data() + place.base;
    uint32_t differ = 0;
    for (int l = 0; l < lanes; ++l) differ |= at[l] ^ m.stamp;
    if (differ == 0) return true;
  }
  for (int l = 0; l < n_; ++l) {
    const int64_t position = place.position(l);
    if (!is_on(l) || m.written[static_cast<std::size_t>(position)] == m.stamp) continue;
    return fail(FpFailure::kInvalid,
                element_name(a.buffer, position) + " is read before it is written");
  }
  return true;
}

// Whether two names of one launch are those of different threads: in some axis that both stand in
// they have different indices. What stands outside of an axis is every thread's along it.
bool FpMachine::meets(std::size_t level, uint64_t a, uint64_t b) const {
  const std::array<uint64_t, kNumAxes + 1>& strides = strides_[level];
  const uint64_t launch = levels_[level].launch;
  a -= launch;
  b -= launch;
  if (a == strides[kNumAxes] || b == strides[kNumAxes]) return true;  // several
  for (std::size_t axis = kNumAxes; axis-- > 0;) {
    const uint64_t x = a / strides[axis];
    const uint64_t y = b / strides[axis];
    if (x != 0 && y != 0 && x != y) return true;
    a -= x * strides[axis];
    b -= y * strides[axis];
  }
  return false;
}

bool FpMachine::races(const FpAccess& a, std::size_t level, int64_t position, uint64_t me,
                      bool writes) {
  FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  const uint64_t since = std::max(levels_[level].launch, m.forgotten_at[level]);
  uint64_t& writer = m.writer[level][static_cast<std::size_t>(position)];
  uint64_t& reader = m.reader[level][static_cast<std::size_t>(position)];
  const bool wrote = writer > since && writer != me && meets(level, writer, me);
  const bool read = reader > since && reader != me && meets(level, reader, me);
  if (writes) {
    writer = me;
    return wrote || read;
  }
  reader = read ? levels_[level].launch + strides_[level][kNumAxes] : me;
  return wrote;
}

// The first position at which an iteration meets a concurrent one; -1 if none does.
int64_t FpMachine::first_race(const FpAccess& a, const Place& place, bool writes) {
  for (std::size_t level = 0; level < kNumConcurrencies; ++level) {
    const Level& running = levels_[level];
    if (!a.may_race[level] || !running.is_active) continue;
    for (int l = 0; l < n_; ++l) {
      if (!is_on(l)) continue;
      const uint64_t me = running.me + running.lane_step * static_cast<uint64_t>(l);
      if (races(a, level, place.position(l), me, writes)) return place.position(l);
    }
  }
  return -1;
}

bool FpMachine::note_reads(const FpAccess& a, const Place& place) {
  if (const int64_t race = first_race(a, place, false); race >= 0) {
    return fail(FpFailure::kInvalid,
                "concurrent iterations write and read " + element_name(a.buffer, race));
  }
  return check_owners(a, place);
}

bool FpMachine::note_writes(const FpAccess& a, const Place& place) {
  FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  if (place.is_affine && place.stride == 1 && mask_ == nullptr) {
    std::fill_n(m.written.data() + place.base, n_, m.stamp);
  } else {
    for (int l = 0; l < n_; ++l) {
      if (is_on(l)) m.written[static_cast<std::size_t>(place.position(l))] = m.stamp;
    }
  }
  if (const int64_t race = first_race(a, place, true); race >= 0) {
    return fail(FpFailure::kInvalid, "concurrent iterations both touch " +
                                         element_name(a.buffer, race) + ", and one writes it");
  }
  note_owners(a, place);
  return true;
}

void FpMachine::load_floats(int32_t access, int d) {
  const FpAccess& a = code_.accesses[static_cast<std::size_t>(access)];
  FloatLanes& out = f_[static_cast<std::size_t>(d)];
  Place place;
  if (!locate(a, d, &place) || !check_written(a, place) || !note_reads(a, place)) {
    return out.set_uniform({});
  }
  const FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  out.cone = loaded_cone(m, place);
  if (place.is_affine && (place.stride == 0 || n_ == 1)) {
    const auto at = static_cast<std::size_t>(place.position(first_on()));
    return out.set_uniform(m.value(at));
  }
  out.is_uniform = false;
  if (place.is_affine && place.stride == 1 && (mask_ == nullptr || place.in_bounds)) {
    const std::size_t size = sizeof(uint32_t) * static_cast<std::size_t>(n_);
    std::memcpy(out.p, m.p.data() + place.base, size);
    std::memcpy(out.q, m.q.data() + place.base, size);
    if (world_.is_wide()) {
      std::memcpy(out.p2, m.p2.data() + place.base, size);
      std::memcpy(out.q2, m.q2.data() + place.base, size);
    }
  } else {
    for (int l = 0; l < n_; ++l) {
      const auto at = static_cast<std::size_t>(is_on(l) ? place.position(l) : 0);
      out.set(l, m.value(at));
    }
  }
  for (int l = 0; mask_ != nullptr && l < n_; ++l) {
    if (!is_on(l)) out.set(l, {});
  }
  out.find_flags(n_);
}

void FpMachine::load_ints(int32_t access, int d) {
  const FpAccess& a = code_.accesses[static_cast<std::size_t>(access)];
  Place place;
  const bool ok = locate(a, d, &place) && check_written(a, place) && note_reads(a, place);
  IntLanes& out = i_[static_cast<std::size_t>(d)];
  if (!ok) return out.set_uniform(0);
  const FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  if (place.is_affine && (place.stride == 0 || n_ == 1)) {
    return out.set_uniform(m.v[static_cast<std::size_t>(place.position(first_on()))]);
  }
  out.is_uniform = false;
  for (int l = 0; l < n_; ++l) {
    out.v[l] = is_on(l) ? m.v[static_cast<std::size_t>(place.position(l))] : 0;
  }
}

void FpMachine::reduce_floats(const FpStmt& s, DType dtype, FpMemory& m, std::size_t at) {
  const FloatLanes& rest = f_[0];
  const auto n = static_cast<double>(num_on());
  FpValue value = m.value(at);
  uint32_t& cone = m.cone[at];
  const auto of_all = [&](FpConeOp op) {
    return n == 1 ? rest.cone : cones_.made_of(op, rest.cone, static_cast<uint32_t>(n));
  };
  if (s.reduce_op == FpOp::kAddF) {
    value = world_.add(value, sum_lanes(world_, rest, mask_, n_));
    cone = cones_.made_of(FpConeOp::kSum, cone, of_all(FpConeOp::kSumOf));
  } else {
    FpValue values[kLanes];
    std::size_t count = 0;
    for (int l = 0; l < n_; ++l) {
      if (is_on(l)) values[count++] = rest.at(l);
    }
    if (s.reduce_op == FpOp::kMulF) {
      for (std::size_t i = 0; i < count; ++i) value = world_.mul(value, values[i]);
      cone = cones_.made_of(FpConeOp::kProduct, cone, of_all(FpConeOp::kProductOf));
    } else {
      cone = cones_.id_of(
          extreme_cone(cones_.at(cone), {!value.is_lost(), value.is_lost()}, n, rest, 1));
      const Extreme which = s.reduce_op == FpOp::kMaxF ? Extreme::kMax : Extreme::kMin;
      value = world_.extreme(which, dtype, value, std::span(values, count));
    }
  }
  m.set(at, value);
}

// element = element op rest, in all lanes the same element.
void FpMachine::reduce(const FpStmt& s) {
  const FpAccess& a = code_.accesses[static_cast<std::size_t>(s.slot)];
  const DType dtype = code_.buffers[static_cast<std::size_t>(a.buffer)].dtype;
  if (s.is_float) {
    eval_float(s.rest, 0);
  } else {
    eval_int(s.rest, 0);
  }
  Place place;
  if (failed() || !locate(a, 1, &place) || !check_written(a, place) || !note_reads(a, place))
    return;
  FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  const auto at = static_cast<std::size_t>(place.base);
  if (s.is_float) {
    reduce_floats(s, dtype, m, at);
  } else {
    int64_t value = m.v[at];
    for (int l = 0; l < n_; ++l) {
      if (!is_on(l)) continue;
      const int64_t x = i_[0].at(l);
      value = s.reduce_op == FpOp::kAddI   ? wrap_to(dtype, wrapping_add(value, x))
              : s.reduce_op == FpOp::kMulI ? wrap_to(dtype, wrapping_mul(value, x))
              : s.reduce_op == FpOp::kMaxI ? std::max(value, x)
                                           : std::min(value, x);
    }
    m.v[at] = value;
  }
  note_writes(a, place);
}

void FpMachine::exec_store(const FpStmt& s) {
  const FpAccess& a = code_.accesses[static_cast<std::size_t>(s.slot)];
  const bool one_element = a.flat.lane_coefficient == 0 && a.flat.varying.empty();
  if (s.reduce_op != FpOp::kConstI && one_element && n_ > 1) return reduce(s);
  if (s.is_float) {
    eval_float(s.expr, 0);
  } else {
    eval_int(s.expr, 0);
  }
  Place place;
  if (failed() || !locate(a, 1, &place) || !note_writes(a, place)) return;
  FpMemory& m = memory_[static_cast<std::size_t>(a.buffer)];
  const bool is_dense = place.is_affine && place.stride == 1 && mask_ == nullptr;
  if (!s.is_float) {
    for (int l = 0; l < n_; ++l) {
      if (is_on(l)) m.v[static_cast<std::size_t>(place.position(l))] = i_[0].at(l);
    }
    return;
  }
  FloatLanes& value = f_[0];
  store_cone(m, place, value.cone);
  if (is_dense && n_ > 1) {
    value.spread(n_);
    const std::size_t size = sizeof(uint32_t) * static_cast<std::size_t>(n_);
    std::memcpy(m.p.data() + place.base, value.p, size);
    std::memcpy(m.q.data() + place.base, value.q, size);
    if (!world_.is_wide()) return;
    std::memcpy(m.p2.data() + place.base, value.p2, size);
    std::memcpy(m.q2.data() + place.base, value.q2, size);
    return;
  }
  // In the order of the lanes: the last one stays.
  for (int l = 0; l < n_; ++l) {
    if (!is_on(l)) continue;
    m.set(static_cast<std::size_t>(place.position(l)), value.at(l));
  }
}

}  // namespace prunerc::ir
