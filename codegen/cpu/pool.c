// The threads of exported CPU libraries: a fork-join pool that the first parallel loop starts.
// All libraries that are linked into one program, or one shared object, share it. Stands behind
// groups.c in libraries that were tuned for several threads.

enum {
  PR_SPIN_NS = 50000,  // how long an idle thread polls for the next loop before it sleeps
  PR_YIELD_AFTER_NS =
      20000,  // how long a caller polls for the last tasks before it gives its core away in between
  PR_POLLS_PER_CLOCK = 32,
  PR_CHUNKS_PER_WORKER = 16,
  PR_STACK_BYTES = 8 << 20,  // as the threads have that the kernel was tuned in
};

// The tasks that a worker takes first: the same ones in each run of a loop, so that their data stay
// in its caches.
typedef struct {
  _Alignas(64) _Atomic int64_t next;
  int64_t end;
} pr_share;

typedef struct {
  _Atomic int busy;  // some caller's loop runs here, or the pool has ended
  // What the one that made it busy may change.
  int capacity;  // most workers, the caller included; 0: nothing is prepared
  int num_workers;
  int has_fork_handler;
  pthread_t* threads;
  pr_share* shares;
  // The loop. Workers read it only while they are inside.
  PrunercTask body;
  void* closure;
  int64_t chunk;
  int num_wanted;
  _Atomic int is_ending;
  _Atomic int num_parked;
  _Alignas(64) _Atomic uint32_t epoch;
  // Bit 63: open to workers; bits 32..62: low bits of the epoch; bits 0..31: workers inside.
  _Alignas(64) _Atomic uint64_t state;
} pr_pool;

// The linker keeps one. A change of pr_pool or of what it means needs a new name.
__attribute__((weak, visibility("hidden"))) pr_pool prunerc_pool_v1;

static const uint64_t PR_OPEN = (uint64_t)1 << 63;

static int64_t pr_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pr_futex(_Atomic uint32_t* word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void pr_wake(pr_pool* pool) {
  if (atomic_load(&pool->num_parked) > 0) pr_futex(&pool->epoch, FUTEX_WAKE, INT_MAX);
}

static uint64_t pr_open_state(uint32_t epoch) {
  return PR_OPEN | (uint64_t)(epoch & 0x7fffffffu) << 32;
}

// ---- CPUs ----

// Of the first thread, which stand for the process, and of this one: either may be bound to a few.
static cpu_set_t pr_process_cpus(void) {
  cpu_set_t all, own;
  CPU_ZERO(&all);  // and so they stay on a machine with more CPUs than fit in
  CPU_ZERO(&own);
  sched_getaffinity(getpid(), sizeof all, &all);
  sched_getaffinity(0, sizeof own, &own);
  CPU_OR(&all, &all, &own);
  return all;
}

// More threads than these never help.
static int pr_machine_cpus(void) {
  const cpu_set_t cpus = pr_process_cpus();
  const int own = CPU_COUNT(&cpus), online = (int)sysconf(_SC_NPROCESSORS_ONLN);
  const int most = online > own ? online : own;
  return most > 1 ? most : 1;
}

// No more than a quota and its period are enough for, rounded up.
static void pr_cut_to_quota(const long long* quota, void* most) {
  int* const cpus = (int*)most;
  if (quota[0] <= 0 || quota[1] <= 0) return;
  const long long whole = (quota[0] - 1) / quota[1];
  if (whole < *cpus) *cpus = (int)whole + 1;
}

// As runtime/cpu/cpus.cc.
static void pr_cut_to_quotas(int* cpus) {
  long long quota[2];
  pr_cut_to_groups("/sys/fs/cgroup", "", "cpu.max", 2, pr_cut_to_quota, cpus);
  // The first version of control groups.
  if (pr_read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota[0], 1) == 1 &&
      pr_read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &quota[1], 1) == 1)
    pr_cut_to_quota(quota, cpus);
}

// That this process may use.
static int pr_usable_cpus(void) {
  const cpu_set_t cpus = pr_process_cpus();
  int count = CPU_COUNT(&cpus);
  if (count == 0) count = pr_machine_cpus();
  pr_cut_to_quotas(&count);
  return count;
}

// ---- the workers ----

// A loop is open while its caller runs tasks; only workers that entered are waited for, so that one
// that wakes late costs nothing.
static int pr_enter(pr_pool* pool, uint32_t epoch) {
  uint64_t state = atomic_load_explicit(&pool->state, memory_order_acquire);
  while (state >> 32 == pr_open_state(epoch) >> 32) {
    if (atomic_compare_exchange_weak_explicit(&pool->state, &state, state + 1, memory_order_acq_rel,
                                              memory_order_acquire))
      return 1;
  }
  return 0;
}

