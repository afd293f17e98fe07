// The kernels of a lowered program: what one launch does, and which of its loops are thread axes.
#ifndef PRUNERC_CODEGEN_LOWER_ANALYSIS_KERNEL_H_
#define PRUNERC_CODEGEN_LOWER_ANALYSIS_KERNEL_H_

#include "ir/builder.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace prunerc::codegen {

/// x, y, z.
using Dim3 = std::array<int64_t, 3>;
inline constexpr int kNumThreadDims = 3;

/// 0, 1, 2 for .x, .y, .z of a block or thread axis.
int axis_of(ir::LoopKind kind);

/// One launch. Borrows from its program.
struct Kernel {
  std::vector<const ir::Loop*> grid;  ///< block axes, outermost first, each directly in the last
  ir::Stmt body;                      ///< what one block does
  Dim3 blocks = {1, 1, 1};
  Dim3 threads = {1, 1, 1};
  int64_t num_threads() const { return threads[0] * threads[1] * threads[2]; }
};

/// The kernels in the order of their launches. A statement outside of all thread axes becomes a
/// kernel of one thread. Errors: ThreadKernel (a loop around a kernel that is no thread axis, block
/// axes that are not directly inside each other, an extent that is not constant).
Result<std::vector<Kernel>> find_kernels(const ir::Program& program);

/// The program with f(builder, kernel) in place of each kernel's body.
Result<ir::Program> map_kernels(
    const ir::Program& program,
    const std::function<Result<ir::Stmt>(ir::IrBuilder& b, const Kernel& kernel)>& f);

/// Has s a loop over threads of a block in it?
bool has_thread_loop(ir::Stmt s);

/// The loops of one nest that all threads enter together and that end in code without thread loops.
/// A thread loop with something else than such a chain inside is not a phase: its iterations hold
/// phases, between which the threads meet.
bool is_phase(const ir::Loop& loop);

/// s where the condition holds. The condition goes inside of thread loops, which stay directly in
/// each other and keep their barriers: whether threads meet must not depend on it.
ir::Stmt guard_phases(ir::IrBuilder& b, ir::Expr condition, ir::Stmt s);

/// A loop that begins with a barrier carries this attribute with one of the values below; with 0, none is needed before
/// it.
inline constexpr std::string_view kSyncAttr = "sync";
inline constexpr int64_t kBlockSync = 1;  // of all threads
inline constexpr int64_t kWarpSync = 2;   // each warp for itself
/// A loop over the threads that combines element t with element t + value of a buffer whose first
/// dimension is the thread: a shuffle inside of a warp.
inline constexpr std::string_view kShuffleAttr = "shuffle";
/// A loop over the lanes of a warp in which lane t reads what lane t ^ value holds, of such a buffer; value is a power of
/// two.
inline constexpr std::string_view kExchangeAttr = "shuffle_xor";
/// t ^ step, as that loop writes it.
ir::Expr exchange_partner(ir::IrBuilder& b, ir::Expr lane, int64_t step);

/// Of a loop around copies into shared memory: they may be asynchronous (cp.async).
inline constexpr std::string_view kAsyncAttr = "async";
/// Such copies end one group of asynchronous ones after the loop.
inline constexpr std::string_view kCommitAttr = "async_commit";
/// Before the loop all groups but the last `value` must have arrived.
inline constexpr std::string_view kWaitAttr = "async_wait";
/// What the loop stores is read in later iterations of the loop around only.
inline constexpr std::string_view kAheadAttr = "ahead";
/// Of the loop around those.
inline constexpr std::string_view kPipelineAttr = "software_pipeline";
/// A loop whose bulk copies fill the `value` stages of a ring buffer in turn, each waited for by
/// itself.
inline constexpr std::string_view kRingAttr = "ring_buffer";
/// Of a loop over block.x: `value` neighbours may run together and bring each other what all of them
/// read. A permission, as vectorized is.
inline constexpr std::string_view kClusterAttr = "cluster";
/// A loop over the registers of a fragment, in groups of `value` that the loop inside counts.
inline constexpr std::string_view kFragmentAttr = "fragment";

std::optional<int64_t> attr_of(const ir::Loop& loop, std::string_view key);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_ANALYSIS_KERNEL_H_
