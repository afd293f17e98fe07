// What `./dev bench draft` reports: each function measures some rows. A new row: a function here, a
// line in main.cc.
#ifndef PRUNERC_TESTS_BENCH_DRAFT_ROWS_H_
#define PRUNERC_TESTS_BENCH_DRAFT_ROWS_H_

#include "search/space/task.h"
#include "tests/bench/report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::bench {

struct DraftBenchOptions {
  double seconds = 2;  // CPU seconds for each rate
  uint64_t seed = 1;
  std::string pools = "tests/data/pools";  // folder
  int bootstrap = 400;                     // resamplings for each interval
  int seeds = 5;                           // of replayed searches
  int64_t ablation_trials = 160;           // of those with something left out
  std::string variants;                    // of the ablation, comma-separated; empty: all
  int net_seeds = 1;                       // of live searches of the net
  uint64_t net_first_seed = 0;             // the others follow
  int64_t net_trials = 2700;               // of a live search: ten rounds for each of 27 tasks
  std::string net_who;                     // beside ansor, comma-separated; empty: all
  std::string net_keep;     // folder of live searches that are done; empty: none is kept
  int64_t o1_trials = 640;  // of what the answer without measuring is compared with
  std::string o1_operators = "tests/data/frozen/search.prn";
  std::string net = "tools/std/nets/resnet50.prn";
};

/// Whether a comma-separated list has the name; an empty one has all.
inline bool is_listed(const std::string& list, const std::string& name) {
  return list.empty() || ("," + list + ",").find("," + name + ",") != std::string::npos;
}

/// CPU time of the calling thread.
double thread_seconds();

/// The only operator of a .prn text on a target of the table.
search::Task make_bench_task(const std::string& text, const std::string& target);

struct RateCase {
  std::string name;
  search::Task task;
};
/// A matrix product and a convolution, for a processor and a GPU.
std::vector<RateCase> rate_cases();

/// Candidates drafted per CPU second of one thread, by sketch; the one-time derivation; the same
/// work by making every candidate's program.
std::vector<Row> rate_rows(const DraftBenchOptions& options);
/// Features of 512 candidates by the batch, and of one by its program.
std::vector<Row> feature_rows(const DraftBenchOptions& options);
/// How good the drafts of several analyzers are on measured pools.
std::vector<Row> quality_rows(const DraftBenchOptions& options);
/// What parts of the default strategy are worth, against recorded times.
std::vector<Row> ablation_rows(const DraftBenchOptions& options);
/// The answer without measuring, and the best after few trials, beside the tuned one.
std::vector<Row> o1_ratio_rows(const DraftBenchOptions& options);
/// Searches of a net by the wall clock, ours beside `ansor`.
std::vector<Row> net_rows(const DraftBenchOptions& options);
/// CPU time of the search itself, on the net's tasks with answers that take none.
std::vector<Row> many_cost_rows(const DraftBenchOptions& options);
/// The pools as tasks of one net: what first batches of several sizes are worth.
std::vector<Row> rhythm_rows(const DraftBenchOptions& options);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_DRAFT_ROWS_H_
