// What values are made of, as the machine makes them.
#include "ir/fpv/machine.h"

#include <algorithm>
#include <cmath>

namespace prunerc::ir {
namespace {

// A power counts as 4 / q where its exponent has a root, which it has with degree / q: D3.
constexpr double kDegreesOfExponent = 4;
// Of the whole numbers that hashed functions keep: world.cc.
constexpr double kBitsOfWhole = 8;

}  // namespace

FpKinds FpMachine::kinds_of(const FloatLanes& a) const {
  if (!a.may_be_lost) return {};
  if (a.is_uniform) return {!a.at(0).is_lost(), a.at(0).is_lost()};
  FpKinds out = {false, true};
  for (int l = 0; l < n_; ++l) out.kept |= is_on(l) && !a.at(l).is_lost();
  return out;
}

int FpMachine::num_on() const {
  if (mask_ == nullptr) return n_;
  return static_cast<int>(
      std::count_if(mask_->on, mask_->on + n_, [](uint32_t on) { return on != 0; }));
}

uint32_t FpMachine::loaded_cone(const FpMemory& m, const Place& place) {
  if (m.cone.empty()) return input_cone_;
  if (place.is_affine && place.stride == 1 && mask_ == nullptr) {
    const uint32_t* at = m.cone.data() + place.base;
    uint32_t differ = 0;
    for (int l = 1; l < n_; ++l) differ |= at[l] ^ at[0];
    if (differ == 0) return at[0];
  }
  const int first = first_on();
  const int lanes = place.is_affine && place.stride == 0 ? first + 1 : n_;
  const auto id_of = [&](int lane) {
    return m.cone[static_cast<std::size_t>(place.position(lane))];
  };
  uint32_t last = id_of(first), out = last;
  for (int l = first + 1; l < lanes; ++l) {
    if (!is_on(l) || id_of(l) == last) continue;
    last = id_of(l);
    out = cones_.made_of(FpConeOp::kJoin, out, last);
  }
  return out;
}

void FpMachine::store_cone(FpMemory& m, const Place& place, uint32_t id) {
  if (place.is_affine && place.stride == 1 && mask_ == nullptr) {
    std::fill_n(m.cone.data() + place.base, n_, id);
    return;
  }
  for (int l = 0; l < n_; ++l) {
    if (is_on(l)) m.cone[static_cast<std::size_t>(place.position(l))] = id;
  }
}

// Of a maximum or minimum of `a` and n values of `b`, in `count` lanes.
FpCone FpMachine::extreme_cone(const FpCone& a, FpKinds a_kinds, double n, const FloatLanes& b,
                               int count) {
  const FpCone& each = cones_.at(b.cone);
  FpPoints made;
  // An order hashes nothing.
  if (world_.order() == OrderModel::kSets) {
    made = point(a, a_kinds) + n * point(each, kinds_of(b));
  }
  points_ = points_ + count * made;
  return extreme_of(a, n, each, made);
}

// Integers are what they are in this run.
FpCone FpMachine::integer_cone(const IntLanes& a) const {
  const int first = a.is_uniform ? 0 : first_on();
  double largest = 0;
  bool differ = false;
  for (int l = first; l < (a.is_uniform ? 1 : n_); ++l) {
    if (!a.is_uniform && !is_on(l)) continue;
    largest = std::max(largest, std::fabs(static_cast<double>(a.at(l))));
    differ |= a.at(l) != a.at(first);
  }
  if (!differ && largest < 0x1p53) return cone_of(static_cast<double>(a.at(first)));
  FpCone out;
  // Of powers of two there are few, and a cone for each.
  out.size = size_below(largest > 1 ? std::exp2(std::ceil(std::log2(largest))) : largest);
  return out;
}

// Of an operation in `count` lanes, whose arguments are noted if they are hashed.
FpCone FpMachine::call_cone(const FpExpr& n, const FloatLanes& a, const FloatLanes& b, int count) {
  const FpKinds kinds = kinds_of(a);
  const FpCone& x = cones_.at(a.cone);
  if (n.op == FpOp::kMinF || n.op == FpOp::kMaxF) return extreme_cone(x, kinds, 1, b, count);
  const bool is_call = n.op == FpOp::kCallF;
  const bool is_binary = is_call && n.b >= 0;
  const bool is_ratio =
      is_call && (n.intrinsic == Intrinsic::kSigmoid || n.intrinsic == Intrinsic::kTanh);
  const bool is_power = is_ratio || (is_call && n.intrinsic == Intrinsic::kExp);
  FpPoints made;
  // An exponential is a power, but that of an exponential is a hash.
  if (is_binary) {
    const FpKinds others = kinds_of(b);
    made = call_point(join(x, cones_.at(b.cone)),
                      {kinds.kept && others.kept, kinds.lost || others.lost});
  } else if (!is_power || kinds.lost) {
    made = call_point(x, kinds);
  }
  if (is_power && kinds.kept) {
    const bool is_twice = is_call && n.intrinsic == Intrinsic::kTanh;  // e^2x
    made = made + exponent_point(is_twice ? product(cone_of(2), x) : x);
  }
  points_ = points_ + count * made;
  FpCone out = kAtomCone;
  // A small whole number may be kept, also of what is one by its value alone.
  if (kinds.kept && !is_power) {
    out.size.high = out.size.term = std::clamp(x.size.high, 0.0, kBitsOfWhole);
  }
  if (is_power) {
    const double degree = kinds.kept ? x.num + x.den : 1;
    out.num = std::max(1.0, degree / kDegreesOfExponent);
    out.is_term = degree <= 2;
  }
  // (1 - e) / (1 + e).
  if (is_ratio) out = {out.num, out.num, false, {}, {.low = 0, .high = 1, .term = 1, .den = 1}};
  if (is_call && n.intrinsic == Intrinsic::kRsqrt) out = {0, 1, false, {}};
  out.points = x.points + made;
  if (is_binary) out.points = out.points + cones_.at(b.cone).points;
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
