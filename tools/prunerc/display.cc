#include "tools/prunerc/display.h"

#include "tools/prunerc/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace prunerc::cli {
namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(200);
/// Tasks shown while tuning; the final table has them all.
constexpr std::size_t kMaxRows = 12;

search::StatusCounts sum_counts(std::span<const search::TaskReport> tasks) {
  search::StatusCounts sum = {};
  for (const search::TaskReport& task : tasks) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += task.counts[i];
  }
  return sum;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}m{:02}s", whole / 60, whole % 60);
}

std::string percent_text(const LimitShare& share) {
  return share.fraction > 0 ? fmt::format("{:.0f}%", 100 * share.fraction) : "-";
}

}  // namespace

std::string time_text(double ns) {
  if (ns <= 0) return "-";
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3f} ms", ns / 1e6);
  return fmt::format("{:.3f} s", ns / 1e9);
}

std::string rate_text(const search::Work& work, double ns) {
  const double per_ns = ns > 0 ? work.rated_ops() / ns : 0;
  // What only moves data has a rate of bytes alone.
  if (work.rated_ops() <= 0) return "-";
  return fmt::format("{:.2f} {}", per_ns, work.is_integer() ? "GOP/s" : "GFLOP/s");
}

std::string counts_text(const search::StatusCounts& counts) {
  std::string out;
  for (int i = 0; i < kNumMeasureStatuses; ++i) {
    const int64_t n = counts[static_cast<std::size_t>(i)];
    if (n == 0) continue;
    const auto status = static_cast<MeasureStatus>(i);
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, describe(status));
  }
  return out.empty() ? "none" : out;
}

search::StatusCounts counts_of(const search::Pool& pool) {
  search::StatusCounts counts = {};
  for (const search::PoolRow& row : pool.rows) ++counts[static_cast<std::size_t>(row.status)];
  return counts;
}

double best_ns(const search::Pool& pool) {
  const int best = pool.best();
  return best < 0 ? 0 : pool.rows[static_cast<std::size_t>(best)].median_ns;
}

std::string target_text(const std::string& text) {
  const Result<ir::Target> target = ir::target_from_string(text);
  constexpr int64_t kMiB = 1 << 20;
  if (!target.ok()) return "?";
  const std::string far = target->constants_bytes == 0
                              ? ""
                              : fmt::format(" {}M", (target->constants_bytes + kMiB - 1) / kMiB);
  return fmt::format("{}/{}{}", target->name, target->num_threads, far);
}

std::string phases_text(const search::PhaseSeconds& s) {
  const double sum = std::max(1e-9, s.search + s.build + s.measure + s.learn + s.verify);
  return fmt::format(
      "search {:.0f}% | build {:.0f}% | measure {:.0f}% | verify {:.0f}% | learn {:.0f}%",
      100 * s.search / sum, 100 * s.build / sum, 100 * s.measure / sum, 100 * s.verify / sum,
      100 * s.learn / sum);
}

int not_timed(const runtime::Measurement& m) {
  return fail(fmt::format("the kernel was not timed: {}: {}", describe(m.status), m.detail),
              "`prunerc doctor` checks that kernels run and can be timed here; smaller sizes (-D)"
              " need less memory and time",
              kNoCandidate);
}

namespace {

// Of all tasks, each as often as its network runs it; 0 while one has no time.
double total_ns(std::span<const search::TaskReport> tasks) {
  double total = 0;
  for (const search::TaskReport& t : tasks) {
    if (t.best_ns <= 0) return 0;
    total += t.weight * t.best_ns;
  }
  return total;
}

std::string total_text(std::span<const search::TaskReport> tasks) {
  const double total = total_ns(tasks);
  return tasks.size() > 1 && total > 0 ? "  total " + time_text(total) : "";
}

}  // namespace

Display::Display(std::string target, std::vector<search::Task> tasks, double time_s)
    : target_(std::move(target)),
      tasks_(std::move(tasks)),
      time_s_(time_s),
      is_terminal_(::isatty(STDERR_FILENO) != 0),
      heartbeat_([this] { beat(); }) {}

std::vector<LimitShare> shares_of_limits(std::span<const search::Task> tasks,
                                         std::span<const search::TaskReport> reports,
                                         const Remeasure& remeasure) {
  std::vector<LimitShare> shares;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    shares.push_back(share_of_limit(tasks[i], reports[i].best_ns, remeasure));
  }
  return shares;
}

