#include "costmodel/latency/gpu_nest.h"

#include "costmodel/latency/gpu_kernel.h"
#include "costmodel/latency/warp.h"
#include "ir/thread_axis.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

constexpr double kWarp = 32;
/// Statement instances that the compiler writes out, so that what stands still stays in registers.
constexpr double kMaxUnrolledInstances = 1024;
/// Widest access of a thread.
constexpr double kAccessBytes = 16;
/// Bytes of L1 that keep what a block reads again; the rest is shared memory or other blocks'.
constexpr double kL1Bytes = 32 * 1024;
// Cycles, of the order of NVIDIA GPUs since Volta (Jia et al., arXiv:1804.06826; later ones within
// 30 %).
constexpr double kFmaLatency = 4;
constexpr double kTensorLatency = 18;
constexpr double kSharedLatency = 24;
constexpr double kGlobalLatency = 450;
constexpr double kBarrierCycles = 30;
/// Multiply-adds that a division takes besides its reciprocal.
constexpr double kDivideSteps = 8;
/// Counter, compare and branch of a loop that is not written out.
constexpr double kLoopInstructions = 3;
/// Address arithmetic of an access that is not written out.
constexpr double kAddressInstructions = 2;

bool is_own(ir::LoopKind kind) { return !ir::is_block_axis(kind) && !ir::is_lane_axis(kind); }

class Counter {
 public:
  Counter(const NestTable& table, const Nest& nest)
      : table_(table), nest_(nest), depth_(tensor_depth(nest)) {
    find_loops();
  }

  GpuNestCost run() {
    arithmetic();
    for (const NestAccess& a : nest_.accesses) access(a);
    loops();
    return out_;
  }

 private:
  bool is_tensor() const { return depth_ < nest_.loops.size(); }

  // Threads, iterations of one thread, and which loops are written out: the innermost ones as long
  // as they make few instances. Lanes of a vector are one instance. The loops of a tensor
  // instruction are none.
  void find_loops() {
    written_out_.assign(nest_.loops.size(), Sym(0));
    Sym threads = 1;
    if (is_tensor()) threads = tensor_lanes(*nest_.loops[depth_].loop);
    for (std::size_t i = depth_; i-- > 0;) {
      const NestLoop& loop = nest_.loops[i];
      if (ir::is_lane_axis(loop.kind)) threads *= loop.extent;
      if (!is_own(loop.kind)) continue;
      if (loop.kind == ir::LoopKind::kUnrolled || ir::is_thread_axis(loop.kind)) {
        out_.code_size *= loop.extent;
      }
      if (loop.kind == ir::LoopKind::kVectorized) {
        written_out_[i] = 1;
        vector_ *= loop.extent;
        continue;
      }
      const Sym instances = instances_ * loop.extent;
      written_out_[i] = logical_and(is_open_, less_equal(instances, kMaxUnrolledInstances));
      is_open_ = written_out_[i];
      instances_ = select(written_out_[i], instances, instances_);
      passes_ *= select(written_out_[i], 1, loop.extent);
    }
    warps_ = ceil(threads / kWarp);
  }

  void arithmetic() {
    const NestOps& ops = nest_.ops;
    const Sym all = passes_ * instances_ * vector_;  // of one thread
    if (is_tensor()) {
      tensor(all);
      return;
    }
    const double fma = ops.add + ops.mul - std::min(ops.add, ops.mul) + ops.divide * kDivideSteps;
    const double special = ops.calls + ops.divide;
    const Sym lanes = all * (warps_ * kWarp);
    out_.fma_lanes = lanes * fma;
    out_.special_lanes = lanes * special;
    const Sym guards = nest_.is_guarded;
    out_.warp_instructions = all * warps_ * (fma + special + ops.simple + guards);
    // Chains of dependent sums: what accumulates waits for itself.
    out_.latency_cycles = all * fma * kFmaLatency / max(1, independent());
  }

  // Sums that one thread keeps at once: instances that write different places.
  Sym independent() const {
    Sym out = vector_;
    for (const NestAccess& a : nest_.accesses) {
      if (!a.is_write || !a.is_read) continue;
      out = 1;
      for (std::size_t i = 0; i < depth_; ++i) {
        if (is_own(nest_.loops[i].kind)) {
          out *= select(logical_and(written_out_[i], a.moves[i]), nest_.loops[i].extent, 1);
        }
      }
    }
    // Beyond this many a chain is no longer what limits.
    return min(out, 16);
  }

  void tensor(Sym all) {
    double macs = nest_.ops.mul > 0 ? 1 : 0;
    Sym volume = 1;
    for (std::size_t i = depth_; i < nest_.loops.size(); ++i) volume *= nest_.loops[i].extent;
    // Half as many of 4 bytes, twice as many of one.
    macs *= static_cast<double>(std::max<int64_t>(1, narrowest())) / 2;
    out_.tensor_macs =
        all * warps_ * kWarp / tensor_lanes(*nest_.loops[depth_].loop) * volume * macs;
    out_.warp_instructions = all * warps_;
    out_.latency_cycles =
        all * (macs > 0 ? kTensorLatency : kSharedLatency) / max(1, independent());
  }

  int64_t narrowest() const {
    int64_t out = 8;
    for (const NestAccess& a : nest_.accesses) out = std::min(out, a.element_bytes);
    return out;
  }

