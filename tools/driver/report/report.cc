#include "tools/driver/report/report.h"

#include "costmodel/latency/calibrate.h"
#include "costmodel/latency/symbols.h"
#include "ir/equal.h"
#include "ir/parser.h"
#include "ir/support/parallel.h"
#include "schedule/schedule.h"
#include "search/space/space.h"
#include "tools/driver/report/report_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

namespace prunerc {
namespace {

/// Messages of one status that are shown.
constexpr std::size_t kMostMessages = 5;
/// Sketches that have a colour of their own; the others share the last one.
constexpr std::size_t kMostSketches = 8;

double predicted_ns(const search::Task& task, const search::Record& record) {
  const Result<schedule::Trace> trace = schedule::parse_trace(record.trace);
  if (!trace.ok()) return 0;
  const Result<schedule::Schedule> replayed = schedule::replay(task.base, *trace);
  if (!replayed.ok()) return 0;
  const double ns = costmodel::latency_symbols(replayed->program(), task.target).total_ns.value();
  return std::isfinite(ns) ? ns : 0;
}

// The most frequent sketches first: these are told apart.
std::vector<std::string> sketches_of(const std::vector<search::Record>& records) {
  std::map<std::string, int64_t> counts;
  for (const search::Record& record : records) ++counts[record.sketch];
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return counts[a] > counts[b];
  });
  if (names.size() > kMostSketches) {
    names.resize(kMostSketches);
    names.back() = "others";
  }
  return names;
}

// Without a task nothing is predicted.
std::vector<ReportTrial> trials_of(const search::Task* task,
                                   const std::vector<search::Record>& records,
                                   const std::vector<std::string>& sketches, ThreadPool& pool) {
  std::vector<ReportTrial> trials = pool.map<ReportTrial>(records.size(), [&](std::size_t i) {
    const search::Measurement& m = records[i].measurement;
    ReportTrial trial;
    trial.record_id = records[i].id;
    trial.status = m.status;
    if (m.ok()) trial.median_ns = m.median_ns;
    if (m.ok() && task != nullptr) trial.predicted_ns = predicted_ns(*task, records[i]);
    const auto at = std::find(sketches.begin(), sketches.end(), records[i].sketch);
    trial.sketch = std::min(static_cast<std::size_t>(at - sketches.begin()),
                            sketches.empty() ? 0 : sketches.size() - 1);
    trial.verified = records[i].verified();
    trial.imported = records[i].imported;
    return trial;
  });
  double seconds = 0;
  std::map<std::string, std::size_t> latest;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const search::Measurement& m = records[i].measurement;
    const auto [at, is_new] = latest.try_emplace(records[i].fingerprint, i);
    // A finalist's second record has the seconds of its first.
    const bool is_copy = !is_new && records[at->second].measurement.build_s == m.build_s;
    if (!is_copy) seconds += m.build_s + m.measure_s + m.verify_s;
    trials[i].seconds = seconds;
    if (!is_new && m.ok()) {
      trials[at->second].repeated = true;
      at->second = i;
    }
  }
  return trials;
}

std::vector<ReportFailures> failures_of(const std::vector<search::Record>& records) {
  std::vector<ReportFailures> failures;
  for (int i = 0; i < kNumMeasureStatuses; ++i) {
    const auto status = static_cast<MeasureStatus>(i);
    ReportFailures of;
    of.status = status;
    std::map<std::string, int64_t> messages;
    for (const search::Record& record : records) {
      if (record.measurement.ok() || record.measurement.status != status) continue;
      ++of.count;
      if (!record.measurement.detail.empty())
        ++messages[without_folders(record.measurement.detail)];
    }
    if (of.count == 0) continue;
    for (const auto& [text, count] : messages) of.messages.push_back({text, count});
    std::stable_sort(
        of.messages.begin(), of.messages.end(),
        [](const ReportMessage& a, const ReportMessage& b) { return a.count > b.count; });
    if (of.messages.size() > kMostMessages) of.messages.resize(kMostMessages);
    failures.push_back(std::move(of));
  }
  return failures;
}

