// parallel_for: the compiler's own threads (kernels have theirs, in runtime/cpu). Results never
// depend on their number.
#ifndef PRUNERC_IR_SUPPORT_PARALLEL_H_
#define PRUNERC_IR_SUPPORT_PARALLEL_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace prunerc {

/// A fixed set of threads that run the indices of one loop at a time.
/// Threads: for_each may be called from one thread at a time, and not from inside its own body.
class ThreadPool {
 public:
  /// `num_threads` counts the calling thread; 1 starts none, values below 1 mean one per hardware
  /// thread.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(i) for every i in 0 .. count, each exactly once, in no particular order; returns
  /// when all are done. The body must not throw; writes to disjoint slots need no lock.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body);

  /// results[i] = f(i): the order of the results is that of the indices, whatever thread made them.
  template <typename T, typename F>
  std::vector<T> map(std::size_t count, F&& f) {
    std::vector<T> results(count);
    for_each(count, [&](std::size_t i) { results[i] = f(i); });
    return results;
  }

 private:
  void work();
  void run_indices();

  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(std::size_t)>* body_ = nullptr;
  std::size_t count_ = 0;
  std::size_t next_ = 0;  // guarded by mutex_; the bodies are large, so a lock per index is cheap
  std::size_t num_done_ = 0;
  uint64_t generation_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

/// Hardware threads, at least 1.
int num_hardware_threads();

}  // namespace prunerc

#endif  // PRUNERC_IR_SUPPORT_PARALLEL_H_
