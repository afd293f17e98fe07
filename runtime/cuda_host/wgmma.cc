// wgmma: a warpgroup multiplies matrices in shared memory, described by 64-bit descriptors, into
// the registers of its 128 threads, some time between the issue and the wait.
#include "runtime/cuda_host/annotate.h"
#include "runtime/cuda_host/block.h"
#include "runtime/cuda_host/warp.h"

#include <array>

namespace prunerc::runtime::cuda_host {
namespace {

constexpr int kRows = 64;
constexpr int kMaxCols = 256;
constexpr int kMaxK = 32;
constexpr int kChunk = 16;  ///< bytes that lie together under every layout

/// A descriptor, taken apart. Units: bytes.
struct Operand {
  int64_t base, lead, stride, swizzle;
  bool trans;
  int64_t rows;  ///< of A, columns of B
};

Operand parse(uint64_t descriptor, bool trans, int64_t rows) {
  constexpr std::array<int64_t, 4> kSwizzles{0, 128, 64, 32};
  const auto field = [&](int shift) {
    return static_cast<int64_t>(descriptor >> shift & 0x3fff) << 4;
  };
  return {.base = field(0),
          .lead = field(16),
          .stride = field(32),
          .swizzle = kSwizzles[descriptor >> 62],
          .trans = trans,
          .rows = rows};
}

int num_chunks(const Operand& o) {
  return static_cast<int>(o.trans ? o.rows / 8 * 16 : o.rows * 2);
}

/// Where chunk `idx` of an operand lies in shared memory.
/// K-major: chunk = row * 2 + half, each half 16 bytes along K. Eight rows of the swizzle's width
/// follow each other, groups of eight are `stride` apart; without swizzle a row is one chunk wide
/// and halves are `lead` apart. Otherwise (16-bit types): chunk = (row / 8) * 16 + k, eight rows'
/// elements at one k. As many chunks as the swizzle is wide lie side by side, then `lead` apart;
/// eight k follow each other, then `stride` apart; without swizzle the two change places.
int64_t chunk_offset(const Operand& o, int idx) {
  const int64_t width = o.swizzle == 0 ? kChunk : o.swizzle;
  int64_t offset = 0;
  if (!o.trans) {
    const int64_t row = idx / 2, half = idx % 2;
    offset = row % 8 * width + row / 8 * o.stride + half * (o.swizzle == 0 ? o.lead : kChunk);
  } else {
    const int64_t group = idx / 16, k = idx % 16, side = width / kChunk;
    offset = o.swizzle == 0
                 ? group * o.stride + k / 8 * o.lead + k % 8 * width
                 : group % side * kChunk + group / side * o.lead + k % 8 * width + k / 8 * o.stride;
  }
  return swizzled(o.base + offset, o.swizzle);
}

int elem_bytes(PrHostMmaType type) { return type == kPrHostTF32 ? 4 : type == kPrHostS8 ? 1 : 2; }

template <typename Acc>
Acc element(PrHostMmaType type, const unsigned char* at) {
  uint32_t word = 0;
  for (int i = 0; i < elem_bytes(type); ++i) word |= uint32_t{at[i]} << (8 * i);
  switch (type) {
    case kPrHostF16: return static_cast<Acc>(f16_to_f32(static_cast<uint16_t>(word)));
    case kPrHostBF16: return static_cast<Acc>(bf16_to_f32(static_cast<uint16_t>(word)));
    case kPrHostTF32: return static_cast<Acc>(__builtin_bit_cast(float, word & ~uint32_t{0x1fff}));
    case kPrHostS8: return static_cast<Acc>(static_cast<int8_t>(word));
  }
  return {};
}

/// to[k * pitch + row]
template <typename Acc>
void read_operand(const unsigned char* shared, const Operand& o, PrHostMmaType type, Acc* to,
                  int pitch) {
  const int bytes = elem_bytes(type);
  const int per_chunk = kChunk / bytes;
  for (int idx = 0; idx < num_chunks(o); ++idx) {
    const unsigned char* const at = shared + chunk_offset(o, idx);
    for (int i = 0; i < per_chunk; ++i) {
      const int row = o.trans ? idx / 16 * 8 + i : idx / 2;
      const int k = o.trans ? idx % 16 : idx % 2 * per_chunk + i;
      to[k * pitch + row] = element<Acc>(type, at + i * bytes);
    }
  }
}

/// Thread t of the warpgroup holds, in row t/32*16 + t%32/4 (+ 8 for the second pair), two
/// neighbouring columns of every eight.
template <typename Fn>
void for_each_result(int n, Fn&& fn) {
  for (int t = 0; t < kWarpGroupSize; ++t) {
    const int row = t / 32 * 16 + t % 32 / 4;
    const int col = t % 4 * 2;
    for (int i = 0; i < n / 2; ++i) fn(t, i, row + i / 2 % 2 * 8, i / 4 * 8 + col + i % 2);
  }
}

template <typename Acc>
void multiply(const MmaOp& op) {
  // On the heap of the host thread: too large for a fiber's stack.
  static thread_local Acc a[kMaxK * kRows], b[kMaxK * kMaxCols], d[kRows * kMaxCols];
  const int n = op.op.n;
  const int num_k = 32 / elem_bytes(op.op.type);
  read_operand(op.shared, parse(op.op.a, op.op.trans_a != 0, kRows), op.op.type, a, kRows);
  read_operand(op.shared, parse(op.op.b, op.op.trans_b != 0, n), op.op.type, b, kMaxCols);
  for_each_result(n, [&](int t, int i, int row, int col) {
    const Acc old = static_cast<const Acc*>(op.d[static_cast<size_t>(t)])[i];
    d[row * kMaxCols + col] = op.op.scale_d != 0 ? old : Acc{0};
  });
  for (int row = 0; row < kRows; ++row) {
    for (int k = 0; k < num_k; ++k) {
      const Acc x = a[k * kRows + row];
      for (int col = 0; col < n; ++col) d[row * kMaxCols + col] += x * b[k * kMaxCols + col];
    }
  }
  for_each_result(n, [&](int t, int i, int row, int col) {
    static_cast<Acc*>(op.d[static_cast<size_t>(t)])[i] = d[row * kMaxCols + col];
  });
}

void perform(MmaOp& op) {
  if (op.done) return;
  op.done = true;
  if (op.op.type == kPrHostS8) {
    multiply<int32_t>(op);
  } else {
    multiply<float>(op);
  }
}

/// Tells the race checker that the operands of these are read now, by the warpgroup's engine.
class EngineReads {
 public:
  EngineReads(Thread& thread, WarpGroup& group) : thread_(thread), group_(group) {
    note_switch(group.engine);
    acquire(&group.issue_sync);
  }
  ~EngineReads() {
    release(&group_.done_sync);
    note_switch(thread_.race_fiber);
  }
  EngineReads(const EngineReads&) = delete;
  EngineReads& operator=(const EngineReads&) = delete;

