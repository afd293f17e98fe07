// The temporal data flow of a program: which buffers its statements read and write, in order, and
// between which levels of memory the data moves.
#ifndef PRUNERC_COSTMODEL_FEATURE_FLOW_H_
#define PRUNERC_COSTMODEL_FEATURE_FLOW_H_

#include "costmodel/feature/layout.h"
#include "costmodel/latency/nest.h"
#include "ir/target.h"

#include <array>
#include <vector>

namespace prunerc::costmodel {

/// Longer sequences keep the steps that move most bytes.
inline constexpr std::size_t kMaxFlowSteps = 24;

/// In the order of feature.def; the published features come first.
using FlowFeatures = std::array<float, kNumFlowFeatures>;

/// The published form: statements whose locations (global 0, shared 1, local 2) read "2 01 01 112",
/// and in the last two rows what the release leaves out, the write-back: local read, global write.
/// On a CPU, where nothing is copied, the same steps found from the loops (cpu_flow.h). Zero if the program
/// has no such statements.
using PaperFlow = std::array<std::array<float, kNumPaperFlowFeatures>, kNumPaperFlowSteps>;

/// Adds the steps of all stores to the layout: the buffers of a store in order of their appearance,
/// what it writes last; inits before whatever happens while their buffer lives, as lowering will
/// place them. The layout's stores are those of the table.
void add_flow(const StoreTable& stores, const ir::Target& target, LayoutBuilder* out);

/// Steps of each candidate.
std::size_t num_flow_steps(const FeatureLayout& layout);
/// What the layout's values say: num_flow_steps in order.
void write_flow(const FeatureLayout& layout, const float* values, FlowFeatures* out);
void write_paper_flow(const FeatureLayout& layout, const float* values, PaperFlow* out);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_FLOW_H_
