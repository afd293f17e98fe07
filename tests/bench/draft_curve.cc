#include "tests/bench/draft_curve.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::bench {
namespace {

struct Event {
  search::CurvePoint point;
  std::size_t task = 0;
};

}  // namespace

Curve curve_of(const search::TuneReport& report) {
  Curve out;
  std::vector<Event> events;
  for (std::size_t t = 0; t < report.tasks.size(); ++t) {
    for (const search::CurvePoint& point : report.tasks[t].curve) events.push_back({point, t});
    out.trials += report.tasks[t].trials;
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.point.seconds < b.point.seconds;
  });
  std::vector<search::CurvePoint> now(report.tasks.size());
  for (const Event& event : events) {
    now[event.task] = event.point;
    search::CurvePoint sum;
    sum.seconds = event.point.seconds;
    bool is_whole = true;
    for (std::size_t t = 0; t < now.size(); ++t) {
      is_whole = is_whole && now[t].best_ns > 0;
      sum.best_ns += report.tasks[t].weight * now[t].best_ns;
      sum.trial += now[t].trial;
    }
    if (is_whole) out.points.push_back(sum);
  }
  if (!out.points.empty()) out.final_ns = out.points.back().best_ns;
  out.seconds = report.seconds;
  return out;
}

Reached reach(const Curve& curve, double ns) {
  for (const search::CurvePoint& point : curve.points) {
    if (point.best_ns <= ns) return {static_cast<double>(point.trial), point.seconds, true};
  }
  return {static_cast<double>(curve.trials), curve.seconds.total, false};
}

double overhead_of(const search::PhaseSeconds& seconds) {
  return (seconds.search + seconds.learn) / std::max(1e-9, seconds.total);
}

std::string to_text(const search::PhaseSeconds& s) {
  return fmt::format("explore {:.1f} s, build {:.1f}, measure {:.1f}, learn {:.1f}, verify {:.1f}",
                     s.search, s.build, s.measure, s.learn, s.verify);
}

}  // namespace prunerc::bench
