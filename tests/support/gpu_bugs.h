// Bugs planted in lowered GPU programs, to see who notices: mistakes that lowering could make.
#ifndef PRUNERC_TESTS_SUPPORT_GPU_BUGS_H_
#define PRUNERC_TESTS_SUPPORT_GPU_BUGS_H_

#include "ir/program.h"

#include <optional>
#include <string_view>

namespace prunerc::testing {

enum class GpuBug {
  kLostBarrier,  // one barrier is gone
  kWeakWait,     // a wait lets one more group of copies be under way
  kWrongStage,   // fetches go to the copy that is computed with
  kShortFetch,   // a fetch into shared memory ends one iteration early
  kLostGuard,    // one condition is gone
  kLostShuffle,  // one step of a reduction in a warp is gone
};
inline constexpr int kNumGpuBugs = 6;
std::string_view to_string(GpuBug bug);

/// Places of a lowered program (codegen::lower_gpu) that the bug fits.
int count_sites(const ir::Program& lowered, GpuBug bug);
/// The program with the bug at one of them.
ir::Program plant(const ir::Program& lowered, GpuBug bug, int site);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_GPU_BUGS_H_
