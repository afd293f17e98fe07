// Database: every measurement that was ever made, on disk (SQLite, write-ahead log). Records
// explain themselves.
#ifndef PRUNERC_SEARCH_RECORD_DATABASE_H_
#define PRUNERC_SEARCH_RECORD_DATABASE_H_

#include "ir/support/result.h"
#include "search/record/measurement.h"
#include "search/space/task.h"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;

namespace prunerc::search {

/// A task as stored.
struct TaskRow {
  int64_t id = 0;
  TaskKey key;
  std::string name;
  std::string op_text;
  std::string bindings;
  // Filled by list_tasks:
  int64_t num_records = 0;
  int64_t num_imported = 0;  // of these
  double claimed_ns = 0;     // the fastest of what these say, 0 if there are none
};

/// Samples as the store writes them: the shortest text that reads back to the same numbers.
std::string print_samples(const std::vector<double>& samples);

/// One measurement of one candidate. With its TaskRow it can be replayed and checked anywhere.
struct Record {
  int64_t id = 0;           // 0 before it is stored
  std::string fingerprint;  // of the scheduled program, 32 hex digits
  std::string sketch;       // name of the sketch
  std::string trace;        // text, decisions included
  Measurement measurement;  // `evidence` is empty unless the result was compared and right
  std::string platform;     // full target text with the numbers measured that day
  std::string timer;        // how samples were taken
  uint64_t seed = 0;
  std::string version;  // of prunerc
  std::string created;  // UTC; given by the store
  /// A line of a file says all this: neither the result nor the time was checked here.
  bool imported = false;
  bool verified() const { return !imported && measurement.ok() && !measurement.evidence.empty(); }
};

/// How a derived task comes from an operator's, and what was shown of it: an unscheduled program of
/// the same parameters that computes the same, as records of the derived task are of its schedules.
struct DerivedLink {
  std::string recipe;     // in words; never empty
  int64_t rules = 0;      // that made it: a set of bits
  std::string numerics;   // how far rounding may differ: "strict", "normal", "loose"
  double flops = 0;       // of one run of the derived program
  double limit_ns = 0;    // of all its nests one after the other
  double log2_error = 0;  // of the check against the operator's program, as FpvVerdict's
  int64_t tests = 0;
  std::string assumes;  // on what that rests beside randomness; empty: on nothing
  std::string created;  // UTC; given by the store
  /// A line of a file says all this: nothing of it was checked here.
  bool imported = false;
  bool operator==(const DerivedLink&) const = default;
};

/// The other task of a link.
struct DerivedRow {
  TaskRow task;  // without counts and times
  DerivedLink link;
};

struct DatabaseStats {
  int64_t num_tasks = 0;
  int64_t num_records = 0;
  int64_t num_verified = 0;
  int64_t num_imported = 0;
  int64_t num_derived = 0;  // links of derived tasks
  StatusCounts by_status = {};
  int64_t num_damaged = 0;  // rows whose checksum does not fit; they are skipped everywhere else
};

struct ImportCounts {
  int64_t num_records = 0;
  int64_t num_known = 0;  // were there already
};

enum class Export : uint8_t { kAll, kBest };

/// Whether the name is that of a file of exported records.
inline bool is_export(std::string_view path) { return path.ends_with(".jsonl"); }

/// Of a task's fastest verified records, and of its claims, so many are read to find what still gives
/// its program: what another build has stored may give none.
inline constexpr int64_t kMostBestRead = 16, kMostClaimsRead = 128;

/// A record by which a task is shown.
struct ShownRecord {
  Record record;
  std::string stale;  // why this build makes no program of it; empty: it does
};

/// A result of validate(): one record that does not hold what it says, or (a claim) of which nobody
/// knows whether it does.
struct Finding {
  int64_t record_id = 0;
  std::string problem;
  bool is_claim = false;
};

/// An open store. Any number of processes may use one file; a write waits for the others up to 10
/// s. A record is acknowledged once put_records has returned: then it survives a crash of this
/// process. Threads: one Database belongs to one thread at a time.
class Database {
 public:
  /// Opens or creates `path`; ":memory:" gives a store that ends with the process.
  /// Errors: DatabaseOpen, DatabaseCorrupt, DatabaseVersion.
  static Result<Database> open(const std::string& path);
  /// Opens what is there, a database or lines that export_lines wrote (`.jsonl`), and writes nothing, so that neither the file nor its folder need to be
  /// writable; what a writer left in its log is read as well. No file in a folder gives an empty store. Writes
  /// are refused. Errors: as open, of what is there; RecordImport, IoError of lines. Cost: where the log cannot be read in place, a
  /// copy in memory.
  static Result<Database> open_to_read(const std::string& path);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  const std::string& path() const { return path_; }

  /// The id of the task's row, made if there is none. Key texts are compared in full.
  Result<int64_t> put_task(const Task& task);
  Result<std::optional<int64_t>> find_task(const TaskKey& key);
  /// Tasks of the same program, whatever their target; without counts and times.
  Result<std::vector<TaskRow>> tasks_of_program(const std::string& program);
  Result<std::vector<TaskRow>> list_tasks();

