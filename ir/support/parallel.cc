#include "ir/support/parallel.h"

#include <algorithm>

namespace prunerc {

int num_hardware_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int num_threads) {
  if (num_threads < 1) num_threads = num_hardware_threads();
  for (int i = 1; i < num_threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (workers_.empty() || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    next_ = 0;
    num_done_ = 0;
    ++generation_;
  }
  start_.notify_all();
  run_indices();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return num_done_ == count_; });
  body_ = nullptr;
}

void ThreadPool::run_indices() {
  std::unique_lock lock(mutex_);
  while (body_ != nullptr && next_ < count_) {
    const std::size_t index = next_++;
    const std::function<void(std::size_t)>& body = *body_;
    lock.unlock();
    body(index);
    lock.lock();
    if (++num_done_ == count_) done_.notify_all();
  }
}

void ThreadPool::work() {
  uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
    }
    run_indices();
  }
}

}  // namespace prunerc
