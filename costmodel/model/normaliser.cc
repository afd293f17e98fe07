#include "costmodel/model/normaliser.h"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel::model {
namespace {

using Row = Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>>;
using ConstRow = Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>>;

/// A column whose values lie closer together counts as constant: its scale would blow up noise.
constexpr double kLeastDeviation = 1e-6;

Normaliser column_max(nn::View<const float> rows) {
  const auto columns = static_cast<std::size_t>(rows.cols);
  Normaliser result{NormaliserKind::kColumnMax, std::vector<float>(columns, 0),
                    std::vector<float>(columns, 0)};
  for (int r = 0; r < rows.rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      result.scale[c] = std::max(result.scale[c], rows.row(r)[c]);
    }
  }
  for (float& scale : result.scale) scale = scale > 0 ? 1 / scale : 1;
  return result;
}

Normaliser standard(nn::View<const float> rows) {
  const auto columns = static_cast<std::size_t>(rows.cols);
  std::vector<double> mean(columns, 0), square(columns, 0);
  for (int r = 0; r < rows.rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) mean[c] += static_cast<double>(rows.row(r)[c]);
  }
  for (double& m : mean) m /= rows.rows;
  for (int r = 0; r < rows.rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const double d = static_cast<double>(rows.row(r)[c]) - mean[c];
      square[c] += d * d;
    }
  }
  Normaliser result{NormaliserKind::kStandard, {}, {}};
  for (std::size_t c = 0; c < columns; ++c) {
    const double deviation = std::sqrt(square[c] / rows.rows);
    const bool is_constant = deviation < kLeastDeviation * std::max(1.0, std::abs(mean[c]));
    result.mean.push_back(static_cast<float>(mean[c]));
    result.scale.push_back(is_constant ? 1 : static_cast<float>(1 / deviation));
  }
  return result;
}

}  // namespace

void Normaliser::apply(nn::View<float> rows) const {
  if (kind == NormaliserKind::kNone || rows.cols != static_cast<int>(scale.size())) return;
  const ConstRow means(mean.data(), rows.cols), scales(scale.data(), rows.cols);
  for (int r = 0; r < rows.rows; ++r) {
    Row row(rows.row(r), rows.cols);
    row = (row - means) * scales;
    if (kind == NormaliserKind::kStandard) {
      row = (row < 0).select(-1.0F, Eigen::Array<float, 1, Eigen::Dynamic>::Ones(rows.cols)) *
            (row.abs() + (row.square() + 1).sqrt()).log();
    }
  }
}

Normaliser fit_normaliser(NormaliserKind kind, nn::View<const float> rows) {
  if (rows.rows == 0) return {};
  switch (kind) {
    case NormaliserKind::kNone: return {};
    case NormaliserKind::kColumnMax: return column_max(rows);
    case NormaliserKind::kStandard: return standard(rows);
  }
  return {};
}

void Normalisers::apply(Batch<float>* batch) const {
  statements.apply(batch->statements);
  flow.apply(batch->flow);
  context.apply(batch->context);
  tokens.apply(batch->tokens);
}

Normalisers fit_normalisers(NormaliserKind kind, const Batch<float>& batch) {
  const NormaliserKind of_tokens =
      kind == NormaliserKind::kColumnMax ? NormaliserKind::kNone : kind;
  return {fit_normaliser(kind, batch.statements), fit_normaliser(kind, batch.flow),
          fit_normaliser(kind, batch.context), fit_normaliser(of_tokens, batch.tokens)};
}

}  // namespace prunerc::costmodel::model
