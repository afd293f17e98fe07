#include "search/record/pool.h"
#include "search/record/rows_file.h"
#include "search/tune/remeasure.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

namespace prunerc::cli {
namespace {

struct DatasetVerb {
  OperatorOptions op;
  MachineOptions machine;
  int64_t candidates = 2000;
  double share_searched = 0.3;
  uint64_t seed = 0;
  std::string time;
  std::string out;
  bool resume = false;
  std::vector<std::string> pools;
  std::string file;
  std::string by;  // how `split` or `prune` chooses
  double share = 0.25;
  double keep = 0.5;
  std::vector<std::string> held;
  search::RemeasureOptions remeasure;
};

// --- record

bool is_folder(const std::string& out) {
  std::error_code ignored;
  return out.ends_with('/') || std::filesystem::is_directory(out, ignored);
}

// One file per operator in a folder, named after it.
std::string pool_path(const std::string& out, const Operator& op) {
  if (!is_folder(out)) return out;
  std::string name = op.name;
  if (!op.bindings.empty()) name += "-" + op.bindings;
  std::replace(name.begin(), name.end(), ',', '-');
  std::erase(name, '=');
  return (std::filesystem::path(out) / (name + ".pool")).string();
}

Result<search::Pool> first_pool(const DatasetVerb& verb, const std::string& path) {
  std::error_code code;
  if (std::filesystem::exists(path, code)) {
    if (verb.resume) return search::read_pool(path);
    return error(Diag::kUsageOption, "--out",
                 fmt::format("'{}' is there already; --resume goes on with it", path));
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, code);
  search::Pool pool;
  pool.seed = verb.seed;
  pool.share_searched = verb.share_searched;
  return pool;
}

std::string_view words(search::RecordEnd end) {
  switch (end) {
    case search::RecordEnd::kComplete: return "complete";
    case search::RecordEnd::kExhausted: return "complete: the space has no more candidates";
    case search::RecordEnd::kTime:
      return "out of time; run the same command with --resume to go on";
    case search::RecordEnd::kCancelled:
      return "interrupted; run the same command with --resume to go on";
    case search::RecordEnd::kDeviceLost: return "the device was lost";
  }
  PRUNERC_UNREACHABLE("end of a recording");
}

void show_progress(const search::Pool& pool, int64_t wanted) {
  fmt::print(stderr, "{}: {}/{} candidates, best {}, {}\n", pool.op, pool.rows.size(), wanted,
             time_text(best_ns(pool)), counts_text(counts_of(pool)));
}

int record_one(const DatasetVerb& verb, Session& session, const Operator& op, double time_s) {
  const std::string path = pool_path(verb.out, op);
  Result<search::Pool> pool = first_pool(verb, path);
  if (!pool.ok()) return fail(pool.error());
  search::RecordOptions options;
  options.candidates = verb.candidates;
  options.time_s = time_s;
  options.cancel = &catch_interrupts();
  options.save = [&](const search::Pool& p) {
    show_progress(p, verb.candidates);
    return search::write_pool(p, path);
  };
  const Result<search::RecordEnd> end = session.record(op, options, &*pool);
  if (!end.ok()) return fail(end.error());
  fmt::print("{}: {} candidates of {} in {}, best {}; {}\n", path, pool->rows.size(), op.name,
             target_text(pool->platform), time_text(best_ns(*pool)), words(*end));
  if (*end == search::RecordEnd::kDeviceLost) return kDeviceProblem;
  if (*end == search::RecordEnd::kCancelled) return kInterrupted;
  return best_ns(*pool) > 0 || pool->rows.empty() ? kSuccess : kNoCandidate;
}

int record(const DatasetVerb& verb) {
  const Result<std::vector<Operator>> ops = verb.op.load();
  if (!ops.ok()) return fail(ops.error());
  if (ops->size() > 1 && !is_folder(verb.out)) {
    return fail(error(Diag::kUsageOption, "--out",
                      "a pool holds one operator; for several give a folder, as in 'pools/'"),
                kUsage);
  }
  double time_s = 0;
  if (!verb.time.empty()) {
    const Result<double> seconds = parse_duration(verb.time);
    if (!seconds.ok()) return fail(seconds.error(), kUsage);
    time_s = *seconds / static_cast<double>(ops->size());
  }
  Result<Session> session = verb.machine.open();
  if (!session.ok()) return fail(session.error());
  for (const Operator& op : *ops) {
    fmt::print(stderr, "{}", op.warnings);
    const int code = record_one(verb, *session, op, time_s);
    if (code != kSuccess) return code;
  }
  return kSuccess;
}

// --- remeasure

int remeasure_one(const DatasetVerb& verb, Session& session, const std::string& path) {
  Result<search::Pool> pool = search::read_pool(path);
  if (!pool.ok()) return fail(pool.error());
  const std::vector<std::size_t> rows = search::contenders(*pool, verb.remeasure);
  const Result<search::RemeasureEnd> end =
      session.remeasure(verb.remeasure, &catch_interrupts(), &*pool);
  if (!end.ok()) return fail(end.error());
  switch (*end) {
    case search::RemeasureEnd::kComplete: break;
    case search::RemeasureEnd::kNothingRan:
      fmt::print("{}: unchanged: no row ran\n", path);
      return kNoCandidate;
    case search::RemeasureEnd::kCancelled:
      fmt::print("{}: unchanged: interrupted\n", path);
      return kInterrupted;
    case search::RemeasureEnd::kDeviceLost:
      fmt::print("{}: unchanged: the device was lost\n", path);
      return kDeviceProblem;
  }
  const Result<void> written = search::write_pool(*pool, path);
  if (!written.ok()) return fail(written.error(), kDeviceProblem);
  const search::PoolRow& before = pool->rows[rows.front()];
  const std::string was =
      before.ok() ? fmt::format("takes {:.3f} times as long", before.median_ns / best_ns(*pool))
                  : fmt::format("is no candidate: {}", describe(before.status));
  fmt::print("{}: {} rows in {} turns, best {}; what was the best {}\n", path, rows.size(),
             verb.remeasure.turns, time_text(best_ns(*pool)), was);
  return kSuccess;
}

int remeasure(const DatasetVerb& verb) {
  Result<Session> session = verb.machine.open();
  if (!session.ok()) return fail(session.error());
  for (const std::string& path : verb.pools) {
    const int code = remeasure_one(verb, *session, path);
    if (code != kSuccess) return code;
  }
  return kSuccess;
}

// --- split, prune

std::string rows_text(const search::Split& split) {
  return fmt::format("{} rows train, {} test", split.train.size(), split.test.size());
}

// Of the selection's rows, those that train.
int split(const DatasetVerb& verb) {
  const std::optional<search::SplitKind> kind = search::split_from_string(verb.by);
  const Result<search::Selection> from = search::read_selection(verb.pools);
  if (!from.ok()) return fail(from.error());
  const search::Split made =
      search::split_rows(from->corpus, from->split.train, *kind, verb.share, verb.held, verb.seed);
  const Result<void> parted = search::check_split(from->corpus, *kind, verb.held, made);
  if (!parted.ok()) return fail(parted.error());
  const Result<void> written = search::write_rows(from->corpus, made, verb.file);
  if (!written.ok()) return fail(written.error(), kDeviceProblem);
  fmt::print("{}: {}\n", verb.file, rows_text(made));
  return kSuccess;
}

int prune(const DatasetVerb& verb) {
  const std::optional<search::PruneKind> kind = search::prune_from_string(verb.by);
  const Result<search::Selection> from = search::read_selection(verb.pools);
  if (!from.ok()) return fail(from.error());
  search::Split made = from->split;
  made.train = search::prune_rows(from->corpus, made.train, *kind, verb.keep, verb.seed);
  // Rows of whole pools train and test; of those that still train none may test.
  std::set<std::pair<int, int>> trains;
  for (const search::CorpusRow& row : made.train) trains.emplace(row.pool, row.row);
  std::erase_if(made.test, [&](const search::CorpusRow& row) {
    return trains.contains({row.pool, row.row});
  });
  const Result<void> written = search::write_rows(from->corpus, made, verb.file);
  if (!written.ok()) return fail(written.error(), kDeviceProblem);
  fmt::print("{}: {}, of {}\n", verb.file, rows_text(made), from->split.train.size());
  return kSuccess;
}

using Work = int (*)(const DatasetVerb& verb);

// A verb on pools that `dataset record` wrote.
std::shared_ptr<DatasetVerb> add_on_pools(CLI::App& verb, Action& action, Work work) {
  auto args = std::make_shared<DatasetVerb>();
  verb.add_option("pool", args->pools, "files that `dataset record` wrote")
      ->type_name("FILE.pool")
      ->required();
  in_group(verb, "Pools");
  verb.callback([args, work, &action] { action = [args, work] { return work(*args); }; });
  return args;
}

// The same for one that chooses rows of pools or of rows files, and writes a rows file.
std::shared_ptr<DatasetVerb> add_on_rows(CLI::App& verb, Action& action, Work work,
                                         const std::vector<std::string>& ways) {
  auto args = add_on_pools(verb, action, work);
  verb.get_option("pool")->type_name("FILE.pool|json")->description("pools, or rows files");
  args->by = ways.front();
  verb.add_option("--by", args->by, "how rows are chosen")
      ->type_name("WAY")
      ->check(CLI::IsMember(ways))
      ->capture_default_str();
  verb.add_option("--seed", args->seed, "of what is drawn")->type_name("N")->capture_default_str();
  verb.add_option("-o,--output", args->file, "rows file to write")
      ->type_name("FILE.json")
      ->required();
  return args;
}

}  // namespace

void add_dataset_record(CLI::App& verb, Action& action) {
  auto args = std::make_shared<DatasetVerb>();
  args->op.add_several_to(verb);
  args->machine.add_without_database_to(verb);
  verb.add_option("-o,--out", args->out, "pool to write; a folder if there are several operators")
      ->type_name("FILE.pool")
      ->required();
  verb.add_option("--candidates", args->candidates, "rows of the pool")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_flag("--resume", args->resume, "go on with a pool that is there");
  verb.add_option("--time", args->time, "stop after this long: 90s, 30m, 1h")
      ->type_name("DURATION");
  verb.add_option("--share-searched", args->share_searched,
                  "part that an evolutionary search finds; the rest is uniform")
      ->type_name("PART")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb.add_option("--seed", args->seed, "of every random choice")
      ->type_name("N")
      ->capture_default_str();
  in_group(verb, "Pool");
  verb.callback([args, &action] { action = [args] { return record(*args); }; });
}

void add_dataset_remeasure(CLI::App& verb, Action& action) {
  auto args = add_on_pools(verb, action, remeasure);
  args->machine.add_without_database_to(verb);
  verb.add_option("--best", args->remeasure.best, "rows of the shortest times")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb.add_option("--within", args->remeasure.within,
                  "and those that take at most this part longer than the best")
      ->type_name("PART")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  verb.add_option("--turns", args->remeasure.turns, "times that each is measured")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  in_group(verb, "Rows");
}

void add_dataset_split(CLI::App& verb, Action& action) {
  auto args = add_on_rows(verb, action, split, {"by-task", "within-task", "by-target"});
  verb.add_option("--share", args->share, "part that tests")
      ->type_name("PART")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb.add_option("--hold", args->held, "operators or targets that test, instead of drawn ones")
      ->type_name("NAME");
  in_group(verb, "Rows");
}

void add_dataset_prune(CLI::App& verb, Action& action) {
  auto args = add_on_rows(verb, action, prune, {"quantile", "random", "class"});
  verb.add_option("--keep", args->keep, "part that is kept")
      ->type_name("PART")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  in_group(verb, "Rows");
}

}  // namespace prunerc::cli