  void note(const PrHostWgmma& op) const {
    if constexpr (kChecker != Checker::kRace) return;
    for (const Operand& o :
         {parse(op.a, op.trans_a != 0, kRows), parse(op.b, op.trans_b != 0, op.n)}) {
      for (int idx = 0; idx < num_chunks(o); ++idx)
        note_read(thread_.view->shared + chunk_offset(o, idx), kChunk);
    }
  }

 private:
  Thread& thread_;
  WarpGroup& group_;
};

bool is_first(const Thread& thread) { return thread.idx % kWarpGroupSize == 0; }

void check(Thread& thread, const PrHostWgmma& op) {
  Block& block = *thread.block;
  if (op.n < 8 || op.n > kMaxCols || op.n % 8 != 0)
    block.fault(thread, "wgmma has 8, 16, .. 256 columns");
  const bool is_half = op.type == kPrHostF16 || op.type == kPrHostBF16;
  if (!is_half && (op.trans_a != 0 || op.trans_b != 0))
    block.fault(thread, "wgmma transposes 16-bit operands only");
  for (const Operand& o :
       {parse(op.a, op.trans_a != 0, kRows), parse(op.b, op.trans_b != 0, op.n)}) {
    for (int idx = thread.idx % kWarpGroupSize; idx < num_chunks(o); idx += kWarpGroupSize) {
      if (!is_shared(thread, thread.view->shared + chunk_offset(o, idx), kChunk))
        block.fault(thread, "an operand of wgmma is outside of shared memory");
    }
  }
}

bool same(const PrHostWgmma& x, const PrHostWgmma& y) {
  return x.type == y.type && x.n == y.n && x.a == y.a && x.b == y.b && x.scale_d == y.scale_d &&
         x.trans_a == y.trans_a && x.trans_b == y.trans_b;
}

}  // namespace

void wgmma(Thread& thread, const PrHostWgmma& op) {
  check(thread, op);
  thread.mma = op;
  if (is_first(thread)) release(&thread.group->issue_sync);
  Block& block = *thread.block;
  block.group_op(thread, WarpGroup::Meeting::kMma, [&](WarpGroup& group) {
    MmaOp all{.op = op, .shared = thread.view->shared, .d = {}, .done = false};
    for (int t = 0; t < kWarpGroupSize; ++t) {
      const PrHostWgmma& own = group.members[static_cast<size_t>(t)]->mma;
      if (!same(own, op)) block.fault(thread, "the threads of a warpgroup bring different wgmma");
      all.d[static_cast<size_t>(t)] = own.d;
    }
    EngineReads(thread, group).note(op);
    if (block.mode() == AsyncMode::kEager) perform(all);
    if (!group.queue.ops->push(all)) block.fault(thread, "more than 128 wgmma without a wait");
    ++group.queue.open;
  });
}

void wgmma_commit(Thread& thread) {
  Block& block = *thread.block;
  block.group_op(thread, WarpGroup::Meeting::kCommit, [&](WarpGroup& group) {
    if (!group.queue.groups.push(group.queue.open))
      block.fault(thread, "more than 32 groups of wgmma without a wait");
    group.queue.open = 0;
  });
}

void wgmma_wait(Thread& thread, int keep) {
  Block& block = *thread.block;
  block.group_op(thread, WarpGroup::Meeting::kWait, [&](WarpGroup& group) {
    const EngineReads reads(thread, group);
    while (group.queue.groups.size() > keep) {
      for (int left = group.queue.groups.pop(); left > 0; --left) {
        MmaOp& op = group.queue.ops->at(0);
        reads.note(op.op);  // it may have read until now
        perform(op);
        group.queue.ops->pop();
      }
    }
  });
  acquire(&thread.group->done_sync);
}

}  // namespace prunerc::runtime::cuda_host
