// Lines of a file become records: claims, of which only what can be seen without running anything is checked here.
#include "ir/support/file.h"
#include "schedule/trace/trace.h"
#include "search/record/database.h"
#include "search/record/line_schema.h"
#include "search/record/plausible.h"
#include "search/record/sqlite.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <istream>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace prunerc::search {
namespace {

using Json = nlohmann::ordered_json;

/// Medians are printed to the last bit; this is what another library's text may lose.
constexpr double kSameTime = 1e-6;
constexpr std::size_t kFingerprintDigits = 32;
/// Operators that one line's task may be derived from.
constexpr std::size_t kMostSpecs = 8;

/// Reads members of an object; `why` keeps the first that is missing or of another type.
struct Reader {
  const Json& json;
  std::string why;

  bool ok() const { return why.empty(); }
  void refuse(std::string reason) {
    if (why.empty()) why = std::move(reason);
  }
  const Json& member(const char* key, bool (Json::*is)() const noexcept, const char* kind) {
    static const Json nothing;
    const auto at = json.find(key);
    if (at == json.end()) {
      refuse(fmt::format("there is no '{}'", key));
      return nothing;
    }
    if (((*at).*is)()) return *at;
    refuse(fmt::format("'{}' is no {}", key, kind));
    return nothing;
  }
  std::string text(const char* key) {
    const Json& value = member(key, &Json::is_string, "text");
    return ok() ? value.get<std::string>() : std::string();
  }
  /// A name of one line: what lists print.
  std::string name(const char* key) {
    std::string value = text(key);
    const auto is_control = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    };
    if (std::any_of(value.begin(), value.end(), is_control)) {
      refuse(fmt::format("'{}' has control characters", key));
    }
    return value;
  }
  /// Finite and not negative, as all times are.
  double number(const char* key) {
    const double found = any_number(key);
    if (!(std::isfinite(found) && found >= 0)) refuse(fmt::format("'{}' is negative", key));
    return found;
  }
  double any_number(const char* key) {
    const Json& value = member(key, &Json::is_number, "number");
    return ok() ? value.get<double>() : 0;
  }
  uint64_t unsigned_number(const char* key) {
    const Json& value = member(key, &Json::is_number_unsigned, "whole number");
    return ok() ? value.get<uint64_t>() : 0;
  }
};

void read_times(Reader& reader, Measurement& m) {
  const Json& samples = reader.member("samples_ns", &Json::is_array, "list");
  const Json& seconds = reader.member("seconds", &Json::is_object, "object");
  if (!reader.ok()) return;
  for (const Json& sample : samples) {
    if (!sample.is_number() || !(sample.get<double>() > 0)) {
      return reader.refuse("'samples_ns' are not all positive numbers");
    }
    m.samples_ns.push_back(sample.get<double>());
  }
  Reader inner{seconds, {}};
  m.build_s = inner.number("build");
  m.measure_s = inner.number("measure");
  m.verify_s = inner.number("verify");
  if (!inner.ok()) reader.refuse("of 'seconds': " + inner.why);
}

// What the machine was like; lines of earlier builds do not say it.
void read_machine(Reader& reader, Measurement& m) {
  if (!reader.json.contains("machine")) return;
  const Json& machine = reader.member("machine", &Json::is_object, "object");
  if (!reader.ok()) return;
  Reader inner{machine, {}};
  m.machine.reference_ns = inner.number("reference_ns");
  m.machine.clock_ghz = inner.number("clock_ghz");
  m.machine.load = inner.number("load");
  const Json& disturbed = inner.member("disturbed", &Json::is_boolean, "truth value");
  if (!inner.ok()) return reader.refuse("of 'machine': " + inner.why);
  m.disturbed = disturbed.get<bool>();
}

