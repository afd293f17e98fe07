#include "tools/prunerc/report_json.h"

#include "tools/prunerc/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

// More digits than any measurement has would be most of a page's bytes.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

Json text(const std::string& value) { return without_folders(value); }

Json trials_json(const OperatorReport& op) {
  Json trials = Json::array();
  for (const ReportTrial& t : op.trials) {
    Json one = {{"record", t.record_id},
                {"seconds", number(t.seconds)},
                {"status", to_string(t.status)},
                {"sketch", t.sketch}};
    if (t.median_ns > 0) one["ns"] = number(t.median_ns);
    if (t.predicted_ns > 0) one["predicted_ns"] = number(t.predicted_ns);
    if (t.verified) one["verified"] = true;
    if (t.repeated) one["repeated"] = true;
    if (t.imported) one["imported"] = true;
    trials.push_back(std::move(one));
  }
  return trials;
}

Json failures_json(const OperatorReport& op) {
  Json failures = Json::array();
  for (const ReportFailures& f : op.failures) {
    Json messages = Json::array();
    for (const ReportMessage& m : f.messages) {
      messages.push_back({{"text", m.text}, {"count", m.count}});
    }
    failures.push_back({{"status", to_string(f.status)},
                        {"words", describe(f.status)},
                        {"count", f.count},
                        {"messages", std::move(messages)}});
  }
  return failures;
}

Json best_json(const OperatorReport& op) {
  if (!op.best) return nullptr;
  const search::Record& r = *op.best;
  const double ns = r.measurement.median_ns;
  return {{"record", r.id},
          {"asked_for", op.is_asked_for},
          {"status", to_string(r.measurement.status)},
          {"ns", number(ns)},
          {"spread", number(r.measurement.spread)},
          {"samples", r.measurement.samples_ns.size()},
          {"imported", r.imported},
          {"gflops", number(ns > 0 ? op.task.flops / ns : 0)},
          {"gops", number(ns > 0 ? op.task.work.rated_ops() / ns : 0)},
          {"gbps", number(ns > 0 ? op.task.work.bytes / ns : 0)},
          {"limit_fraction", number(op.share.fraction)},
          {"sketch", text(r.sketch)},
          {"fingerprint", text(r.fingerprint)},
          {"verified", text(r.measurement.evidence)},
          {"timer", text(r.timer)},
          {"seed", r.seed},
          {"version", text(r.version)},
          {"created", text(r.created)}};
}

Json limit_json(const OperatorReport& op) {
  if (!op.best || op.share.limit.ns <= 0) return nullptr;
  return {{"unit", to_string(op.share.limit.unit)},
          {"ns", number(op.share.limit.ns)},
          {"note", op.share.note}};
}

Json roofs_json(const OperatorReport& op) {
  Json roofs = Json::array();
  for (const Roof& roof : op.roofs) {
    const bool is_rate = roof.unit == LimitUnit::kArithmetic;
    roofs.push_back(
        {{"unit", to_string(roof.unit)}, {is_rate ? "gflops" : "gbps", number(roof.per_ns)}});
  }
  return roofs;
}

Json text_json(const ReportText& t) {
  return {{"first", t.first}, {"of", t.num_lines}, {"lines", t.lines}};
}

Json loop_json(const HotLoop& loop) {
  if (!loop.found()) return nullptr;
  Json mix = Json::array();
  for (std::size_t i = 0; i < kNumInstructionKinds; ++i) {
    if (loop.mix[i] == 0) continue;
    mix.push_back({{"kind", to_string(static_cast<InstructionKind>(i))}, {"count", loop.mix[i]}});
  }
  return {{"first", loop.first},
          {"last", loop.last},
          {"instructions", loop.num_instructions},
          {"memory_operands", loop.num_memory_operands},
          {"mix", std::move(mix)}};
}

Json estimate_json(const ReportSchedule& s) {
  Json nests = Json::array();
  for (const ReportNest& nest : s.nests) {
    Json parts = Json::array();
    for (const auto& [part, ns] : nest.parts_ns)
      parts.push_back({{"part", part}, {"ns", number(ns)}});
    nests.push_back(
        {{"name", text(nest.name)}, {"ns", number(nest.total_ns)}, {"parts", std::move(parts)}});
  }
  return {{"ns", number(s.predicted_ns)},
          {"launch_ns", number(s.launch_ns)},
          {"nests", std::move(nests)}};
}

Json schedule_json(const OperatorReport& op) {
  if (!op.schedule) return nullptr;
  const ReportSchedule& s = *op.schedule;
  Json out = {{"estimate", estimate_json(s)},
              {"trace", text_json(s.trace)},
              {"program", text_json(s.program)}};
  if (!s.code_kind.empty()) out["code"] = text_json(s.code);
  out["code_kind"] = s.code_kind;
  out["loop"] = loop_json(s.loop);
  out["note"] = s.note;
  return out;
}

Json heuristic_json(const OperatorReport& op) {
  if (!op.heuristic) return nullptr;
  return {{"ns", number(op.heuristic->ns)}, {"measured", op.heuristic->measured}};
}

Json operator_json(const OperatorReport& op) {
  const search::Task& task = op.task;
  const bool has_target = !task.target.name.empty();
  return {{"op", text(task.name)},
          {"bindings", text(task.bindings)},
          {"weight", number(task.weight)},
          {"target", has_target ? task.target.name : "unknown"},
          {"threads", task.target.num_threads},
          {"machine", has_target ? describe(task.target) : "unknown"},
          {"flops", number(task.flops)},
          {"ops", number(task.work.rated_ops())},
          {"rate_unit", task.work.is_integer() ? "GOP/s" : "GFLOP/s"},
          {"bytes", number(task.work.bytes)},
          {"text", text(task.op_text)},
          {"best", best_json(op)},
          {"limit", limit_json(op)},
          {"roofs", roofs_json(op)},
          {"heuristic", heuristic_json(op)},
          {"rank_correlation", number(op.rank_correlation)},
          {"ranked", op.num_ranked},
          {"sketches", op.sketches},
          {"trials", trials_json(op)},
          {"failures", failures_json(op)},
          {"schedule", schedule_json(op)},
          {"note", op.note}};
}

}  // namespace

std::string report_json(const TuningReport& report) {
  Json out = {{"schema", "prunerc.report/1"},
              {"version", kVersion},
              {"operators", Json::array()},
              {"missing", report.missing}};
  for (const OperatorReport& op : report.operators) out["operators"].push_back(operator_json(op));
  // What is no UTF-8 in a record must not end the report.
  return out.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace prunerc::cli
