// Normaliser: features to the range that a network learns from.
#ifndef PRUNERC_COSTMODEL_MODEL_NORMALISER_H_
#define PRUNERC_COSTMODEL_MODEL_NORMALISER_H_

#include "costmodel/model/batch.h"
#include "costmodel/nn/matrix.h"

#include <cstdint>
#include <vector>

namespace prunerc::costmodel::model {

enum class NormaliserKind : uint8_t {
  kNone,
  /// x / maximum of the column, as published; columns without a positive value stay as they are.
  kColumnMax,
  /// asinh((x - mean) / standard deviation): linear near what was seen, logarithmic beyond, so that
  /// a platform or a size that training did not have cannot drown the rest.
  kStandard,
};

/// One factor and offset for each column. Fitted once and saved with the model.
struct Normaliser {
  NormaliserKind kind = NormaliserKind::kNone;
  std::vector<float> mean;   // by column
  std::vector<float> scale;  // by column; what x - mean is multiplied with

  void apply(nn::View<float> rows) const;
  bool operator==(const Normaliser&) const = default;
};

/// Of the columns of `rows`; for no rows one that changes nothing.
Normaliser fit_normaliser(NormaliserKind kind, nn::View<const float> rows);

/// For each input of a network.
struct Normalisers {
  Normaliser statements, flow, context, tokens;

  void apply(Batch<float>* batch) const;
  bool operator==(const Normalisers&) const = default;
};

/// All of one kind but tokens, which are published without a normaliser: those stay as they are
/// unless the kind is kStandard.
Normalisers fit_normalisers(NormaliserKind kind, const Batch<float>& batch);

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_NORMALISER_H_
