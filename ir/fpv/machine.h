// Runs FpCode in one FpWorld, with every check on. Internal.
#ifndef PRUNERC_IR_FPV_MACHINE_H_
#define PRUNERC_IR_FPV_MACHINE_H_

#include "ir/fpv/code.h"
#include "ir/fpv/cone.h"
#include "ir/fpv/lanes.h"
#include "ir/fpv/world.h"
#include "ir/fpv/zero_array.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace prunerc::ir {

/// The elements of one buffer, and what is known of each. An element is written if its stamp is the
/// buffer's. Shadows, per concurrency, hold who last wrote and read it, and in scope local which
/// threads of which kernel have the value.
struct FpMemory {
  ZeroArray<uint32_t> p, q, p2, q2;  // floats; the second pair of wide worlds alone
  ZeroArray<uint32_t> cone;          // of floats that are no inputs: see FpCones
  ZeroArray<int64_t> v;              // integers and bool
  ZeroArray<uint32_t> written;
  int input = -1;  // number of an input whose elements are made when they are read
  uint32_t stamp = 1;
  std::array<ZeroArray<uint64_t>, kNumConcurrencies> writer, reader, owner;
  std::array<uint64_t, kNumConcurrencies> forgotten_at = {};  // older shadows mean nothing

  FpValue value(std::size_t at) const {
    if (p2.empty()) return {p[at], q[at]};
    return {p[at], q[at], p2[at], q2[at]};
  }
  void set(std::size_t at, FpValue x) {
    p[at] = x.p;
    q[at] = x.q;
    if (p2.empty()) return;
    p2[at] = x.p2;
    q2[at] = x.q2;
  }
};

enum class FpFailure : uint8_t { kNone, kInvalid, kUnsupported };

class FpMachine {
 public:
  FpMachine(const FpCode& code, FpWorld& world, int64_t max_steps);

  /// Runs from fresh inputs. False: see failure() and why().
  bool run();
  FpFailure failure() const { return failure_; }
  const std::string& why() const { return why_; }
  const FpMemory& memory(int32_t buffer) const { return memory_[static_cast<std::size_t>(buffer)]; }
  int64_t steps() const { return steps_; }
  /// Of any float that is an output and matters. Integers that are made of floats are not followed.
  FpCone outputs() const;
  /// All arguments that were hashed, each once.
  const FpPoints& points() const { return points_; }
  /// "C[1, 2]".
  std::string element_name(int32_t buffer, int64_t position) const;

 private:
  struct Place {  // of an access, in the lanes that run
    bool is_affine = true;
    bool in_bounds = true;  // in all lanes, masked ones included
    int64_t base = 0, stride = 0;
    int64_t at[kLanes];  // unless affine
    int64_t position(int lane) const { return is_affine ? base + stride * lane : at[lane]; }
  };
  // The running iteration of the loops of one concurrency. A launch has a range of names; in it a
  // thread's is the sum of (index + 1) * stride over the axes that it stands in.
  struct Level {
    bool is_active = false;
    uint64_t launch = 0;  // what has a smaller name happened before
    uint64_t me = 0;      // of lane 0
    uint64_t lane_step = 0;
  };

  // machine.cc
  void set_inputs();
  void set_input(FpMemory& m, int input, DType dtype, int64_t position);
  bool fill(const FpAccess& a, const Place& place);
  void exec(int32_t s);
  void exec_loop(const FpStmt& s);
  void exec_lanes(const FpStmt& s);
  bool lanes_overlap(const FpStmt& s);
  void exec_block(const FpStmt& s);
  bool bind(const FpStmt& block, const FpIter& iter);
  void exec_init(const FpStmt& s);
  void exec_under(int32_t s, const IntLanes& condition, bool wanted);
  void exec_if(const FpStmt& s);
  void set_var(int32_t slot, int64_t value) {
    vars_[static_cast<std::size_t>(slot)] = value;
    ++version_;
  }
  void enter(const FpStmt& loop, Level* saved);
  bool step(int64_t n);

