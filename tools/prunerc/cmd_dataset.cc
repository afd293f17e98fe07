#include "search/record/pool.h"
#include "search/record/rows_file.h"
#include "search/tune/remeasure.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <utility>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

std::atomic<bool> interrupted{false};

// The first Ctrl-C ends the recording in order; the second one is the system's.
void on_interrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);
}

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
  std::string file = "-";
  // Apart: a default is set when its option is made, whichever verb is called.
  std::string split_by = "by-task", prune_by = "quantile";
  double share = 0.25;
  double keep = 0.5;
  std::vector<std::string> held;
  search::RemeasureOptions remeasure;
};

search::StatusCounts counts_of(const search::Pool& pool) {
  search::StatusCounts counts = {};
  for (const search::PoolRow& row : pool.rows) ++counts[static_cast<std::size_t>(row.status)];
  return counts;
}

double best_ns(const search::Pool& pool) {
  const int best = pool.best();
  return best < 0 ? 0 : pool.rows[static_cast<std::size_t>(best)].median_ns;
}

std::string platform_name(const search::Pool& pool) {
  const Result<ir::Target> target = ir::target_from_string(pool.platform);
  return target.ok() ? fmt::format("{}/{}", target->name, target->num_threads) : "?";
}

// --- record

bool is_folder(const std::string& out) {
  return out.ends_with('/') || std::filesystem::is_directory(out);
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
  if (std::filesystem::exists(path)) {
    if (verb.resume) return search::read_pool(path);
    return error(Diag::kUsageOption, "--out",
                 fmt::format("'{}' is there already; --resume goes on with it", path));
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code code;
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
  if (!pool.ok()) return fail(pool.error(), exit_code(pool.error()));
  search::RecordOptions options;
  options.candidates = verb.candidates;
  options.time_s = time_s;
  options.cancel = &interrupted;
  options.save = [&](const search::Pool& p) {
    show_progress(p, verb.candidates);
    return search::write_pool(p, path);
  };
  const Result<search::RecordEnd> end = session.record(op, options, &*pool);
  if (!end.ok()) return fail(end.error(), exit_code(end.error()));
  fmt::print("{}: {} candidates of {} in {}, best {}; {}\n", path, pool->rows.size(), op.name,
             platform_name(*pool), time_text(best_ns(*pool)), words(*end));
  if (*end == search::RecordEnd::kDeviceLost) return kDeviceProblem;
  if (*end == search::RecordEnd::kCancelled) return kInterrupted;
  return best_ns(*pool) > 0 || pool->rows.empty() ? kSuccess : kNoCandidate;
}

int record(const DatasetVerb& verb) {
  const Result<std::vector<Operator>> ops = verb.op.load();
  if (!ops.ok()) return fail(ops.error(), exit_code(ops.error()));
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
  Result<Session> session =
      Session::open({verb.machine.target, verb.machine.threads, verb.machine.database, {}});
  if (!session.ok()) return fail(session.error(), exit_code(session.error()));
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
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
  if (!pool.ok()) return fail(pool.error(), exit_code(pool.error()));
  const std::vector<std::size_t> rows = search::contenders(*pool, verb.remeasure);
  const Result<search::RemeasureEnd> end = session.remeasure(verb.remeasure, &interrupted, &*pool);
  if (!end.ok()) return fail(end.error(), exit_code(end.error()));
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
  Result<Session> session =
      Session::open({verb.machine.target, verb.machine.threads, verb.machine.database, {}});
  if (!session.ok()) return fail(session.error(), exit_code(session.error()));
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  for (const std::string& path : verb.pools) {
    const int code = remeasure_one(verb, *session, path);
    if (code != kSuccess) return code;
  }
  return kSuccess;
}

// --- list, stats, export

// Calls f for each pool named; the exit code of the first that fails.
template <typename F>
int for_each_pool(const DatasetVerb& verb, F&& f) {
  for (const std::string& path : verb.pools) {
    const Result<search::Pool> pool = search::read_pool(path);
    if (!pool.ok()) return fail(pool.error(), exit_code(pool.error()));
    f(path, *pool);
  }
  return kSuccess;
}

int list(const DatasetVerb& verb) {
  fmt::print("{:<32} {:<18} {:<20} {:<18} {:>8} {:>8} {:>12}\n", "pool", "operator", "bindings",
             "target/threads", "rows", "ran", "best");
  return for_each_pool(verb, [](const std::string& path, const search::Pool& pool) {
    fmt::print("{:<32} {:<18} {:<20} {:<18} {:>8} {:>8} {:>12}\n", path, pool.op,
               pool.bindings.empty() ? "-" : pool.bindings, platform_name(pool), pool.rows.size(),
               counts_of(pool)[0], time_text(best_ns(pool)));
  });
}

// Times of the uniform or of the searched rows that ran, sorted.
std::vector<double> times_of(const search::Pool& pool, search::PoolOrigin origin) {
  std::vector<double> times;
  for (const search::PoolRow& row : pool.rows) {
    if (row.ok() && row.origin == origin) times.push_back(row.median_ns);
  }
  std::sort(times.begin(), times.end());
  return times;
}

void print_quantiles(const search::Pool& pool, search::PoolOrigin origin) {
  const std::vector<double> times = times_of(pool, origin);
  if (times.empty()) return;
  std::string line = fmt::format("{:<9}", to_string(origin));
  for (const int percent : {0, 1, 5, 25, 50, 75, 100}) {
    const std::size_t at = (times.size() - 1) * static_cast<std::size_t>(percent) / 100;
    line += fmt::format("  {}%: {}", percent, time_text(times[at]));
  }
  fmt::print("{}\n", line);
}

void print_sketches(const search::Pool& pool) {
  fmt::print("{:<4}{:<16}{:>6}{:>6}{:>12}{:>9}{:>10}{:>10}\n", "", "sketch", "rows", "ran", "best",
             "drawn", "rejected", "repeated");
  for (std::size_t i = 0; i < pool.sketches.size(); ++i) {
    int64_t num_rows = 0, num_ok = 0;
    double best = 0;
    for (const search::PoolRow& row : pool.rows) {
      if (row.sketch != static_cast<int>(i)) continue;
      ++num_rows;
      if (!row.ok()) continue;
      ++num_ok;
      if (best == 0 || row.median_ns < best) best = row.median_ns;
    }
    const search::SketchDraws& draws = pool.draws[i];
    fmt::print("{:<4}{:<16}{:>6}{:>6}{:>12}{:>9}{:>10}{:>10}\n", i, pool.sketches[i].name, num_rows,
               num_ok, time_text(best), draws.drawn, draws.rejected, draws.repeated);
  }
}

void print_stats(const std::string& path, const search::Pool& pool) {
  int64_t searched = 0, finals = 0, verified = 0, disturbed = 0, cut = 0;
  double build = 0, measure = 0;
  for (const search::PoolRow& row : pool.rows) {
    searched += row.origin == search::PoolOrigin::kSearched ? 1 : 0;
    finals += row.is_final ? 1 : 0;
    verified += row.verified ? 1 : 0;
    disturbed += row.disturbed ? 1 : 0;
    cut += row.ok() && row.num_samples < 3 ? 1 : 0;
    build += row.build_s;
    measure += row.measure_s;
  }
  std::error_code code;
  fmt::print("{}: {} {} on {}, {} bytes\n", path, pool.op, pool.bindings, platform_name(pool),
             std::filesystem::file_size(path, code));
  fmt::print("timer     {}\nmade      {} by prunerc {}, seed {}\n", pool.timer, pool.created,
             pool.version, pool.seed);
  fmt::print("rows      {} ({} found by search), best {}\n", pool.rows.size(), searched,
             time_text(best_ns(pool)));
  fmt::print("outcomes  {}\n", counts_text(counts_of(pool)));
  fmt::print("times     {} measured again in turns, {} of them verified; {} cut, {} disturbed\n",
             finals, verified, cut, disturbed);
  fmt::print("seconds   build {:.1f}, measure {:.1f}\n", build, measure);
  print_quantiles(pool, search::PoolOrigin::kUniform);
  print_quantiles(pool, search::PoolOrigin::kSearched);
  print_sketches(pool);
  for (int i = 0; i < search::kNumStatuses; ++i) {
    const std::string& example = pool.examples[static_cast<std::size_t>(i)];
    if (example.empty()) continue;
    fmt::print("{}: {}\n", describe(static_cast<search::MeasureStatus>(i)), example);
  }
}

int stats(const DatasetVerb& verb) { return for_each_pool(verb, print_stats); }

std::string header_line(const search::Pool& pool) {
  Json sketches = Json::array();
  for (const search::Sketch& sketch : pool.sketches) {
    sketches.push_back({{"name", sketch.name}, {"trace", schedule::print(sketch.trace)}});
  }
  const Json line = {{"schema", "prunerc.pool/1"}, {"op", pool.op},
                     {"op_text", pool.op_text},    {"bindings", pool.bindings},
                     {"program", pool.program},    {"platform", pool.platform},
                     {"timer", pool.timer},        {"version", pool.version},
                     {"created", pool.created},    {"seed", pool.seed},
                     {"rows", pool.rows.size()},   {"sketches", std::move(sketches)}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string row_line(const search::Pool& pool, const search::PoolRow& row) {
  const Json line = {{"sketch", pool.sketches[static_cast<std::size_t>(row.sketch)].name},
                     {"decisions", row.decisions},
                     {"origin", std::string(to_string(row.origin))},
                     {"status", std::string(to_string(row.status))},
                     {"median_ns", row.median_ns},
                     {"spread", row.spread},
                     {"samples", row.num_samples},
                     {"disturbed", row.disturbed},
                     {"final", row.is_final},
                     {"verified", row.verified},
                     {"seconds", {{"build", row.build_s}, {"measure", row.measure_s}}}};
  return line.dump();
}

int export_to(const DatasetVerb& verb) {
  std::string lines;
  int64_t num_rows = 0;
  const int code = for_each_pool(verb, [&](const std::string&, const search::Pool& pool) {
    lines += header_line(pool) + "\n";
    for (const search::PoolRow& row : pool.rows) lines += row_line(pool, row) + "\n";
    num_rows += static_cast<int64_t>(pool.rows.size());
  });
  if (code != kSuccess) return code;
  if (verb.file == "-") {
    fmt::print("{}", lines);
  } else {
    std::ofstream file(verb.file, std::ios::binary | std::ios::trunc);
    file << lines;
    file.close();
    if (!file) {
      return fail(error(Diag::kIoError, "write", verb.file, "cannot be written"), kDeviceProblem);
    }
  }
  fmt::print(stderr, "exported {} rows\n", num_rows);
  return kSuccess;
}

// --- split, prune

std::string rows_text(const search::Split& split) {
  return fmt::format("{} rows train, {} test", split.train.size(), split.test.size());
}

// Of the selection's rows, those that train.
int split(const DatasetVerb& verb) {
  const std::optional<search::SplitKind> kind = search::split_from_string(verb.split_by);
  const Result<search::Selection> from = search::read_selection(verb.pools);
  if (!from.ok()) return fail(from.error(), exit_code(from.error()));
  const search::Split made =
      search::split_rows(from->corpus, from->split.train, *kind, verb.share, verb.held, verb.seed);
  const Result<void> parted = search::check_split(from->corpus, *kind, verb.held, made);
  if (!parted.ok()) return fail(parted.error(), exit_code(parted.error()));
  const Result<void> written = search::write_rows(from->corpus, made, verb.file);
  if (!written.ok()) return fail(written.error(), kDeviceProblem);
  fmt::print("{}: {}\n", verb.file, rows_text(made));
  return kSuccess;
}

int prune(const DatasetVerb& verb) {
  const std::optional<search::PruneKind> kind = search::prune_from_string(verb.prune_by);
  const Result<search::Selection> from = search::read_selection(verb.pools);
  if (!from.ok()) return fail(from.error(), exit_code(from.error()));
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

void add_record(CLI::App& verb, const std::shared_ptr<DatasetVerb>& args, Action& action) {
  CLI::App* sub = verb.add_subcommand(
      "record", "measure candidates of an operator from all over its space into a pool");
  args->op.add_several_to(*sub);
  args->machine.add_to(*sub);
  sub->add_option("--out", args->out, "pool to write; a folder if there are several operators")
      ->required();
  sub->add_option("--candidates", args->candidates, "rows of the pool")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  sub->add_flag("--resume", args->resume, "go on with a pool that is there");
  sub->add_option("--time", args->time, "stop after this long: 90s, 30m, 1h");
  sub->add_option("--share-searched", args->share_searched,
                  "part that an evolutionary search finds; the rest is uniform")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  sub->add_option("--seed", args->seed, "of every random choice")->capture_default_str();
  sub->callback([args, &action] { action = [args] { return record(*args); }; });
}

}  // namespace

void add_dataset(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "dataset", "record pools of measured candidates, look into them, export them");
  verb->require_subcommand(1);
  auto args = std::make_shared<DatasetVerb>();
  add_record(*verb, args, action);
  using Work = int (*)(const DatasetVerb& verb);
  const auto add = [&](const char* name, const char* help, Work work) {
    CLI::App* sub = verb->add_subcommand(name, help);
    sub->add_option("pool", args->pools, "files that `dataset record` wrote")->required();
    sub->callback([args, work, &action] { action = [args, work] { return work(*args); }; });
    return sub;
  };
  CLI::App* sub = add("remeasure", "time the best rows of pools anew, in turns", remeasure);
  args->machine.add_to(*sub);
  sub->add_option("--best", args->remeasure.best, "rows of the shortest times")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  sub->add_option("--within", args->remeasure.within,
                  "and those that take at most this part longer than the best")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  sub->add_option("--turns", args->remeasure.turns, "times that each is measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub = add("split", "part the rows for training and testing, into a rows file", split);
  sub->add_option("--by", args->split_by, "within-task, by-task, by-target")
      ->check(CLI::IsMember({"within-task", "by-task", "by-target"}))
      ->capture_default_str();
  sub->add_option("--share", args->share, "part that tests")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  sub->add_option("--hold", args->held, "operators or targets that test, instead of drawn ones");
  sub->add_option("--seed", args->seed, "of what is drawn")->capture_default_str();
  sub->add_option("-o,--output", args->file, "rows file to write")->required();
  sub = add("prune", "keep a part of the training rows, into a rows file", prune);
  sub->add_option("--by", args->prune_by, "random, quantile, class")
      ->check(CLI::IsMember({"random", "quantile", "class"}))
      ->capture_default_str();
  sub->add_option("--keep", args->keep, "part that is kept")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  sub->add_option("--seed", args->seed, "of what is drawn")->capture_default_str();
  sub->add_option("-o,--output", args->file, "rows file to write")->required();
  add("list", "one line per pool", list);
  add("stats", "outcomes, times and sketches of pools", stats);
  add("export", "pools as JSON lines: a header, then the rows", export_to)
      ->add_option("-o,--output", args->file, "file to write, - for stdout")
      ->capture_default_str();
}

}  // namespace prunerc::cli
