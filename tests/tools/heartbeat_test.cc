#include "tools/prunerc/heartbeat.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <thread>

namespace prunerc::cli {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a heartbeat comes while nobody prints, again and again") {
  std::atomic<int> beats = 0;
  {
    const Heartbeat heartbeat([&] { ++beats; }, milliseconds(20));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (beats < 3 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  CHECK(beats >= 3);
}

TEST_CASE("whoever prints postpones the heartbeat") {
  std::atomic<int> beats = 0;
  Heartbeat heartbeat([&] { ++beats; }, std::chrono::seconds(20));
  for (int i = 0; i < 20; ++i) {
    heartbeat.touch();
    std::this_thread::sleep_for(milliseconds(2));
  }
  CHECK(beats == 0);
}

TEST_CASE("a silence is shorter than ten seconds, and ends at once with the work") {
  CHECK(kLongestSilence < std::chrono::seconds(10));
  const auto start = std::chrono::steady_clock::now();
  { const StillAt working("doing nothing"); }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

}  // namespace
}  // namespace prunerc::cli