  // Neighbours that a thread's innermost written-out loop makes contiguous: the compiler joins
  // them. Loops of one iteration are not there.
  Sym joined(const NestAccess& a) const {
    const double most = std::max(1.0, kAccessBytes / static_cast<double>(a.element_bytes));
    Sym width = 1;
    for (std::size_t i = 0; i < depth_; ++i) {
      const NestLoop& loop = nest_.loops[i];
      if (!is_own(loop.kind)) continue;
      const bool is_vector = loop.kind == ir::LoopKind::kVectorized;
      const Sym counts = logical_and(is_vector ? Sym(1) : a.moves[i], less(1, loop.extent));
      const Sym joins =
          is_vector ? Sym(0) : logical_and(written_out_[i], equal(table_.address_step(a, i), 1));
      width = select(counts, select(joins, min(most, max(1, power_of_two_factor(loop.extent))), 1),
                     width);
    }
    return width;
  }

  void access(const NestAccess& a) {
    const ir::Scope scope = table_.program().buffer(a.buffer).scope;
    if (scope == ir::Scope::kLocal) return;
    // Accesses of one thread: what is written out and stands still is in a register.
    Sym count = 1;
    Sym vector_moves = 1;
    for (std::size_t i = 0; i < depth_; ++i) {
      const NestLoop& loop = nest_.loops[i];
      if (!is_own(loop.kind)) continue;
      if (loop.kind == ir::LoopKind::kVectorized) {
        // A strided vector is taken apart.
        const Sym step = abs(table_.address_step(a, i));
        vector_moves *= select(less(1, step), loop.extent, 1);
        continue;
      }
      count *= select(logical_and(written_out_[i], logical_not(a.moves[i])), 1, loop.extent);
    }
    count *= vector_moves;
    if (is_tensor()) {
      fragment(a, scope, count);
      return;
    }
    // Of global memory the compiler does not know that it is aligned.
    const Sym width = scope == ir::Scope::kShared ? joined(a) : Sym(1);
    const WarpRequest request = warp_request(table_, nest_, a, kSectorBytes, width);
    const Sym requests =
        count / width * warps_ * nest_.active * ((a.is_read ? 1 : 0) + (a.is_write ? 1 : 0));
    out_.warp_instructions += requests * (1 + select(is_open_, 0, kAddressInstructions));
    if (scope == ir::Scope::kShared) {
      out_.shared_wavefronts += requests * request.shared_wavefronts;
      out_.latency_cycles += batches() * kSharedLatency;
      return;
    }
    out_.shared_wavefronts += requests * max(1, request.sectors * kSectorBytes / 128);
    out_.l2_bytes += through_l1(a, requests * request.sectors * kSectorBytes);
    // A store is waited for by nobody.
    if (a.is_read) out_.latency_cycles += batches() * kGlobalLatency;
  }

  // The operand of a tensor instruction, whole rounds of shared memory.
  void fragment(const NestAccess& a, ir::Scope scope, Sym count) {
    Sym bytes = static_cast<double>(a.element_bytes);
    for (std::size_t i = depth_; i < nest_.loops.size(); ++i) {
      bytes *= select(a.moves[i], nest_.loops[i].extent, 1);
    }
    const Sym all = bytes * count * warps_ * kWarp / tensor_lanes(*nest_.loops[depth_].loop);
    out_.shared_wavefronts += all / 128;
    if (scope == ir::Scope::kGlobal) out_.l2_bytes += all;
  }

  // Times that a thread waits for what it loads: once for all written-out instances.
  Sym batches() const { return passes_; }

  // Bytes beyond L1: what a block reads again comes from there if it fits.
  Sym through_l1(const NestAccess& a, Sym bytes) const {
    if (a.is_write) return bytes;
    std::vector<bool> is_kept(nest_.loops.size());
    for (std::size_t i = 0; i < is_kept.size(); ++i) {
      is_kept[i] = !ir::is_block_axis(nest_.loops[i].kind);
    }
    // Rows in whole sectors.
    Sym unique = 1;
    Sym row = static_cast<double>(a.element_bytes);
    const std::vector<Sym> box = table_.box(nest_, a, is_kept);
    for (std::size_t d = 0; d < box.size(); ++d) {
      (d + 1 == box.size() ? row : unique) *= box[d];
    }
    unique *= ceil(row / kSectorBytes) * kSectorBytes;
    return min(bytes, select(less_equal(unique, kL1Bytes), unique, bytes));
  }

  void loops() {
    for (std::size_t i = 0; i < depth_; ++i) {
      const NestLoop& loop = nest_.loops[i];
      if (!is_own(loop.kind) || loop.kind == ir::LoopKind::kVectorized) continue;
      Sym runs = loop.extent;
      for (std::size_t j = 0; j < i; ++j) {
        if (is_own(nest_.loops[j].kind)) runs *= nest_.loops[j].extent;
      }
      const Sym stays = logical_not(logical_or(written_out_[i], equal(loop.extent, 1)));
      out_.warp_instructions += select(stays, runs * kLoopInstructions * warps_, 0);
    }
    // Threads meet where their loops end: before the next nest of the block goes on.
    Sym meetings = 1;
    for (std::size_t i = 0; i < depth_; ++i) {
      if (ir::is_lane_axis(nest_.loops[i].kind)) break;
      if (is_own(nest_.loops[i].kind)) meetings *= nest_.loops[i].extent;
    }
    out_.latency_cycles += meetings * kBarrierCycles;
  }

  const NestTable& table_;
  const Nest& nest_;
  const std::size_t depth_;       // of the loops outside of a tensor instruction
  std::vector<Sym> written_out_;  // truth, by loop
  Sym is_open_ = 1;               // truth: all of one thread's loops are written out
  Sym instances_ = 1;             // written out
  Sym passes_ = 1;                // through those
  Sym vector_ = 1;
  Sym warps_ = 1;
  GpuNestCost out_;
};

}  // namespace

GpuNestCost gpu_nest_cost(const NestTable& table, const Nest& nest) {
  return Counter(table, nest).run();
}

}  // namespace prunerc::costmodel
