// What was stored as candidates again, where this build still makes the program that was measured.
#ifndef PRUNERC_SEARCH_RECORD_RESTORE_H_
#define PRUNERC_SEARCH_RECORD_RESTORE_H_

#include "ir/support/parallel.h"
#include "ir/support/result.h"
#include "schedule/trace/trace.h"
#include "search/record/database.h"
#include "search/record/pool.h"
#include "search/space/members.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::search {

/// What a record's trace makes of its task's program.
struct RestoredRecord {
  schedule::Trace trace;
  ir::Program program;
};
/// Errors: RecordStale where this build makes another program of it than was measured, or none.
Result<RestoredRecord> restore_record(const ir::Program& base, const Record& record);

/// Stored records that are not used, since this build makes no program of them.
struct LeftAside {
  int64_t num = 0;
  std::string why;  // of the first
  void add(const Error& stale);
  void add(const LeftAside& others);
};
/// "2 stored record(s) left aside: record 7 ..."; empty of none.
std::string to_string(const LeftAside& left);

/// What a row keeps of a program's fingerprint.
uint32_t low_bits(const Fingerprint& print);

/// The row's candidate, of the pool's space; empty where this build makes another program of it
/// than was measured.
std::optional<Candidate> restore_row(const Task& task, const SearchSpace& space,
                                     const PoolRow& row);

/// All of them, made by all threads.
std::vector<std::optional<Candidate>> restore_rows(const Pool& pool, const Task& task,
                                                   ThreadPool& threads);

/// A space's members: the rows that this build still makes. Errors: PoolStale if it makes none.
Result<Members> restore_members(const Pool& pool, const Task& task, ThreadPool& threads);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_RESTORE_H_
