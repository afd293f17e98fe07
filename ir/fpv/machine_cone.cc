// What values are made of, as the machine makes them.
#include "ir/fpv/machine.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

// A power counts as 4 / q where its exponent has a root, which it has with degree / q: D3.
constexpr double kDegreesOfExponent = 4;

// Whether an exponential of one of n lanes is a power.
bool is_any_kept(const FloatLanes& a, int n) {
  if (!a.may_be_lost) return true;
  for (int l = 0; l < (a.is_uniform ? 1 : n); ++l) {
    if (!a.at(l).is_lost()) return true;
  }
  return false;
}

}  // namespace

int FpMachine::num_on() const {
  if (mask_ == nullptr) return n_;
  return static_cast<int>(
      std::count_if(mask_->on, mask_->on + n_, [](uint32_t on) { return on != 0; }));
}

FpCone FpMachine::loaded_cone(const FpMemory& m, const Place& place) const {
  if (m.cone.empty()) return kAtomCone;  // an input
  if (place.is_affine && place.stride == 1 && mask_ == nullptr) {
    const uint32_t* at = m.cone.data() + place.base;
    uint32_t differ = 0;
    for (int l = 1; l < n_; ++l) differ |= at[l] ^ at[0];
    if (differ == 0) return cones_.at(at[0]);
  }
  const int first = first_on();
  const int lanes = place.is_affine && place.stride == 0 ? first + 1 : n_;
  const auto id_of = [&](int lane) {
    return m.cone[static_cast<std::size_t>(place.position(lane))];
  };
  uint32_t last = id_of(first);
  FpCone out = cones_.at(last);
  for (int l = first + 1; l < lanes; ++l) {
    if (!is_on(l) || id_of(l) == last) continue;
    last = id_of(l);
    out = join(out, cones_.at(last));
  }
  return out;
}

void FpMachine::store_cone(FpMemory& m, const Place& place, const FpCone& cone) {
  const uint32_t id = cones_.id_of(cone);
  if (place.is_affine && place.stride == 1 && mask_ == nullptr) {
    std::fill_n(m.cone.data() + place.base, n_, id);
    return;
  }
  for (int l = 0; l < n_; ++l) {
    if (is_on(l)) m.cone[static_cast<std::size_t>(place.position(l))] = id;
  }
}

// Of a maximum or minimum of `a` and n values of `b`, in `count` lanes.
FpCone FpMachine::extreme_cone(const FpCone& a, bool a_may_be_lost, double n, const FloatLanes& b,
                               int count) {
  FpPoints made;
  // An order hashes nothing.
  if (world_.order() == OrderModel::kSets) {
    made = point(a, a_may_be_lost) + n * point(b.cone, b.may_be_lost);
  }
  points_ = points_ + count * made;
  return extreme_of(a, n, b.cone, made);
}

// Of an operation in `count` lanes, whose arguments are noted if they are hashed.
FpCone FpMachine::call_cone(const FpExpr& n, const FloatLanes& a, const FloatLanes& b, int count) {
  if (n.op == FpOp::kOfInt) return {};
  if (n.op == FpOp::kMinF || n.op == FpOp::kMaxF) {
    return extreme_cone(a.cone, a.may_be_lost, 1, b, count);
  }
  const bool is_call = n.op == FpOp::kCallF;
  const bool is_binary = is_call && n.b >= 0;
  const bool is_ratio =
      is_call && (n.intrinsic == Intrinsic::kSigmoid || n.intrinsic == Intrinsic::kTanh);
  const bool is_power = is_ratio || (is_call && n.intrinsic == Intrinsic::kExp);
  FpPoints made;
  // An exponential is a power, but that of an exponential is a hash.
  if (!is_power || a.may_be_lost) {
    made = is_binary ? point(join(a.cone, b.cone), a.may_be_lost || b.may_be_lost)
                     : point(a.cone, a.may_be_lost);
  }
  points_ = points_ + count * made;
  FpCone out = kAtomCone;
  if (is_power) {
    const double degree = is_any_kept(a, n_) ? a.cone.num + a.cone.den : 1;
    out.num = std::max(1.0, degree / kDegreesOfExponent);
    out.is_term = degree <= 2;
  }
  if (is_ratio) out = {out.num, out.num, false, {}};
  if (is_call && n.intrinsic == Intrinsic::kRsqrt) out = {0, 1, false, {}};
  out.points = a.cone.points + made;
  if (is_binary) out.points = out.points + b.cone.points;
  return out;
}

FpCone FpMachine::outputs() const {
  FpCone all;
  for (std::size_t b = 0; b < code_.buffers.size(); ++b) {
    const FpBuffer& buffer = code_.buffers[b];
    if (buffer.role != BufferRole::kOutput || !is_float(buffer.dtype)) continue;
    const FpMemory& m = memory_[b];
    uint32_t last = 0;
    find_watched(code_, static_cast<int32_t>(b), [&](int64_t position) {
      const uint32_t id = m.cone[static_cast<std::size_t>(position)];
      if (id != last) all = join(all, cones_.at(id));
      last = id;
      return false;
    });
  }
  return all;
}

}  // namespace prunerc::ir
