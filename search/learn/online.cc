#include "search/learn/online.h"

#include "search/learn/ranker.h"

#include <utility>

namespace prunerc::search {

using costmodel::model::Model;
using costmodel::model::Momentum;
using costmodel::model::Start;
using costmodel::model::TrainOptions;

namespace {

/// Published: the momentum and how often (pruner.md 5).
constexpr double kPublishedKeep = 0.99;
constexpr int kPublishedCadence = 4;

bool has_momentum(OnlineKind kind) {
  return kind == OnlineKind::kMoa || kind == OnlineKind::kMoaPaper;
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
  out.train.seed = seed;
  return out;
}

OnlineModel::OnlineModel(Model start, const OnlineOptions& options)
    : options_(options), working_(std::move(start)), is_trained_(working_.has_normalisers) {
  if (has_momentum(options.kind)) momentum_ = working_;
}

bool OnlineModel::is_due() const {
  if (options_.kind == OnlineKind::kFrozen || records_.size() == num_learned_) return false;
  if (options_.kind == OnlineKind::kMoaPaper) return num_calls_ % kPublishedCadence == 0;
  return static_cast<double>(records_.size()) >=
         (1 + options_.growth) * static_cast<double>(num_learned_);
}

void OnlineModel::update(ThreadPool& threads) {
  ++num_calls_;
  if (!is_due()) return;
  Model next = has_momentum(options_.kind) ? momentum_ : working_;
  TrainOptions train = options_.train;
  // A model that has learned nothing needs more than a few epochs.
  if (!is_trained_ && train.start == Start::kWarm) {
    train.epochs = std::max(train.epochs, recipe_of(next.options.kind).train.epochs / 2);
  }
  train.seed += static_cast<uint64_t>(num_updates_);
  if (!costmodel::model::train(records_, train, &threads, &next).ok()) return;
  if (options_.kind == OnlineKind::kMoaPaper) {
    blend(next, kPublishedKeep, Momentum::kParameters, &momentum_);
  } else if (options_.kind == OnlineKind::kMoa) {
    // A model that nothing was known to is no anchor.
    const double n = records_.size();
    const double keep = is_trained_ ? options_.half_way / (options_.half_way + n) : 0;
    blend(next, keep, Momentum::kEverything, &momentum_);
  }
  working_ = std::move(next);
  is_trained_ = true;
  num_learned_ = records_.size();
  ++num_updates_;
}

}  // namespace prunerc::search
