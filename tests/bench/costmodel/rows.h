// What `./dev bench costmodel` reports: each function measures some rows. A new row: a function
// here, a line in main.cc.
#ifndef PRUNERC_TESTS_BENCH_COSTMODEL_ROWS_H_
#define PRUNERC_TESTS_BENCH_COSTMODEL_ROWS_H_

#include "search/record/corpus.h"
#include "tests/bench/report.h"

#include <string>
#include <vector>

namespace prunerc::bench {

struct ModelOptions {
  std::string pools = "tests/data/pools";  // folder, with those inside it
  std::vector<std::string> models;         // empty: all
  int seeds = 3;
  int first_seed = 101;  // recipes were chosen with seeds 1 to 3: others judge them
  int epochs = 0;        // 0: each model's recipe
  double test_share = 0.25;
  std::string test_pools;  // "zen5/": pools of other paths only train; empty: all are judged
  std::vector<double> volumes = {0.1, 0.3, 1.0};  // parts of the training rows
  double ablation_part = 0.03;                    // of all rows, of the ablation
  int bootstrap = 2000;
  // Of replayed searches: which of the pools directly in `pools` are searched; no checkpoint knows
  // their operators. By default eight of several classes.
  std::vector<std::string> searched = {"gemm_256",    "gemm_bias_relu", "gemm_odd",
                                       "conv_3x3",    "conv_1x1",       "depthwise_3x3",
                                       "softmax_512", "reduce_columns"};
  std::vector<std::string> strategies;  // empty: all
  int64_t trials = 200;
  // Of operators that no setting was chosen by, measured once.
  std::string frozen_pools = "tests/data/frozen/models";
  int64_t frozen_rows =
      20'000;  // that each model learns from, drawn: what TLP takes some minutes for
};

/// The pools of `options.pools`, and those of `more` if it is named.
search::Corpus bench_corpus(const ModelOptions& options, const std::string& more = "");

/// Top-1, top-5 and pairwise accuracy on held-out tasks, at several volumes of data.
std::vector<Row> accuracy_rows(const ModelOptions& options);
/// Milliseconds of 512 candidates with their features, seconds of an update.
std::vector<Row> speed_rows(const ModelOptions& options);
/// What features and losses of the networks are worth.
std::vector<Row> model_ablation_rows(const ModelOptions& options);
/// How much of the training data can go without loss.
std::vector<Row> prune_rows(const ModelOptions& options);
/// The same on operators that were frozen before they were measured: released and equal models.
std::vector<Row> frozen_rows(const ModelOptions& options);
/// From one instruction set to another.
std::vector<Row> transfer_rows(const ModelOptions& options);
/// Searches with the models against recorded times, beside the baselines.
std::vector<Row> tuning_rows(const ModelOptions& options);
/// What ModelOptions::strategies may name.
std::vector<std::string> contestant_names();

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_COSTMODEL_ROWS_H_
