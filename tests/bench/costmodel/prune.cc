#include "search/model/dataset.h"
#include "search/model/ranker.h"
#include "search/record/corpus.h"
#include "tests/bench/costmodel/rows.h"
#include "tests/bench/costmodel/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search
using costmodel::model::Dataset;
using costmodel::model::NetworkKind;

namespace {

/// Shares of the training rows that pruning keeps.
constexpr double kKept[] = {0.7, 0.55, 0.4, 0.25};

}  // namespace

std::vector<Row> prune_rows(const ModelOptions& options) {
  ThreadPool threads(0);
  const Corpus corpus = bench_corpus(options);
  const auto inputs = inputs_of(RankerKind::kPacm);
  std::map<std::string, Spread> pairwise, top1, removed;
  for (int i = 0; i < options.seeds; ++i) {
    const int seed = options.first_seed + i;
    const auto s = static_cast<uint64_t>(seed);
    const Split split = split_by_operator(corpus, seed, options);
    const Dataset test = make_dataset(corpus, split.test, inputs, threads).value();
    const auto run = [&](const std::string& name, const std::vector<CorpusRow>& rows) {
      const Dataset train = make_dataset(corpus, rows, inputs, threads).value();
      const TaskQuality q =
          judge(train_network(train, NetworkKind::kPacm, s, options, threads), test, threads);
      pairwise[name].values.push_back(q.pairwise);
      top1[name].values.push_back(q.top1);
      removed[name].values.push_back(1 - static_cast<double>(rows.size()) /
                                             static_cast<double>(split.train.size()));
      std::fprintf(stderr, "%s seed %d: pairwise %.4f, top1 %.3f\n", name.c_str(), seed, q.pairwise,
                   q.top1);
    };
    run("all", split.train);
    for (const double keep : kKept) {
      for (const PruneKind prune : {PruneKind::kRandom, PruneKind::kQuantile, PruneKind::kClass}) {
        run(fmt::format("{}@{:.0f}%", to_string(prune), 100 * keep),
            search::prune_rows(corpus, split.train, prune, keep, s));
      }
    }
  }
  std::vector<Row> out;
  double most = 0;
  for (const auto& [name, values] : pairwise) {
    out.push_back({"pairwise_pruned/" + name, values.mean(), "", std::nullopt, values.range()});
    out.push_back({"top1_pruned/" + name, top1[name].mean(), "", std::nullopt, top1[name].range()});
    if (values.mean() >= pairwise["all"].mean()) most = std::max(most, removed[name].mean());
  }
  out.push_back({"pruned_fraction", most, "", 0.45,
                 "removed at no loss of mean pairwise accuracy, by the best of the kinds"});
  return out;
}

}  // namespace prunerc::bench
