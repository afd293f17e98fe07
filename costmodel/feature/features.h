// All that a learned model sees of a scheduled program on a target.
#ifndef PRUNERC_COSTMODEL_FEATURE_FEATURES_H_
#define PRUNERC_COSTMODEL_FEATURE_FEATURES_H_

#include "costmodel/feature/flow.h"
#include "costmodel/feature/hardware.h"
#include "costmodel/feature/statement.h"
#include "costmodel/feature/tag.h"
#include "ir/program.h"
#include "ir/target.h"

#include <vector>

namespace prunerc::costmodel {

struct ModelFeatures {
  std::vector<StatementFeatures> statements;  // one for each store, in program order
  std::vector<FlowFeatures> flow;             // at most kMaxFlowSteps
  PaperFlow paper_flow = {};
  TaskTag tag = {};
  HardwareFeatures hardware = {};
  bool operator==(const ModelFeatures&) const = default;
};

/// Of a program without tile parameters; sketches go through batch.h. The tag is that of the
/// program as it is: who has the unscheduled one may set `task_tag` of that. Cost: about 0.2 ms for
/// a tiled convolution.
ModelFeatures extract(const ir::Program& program, const ir::Target& target);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_FEATURES_H_
