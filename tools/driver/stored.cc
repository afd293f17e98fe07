#include "tools/driver/stored.h"

#include "search/algebra/alternatives.h"
#include "search/tune/sampled.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
constexpr std::size_t kMostRead = static_cast<std::size_t>(search::kMostBestRead);

}  // namespace

Result<Choice> choice_of(const search::Task& task, const search::Record& record) {
  PRUNERC_TRY(search::RestoredRecord restored, search::restore_record(task.base, record));
  return Choice{Choice::Origin::kRecord,
                std::move(restored.program),
                std::move(restored.trace),
                record.imported ? 0 : record.measurement.median_ns,
                record.id,
                "",
                record.version};
}

namespace {

// An imported record whose program is the one that it names, and equal to the operator. Nothing of
// this depends on the machine or on chance. Errors: RecordImport if it is refuted and its file is
// all there is.
Result<std::optional<Choice>> checked_claim(search::Database& database, const StoredTask& stored,
                                            const search::Record& record) {
  const search::Task& task = stored.task;
  Result<Choice> choice = choice_of(stored, record);
  if (!choice.ok()) return std::optional<Choice>();
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
    (void)database.put_verdict(stored.id, record.fingerprint, verdict);
  }
  if (!found.verdict.ok()) return std::optional<Choice>();
  choice->note =
      fmt::format("imported, {}, in finite fields; not timed here", search::to_string(found));
  return std::optional<Choice>(*std::move(choice));
}

}  // namespace

Result<std::vector<StoredTask>> stored_tasks(search::Database& database, const search::Task& task) {
  std::vector<StoredTask> tasks;
  PRUNERC_TRY(const std::optional<int64_t> id, database.find_task(task.key));
  if (!id) return tasks;
  tasks.push_back({*id, task});
  PRUNERC_TRY(const std::vector<search::DerivedRow> rows, database.derived_of(*id));
  for (const search::DerivedRow& row : rows) {
    std::optional<search::Task> derived = search::algebra::stored_task(task, row);
    if (derived) tasks.push_back({row.task.id, *std::move(derived), row.link});
  }
  return tasks;
}

Result<bool> show_link(search::Database& database, StoredTask& own, StoredTask& derived,
                       int64_t record_id) {
  // Who stored it here had shown it.
  if (!derived.link || !derived.link->imported) {
    return !derived.link || derived.link->log2_error <= search::kStoredLog2Error;
  }
  const search::SampledVerdict found =
      search::algebra::check_link(own.task, derived.task, search::SampleOptions{}.seed);
  // A store that may only be read keeps what it says.
  if (search::algebra::is_shown(found)) {
    derived.link = search::algebra::with_verdict(*derived.link, found.verdict);
    (void)database.put_derived(own.id, derived.id, *derived.link);
    return true;
  }
  if (search::is_refuted(found.verdict)) {
    if (search::is_export(database.path())) {
      return error(Diag::kRecordImport, record_id, database.path(),
                   fmt::format("'{}' of {} is {}", derived.task.recipe, own.task.name,
                               ir::to_string(found.verdict)));
    }
    (void)database.drop_derived(own.id, derived.id);
  }
  // Not to be asked again.
  derived.link->imported = false;
  derived.link->log2_error = 0;
  return false;
}

Result<Choice> choice_of(const StoredTask& stored, const search::Record& record) {
  PRUNERC_TRY(Choice choice, choice_of(stored.task, record));
  if (!stored.link) return choice;
  choice.recipe = stored.link->recipe;
  choice.derivation = Derivation{stored.task.base, *stored.link};
  return choice;
}

namespace {

/// A record and the task that it is of, by place in the list of tasks.
struct Found {
  std::size_t place = 0;
  search::Record record;
};

// Fastest first; derived programs must be clearly faster than the operator, which comes first.
void sort_by_time(std::vector<Found>& found) {
  const auto time = [](const Found& one) {
    const double handicap = one.place == 0 ? 1 - search::algebra::kLeastGain : 1;
    return handicap * one.record.measurement.median_ns;
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Found& a, const Found& b) { return time(a) < time(b); });
}

// The choice that a record stands for, if it still is one and its task is the operator's.
Result<std::optional<Choice>> shown_choice(search::Database& database,
                                           std::vector<StoredTask>& tasks, const Found& found,
                                           search::LeftAside* left) {
  StoredTask& stored = tasks[found.place];
  PRUNERC_TRY(const bool shown, show_link(database, tasks[0], stored, found.record.id));
  if (!shown) return std::optional<Choice>();
  Result<Choice> choice = choice_of(stored, found.record);
  if (choice.ok()) return std::optional<Choice>(*std::move(choice));
  left->add(choice.error());
  return std::optional<Choice>();
}

struct Kept {
  search::Record record;
  Choice choice;
};

