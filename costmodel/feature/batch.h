// The features of a sketch, derived once, then evaluated for blocks of candidates: no program is
// built for any of them.
#ifndef PRUNERC_COSTMODEL_FEATURE_BATCH_H_
#define PRUNERC_COSTMODEL_FEATURE_BATCH_H_

#include "costmodel/feature/features.h"
#include "costmodel/feature/layout.h"
#include "costmodel/symbol/code.h"
#include "ir/program.h"
#include "ir/target.h"

#include <cstddef>
#include <span>
#include <vector>

namespace prunerc::costmodel {

/// Holds no handles of the sketch. Threads: may be read by several at once, with a scratch each.
///
///     const FeatureProgram program = derive_features(sketch, target);
///     evaluate(program, columns, n, &scratch, &batch);
///     batch.statement(i, s), batch.step(i, t)
struct FeatureProgram {
  SymbolCode code;  // outputs: the layout's open slots
  FeatureLayout layout;
  TaskTag tag = {};
  HardwareFeatures hardware = {};
  double derive_ms = 0;
  std::size_t num_statements() const { return layout.stores.size(); }
  std::size_t num_steps() const;  // of each candidate
};

/// The same for all candidates: how many vectors each has, the tag, the target. The rest by
/// candidate, then by statement or step.
struct FeatureBatch {
  std::size_t size = 0;
  std::size_t num_statements = 0, num_steps = 0;
  std::vector<StatementFeatures> statements;
  std::vector<FlowFeatures> flow;
  std::vector<PaperFlow> paper_flow;  // empty: zero for all
  TaskTag tag = {};
  HardwareFeatures hardware = {};

  const StatementFeatures& statement(std::size_t candidate, std::size_t i) const {
    return statements[candidate * num_statements + i];
  }
  const FlowFeatures& step(std::size_t candidate, std::size_t i) const {
    return flow[candidate * num_steps + i];
  }
  /// A copy of what one candidate has.
  ModelFeatures of(std::size_t candidate) const;
};

/// What one thread needs while it evaluates; may be used for any number of programs in turn.
struct FeatureScratch {
  SymbolScratch symbols;
  std::vector<double> outputs;
  std::vector<float> rows;
};

/// Of a program with tile parameters or without. `base` is the unscheduled program, whose tag all
/// candidates get; none: the sketch's own. Cost: some ms for a sketch.
FeatureProgram derive_features(const ir::Program& sketch, const ir::Target& target,
                               const ir::Program* base = nullptr);

/// Features of n candidates from columns[p][i], where p is the ParamId; what was in the batch is
/// gone. Equal to `extract` of the instances but where numbers in the place of parameters let a
/// guard shorten subscripts (DESIGN.md, D21).
void evaluate(const FeatureProgram& program, std::span<const double* const> columns, std::size_t n,
              FeatureScratch* scratch, FeatureBatch* out);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_BATCH_H_
