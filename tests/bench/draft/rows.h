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
  std::string pools = "tests/data/pools";    // folder
  int bootstrap = 400;                       // resamplings for each interval
  int seeds = 5;                             // of replayed searches
  int64_t trials = 1000;                     // of replayed searches
  int64_t ablation_trials = 160;             // of those with something left out
  std::string variants;                      // of the ablation, comma-separated; empty: all
  int live_seeds = 3;                        // of live searches of one task
  uint64_t live_first_seed = 0;              // the others follow
  int64_t live_trials = 256;                 // of each live search of one task
  int64_t net_trials = 1500;                 // of a live search of a net
  std::string live_baseline = "ansor";       // strategy that live searches are compared with
  std::vector<std::string> live_strategies;  // of one task, beside the default
  std::string live_checkpoint;               // that the baseline starts from; empty: its own
  int64_t o1_trials = 64;  // of what the answer without measuring is compared with
  std::string net = "tools/std/nets/resnet50.prn";
};

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
/// Strategies against recorded times.
std::vector<Row> replay_rows(const DraftBenchOptions& options);
/// What parts of the default strategy are worth, against recorded times.
std::vector<Row> ablation_rows(const DraftBenchOptions& options);
/// The answer without measuring beside the tuned one.
std::vector<Row> o1_ratio_rows(const DraftBenchOptions& options);
/// Seconds until a search is as good as what is known of TVM's Ansor on this class of machine.
std::vector<Row> tvm_ansor_rows(const DraftBenchOptions& options);
/// Strategies by the wall clock: two tasks, and a net.
std::vector<Row> live_rows(const DraftBenchOptions& options);
std::vector<Row> net_rows(const DraftBenchOptions& options);
/// CPU time of the search itself, on the net's tasks with answers that take none.
std::vector<Row> many_cost_rows(const DraftBenchOptions& options);
/// The pools as tasks of one net: what first batches of several sizes are worth.
std::vector<Row> rhythm_rows(const DraftBenchOptions& options);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_DRAFT_ROWS_H_
