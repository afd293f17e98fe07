// Choices that come from the store.
#ifndef PRUNERC_TOOLS_DRIVER_STORED_H_
#define PRUNERC_TOOLS_DRIVER_STORED_H_

#include "search/record/database.h"
#include "tools/driver/prunerc.h"

#include <cstdint>
#include <optional>
#include <string>

namespace prunerc {

/// Imported records that are looked at, of a file that may hold any number.
inline constexpr int64_t kMostClaims = 8;

/// The record's program; nullopt if this build makes none of its trace.
std::optional<Choice> choice_of(const search::Task& task, const search::Record& record);

/// The fastest verified record that still gives a program (one of an older build may not), else an
/// imported one that is shown to be right; why there is none of these goes to `note`. Errors: those of
/// the store; RecordImport, as Session::choose.
Result<std::optional<Choice>> stored_choice(search::Database& database, const search::Task& task,
                                            std::string* note);

/// What the latest ranking within a network chose, of its task there (Session::network_task): its times
/// are of that run alone, so that the fastest of several rankings means nothing.
Result<std::optional<Choice>> ranked_choice(search::Database& database, const search::Task& task);

/// The latest record of a program that was measured here, or none.
Result<std::optional<search::Record>> record_of(search::Database& database,
                                                const search::Task& task,
                                                const std::string& fingerprint, bool verified);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_STORED_H_