// Whether the times fit each other and the machine.
void check_times(const Measurement& m, double least_ns, Reader& reader) {
  if (!m.ok()) return;
  if (m.samples_ns.empty()) return reader.refuse("it has a time and no samples");
  const double median = median_of(m.samples_ns);
  if (!(std::abs(m.median_ns - median) <= kSameTime * median)) {
    return reader.refuse(fmt::format("'median_ns' is {:.6g}, the median of its samples is {:.6g}",
                                     m.median_ns, median));
  }
  const double fastest = *std::min_element(m.samples_ns.begin(), m.samples_ns.end());
  if (fastest < least_ns) {
    reader.refuse(
        fmt::format("no machine of its target is so fast: {:.3g} ns, where {:.3g} ns is the "
                    "least possible",
                    fastest, least_ns));
  }
}

Record read_record(Reader& reader) {
  Record record;
  Measurement& m = record.measurement;
  record.imported = true;
  record.fingerprint = reader.name("fingerprint");
  record.sketch = reader.name("sketch");
  record.trace = reader.text("trace");
  const std::optional<MeasureStatus> status = measure_status_from_string(reader.text("status"));
  if (reader.ok() && !status) reader.refuse("'status' is none of this build's");
  m.status = status.value_or(MeasureStatus::kRejected);
  m.median_ns = reader.number("median_ns");
  m.spread = reader.number("spread");
  m.detail = reader.text("detail");
  m.evidence = reader.text("verified");
  record.platform = reader.name("platform");
  record.timer = reader.name("timer");
  record.seed = reader.unsigned_number("seed");
  record.version = reader.name("version");
  record.created = reader.name("created");
  read_times(reader, m);
  read_machine(reader, m);
  const bool is_print =
      record.fingerprint.size() == kFingerprintDigits &&
      record.fingerprint.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_print) reader.refuse("'fingerprint' is not 32 hexadecimal digits");
  if (reader.ok()) {
    const Result<schedule::Trace> trace = schedule::parse_trace(record.trace);
    if (!trace) reader.refuse("its trace: " + trace.error().message());
  }
  return record;
}

// Lines of one file are of few tasks, whose texts are kept and parsed once.
class Tasks {
 public:
  struct Known {
    std::size_t place = 0;  // in rows()
    std::string why;        // empty: the texts are right
    double least_ns = 0;
  };
  /// Of lines of one task the first names it.
  const Known& examine(TaskRow row) {
    const TaskKey& key = row.key;
    const auto [at, is_new] = known_.try_emplace({key.hash, key.program, key.target});
    if (!is_new) return at->second;
    at->second = look_at(key);
    at->second.place = rows_.size();
    rows_.push_back(std::move(row));
    return at->second;
  }
  /// In the order in which lines spoke of them.
  const std::vector<TaskRow>& rows() const { return rows_; }

 private:
  static Known look_at(const TaskKey& key) {
    const Result<Task> task = task_of_key(key);
    if (!task) return {0, "its program or target: " + task.error().message()};
    if (!is_own_hash(key, task->base)) return {0, "'hash' is not that of its program and target"};
    return {0, "", least_possible_ns(*task)};
  }

  std::map<std::tuple<std::string, std::string, std::string>, Known> known_;
  std::vector<TaskRow> rows_;
};

/// What a line says; tasks by place.
struct Line {
  struct Spec {
    std::size_t task = 0;
    DerivedLink link;
  };
  std::size_t task = 0;
  std::vector<Spec> specs;
  Record record;
};

// A claim that the line's task computes what another one does.
Line::Spec read_spec(Reader& reader, const TaskKey& own, Tasks& tasks) {
  TaskRow row;
  Line::Spec spec;
  DerivedLink& link = spec.link;
  row.name = reader.name("op");
  row.key = {reader.name("hash"), reader.text("program"), own.target};
  row.bindings = reader.name("bindings");
  row.op_text = reader.text("op_text");
  link.recipe = reader.name("recipe");
  link.rules = static_cast<int64_t>(reader.unsigned_number("rules"));
  link.numerics = reader.name("numerics");
  link.flops = reader.number("flops");
  link.limit_ns = reader.number("limit_ns");
  link.log2_error = reader.any_number("log2_error");
  link.tests = static_cast<int64_t>(reader.unsigned_number("tests"));
  link.assumes = reader.name("assumes");
  link.created = reader.name("created");
  link.imported = true;
  if (!reader.ok()) return spec;
  if (link.recipe.empty()) reader.refuse("'recipe' is empty");
  if (row.key == own) reader.refuse("a task is not derived from itself");
  if (!reader.ok()) return spec;
  const Tasks::Known& known = tasks.examine(std::move(row));
  reader.refuse(known.why);  // empty: it is right
  spec.task = known.place;
  return spec;
}

