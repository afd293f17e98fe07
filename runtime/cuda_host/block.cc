#include "runtime/cuda_host/block.h"

#include "runtime/cuda_host/annotate.h"
#include "runtime/cuda_host/warp.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace prunerc::runtime::cuda_host {
namespace {

/// Of the block that this host thread runs; a fiber that starts has no other way to find it.
thread_local Thread* starting = nullptr;

constexpr size_t kSharedAlignment = 1024;
constexpr unsigned char kPoison = 0xff;  // a NaN in every float type
/// In random order one choice in so many leaves the warp although others of its lanes can run.
constexpr uint64_t kLeaveWarpOneIn = 8;

int64_t count_threads(const BlockShape& shape) {
  return shape.threads[0] * shape.threads[1] * shape.threads[2];
}

unsigned char* allocate_shared(int64_t bytes) {
  // The exact size, so that the bounds checker sees the first byte behind it.
  void* at = nullptr;
  if (bytes > 0 && posix_memalign(&at, kSharedAlignment, static_cast<size_t>(bytes)) != 0)
    return nullptr;
  return static_cast<unsigned char*>(at);
}

}  // namespace

Block::Block(const BlockShape& shape, const ExecutionOptions& options)
    : shape_(shape),
      options_(options),
      threads_per_block_(static_cast<int>(count_threads(shape))),
      num_threads_(threads_per_block_ * shape.cluster),
      num_warps_((num_threads_ + kWarpSize - 1) / kWarpSize),
      num_groups_((num_threads_ + kWarpGroupSize - 1) / kWarpGroupSize),
      stacks_(take_stacks(num_threads_)),
      threads_(std::make_unique<Thread[]>(static_cast<size_t>(num_threads_))),
      warps_(std::make_unique<Warp[]>(static_cast<size_t>(num_warps_))),
      groups_(std::make_unique<WarpGroup[]>(static_cast<size_t>(num_groups_))),
      random_(options.seed * 0x9e3779b97f4a7c15 + 1) {
  for (int i = 0; i < num_threads_; ++i) {
    Thread& t = threads_[static_cast<size_t>(i)];
    t.block = this;
    t.idx = i;
    t.warp = &warps_[static_cast<size_t>(i / kWarpSize)];
    t.group = &groups_[static_cast<size_t>(i / kWarpGroupSize)];
    t.warp->lanes[static_cast<size_t>(t.warp->size++)] = &t;
    t.group->members[static_cast<size_t>(t.group->size++)] = &t;
    t.race_fiber = create_fiber();
    t.copies.ops = std::make_unique_for_overwrite<Ring<CopyOp, CopyQueue::kMaxOps>>();
    t.stores.ops = std::make_unique_for_overwrite<Ring<BulkOp, StoreQueue::kMaxOps>>();
  }
  for (int i = 0; i < num_groups_; ++i) {
    WarpGroup& group = groups_[static_cast<size_t>(i)];
    group.queue.ops = std::make_unique_for_overwrite<Ring<MmaOp, MmaQueue::kMaxOps>>();
    group.engine = create_fiber("wgmma");
  }
  for (StoreEngine& engine : store_engines_) engine.fiber = create_fiber("TMA");
  for (int i = 0; i < shape.cluster; ++i)
    shared_[static_cast<size_t>(i)] = allocate_shared(shape.shared_bytes);
  main_fiber_ = current_fiber();
}

Block::~Block() {
  for (int i = 0; i < num_threads_; ++i) destroy_fiber(threads_[static_cast<size_t>(i)].race_fiber);
  for (int i = 0; i < num_groups_; ++i) destroy_fiber(groups_[static_cast<size_t>(i)].engine);
  for (StoreEngine& engine : store_engines_) destroy_fiber(engine.fiber);
  for (unsigned char* shared : shared_) std::free(shared);
  // What a thread that was abandoned left on its stack would still be forbidden to a bounds
  // checker.
  if (kChecker != Checker::kBounds) give_back(std::move(stacks_));
}

uint64_t Block::random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

