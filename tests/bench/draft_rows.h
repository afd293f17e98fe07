// What `./dev bench draft` reports: each function measures some rows. A new row: a function here, a
// line in draft.cc.
#ifndef PRUNERC_TESTS_BENCH_DRAFT_ROWS_H_
#define PRUNERC_TESTS_BENCH_DRAFT_ROWS_H_

#include "search/task.h"
#include "tests/bench/report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::bench {

struct DraftOptions {
  double seconds = 2;  // CPU seconds for each rate
  uint64_t seed = 1;
  std::string pools = "tests/data/pools";  // folder
  int bootstrap = 400;                     // resamplings for each interval
  int seeds = 5;                           // of replayed searches
  int64_t trials = 1000;                   // of replayed searches
};

/// The only operator of a .prn text on a target of the table.
search::Task make_bench_task(const std::string& text, const std::string& target);

/// Candidates drafted per CPU second of one thread, by sketch; the one-time derivation; the same
/// work by making every candidate's program.
std::vector<Row> rate_rows(const DraftOptions& options);
/// How good the drafts of several analyzers are on measured pools.
std::vector<Row> quality_rows(const DraftOptions& options);
/// Strategies against recorded times.
std::vector<Row> replay_rows(const DraftOptions& options);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_DRAFT_ROWS_H_
