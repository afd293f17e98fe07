#include "search/tune/inbox.h"

#include <chrono>
#include <optional>
#include <utility>

namespace prunerc::search {
namespace {

using Clock = std::chrono::steady_clock;

/// How long next() may sleep before the cancel flag is looked at again.
constexpr auto kPollInterval = std::chrono::milliseconds(50);
constexpr int kMaxDeviceLosses = 3;

}  // namespace

bool Inbox::has_lost_device() const { return device_losses_ >= kMaxDeviceLosses; }

int64_t Inbox::submit(MeasureInput input, OnAnswer on_answer) {
  const int64_t id = next_id_++;
  input.id = id;
  waiting_[id] = std::move(on_answer);
  measurer_.submit(std::move(input));
  return id;
}

void Inbox::withdraw() {
  waiting_.clear();
  measurer_.withdraw();
}

void Inbox::wait_until(const std::function<bool()>& is_done) {
  while (!is_done() && !has_ended()) {
    const auto deadline = Clock::now() + kPollInterval;
    std::optional<MeasureOutcome> outcome = measurer_.next(deadline);
    if (!outcome) {
      // Nothing before the deadline: the measurer has no request left, yet an answer is missing.
      if (Clock::now() < deadline) device_losses_ = kMaxDeviceLosses;
      continue;
    }
    const auto at = waiting_.find(outcome->id);
    if (at == waiting_.end()) continue;
    const OnAnswer on_answer = std::move(at->second);
    waiting_.erase(at);
    const bool is_lost = outcome->measurement.status == MeasureStatus::kDeviceLost;
    device_losses_ = is_lost ? device_losses_ + 1 : 0;
    on_answer(std::move(outcome->measurement));
  }
}

void drain(Measurer& measurer) {
  measurer.withdraw();
  // However long what was begun takes: it looks at its task until then.
  while (true) {
    const auto deadline = Clock::now() + kPollInterval;
    if (!measurer.next(deadline) && Clock::now() < deadline) return;
  }
}

}  // namespace prunerc::search
