// Registers of 64 lanes, and the field operations on them. Internal.
#ifndef PRUNERC_IR_FPV_LANES_H_
#define PRUNERC_IR_FPV_LANES_H_

#include "ir/fpv/world.h"

#include <cstdint>

namespace prunerc::ir {

inline constexpr int kLanes = 64;

/// Which lanes count; null: all.
struct Mask {
  alignas(64) uint32_t on[kLanes] = {};  // 0 or 1
};

/// Float values. A uniform register has its value in lane 0; the others hold nothing.
struct FloatLanes {
  alignas(64) uint32_t p[kLanes] = {};
  alignas(64) uint32_t q[kLanes] = {};
  alignas(64) uint32_t p2[kLanes] = {};
  alignas(64) uint32_t q2[kLanes] = {};
  bool is_uniform = false;
  bool may_be_lost = false;
  bool may_be_special = false;
  uint32_t cone = 0;  // of all lanes: see FpCones; operations on lanes leave it as it is
  FpValue at(int lane) const {
    const int i = is_uniform ? 0 : lane;
    return {p[i], q[i], p2[i], q2[i]};
  }
  void set(int lane, FpValue v) {
    p[lane] = v.p;
    q[lane] = v.q;
    p2[lane] = v.p2;
    q2[lane] = v.q2;
  }
  /// One value in all lanes.
  void set_uniform(FpValue v) {
    set(0, v);
    is_uniform = true;
    may_be_lost = v.is_lost();
    may_be_special = v.is_special();
  }
  /// Fills lanes 0 .. n of a uniform register.
  void spread(int n);
  /// Looks at lanes 0 .. n.
  void find_flags(int n);
};

/// Integer and bool values.
struct IntLanes {
  alignas(64) int64_t v[kLanes] = {};
  bool is_uniform = false;
  int64_t at(int lane) const { return v[is_uniform ? 0 : lane]; }
  void set_uniform(int64_t value) {
    v[0] = value;
    is_uniform = true;
  }
  void spread(int n);
};

/// a = a op b in n lanes. Lanes that do not count may hold anything below the modulus.
void add_lanes(FpWorld& world, FloatLanes& a, FloatLanes& b, int n);
void sub_lanes(FpWorld& world, FloatLanes& a, FloatLanes& b, int n);
void mul_lanes(FpWorld& world, FloatLanes& a, FloatLanes& b, int n);
/// a = a / b where the mask is on; elsewhere 0.
void div_lanes(FpWorld& world, FloatLanes& a, FloatLanes& b, const Mask* mask, int n);
/// The sum of n lanes.
FpValue sum_lanes(FpWorld& world, const FloatLanes& a, const Mask* mask, int n);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_LANES_H_