// The fastest verified record that still gives the program that it is of: what an older build has stored
// may give none any more, and then the next one does.
Result<std::optional<Kept>> best_kept(search::Database& database, const StoredTask& stored,
                                      search::LeftAside* left) {
  PRUNERC_TRY(std::vector<search::Record> records,
              database.verified(stored.id, search::kMostBestRead));
  for (search::Record& record : records) {
    Result<Choice> choice = choice_of(stored, record);
    if (choice.ok()) return std::optional<Kept>({std::move(record), *std::move(choice)});
    left->add(choice.error());
  }
  return std::optional<Kept>();
}

// Of what was measured here.
Result<std::optional<Choice>> best_choice(search::Database& database,
                                          std::vector<StoredTask>& tasks, search::LeftAside* left) {
  std::optional<Choice> own;
  search::Measurement spec;
  std::vector<Found> derived;
  for (std::size_t place = 0; place < tasks.size(); ++place) {
    PRUNERC_TRY(std::optional<Kept> kept, best_kept(database, tasks[place], left));
    if (!kept) continue;
    if (place > 0) {
      derived.push_back({place, std::move(kept->record)});
    } else {
      spec = kept->record.measurement;
      own = std::move(kept->choice);
    }
  }
  sort_by_time(derived);
  for (const Found& found : derived) {
    if (own && !search::algebra::is_faster(found.record.measurement, spec)) continue;
    PRUNERC_TRY(std::optional<Choice> choice, shown_choice(database, tasks, found, left));
    if (!choice) continue;
    if (choice->derivation) choice->derivation->spec_ns = spec.median_ns;
    return choice;
  }
  return own;
}

}  // namespace

Result<std::optional<Choice>> stored_choice(search::Database& database, const search::Task& task,
                                            std::string* note, search::LeftAside* left) {
  PRUNERC_TRY(std::vector<StoredTask> tasks, stored_tasks(database, task));
  if (tasks.empty()) return std::optional<Choice>();
  PRUNERC_TRY(std::optional<Choice> best, best_choice(database, tasks, left));
  if (best) return best;
  std::vector<Found> claims;
  for (std::size_t place = 0; place < tasks.size(); ++place) {
    PRUNERC_TRY(std::vector<search::Record> some,
                database.claims(tasks[place].id, search::kMostClaimsRead));
    int64_t num_left = kMostClaims;
    for (search::Record& claim : some) {
      // Those of another build may give no program any more.
      if (num_left == 0) break;
      if (const Result<Choice> choice = choice_of(tasks[place].task, claim); !choice.ok()) {
        left->add(choice.error());
        continue;
      }
      claims.push_back({place, std::move(claim)});
      --num_left;
    }
  }
  sort_by_time(claims);
  for (const Found& claim : claims) {
    StoredTask& stored = tasks[claim.place];
    PRUNERC_TRY(const bool shown, show_link(database, tasks[0], stored, claim.record.id));
    if (!shown) continue;
    PRUNERC_TRY(std::optional<Choice> choice, checked_claim(database, stored, claim.record));
    if (choice) return choice;
  }
  if (!claims.empty()) {
    *note =
        fmt::format("finite fields show none of {} imported record(s) to be right", claims.size());
  }
  return std::optional<Choice>();
}

Result<std::optional<Choice>> ranked_choice(search::Database& database, const search::Task& task,
                                            search::LeftAside* left) {
  PRUNERC_TRY(std::vector<StoredTask> tasks, stored_tasks(database, task));
  std::vector<Found> found;
  for (std::size_t place = 0; place < tasks.size(); ++place) {
    PRUNERC_TRY(std::vector<search::Record> records, database.verified(tasks[place].id, kAll));
    for (search::Record& record : records) found.push_back({place, std::move(record)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.record.id > b.record.id; });
  for (const Found& one : found) {
    PRUNERC_TRY(std::optional<Choice> choice, shown_choice(database, tasks, one, left));
    if (choice) return choice;
  }
  return std::optional<Choice>();
}

Result<std::vector<search::Record>> chosen_first(search::Database& database,
                                                 const search::TaskRow& task) {
  const Result<ir::Target> target = ir::target_from_string(task.key.target);
  if (!target.ok() || target->network.empty())
    return database.verified(task.id, search::kMostBestRead);
  PRUNERC_TRY(std::vector<search::Record> records, database.verified(task.id, kAll));
  std::stable_sort(records.begin(), records.end(),
                   [](const search::Record& a, const search::Record& b) { return a.id > b.id; });
  if (records.size() > kMostRead) records.resize(kMostRead);
  return records;
}

Result<std::optional<search::Record>> record_of(search::Database& database,
                                                const search::Task& task,
                                                const std::string& fingerprint, bool verified) {
  PRUNERC_TRY(const std::optional<int64_t> id, database.find_task(task.key));
  if (!id) return std::optional<search::Record>();
  PRUNERC_TRY(std::vector<search::Record> records, database.top_k(*id, kAll));
  for (search::Record& record : records) {
    if (record.fingerprint != fingerprint || (verified && !record.verified())) continue;
    return std::optional<search::Record>(std::move(record));
  }
  return std::optional<search::Record>();
}

}  // namespace prunerc
