#include "costmodel/latency/gpu_nest.h"

#include "costmodel/latency/gpu_kernel.h"
#include "costmodel/latency/warp.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <string_view>

namespace prunerc::costmodel {
namespace {

constexpr double kWarp = 32;
/// Bytes that shared memory or L1 gives in one round.
constexpr double kWavefrontBytes = 128;
/// Of the grid's loops: statements that loops may be written out to.
constexpr std::string_view kUnrollAttr = "unroll_max_step";
/// What a condition counts as there.
constexpr double kConditionVolume = 4;
/// Bytes of L1 that keep what a block reads again; the rest is shared memory or other blocks'.
constexpr double kL1Bytes = 32 * 1024;
// Cycles, of the order of NVIDIA GPUs since Volta (Jia et al., arXiv:1804.06826; later ones within
// 30 %).
constexpr double kFmaLatency = 4;
constexpr double kTensorLatency = 18;
constexpr double kSharedLatency = 24;
constexpr double kGlobalLatency = 450;
/// Where all threads of a block wait between two barriers and nothing else is under way: on an H100 256 such loads in a
/// row took 133 us.
constexpr double kColdLatency = 1000;
/// The smallest copy of cp.async.
constexpr double kLeastAsyncBytes = 4;
/// Smaller ones that code generation writes out; of padded tiles (codegen/cuda/print_vector.cc).
constexpr double kCopiesAtOnce = 32, kPaddedAtOnce = 8;
/// Registers of a thread for what it has asked for.
constexpr double kInFlightRegisters = 24;
constexpr double kRegisterBytes = 4;
/// Bytes that a thread turns with one word.
constexpr double kWord = 4;
/// Of a byte that joins three others in a word.
constexpr double kPackInstructions = 0.75;
constexpr double kInstructionBytes = 16;
constexpr double kBarrierCycles = 30;
/// Multiply-adds that a division takes besides its reciprocal.
constexpr double kDivideSteps = 8;
/// Counter, compare and branch of a loop that is not written out.
constexpr double kLoopInstructions = 3;
/// Address arithmetic of an access, once for all that are written out.
constexpr double kAddressInstructions = 2;
/// Of the thread that starts a bulk copy: its box, the barrier that counts its bytes, the wait for a free place.
constexpr double kBulkInstructions = 24;
/// Results that a lane holds side by side in a row of a fragment, and rows that a warp's access spans.
constexpr double kFragmentPair = 2, kFragmentRows = 8;

std::size_t block_dimension(ir::LoopKind kind) {
  return static_cast<std::size_t>(kind) - static_cast<std::size_t>(ir::LoopKind::kBlockX);
}

bool is_own(ir::LoopKind kind) { return !ir::is_block_axis(kind) && !ir::is_lane_axis(kind); }

class Counter {
 public:
  Counter(const NestTable& table, const Nest& nest, const GpuWave& wave, double code_bytes)
      : table_(table),
        nest_(nest),
        wave_(wave),
        code_bytes_(code_bytes),
        depth_(tensor_depth(nest)) {
    find_engine();
    find_loops();
  }

  GpuNestCost run() {
    if (is_bulk_) {
      bulk_copy();
      return out_;
    }
    arithmetic();
    for (const NestAccess& a : nest_.accesses) access(a);
    fetch_code();
    loops();
    return out_;
  }

 private:
  bool is_tensor() const { return !is_bulk_ && depth_ < nest_.loops.size(); }

  // Who does the work where it is not each thread for itself: the copy engine, or the lanes that hold
  // a fragment between them. A fetch that a pipeline runs ahead is waited for once in so many iterations.
  void find_engine() {
    bool runs_ahead = false;
    for (std::size_t i = nest_.loops.size(); i-- > 0;) {
      const ir::Loop& loop = *nest_.loops[i].loop;
      if (ir::is_bulk_copy(loop)) {
        is_bulk_ = true;
        depth_ = i;
      }
      for (const ir::Attr& attr : loop.attrs) {
        if (attr.key == "pipeline_stage") runs_ahead = attr.value == 0;
        if (attr.key != "software_pipeline" || !runs_ahead) continue;
        const Sym stages = table_.space().attr(loop, attr.key);
        pipeline_ = static_cast<int>(i);
        ahead_ = max(1, min(stages - 1, nest_.loops[i].extent));
      }
    }
    if (is_bulk_ || is_tensor()) return;
    for (const NestAccess& a : nest_.accesses) {
      holders_ = std::max(holders_, fragment_lanes(table_, a.buffer));
    }
  }

