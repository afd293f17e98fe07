// `dataset list`, `stats` and `export`: what a pool holds.
#include "ir/support/file.h"
#include "schedule/schedule.h"
#include "search/record/pool.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PoolsVerb {
  std::vector<std::string> pools;
  std::string file = "-";
};

// Calls f for each pool named; the exit code of the first that fails.
template <typename F>
int for_each_pool(const PoolsVerb& verb, F&& f) {
  for (const std::string& path : verb.pools) {
    const Result<search::Pool> pool = search::read_pool(path);
    if (!pool.ok()) return fail(pool.error());
    f(path, *pool);
  }
  return kSuccess;
}

int list(const PoolsVerb& verb) {
  fmt::print("{:<32} {:<18} {:<20} {:<18} {:>8} {:>8} {:>12}\n", "pool", "operator", "bindings",
             "target/threads", "rows", "ran", "best");
  return for_each_pool(verb, [](const std::string& path, const search::Pool& pool) {
    fmt::print("{:<32} {:<18} {:<20} {:<18} {:>8} {:>8} {:>12}\n", path, pool.op,
               pool.bindings.empty() ? "-" : pool.bindings, target_text(pool.platform),
               pool.rows.size(), counts_of(pool)[0], time_text(best_ns(pool)));
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
  fmt::print("{}: {} {} on {}, {} bytes\n", path, pool.op, pool.bindings,
             target_text(pool.platform), std::filesystem::file_size(path, code));
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
  for (int i = 0; i < kNumMeasureStatuses; ++i) {
    const std::string& example = pool.examples[static_cast<std::size_t>(i)];
    if (example.empty()) continue;
    fmt::print("{}: {}\n", describe(static_cast<MeasureStatus>(i)), example);
  }
}

int stats(const PoolsVerb& verb) { return for_each_pool(verb, print_stats); }

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
  return json_line(line);
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
  return json_line(line);
}

int export_to(const PoolsVerb& verb) {
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
    const Result<void> written = replace_file(verb.file, lines);
    if (!written.ok()) return fail(written.error());
  }
  fmt::print(stderr, "exported {} rows\n", num_rows);
  return kSuccess;
}

using Work = int (*)(const PoolsVerb& verb);

std::shared_ptr<PoolsVerb> add(CLI::App& verb, Action& action, Work work) {
  auto args = std::make_shared<PoolsVerb>();
  verb.add_option("pool", args->pools, "files that `dataset record` wrote")
      ->type_name("FILE.pool")
      ->required();
  in_group(verb, "Pools");
  verb.callback([args, work, &action] { action = [args, work] { return work(*args); }; });
  return args;
}

}  // namespace

void add_dataset_list(CLI::App& verb, Action& action) { add(verb, action, list); }
void add_dataset_stats(CLI::App& verb, Action& action) { add(verb, action, stats); }

void add_dataset_export(CLI::App& verb, Action& action) {
  auto args = add(verb, action, export_to);
  verb.add_option("-o,--output", args->file, "file to write, - for stdout")
      ->type_name("FILE.jsonl")
      ->capture_default_str();
  in_group(verb, "Output");
}

}  // namespace prunerc::cli
