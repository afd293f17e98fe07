// Operators with schedules for a GPU, as a person would write them: grids of blocks and threads,
// operands in shared memory, sums in registers, reductions across threads.
#ifndef PRUNERC_TESTS_SUPPORT_GPU_PROGRAMS_H_
#define PRUNERC_TESTS_SUPPORT_GPU_PROGRAMS_H_

#include "ir/program.h"
#include "schedule/trace/trace.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::testing {

/// An unscheduled operator, a schedule, and what that makes of it.
struct GpuProgram {
  std::string name;  // of the shape: "matmul", "matmul_ragged"
  ir::Program base;
  schedule::Trace trace;
  ir::Program scheduled;
  std::string arch = "sm_80";  // the least that has its instructions
};

/// Those of tests/golden/gpu: NAME.trace applied to NAME.prc and, where there is one, to
/// NAME_ragged.prc, whose extents no tile divides. Small enough to be interpreted. Aborts if a file
/// cannot be read or applied.
std::vector<GpuProgram> gpu_programs();

/// The schedule NAME.trace alone, for other shapes of the operator. Ids are those of a program that
/// ir::renumber gives.
schedule::Trace gpu_trace(std::string_view name);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_GPU_PROGRAMS_H_
