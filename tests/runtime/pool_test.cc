#include "runtime/cpu/pool.h"

#include "runtime/clock.h"

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

namespace prunerc::runtime {
namespace {

struct Counts {
  std::vector<std::atomic<int>> runs;
  std::atomic<int> bad_worker{0};
  int num_workers;

  Counts(int64_t num_tasks, int workers)
      : runs(static_cast<size_t>(num_tasks)), num_workers(workers) {}
  bool each_ran_once() const {
    for (const auto& count : runs) {
      if (count.load() != 1) return false;
    }
    return bad_worker == 0;
  }
};

void count(int64_t task, int32_t worker, void* closure) {
  auto& counts = *static_cast<Counts*>(closure);
  counts.runs[static_cast<size_t>(task)].fetch_add(1);
  if (worker < 0 || worker >= counts.num_workers) counts.bad_worker.fetch_add(1);
}

TEST_CASE("every task runs exactly once for any number of threads and tasks") {
  for (const int num_threads : {1, 2, 3, 8}) {
    Pool pool({.num_threads = num_threads});
    REQUIRE(pool.num_threads() == num_threads);
    for (const int64_t num_tasks : {0, 1, 2, 3, 7, 64, 1000, 12345}) {
      Counts counts(num_tasks, num_threads);
      CHECK(pool.launch()->parallel_for(pool.launch(), num_tasks, count, &counts) == 0);
      CHECK(counts.each_ran_once());
    }
  }
}

TEST_CASE("many launches in a row lose no task and no wake-up") {
  Pool pool({.num_threads = 3, .spin_ns = 1000});
  for (int i = 0; i < 20'000; ++i) {
    Counts counts(5, 3);
    pool.parallel_for(5, count, &counts);
    REQUIRE(counts.each_ran_once());
    if (i % 4000 == 0) usleep(3000);  // long enough for the workers to sleep
  }
}

TEST_CASE("a child of a fork runs its loops alone and waits for no thread of its parent") {
  auto pool = std::make_unique<Pool>(PoolOptions{.num_threads = 3});
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    Counts counts(100, 3);
    pool->parallel_for(100, count, &counts);
    pool.reset();
    _exit(counts.each_ran_once() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  Counts counts(100, 3);
  pool->parallel_for(100, count, &counts);
  CHECK(counts.each_ran_once());
}

TEST_CASE("a parallel loop inside a task runs on its worker") {
  Pool pool({.num_threads = 3});
  struct Nested {
    Pool* pool;
    std::atomic<int> wrong{0};
    std::atomic<int> inner{0};
  } nested{.pool = &pool};
  pool.parallel_for(
      50,
      [](int64_t, int32_t worker, void* closure) {
        struct Inner {
          Nested* nested;
          int32_t worker;
        } inner{static_cast<Nested*>(closure), worker};
        inner.nested->pool->parallel_for(
            4,
            [](int64_t, int32_t inner_worker, void* at) {
              auto& seen = *static_cast<Inner*>(at);
              seen.nested->inner.fetch_add(1);
              if (inner_worker != seen.worker) seen.nested->wrong.fetch_add(1);
            },
            &inner);
      },
      &nested);
  CHECK(nested.wrong == 0);
  CHECK(nested.inner == 200);
}

TEST_CASE("callers on several threads share one pool") {
  Pool pool({.num_threads = 2});
  std::atomic<int> failures{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Counts counts(20, 2);
        pool.parallel_for(20, count, &counts);
        if (!counts.each_ran_once()) failures.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(failures == 0);
}

TEST_CASE("idle workers go to sleep") {
  Pool pool({.num_threads = 3, .spin_ns = 100'000});
  Counts counts(100, 3);
  pool.parallel_for(100, count, &counts);
  usleep(50'000);
  const std::vector<int64_t> before = pool.worker_cpu_ns();
  usleep(200'000);
  const std::vector<int64_t> after = pool.worker_cpu_ns();
  REQUIRE(before.size() == 2);
  for (size_t i = 0; i < before.size(); ++i) CHECK(after[i] - before[i] < 5'000'000);
}

TEST_CASE("signals of the program are for its own threads, faults for the thread that makes them") {
  const auto blocked = [](int signal) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, signal) == 1;
  };
  static std::atomic<int> wrong, helped;
  wrong = helped = 0;
  Pool pool({.num_threads = 3});
  const PrunercTask look = [](int64_t, int32_t worker, void* closure) {
    const auto& is_blocked = *static_cast<const decltype(blocked)*>(closure);
    usleep(1000);  // long enough for all workers to take part
    if (worker > 0) ++helped;
    const bool own = worker == 0;
    if (is_blocked(SIGINT) == own || is_blocked(SIGTERM) == own || is_blocked(SIGSEGV)) ++wrong;
  };
  pool.parallel_for(60, look, const_cast<void*>(static_cast<const void*>(&blocked)));
  CHECK(wrong == 0);
  CHECK(helped > 0);
}

TEST_CASE("pools come and go without a launch") {
  for (int i = 0; i < 100; ++i)
    CHECK(std::make_unique<Pool>(PoolOptions{.num_threads = 4})->num_threads() == 4);
}

}  // namespace
}  // namespace prunerc::runtime
