// A fork-join thread pool that implements PrunercLaunch: the default launcher of CPU kernels.
#ifndef PRUNERC_RUNTIME_CPU_POOL_H_
#define PRUNERC_RUNTIME_CPU_POOL_H_

#include "runtime/kernel.h"

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace prunerc::runtime {

struct PoolOptions {
  /// Threads that run tasks, the caller of parallel_for included; at least 1.
  int num_threads = 1;
  /// How long an idle worker polls for the next launch before it sleeps. Units: ns.
  int64_t spin_ns = 200'000;
  /// Called once on each thread the pool starts, before any task (signal stacks, affinity); may be
  /// null.
  void (*on_thread_start)(int worker) = nullptr;
};

/// Runs parallel loops on a fixed set of threads. One parallel_for at a time; a nested or
/// concurrent one runs serially on its caller, as all do in the child of a fork. Threads: parallel_for may be called from any thread;
/// construction and destruction from one. Cost: about a microsecond to launch while the workers
/// still poll.
class Pool {
 public:
  explicit Pool(const PoolOptions& options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// The launcher to hand to kernels; valid while the pool lives.
  const PrunercLaunch* launch() const { return &launch_; }

  /// Threads that take part; fewer than asked for if the system refuses to start more.
  int num_threads() const { return launch_.num_workers; }

  /// Runs body(task, worker, closure) for every task in 0 .. num_tasks-1 and returns after the last
  /// one.
  void parallel_for(int64_t num_tasks, PrunercTask body, void* closure);

  /// Changes how long idle workers poll; a timer keeps them awake so that their CPU time equals the
  /// wall time.
  void set_spin_ns(int64_t spin_ns) { spin_ns_.store(spin_ns, std::memory_order_relaxed); }

  /// CPU time used so far by each thread that the pool started (workers 1 ..). Units: ns.
  std::vector<int64_t> worker_cpu_ns() const;

 private:
  // A job stays open while its caller runs tasks; only workers that entered an open job are waited
  // for, so a worker that wakes late costs nothing.
  struct Job {
    PrunercTask body = nullptr;
    void* closure = nullptr;
    int64_t chunk = 1;
  };

  // The tasks that a worker takes first: the same ones in each launch of a loop, so that their data
  // stay in its caches. Who has finished goes on with what others have left.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  struct Start;
  static void* thread_main(void* start);
  void worker_main(int worker);
  uint32_t wait_for_launch(uint32_t seen_epoch);
  bool try_enter(uint32_t epoch);
  void run_tasks(int worker);

  const pid_t process_;  // that has the threads
  PrunercLaunch launch_;
  Job job_;
  std::atomic<bool> busy_{false};
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> spin_ns_;
  void (*on_thread_start_)(int) = nullptr;
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<int32_t> num_parked_{0};
  // Bit 63: open; bits 32..62: low bits of the epoch; bits 0..31: workers inside.
  alignas(64) std::atomic<uint64_t> state_{0};
  std::vector<Share> shares_;
  std::vector<pthread_t> threads_;
};

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_POOL_H_
