// mbarriers, and TMA: boxes of a matrix copied by an engine that counts bytes on an mbarrier.
#include "runtime/cuda_host/annotate.h"
#include "runtime/cuda_host/block.h"

#include <bit>

namespace prunerc::runtime::cuda_host {
namespace {

/// What the 8 bytes of an mbarrier hold. The layout is ours; the hardware's is not documented.
struct Mbarrier {
  uint16_t pending;     ///< arrivals that the phase waits for
  uint16_t count : 15;  ///< arrivals that a phase needs
  uint16_t parity : 1;  ///< of the phase that is running
  int32_t tx;           ///< bytes that the phase waits for
};
static_assert(sizeof(Mbarrier) == sizeof(uint64_t));

constexpr uint64_t kPoisoned = ~uint64_t{0};
constexpr int kMaxArrivals = 32767;
constexpr int kChunk = 16;  ///< bytes that a swizzle keeps together
constexpr int kMostWindowOffset = 255;

Mbarrier load(const uint64_t* bar) { return std::bit_cast<Mbarrier>(*bar); }
void store(uint64_t* bar, Mbarrier state) { *bar = std::bit_cast<uint64_t>(state); }

void check_bar(Thread& thread, const uint64_t* bar) {
  if (!is_shared(thread, bar, sizeof *bar) || reinterpret_cast<uintptr_t>(bar) % 8 != 0)
    thread.block->fault(thread, "an mbarrier is not 8 aligned bytes of shared memory");
}

void check_initialised(Thread& thread, const uint64_t* bar) {
  check_bar(thread, bar);
  note_read(bar, sizeof *bar);
  if (*bar == kPoisoned) thread.block->fault(thread, "an mbarrier is used before mbarrier.init");
}

/// Starts the next phase if nothing is missing from this one.
bool complete_phase(Block& block, uint64_t* bar) {
  Mbarrier state = load(bar);
  if (state.pending != 0 || state.tx != 0) return false;
  state.pending = state.count;
  state.parity ^= 1;
  store(bar, state);
  block.wake_mbarrier(bar);
  return true;
}

/// Calls fn(row, byte in the row, offset in shared memory, bytes) for each chunk of the box.
template <typename Fn>
void for_each_chunk(const BulkOp& op, Fn&& fn) {
  const int64_t row_bytes = op.map.box_cols * op.map.elem_bytes;
  for (int64_t row = 0; row < op.map.box_rows; ++row) {
    for (int64_t at = 0; at < row_bytes; at += kChunk)
      fn(row, at, swizzled(op.shared_offset + row * row_bytes + at, op.map.swizzle_bytes));
  }
}

/// Places of windows along h (0) or w (1) in one image.
int64_t num_windows(const PrHostTensorMap& map, int d) {
  const int64_t extent = d == 0 ? map.height : map.width;
  return (extent - 1 + map.upper[d] - map.lower[d]) / map.steps[d] + 1;
}

/// The matrix's row that is the box's row; of images -1 where there is no pixel. Windows run along
/// w, then h, then from image to image.
int64_t matrix_row(const BulkOp& op, int64_t row) {
  const PrHostTensorMap& map = op.map;
  if (map.width == 0) return op.y + row;
  const PrHostPixel& at = op.pixel;
  const int64_t columns = num_windows(map, 1), lines = num_windows(map, 0);
  const int64_t column = (at.w - map.lower[1]) / map.steps[1] + row;
  const int64_t line = (at.h - map.lower[0]) / map.steps[0] + column / columns;
  const int64_t n = at.n + line / lines;
  const int64_t h = map.lower[0] + line % lines * map.steps[0] + at.offset_h;
  const int64_t w = map.lower[1] + column % columns * map.steps[1] + at.offset_w;
  if (n < 0 || h < 0 || h >= map.height || w < 0 || w >= map.width) return -1;
  return (n * map.height + h) * map.width + w;
}

/// Null outside of the matrix.
unsigned char* global_byte(const BulkOp& op, int64_t y, int64_t byte) {
  const int64_t x = op.x + byte / op.map.elem_bytes;
  if (y < 0 || y >= op.map.rows || x < 0 || x >= op.map.cols) return nullptr;
  return op.map.base + y * op.map.pitch_bytes + int64_t{op.x} * op.map.elem_bytes + byte;
}

void land(const BulkOp& op, Block& block) {
  for_each_chunk(op, [&](int64_t row, int64_t at, int64_t offset) {
    const int64_t y = matrix_row(op, row);
    for (int64_t i = 0; i < kChunk; ++i) {
      const unsigned char* from = global_byte(op, y, at + i);
      op.shared[offset + i] = from != nullptr ? *from : 0;
    }
  });
  Mbarrier state = load(op.bar);
  state.tx -= static_cast<int32_t>(op.map.box_rows * op.map.box_cols * op.map.elem_bytes);
  store(op.bar, state);
  complete_phase(block, op.bar);
}

void send(const BulkOp& op) {
  for_each_chunk(op, [&](int64_t row, int64_t at, int64_t offset) {
    for (int64_t i = 0; i < kChunk; ++i) {
      unsigned char* const to = global_byte(op, op.y + row, at + i);
      if (to != nullptr) *to = op.shared[offset + i];
    }
  });
}

BulkOp make_op(Thread& thread, const PrHostTensorMap& map, const void* shared, int x, int y,
               uint64_t* bar) {
  Block& block = *thread.block;
  const int64_t bytes = map.box_rows * map.box_cols * map.elem_bytes;
  if (!is_shared(thread, shared, bytes))
    block.fault(thread, "a box of TMA is outside of shared memory");
  const int64_t offset = static_cast<const unsigned char*>(shared) - thread.view->shared;
  // A swizzle repeats after eight rows of its width; a box that starts elsewhere would not look as
  // its readers expect.
  const int64_t alignment = map.swizzle_bytes == 0 ? 128 : 8 * map.swizzle_bytes;
  if (offset % alignment != 0)
    block.fault(thread, "a box of TMA is not aligned as its swizzle requires");
  return {.map = map,
          .shared = thread.view->shared,
          .shared_offset = offset,
          .x = x,
          .y = y,
          .pixel = {},
          .bar = bar,
          .engine = 0};
}

void check_mode(Thread& thread, const PrHostTensorMap& map, bool is_im2col) {
  if ((map.width != 0) != is_im2col)
    thread.block->fault(thread, "a copy of TMA is in another mode than its map");
}

/// The first window along h (0) or w (1) must stand at one of the map's places.
void check_window(Thread& thread, const PrHostTensorMap& map, int d, int at, int offset) {
  const int64_t from_lower = at - map.lower[d];
  if (from_lower < 0 || from_lower % map.steps[d] != 0 ||
      from_lower / map.steps[d] >= num_windows(map, d)) {
    thread.block->fault(thread, "a window of TMA begins outside of its places");
  }
  if (offset < 0 || offset > kMostWindowOffset)
    thread.block->fault(thread, "an offset in a window of TMA has no 8 bits");
}

void note_load(const BulkOp& op) {
  note_write(op.shared + op.shared_offset,
             static_cast<size_t>(op.map.box_rows * op.map.box_cols * op.map.elem_bytes));
}

void note_store(Thread& thread, const BulkOp& op) {
  StoreEngine& engine = thread.block->store_engine(op.engine);
  note_switch(engine.fiber);
  acquire(&engine.issue_sync);
  note_read(op.shared + op.shared_offset,
            static_cast<size_t>(op.map.box_rows * op.map.box_cols * op.map.elem_bytes));
  release(&engine.done_sync);
  note_switch(thread.race_fiber);
}

/// What thread's address is in block `rank` of its cluster.
template <typename T>
T* in_block(Thread& thread, T* at, int rank) {
  Block& block = *thread.block;
  if (rank < 0 || rank >= block.cluster()) block.fault(thread, "the cluster has no such block");
  if (block.has_ended(rank)) block.fault(thread, "a block of the cluster has ended before its use");
  auto* const own = reinterpret_cast<unsigned char*>(at);
  return reinterpret_cast<T*>(block.shared(rank) + (own - thread.view->shared));
}

void arrive(Thread& thread, uint64_t* bar) {
  release(bar);
  Mbarrier state = load(bar);
  if (state.pending == 0)
    thread.block->fault(thread, "more arrivals at an mbarrier than it counts");
  --state.pending;
  store(bar, state);
  const bool complete = complete_phase(*thread.block, bar);
  if (complete && thread.block->mode() == AsyncMode::kLateMma)
    thread.block->yield_to_waiter(thread, bar);
}

void issue(Thread& thread, const BulkOp& op) {
  note_load(op);
  release(op.bar);  // that the box is there is known through the mbarrier only
  Block& block = *thread.block;
  if (block.mode() != AsyncMode::kLazy) return land(op, block);
  if (!block.bulk().push(op)) block.fault(thread, "more than 256 TMA loads in flight");
}

}  // namespace

int64_t swizzled(int64_t offset, int64_t swizzle_bytes) {
  // 128 bytes: bits 4..6 are xored with bits 7..9; 64: 4..5 with 7..8; 32: 4 with 7.
  const int64_t mask = swizzle_bytes / kChunk - 1;
  return swizzle_bytes == 0 ? offset : offset ^ ((offset >> 7 & mask) << 4);
}

void mbar_init(Thread& thread, uint64_t* bar, int count) {
  check_bar(thread, bar);
  if (count < 1 || count > kMaxArrivals)
    thread.block->fault(thread, "an mbarrier counts at least one arrival");
  note_write(bar, sizeof *bar);
  const auto arrivals = static_cast<uint16_t>(count);
  store(bar, {.pending = arrivals,
              .count = static_cast<uint16_t>(arrivals & 0x7fff),
              .parity = 0,
              .tx = 0});
}

void mbar_expect_tx(Thread& thread, uint64_t* bar, int bytes) {
  check_initialised(thread, bar);
  release(bar);
  Mbarrier state = load(bar);
  if (state.pending == 0)
    thread.block->fault(thread, "more arrivals at an mbarrier than it counts");
  state.tx += bytes;
  --state.pending;
  store(bar, state);
  complete_phase(*thread.block, bar);
}

void mbar_arrive(Thread& thread, uint64_t* bar) {
  check_initialised(thread, bar);
  arrive(thread, bar);
}

void mbar_arrive_at(Thread& thread, uint64_t* bar, int rank) {
  check_bar(thread, bar);
  uint64_t* const there = in_block(thread, bar, rank);
  note_read(there, sizeof *there);
  if (*there == kPoisoned) thread.block->fault(thread, "an mbarrier is used before mbarrier.init");
  arrive(thread, there);
}

void mbar_wait(Thread& thread, uint64_t* bar, int parity) {
  check_initialised(thread, bar);
  while (load(bar).parity == (parity & 1)) thread.block->wait_mbarrier(thread, bar, parity);
  thread.mbar = nullptr;
  acquire(bar);
}

void tma_load(Thread& thread, void* dst, const PrHostTensorMap& map, int x, int y, uint64_t* bar) {
  check_initialised(thread, bar);
  check_mode(thread, map, false);
  issue(thread, make_op(thread, map, dst, x, y, bar));
}

void tma_load_multicast(Thread& thread, void* dst, const PrHostTensorMap& map, int x, int y,
                        uint64_t* bar, int mask) {
  check_initialised(thread, bar);
  check_mode(thread, map, false);
  const BulkOp own = make_op(thread, map, dst, x, y, bar);
  for (int rank = 0; mask >> rank != 0; ++rank) {
    if ((mask >> rank & 1) == 0) continue;
    BulkOp op = own;
    op.bar = in_block(thread, bar, rank);
    op.shared = thread.block->shared(rank);
    issue(thread, op);
  }
}

void tma_load_im2col(Thread& thread, void* dst, const PrHostTensorMap& map, int c,
                     const PrHostPixel& at, uint64_t* bar) {
  check_initialised(thread, bar);
  check_mode(thread, map, true);
  check_window(thread, map, 0, at.h, at.offset_h);
  check_window(thread, map, 1, at.w, at.offset_w);
  BulkOp op = make_op(thread, map, dst, c, 0, bar);
  op.pixel = at;
  issue(thread, op);
}

bool land_one(Block& block) {
  if (block.bulk().size() == 0) return false;
  land(block.bulk().pop(), block);
  return true;
}

void tma_store(Thread& thread, const PrHostTensorMap& map, const void* src, int x, int y) {
  check_mode(thread, map, false);
  BulkOp op = make_op(thread, map, src, x, y, nullptr);
  op.engine = thread.block->next_store_engine();
  release(&thread.block->store_engine(op.engine).issue_sync);
  note_store(thread, op);
  if (!thread.stores.ops->push(op))
    thread.block->fault(thread, "more than 16 TMA stores in flight");
  ++thread.stores.open;
  if (thread.block->mode() != AsyncMode::kLazy) send(op);
}

void tma_store_commit(Thread& thread) {
  if (!thread.stores.groups.push(thread.stores.open))
    thread.block->fault(thread, "more than 16 groups of TMA stores in flight");
  thread.stores.open = 0;
}

void tma_store_wait(Thread& thread, int keep) {
  StoreQueue& queue = thread.stores;
  while (queue.groups.size() > keep) {
    for (int left = queue.groups.pop(); left > 0; --left) {
      const BulkOp op = queue.ops->pop();
      note_store(thread, op);  // it may have been read until now
      acquire(&thread.block->store_engine(op.engine).done_sync);
      if (thread.block->mode() == AsyncMode::kLazy) send(op);
    }
  }
}

}  // namespace prunerc::runtime::cuda_host
