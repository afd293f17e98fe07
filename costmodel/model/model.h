// Model: an ensemble of networks with its normalisers: what is trained, asked and saved.
#ifndef PRUNERC_COSTMODEL_MODEL_MODEL_H_
#define PRUNERC_COSTMODEL_MODEL_MODEL_H_

#include "costmodel/model/network.h"
#include "costmodel/model/normaliser.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace prunerc::costmodel::model {

/// Members differ in their seeds alone and share the normalisers. A value: copying copies the
/// networks.
struct Model {
  NetworkOptions options;
  Normalisers normalisers;
  bool has_normalisers = false;        // false until the first training
  std::string feature_set;             // version of the features that it takes; for who makes them
  std::vector<std::string> platforms;  // trained on
  std::vector<std::unique_ptr<Network<float>>> members;

  Model() = default;
  Model(const Model& other);
  Model& operator=(const Model& other);
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;
};

/// Untrained. Member i is drawn by seed + i.
Model make_model(const NetworkOptions& options, int members, uint64_t seed);

/// The same model, its batch normalisation taking its statistics from elsewhere when it predicts.
Model with_statistics(Model model, nn::Statistics statistics);

struct Prediction {
  float score = 0;   // mean over members; higher is faster
  float stddev = 0;  // over members, after each one's mean over the task's candidates is taken off
  float log_latency = 0;  // less that of the task's mean; 0 where the network has no such output
};

/// Features as extracted, not normalised. `task` says which candidates are compared with each
/// other; empty: all are. Threads: may be called from several threads at once, with a pool each or
/// none.
void predict(const Model& model, const Batch<float>& batch, std::span<const int32_t> task,
             ThreadPool* pool, std::span<Prediction> predictions);

/// What a momentum moves. The published adaptation leaves buffers and normalisers behind.
enum class Momentum : uint8_t { kParameters, kEverything };

/// slow = keep * slow + (1 - keep) * fast. Both are of one shape.
void blend(const Model& fast, double keep, Momentum what, Model* slow);

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_MODEL_H_
