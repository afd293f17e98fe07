// Ranker: any of the models that are compared, behind one interface: trained on a dataset, then
// asked for an order.
#ifndef PRUNERC_SEARCH_MODEL_RANKER_H_
#define PRUNERC_SEARCH_MODEL_RANKER_H_

#include "costmodel/model/dataset.h"
#include "costmodel/model/model.h"
#include "costmodel/model/trainer.h"
#include "ir/support/parallel.h"
#include "ir/support/result.h"

#include <cstdint>
#include <memory>
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
std::optional<RankerKind> ranker_from_string(std::string_view text);
/// The network of the kind; none for what is no network.
std::optional<costmodel::model::NetworkKind> network_of(RankerKind kind);

/// How a network of the kind is trained from scratch: as published, ours by lists of one task.
struct Recipe {
  costmodel::model::NetworkOptions network;
  costmodel::model::TrainOptions train;
  int members = 1;
};
Recipe recipe_of(costmodel::model::NetworkKind kind);

/// Only the order of scores within one task is meaningful; higher is faster.
/// Threads: scores may be called from several threads at once, with a pool each.
class Ranker {
 public:
  virtual ~Ranker() = default;
  /// By program of the dataset, whose inputs are those of `inputs()`.
  virtual std::vector<float> scores(const costmodel::model::Dataset& data,
                                    ThreadPool& threads) const = 0;
};

/// Which inputs the kind reads.
costmodel::model::NetworkOptions inputs_of(RankerKind kind);

struct RankerOptions {
  uint64_t seed = 0;
  int epochs = 0;   // 0: the recipe's
  int members = 0;  // 0: the recipe's
};

/// Trains from scratch. Errors: ModelData, ModelLibrary.
Result<std::unique_ptr<Ranker>> train_ranker(RankerKind kind, const costmodel::model::Dataset& data,
                                             const RankerOptions& options, ThreadPool& threads,
                                             const costmodel::model::Progress& progress = nullptr);
/// Over a trained network.
std::unique_ptr<Ranker> make_ranker(costmodel::model::Model model);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_RANKER_H_
