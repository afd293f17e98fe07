// The fastest of a store, by the measurement of each candidate that counts.
#include "ir/parser.h"
#include "search/record/database.h"
#include "search/record/restore.h"
#include "search/record/standing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace prunerc::search {
namespace {

std::vector<Record> first(std::vector<Record> records, int64_t k) {
  const auto most = static_cast<std::size_t>(std::max<int64_t>(0, k));
  if (records.size() > most) records.resize(most);
  return records;
}

// The first that still gives its program, as one is chosen; else the first, as history.
std::optional<ShownRecord> first_kept(const TaskRow& task, std::vector<Record> records) {
  if (records.empty()) return std::nullopt;
  const Result<ir::Program> base = ir::parse(task.key.program);
  std::string stale = base.ok() ? "" : base.error().message();
  for (Record& record : records) {
    if (!base.ok()) break;
    const Result<RestoredRecord> restored = restore_record(*base, record);
    if (restored.ok()) return ShownRecord{std::move(record), ""};
    if (stale.empty()) stale = restored.error().message();
  }
  return ShownRecord{std::move(records.front()), std::move(stale)};
}

}  // namespace

Result<std::vector<Record>> Database::standing_records(int64_t task_id) {
  // Whole rows, since one that is damaged must not count.
  PRUNERC_TRY(
      std::vector<Record> records,
      select_records("WHERE task = ? AND status = 'ok' AND imported = 0 ORDER BY id", task_id, -1));
  // Also by a verdict that came before it was timed here.
  PRUNERC_TRY(const std::set<std::string> wrong, refuted(task_id));
  std::map<std::string, std::vector<std::size_t>> candidates;
  double quiet_ns = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!wrong.contains(records[i].fingerprint)) candidates[records[i].fingerprint].push_back(i);
    quiet_ns = quieter(quiet_ns, records[i].measurement.machine.reference_ns);
  }
  std::vector<Record> out;
  for (const auto& [fingerprint, rows] : candidates) {
    std::vector<Measurement> measurements;
    for (const std::size_t row : rows) measurements.push_back(records[row].measurement);
    Record& counts = records[rows[standing(measurements, quiet_ns)]];
    if (!counts.verified()) counts.measurement.evidence = evidence_of(measurements);
    out.push_back(std::move(counts));
  }
  std::sort(out.begin(), out.end(), [](const Record& a, const Record& b) {
    return std::tie(a.measurement.median_ns, a.id) < std::tie(b.measurement.median_ns, b.id);
  });
  return out;
}

Result<std::vector<Record>> Database::verified(int64_t task_id, int64_t k) {
  PRUNERC_TRY(std::vector<Record> out, standing_records(task_id));
  std::erase_if(out, [](const Record& record) { return !record.verified(); });
  return first(std::move(out), k);
}

Result<std::optional<Record>> Database::best(int64_t task_id) {
  PRUNERC_TRY(std::vector<Record> found, verified(task_id, 1));
  return found.empty() ? std::optional<Record>() : std::optional<Record>(std::move(found[0]));
}

Result<std::optional<ShownRecord>> Database::best_kept(const TaskRow& task) {
  PRUNERC_TRY(std::vector<Record> records, verified(task.id, kMostBestRead));
  return first_kept(task, std::move(records));
}

Result<std::optional<ShownRecord>> Database::claim_kept(const TaskRow& task) {
  PRUNERC_TRY(std::vector<Record> records, claims(task.id, kMostClaimsRead));
  return first_kept(task, std::move(records));
}

Result<std::vector<Record>> Database::top_k(int64_t task_id, int64_t k) {
  PRUNERC_TRY(std::vector<Record> out, standing_records(task_id));
  return first(std::move(out), k);
}

}  // namespace prunerc::search
