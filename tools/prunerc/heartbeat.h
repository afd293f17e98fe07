// Heartbeat: whoever waits for long work hears of it at least every ten seconds.
#ifndef PRUNERC_TOOLS_PRUNERC_HEARTBEAT_H_
#define PRUNERC_TOOLS_PRUNERC_HEARTBEAT_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace prunerc::cli {

/// The longest silence, with some head-room for a busy machine.
inline constexpr std::chrono::milliseconds kLongestSilence{9000};

/// Calls `beat` on a thread of its own whenever nobody has called `touch` for `interval`.
/// Destruction ends it.
class Heartbeat {
 public:
  explicit Heartbeat(std::function<void()> beat,
                     std::chrono::milliseconds interval = kLongestSilence);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  /// Something was printed: silence begins anew.
  void touch();

 private:
  void watch();

  std::function<void()> beat_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool stopping_ = false;
  std::thread thread_;  // last: it sees the others
};

/// While it lives, "still WHAT, 18 s" on stderr now and then.
class StillAt {
 public:
  explicit StillAt(std::string what);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Heartbeat heartbeat_;
};

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_HEARTBEAT_H_
