// Inbox: requests to a measurer and who waits for their answers.
#ifndef PRUNERC_SEARCH_TUNE_INBOX_H_
#define PRUNERC_SEARCH_TUNE_INBOX_H_

#include "search/tune/measurer.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

namespace prunerc::search {

/// Ends when the user cancels or the device is lost. Threads: belongs to one.
class Inbox {
 public:
  using OnAnswer = std::function<void(Measurement)>;

  /// `cancel` may be null; both outlive the inbox.
  Inbox(Measurer& measurer, const std::atomic<bool>* cancel)
      : measurer_(measurer), cancel_(cancel) {}

  /// Sets the request's id; `on_answer` is called by wait_until, at most once. Returns the id.
  int64_t submit(MeasureInput input, OnAnswer on_answer);
  /// The answer will be thrown away.
  void forget(int64_t id) { waiting_.erase(id); }

  /// Nobody waits any longer for what was asked so far, and what was not begun is not done.
  void withdraw();

  /// Takes answers, in whatever order they come, until `is_done` or the end.
  void wait_until(const std::function<bool()>& is_done);

  bool is_cancelled() const {
    return cancel_ != nullptr && cancel_->load(std::memory_order_relaxed);
  }
  /// Several losses in a row, or a measurer that owes answers and has none: nothing measured
  /// afterwards would mean anything.
  bool has_lost_device() const;
  double busy_seconds() const { return measurer_.busy_seconds(); }
  bool has_ended() const { return is_cancelled() || has_lost_device(); }

 private:
  Measurer& measurer_;
  const std::atomic<bool>* cancel_;
  std::map<int64_t, OnAnswer> waiting_;
  int64_t next_id_ = 1;
  int device_losses_ = 0;  // in a row
};

/// After a call, what it left with the measurer: drops what nobody has begun and waits for the rest,
/// so that tasks may go away and another call may begin its ids anew.
void drain(Measurer& measurer);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_INBOX_H_
