#include "tools/prunerc/heartbeat.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace prunerc::cli {

using Clock = std::chrono::steady_clock;

Heartbeat::Heartbeat(std::function<void()> beat, std::chrono::milliseconds interval)
    : beat_(std::move(beat)), interval_(interval), thread_([this] { watch(); }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Heartbeat::touch() {
  const std::lock_guard lock(mutex_);
  last_ = Clock::now();
}

void Heartbeat::watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (changed_.wait_until(lock, last_ + interval_, [this] { return stopping_; })) return;
    if (Clock::now() < last_ + interval_) continue;
    last_ = Clock::now();
    // Not with the lock: what prints may touch.
    lock.unlock();
    beat_();
    lock.lock();
  }
}

StillAt::StillAt(std::string what)
    : what_(std::move(what)), heartbeat_([this] {
        const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
        fmt::print(stderr, "still {}, {:.0f} s\n", what_, seconds);
      }) {}

}  // namespace prunerc::cli
