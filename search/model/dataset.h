// make_dataset: rows of a corpus as inputs and times for a network.
#ifndef PRUNERC_SEARCH_MODEL_DATASET_H_
#define PRUNERC_SEARCH_MODEL_DATASET_H_

#include "costmodel/model/dataset.h"
#include "costmodel/model/options.h"
#include "ir/support/parallel.h"
#include "ir/support/result.h"
#include "search/record/corpus.h"

#include <span>

namespace prunerc::search {

/// Inputs and times for a network; rows that this build makes no legal program of are left out.
/// Task and platform numbers are the corpus's. Errors: those of the texts in a pool; PoolStale if
/// this build makes other programs of its rows. Cost: some ms a sketch, then about 10 us a row.
Result<costmodel::model::Dataset> make_dataset(const Corpus& corpus,
                                               std::span<const CorpusRow> rows,
                                               const costmodel::model::NetworkOptions& network,
                                               ThreadPool& threads);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_DATASET_H_
