// JSON lines: the exchange form of the store.
#include "ir/support/file.h"
#include "schedule/trace/trace.h"
#include "search/record/database.h"
#include "search/record/sqlite.h"

#include <nlohmann/json.hpp>

#include <istream>
#include <ostream>

namespace prunerc::search {
namespace {

using Json = nlohmann::ordered_json;

/// Version of the line format, independent of the file's schema.
constexpr int kLineSchema = 1;

std::string to_line(const TaskRow& task, const Record& record) {
  const Measurement& m = record.measurement;
  Json line;
  line["schema"] = kLineSchema;
  line["op"] = task.name;
  line["hash"] = task.key.hash;
  line["target"] = task.key.target;
  line["bindings"] = task.bindings;
  line["op_text"] = task.op_text;
  line["program"] = task.key.program;
  line["fingerprint"] = record.fingerprint;
  line["sketch"] = record.sketch;
  line["trace"] = record.trace;
  line["status"] = std::string(to_string(m.status));
  line["median_ns"] = m.median_ns;
  line["spread"] = m.spread;
  line["samples_ns"] = m.samples_ns;
  line["seconds"] = {{"build", m.build_s}, {"measure", m.measure_s}, {"verify", m.verify_s}};
  line["detail"] = m.detail;
  line["verified"] = m.evidence;
  line["platform"] = record.platform;
  line["timer"] = record.timer;
  line["seed"] = record.seed;
  line["version"] = record.version;
  line["created"] = record.created;
  // Text from outside (a compiler's log) may not be UTF-8.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Reads members of one line; `ok` turns false at the first that is missing or of another type.
struct Reader {
  const Json& json;
  bool ok = true;

  const Json* member(const char* key) {
    const auto at = json.find(key);
    if (at != json.end()) return &*at;
    ok = false;
    return nullptr;
  }
  std::string text(const char* key) {
    const Json* value = member(key);
    if (value == nullptr || !value->is_string()) {
      ok = false;
      return {};
    }
    return value->get<std::string>();
  }
  double number(const char* key) {
    const Json* value = member(key);
    if (value == nullptr || !value->is_number()) {
      ok = false;
      return 0;
    }
    return value->get<double>();
  }
  uint64_t unsigned_number(const char* key) {
    const Json* value = member(key);
    if (value == nullptr || !value->is_number_unsigned()) {
      ok = false;
      return 0;
    }
    return value->get<uint64_t>();
  }
};

bool read_times(const Json& json, Measurement& m) {
  const auto samples = json.find("samples_ns");
  if (samples == json.end() || !samples->is_array()) return false;
  for (const Json& sample : *samples) {
    if (!sample.is_number()) return false;
    m.samples_ns.push_back(sample.get<double>());
  }
  const auto seconds = json.find("seconds");
  if (seconds == json.end() || !seconds->is_object()) return false;
  Reader reader{*seconds};
  m.build_s = reader.number("build");
  m.measure_s = reader.number("measure");
  m.verify_s = reader.number("verify");
  return reader.ok;
}

bool from_line(const std::string& text, TaskRow& task, Record& record) {
  if (nests_deeper(text)) return false;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  Reader reader{json};
  if (reader.number("schema") != kLineSchema) return false;
  task.name = reader.text("op");
  task.key = {reader.text("hash"), reader.text("program"), reader.text("target")};
  task.bindings = reader.text("bindings");
  task.op_text = reader.text("op_text");
  record.fingerprint = reader.text("fingerprint");
  record.sketch = reader.text("sketch");
  record.trace = reader.text("trace");
  Measurement& m = record.measurement;
  const std::optional<MeasureStatus> status = measure_status_from_string(reader.text("status"));
  if (!status || !read_times(json, m)) return false;
  m.status = *status;
  m.median_ns = reader.number("median_ns");
  m.spread = reader.number("spread");
  m.detail = reader.text("detail");
  m.evidence = reader.text("verified");
  record.platform = reader.text("platform");
  record.timer = reader.text("timer");
  record.seed = reader.unsigned_number("seed");
  record.version = reader.text("version");
  record.created = reader.text("created");
  const bool plausible = m.ok() ? m.median_ns > 0 && !m.samples_ns.empty() : m.median_ns >= 0;
  return reader.ok && plausible && schedule::parse_trace(record.trace).ok();
}

}  // namespace

Result<int64_t> Database::export_lines(std::ostream& out, Export which) {
  PRUNERC_TRY(const std::vector<TaskRow> tasks, list_tasks());
  int64_t num_lines = 0;
  for (const TaskRow& task : tasks) {
    std::vector<Record> chosen;
    if (which == Export::kBest) {
      PRUNERC_TRY(std::optional<Record> fastest, best(task.id));
      if (fastest) chosen.push_back(*std::move(fastest));
    } else {
      PRUNERC_TRY(chosen, records(task.id));
    }
    for (const Record& record : chosen) {
      out << to_line(task, record) << '\n';
      ++num_lines;
    }
  }
  out.flush();
  if (!out) return error(Diag::kIoError, std::string("write"), path_, std::string("stream failed"));
  return num_lines;
}

Result<ImportCounts> Database::import_lines(std::istream& in) {
  ImportCounts counts;
  PRUNERC_TRY(Transaction transaction, Transaction::begin(db_.get(), path_));
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty()) continue;
    TaskRow task;
    Record record;
    if (!from_line(line, task, record)) {
      ++counts.num_malformed;
      continue;
    }
    PRUNERC_TRY(const int64_t task_id, put_task_row(task));
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
