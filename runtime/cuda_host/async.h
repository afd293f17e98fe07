// Operations that take effect later than they are issued: cp.async, mbarriers, TMA and wgmma, with
// their queues.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_ASYNC_H_
#define PRUNERC_RUNTIME_CUDA_HOST_ASYNC_H_

#include "runtime/cuda_host/abi.h"

#include <array>
#include <cstdint>
#include <memory>

namespace prunerc::runtime::cuda_host {

class Block;
struct Thread;
struct WarpGroup;

/// A ring of fixed capacity: fibers do not allocate, since to a race checker memory that one fiber
/// frees and another gets is shared.
template <typename T, int kCapacity>
class Ring {
 public:
  bool push(const T& value) {
    if (count_ == kCapacity) return false;
    at(count_++) = value;
    return true;
  }
  T& at(int i) { return items_[static_cast<size_t>((head_ + i) % kCapacity)]; }
  T pop() {
    const T value = at(0);
    head_ = (head_ + 1) % kCapacity;
    --count_;
    return value;
  }
  int size() const { return count_; }
  void clear() { head_ = count_ = 0; }

 private:
  std::array<T, kCapacity> items_;  // not initialised: most queues stay empty
  int head_ = 0;
  int count_ = 0;
};

struct CopyOp {
  unsigned char* dst;
  const unsigned char* src;
  int bytes;
  bool valid;
};

/// One thread's cp.async operations, in groups.
struct CopyQueue {
  static constexpr int kMaxGroups = 32;
  static constexpr int kMaxOps = 512;
  std::unique_ptr<Ring<CopyOp, kMaxOps>> ops;
  Ring<int, kMaxGroups> groups;  ///< number of operations of each committed group
  int open = 0;                  ///< issued since the last commit
};

/// A box on its way, with the map as it was when it was issued: the kernel's own copy is gone when
/// the thread that issued it ends.
struct BulkOp {
  PrHostTensorMap map;
  unsigned char* shared;  ///< of the block that it is for
  int64_t shared_offset;
  int x, y;
  PrHostPixel pixel;  ///< of a copy in im2col mode, whose map has images
  uint64_t* bar;
  int engine;  ///< of a store
};

/// To the race checker what reads a stored tile is a thread of its own, ordered after the issue and
/// before the end of the wait.
struct StoreEngine {
  void* fiber = nullptr;
  char issue_sync = 0;
  char done_sync = 0;
};

/// Loads in flight, in lazy mode.
using BulkQueue = Ring<BulkOp, 256>;

/// One thread's TMA stores.
struct StoreQueue {
  static constexpr int kMaxOps = 16;
  std::unique_ptr<Ring<BulkOp, kMaxOps>> ops;
  Ring<int, kMaxOps> groups;
  int open = 0;
};

struct MmaOp {
  PrHostWgmma op;
  const unsigned char* shared;
  std::array<void*, 128> d;  ///< of each thread
  bool done;
};

/// A warpgroup's products in flight.
struct MmaQueue {
  static constexpr int kMaxOps = 128;
  static constexpr int kMaxGroups = 32;
  std::unique_ptr<Ring<MmaOp, kMaxOps>> ops;
  Ring<int, kMaxGroups> groups;
  int open = 0;
};

void cp_async(Thread& thread, void* dst, const void* src, int bytes, bool valid);
void cp_async_commit(Thread& thread);
void cp_async_wait(Thread& thread, int keep);

void mbar_init(Thread& thread, uint64_t* bar, int count);
void mbar_arrive(Thread& thread, uint64_t* bar);
void mbar_arrive_at(Thread& thread, uint64_t* bar, int rank);
void mbar_expect_tx(Thread& thread, uint64_t* bar, int bytes);
void mbar_wait(Thread& thread, uint64_t* bar, int parity);

void tma_load(Thread& thread, void* dst, const PrHostTensorMap& map, int x, int y, uint64_t* bar);
void tma_load_multicast(Thread& thread, void* dst, const PrHostTensorMap& map, int x, int y,
                        uint64_t* bar, int mask);
void tma_load_im2col(Thread& thread, void* dst, const PrHostTensorMap& map, int c,
                     const PrHostPixel& at, uint64_t* bar);
void tma_store(Thread& thread, const PrHostTensorMap& map, const void* src, int x, int y);
void tma_store_commit(Thread& thread);
void tma_store_wait(Thread& thread, int keep);
/// Lets one load of the queue arrive; false if there is none.
bool land_one(Block& block);

void wgmma(Thread& thread, const PrHostWgmma& op);
void wgmma_commit(Thread& thread);
void wgmma_wait(Thread& thread, int keep);

/// True if `size` bytes at `at` lie in the shared memory of the thread's block.
bool is_shared(const Thread& thread, const void* at, int64_t size);

/// Where the 128-, 64- or 32-byte swizzle puts the byte at this offset in shared memory; 16 bytes
/// stay together. The hardware does it on addresses, so the offset counts from the block's start.
int64_t swizzled(int64_t offset, int64_t swizzle_bytes);

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_ASYNC_H_
