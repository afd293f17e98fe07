#include "tools/driver/stored.h"

#include "ir/equal.h"
#include "schedule/schedule.h"
#include "search/tune/sampled.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace prunerc {

std::optional<Choice> choice_of(const search::Task& task, const search::Record& record) {
  Result<schedule::Trace> trace = schedule::parse_trace(record.trace);
  if (!trace.ok()) return std::nullopt;
  const Result<schedule::Schedule> replayed = schedule::replay(task.base, *trace);
  if (!replayed.ok()) return std::nullopt;
  return Choice{Choice::Origin::kRecord,
                replayed->program(),
                std::move(trace).value(),
                record.imported ? 0 : record.measurement.median_ns,
                record.id,
                "",
                record.version};
}

namespace {

// An imported record whose program is the one that it names, and equal to the operator. Nothing of
// this depends on the machine or on chance. Errors: RecordImport if it is refuted and its file is
// all there is.
Result<std::optional<Choice>> checked_claim(search::Database& database, int64_t task_id,
                                            const search::Task& task,
                                            const search::Record& record) {
  std::optional<Choice> choice = choice_of(task, record);
  if (!choice || ir::fingerprint(choice->program).to_string() != record.fingerprint) {
    return std::optional<Choice>();
  }
  const search::SampledVerdict found = search::check_schedule(task, choice->trace, choice->program);
  if (search::is_refuted(found.verdict)) {
    if (search::is_export(database.path())) {
      return error(Diag::kRecordImport, record.id, database.path(),
                   "the schedule of " + task.name + " is " + ir::to_string(found.verdict));
    }
    search::Measurement verdict;
    verdict.status = MeasureStatus::kNotEqual;
    verdict.detail = ir::to_string(found.verdict);
    // A store that may only be read keeps what it says.
    (void)database.put_verdict(task_id, record.fingerprint, verdict);
  }
  if (!found.verdict.ok()) return std::optional<Choice>();
  choice->note =
      fmt::format("imported, {}, in finite fields; not timed here", search::to_string(found));
  return choice;
}

}  // namespace

Result<std::optional<Choice>> stored_choice(search::Database& database, const search::Task& task,
                                            std::string* note) {
  PRUNERC_TRY(const std::optional<int64_t> id, database.find_task(task.key));
  if (!id) return std::optional<Choice>();
  PRUNERC_TRY(const std::optional<search::Record> best, database.best(*id));
  if (best) {
    std::optional<Choice> own = choice_of(task, *best);
    if (own) return own;
  }
  PRUNERC_TRY(const std::vector<search::Record> claims, database.claims(*id, kMostClaims));
  for (const search::Record& claim : claims) {
    PRUNERC_TRY(std::optional<Choice> choice, checked_claim(database, *id, task, claim));
    if (choice) return choice;
  }
  if (!claims.empty()) {
    *note =
        fmt::format("finite fields show none of {} imported record(s) to be right", claims.size());
  }
  return std::optional<Choice>();
}

Result<std::optional<Choice>> ranked_choice(search::Database& database, const search::Task& task) {
  PRUNERC_TRY(const std::optional<int64_t> id, database.find_task(task.key));
  if (!id) return std::optional<Choice>();
  PRUNERC_TRY(const std::vector<search::Record> records, database.records(*id));
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    if (!record->verified()) continue;
    if (std::optional<Choice> choice = choice_of(task, *record)) return choice;
  }
  return std::optional<Choice>();
}

Result<std::optional<search::Record>> record_of(search::Database& database,
                                                const search::Task& task,
                                                const std::string& fingerprint, bool verified) {
  std::optional<search::Record> found;
  PRUNERC_TRY(const std::optional<int64_t> id, database.find_task(task.key));
  if (!id) return found;
  PRUNERC_TRY(std::vector<search::Record> records, database.records(*id));
  for (search::Record& record : records) {
    const bool fits = record.fingerprint == fingerprint && !record.imported;
    if (fits && record.measurement.ok() && (record.verified() || !verified))
      found = std::move(record);
  }
  return found;
}

}  // namespace prunerc