  // One thread asks, the engine moves bytes between L2 and shared memory.
  void bulk_copy() {
    Sym count = 1, volume = 1;
    for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
      if (i >= depth_) volume *= nest_.loops[i].extent;
      if (i < depth_ && is_own(nest_.loops[i].kind)) count *= nest_.loops[i].extent;
    }
    out_.warp_instructions = count * kBulkInstructions;
    for (const NestAccess& a : nest_.accesses) {
      const Sym bytes = count * volume * static_cast<double>(a.element_bytes);
      if (table_.program().buffer(a.buffer).scope == ir::Scope::kGlobal) {
        leave_l1(a, bytes);
      } else {
        out_.shared_wavefronts += bytes / kWavefrontBytes;
      }
    }
    out_.latency_cycles = count * kGlobalLatency / ahead_;
  }

  // Which loops code generation writes out: what schedules say, what indexes registers, and innermost
  // ones as far as a schedule's limit goes (codegen/cuda/print.cc).
  void find_copies() {
    copied_.assign(nest_.loops.size(), Sym(0));
    std::vector<Sym> below(depth_ + 1, Sym(1));  // statements of the iterations inside
    below[depth_] = 1 + kConditionVolume * nest_.is_guarded;
    for (std::size_t i = depth_; i-- > 0;) {
      below[i] = below[i + 1] * (is_own(nest_.loops[i].kind) ? nest_.loops[i].extent : Sym(1));
    }
    Sym copies = 1, limit = 0;
    for (std::size_t i = 0; i < depth_; ++i) {
      const NestLoop& loop = nest_.loops[i];
      if (ir::is_block_axis(loop.kind)) {
        limit = max(limit, table_.space().attr(*loop.loop, kUnrollAttr));
      }
      if (!is_own(loop.kind)) continue;
      copied_[i] = must_copy(i);
      if (limit.is(0) || !copied_[i].is(0) || !holds_no_threads(i)) continue;
      copied_[i] = less_equal(below[i] * copies, limit);
      copies *= select(copied_[i], loop.extent, 1);
    }
  }

  Sym must_copy(std::size_t depth) const {
    if (nest_.loops[depth].kind != ir::LoopKind::kSerial) return 1;
    Sym out = 0;
    for (const NestAccess& a : nest_.accesses) {
      const bool is_local = table_.program().buffer(a.buffer).scope == ir::Scope::kLocal;
      const bool is_inside = static_cast<int>(depth) >= table_.alloc_depth(a.buffer);
      if (is_local && is_inside) out = logical_or(out, a.moves[depth]);
    }
    return out;
  }

  bool holds_no_threads(std::size_t depth) const {
    for (std::size_t i = depth + 1; i < depth_; ++i) {
      if (ir::is_lane_axis(nest_.loops[i].kind)) return false;
    }
    return true;
  }

  // Threads, iterations of one thread, and which of the innermost loops are written out. Lanes of a
  // vector are one instance. The loops of a tensor instruction are none.
  void find_loops() {
    find_copies();
    written_out_.assign(nest_.loops.size(), Sym(0));
    Sym threads = 1;
    if (is_tensor()) threads = tensor_lanes(*nest_.loops[depth_].loop);
    threads *= holders_;
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
      const Sym is_one = equal(loop.extent, 1);
      written_out_[i] = logical_and(is_open_, logical_or(copied_[i], is_one));
      is_open_ = written_out_[i];
      if (static_cast<int>(i) > pipeline_ && innermost_.is(0))
        innermost_ = select(copied_[i], 1, loop.extent);
      instances_ *= select(written_out_[i], loop.extent, 1);
      passes_ *= select(written_out_[i], 1, loop.extent);
      copies_ *= select(copied_[i], loop.extent, 1);
    }
    // Each holder runs its share of the instances.
    instances_ = instances_ / holders_;
    copies_ = copies_ / holders_;
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
    double macs = is_product(nest_) ? 1 : 0;
    Sym volume = 1;
    for (std::size_t i = depth_; i < nest_.loops.size(); ++i) volume *= nest_.loops[i].extent;
    // Half as many of 4 bytes, twice as many of one.
    macs *= static_cast<double>(std::max<int64_t>(1, narrowest())) / 2;
    out_.tensor_macs =
        all * warps_ * kWarp / tensor_lanes(*nest_.loops[depth_].loop) * volume * macs;
    if (tensor_lanes(*nest_.loops[depth_].loop) <= kWarp) out_.warp_macs = out_.tensor_macs;
    out_.warp_instructions = all * warps_;
    out_.latency_cycles =
        all * (macs > 0 ? kTensorLatency : kSharedLatency) / max(1, independent());
  }

