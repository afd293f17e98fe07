#include "ir/target.h"
#include "search/record/database.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

namespace prunerc::cli {
namespace {

struct DbVerb {
  std::string database;
  std::string file;
  std::string op;
};

std::string target_name(const search::TaskRow& row) {
  const Result<ir::Target> target = ir::target_from_string(row.key.target);
  return target.ok() ? fmt::format("{}/{}", target->name, target->num_threads) : "?";
}

int list(search::Database& database, const DbVerb& verb) {
  const Result<std::vector<search::TaskRow>> tasks = database.list_tasks();
  if (!tasks.ok()) return fail(tasks.error(), exit_code(tasks.error()));
  fmt::print("{:>4} {:<28} {:<20} {:<24} {:>8} {:>12}\n", "id", "operator", "target/threads",
             "bindings", "records", "best");
  for (const search::TaskRow& row : *tasks) {
    if (!verb.op.empty() && row.name != verb.op) continue;
    fmt::print("{:>4} {:<28} {:<20} {:<24} {:>8} {:>12}\n", row.id, row.name.substr(0, 28),
               target_name(row), row.bindings.empty() ? "-" : row.bindings.substr(0, 24),
               row.num_records, time_text(row.best_ns));
  }
  return kSuccess;
}

int best(search::Database& database, const DbVerb& verb) {
  const Result<std::vector<search::TaskRow>> tasks = database.list_tasks();
  if (!tasks.ok()) return fail(tasks.error(), exit_code(tasks.error()));
  bool found = false;
  for (const search::TaskRow& row : *tasks) {
    if (!verb.op.empty() && row.name != verb.op) continue;
    const Result<std::optional<search::Record>> record = database.best(row.id);
    if (!record.ok()) return fail(record.error(), exit_code(record.error()));
    if (!*record) continue;
    found = true;
    const search::Record& r = **record;
    fmt::print("# {} on {}: {} (spread {:.1f}%), record {} of {}, sketch {}, seed {}, prunerc {}\n",
               row.name, target_name(row), time_text(r.measurement.median_ns),
               100 * r.measurement.spread, r.id, r.created, r.sketch, r.seed, r.version);
    fmt::print("# verified: {}\n# timer: {}\n{}\n", r.measurement.evidence, r.timer, r.trace);
  }
  if (found) return kSuccess;
  fmt::print(stderr, "no verified record{} in {}\n",
             verb.op.empty() ? "" : fmt::format(" of '{}'", verb.op), database.path());
  return kCacheMiss;
}

int export_to(search::Database& database, const DbVerb& verb) {
  std::ostringstream lines;
  const Result<int64_t> count = database.export_lines(lines);
  if (!count.ok()) return fail(count.error(), exit_code(count.error()));
  if (verb.file == "-") {
    fmt::print("{}", lines.str());
  } else {
    std::ofstream file(verb.file, std::ios::binary | std::ios::trunc);
    file << lines.str();
    file.close();
    if (!file) {
      return fail(error(Diag::kIoError, "write", verb.file, "cannot be written"), kDeviceProblem);
    }
  }
  fmt::print(stderr, "exported {} records\n", *count);
  return kSuccess;
}

int import_from(search::Database& database, const DbVerb& verb) {
  std::ifstream file(verb.file, std::ios::binary);
  if (!file) {
    return fail(error(Diag::kIoError, "read", verb.file, "cannot be opened"), kDeviceProblem);
  }
  const Result<search::ImportCounts> counts = database.import_lines(file);
  if (!counts.ok()) return fail(counts.error(), exit_code(counts.error()));
  fmt::print("imported {} records; {} were there already, {} lines could not be read\n",
             counts->num_records, counts->num_known, counts->num_malformed);
  return counts->num_malformed > 0 ? kBadInput : kSuccess;
}

int stats(search::Database& database, const DbVerb&) {
  const Result<search::DatabaseStats> found = database.stats();
  if (!found.ok()) return fail(found.error(), exit_code(found.error()));
  fmt::print("file      {}\ntasks     {}\nrecords   {}\nverified  {}\noutcomes  {}\ndamaged   {}\n",
             database.path(), found->num_tasks, found->num_records, found->num_verified,
             counts_text(found->by_status), found->num_damaged);
  return kSuccess;
}

int validate(search::Database& database, const DbVerb&) {
  const Result<std::vector<search::Finding>> findings = database.validate();
  if (!findings.ok()) return fail(findings.error(), exit_code(findings.error()));
  for (const search::Finding& f : *findings) fmt::print("record {}: {}\n", f.record_id, f.problem);
  fmt::print("{}: {} problem(s)\n", database.path(), findings->size());
  return findings->empty() ? kSuccess : kVerificationFailed;
}

using Work = int (*)(search::Database& database, const DbVerb& verb);

int with_database(const DbVerb& verb, Work work) {
  const std::string path = verb.database.empty() ? default_database() : verb.database;
  Result<search::Database> database = search::Database::open(path);
  if (!database.ok()) return fail(database.error(), exit_code(database.error()));
  return work(*database, verb);
}

}  // namespace

void add_db(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("db", "look into, check, export and import tuning records");
  verb->require_subcommand(1);
  auto args = std::make_shared<DbVerb>();
  const auto add = [&](const char* name, const char* help, Work work) {
    CLI::App* sub = verb->add_subcommand(name, help);
    sub->add_option("--db", args->database, "(default: $PRUNERC_DB or the user's cache)");
    sub->callback(
        [args, work, &action] { action = [args, work] { return with_database(*args, work); }; });
    return sub;
  };
  add("ls", "tasks with their number of records and best time", list)
      ->add_option("--op", args->op, "only this operator");
  add("best", "the fastest verified record of each task, with its trace", best)
      ->add_option("--op", args->op, "only this operator");
  add("export", "all records as JSON lines", export_to)
      ->add_option("file", args->file, "file to write, - for stdout")
      ->required();
  add("import", "add records that were exported", import_from)
      ->add_option("file", args->file, "file to read")
      ->required();
  add("stats", "how many records of which outcome", stats);
  add("validate", "check the file, the checksums, and that programs and traces can be read",
      validate);
}

}  // namespace prunerc::cli
