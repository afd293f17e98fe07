#include "codegen/lower/gpu.h"
#include "codegen/lower/homes.h"
#include "codegen/lower/kernel.h"
#include "ir/analysis/ownership.h"
#include "ir/thread_axis.h"

#include <algorithm>

namespace prunerc::codegen {

using namespace ir;

Result<Program> check_owners(const Program& program, const Target&) {
  PRUNERC_TRY_VOID(check_thread_ownership(program));
  return program;
}

Result<Program> place_gpu_buffers(const Program& program, const Target&) {
  IrBuilder b(program);
  Homes homes = find_homes(program);
  for (auto& [id, loops] : homes) {
    Buffer buffer = b.buffer(id);
    const bool in_thread = std::any_of(
        loops.begin(), loops.end(), [](const Loop* loop) { return is_lane_axis(loop->loop_kind); });
    const bool in_block = std::any_of(loops.begin(), loops.end(), [](const Loop* loop) {
      return is_block_axis(loop->loop_kind);
    });
    if (in_thread) {
      buffer.scope = Scope::kLocal;
    } else if (in_block) {
      if (buffer.scope != Scope::kLocal) buffer.scope = Scope::kShared;
    } else {
      // Several kernels, or one without blocks: memory outlives a launch only if it is global.
      loops.clear();
      buffer.scope = Scope::kGlobal;
    }
    b.set_buffer(buffer);
  }
  return b.finish(insert_allocs(b, program, homes));
}

}  // namespace prunerc::codegen
