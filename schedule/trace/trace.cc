#include "schedule/trace/trace.h"

#include "schedule/trace/factor.h"

#include <algorithm>
#include <limits>

namespace prunerc::schedule {
namespace {

struct NameRow {
  std::string_view name;
};
constexpr NameRow kNames[] = {
#define PRUNERC_PRIMITIVE(Name, text, operands, outputs) {text},
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE
};

std::vector<int64_t> literals(const Operand& operand) {
  std::vector<int64_t> out;
  for (const Int& item : std::get<std::vector<Int>>(operand)) out.push_back(item.value);
  return out;
}

}  // namespace

std::string_view to_string(PrimitiveKind kind) {
  return kNames[static_cast<std::size_t>(kind)].name;
}

int64_t DecisionSpace::count() const {
  if (primitive == PrimitiveKind::kSampleCategorical ||
      primitive == PrimitiveKind::kSampleComputeLocation) {
    return static_cast<int64_t>(values.size());
  }
  if (primitive == PrimitiveKind::kSamplePartitionedTile) {
    return count_partitioned_tiles(extent, num_tiles, partition, inner_factor);
  }
  if (primitive == PrimitiveKind::kSampleCoveringTile) {
    const uint64_t count = covering_tiles(extent, num_tiles, max_innermost)->count();
    return static_cast<int64_t>(std::min<uint64_t>(count, std::numeric_limits<int64_t>::max()));
  }
  return count_perfect_tiles(extent, num_tiles, max_innermost);
}

bool DecisionSpace::contains(const Decision& decision) const {
  if (primitive == PrimitiveKind::kSampleCategorical) {
    return decision.size() == 1 && decision[0] >= 0 &&
           decision[0] < static_cast<int64_t>(values.size());
  }
  if (primitive == PrimitiveKind::kSampleComputeLocation) {
    return decision.size() == 1 &&
           std::find(values.begin(), values.end(), decision[0]) != values.end();
  }
  if (primitive == PrimitiveKind::kSampleCoveringTile) {
    return fits_covering(extent, num_tiles, max_innermost, decision);
  }
  if (static_cast<int>(decision.size()) != num_tiles) return false;
  int64_t rest = extent;
  for (const int64_t tile : decision) {
    if (tile < 1 || rest % tile != 0) return false;
    rest /= tile;
  }
  int64_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(partition); i < decision.size(); ++i) {
    if (rest == 1) inner *= decision[i];
  }
  return rest == 1 && inner % inner_factor == 0 &&
         (max_innermost == 0 || decision.back() <= max_innermost);
}

DecisionSpace Trace::decision_space(int idx) const {
  DecisionSpace space;
  int seen = 0;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    if (!instruction.is_sample() || seen++ != idx) continue;
    space.primitive = instruction.primitive;
    space.instruction_idx = static_cast<int>(i);
    if (space.primitive == PrimitiveKind::kSampleCategorical) {
      space.values = literals(instruction.operands[0]);
      space.weights = literals(instruction.operands[1]);
    } else if (space.primitive == PrimitiveKind::kSampleComputeLocation) {
      space.values = literals(instruction.operands[1]);
      space.weights.assign(space.values.size(), 1);
    } else if (space.primitive == PrimitiveKind::kSampleCoveringTile) {
      space.extent = std::max<int64_t>(std::get<Int>(instruction.operands[0]).value, 1);
      space.num_tiles = static_cast<int>(std::get<Int>(instruction.operands[1]).value);
      space.max_innermost = std::get<Int>(instruction.operands[2]).value;
    } else {
      space.num_tiles = static_cast<int>(std::get<Int>(instruction.operands[1]).value);
      if (space.primitive == PrimitiveKind::kSamplePerfectTile) {
        space.max_innermost = std::get<Int>(instruction.operands[2]).value;
      } else {
        space.partition = static_cast<int>(std::get<Int>(instruction.operands[2]).value);
        space.inner_factor = std::max<int64_t>(std::get<Int>(instruction.operands[3]).value, 1);
      }
      for (const int64_t tile : decisions[static_cast<std::size_t>(idx)]) {
        // Text may hold anything; a product that fits no extent describes no space.
        if (__builtin_mul_overflow(space.extent, tile, &space.extent)) space.extent = 0;
      }
    }
  }
  return space;
}

Trace Trace::with_decision(int idx, Decision decision) const {
  Trace copy = *this;
  copy.decisions[static_cast<std::size_t>(idx)] = std::move(decision);
  return copy;
}

bool rounds_elsewhere(const Instruction& step) { return step.primitive == PrimitiveKind::kRescale; }

bool rounds_elsewhere(const Trace& trace) {
  return std::any_of(trace.instructions.begin(), trace.instructions.end(),
                     [](const Instruction& step) { return rounds_elsewhere(step); });
}

}  // namespace prunerc::schedule
