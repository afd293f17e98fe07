#include "costmodel/model/model.h"

#include "ir/support/check.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace prunerc::costmodel::model {
namespace {

void blend_into(std::span<const float> fast, double keep, std::span<float> slow) {
  PRUNERC_CHECK(fast.size() == slow.size(), "models of one shape");
  for (std::size_t i = 0; i < slow.size(); ++i) {
    slow[i] = static_cast<float>(keep * static_cast<double>(slow[i]) +
                                 (1 - keep) * static_cast<double>(fast[i]));
  }
}

void blend_normaliser(const Normaliser& fast, double keep, Normaliser* slow) {
  if (slow->kind != fast.kind) {
    *slow = fast;
    return;
  }
  blend_into(fast.mean, keep, slow->mean);
  blend_into(fast.scale, keep, slow->scale);
}

// Takes each task's mean off the scores.
void centre(std::span<const int32_t> task, std::vector<double>* scores) {
  std::map<int32_t, std::pair<double, int>> sums;
  const auto key = [&](std::size_t i) { return task.empty() ? 0 : task[i]; };
  for (std::size_t i = 0; i < scores->size(); ++i) {
    auto& [sum, count] = sums[key(i)];
    sum += (*scores)[i];
    ++count;
  }
  for (std::size_t i = 0; i < scores->size(); ++i) {
    const auto& [sum, count] = sums[key(i)];
    (*scores)[i] -= sum / count;
  }
}

}  // namespace

Model::Model(const Model& other)
    : options(other.options),
      normalisers(other.normalisers),
      has_normalisers(other.has_normalisers),
      feature_set(other.feature_set),
      platforms(other.platforms) {
  for (const auto& member : other.members) members.push_back(member->clone());
}

Model& Model::operator=(const Model& other) {
  Model copy(other);
  *this = std::move(copy);
  return *this;
}

Model make_model(const NetworkOptions& options, int members, uint64_t seed) {
  Model model;
  model.options = options;
  for (int i = 0; i < members; ++i) {
    model.members.push_back(make_network<float>(options, seed + static_cast<uint64_t>(i)));
  }
  return model;
}

Model with_statistics(Model model, nn::Statistics statistics) {
  if (model.options.statistics == statistics) return model;
  model.options.statistics = statistics;
  for (std::unique_ptr<Network<float>>& member : model.members) {
    std::unique_ptr<Network<float>> made = make_network<float>(model.options, 0);
    made->parameters = member->parameters;
    made->buffers = member->buffers;
    member = std::move(made);
  }
  return model;
}

void predict(const Model& model, const Batch<float>& batch, std::span<const int32_t> task,
             ThreadPool* pool, std::span<Prediction> predictions) {
  PRUNERC_CHECK(static_cast<int>(predictions.size()) == batch.programs, "one for each program");
  PRUNERC_CHECK(fits(model.options, batch), "features of the widths that the model was made for");
  Batch<float> inputs = batch;
  model.normalisers.apply(&inputs);
  std::fill(predictions.begin(), predictions.end(), Prediction{});
  const std::size_t count = predictions.size();
  const auto share = 1 / static_cast<double>(model.members.size());
  std::vector<double> sum(count, 0), spread(count, 0), spread_square(count, 0), centred(count);
  nn::Matrix<float> out;
  for (const auto& member : model.members) {
    const std::unique_ptr<Tape> tape = member->make_tape();
    member->forward(inputs, Pass::kInfer, pool, tape.get(), &out);
    for (std::size_t i = 0; i < count; ++i) {
      const float* const row = out.row(static_cast<int>(i));
      centred[i] = static_cast<double>(row[0]);
      sum[i] += share * centred[i];
      if (out.cols() > 1) predictions[i].log_latency += static_cast<float>(share) * row[1];
    }
    if (model.members.size() < 2) continue;
    centre(task, &centred);
    for (std::size_t i = 0; i < count; ++i) {
      spread[i] += share * centred[i];
      spread_square[i] += share * centred[i] * centred[i];
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    predictions[i].score = static_cast<float>(sum[i]);
    const double variance = spread_square[i] - spread[i] * spread[i];
    predictions[i].stddev = static_cast<float>(std::sqrt(std::max(variance, 0.0)));
  }
}

void blend(const Model& fast, double keep, Momentum what, Model* slow) {
  PRUNERC_CHECK(fast.members.size() == slow->members.size(), "models of one shape");
  for (std::size_t i = 0; i < fast.members.size(); ++i) {
    const Network<float>& from = *fast.members[i];
    Network<float>& to = *slow->members[i];
    blend_into(from.parameters.values, keep, to.parameters.values);
    if (what == Momentum::kEverything) blend_into(from.buffers.values, keep, to.buffers.values);
  }
  if (what == Momentum::kParameters) return;
  blend_normaliser(fast.normalisers.statements, keep, &slow->normalisers.statements);
  blend_normaliser(fast.normalisers.flow, keep, &slow->normalisers.flow);
  blend_normaliser(fast.normalisers.context, keep, &slow->normalisers.context);
  blend_normaliser(fast.normalisers.tokens, keep, &slow->normalisers.tokens);
  slow->has_normalisers = slow->has_normalisers || fast.has_normalisers;
}

}  // namespace prunerc::costmodel::model