std::optional<ReportHeuristic> heuristic_of(const search::Task& task,
                                            const std::vector<search::Record>& records) {
  const Result<search::SearchSpace> space = search::make_space(task);
  if (!space.ok()) return std::nullopt;
  const Result<search::Candidate> chosen = search::heuristic_candidate(task, *space);
  if (!chosen.ok()) return std::nullopt;
  ReportHeuristic heuristic;
  const std::string fingerprint = ir::fingerprint(chosen->program).to_string();
  for (const search::Record& record : records) {
    if (record.fingerprint != fingerprint || !record.measurement.ok()) continue;
    heuristic = {record.measurement.median_ns, true};
  }
  if (heuristic.measured) return heuristic;
  heuristic.ns = costmodel::latency_symbols(chosen->program, task.target).total_ns.value();
  return std::isfinite(heuristic.ns) && heuristic.ns > 0 ? std::optional(heuristic) : std::nullopt;
}

/// A task of the database, and how it was asked for.
struct Subject {
  search::TaskRow row;
  const Operator* op = nullptr;      // null: asked for by a record, or with all others
  std::optional<int64_t> asked_for;  // record
  double weight = 1;
};

// The operator of the stored text, if that is the task's: its program has names, that of the key has none.
std::optional<Operator> operator_of(const search::TaskRow& row) {
  // Text of a database may come from anywhere, and must not say which files of this machine are read.
  constexpr std::string_view kImport = "import", kLibrary = " \"std/";
  for (std::size_t at = 0; (at = row.op_text.find(kImport, at)) != std::string::npos;) {
    at += kImport.size();
    if (!std::string_view(row.op_text).substr(at).starts_with(kLibrary)) return std::nullopt;
  }
  OperatorRequest request;
  request.text = row.op_text;
  std::istringstream bindings(row.bindings);
  for (std::string word; std::getline(bindings, word, ',');) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return std::nullopt;
    request.bindings[word.substr(0, equals)] = word.substr(equals + 1);
  }
  Result<std::vector<Operator>> ops = load_operators(request);
  if (!ops.ok()) return std::nullopt;
  for (Operator& op : *ops) {
    if (search::make_task(op.name, op.program, ir::Target{}).key.program == row.key.program) {
      return std::move(op);
    }
  }
  return std::nullopt;
}

Result<OperatorReport> report_of_task(search::Database& database, const Subject& subject,
                                      ThreadPool& pool) {
  OperatorReport out;
  PRUNERC_TRY(const std::vector<search::Record> records, database.records(subject.row.id));
  PRUNERC_TRY(out.best, database.best(subject.row.id));
  for (const search::Record& record : records) {
    if (record.id != subject.asked_for) continue;
    out.best = record;
    out.is_asked_for = true;
  }
  out.num_records = static_cast<int64_t>(records.size());
  out.failures = failures_of(records);
  // The limits are those of the day that the schedule was measured.
  const std::string platform = out.best          ? out.best->platform
                               : records.empty() ? subject.row.key.target
                                                 : records.back().platform;
  Result<ir::Program> base = ir::parse(subject.row.key.program);
  Result<ir::Target> target = ir::target_from_string(platform);
  out.task.name = subject.row.name;
  out.sketches = sketches_of(records);
  if (base.ok() && target.ok()) {
    const std::optional<Operator> stored =
        subject.op == nullptr ? operator_of(subject.row) : std::nullopt;
    const ir::Program& program = subject.op != nullptr ? subject.op->program
                                 : stored              ? stored->program
                                                       : *base;
    out.task = search::make_task(subject.row.name, program, *target);
    out.roofs = roofs_of(out.task);
    out.heuristic = heuristic_of(out.task, records);
  } else {
    out.note = "its program or its target cannot be read by this build: " +
               without_folders(base.ok() ? target.error().message() : base.error().message());
  }
  if (subject.op != nullptr) out.task.name = subject.op->name;
  out.task.bindings = subject.row.bindings;
  out.task.op_text = subject.row.op_text;
  out.task.weight = subject.weight;
  out.trials = trials_of(out.note.empty() ? &out.task : nullptr, records, out.sketches, pool);
  if (!out.note.empty()) return out;
  std::vector<std::pair<double, double>> pairs;
  for (const ReportTrial& trial : out.trials) {
    if (trial.median_ns > 0 && trial.predicted_ns > 0 && !trial.repeated && !trial.imported) {
      pairs.emplace_back(trial.predicted_ns, trial.median_ns);
    }
  }
  out.num_ranked = static_cast<int64_t>(pairs.size());
  out.rank_correlation = rank_correlation(pairs);
  if (!out.best) return out;
  out.share = share_of_limit(out.task, out.best->measurement.median_ns, nullptr);
  Result<ReportSchedule> made = schedule_of(out.task, out.best->trace);
  if (made.ok()) {
    out.schedule = std::move(made).value();
  } else {
    out.note = fmt::format("record {} gives no program in this build, it is of another one: {}",
                           out.best->id, without_folders(made.error().message()));
  }
  return out;
}

