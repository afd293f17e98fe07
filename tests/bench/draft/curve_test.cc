// What one search gains over another, and curves that are kept.
#include "tests/bench/draft/curve.h"

#include "tests/bench/draft/kept_curve.h"
#include "tests/bench/draft/pools.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::bench {
namespace {

// (trial, ns, second) of each gain, and what the whole search took.
Curve curve(std::vector<search::CurvePoint> points, int64_t trials, double seconds) {
  Curve out;
  out.final_ns = points.back().best_ns;
  out.points = std::move(points);
  out.trials = trials;
  out.seconds.total = seconds;
  return out;
}

search::CurvePoint gain_at(int64_t trial, double ns, double seconds) {
  return {.trial = trial, .best_ns = ns, .seconds = seconds};
}

TEST_CASE("a gain is of the trials and seconds that the baseline's own end took") {
  const Curve theirs = curve({gain_at(10, 200, 1), gain_at(40, 100, 8)}, 100, 20);
  const Curve ours = curve({gain_at(10, 100, 2), gain_at(50, 80, 9)}, 100, 10);
  const Gain gain = gain_over(theirs, ours);
  CHECK(gain.ever);
  CHECK(gain.own_trials == 4);
  CHECK(gain.own_seconds == 4);
  CHECK(gain.trials == 10);
  CHECK(gain.seconds == 10);
  CHECK(gain.final == 1.25);
}

TEST_CASE("a search that never gets there gains nothing, however fast its trials are") {
  const Curve theirs = curve({gain_at(90, 100, 18)}, 100, 20);
  const Curve ours = curve({gain_at(10, 110, 1)}, 100, 2);
  const Gain gain = gain_over(theirs, ours);
  CHECK(!gain.ever);
  CHECK(gain.own_trials == 0.9);
  CHECK(gain.own_seconds == 1);
  CHECK(gain.trials == 1);
  CHECK(gain.final < 1);
}

TEST_CASE("within a hundredth of an end counts for both") {
  const Curve theirs = curve({gain_at(10, 100.9, 1), gain_at(40, 100, 8)}, 100, 20);
  const Curve ours = curve({gain_at(20, 100.9, 2)}, 100, 10);
  const Gain gain = gain_over(theirs, ours);
  CHECK(gain.near_trials == 0.5);
  CHECK(!gain.ever);
}

TEST_CASE("a kept curve is read by the commit that measured it, and by no other") {
  const std::string folder = std::string(std::getenv("TEST_TMPDIR")) + "/kept";
  const Curve made = curve({gain_at(10, 200, 1), gain_at(40, 100, 8)}, 100, 20);
  const KeptCurve kept(folder, "pruner-net-0-100");
  const auto as = [](const char* commit) { ::setenv("PRUNERC_COMMIT", commit, /*overwrite=*/1); };

  as("0123456789ab");
  CHECK(!kept.read());
  kept.write(made);
  REQUIRE(kept.read());
  CHECK(kept.read()->final_ns == 100);
  CHECK(kept.read()->points.size() == 2);
  CHECK(kept.read()->seconds.total == 20);
  CHECK(!KeptCurve(folder, "pruner-other-0-100").read());
  as("ba9876543210");
  CHECK(!kept.read());

  // Of code that is not committed nobody knows which it was.
  for (const char* const commit : {"0123456789ab-dirty", "unknown", ""}) {
    as(commit);
    kept.write(made);
    CHECK(!kept.read());
  }
}

TEST_CASE("a curve of another machine, or half of one, is not read") {
  const std::string folder = std::string(std::getenv("TEST_TMPDIR")) + "/foreign";
  ::setenv("PRUNERC_COMMIT", "0123456789ab", /*overwrite=*/1);
  const KeptCurve kept(folder, "pruner-net-0-100");
  kept.write(curve({gain_at(10, 200, 1)}, 100, 20));
  std::string text;
  std::getline(std::ifstream(folder + "/pruner-net-0-100.json"), text);
  const std::string::size_type at = text.find("\"machine\":\"");
  REQUIRE(at != std::string::npos);
  std::ofstream(folder + "/foreign.json") << std::string(text).insert(at + 11, "another ");
  CHECK(!KeptCurve(folder, "foreign").read());
  std::ofstream(folder + "/half.json") << text.substr(0, text.size() / 2);
  CHECK(!KeptCurve(folder, "half").read());
}

}  // namespace
}  // namespace prunerc::bench
