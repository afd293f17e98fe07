// The fastest of a store, by the measurement of each candidate that counts.
#include "search/record/database.h"
#include "search/record/sqlite.h"
#include "search/record/standing.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace prunerc::search {

Result<std::vector<Database::Standing>> Database::standing_rows(int64_t task_id) {
  PRUNERC_TRY(Query query,
              Query::prepare(db_.get(), path_,
                             "SELECT id, fingerprint, median_ns, evidence <> '', disturbed, "
                             "reference_ns FROM record WHERE task = ? AND status = 'ok' AND "
                             "imported = 0 ORDER BY id"));
  query.bind(task_id);
  struct Rows {
    std::vector<Standing> rows;
    std::vector<Measurement> measurements;
  };
  std::map<std::string, Rows> candidates;
  double quiet_ns = 0;
  while (true) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) break;
    Standing row;
    row.id = query.int_column();
    Rows& own = candidates[query.text_column()];
    row.median_ns = query.double_column();
    row.is_verified = query.int_column() != 0;
    Measurement& m = own.measurements.emplace_back();
    m.median_ns = row.median_ns;
    m.disturbed = query.int_column() != 0;
    m.machine.reference_ns = query.double_column();
    quiet_ns = quieter(quiet_ns, m.machine.reference_ns);
    own.rows.push_back(row);
  }
  std::vector<Standing> out;
  for (const auto& [fingerprint, own] : candidates) {
    out.push_back(own.rows[standing(own.measurements, quiet_ns)]);
  }
  std::sort(out.begin(), out.end(), [](const Standing& a, const Standing& b) {
    return std::tie(a.median_ns, a.id) < std::tie(b.median_ns, b.id);
  });
  return out;
}

Result<std::vector<Record>> Database::verified(int64_t task_id, int64_t k) {
  PRUNERC_TRY(const std::vector<Standing> rows, standing_rows(task_id));
  std::vector<Record> out;
  for (const Standing& row : rows) {
    if (static_cast<int64_t>(out.size()) >= k) break;
    if (!row.is_verified) continue;
    PRUNERC_TRY(std::vector<Record> found, select_records("WHERE id = ?", row.id, 1));
    // None where it is damaged.
    for (Record& record : found) out.push_back(std::move(record));
  }
  return out;
}

Result<std::optional<Record>> Database::best(int64_t task_id) {
  PRUNERC_TRY(std::vector<Record> found, verified(task_id, 1));
  return found.empty() ? std::optional<Record>() : std::optional<Record>(std::move(found[0]));
}

Result<std::vector<Record>> Database::top_k(int64_t task_id, int64_t k) {
  PRUNERC_TRY(const std::vector<Standing> rows, standing_rows(task_id));
  std::vector<Record> out;
  for (const Standing& row : rows) {
    if (static_cast<int64_t>(out.size()) >= k) break;
    PRUNERC_TRY(std::vector<Record> found, select_records("WHERE id = ?", row.id, 1));
    for (Record& record : found) out.push_back(std::move(record));
  }
  return out;
}

}  // namespace prunerc::search
