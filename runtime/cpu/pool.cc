#include "runtime/cpu/pool.h"

#include "runtime/clock.h"
#include "runtime/cpu/float_mode.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <memory>

namespace prunerc::runtime {
namespace {

constexpr uint64_t kOpen = uint64_t{1} << 63;
constexpr uint32_t kEpochMask = 0x7fffffffU;

/// Polls this often between two looks at the clock: one look costs about as much as one poll of a
/// contended line.
constexpr int kPollsPerClock = 32;

/// After this long a waiting caller gives its core away between polls: the thread it waits for may
/// need that core.
constexpr int64_t kYieldAfterNs = 50'000;

/// Chunks per worker: few enough that the shared counter is cold, enough to even out unequal tasks.
constexpr int64_t kChunksPerWorker = 16;

/// The pool whose task this thread runs, and as which worker; null outside of tasks.
thread_local const Pool* current_pool = nullptr;
thread_local int current_worker = 0;

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

uint64_t open_state(uint32_t epoch) { return kOpen | (uint64_t{epoch & kEpochMask} << 32); }

uint32_t num_inside(uint64_t state) { return static_cast<uint32_t>(state); }

void run_serially(int64_t num_tasks, int worker, PrunercTask body, void* closure) {
  for (int64_t task = 0; task < num_tasks; ++task) body(task, worker, closure);
}

/// As large as a main thread's: kernels keep their temporaries there. The guard is wider than any
/// frame that is not probed, so an overflow faults instead of reaching another mapping.
constexpr size_t kStackBytes = 8 << 20;
constexpr size_t kStackGuardBytes = 1 << 20;

// All but those of a fault in the thread itself.
sigset_t programs_signals() {
  sigset_t out;
  sigfillset(&out);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&out, fault);
  return out;
}

}  // namespace

struct Pool::Start {
  Pool* pool;
  int worker;
};

Pool::Pool(const PoolOptions& options)
    : process_(getpid()), spin_ns_(options.spin_ns), on_thread_start_(options.on_thread_start) {
  const int num_threads = std::max(1, options.num_threads);
  shares_ = std::vector<Share>(static_cast<size_t>(num_threads));
  launch_.parallel_for = [](const PrunercLaunch* self, int64_t num_tasks, PrunercTask body,
                            void* closure) -> int32_t {
    static_cast<Pool*>(self->context)->parallel_for(num_tasks, body, closure);
    return 0;
  };
  launch_.context = this;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setguardsize(&attributes, kStackGuardBytes);
  // The program's signals are for its own threads.
  const sigset_t theirs = programs_signals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &theirs, &before);
  for (int worker = 1; worker < num_threads; ++worker) {
    auto start = std::make_unique<Start>(Start{this, worker});
    pthread_t thread{};
    if (pthread_create(&thread, &attributes, thread_main, start.get()) != 0) break;
    static_cast<void>(start.release());
    threads_.push_back(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  launch_.num_workers = static_cast<int>(threads_.size()) + 1;
}

void* Pool::thread_main(void* start) {
  const std::unique_ptr<Start> mine(static_cast<Start*>(start));
  DefaultFloatMode::set();  // a thread begins with that of who made it
  mine->pool->worker_main(mine->worker);
  return nullptr;
}

Pool::~Pool() {
  // In the child of a fork there are no threads to wait for.
  if (getpid() != process_) return;
  stop_.store(true, std::memory_order_seq_cst);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake_all(epoch_);
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void Pool::parallel_for(int64_t num_tasks, PrunercTask body, void* closure) {
  if (current_pool == this) return run_serially(num_tasks, current_worker, body, closure);
  if (current_pool != nullptr || threads_.empty() || num_tasks <= 1 ||
      busy_.exchange(true, std::memory_order_acquire)) {
    return run_serially(num_tasks, 0, body, closure);
  }
  const int64_t num_workers = launch_.num_workers;
  job_ = {.body = body,
          .closure = closure,
          .chunk = std::max<int64_t>(1, num_tasks / (kChunksPerWorker * num_workers))};
  for (int64_t worker = 0; worker < num_workers; ++worker) {
    Share& share = shares_[static_cast<size_t>(worker)];
    share.next.store(num_tasks * worker / num_workers, std::memory_order_relaxed);
    share.end = num_tasks * (worker + 1) / num_workers;
  }
  const uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  state_.store(open_state(epoch), std::memory_order_release);
  epoch_.store(epoch, std::memory_order_seq_cst);
  if (num_parked_.load(std::memory_order_seq_cst) > 0) futex_wake_all(epoch_);

  current_pool = this;
  current_worker = 0;
  run_tasks(0);
  current_pool = nullptr;

  state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  int64_t started_ns = 0;
  for (int polls = 1; num_inside(state_.load(std::memory_order_acquire)) != 0; ++polls) {
    _mm_pause();
    if (polls % kPollsPerClock != 0) continue;
    if (started_ns == 0) started_ns = now_ns();
    if (now_ns() - started_ns > kYieldAfterNs) sched_yield();
  }
  busy_.store(false, std::memory_order_release);
}

std::vector<int64_t> Pool::worker_cpu_ns() const {
  std::vector<int64_t> result;
  result.reserve(threads_.size());
  for (const pthread_t thread : threads_) {
    clockid_t clock{};
    result.push_back(pthread_getcpuclockid(thread, &clock) == 0 ? clock_ns(clock) : 0);
  }
  return result;
}

void Pool::worker_main(int worker) {
  if (on_thread_start_ != nullptr) on_thread_start_(worker);
  current_pool = this;
  current_worker = worker;
  uint32_t epoch = 0;
  while (true) {
    epoch = wait_for_launch(epoch);
    if (stop_.load(std::memory_order_acquire)) return;
    if (!try_enter(epoch)) continue;
    run_tasks(worker);
    state_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

uint32_t Pool::wait_for_launch(uint32_t seen_epoch) {
  int64_t started_ns = 0;
  for (int polls = 1;; ++polls) {
    const uint32_t epoch = epoch_.load(std::memory_order_acquire);
    if (epoch != seen_epoch) return epoch;
    _mm_pause();
    if (polls % kPollsPerClock != 0) continue;
    if (started_ns == 0) started_ns = now_ns();
    if (now_ns() - started_ns > spin_ns_.load(std::memory_order_relaxed)) break;
  }
  // Sequentially consistent with the launcher's store of the epoch: either it sees us parked or we
  // see its epoch.
  num_parked_.fetch_add(1, std::memory_order_seq_cst);
  uint32_t epoch = epoch_.load(std::memory_order_seq_cst);
  while (epoch == seen_epoch) {
    futex_wait(epoch_, seen_epoch);
    epoch = epoch_.load(std::memory_order_seq_cst);
  }
  num_parked_.fetch_sub(1, std::memory_order_seq_cst);
  return epoch;
}

bool Pool::try_enter(uint32_t epoch) {
  uint64_t state = state_.load(std::memory_order_acquire);
  const uint64_t wanted = open_state(epoch) >> 32;
  while (state >> 32 == wanted) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void Pool::run_tasks(int worker) {
  const Job job = job_;
  const size_t num_shares = shares_.size();
  for (size_t i = 0; i < num_shares; ++i) {
    Share& share = shares_[(static_cast<size_t>(worker) + i) % num_shares];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      const int64_t first = share.next.fetch_add(job.chunk, std::memory_order_relaxed);
      const int64_t last = std::min(share.end, first + job.chunk);
      for (int64_t task = first; task < last; ++task) job.body(task, worker, job.closure);
    }
  }
}

}  // namespace prunerc::runtime