static void pr_run_tasks(pr_pool* pool, int worker) {
  const int num_shares = pool->num_wanted;
  for (int i = 0; i < num_shares; ++i) {
    pr_share* const share = &pool->shares[(worker + i) % num_shares];
    while (atomic_load_explicit(&share->next, memory_order_relaxed) < share->end) {
      const int64_t first =
          atomic_fetch_add_explicit(&share->next, pool->chunk, memory_order_relaxed);
      const int64_t last = first + pool->chunk < share->end ? first + pool->chunk : share->end;
      for (int64_t task = first; task < last; ++task) pool->body(task, worker, pool->closure);
    }
  }
}

static uint32_t pr_await_loop(pr_pool* pool, uint32_t seen) {
  int64_t started_ns = 0;
  for (int polls = 1;; ++polls) {
    const uint32_t epoch = atomic_load_explicit(&pool->epoch, memory_order_acquire);
    if (epoch != seen) return epoch;
    __builtin_ia32_pause();
    if (polls % PR_POLLS_PER_CLOCK != 0) continue;
    if (started_ns == 0) started_ns = pr_now_ns();
    if (pr_now_ns() - started_ns > PR_SPIN_NS) break;
  }
  // Sequentially consistent with pr_open_loop: either it sees this thread parked, or this thread
  // sees its epoch.
  atomic_fetch_add(&pool->num_parked, 1);
  uint32_t epoch = atomic_load(&pool->epoch);
  for (; epoch == seen; epoch = atomic_load(&pool->epoch)) pr_futex(&pool->epoch, FUTEX_WAIT, seen);
  atomic_fetch_sub(&pool->num_parked, 1);
  return epoch;
}

// A thread may use the CPUs of the one that started it, which may be bound to fewer than there are
// workers: those that find no CPU of their own there leave for the process'.
static void pr_find_room(int worker) {
  cpu_set_t own;
  if (sched_getaffinity(0, sizeof own, &own) != 0 || CPU_COUNT(&own) > worker) return;
  const cpu_set_t all = pr_process_cpus();
  sched_setaffinity(0, sizeof all, &all);
}

static void* pr_work(void* argument) {
  pr_pool* const pool = &prunerc_pool_v1;
  const int worker = (int)(intptr_t)argument;
  _mm_setcsr(PR_MXCSR);
  pr_find_room(worker);
  for (uint32_t epoch = 0;;) {
    epoch = pr_await_loop(pool, epoch);
    if (atomic_load(&pool->is_ending)) return NULL;
    if (!pr_enter(pool, epoch)) continue;
    if (worker < pool->num_wanted) pr_run_tasks(pool, worker);
    atomic_fetch_sub_explicit(&pool->state, 1, memory_order_acq_rel);
  }
}

// ---- start and end ----

// In the child of a fork there is one thread, and no loop runs.
static void pr_after_fork(void) {
  pr_pool* const pool = &prunerc_pool_v1;
  pool->num_workers = 1;
  atomic_store(&pool->epoch, 0);
  atomic_store(&pool->state, 0);
  atomic_store(&pool->num_parked, 0);
  atomic_store(&pool->is_ending, 0);
  atomic_store(&pool->busy, 0);
}

static int pr_prepare(pr_pool* pool) {
  if (!pool->has_fork_handler && pthread_atfork(NULL, NULL, pr_after_fork) != 0) return 0;
  pool->has_fork_handler = 1;
  const int capacity = pr_machine_cpus();
  pool->threads = malloc((size_t)capacity * sizeof *pool->threads);
  pool->shares = aligned_alloc(_Alignof(pr_share), (size_t)capacity * sizeof *pool->shares);
  if (pool->threads == NULL || pool->shares == NULL) {
    free(pool->threads);
    free(pool->shares);
    return 0;
  }
  pool->num_workers = 1;
  // A fork from here on finds all of it.
  atomic_signal_fence(memory_order_seq_cst);
  pool->capacity = capacity;
  return 1;
}

static int pr_start_thread(pthread_t* thread, int worker) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return 0;
  pthread_attr_setstacksize(&attributes, PR_STACK_BYTES);
  const int code = pthread_create(thread, &attributes, pr_work, (void*)(intptr_t)worker);
  pthread_attr_destroy(&attributes);
  return code == 0;
}

// How many workers there are for a loop that wants so many.
static int pr_grow(pr_pool* pool, int wanted) {
  if (pool->capacity == 0 && !pr_prepare(pool)) return 1;
  if (wanted > pool->capacity) wanted = pool->capacity;
  if (pool->num_workers >= wanted) return wanted;
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  for (int i = 0; i < 5; ++i)
    sigdelset(&all, ((int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})[i]);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return pool->num_workers;
  while (pool->num_workers < wanted &&
         pr_start_thread(&pool->threads[pool->num_workers], pool->num_workers))
    ++pool->num_workers;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  // Where the system refuses a thread, it is not asked again.
  if (pool->num_workers < wanted) pool->capacity = pool->num_workers;
  return pool->num_workers;
}

