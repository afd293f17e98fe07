// JSON lines: the exchange form of the store, written. database_import.cc reads it.
#include "search/record/database.h"
#include "search/record/line_schema.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <ostream>
#include <utility>

namespace prunerc::search {
namespace {

using Json = nlohmann::ordered_json;

// What the line's task is derived from; its target is the line's own.
Json link_json(const DerivedRow& row) {
  Json json = {{"op", row.task.name},
               {"hash", row.task.key.hash},
               {"bindings", row.task.bindings},
               {"op_text", row.task.op_text},
               {"program", row.task.key.program},
               {"recipe", row.link.recipe},
               {"rules", row.link.rules},
               {"numerics", row.link.numerics},
               {"flops", row.link.flops},
               {"limit_ns", row.link.limit_ns},
               {"log2_error", row.link.log2_error},
               {"tests", row.link.tests},
               {"assumes", row.link.assumes},
               {"created", row.link.created}};
  if (row.link.imported) json["imported"] = true;
  return json;
}

std::string to_line(const TaskRow& task, const std::vector<DerivedRow>& specs,
                    const Record& record) {
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
  line["machine"] = {{"reference_ns", m.machine.reference_ns},
                     {"clock_ghz", m.machine.clock_ghz},
                     {"load", m.machine.load},
                     {"disturbed", m.disturbed}};
  line["detail"] = m.detail;
  line["verified"] = m.evidence;
  line["platform"] = record.platform;
  line["timer"] = record.timer;
  line["seed"] = record.seed;
  line["version"] = record.version;
  line["created"] = record.created;
  if (!specs.empty()) line["derived_from"] = Json::array();
  for (const DerivedRow& row : specs) line["derived_from"].push_back(link_json(row));
  // Whoever exports says what was not measured there.
  if (record.imported) line["imported"] = true;
  // Text from outside (a compiler's log) may not be UTF-8.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<int64_t> Database::export_lines(std::ostream& out, Export which) {
  PRUNERC_TRY(const std::vector<TaskRow> tasks, list_tasks());
  int64_t num_lines = 0;
  for (const TaskRow& task : tasks) {
    std::vector<Record> chosen;
    if (which == Export::kBest) {
      PRUNERC_TRY(std::optional<ShownRecord> best, best_kept(task));
      if (best) chosen.push_back(std::move(best->record));
    } else {
      PRUNERC_TRY(chosen, records(task.id));
    }
    std::vector<DerivedRow> specs;
    if (!chosen.empty()) {
      PRUNERC_TRY(specs, specs_of(task.id));
    }
    for (const Record& record : chosen) {
      out << to_line(task, specs, record) << '\n';
      ++num_lines;
    }
  }
  out.flush();
  if (!out) return error(Diag::kIoError, std::string("write"), path_, std::string("stream failed"));
  return num_lines;
}

}  // namespace prunerc::search
