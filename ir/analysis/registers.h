// Accesses of registers that several threads of a kernel might take for theirs; private to
// ir/analysis.
#ifndef PRUNERC_IR_ANALYSIS_REGISTERS_H_
#define PRUNERC_IR_ANALYSIS_REGISTERS_H_

#include "ir/analysis/ownership.h"
#include "ir/builder.h"
#include "ir/program.h"
#include "ir/thread_axis.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace prunerc::ir {

/// One load or store of a buffer of scope local.
struct RegisterUse {
  BufferId buffer;
  bool writes = false;
  std::vector<const Loop*> path;  // around it, outermost first
  std::size_t depth = 0;          // loops whose iterations cannot hand the value on
  std::vector<Expr> conditions;   // that hold there
  std::vector<Expr> element;      // subscripts, over the variables of loops
  std::vector<bool> combined;     // by loop: threads combine what they store
};

/// Loops around all uses of a buffer, in each iteration of which it starts without a value.
using RegisterAllocPoints = std::unordered_map<BufferId, std::vector<const Loop*>>;

struct Registers {
  std::vector<RegisterUse> uses;     // in program order
  RegisterAllocPoints alloc_points;  // of the buffers that are used in kernels beyond these
};
Registers find_registers(IrBuilder& b, const Program& program);

/// Where the first loop with a thread axis stands; path.size() if there is none.
std::size_t kernel_of(const std::vector<const Loop*>& path);

/// One index in the whole launch tells no threads apart.
inline bool is_unit(const Loop& loop) {
  const IntImm* extent = loop.extent.as<IntImm>();
  return extent != nullptr && extent->value == 1;
}
/// Which of the loop's iterations runs decides whose registers are meant.
inline bool has_owner(const Loop& loop) {
  return (is_block_axis(loop.loop_kind) || is_lane_axis(loop.loop_kind)) && !is_unit(loop);
}

/// Replays all accesses of the buffers in `alloc_points`.
OwnershipCheck replay_registers(const Program& program, const RegisterAllocPoints& alloc_points,
                                int64_t max_points);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_REGISTERS_H_