void Block::reset(std::array<int64_t, 3> position) {
  alive_ = num_threads_;
  alive_in_.fill(threads_per_block_);
  barriers_ = {};
  bulk_.clear();
  fault_[0] = '\0';
  for (unsigned char* shared : shared_) {
    if (shared != nullptr) std::memset(shared, kPoison, static_cast<size_t>(shape_.shared_bytes));
  }
  for (int i = 0; i < num_warps_; ++i) {
    Warp& w = warps_[static_cast<size_t>(i)];
    w.alive = w.size;
    w.arrived = 0;
    w.ready = static_cast<uint32_t>((uint64_t{1} << w.size) - 1);
  }
  for (int i = 0; i < num_groups_; ++i) {
    WarpGroup& g = groups_[static_cast<size_t>(i)];
    g.arrived = 0;
    g.queue.ops->clear();
    g.queue.groups.clear();
    g.queue.open = 0;
  }
  for (int i = 0; i < num_threads_; ++i) {
    Thread& t = threads_[static_cast<size_t>(i)];
    t.state = ThreadState::kReady;
    t.copies.ops->clear();
    t.copies.groups.clear();
    t.copies.open = 0;
    t.stores.ops->clear();
    t.stores.groups.clear();
    t.stores.open = 0;
    t.view = stacks_->view(i);
    PrHostThread& view = *t.view;
    const int x = static_cast<int>(shape_.threads[0]);
    const int y = static_cast<int>(shape_.threads[1]);
    const int in_block = i % threads_per_block_;
    const std::array<int, 3> thread{in_block % x, in_block / x % y, in_block / (x * y)};
    for (size_t axis = 0; axis < 3; ++axis) {
      view.thread[axis] = thread[axis];
      view.block[axis] = static_cast<int>(position[axis]);
    }
    view.block[0] += block_of(t);
    view.lane = i % kWarpSize;
    view.shared = shared_[static_cast<size_t>(block_of(t))];
    view.shared_bytes = shape_.shared_bytes;
    view.runtime = &t;
    t.stack = stacks_->prepare(i, &Block::enter);
  }
}

std::string Block::run(std::array<int64_t, 3> position, PrHostKernel kernel, void** args) {
  for (int i = 0; i < shape_.cluster; ++i) {
    if (!stacks_->ok() || (shape_.shared_bytes > 0 && shared(i) == nullptr))
      return "no memory for the threads of a block";
  }
  reset(position);
  kernel_ = kernel;
  args_ = args;
  const bool descending = options_.order == ThreadOrder::kDescending;
  Warp& first_warp = warps_[descending ? static_cast<size_t>(num_warps_ - 1) : 0];
  Thread& first = *pick_in_warp(first_warp, descending ? 0 : kWarpSize - 1);
  starting = &first;
  cuda_host::release(&start_sync_);
  note_switch(first.race_fiber);
  start_switch(&main_fake_, stacks_->bottom(first.idx), kPrHostStackBytes);
  prunerc_switch_stack(&main_stack_, first.stack);
  finish_switch(main_fake_, nullptr, nullptr);
  acquire(&end_sync_);
  return fault_.data();
}

void Block::enter() {
  Thread& self = *starting;
  Block& block = *self.block;
  if (block.main_bottom_ == nullptr) {
    finish_switch(nullptr, &block.main_bottom_, &block.main_size_);
  } else {
    finish_switch(nullptr, nullptr, nullptr);
  }
  acquire(&block.start_sync_);
  block.kernel_(block.args_);
  block.finish(self);
  std::abort();  // a thread that has ended is never switched to
}

void Block::finish(Thread& thread) {
  Warp& warp = *thread.warp;
  if (warp.arrived > 0) fault(thread, "a thread ends while its warp waits for it in a collective");
  if (thread.group->arrived > 0) fault(thread, "a thread ends while its warpgroup waits for it");
  if (thread.stores.ops->size() > 0)
    fault(thread, "a thread ends before its TMA stores have read shared memory");
  cuda_host::release(&end_sync_);
  thread.state = ThreadState::kDone;
  --warp.alive;
  --alive_;
  int& alive_here = alive_in_[static_cast<size_t>(block_of(thread))];
  --alive_here;
  warp.ready &= ~(1u << thread.view->lane);
  const int first = block_of(thread) * kNumBarriers;
  for (int id = first; id < first + kNumBarriers; ++id) {
    Barrier& b = barriers_[static_cast<size_t>(id)];
    if (b.arrived > 0 && b.expected == 0 && b.arrived == alive_here) release(b, id);
  }
  Barrier& of_cluster = barriers_.back();
  if (of_cluster.arrived > 0 && of_cluster.arrived == alive_)
    release(of_cluster, static_cast<int>(barriers_.size()) - 1);
  run_next(thread);
}

void Block::set_ready(Thread& thread) {
  thread.state = ThreadState::kReady;
  thread.warp->ready |= 1u << thread.view->lane;
}

