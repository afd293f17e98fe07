#include "tests/bench/draft/curve.h"

#include "tests/bench/draft/pools.h"
#include "tests/bench/report.h"

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
    sum.trial = event.point.call_trial;
    bool is_whole = true;
    for (std::size_t t = 0; t < now.size(); ++t) {
      is_whole = is_whole && now[t].best_ns > 0;
      sum.best_ns += report.tasks[t].weight * now[t].best_ns;
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

namespace {

// Who never got there has spent the budget and gained nothing.
double times_fewer(double theirs, double mine, double least, bool ever) {
  const double gain = theirs / std::max(least, mine);
  return ever ? gain : std::min(gain, 1.0);
}
double fewer_trials(double theirs, const Reached& mine) {
  return times_fewer(theirs, mine.trials, 1.0, mine.ever);
}
double fewer_seconds(double theirs, const Reached& mine) {
  return times_fewer(theirs, mine.seconds, 1e-9, mine.ever);
}

}  // namespace

Gain gain_over(const Curve& baseline, const Curve& ours) {
  const Reached theirs = reach(baseline, baseline.final_ns);
  const Reached mine = reach(ours, baseline.final_ns);
  const double near_ns = baseline.final_ns * (1 + kNearEnd);
  const Reached theirs_near = reach(baseline, near_ns);
  const Reached mine_near = reach(ours, near_ns);
  Gain out;
  out.ever = mine.ever;
  out.final = baseline.final_ns / ours.final_ns;
  out.trials = fewer_trials(static_cast<double>(baseline.trials), mine);
  out.seconds = fewer_seconds(baseline.seconds.total, mine);
  out.own_trials = fewer_trials(theirs.trials, mine);
  out.own_seconds = fewer_seconds(theirs.seconds, mine);
  out.near_trials = fewer_trials(theirs_near.trials, mine_near);
  out.near_seconds = fewer_seconds(theirs_near.seconds, mine_near);
  return out;
}

std::vector<double> values_of(std::span<const Gain> gains, double Gain::*field) {
  std::vector<double> out;
  for (const Gain& gain : gains) out.push_back(gain.*field);
  return out;
}

Gain median_of(std::span<const Gain> gains) {
  Gain out;
  for (double Gain::*const field :
       {&Gain::trials, &Gain::seconds, &Gain::own_trials, &Gain::own_seconds, &Gain::near_trials,
        &Gain::near_seconds, &Gain::final}) {
    out.*field = median(values_of(gains, field));
  }
  out.ever = std::all_of(gains.begin(), gains.end(), [](const Gain& gain) { return gain.ever; });
  return out;
}

double unhidden_of(const search::PhaseSeconds& seconds) {
  return (seconds.total - seconds.busy) / std::max(1e-9, seconds.total);
}

double overhead_of(const search::PhaseSeconds& seconds) {
  return (seconds.search + seconds.learn) / std::max(1e-9, seconds.total);
}

std::string to_text(const search::PhaseSeconds& s) {
  return fmt::format("explore {:.1f} s, build {:.1f}, measure {:.1f}, learn {:.1f}, verify {:.1f}",
                     s.search, s.build, s.measure, s.learn, s.verify);
}

}  // namespace prunerc::bench
