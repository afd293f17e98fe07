// The same trace with narrower instructions: how twins of warpgroups' products become small.
#ifndef PRUNERC_SCHEDULE_TWIN_NARROW_H_
#define PRUNERC_SCHEDULE_TWIN_NARROW_H_

#include "ir/program.h"
#include "schedule/trace/trace.h"

#include <cstdint>
#include <optional>

namespace prunerc::schedule {

/// `trace`, step for step, with its products of a warpgroup (wgmma_m64nNkK_TYPE, N at least 64)
/// `columns` wide: N becomes that in tensorize, in splits of what has columns (a loop of `base`,
/// the innermost loop of a block moved behind its producer) and in pad_einsum; swizzles become as
/// narrow as such rows, chosen values above 2 become 2. Nullopt: there is no such product, or no
/// such instruction. The result is a trace like any other: a replay checks each step.
std::optional<Trace> narrowed(const ir::Program& base, const Trace& trace, int64_t columns);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_TWIN_NARROW_H_
