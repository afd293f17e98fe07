// The published data flow on a CPU: memory, the L2 of a core and registers stand for global, shared and
// local memory.
#ifndef PRUNERC_COSTMODEL_FEATURE_CPU_FLOW_H_
#define PRUNERC_COSTMODEL_FEATURE_CPU_FLOW_H_

#include "costmodel/feature/layout.h"
#include "ir/target.h"

namespace prunerc::costmodel {

/// Adds the published steps of the first store that sums up a product of two buffers: its init; each
/// operand from memory into a task's tile; both from there; the sum; and the way back. The copies of a GPU
/// are found from the loops (latency/levels.h), whatever copies the program has. None without such a
/// store. The layout's stores are those of the table.
void add_cpu_paper_flow(const StoreTable& stores, const ir::Target& target, LayoutBuilder* out);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_FEATURE_CPU_FLOW_H_
