// train: fits a model to a dataset in memory.
#ifndef PRUNERC_COSTMODEL_MODEL_TRAINER_H_
#define PRUNERC_COSTMODEL_MODEL_TRAINER_H_

#include "costmodel/model/dataset.h"
#include "costmodel/model/model.h"
#include "costmodel/nn/optimizer.h"
#include "costmodel/nn/rank_loss.h"
#include "ir/support/parallel.h"
#include "ir/support/result.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace prunerc::costmodel::model {

enum class LossKind : uint8_t {
  kPublished,  // one list for each batch, of all tasks together
  kSquares,    // the same batches; half the mean squared error of the labels
  kLists,      // lists of one task each, and the log-latency where the network has it
};
enum class Start : uint8_t { kFresh, kWarm };
/// kKeep fits normalisers that a model does not have yet.
enum class Refit : uint8_t { kKeep, kRefit };

struct TrainOptions {
  LossKind loss = LossKind::kLists;
  int epochs = 50;
  int batch = 512;  // programs
  double lr = 1e-3;
  nn::OptimizerOptions optimizer = {.weight_decay = 1e-6};
  nn::LearningSchedule schedule = {
      .kind = nn::ScheduleKind::kCosine, .factor = 0.05, .warmup = 0.05};
  double clip = 0.5;  // of the gradient's norm; 0: none
  /// Training ends when a running mean of its loss has not fallen in so many epochs; 0: never.
  int patience = 0;
  int list = 64;  // programs of a list, about; of kLists
  nn::RankLossOptions rank;
  double latency_weight = 0.3;  // of the log-latency's loss
  double latency_knee = 1;
  double validation = 0;  // part of each task's programs that is held out
  Start start = Start::kFresh;
  Refit refit = Refit::kKeep;
  uint64_t seed = 0;
};

/// The recipe of the release for training from scratch, of any number of epochs; also of its
/// pre-training.
TrainOptions published_training(int epochs = 50);
/// Its recipe of the other loss.
TrainOptions published_squares(int epochs = 100);
/// Its recipe for fine-tuning a trained model.
TrainOptions published_fine_tuning(int epochs = 50);
/// Ours for an update of a trained model with new records among old ones.
TrainOptions warm_update(int epochs = 3);

struct EpochStats {
  double loss = 0;      // mean over batches
  double pairwise = 0;  // of held-out programs; NaN if there are none
};

struct TrainReport {
  std::vector<std::vector<EpochStats>> members;  // learning curves
  int train_programs = 0;
  int held_out = 0;
};

/// Called after each epoch.
using Progress = std::function<void(int member, int epoch, const EpochStats& stats)>;

/// Trains every member, member i with seed + i. Equal data, options and model give equal
/// parameters, whatever the number of threads. Errors: ModelData if the features are not those of
/// the model, or no task has two programs.
Result<TrainReport> train(const Dataset& data, const TrainOptions& options, ThreadPool* pool,
                          Model* model, const Progress& progress = nullptr);

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_TRAINER_H_