  int64_t narrowest() const {
    int64_t out = 8;
    for (const NestAccess& a : nest_.accesses) out = std::min(out, a.element_bytes);
    return out;
  }

  // Neighbours that a written-out loop of a thread makes contiguous: the compiler joins them, whatever
  // loops are written out inside. A vectorized access is one as it is.
  Sym joined(const NestAccess& a) const {
    const double most = std::max(1.0, kAccessBytes / static_cast<double>(a.element_bytes));
    Sym width = 1, is_vector = 0;
    for (std::size_t i = 0; i < depth_; ++i) {
      const NestLoop& loop = nest_.loops[i];
      if (!is_own(loop.kind)) continue;
      if (loop.kind == ir::LoopKind::kVectorized)
        is_vector = logical_or(is_vector, less(1, loop.extent));
      const Sym joins = logical_and(written_out_[i], equal(table_.address_step(a, i), 1));
      width = max(width, select(joins, min(most, power_of_two_factor(loop.extent)), 1));
    }
    return select(is_vector, 1, width);
  }

  // Nothing is computed; conditions of selects do not count.
  bool is_copy() const {
    const NestOps& ops = nest_.ops;
    return nest_.accesses.size() == 2 &&
           ops.add + ops.mul + ops.simple + ops.divide + ops.special == 0;
  }

  // Are these rows of a block of bytes that the thread turns: words (codegen/DESIGN.md, 50)?
  bool is_turned(const NestAccess& a) const {
    const auto is_word = [&](std::size_t i, ir::LoopKind kind) {
      return nest_.loops[i].kind == kind && nest_.loops[i].extent.is(kWord);
    };
    return depth_ >= 2 && is_copy() && a.element_bytes == 1 && !a.is_write &&
           is_word(depth_ - 2, ir::LoopKind::kUnrolled) &&
           is_word(depth_ - 1, ir::LoopKind::kVectorized) &&
           table_.address_step(a, depth_ - 2).is(1);
  }

  // Accesses of one thread. Written-out loops load each element once: it stays in a register. Not so
  // global memory under a condition, which cannot be read ahead.
  Sym accesses(const NestAccess& a, ir::Scope scope) const {
    const Sym is_once = a.is_write                    ? Sym(0)
                        : scope == ir::Scope::kShared ? Sym(1)
                                                      : logical_not(nest_.is_guarded);
    std::vector<bool> is_inside(nest_.loops.size());
    Sym count = 1;
    Sym vector_moves = 1;
    for (std::size_t i = depth_; i-- > 0;) {
      const NestLoop& loop = nest_.loops[i];
      if (!is_own(loop.kind)) continue;
      if (loop.kind == ir::LoopKind::kVectorized) {
        // A strided vector is taken apart.
        const Sym step = abs(table_.address_step(a, i));
        vector_moves *= select(less(1, step), loop.extent, 1);
        continue;
      }
      is_inside[i] = true;
      const Sym outside = count * loop.extent;
      const Sym moving = select(a.moves[i], outside, count);
      const Sym once = min(moving, distinct_elements(table_, nest_, a, is_inside));
      count = select(written_out_[i], select(is_once, once, moving), outside);
    }
    return count * vector_moves;
  }

  void access(const NestAccess& a) {
    const ir::Scope scope = table_.program().buffer(a.buffer).scope;
    if (scope == ir::Scope::kLocal) return;
    const Sym count = accesses(a, scope);
    if (is_tensor()) {
      fragment(a, scope, count);
      return;
    }
    if (holders_ > 1) {
      from_fragment(a, scope, count / holders_);
      return;
    }
    // Of global memory the compiler does not know that it is aligned.
    const Sym width = scope == ir::Scope::kShared ? joined(a) : is_turned(a) ? kWord : Sym(1);
    const WarpRequest request = warp_request(table_, nest_, a, kSectorBytes, width);
    const Sym requests =
        count / width * warps_ * nest_.active * ((a.is_read ? 1 : 0) + (a.is_write ? 1 : 0));
    const Sym pieces = max(1, request.lane_bytes / kAccessBytes);
    out_.warp_instructions += requests * pieces;
    // Written-out accesses differ from the first by constants.
    out_.warp_instructions += select(is_open_, 0, passes_ * warps_ * kAddressInstructions);
    out_.load_lanes += requests * pieces * kWarp;
    // L1 is the same memory with the same banks.
    out_.shared_wavefronts += requests * request.shared_wavefronts;
    if (scope == ir::Scope::kShared) {
      out_.latency_cycles += batches() * kSharedLatency;
      return;
    }
    leave_l1(a, through_l1(a, requests * request.sectors * kSectorBytes));
    // A store is waited for by nobody.
    if (!a.is_read) return;
    const Sym waits = pipeline_ < 0 ? batches(count, request.lane_bytes / width) : iterations();
    out_.latency_cycles +=
        select(takes_registers(a), in_registers(), waits * kGlobalLatency / ahead_);
  }