int64_t threads_of(const search::TaskRow& row) {
  const Result<ir::Target> target = ir::target_from_string(row.key.target);
  return target.ok() ? target->num_threads : 0;
}

// Operators that are one task count together.
void add_subject(std::vector<Subject>* subjects, Subject subject) {
  for (Subject& known : *subjects) {
    if (known.row.id != subject.row.id) continue;
    if (subject.asked_for) known.asked_for = subject.asked_for;
    known.weight += subject.op != nullptr ? subject.weight : 0;
    return;
  }
  subjects->push_back(std::move(subject));
}

Result<std::vector<Subject>> subjects_of(search::Database& database, const ReportRequest& request,
                                         std::vector<std::string>* missing) {
  PRUNERC_TRY(std::vector<search::TaskRow> rows, database.list_tasks());
  std::erase_if(rows, [&](const search::TaskRow& row) {
    return row.num_records == 0 || (request.threads > 0 && threads_of(row) != request.threads);
  });
  std::vector<Subject> subjects;
  if (request.ops.empty() && request.records.empty()) {
    for (search::TaskRow& row : rows) subjects.push_back({std::move(row), nullptr, std::nullopt});
    return subjects;
  }
  for (const Operator& op : request.ops) {
    const std::string program = search::make_task(op.name, op.program, ir::Target{}).key.program;
    bool found = false;
    for (const search::TaskRow& row : rows) {
      if (row.key.program != program) continue;
      add_subject(&subjects, {row, &op, std::nullopt, op.weight});
      found = true;
    }
    if (!found) missing->push_back(op.bindings.empty() ? op.name : op.name + " " + op.bindings);
  }
  std::set<int64_t> wanted(request.records.begin(), request.records.end());
  for (const search::TaskRow& row : rows) {
    if (wanted.empty()) break;
    PRUNERC_TRY(const std::vector<search::Record> records, database.records(row.id));
    for (const search::Record& record : records) {
      if (wanted.erase(record.id) > 0) add_subject(&subjects, {row, nullptr, record.id});
    }
  }
  for (const int64_t id : wanted) missing->push_back(fmt::format("record {}", id));
  return subjects;
}

}  // namespace

double rank_correlation(const std::vector<std::pair<double, double>>& pairs) {
  std::vector<double> first, second;
  for (const auto& [a, b] : pairs) {
    first.push_back(a);
    second.push_back(b);
  }
  return costmodel::rank_correlation(first, second);
}

std::string without_folders(std::string_view text) {
  // What may stand before a path, and what ends it.
  constexpr std::string_view kBefore = " \t\n'\"`([{=:,;";
  constexpr std::string_view kAfter = " \t\n'\"`)]}>,;:";
  std::string out;
  while (!text.empty()) {
    const bool may_start = out.empty() || kBefore.find(out.back()) != kBefore.npos;
    if (!may_start || (text[0] != '/' && !text.starts_with("~/"))) {
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    const std::string_view path = text.substr(0, text.find_first_of(kAfter));
    // "//" starts a comment, "/" alone divides.
    const bool is_path = path[0] == '~' || (path.size() > 1 && path[1] != '/');
    out += is_path ? path.substr(path.find_last_of('/', path.size() - 2) + 1) : path;
    text.remove_prefix(path.size());
  }
  return out;
}

Result<TuningReport> report_of(search::Database& database, const ReportRequest& request) {
  TuningReport out;
  PRUNERC_TRY(const std::vector<Subject> subjects, subjects_of(database, request, &out.missing));
  ThreadPool pool(0);
  for (const Subject& subject : subjects) {
    PRUNERC_TRY(OperatorReport one, report_of_task(database, subject, pool));
    out.operators.push_back(std::move(one));
  }
  return out;
}

}  // namespace prunerc