std::string Display::table(std::span<const search::TaskReport> tasks,
                           std::span<const LimitShare> shares, std::size_t most) {
  const auto weighted = [&](std::size_t i) { return tasks[i].weight * tasks[i].best_ns; };
  double total = 0;
  std::vector<std::size_t> shown(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    total += weighted(i);
    shown[i] = i;
  }
  if (shown.size() > most) {
    std::stable_sort(shown.begin(), shown.end(),
                     [&](std::size_t a, std::size_t b) { return weighted(a) > weighted(b); });
    shown.resize(most);
    std::sort(shown.begin(), shown.end());
  }
  std::string out = fmt::format(
      "  {:>3} {:<28} {:>3} {:>11} {:>6} {:>15} {:>8} {:>6} {:>7} {:>8}  {}\n", "id", "task", "w",
      "best", "share", "rate", "GB/s", "%limit", "trials", "drafted", "last gain");
  for (const std::size_t i : shown) {
    const search::TaskReport& t = tasks[i];
    out += fmt::format(
        "  {:>3} {:<28} {:>3.0f} {:>11} {:>5.1f}% {:>15} {:>8.2f} {:>6} {:>7} {:>8}  {}{}\n", i,
        t.name.substr(0, 28), t.weight, time_text(t.best_ns),
        total > 0 ? 100 * weighted(i) / total : 0, rate_text(t.work, t.best_ns), t.gbps,
        percent_text(shares[i]), t.trials, t.drafted,
        t.last_gain == 0 ? std::string("-") : fmt::format("{} trials ago", t.trials - t.last_gain),
        shares[i].note.empty() ? "" : "  " + shares[i].note);
  }
  if (shown.size() < tasks.size())
    out += fmt::format("      and {} lighter ones\n", tasks.size() - shown.size());
  return out;
}

void Display::show(const search::TuneProgress& progress) {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  const bool is_first = last_ == std::chrono::steady_clock::time_point{};
  if (is_terminal_ && now - last_ < kTerminalInterval) return;
  last_ = now;
  phase_.clear();
  const double done = static_cast<double>(progress.trials_done);
  const double total = static_cast<double>(progress.trials_total);
  // Whichever limit comes first.
  double left_s = time_s_ > 0 ? std::max(0.0, time_s_ - progress.elapsed_s) : HUGE_VAL;
  if (progress.trials_total > 0 && progress.trials_done > 0)
    left_s = std::min(left_s, progress.elapsed_s * (total - done) / done);
  const std::string eta = std::isfinite(left_s) ? " eta " + clock_text(left_s) : "";
  text_ = fmt::format("tune {}  {}{} trials  {}{}{}", target_, progress.trials_done,
                      progress.trials_total > 0 ? fmt::format("/{}", progress.trials_total) : "",
                      clock_text(progress.elapsed_s), eta, total_text(progress.tasks));
  if (!is_terminal_) {
    const search::TaskReport& t = progress.tasks[static_cast<std::size_t>(progress.current_task)];
    text_ += fmt::format("  {}: best {} ({})  candidates: {}", t.name, time_text(t.best_ns),
                         rate_text(t.work, t.best_ns), counts_text(sum_counts(progress.tasks)));
    // The others are printed by the clock.
    if (is_first) print_line();
    return;
  }
  // Nothing is measured again while candidates are.
  text_ +=
      '\n' + table(progress.tasks, shares_of_limits(tasks_, progress.tasks, nullptr), kMaxRows);
  text_ += fmt::format("  tuning time: {}\n  candidates: {}\n", phases_text(progress.seconds),
                       counts_text(sum_counts(progress.tasks)));
  redraw();
}

void Display::begin(std::string_view phase) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  if (is_terminal_ && lines_drawn_ > 0) redraw();
}

void Display::beat() {
  const std::lock_guard lock(mutex_);
  if (is_finished_) return;
  is_terminal_ ? redraw() : print_line();
}

void Display::print_line() {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::string phase =
      phase_.empty() ? "" : fmt::format("  now {} ({})", phase_, clock_text(seconds));
  fmt::print(stderr, "{}{}\n", text_.empty() ? "tune " + target_ : text_, phase);
  heartbeat_.touch();
}

void Display::redraw() {
  const std::string text = text_ + (phase_.empty() ? "" : "  now " + phase_ + '\n');
  if (lines_drawn_ > 0) fmt::print(stderr, "\x1b[{}A\x1b[J", lines_drawn_);
  std::fputs(text.c_str(), stderr);
  lines_drawn_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

void Display::finish(const search::TuneReport& report, std::span<const LimitShare> shares) {
  const std::lock_guard lock(mutex_);
  is_finished_ = true;
  if (lines_drawn_ > 0) fmt::print(stderr, "\x1b[{}A\x1b[J", lines_drawn_);
  lines_drawn_ = 0;
  int64_t trials = 0;
  for (const search::TaskReport& t : report.tasks) trials += t.trials;
  fmt::print(stderr, "tuned {} on {}: {} trials in {}\n{}",
             report.tasks.size() == 1 ? "1 task" : fmt::format("{} tasks", report.tasks.size()),
             target_, trials, clock_text(report.seconds.total),
             table(report.tasks, shares, report.tasks.size()));
  fmt::print(stderr, "  tuning time: {}\n  candidates: {}\n", phases_text(report.seconds),
             counts_text(sum_counts(report.tasks)));
}

}  // namespace prunerc::cli