  // Truth: a pipeline's fetch that cp.async cannot make, as it is too small, turned, or computed.
  Sym takes_registers(const NestAccess& a) const {
    if (pipeline_ < 0) return 0;
    if (!is_copy() || is_turned(a)) return 1;
    return less(vector_ * static_cast<double>(a.element_bytes), kLeastAsyncBytes);
  }

  // Those of a pipeline: cp.async needs no registers, and nobody waits for its pieces one by one.
  Sym iterations() const {
    Sym out = 1;
    for (std::size_t i = 0; i <= static_cast<std::size_t>(pipeline_); ++i) {
      if (is_own(nest_.loops[i].kind)) out *= nest_.loops[i].extent;
    }
    return out;
  }

  // Its waits: once for as many pieces as code generation writes out of the innermost loop.
  Sym in_registers() const {
    const double most = !is_copy() ? 1 : nest_.conditions.empty() ? kCopiesAtOnce : kPaddedAtOnce;
    const Sym pieces = max(1, innermost_);
    return passes_ / pieces * ceil(pieces / most) * kColdLatency;
  }

  // What is read or written beside results that lie in fragments: pairs of neighbours in each lane,
  // four of them in a row; bytes that lie across K one by one, which are then packed.
  void from_fragment(const NestAccess& a, ir::Scope scope, Sym count) {
    const bool is_packed = a.is_read && fills_packed();
    const Sym requests = count / (is_packed ? 1 : kFragmentPair) * warps_ * nest_.active;
    const double row = kWarp / kFragmentRows * kFragmentPair * static_cast<double>(a.element_bytes);
    out_.warp_instructions += requests * (is_packed ? 1 + kPackInstructions : 1);
    out_.load_lanes += requests * kWarp;
    out_.shared_wavefronts +=
        requests * (is_packed ? packed_conflicts(a)
                              : Sym(std::max(1.0, row * kFragmentRows / kWavefrontBytes)));
    if (scope == ir::Scope::kShared) return;
    leave_l1(a, requests * kFragmentRows * std::max(kSectorBytes, row));
    if (a.is_read) out_.latency_cycles += batches() * kGlobalLatency;
  }

  // Lanes side by side ask for four rows, four apart: banks repeat after as many bytes of a row's pitch.
  Sym packed_conflicts(const NestAccess& a) const {
    const std::vector<Sym>& strides = table_.strides(a.buffer);
    if (strides.size() < 2) return 1;
    const Sym pitch =
        power_of_two_factor(strides[strides.size() - 2] * static_cast<double>(a.element_bytes));
    return kWord / min(kWord, max(1, kWarp / max(1, pitch)));
  }

  bool fills_packed() const {
    return std::any_of(nest_.accesses.begin(), nest_.accesses.end(), [&](const NestAccess& a) {
      return a.is_write && packs_bytes(table_, a.buffer);
    });
  }

  // The operand of a tensor instruction, whole rounds of shared memory.
  void fragment(const NestAccess& a, ir::Scope scope, Sym count) {
    Sym bytes = static_cast<double>(a.element_bytes);
    for (std::size_t i = depth_; i < nest_.loops.size(); ++i) {
      bytes *= select(a.moves[i], nest_.loops[i].extent, 1);
    }
    const Sym all = bytes * count * warps_ * kWarp / tensor_lanes(*nest_.loops[depth_].loop);
    out_.shared_wavefronts += all / kWavefrontBytes;
    if (scope == ir::Scope::kGlobal) leave_l1(a, all);
  }