// At exit, and before the code goes away by dlclose. Calls that come later run on their callers.
__attribute__((destructor)) static void pr_end_pool(void) {
  pr_pool* const pool = &prunerc_pool_v1;
  // Busy at exit: some thread still computes, and the process ends with it.
  if (atomic_exchange(&pool->busy, 1) != 0 || pool->capacity == 0) return;
  atomic_store(&pool->is_ending, 1);
  atomic_fetch_add(&pool->epoch, 1);
  pr_futex(&pool->epoch, FUTEX_WAKE, INT_MAX);
  for (int worker = 1; worker < pool->num_workers; ++worker)
    pthread_join(pool->threads[worker], NULL);
  // The child of a fork from here on makes its own.
  pool->capacity = 0;
  atomic_signal_fence(memory_order_seq_cst);
  free(pool->threads);
  free(pool->shares);
}

// ---- loops ----

static void pr_open_loop(pr_pool* pool, int num_workers, int64_t num_tasks, PrunercTask body,
                         void* closure) {
  pool->body = body;
  pool->closure = closure;
  pool->num_wanted = num_workers;
  pool->chunk = num_tasks / ((int64_t)PR_CHUNKS_PER_WORKER * num_workers);
  if (pool->chunk == 0) pool->chunk = 1;
  for (int worker = 0; worker < num_workers; ++worker) {
    // Without products that overflow.
    const int64_t each = num_tasks / num_workers, more = num_tasks % num_workers;
    pr_share* const share = &pool->shares[worker];
    const int64_t first = each * worker + (worker < more ? worker : more);
    atomic_store_explicit(&share->next, first, memory_order_relaxed);
    share->end = first + each + (worker < more);
  }
  const uint32_t epoch = atomic_load_explicit(&pool->epoch, memory_order_relaxed) + 1;
  atomic_store_explicit(&pool->state, pr_open_state(epoch), memory_order_release);
  atomic_store(&pool->epoch, epoch);
  pr_wake(pool);
}

static void pr_close_loop(pr_pool* pool) {
  atomic_fetch_and_explicit(&pool->state, ~PR_OPEN, memory_order_acq_rel);
  int64_t started_ns = 0;
  for (int polls = 1; (uint32_t)atomic_load_explicit(&pool->state, memory_order_acquire) != 0;
       ++polls) {
    __builtin_ia32_pause();
    if (polls % PR_POLLS_PER_CLOCK != 0) continue;
    if (started_ns == 0) started_ns = pr_now_ns();
    if (pr_now_ns() - started_ns > PR_YIELD_AFTER_NS) sched_yield();
  }
}

// One loop at a time: who comes while another runs does its tasks itself.
static int32_t pr_parallel_for(const PrunercLaunch* self, int64_t num_tasks, PrunercTask body,
                               void* closure) {
  pr_pool* const pool = &prunerc_pool_v1;
  if (self->num_workers <= 1 || num_tasks <= 1 ||
      atomic_load_explicit(&pool->busy, memory_order_relaxed) != 0 ||
      atomic_exchange_explicit(&pool->busy, 1, memory_order_acquire) != 0)
    return pr_run_serially(num_tasks, body, closure);
  const int num_workers = pr_grow(pool, self->num_workers);
  if (num_workers > 1) {
    pr_open_loop(pool, num_workers, num_tasks, body, closure);
    pr_run_tasks(pool, 0);
    pr_close_loop(pool);
  } else {
    pr_run_serially(num_tasks, body, closure);
  }
  atomic_store_explicit(&pool->busy, 0, memory_order_release);
  return 0;
}

// ---- how many ----

// A number, cut to INT_MAX; 0 for anything else.
static int pr_parse_count(const char* text) {
  int64_t count = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    count = count * 10 + (*text - '0');
    if (count > INT_MAX) count = INT_MAX;
  }
  return *text == 0 ? (int)count : 0;
}

// As many as the kernel was tuned for, but no more than this process may use CPUs; or as many as
// PRUNERC_NUM_THREADS says, but no more than there are. Decided at the first call.
static int32_t pr_num_workers(void) {
  static _Atomic int decided;
  int count = atomic_load_explicit(&decided, memory_order_relaxed);
  if (count != 0) return count;
  const char* const wish = getenv("PRUNERC_NUM_THREADS");
  const int wanted = wish == NULL ? 0 : pr_parse_count(wish);
  const int most = wanted > 0 ? pr_machine_cpus() : pr_usable_cpus();
  count = wanted > 0 ? wanted : PR_NUM_THREADS;
  if (count > most) count = most;
  atomic_store_explicit(&decided, count, memory_order_relaxed);
  return count;
}
