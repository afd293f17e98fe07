// The table of primitives: one uniform entry each, from which apply, replay, print and parse are
// driven.
#ifndef PRUNERC_SCHEDULE_PRIMITIVE_H_
#define PRUNERC_SCHEDULE_PRIMITIVE_H_

#include "ir/builder.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "schedule/trace/trace.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::schedule {

/// What a sampled value is in a sketch with tile parameters: factor * product of the parameters.
struct OpenValue {
  int64_t factor = 1;
  std::vector<ir::ParamId> params;
};

/// What the operands of such a sketch stand for; see parametric.h.
struct OpenValues {
  std::span<const OpenValue> values;  // by ValueId
  /// The same program under the recorded decisions, with the same ids: it answers what has no
  /// answer for all values and decides a structure.
  const ir::Program* witness = nullptr;
};

/// The operands of one application; references are resolved, so Int::value is what is meant. Types
/// agree with the row.
struct Call {
  std::span<const Operand> operands;
  const Decision* decision = nullptr;  // for sampling primitives
  const OpenValues* open = nullptr;    // null: the program has no tile parameters

  ir::LoopId loop(std::size_t i) const { return std::get<ir::LoopId>(operands[i]); }
  ir::BlockId block(std::size_t i) const { return std::get<ir::BlockId>(operands[i]); }
  int64_t integer(std::size_t i) const { return std::get<Int>(operands[i]).value; }
  const std::string& text(std::size_t i) const { return std::get<std::string>(operands[i]); }
  const std::vector<ir::LoopId>& loops(std::size_t i) const {
    return std::get<std::vector<ir::LoopId>>(operands[i]);
  }
  std::vector<int64_t> integers(std::size_t i) const {
    std::vector<int64_t> out;
    for (const Int& item : std::get<std::vector<Int>>(operands[i])) out.push_back(item.value);
    return out;
  }
  /// The same as expressions: constants, or products of tile parameters.
  std::vector<ir::Expr> sizes(ir::IrBuilder& b, std::size_t i) const {
    std::vector<ir::Expr> out;
    for (const Int& item : std::get<std::vector<Int>>(operands[i])) out.push_back(size(b, item));
    return out;
  }
  ir::Expr size(ir::IrBuilder& b, const Int& item) const;
};

/// What an application yields: the new program, ids made by it, and for sampling the values chosen.
struct Applied {
  ir::Program program;
  std::vector<Output> outputs;
  std::vector<int64_t> values;
};

/// Plans and applies: all preconditions are checked before anything is rewritten. Pure.
template <PrimitiveKind kKind>
Result<Applied> run(const ir::Program& program, const Call& call);
#define PRUNERC_PRIMITIVE(Name, text, operands, outputs) \
  template <>                                            \
  Result<Applied> run<PrimitiveKind::k##Name>(const ir::Program& program, const Call& call);
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE

struct Primitive {
  std::string_view name;
  std::string_view operands;  // signature, see primitive.def
  std::string_view outputs;
  Result<Applied> (*apply)(const ir::Program& program, const Call& call);
};
const Primitive& primitive(PrimitiveKind kind);

/// Do the operands have the types of the primitive's row?
bool operands_fit(PrimitiveKind kind, std::span<const Operand> operands);

/// What a sampling call may decide. Errors: LoopNotFound, LoopExtentNotConstant, TileCount,
/// TileCap, TilePartition, CategoricalWeights, BlockNotFound, LocationStale.
Result<DecisionSpace> sample_space(const ir::Program& program, PrimitiveKind kind,
                                   const Call& call);
/// Codes of the places where a block can be computed; see Schedule::compute_locations.
std::vector<int64_t> compute_locations(const ir::Program& program, ir::BlockId block);
/// The nearest decision that fits: tiles that no longer divide give way from the innermost
/// outwards.
Decision repair_decision(const DecisionSpace& space, const Decision& decision);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_PRIMITIVE_H_
