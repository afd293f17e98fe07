// Online learning: a model that grows with the measurements of a search, from nothing or from a
// checkpoint.
#ifndef PRUNERC_SEARCH_MODEL_ONLINE_H_
#define PRUNERC_SEARCH_MODEL_ONLINE_H_

#include "costmodel/model/dataset.h"
#include "costmodel/model/model.h"
#include "costmodel/model/trainer.h"
#include "ir/support/parallel.h"
#include "ir/support/result.h"

#include <cstdint>

namespace prunerc::search {

/// Published: the part of the momentum model that stays in an update, and how many rounds one takes.
inline constexpr double kPublishedKeep = 0.99;
inline constexpr int kPublishedCadence = 4;

enum class OnlineKind : uint8_t {
  kFrozen,    // the checkpoint as it is
  kScratch,   // as published without a checkpoint: anew on all records at every update
  kWarm,      // goes on from the last model, new records among old ones
  kFineTune,  // as published: from the checkpoint, on all records at every update
  kMoaPaper,  // as published: every 4th update from the momentum model, which follows by 1 %
  kMoa,       // ours: when the records have grown enough, from the momentum model, which follows
              // with its normalisers, faster where there are more records
};

struct OnlineOptions {
  OnlineKind kind = OnlineKind::kWarm;
  costmodel::model::TrainOptions train;  // of one update; its seed is the learner's
  /// The records must have grown by this part since the last update. Published kinds update always.
  double growth = 0.1;
  /// Records that are enough for the momentum model to go half of the way to the working one.
  double half_way = 256;
};

/// The options that go with a kind, for networks of the kind of `model`.
OnlineOptions online_options(OnlineKind kind, const costmodel::model::NetworkOptions& network,
                             uint64_t seed);

/// Deterministic in the order of the calls, whatever the number of threads.
class OnlineModel {
 public:
  /// `start` may be untrained, but for kFrozen.
  OnlineModel(costmodel::model::Model start, const OnlineOptions& options);

  /// Records since the beginning; an update looks at all of them.
  costmodel::model::Dataset& records() { return records_; }
  const costmodel::model::Dataset& records() const { return records_; }
  /// Learns, if there are new records and it is time to. Failures of training (no two programs of
  /// one task yet) leave the model as it is.
  void update(ThreadPool& threads);
  /// Whether the model says anything: it came trained or was updated.
  bool is_trained() const { return is_trained_; }
  /// Whether it never learns: records would be of no use.
  bool is_frozen() const { return options_.kind == OnlineKind::kFrozen; }
  /// Whether it was trained before the first record.
  bool came_trained() const { return came_trained_; }
  const costmodel::model::Model& model() const { return working_; }
  int num_updates() const { return num_updates_; }

 private:
  bool is_due() const;
  double momentum_keep() const;
  costmodel::model::Model start_of_update(costmodel::model::TrainOptions* train) const;

  OnlineOptions options_;
  costmodel::model::Model working_;   // what predicts
  costmodel::model::Model momentum_;  // of the two kinds that have one
  costmodel::model::Dataset records_;
  bool came_trained_;
  bool is_trained_;
  int num_calls_ = 0;
  int num_seen_ = 0;  // records at the last call
  int num_updates_ = 0;
  int num_learned_ = 0;  // records at the last update
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_ONLINE_H_
