// A trace: which primitives were applied to which ids, and what was decided. Plain data; prints and
// parses back.
#ifndef PRUNERC_SCHEDULE_TRACE_TRACE_H_
#define PRUNERC_SCHEDULE_TRACE_TRACE_H_

#include "ir/program.h"
#include "ir/support/ids.h"
#include "ir/support/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace prunerc::schedule {

enum class PrimitiveKind : uint8_t {
#define PRUNERC_PRIMITIVE(Name, text, operands, outputs) k##Name,
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE
};

/// "split".
std::string_view to_string(PrimitiveKind kind);

/// A sampled value: the trace's v0, v1, ... in order of appearance.
using ValueId = ir::Id<struct ValueTag>;

/// An integer operand: a literal, or a sampled value (`ref` valid). In a Schedule's hands `value`
/// is always what it stands for; inside a recorded Instruction a reference holds value 0, so that
/// traces compare by meaning.
struct Int {
  int64_t value = 0;
  ValueId ref;
  Int() = default;
  Int(int64_t literal) : value(literal) {}  // NOLINT: implicit by design
  Int(int64_t current, ValueId sampled) : value(current), ref(sampled) {}
  bool operator==(const Int&) const = default;
};

using Operand = std::variant<ir::LoopId, ir::BlockId, Int, std::string, std::vector<ir::LoopId>,
                             std::vector<Int>>;
using Output = std::variant<ir::LoopId, ir::BlockId, ValueId>;

/// One applied primitive. Operands and outputs follow the row of primitive.def.
struct Instruction {
  PrimitiveKind primitive = PrimitiveKind::kSplit;
  std::vector<Operand> operands;
  std::vector<Output> outputs;
  bool operator==(const Instruction&) const = default;
  bool is_sample() const { return primitive >= PrimitiveKind::kSamplePerfectTile; }
};

/// Tiles: the tile sizes, outermost first; covering tiles leave out the outermost one, which is
/// inferred. Categorical: one index into the candidates. Compute
/// location: one of the candidates.
using Decision = std::vector<int64_t>;

/// What may be decided at one sampling instruction.
struct DecisionSpace {
  PrimitiveKind primitive = PrimitiveKind::kSampleCategorical;
  int instruction_idx = 0;
  // Covering tile: the levels inside the outermost of a tiling that covers `extent` with at most a
  // quarter of waste. Perfect tile: ordered factorisations of `extent` into `num_tiles`, the last
  // at most `max_innermost` (0: no cap).
  int64_t extent = 1;
  int num_tiles = 1;
  int64_t max_innermost = 0;
  // Partitioned tile: moreover inner_factor divides the product of the tiles from `partition` on.
  int partition = 0;
  int64_t inner_factor = 1;
  // Categorical, and the codes of places for a compute location (see Schedule).
  std::vector<int64_t> values;
  std::vector<int64_t> weights;
  /// Number of possible decisions (saturates at INT64_MAX).
  int64_t count() const;
  bool contains(const Decision& decision) const;
};

struct Trace {
  std::vector<Instruction> instructions;
  std::vector<Decision> decisions;  // one per sampling instruction, in order

  bool operator==(const Trace&) const = default;
  int num_decisions() const { return static_cast<int>(decisions.size()); }
  /// The space of decision `idx`. A tile's extent is the product of the recorded tiles.
  DecisionSpace decision_space(int idx) const;
  /// The same trace with one decision replaced. O(size of the trace).
  Trace with_decision(int idx, Decision decision) const;
};

/// Does the step round other values to narrower floats than the program before it does (rescale)? All others round
/// where it does.
bool rounds_elsewhere(const Instruction& step);
/// Does one of its steps?
bool rounds_elsewhere(const Trace& trace);

/// Without sampling whose values nobody uses; the other values are numbered anew. A replay gives
/// the same program.
Trace simplify(const Trace& trace);

/// The same trace for a base with other ids: loops and blocks of `from` become those at the same
/// place of `to`, in program order. Names do not matter. Errors: TraceMalformed if the programs
/// have different numbers of loops or blocks.
Result<Trace> transfer(const Trace& trace, const ir::Program& from, const ir::Program& to);

/// One instruction per line:
///   sample_perfect_tile(@L0, 2, 16) -> v0, v1 = [32, 16]
///   split(@L0, [v0, v1]) -> @L3, @L4
std::string print(const Trace& trace);
/// Inverse of print. Errors: ParseExpected, ParseNumber, ParseUnknownName.
Result<Trace> parse_trace(std::string_view text);
/// The same with the line of the text that each instruction starts in.
struct TraceScript {
  Trace trace;
  std::vector<int32_t> lines;
};
/// A trace written by a person: outputs may be left out, # starts a comment.
Result<TraceScript> parse_script(std::string_view text);

/// {"steps": [{"do": "split", "with": ["@L0", ["v0", 4]], "gives": ["@L3", "@L4"]}, ..],
///  "decisions": [[1, [32, 16]], ..]}; a decision names its step.
std::string to_json(const Trace& trace);
/// Inverse of to_json. Errors: TraceJson, ParseUnknownName.
Result<Trace> trace_from_json(std::string_view text);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_TRACE_TRACE_H_
