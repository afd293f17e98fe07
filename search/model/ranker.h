// Rankers: the models that are compared offline, trained on one dataset and asked for the order of
// another. What orders candidates in a search is a Scorer (scorer.h).
#ifndef PRUNERC_SEARCH_MODEL_RANKER_H_
#define PRUNERC_SEARCH_MODEL_RANKER_H_

#include "costmodel/model/dataset.h"
#include "costmodel/model/model.h"
#include "costmodel/model/trainer.h"
#include "ir/support/parallel.h"
#include "ir/support/result.h"
#include "ir/target.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace prunerc::search {

enum class RankerKind : uint8_t {
#define PRUNERC_RANKER(Name, text, words) k##Name,
#include "search/model/ranker.def"
#undef PRUNERC_RANKER
};
inline constexpr int kNumRankers = 0
#define PRUNERC_RANKER(Name, text, words) +1
#include "search/model/ranker.def"
#undef PRUNERC_RANKER
    ;

std::string_view to_string(RankerKind kind);
std::string_view describe(RankerKind kind);
/// The network of the kind; none for what is no network.
std::optional<costmodel::model::NetworkKind> network_of(RankerKind kind);

/// How a network of the kind is trained from scratch: as published, ours by lists of one task.
struct Recipe {
  costmodel::model::NetworkOptions network;
  costmodel::model::TrainOptions train;
  int members = 1;
};
Recipe recipe_of(costmodel::model::NetworkKind kind, ir::TargetKind target = ir::TargetKind::kCpu);

/// Scores by program of a dataset, whose inputs are those of `inputs_of`. Only their order within
/// one task is meaningful; higher is faster. Threads: may be called from several at once, with a
/// pool each.
using Ranker = std::function<std::vector<float>(const costmodel::model::Dataset&, ThreadPool&)>;

/// Which inputs the kind reads.
costmodel::model::NetworkOptions inputs_of(RankerKind kind);

struct RankerOptions {
  uint64_t seed = 0;
  int epochs = 0;   // 0: the recipe's
  int members = 0;  // 0: the recipe's
};

/// Trains from scratch. Errors: ModelData, ModelLibrary.
Result<Ranker> train_ranker(RankerKind kind, const costmodel::model::Dataset& data,
                            const RankerOptions& options, ThreadPool& threads,
                            const costmodel::model::Progress& progress = nullptr);
/// Over a trained network.
Ranker make_ranker(costmodel::model::Model model);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_RANKER_H_
