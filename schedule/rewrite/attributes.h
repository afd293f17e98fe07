// Attributes of loops and blocks: the keys that have a checked meaning, and editing.
#ifndef PRUNERC_SCHEDULE_REWRITE_ATTRIBUTES_H_
#define PRUNERC_SCHEDULE_REWRITE_ATTRIBUTES_H_

#include "ir/builder.h"
#include "ir/stmt.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::schedule {

/// On a loop: number of stages of its software pipeline. On the statements of its body: the stage,
/// and the place in the order of the pipelined iteration.
inline constexpr std::string_view kPipeline = "software_pipeline";
inline constexpr std::string_view kPipelineStage = "pipeline_stage";
inline constexpr std::string_view kPipelineOrder = "pipeline_order";
/// On a block: index of the written buffer of which two copies alternate.
inline constexpr std::string_view kDoubleBuffer = "double_buffer";
/// On a block: align_factor_W_A and align_offset_W_A say that rows of axis A of its W-th written
/// buffer start at multiples of factor, plus offset, in elements.
inline constexpr std::string_view kAlignFactor = "align_factor_";
inline constexpr std::string_view kAlignOffset = "align_offset_";
/// Code generation keeps factor and offset in one number.
inline constexpr int64_t kMaxAlignFactor = std::numeric_limits<int32_t>::max();

/// On a block: swizzle_W says how many bytes the rows of its W-th written buffer have, or parts of
/// them, that are cut into the widest panels (ir/tensor/bulk_copy.h, panel_of).
inline constexpr std::string_view kSwizzle = "swizzle_";

/// Who alone sets the key: a primitive, or code generation; null for keys that anyone may set.
const char* setter_of(std::string_view key);

/// Of a loop or block; empty for others.
std::span<const ir::Attr> attrs_of(ir::Stmt s);
ir::Stmt with_attrs(ir::IrBuilder& b, ir::Stmt loop_or_block, std::span<const ir::Attr> attrs);
/// Adds or replaces.
ir::Stmt with_attr(ir::IrBuilder& b, ir::Stmt loop_or_block, std::string_view key, int64_t value);
/// The program with an attribute of the loop or block at `site` added or replaced.
Applied with_attr_at(const ir::Program& program, const Site& site, std::string_view key,
                     int64_t value);
ir::Stmt without_attr(ir::IrBuilder& b, ir::Stmt loop_or_block, std::string_view key);

/// The statements of a sequence; the statement itself otherwise.
std::vector<ir::Stmt> children_of(ir::Stmt s);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_ATTRIBUTES_H_
