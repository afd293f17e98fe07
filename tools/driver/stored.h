// Choices that come from the store.
#ifndef PRUNERC_TOOLS_DRIVER_STORED_H_
#define PRUNERC_TOOLS_DRIVER_STORED_H_

#include "search/record/database.h"
#include "search/record/restore.h"
#include "tools/driver/prunerc.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prunerc {

/// Imported records that are looked at, of a file that may hold any number.
inline constexpr int64_t kMostClaims = 8;

/// A task whose schedules are some of an operator's.
struct StoredTask {
  int64_t id = 0;
  search::Task task;
  std::optional<search::DerivedLink> link = {};  ///< of a derived task
};

/// The operator's own task first, then those derived from it that this build can read. Of imported
/// links only what was shown to be equal here may be used: see show_link. None if the operator's own
/// is not stored. Errors: those of the store.
Result<std::vector<StoredTask>> stored_tasks(search::Database& database, const search::Task& task);

/// Whether schedules of the task are the operator's. An imported link is a claim: it is checked in
/// finite fields, by a fixed seed, and then kept as shown, or taken away. Errors: RecordImport if it
/// is refuted and its file is all there is, with the line of `record_id`.
Result<bool> show_link(search::Database& database, StoredTask& own, StoredTask& derived,
                       int64_t record_id);

/// The record's program. Errors: RecordStale.
Result<Choice> choice_of(const search::Task& task, const search::Record& record);
/// The same with its derivation, but for the operator's time.
Result<Choice> choice_of(const StoredTask& stored, const search::Record& record);

/// The fastest verified record that still gives a program (one of an older build may not), of the operator or of
/// a derived program that is faster (search::algebra::is_faster), else an imported one that is shown to be right;
/// why there is none of these goes to `note`, faster records that give no program to `left`. Errors: those of the
/// store; RecordImport, as Session::choose.
Result<std::optional<Choice>> stored_choice(search::Database& database, const search::Task& task,
                                            std::string* note, search::LeftAside* left);

/// What the latest ranking within a network chose, of its task there (Session::network_task) or one
/// derived from it: its times are of that run alone, so that the fastest of several rankings means
/// nothing. Later records that give no program go to `left`.
Result<std::optional<Choice>> ranked_choice(search::Database& database, const search::Task& task,
                                            search::LeftAside* left);

/// Verified records of a stored task in the order in which they are chosen: the fastest first, within a
/// network the latest, as above; at most search::kMostBestRead.
Result<std::vector<search::Record>> chosen_first(search::Database& database,
                                                 const search::TaskRow& task);

/// The record that counts of a program that was measured here, or none: Database::top_k says which of
/// several.
Result<std::optional<search::Record>> record_of(search::Database& database,
                                                const search::Task& task,
                                                const std::string& fingerprint, bool verified);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_STORED_H_
