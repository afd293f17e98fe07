#include "search/model/dataset.h"

#include "search/model/inputs.h"
#include "search/record/restore.h"

#include <vector>

namespace prunerc::search {
namespace {

// Does this build make the program that was measured? Asked of one row of each sketch.
Result<void> check_build(const Pool& pool, const Task& task, const SearchSpace& space,
                         std::span<const Genome> genomes, std::span<const PoolRow* const> rows) {
  std::vector<bool> asked(space.sketches.size());
  for (std::size_t i = 0; i < genomes.size(); ++i) {
    const auto sketch = static_cast<std::size_t>(genomes[i].sketch);
    if (sketch >= asked.size() || asked[sketch] || !rows[i]->ok()) continue;
    asked[sketch] = true;
    const Result<Candidate> made =
        instantiate(task, space, genomes[i].sketch, genomes[i].decisions);
    if (!made || low_bits(made->fingerprint) != rows[i]->fingerprint) {
      return error(Diag::kPoolStale, pool.op);
    }
  }
  return {};
}

}  // namespace

Result<costmodel::model::Dataset> make_dataset(const Corpus& corpus,
                                               std::span<const CorpusRow> rows,
                                               const costmodel::model::NetworkOptions& network,
                                               ThreadPool& threads) {
  costmodel::model::Dataset out;
  for (const auto& [p, which] : rows_by_pool(rows)) {
    const auto at = static_cast<std::size_t>(p);
    const Pool& pool = corpus.pools[at];
    PRUNERC_TRY(const Task task, pool.task());
    const SearchSpace space = pool.space();
    const InputSource source(task, space);
    std::vector<Genome> genomes;
    std::vector<const PoolRow*> measured;
    for (const std::size_t i : which) {
      const PoolRow& row = corpus.row(rows[i]);
      genomes.push_back({row.sketch, row.decisions});
      measured.push_back(&row);
    }
    PRUNERC_TRY_VOID(check_build(pool, task, space, genomes, measured));
    costmodel::model::Batch<float> inputs;
    const std::vector<bool> legal = source.append(network, genomes, threads, &inputs);
    for (std::size_t i = 0; i < which.size(); ++i) {
      if (!legal[i]) continue;
      const costmodel::model::BatchView<float> one = slice(inputs, {static_cast<int>(i), 1});
      const PoolRow& row = corpus.row(rows[which[i]]);
      out.add({one.statements, one.flow, one.context, one.tokens},
              {row.ok() ? row.median_ns : 0, corpus.task[at], corpus.platform[at]});
    }
  }
  return out;
}

}  // namespace prunerc::search