void Block::block_on(Thread& thread, ThreadState state) {
  thread.state = state;
  thread.warp->ready &= ~(1u << thread.view->lane);
  run_next(thread);
}

void Block::release(Barrier& barrier, int id) {
  barrier.arrived = 0;
  barrier.phase ^= 1;
  for (int i = 0; i < num_threads_; ++i) {
    Thread& t = threads_[static_cast<size_t>(i)];
    if (t.state == ThreadState::kBarrier && t.barrier == id) set_ready(t);
  }
}

void Block::barrier(Thread& thread, int id, int threads, bool wait) {
  if (id < 0 || id >= kNumBarriers) fault(thread, "there are 16 barriers");
  if (threads < 0 || threads % kWarpSize != 0 || threads > threads_per_block_)
    fault(thread, "a barrier counts whole warps of the block");
  id += block_of(thread) * kNumBarriers;
  Barrier& b = barriers_[static_cast<size_t>(id)];
  if (b.arrived == 0) b.expected = threads;
  if (b.expected != threads) fault(thread, "threads meet at one barrier with different counts");
  char* const sync = &b.sync[b.phase];
  cuda_host::release(sync);
  ++b.arrived;
  const int alive = alive_in_[static_cast<size_t>(block_of(thread))];
  if (b.arrived == (threads == 0 ? alive : threads)) {
    release(b, id);
  } else if (wait) {
    thread.barrier = id;
    block_on(thread, ThreadState::kBarrier);
  }
  if (wait) acquire(sync);
}

void Block::cluster_barrier(Thread& thread) {
  Barrier& b = barriers_.back();
  char* const sync = &b.sync[b.phase];
  cuda_host::release(sync);
  const int id = static_cast<int>(barriers_.size()) - 1;
  if (++b.arrived == alive_) {
    release(b, id);
  } else {
    thread.barrier = id;
    block_on(thread, ThreadState::kBarrier);
  }
  acquire(sync);
}

void Block::warp_op(Thread& thread, const PrHostCollective& op) {
  Warp& warp = *thread.warp;
  if (warp.alive != warp.size)
    fault(thread, "a collective of a warp some of whose threads have ended");
  if (warp.arrived == 0) {
    warp.op = op.op;
    warp.op_size = op.size;
  }
  if (warp.op != op.op || warp.op_size != op.size)
    fault(thread, "warp divergence: its threads reached different collectives");
  const bool orders = op.op == kPrHostSyncWarp;
  char* const sync = &warp.sync[warp.phase];
  if (orders) cuda_host::release(sync);
  note_operands(thread, op);
  thread.op = op;
  if (++warp.arrived == warp.alive) {
    warp.arrived = 0;
    warp.phase ^= 1;
    run_collective(warp);
    for (int lane = 0; lane < warp.size; ++lane) {
      Thread& other = *warp.lanes[static_cast<size_t>(lane)];
      if (other.state == ThreadState::kWarp) set_ready(other);
    }
  } else {
    block_on(thread, ThreadState::kWarp);
  }
  if (orders) acquire(sync);
}

void Block::wait_mbarrier(Thread& thread, const uint64_t* bar, int parity) {
  thread.mbar = bar;
  thread.parity = parity;
  block_on(thread, ThreadState::kMbarrier);
}

void Block::wake_mbarrier(const uint64_t* bar) {
  for (int i = 0; i < num_threads_; ++i) {
    Thread& t = threads_[static_cast<size_t>(i)];
    if (t.state == ThreadState::kMbarrier && t.mbar == bar) set_ready(t);
  }
}

void Block::yield_to_waiter(Thread& thread, const uint64_t* bar) {
  for (int i = 0; i < num_threads_; ++i) {
    Thread& t = threads_[static_cast<size_t>(i)];
    // A woken waiter still names the barrier that it waited for.
    if (&t == &thread || t.mbar != bar || t.state != ThreadState::kReady) continue;
    t.mbar = nullptr;
    return switch_to(thread, t);
  }
}

