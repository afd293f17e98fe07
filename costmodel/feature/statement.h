// The 164 features of a statement that Ansor describes it by: operations, loop kinds, five buffers,
// arithmetic intensity, allocation. One vector for each store of a scheduled program.
#ifndef PRUNERC_COSTMODEL_FEATURE_STATEMENT_H_
#define PRUNERC_COSTMODEL_FEATURE_STATEMENT_H_

#include "costmodel/feature/names.h"
#include "ir/program.h"
#include "ir/target.h"

#include <array>
#include <vector>

namespace prunerc::costmodel {

inline constexpr int kNumStatementFeatures = 164;
inline constexpr int kNumAccessFeatures = 18;
inline constexpr int kNumFeatureBuffers = 5;

/// In the order of feature.def; FeatureGroup::kStatement has the names.
using StatementFeatures = std::array<float, kNumStatementFeatures>;

/// One vector for each store, in program order, inits included. Extracted before lowering: buffers
/// count with their declared extents, and loops with the kinds that the schedule gave them; loops
/// of one iteration count as absent. The program has no tile parameters. Cost: about 0.1 ms for a
/// tiled convolution.
std::vector<StatementFeatures> statement_features(const ir::Program& program,
                                                  const ir::Target& target);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_STATEMENT_H_
