#include "tools/prunerc/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

Json seconds_json(const search::PhaseSeconds& s) {
  return {{"build", s.build},   {"measure", s.measure}, {"search", s.search}, {"learn", s.learn},
          {"verify", s.verify}, {"total", s.total},     {"busy", s.busy}};
}

Json task_json(const search::TaskReport& t, const LimitShare& share, const std::string& repro) {
  Json failures = Json::object();
  for (int i = 0; i < kNumMeasureStatuses; ++i) {
    const auto status = static_cast<MeasureStatus>(i);
    const int64_t n = t.counts[static_cast<std::size_t>(i)];
    if (status != MeasureStatus::kOk && n > 0) failures[std::string(to_string(status))] = n;
  }
  const Result<ir::Target> target = ir::target_from_string(t.target);
  Json curve = Json::array();
  for (const search::CurvePoint& p : t.curve) curve.push_back({p.trial, p.best_ns, p.seconds});
  return {{"schema", "prunerc.tune/1"},
          {"op", t.name},
          {"target", target.ok() ? target->name : t.target},
          {"machine", t.target},
          {"seed", t.seed},
          {"timer", t.timer},
          {"best_ns", t.best_ns},
          {"gflops", t.gflops},
          {"gops", t.gops},
          {"gbps", t.gbps},
          {"limit_fraction", share.fraction},
          {"limit", to_string(share.limit.unit)},
          {"limit_note", share.note},
          {"trials", t.trials},
          {"reused", t.reused},
          {"left_aside", t.left_aside.num},
          {"unchecked", t.unchecked},
          {"drafted", t.drafted},
          {"stop", search::to_string(t.stop)},
          {"slowed", t.slowed},
          {"verified", t.verified},
          {"evidence", t.evidence},
          {"seconds", seconds_json(t.seconds)},
          {"failures", std::move(failures)},
          {"curve", std::move(curve)},
          {"repro", repro}};
}

Json algebra_json(const AlgebraOutcome& outcome) {
  const search::DerivedLink link = outcome.link.value_or(search::DerivedLink{});
  return {{"recipe", link.recipe},      {"tuned", outcome.num_tuned},
          {"spec_ns", outcome.spec_ns}, {"log2_error", link.log2_error},
          {"numerics", link.numerics},  {"note", outcome.note}};
}

}  // namespace

std::string proof_text(const search::DerivedLink& link) {
  return fmt::format("equal to 2^{:.0f} ({} test{}{}), {} rounding", link.log2_error, link.tests,
                     link.tests == 1 ? "" : "s",
                     link.assumes.empty() ? "" : "; assumes " + link.assumes, link.numerics);
}

std::string tune_json(const search::TuneReport& report, std::span<const LimitShare> shares,
                      const std::string& repro, const std::optional<RankReport>* ranked,
                      std::span<const AlgebraOutcome> outcomes) {
  const auto add_network = [&](Json& json) {
    if (ranked == nullptr) return;
    Json& network = json["network"] = nullptr;
    if (!*ranked) return;
    network = {{"before_ns", (*ranked)->before_ns},
               {"after_ns", (*ranked)->after_ns},
               {"contenders", (*ranked)->num_contenders},
               {"changed", (*ranked)->num_changed}};
  };
  if (report.tasks.size() == 1) {
    Json one = task_json(report.tasks[0], shares[0], repro);
    if (!outcomes.empty()) one["algebra"] = algebra_json(outcomes[0]);
    add_network(one);
    one["seconds"] = seconds_json(report.seconds);
    return json_line(one);
  }
  Json all = {{"schema", "prunerc.tune/1"}, {"tasks", Json::array()}};
  for (std::size_t i = 0; i < report.tasks.size(); ++i) {
    all["tasks"].push_back(task_json(report.tasks[i], shares[i], repro));
    if (!outcomes.empty()) all["tasks"].back()["algebra"] = algebra_json(outcomes[i]);
  }
  all["total_weighted_ns"] = report.total_weighted_ns;
  add_network(all);
  all["seconds"] = seconds_json(report.seconds);
  all["repro"] = repro;
  return json_line(all);
}

Result<double> parse_duration(const std::string& text, const std::string& option) {
  // In nanoseconds still a number of 64 bits.
  constexpr double kHourS = 3600, kLongestS = 250'000 * kHourS;
  double value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  const double scale = unit.empty() || unit == "s" ? 1
                       : unit == "ms"              ? 1e-3
                       : unit == "m"               ? 60
                       : unit == "h"               ? kHourS
                                                   : 0;
  if (code != std::errc() || scale == 0 || !(value > 0) || !std::isfinite(value)) {
    return error(Diag::kUsageOption, option,
                 "needs a duration such as 90s, 10m or 1h, found '" + text + "'");
  }
  if (value > kLongestS / scale) {
    return error(Diag::kUsageOption, option,
                 fmt::format("is at most {:.0f}h, found '{}'", kLongestS / kHourS, text));
  }
  return value * scale;
}

Result<int64_t> parse_limit_ns(const std::string& text, const std::string& option) {
  constexpr double kNsPerSecond = 1e9;
  if (text.empty()) return int64_t{0};
  PRUNERC_TRY(const double seconds, parse_duration(text, option));
  return std::max<int64_t>(1, std::llround(seconds * kNsPerSecond));
}

std::string describe(const ir::Target& target) {
  if (target.kind != ir::TargetKind::kCpu) {
    return fmt::format("{}{}", target.name,
                       target.kind == ir::TargetKind::kCudaHost ? ", executed on this CPU" : "");
  }
  std::string out = fmt::format("{} {}, {}-byte vectors, {} thread(s)", target.name,
                                target.llvm_cpu.empty() ? "host" : target.llvm_cpu,
                                target.vector_bytes, target.num_threads);
  if (target.platform.fma_gflops > 0) {
    out += fmt::format(", {:.0f} GFLOP/s f32 per thread", target.platform.fma_gflops);
  }
  return out;
}

}  // namespace prunerc::cli