// Lines of earlier builds have none.
std::vector<Line::Spec> read_specs(Reader& reader, const TaskKey& own, Tasks& tasks) {
  std::vector<Line::Spec> specs;
  if (!reader.json.contains("derived_from")) return specs;
  const Json& list = reader.member("derived_from", &Json::is_array, "list");
  if (!reader.ok()) return specs;
  if (list.size() > kMostSpecs) reader.refuse("'derived_from' has too many entries");
  for (const Json& one : list) {
    if (!one.is_object()) reader.refuse("'derived_from' is no list of objects");
    if (!reader.ok()) return specs;
    Reader inner{one, {}};
    specs.push_back(read_spec(inner, own, tasks));
    if (!inner.ok()) reader.refuse("of 'derived_from': " + inner.why);
  }
  return specs;
}

// Why the line is no record; empty if it is one.
std::string read_line(const std::string& line, Tasks& tasks, Line* out) {
  if (nests_deeper(line)) return "it is nested too deeply";
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return "it is no JSON object";
  Reader reader{json, {}};
  if (reader.number("schema") != kLineSchema && reader.ok()) {
    return fmt::format("'schema' is not {}", kLineSchema);
  }
  TaskRow row;
  row.name = reader.name("op");
  row.key = {reader.name("hash"), reader.text("program"), reader.name("target")};
  row.bindings = reader.name("bindings");
  row.op_text = reader.text("op_text");
  out->record = read_record(reader);
  if (!reader.ok()) return reader.why;
  const TaskKey own = row.key;
  const Tasks::Known& known = tasks.examine(std::move(row));
  if (!known.why.empty()) return known.why;
  out->task = known.place;
  check_times(out->record.measurement, known.least_ns, reader);
  out->specs = read_specs(reader, own, tasks);
  return reader.why;
}

Result<std::vector<Line>> read_all(std::istream& in, const std::string& file, Tasks& tasks) {
  std::vector<Line> lines;
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const std::string why = read_line(line, tasks, &lines.emplace_back());
    if (!why.empty()) return error(Diag::kRecordImport, number, file, why);
  }
  return lines;
}

}  // namespace

Result<ImportCounts> Database::import_lines(std::istream& in, const std::string& file) {
  // Before the lock: examining many lines takes longer than others wait for it.
  Tasks tasks;
  PRUNERC_TRY(const std::vector<Line> lines, read_all(in, file, tasks));
  ImportCounts counts;
  PRUNERC_TRY(Transaction transaction, Transaction::begin(db_.get(), path_));
  std::vector<int64_t> ids;
  for (const TaskRow& row : tasks.rows()) {
    PRUNERC_TRY(const int64_t id, put_task_row(row));
    ids.push_back(id);
  }
  for (const Line& read : lines) {
    const Record& record = read.record;
    const int64_t task_id = ids[read.task];
    for (const Line::Spec& spec : read.specs) {
      PRUNERC_TRY_VOID(put_link(ids[spec.task], task_id, spec.link));
    }
    // A candidate may have been measured twice within a second: the samples tell.
    PRUNERC_TRY(Query query, Query::prepare(db_.get(), path_,
                                            "SELECT COUNT(*) FROM record WHERE task = ? AND "
                                            "fingerprint = ? AND created = ? AND trace = ? AND "
                                            "samples = ?"));
    query.bind(task_id).bind(record.fingerprint).bind(record.created).bind(record.trace);
    query.bind(print_samples(record.measurement.samples_ns));
    PRUNERC_TRY_VOID(query.step());
    if (query.int_column() > 0) {
      ++counts.num_known;
      continue;
    }
    PRUNERC_TRY_VOID(insert_record(task_id, record));
    ++counts.num_records;
  }
  PRUNERC_TRY_VOID(transaction.commit());
  return counts;
}

}  // namespace prunerc::search
