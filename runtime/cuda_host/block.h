// One block of CUDA threads on fibers: who runs next, where they meet, and what went wrong.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_BLOCK_H_
#define PRUNERC_RUNTIME_CUDA_HOST_BLOCK_H_

#include "runtime/cuda_host/async.h"
#include "runtime/cuda_host/fiber.h"
#include "runtime/cuda_host/options.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace prunerc::runtime::cuda_host {

class Block;
struct Warp;
struct WarpGroup;

enum class ThreadState : uint8_t { kReady, kBarrier, kWarp, kWarpGroup, kMbarrier, kDone };

/// The runtime's record of a CUDA thread.
struct Thread {
  PrHostThread* view = nullptr;
  Block* block = nullptr;
  Warp* warp = nullptr;
  WarpGroup* group = nullptr;
  int idx = 0;
  ThreadState state = ThreadState::kDone;
  int barrier = 0;                 ///< where it waits if kBarrier
  const uint64_t* mbar = nullptr;  ///< and if kMbarrier
  int parity = 0;
  PrHostCollective op{};  ///< what it brought to the warp's meeting
  PrHostWgmma mma{};      ///< or to the warpgroup's
  CopyQueue copies;
  StoreQueue stores;
  void* stack = nullptr;  ///< saved stack pointer
  void* race_fiber = nullptr;
  void* fake_stack = nullptr;
};

inline constexpr int kWarpSize = 32;
inline constexpr int kWarpGroupSize = 128;
inline constexpr int kNumBarriers = 16;
inline constexpr int kMaxCluster = 8;
inline constexpr int kNumStoreEngines = 16;

struct Warp {
  std::array<Thread*, kWarpSize> lanes{};
  int size = 0;
  int alive = 0;
  int arrived = 0;
  PrHostOp op{};
  int op_size = 0;
  uint32_t ready = 0;  ///< lanes that can run
  uint8_t phase = 0;
  std::array<char, 2> sync{};  ///< addresses that order __syncwarp for the race checker
};

struct WarpGroup {
  enum class Meeting : uint8_t { kNone, kMma, kCommit, kWait };
  std::array<Thread*, kWarpGroupSize> members{};
  int size = 0;
  int arrived = 0;
  Meeting meeting = Meeting::kNone;
  MmaQueue queue;
  /// To the race checker what reads operands is a thread of its own, which begins after the first
  /// member has issued an operation and before which nobody who has waited for it continues.
  /// Members get no order among themselves by it, as on a GPU.
  void* engine = nullptr;
  char issue_sync = 0;
  char done_sync = 0;
};

struct Barrier {
  int arrived = 0;
  int expected = 0;  ///< 0: all threads that have not ended
  uint8_t phase = 0;
  /// Used in turn: a thread that is early for the next meeting must not be ordered with this one.
  std::array<char, 2> sync{};
};

/// What a launch tells every block.
struct BlockShape {
  std::array<int64_t, 3> threads{1, 1, 1};
  int64_t shared_bytes = 0;
  int cluster = 1;  ///< neighbours along x that run together
};

/// Runs blocks of one shape, one cluster after the other. Threads: one host thread at a time.
class Block {
 public:
  Block(const BlockShape& shape, const ExecutionOptions& options);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Runs one block, or the cluster that begins there, to its end; empty, or what went wrong. After a fault the block can be run anew.
  std::string run(std::array<int64_t, 3> position, PrHostKernel kernel, void** args);

  // ---- For operations, on the fiber of `thread`. ----
  void barrier(Thread& thread, int id, int threads, bool wait);
  void cluster_barrier(Thread& thread);
  void warp_op(Thread& thread, const PrHostCollective& op);
  /// Returns when all threads of the warpgroup have come; `last` runs once, when they have.
  template <typename Fn>
  void group_op(Thread& thread, WarpGroup::Meeting meeting, Fn&& last);
  /// Blocks the thread until wake_mbarrier names the barrier.
  void wait_mbarrier(Thread& thread, const uint64_t* bar, int parity);
  /// A phase of `bar` is over.
  void wake_mbarrier(const uint64_t* bar);
  /// Runs somebody else first if somebody can run.
  void yield_to_waiter(Thread& thread, const uint64_t* bar);
  [[noreturn]] void fault(const Thread& thread, std::string_view what);

  AsyncMode mode() const { return options_.mode; }
  int cluster() const { return shape_.cluster; }
  bool has_ended(int rank) const { return alive_in_[static_cast<size_t>(rank)] == 0; }
  unsigned char* shared(int rank) const { return shared_[static_cast<size_t>(rank)]; }
  BulkQueue& bulk() { return bulk_; }
  /// Stores take engines in turn, so that one's order does not hide what another does too early.
  int next_store_engine() { return store_engine_ = (store_engine_ + 1) % kNumStoreEngines; }
  StoreEngine& store_engine(int idx) { return store_engines_[static_cast<size_t>(idx)]; }
  Thread& thread(int idx) { return threads_[static_cast<size_t>(idx)]; }

 private:
  static void enter();
  void reset(std::array<int64_t, 3> position);
  void finish(Thread& thread);
  void set_ready(Thread& thread);
  void block_on(Thread& thread, ThreadState state);
  void release(Barrier& barrier, int id);
  int block_of(const Thread& thread) const { return thread.idx / threads_per_block_; }
  Thread* pick_in_warp(Warp& warp, int lane);
  Thread* pick(const Thread& after);
  void switch_to(Thread& from, Thread& to);
  void leave_to_main(Thread& from);
  void abandon(Thread& from);
  void run_next(Thread& from);
  std::string describe_deadlock();
  uint64_t random();

  BlockShape shape_;
  ExecutionOptions options_;
  int threads_per_block_ = 0;
  int num_threads_ = 0;  // of all blocks of the cluster
  int num_warps_ = 0;
  int num_groups_ = 0;
  std::unique_ptr<StackPool> stacks_;
  std::unique_ptr<Thread[]> threads_;
  std::unique_ptr<Warp[]> warps_;
  std::unique_ptr<WarpGroup[]> groups_;
  std::array<Barrier, kNumBarriers * kMaxCluster + 1> barriers_{};  // the last: the cluster's
  BulkQueue bulk_;
  std::array<StoreEngine, kNumStoreEngines> store_engines_{};
  int store_engine_ = 0;
  std::array<unsigned char*, kMaxCluster> shared_{};
  std::array<int, kMaxCluster> alive_in_{};
  int alive_ = 0;
  PrHostKernel kernel_ = nullptr;
  void** args_ = nullptr;
  std::array<char, 512> fault_{};
  uint64_t random_ = 0;
  void* main_stack_ = nullptr;
  void* main_fiber_ = nullptr;
  void* main_fake_ = nullptr;
  const void* main_bottom_ = nullptr;
  size_t main_size_ = 0;
  char start_sync_ = 0;
  char end_sync_ = 0;
};

template <typename Fn>
void Block::group_op(Thread& thread, WarpGroup::Meeting meeting, Fn&& last) {
  WarpGroup& group = *thread.group;
  if (group.size != kWarpGroupSize) fault(thread, "wgmma needs a whole warpgroup of 128 threads");
  if (group.arrived == 0) group.meeting = meeting;
  if (group.meeting != meeting)
    fault(thread, "warpgroup divergence: its threads reached different wgmma operations");
  if (++group.arrived < kWarpGroupSize) return block_on(thread, ThreadState::kWarpGroup);
  group.arrived = 0;
  last(group);
  for (Thread* member : group.members) {
    if (member->state == ThreadState::kWarpGroup) set_ready(*member);
  }
}

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_BLOCK_H_