  // machine_memory.cc
  void exec_store(const FpStmt& s);
  void reduce(const FpStmt& s);
  void reduce_floats(const FpStmt& s, DType dtype, FpMemory& m, std::size_t at);
  void load_floats(int32_t access, int d);
  void load_ints(int32_t access, int d);
  bool locate(const FpAccess& a, int d, Place* out);
  bool check_bounds(const FpAccess& a, const FpAccess::Check& check, int d, Place* out);
  bool check_written(const FpAccess& a, const Place& place);
  int64_t first_race(const FpAccess& a, const Place& place, bool writes);
  bool note_reads(const FpAccess& a, const Place& place);
  bool note_writes(const FpAccess& a, const Place& place);
  bool races(const FpAccess& a, std::size_t level, int64_t position, uint64_t me, bool writes);
  bool meets(std::size_t level, uint64_t a, uint64_t b) const;
  void forget(int32_t buffer);
  // machine_cone.cc
  uint32_t loaded_cone(const FpMemory& m, const Place& place);
  void store_cone(FpMemory& m, const Place& place, uint32_t cone);
  FpCone extreme_cone(const FpCone& a, FpKinds a_kinds, double n, const FloatLanes& b, int count);
  FpCone call_cone(const FpExpr& n, const FloatLanes& a, const FloatLanes& b, int count);
  FpCone integer_cone(const IntLanes& a) const;
  FpKinds kinds_of(const FloatLanes& a) const;
  int num_on() const;
  // machine_owner.cc
  bool check_owners(const FpAccess& a, const Place& place);
  void note_owners(const FpAccess& a, const Place& place);
  uint64_t holder(std::size_t level, int lane) const;
  bool holds(std::size_t level, uint64_t owner, uint64_t reader) const;

  // machine_expr.cc
  void eval_float(int32_t e, int d);
  void eval_int(int32_t e, int d);
  void eval_affine(const FpAffine& a, int d);
  void eval_arithmetic(const FpExpr& n, int d);
  void eval_comparison(const FpExpr& n, int d);
  void eval_logic(const FpExpr& n, int d);
  void eval_unary(const FpExpr& n, int d);
  void eval_field(const FpExpr& n, int d);
  void eval_scalar_calls(const FpExpr& n, int d);
  template <typename Lanes, typename Eval>
  void eval_select(const FpExpr& n, int d, std::vector<Lanes>& lanes, Eval eval);
  int64_t base_of(const FpAffine& a, int d);
  int64_t slot_value(int32_t slot, int d);

  bool is_on(int lane) const { return mask_ == nullptr || mask_->on[lane] != 0; }
  int first_on() const;
  bool fail(FpFailure kind, std::string why) {
    if (failure_ == FpFailure::kNone) {
      failure_ = kind;
      why_ = std::move(why);
    }
    return false;
  }
  bool failed() const { return failure_ != FpFailure::kNone; }

  const FpCode& code_;
  FpWorld& world_;
  int64_t max_steps_;
  std::vector<FpValue> constants_;
  std::vector<int64_t> vars_;       // by slot
  std::vector<uint64_t> versions_;  // of slots that are expressions: when they were evaluated
  uint64_t version_ = 1;
  std::vector<FloatLanes> f_;  // registers, by depth
  std::vector<IntLanes> i_;
  std::vector<FpMemory> memory_;
  FpCones cones_;
  uint32_t input_cone_ = 0;
  std::vector<uint32_t> constant_cones_;
  FpPoints points_;
  std::array<Level, kNumConcurrencies> levels_;
  std::array<uint64_t, kNumConcurrencies> next_name_ = {1, 1};
  std::array<std::array<uint64_t, kNumAxes + 1>, kNumConcurrencies> strides_ = {};  // last: of all
  uint64_t kernel_ = 0, num_kernels_ = 0;  // that runs, 0: none; that were started
  int n_ = 1;                              // lanes that run
  const Mask* mask_ = nullptr;             // those that count; null: all
  int64_t steps_ = 0;
  FpFailure failure_ = FpFailure::kNone;
  std::string why_;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_MACHINE_H_
