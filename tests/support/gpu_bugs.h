// Bugs planted in lowered GPU programs, to see who notices: mistakes that lowering could make.
#ifndef PRUNERC_TESTS_SUPPORT_GPU_BUGS_H_
#define PRUNERC_TESTS_SUPPORT_GPU_BUGS_H_

#include "ir/program.h"

#include <string_view>

namespace prunerc::testing {

enum class GpuBug {
  kLostBarrier,   // one barrier is gone
  kWeakWait,      // a wait lets one more group of copies be under way
  kWrongStage,    // fetches go to the copy that is computed with
  kEarlyRelease,  // a pipelined buffer has one copy less: a stage is filled while it is read
  kShortFetch,    // a fetch into shared memory ends one iteration early
  kLostGuard,     // one condition before a store in memory is gone
  kNoZeroFill,    // what lies beyond the edge is fetched, not replaced by a constant
  kLostShuffle,   // one step of a reduction in a warp is gone
  kWrongLane,     // one such step takes the value of the lane before the right one
};
inline constexpr int kNumGpuBugs = 9;
std::string_view to_string(GpuBug bug);

/// Places of a lowered program (codegen::lower_gpu) that the bug fits: where it can do harm, as far
/// as the place alone tells. A block of one thread needs no barriers, for instance.
int count_sites(const ir::Program& lowered, GpuBug bug);
/// The program with the bug at one of them.
ir::Program plant(const ir::Program& lowered, GpuBug bug, int site);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_GPU_BUGS_H_
