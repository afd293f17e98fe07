// replay: a trace applied to a program, with its own or other decisions.
#include "schedule/primitive.h"
#include "schedule/schedule.h"

#include <string>
#include <unordered_map>

namespace prunerc::schedule {
namespace {

using ir::BlockId;
using ir::LoopId;

// Recorded id -> id of this replay. Most are equal, so only differences are kept.
struct IdMap {
  std::unordered_map<LoopId, LoopId> loops;
  std::unordered_map<BlockId, BlockId> blocks;

  void apply(LoopId& id) const {
    if (const auto found = loops.find(id); found != loops.end()) id = found->second;
  }
  void apply(BlockId& id) const {
    if (const auto found = blocks.find(id); found != blocks.end()) id = found->second;
  }
  void apply(Operand& operand) const {
    if (LoopId* loop = std::get_if<LoopId>(&operand)) apply(*loop);
    if (BlockId* block = std::get_if<BlockId>(&operand)) apply(*block);
    if (auto* many = std::get_if<std::vector<LoopId>>(&operand)) {
      for (LoopId& id : *many) apply(id);
    }
  }
  // The recorded names of this replay's ids, as a failure reports them.
  void restore(DiagArg& arg) const {
    const auto back = [](const auto& map, auto& id) {
      for (const auto& [recorded, actual] : map) {
        if (actual != id) continue;
        id = recorded;
        return;
      }
    };
    if (LoopId* loop = std::get_if<LoopId>(&arg)) back(loops, *loop);
    if (BlockId* block = std::get_if<BlockId>(&arg)) back(blocks, *block);
  }
  // False if the outputs differ in number or type.
  bool learn(const std::vector<Output>& recorded, const std::vector<Output>& actual) {
    if (recorded.empty()) return true;  // left out by the person who wrote the text
    if (recorded.size() != actual.size()) return false;
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      if (recorded[i].index() != actual[i].index()) return false;
      if (const LoopId* loop = std::get_if<LoopId>(&recorded[i])) {
        const LoopId now = std::get<LoopId>(actual[i]);
        if (now != *loop || !loops.empty()) loops[*loop] = now;
      } else if (const BlockId* block = std::get_if<BlockId>(&recorded[i])) {
        const BlockId now = std::get<BlockId>(actual[i]);
        if (now != *block || !blocks.empty()) blocks[*block] = now;
      }
    }
    return true;
  }
};

Result<Decision> repaired(const Schedule& schedule, const Instruction& step, Decision decision) {
  if (!operands_fit(step.primitive, step.operands)) return decision;  // apply says what is wrong
  PRUNERC_TRY(const DecisionSpace space,
              sample_space(schedule.program(), step.primitive, Call{step.operands}));
  return repair_decision(space, decision);
}

class Replay {
 public:
  Replay(const ir::Program& base, const Trace& trace, const ReplayOptions& options)
      : schedule_(base, options.verify),
        trace_(trace),
        options_(options),
        decisions_(options.decisions.empty() ? std::span<const Decision>(trace.decisions)
                                             : options.decisions) {}

  Result<void> step(std::size_t i) {
    Instruction step = trace_.instructions[i];
    const std::vector<Output> recorded = std::move(step.outputs);
    step.outputs.clear();
    for (Operand& operand : step.operands) ids_.apply(operand);
    Decision decision;
    auto malformed = [&](const char* what) {
      return error(Diag::kTraceMalformed, static_cast<int64_t>(i),
                   std::string(to_string(step.primitive)), std::string(what));
    };
    if (step.is_sample()) {
      if (next_decision_ >= decisions_.size()) return malformed("no decision");
      decision = decisions_[next_decision_++];
      if (options_.misfit == Misfit::kRepair) {
        PRUNERC_TRY(decision, repaired(schedule_, step, std::move(decision)));
      }
    }
    const Result<std::vector<Output>> applied =
        schedule_.apply(std::move(step), std::move(decision));
    if (!applied.ok()) return in_recorded_ids(applied.error());
    const std::vector<Output>& actual = *applied;
    if (!ids_.learn(recorded, actual)) return malformed("other outputs than recorded");
    return {};
  }

  const ir::Program& program() const { return schedule_.program(); }
  Schedule take() { return std::move(schedule_); }

 private:
  // Whoever reads it knows the trace, not what this replay calls its loops.
  Error in_recorded_ids(const Error& error) const {
    ErrorData data = error.data();
    for (DiagArg& arg : data.args) ids_.restore(arg);
    return Error(std::move(data));
  }

  Schedule schedule_;
  const Trace& trace_;
  const ReplayOptions& options_;
  std::span<const Decision> decisions_;
  IdMap ids_;
  std::size_t next_decision_ = 0;
};

}  // namespace

Result<Schedule> replay(const ir::Program& base, const Trace& trace, ReplayOptions options) {
  Replay replay(base, trace, options);
  for (std::size_t i = 0; i < trace.instructions.size(); ++i) {
    const bool ends = trace.instructions[i].primitive == PrimitiveKind::kEnterPostproc;
    if (ends && options.part == Part::kSpace) break;
    const bool is_noted = options.around != nullptr && rounds_elsewhere(trace.instructions[i]);
    if (is_noted) options.around->push_back(replay.program());
    const Result<void> done = replay.step(i);
    if (done.ok() && is_noted) options.around->push_back(replay.program());
    if (done.ok()) continue;
    if (i >= options.lines.size()) return done.error();
    ErrorData located = done.error().data();
    located.locus = {options.lines[i], 1};
    return Error(std::move(located));
  }
  return replay.take();
}

}  // namespace prunerc::schedule
