// An answer without measuring: what the analyzer and the built-in model together like best.
#ifndef PRUNERC_SEARCH_TUNE_INSTANT_H_
#define PRUNERC_SEARCH_TUNE_INSTANT_H_

#include "ir/support/parallel.h"
#include "ir/support/result.h"
#include "search/space/candidate.h"
#include "search/space/space.h"
#include "search/space/task.h"

namespace prunerc::search {

/// The best of a draft by the sum of its places in the analyzer's and in the model's order; the
/// analyzer's alone where no model is built in. Cost: tens of ms. Errors: NoSketch.
Result<Candidate> instant_candidate(const Task& task, const SearchSpace& space, ThreadPool& pool);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_INSTANT_H_