  // Blocks of a wave that ask for the same bytes find them in L2: they go through the reduction's
  // loops side by side.
  void leave_l1(const NestAccess& a, Sym bytes) {
    out_.l2_bytes += bytes;
    Sym blocks = 1, tiles = 1;  // of the wave, and different ones
    std::vector<Sym> one, wave;
    int axes = 0;
    for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
      const NestLoop& loop = nest_.loops[i];
      const bool is_block = ir::is_block_axis(loop.kind);
      one.push_back(is_block ? Sym(1) : loop.extent);
      wave.push_back(is_block ? min(loop.extent, wave_[block_dimension(loop.kind)]) : loop.extent);
      if (!is_block) continue;
      blocks *= wave.back();
      tiles *= select(a.moves[i], wave.back(), 1);
      ++axes;
    }
    // A single axis may number tiles row by row.
    if (axes == 1) {
      const std::vector<Sym> box = table_.box_within(nest_, a, one);
      const std::vector<Sym> all = table_.box_within(nest_, a, wave);
      tiles = 1;
      for (std::size_t d = 0; d < box.size(); ++d) tiles *= all[d] / box[d];
      tiles = min(tiles, blocks);
    }
    out_.memory_bytes += bytes * (tiles / blocks);
  }

  // Times that a thread waits for what it loads: once for all written-out instances.
  Sym batches() const { return passes_; }
  // The same of so many accesses of so many bytes: no more are in flight than registers are free.
  Sym batches(Sym count, Sym bytes) const {
    return max(passes_, count * bytes / (kRegisterBytes * kInFlightRegisters));
  }

  // Bytes beyond L1: what the threads of a block read again comes from there, as far as what is read
  // between fits. `inner` are the own loops of which that is true.
  Sym through_l1(const NestAccess& a, Sym bytes) const {
    if (a.is_write) return bytes;
    std::vector<bool> is_kept(nest_.loops.size());
    for (std::size_t i = 0; i < is_kept.size(); ++i) {
      is_kept[i] = !ir::is_block_axis(nest_.loops[i].kind);
    }
    Sym least = bytes;
    Sym runs = 1;
    for (std::size_t i = 0; i <= nest_.loops.size(); ++i) {
      if (i > 0 && !is_own(nest_.loops[i - 1].kind)) continue;
      if (i > 0) {
        is_kept[i - 1] = false;
        runs *= nest_.loops[i - 1].extent;
      }
      const Sym unique = rows_in_sectors(a, is_kept);
      least = min(least, select(less_equal(unique, kL1Bytes), runs * unique, bytes));
    }
    return least;
  }

  Sym rows_in_sectors(const NestAccess& a, const std::vector<bool>& is_kept) const {
    Sym rows = 1;
    Sym row = static_cast<double>(a.element_bytes);
    const std::vector<Sym> box = table_.box(nest_, a, is_kept);
    for (std::size_t d = 0; d < box.size(); ++d) (d + 1 == box.size() ? row : rows) *= box[d];
    return rows * ceil(row / kSectorBytes) * kSectorBytes;
  }

  // Each warp goes through the written-out instances on its own.
  void fetch_code() {
    const NestOps& ops = nest_.ops;
    const double most = std::max(ops.add, ops.mul) + ops.simple + ops.divide * kDivideSteps +
                        ops.calls + static_cast<double>(nest_.accesses.size());
    if (range_of(copies_).hi * most * kInstructionBytes <= code_bytes_) return;
    const Sym own = min(most, out_.warp_instructions / (warps_ * passes_ * instances_));
    const Sym code = own * (copies_ * kInstructionBytes);
    out_.fetched_instructions = out_.warp_instructions * (1 - code_bytes_ / max(code_bytes_, code));
  }

  void loops() {
    for (std::size_t i = 0; i < depth_; ++i) {
      const NestLoop& loop = nest_.loops[i];
      if (!is_own(loop.kind) || loop.kind == ir::LoopKind::kVectorized) continue;
      Sym runs = loop.extent / holders_;
      for (std::size_t j = 0; j < i; ++j) {
        if (is_own(nest_.loops[j].kind)) runs *= nest_.loops[j].extent;
      }
      const Sym stays = logical_not(logical_or(copied_[i], equal(loop.extent, 1)));
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
  const GpuWave& wave_;
  double code_bytes_;
  std::size_t depth_;             // of the loops outside of a tensor instruction or a bulk copy
  bool is_bulk_ = false;          // the copy engine's
  double holders_ = 1;            // lanes that hold between them what the nest moves
  Sym ahead_ = 1;                 // iterations that fetches are in flight
  int pipeline_ = -1;             // the loop that fetches run ahead in
  Sym innermost_ = 0;             // iterations of the innermost loop, 1 if the code has them all
  std::vector<Sym> copied_;       // truth, by loop: the code has its iterations one after the other
  std::vector<Sym> written_out_;  // the same of innermost loops alone
  Sym is_open_ = 1;               // truth: all of one thread's loops are written out
  Sym instances_ = 1;             // written out
  Sym passes_ = 1;                // through those
  Sym copies_ = 1;                // of the innermost statement in the code
  Sym vector_ = 1;
  Sym warps_ = 1;
  GpuNestCost out_;
};

}  // namespace

GpuNestCost gpu_nest_cost(const NestTable& table, const Nest& nest, const GpuWave& wave,
                          double code_bytes) {
  return Counter(table, nest, wave, code_bytes).run();
}

}  // namespace prunerc::costmodel