  /// Stores all or nothing. A candidate measured before gets one more row.
  Result<void> put_records(int64_t task_id, std::span<const Record> records);
  /// Marks a stored candidate as verified, or as wrong; rows of the same fingerprint follow, imported
  /// ones only if it is wrong: their times stay claims. What gave a wrong result or is not equal is so
  /// as well where the same kernel was timed in a network or with constants from memory.
  Result<void> put_verdict(int64_t task_id, const std::string& fingerprint,
                           const Measurement& verdict);
  /// Whether the candidate was once found wrong or not equal here, as the task's or where the same
  /// kernel was timed with other things around it.
  Result<bool> is_refuted(int64_t task_id, const std::string& fingerprint);
  /// The fingerprints of all of these.
  Result<std::set<std::string>> refuted(int64_t task_id);

  /// Fastest verified record. Of a candidate measured several times the one counts that standing()
  /// chooses: the latest, unless the machine was slowed down then; it is verified if any was. Imported
  /// records and what is_refuted are not among them.
  Result<std::optional<Record>> best(int64_t task_id);
  /// The k fastest verified records, one per candidate, as above.
  Result<std::vector<Record>> verified(int64_t task_id, int64_t k);
  /// Fastest ok records that were measured here, verified or not, one per candidate, as above.
  Result<std::vector<Record>> top_k(int64_t task_id, int64_t k);
  /// Imported ok records of candidates that were never measured here, one per candidate, the fastest
  /// by their own account first.
  Result<std::vector<Record>> claims(int64_t task_id, int64_t k);
  /// What a stored task's verified records are shown by: the fastest of which this build still makes
  /// the program, else the fastest. Likewise of its claims.
  Result<std::optional<ShownRecord>> best_kept(const TaskRow& task);
  Result<std::optional<ShownRecord>> claim_kept(const TaskRow& task);
  /// All records in the order they were stored.
  Result<std::vector<Record>> records(int64_t task_id);

  /// Links a derived task to its operator's, both stored and of one target. A link that is there stays
  /// as it is, unless it is damaged or a claim and this one is none. Errors: DatabaseQuery.
  Result<void> put_derived(int64_t spec_task, int64_t task, const DerivedLink& link);
  /// Takes the link away; records stay.
  Result<void> drop_derived(int64_t spec_task, int64_t task);
  /// The tasks derived from an operator's, in the order they were linked; damaged links are left out.
  Result<std::vector<DerivedRow>> derived_of(int64_t spec_task);
  /// The operators' tasks that a task is derived from, likewise.
  Result<std::vector<DerivedRow>> specs_of(int64_t task);

  Result<DatabaseStats> stats();
  /// SQLite's own check, checksums, that programs and traces parse, and which records and links are
  /// claims.
  Result<std::vector<Finding>> validate();

  /// JSON lines, one record each with its task and what that is derived from: all of them, or the
  /// best of each task that this build still makes a program of.
  Result<int64_t> export_lines(std::ostream& out, Export which = Export::kAll);
  /// Reads them back, all or nothing, and marks them as imported. A line is refused if a member is
  /// missing or of another type, if texts do not parse or do not fit the hash, if the median is not
  /// that of the samples, or if no machine of the target is so fast. `file` is for messages.
  /// Errors: RecordImport with the line's number.
  Result<ImportCounts> import_lines(std::istream& in, const std::string& file);

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  explicit Database(sqlite3* db, std::string path);
  static Result<Database> read_lines(const std::string& path);
  static Result<Database> copy_into_memory(const std::string& path);
  static Result<Database> in_memory(const std::string& copy, const std::string& path);
  Result<int64_t> put_task_row(const TaskRow& row);
  Result<std::optional<TaskRow>> task_row(int64_t id);
  Result<int64_t> insert_record(int64_t task_id, const Record& record);
  /// put_derived within a transaction.
  Result<void> put_link(int64_t spec_task, int64_t task, const DerivedLink& link);
  /// A row of the table of links; nullopt if it is damaged.
  struct Link {
    TaskRow spec, task;
    DerivedLink link;
  };
  Result<std::vector<std::optional<Link>>> select_links(const std::string& where, int64_t a,
                                                        int64_t b = 0);
  /// The task, and those whose targets differ in what surrounds the kernel alone.
  Result<std::vector<int64_t>> tasks_of_same_kernels(int64_t task_id);
  /// All tasks by that, read once for as long as nobody adds one: each reads every program.
  struct KernelGroups {
    int64_t data_version = 0;  // SQLite's: other connections change it
    std::map<int64_t, std::size_t> group_of;
    std::vector<std::vector<int64_t>> groups;
  };
  Result<void> group_tasks();
  /// Of each candidate that ran here the record that counts, fastest first.
  Result<std::vector<Record>> standing_records(int64_t task_id);
  Result<std::vector<Record>> select_records(const std::string& where, int64_t task_id,
                                             int64_t limit);

  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
  std::optional<KernelGroups> kernel_groups_;
};

/// Schema of the files that this build writes.
inline constexpr int kDatabaseSchema = 4;

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_DATABASE_H_