Thread* Block::pick_in_warp(Warp& warp, int lane) {
  if (warp.ready == 0) return nullptr;
  int chosen = 0;
  switch (options_.order) {
    case ThreadOrder::kAscending: {
      // The next lane above, or the lowest.
      const uint32_t above = lane >= kWarpSize - 1 ? 0 : warp.ready >> (lane + 1) << (lane + 1);
      chosen = std::countr_zero(above != 0 ? above : warp.ready);
      break;
    }
    case ThreadOrder::kDescending: {
      const uint32_t below = warp.ready & ((1u << lane) - 1);
      chosen = kWarpSize - 1 - std::countl_zero(below != 0 ? below : warp.ready);
      break;
    }
    case ThreadOrder::kRandom: {
      uint32_t rest = warp.ready;
      for (uint64_t skip = random() % static_cast<uint64_t>(std::popcount(rest)); skip > 0; --skip)
        rest &= rest - 1;
      chosen = std::countr_zero(rest);
      break;
    }
  }
  return warp.lanes[static_cast<size_t>(chosen)];
}

Thread* Block::pick(const Thread& after) {
  const bool is_random = options_.order == ThreadOrder::kRandom;
  // A warp runs to where all of it waits before the next one does: of the schedules that a GPU may
  // take this one shows most missing barriers.
  const bool stay = !is_random || random() % kLeaveWarpOneIn != 0;
  if (stay) {
    if (Thread* next = pick_in_warp(*after.warp, after.view->lane)) return next;
  }
  const int current = after.idx / kWarpSize;
  const int start =
      is_random ? static_cast<int>(random() % static_cast<uint64_t>(num_warps_)) : current;
  const int step = options_.order == ThreadOrder::kDescending ? num_warps_ - 1 : 1;
  for (int i = 0, w = start; i < num_warps_; ++i) {
    w = (w + step) % num_warps_;
    const int lane = options_.order == ThreadOrder::kDescending ? 0 : kWarpSize - 1;
    if (Thread* next = pick_in_warp(warps_[static_cast<size_t>(w)], lane)) return next;
  }
  return nullptr;
}

void Block::switch_to(Thread& from, Thread& to) {
  if (&from == &to) return;
  starting = &to;
  note_switch(to.race_fiber);
  start_switch(from.state == ThreadState::kDone ? nullptr : &from.fake_stack,
               stacks_->bottom(to.idx), kPrHostStackBytes);
  prunerc_switch_stack(&from.stack, to.stack);
  finish_switch(from.fake_stack, nullptr, nullptr);
}

void Block::leave_to_main(Thread& from) {
  note_switch(main_fiber_);
  start_switch(nullptr, main_bottom_, main_size_);
  prunerc_switch_stack(&from.stack, main_stack_);
}

void Block::run_next(Thread& from) {
  Thread* next = pick(from);
  while (next == nullptr && land_one(*this)) next = pick(from);
  if (next != nullptr) return switch_to(from, *next);
  if (alive_ > 0) fault(from, describe_deadlock());
  leave_to_main(from);
}

void Block::abandon(Thread& from) {
  // What threads did in the middle of their work comes before whatever happens to their memory.
  for (int i = 0; i < num_threads_; ++i) {
    note_switch(threads_[static_cast<size_t>(i)].race_fiber);
    cuda_host::release(&end_sync_);
  }
  for (int i = 0; i < num_groups_; ++i) {
    note_switch(groups_[static_cast<size_t>(i)].engine);
    cuda_host::release(&end_sync_);
  }
  leave_to_main(from);
}

std::string Block::describe_deadlock() {
  int at_barrier = 0, at_collective = 0, at_mbarrier = 0, ended = 0;
  for (int i = 0; i < num_threads_; ++i) {
    switch (threads_[static_cast<size_t>(i)].state) {
      case ThreadState::kBarrier: ++at_barrier; break;
      case ThreadState::kWarp:
      case ThreadState::kWarpGroup: ++at_collective; break;
      case ThreadState::kMbarrier: ++at_mbarrier; break;
      case ThreadState::kDone: ++ended; break;
      case ThreadState::kReady: break;
    }
  }
  std::array<char, 200> text{};
  std::snprintf(
      text.data(), text.size(),
      "deadlock: %d threads at a barrier, %d in a collective, %d waiting for an mbarrier, "
      "%d ended",
      at_barrier, at_collective, at_mbarrier, ended);
  return text.data();
}

void Block::fault(const Thread& thread, std::string_view what) {
  const PrHostThread& view = *thread.view;
  std::snprintf(fault_.data(), fault_.size(), "%.*s (thread %d,%d,%d of block %d,%d,%d)",
                static_cast<int>(what.size()), what.data(), view.thread[0], view.thread[1],
                view.thread[2], view.block[0], view.block[1], view.block[2]);
  abandon(threads_[static_cast<size_t>(thread.idx)]);
  std::abort();  // a block with a fault is never continued
}

}  // namespace prunerc::runtime::cuda_host
