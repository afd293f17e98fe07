#include "search/model/online.h"

#include "search/model/ranker.h"

#include <algorithm>
#include <utility>

namespace prunerc::search {

using costmodel::model::Model;
using costmodel::model::Momentum;
using costmodel::model::Start;
using costmodel::model::TrainOptions;

namespace {

/// Records from which a model that started from nothing goes on instead of beginning anew.
constexpr int kEnoughToGoOn = 256;

// A checkpoint that is tuned anew each time is a momentum model that stands still.
bool has_momentum(OnlineKind kind) {
  return kind == OnlineKind::kMoa || kind == OnlineKind::kMoaPaper || kind == OnlineKind::kFineTune;
}

}  // namespace

OnlineOptions online_options(OnlineKind kind, const costmodel::model::NetworkOptions& network,
                             uint64_t seed) {
  OnlineOptions out;
  out.kind = kind;
  const bool published = kind == OnlineKind::kScratch || kind == OnlineKind::kMoaPaper;
  out.train = published ? recipe_of(network.kind).train : costmodel::model::warm_update();
  out.train.start = kind == OnlineKind::kScratch ? Start::kFresh : Start::kWarm;
  if (published) {
    out.train.refit = costmodel::model::Refit::kRefit;
    out.growth = 0;
  }
  if (kind == OnlineKind::kFineTune) {
    out.train = costmodel::model::published_fine_tuning();
    out.growth = 0;
  }
  out.train.seed = seed;
  return out;
}

OnlineModel::OnlineModel(Model start, const OnlineOptions& options)
    : options_(options),
      working_(std::move(start)),
      came_trained_(working_.has_normalisers),
      is_trained_(came_trained_) {
  if (has_momentum(options.kind)) momentum_ = working_;
}

bool OnlineModel::is_due() const {
  if (options_.kind == OnlineKind::kFrozen) return false;
  if (options_.kind == OnlineKind::kMoaPaper) return num_calls_ % kPublishedCadence == 0;
  return static_cast<double>(records_.size()) >=
         (1 + options_.growth) * static_cast<double>(num_learned_);
}

// A model that nothing was known to is no anchor.
double OnlineModel::momentum_keep() const {
  if (options_.kind == OnlineKind::kMoaPaper) return kPublishedKeep;
  if (options_.kind == OnlineKind::kFineTune) return 1;
  return came_trained_ ? options_.half_way / (options_.half_way + records_.size()) : 0;
}

Model OnlineModel::start_of_update(TrainOptions* train) const {
  const bool is_ours = options_.kind == OnlineKind::kWarm || options_.kind == OnlineKind::kMoa;
  if (is_ours && !came_trained_ && records_.size() < kEnoughToGoOn) {
    // Normalisers of a few records of one task would stay for ever.
    train->start = Start::kFresh;
    train->refit = costmodel::model::Refit::kRefit;
    train->epochs = std::max(train->epochs, recipe_of(working_.options.kind).train.epochs);
    return working_;
  }
  if (options_.kind != OnlineKind::kMoa) {
    return has_momentum(options_.kind) ? momentum_ : working_;
  }
  // Normalisers follow the records as slowly as the weights.
  Model next = momentum_;
  Model fitted = momentum_;
  fitted.normalisers = fit_normalisers(momentum_.normalisers.statements.kind, records_.inputs);
  blend(fitted, momentum_keep(), Momentum::kEverything, &next);
  return next;
}

void OnlineModel::update(ThreadPool& threads) {
  if (records_.size() == num_seen_) return;
  num_seen_ = records_.size();
  ++num_calls_;
  if (!is_due()) return;
  TrainOptions train = options_.train;
  Model next = start_of_update(&train);
  train.seed += static_cast<uint64_t>(num_updates_);
  if (!costmodel::model::train(records_, train, &threads, &next).ok()) return;
  if (has_momentum(options_.kind)) {
    const bool published = options_.kind != OnlineKind::kMoa;
    if (!published && !came_trained_) {
      momentum_ = next;
    } else {
      blend(next, momentum_keep(), published ? Momentum::kParameters : Momentum::kEverything,
            &momentum_);
    }
  }
  working_ = std::move(next);
  is_trained_ = true;
  num_learned_ = records_.size();
  ++num_updates_;
}

}  // namespace prunerc::search
