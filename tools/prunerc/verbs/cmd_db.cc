#include "ir/support/file.h"
#include "search/record/database.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

namespace prunerc::cli {
namespace {

struct DbVerb {
  std::string database;
  std::string file;
  std::string op;
  bool best = false;
};

// The task's best, else the first of what its imported records claim.
Result<std::optional<search::ShownRecord>> best_or_claim(search::Database& database,
                                                         const search::TaskRow& task) {
  PRUNERC_TRY(std::optional<search::ShownRecord> best, database.best_kept(task));
  if (best) return best;
  return database.claim_kept(task);
}

int list(search::Database& database, const DbVerb& verb) {
  const Result<std::vector<search::TaskRow>> tasks = database.list_tasks();
  if (!tasks.ok()) return fail(tasks.error());
  fmt::print("{:>4} {:<28} {:<20} {:<24} {:>8} {:>8} {:>12}\n", "id", "operator", "target/threads",
             "bindings", "records", "imported", "best");
  for (const search::TaskRow& row : *tasks) {
    if (!is_meant(row, verb.op)) continue;
    const Result<std::optional<search::ShownRecord>> best = best_or_claim(database, row);
    if (!best.ok()) return fail(best.error());
    // Nobody timed a claim here, so it is told apart.
    const std::string time = !*best ? time_text(0)
                             : (*best)->record.imported
                                 ? "imported"
                                 : time_text((*best)->record.measurement.median_ns);
    fmt::print("{:>4} {:<28} {:<20} {:<24} {:>8} {:>8} {:>12}{}\n", row.id, row.name.substr(0, 28),
               target_text(row.key.target), row.bindings.empty() ? "-" : row.bindings.substr(0, 24),
               row.num_records, row.num_imported, time,
               *best && !(*best)->stale.empty() ? "  gives no program in this build" : "");
  }
  return kSuccess;
}

int best(search::Database& database, const DbVerb& verb) {
  const Result<std::vector<search::TaskRow>> tasks = database.list_tasks();
  if (!tasks.ok()) return fail(tasks.error());
  bool found = false;
  for (const search::TaskRow& row : *tasks) {
    if (!is_meant(row, verb.op)) continue;
    const Result<std::optional<search::ShownRecord>> shown = best_or_claim(database, row);
    if (!shown.ok()) return fail(shown.error());
    if (!*shown) continue;
    found = true;
    const search::Record& r = (*shown)->record;
    fmt::print(
        "# {}{} on {}: {} (spread {:.1f}%), record {} of {}, sketch {}, seed {}, prunerc {}\n",
        r.imported ? "imported, nothing of it was checked here: " : "", row.name,
        target_text(row.key.target), time_text(r.measurement.median_ns), 100 * r.measurement.spread,
        r.id, r.created, r.sketch, r.seed, r.version);
    if (!(*shown)->stale.empty()) fmt::print("# not used: {}\n", printable_line((*shown)->stale));
    fmt::print("# {}: {}\n# timer: {}\n{}\n", r.imported ? "it claims" : "verified",
               r.measurement.evidence, r.timer, printable(r.trace));
  }
  if (found) return kSuccess;
  return fail(fmt::format("no verified record{} in {}",
                          verb.op.empty() ? "" : fmt::format(" of '{}'", verb.op), database.path()),
              "`prunerc tune FILE` makes records; `prunerc db ls` lists what there is", kCacheMiss);
}

int export_to(search::Database& database, const DbVerb& verb) {
  std::error_code ignored;
  if (std::filesystem::equivalent(verb.file, database.path(), ignored)) {
    return fail(error(Diag::kUsageOption, "FILE.jsonl", "is the database, which it would replace"));
  }
  std::ostringstream lines;
  const Result<int64_t> count =
      database.export_lines(lines, verb.best ? search::Export::kBest : search::Export::kAll);
  if (!count.ok()) return fail(count.error());
  if (verb.file == "-") {
    fmt::print("{}", lines.str());
  } else {
    const Result<void> written = replace_file(verb.file, lines.str());
    if (!written.ok()) return fail(written.error());
  }
  fmt::print(stderr, "exported {} records\n", *count);
  return kSuccess;
}

int import_from(search::Database& database, const DbVerb& verb) {
  Result<std::string> text = read_file(verb.file);
  if (!text.ok()) return fail(text.error());
  std::istringstream lines(std::move(text).value());
  const Result<search::ImportCounts> counts = database.import_lines(lines, verb.file);
  if (!counts.ok()) return fail(counts.error());
  fmt::print(
      "imported {} records as claims, to be verified and timed before use; {} were there already\n",
      counts->num_records, counts->num_known);
  return kSuccess;
}

int stats(search::Database& database, const DbVerb&) {
  const Result<search::DatabaseStats> found = database.stats();
  if (!found.ok()) return fail(found.error());
  fmt::print(
      "file      {}\ntasks     {}\nderived   {}\nrecords   {}\nverified  {}\nimported  {}\n"
      "outcomes  {}\ndamaged   {}\n",
      database.path(), found->num_tasks, found->num_derived, found->num_records,
      found->num_verified, found->num_imported, counts_text(found->by_status), found->num_damaged);
  return kSuccess;
}

int validate(search::Database& database, const DbVerb&) {
  const Result<std::vector<search::Finding>> findings = database.validate();
  if (!findings.ok()) return fail(findings.error());
  int64_t num_claims = 0;
  for (const search::Finding& f : *findings) {
    fmt::print("record {}: {}\n", f.record_id, f.problem);
    if (f.is_claim) ++num_claims;
  }
  const auto num_problems = static_cast<int64_t>(findings->size()) - num_claims;
  fmt::print("{}: {} problem(s)", database.path(), num_problems);
  if (num_claims > 0) {
    fmt::print(", {} imported record(s) not verified here; `prunerc verify {}` does", num_claims,
               database.path());
  }
  fmt::print("\n");
  if (num_problems == 0) return kSuccess;
  return fail(printable_line(database.path()) + " does not hold what it says",
              "what is damaged is left out everywhere", kVerificationFailed);
}

using Work = int (*)(search::Database& database, const DbVerb& verb);

int with_database(const DbVerb& verb, Work work) {
  const std::string path = verb.database.empty() ? default_database() : verb.database;
  if (work == import_from && search::is_export(path)) {
    return fail(
        error(Diag::kUsageOption, "--db",
              "names a file of exported records, which are only read: import into another"));
  }
  // Who only looks makes no file of a mistyped name, and may look at what others keep.
  Result<search::Database> database =
      work == import_from ? search::Database::open(path) : search::Database::open_to_read(path);
  if (!database.ok()) return fail(database.error());
  std::error_code ignored;
  if (path != ":memory:" && !std::filesystem::exists(path, ignored)) {
    fmt::print(stderr, "there is no {} yet\n", printable_line(path));
  }
  return work(*database, verb);
}

std::shared_ptr<DbVerb> add(CLI::App& verb, Action& action, Work work) {
  auto args = std::make_shared<DbVerb>();
  add_database_to(verb, &args->database);
  verb.callback(
      [args, work, &action] { action = [args, work] { return with_database(*args, work); }; });
  return args;
}

void add_op(CLI::App& verb, const std::shared_ptr<DbVerb>& args) {
  verb.add_option("--op", args->op, "only this operator")->type_name("NAME");
}

void add_file(CLI::App& verb, const std::shared_ptr<DbVerb>& args, const char* text) {
  verb.add_option("file", args->file, text)->type_name("FILE.jsonl")->required();
}

}  // namespace

void add_db_ls(CLI::App& verb, Action& action) { add_op(verb, add(verb, action, list)); }
void add_db_best(CLI::App& verb, Action& action) { add_op(verb, add(verb, action, best)); }
void add_db_export(CLI::App& verb, Action& action) {
  const auto args = add(verb, action, export_to);
  add_file(verb, args, "file to write, - for stdout");
  verb.add_flag("--best", args->best, "only the fastest verified record of each task");
}
void add_db_import(CLI::App& verb, Action& action) {
  add_file(verb, add(verb, action, import_from), "file to read");
}
void add_db_stats(CLI::App& verb, Action& action) { add(verb, action, stats); }
void add_db_validate(CLI::App& verb, Action& action) { add(verb, action, validate); }

}  // namespace prunerc::cli
