// Traces made from traces: without dead samples, for other ids.
#include "ir/visit.h"
#include "schedule/trace/trace.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace prunerc::schedule {
namespace {

using ir::BlockId;
using ir::LoopId;

// Calls f with every reference of an operand list to a sampled value.
template <typename F>
void for_each_ref(std::vector<Operand>& operands, F&& f) {
  auto visit = [&](Int& item) {
    if (item.ref.valid()) f(item.ref);
  };
  for (Operand& operand : operands) {
    if (Int* item = std::get_if<Int>(&operand)) visit(*item);
    if (auto* items = std::get_if<std::vector<Int>>(&operand)) {
      for (Int& item : *items) visit(item);
    }
  }
}

// Ids of all loops and blocks in program order.
struct Places {
  std::vector<LoopId> loops;
  std::vector<BlockId> blocks;
};

Places places_of(const ir::Program& program) {
  Places out;
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        if (const ir::Loop* loop = s.as<ir::Loop>()) out.loops.push_back(loop->id);
        if (const ir::Block* block = s.as<ir::Block>()) out.blocks.push_back(block->id);
        return true;
      },
      [](ir::Expr) {});
  return out;
}

// Renames ids of one base to those of another; ids that were made on the way move out of the way of
// the new base's.
template <typename Id>
class Renaming {
 public:
  Renaming(const std::vector<Id>& from, const std::vector<Id>& to, int32_t first_free_from,
           int32_t first_free_to)
      : shift_(first_free_to - first_free_from) {
    for (std::size_t i = 0; i < from.size(); ++i) map_[from[i]] = to[i];
  }
  void apply(Id& id) const {
    const auto found = map_.find(id);
    id = found != map_.end() ? found->second : Id(id.value + shift_);
  }

 private:
  std::map<Id, Id> map_;
  int32_t shift_;
};

}  // namespace

Trace simplify(const Trace& trace) {
  std::set<int32_t> used;
  for (Instruction step : trace.instructions) {
    for_each_ref(step.operands, [&](ValueId& id) { used.insert(id.value); });
  }
  Trace out;
  std::map<int32_t, ValueId> renamed;
  std::size_t next = 0;
  for (Instruction step : trace.instructions) {
    const bool samples = step.is_sample();
    const std::size_t decision = next;
    next += samples ? 1 : 0;
    const bool dead =
        samples &&
        std::none_of(step.outputs.begin(), step.outputs.end(), [&](const Output& output) {
          return used.count(std::get<ValueId>(output).value) > 0;
        });
    if (dead) continue;
    for_each_ref(step.operands, [&](ValueId& id) { id = renamed.at(id.value); });
    for (Output& output : step.outputs) {
      ValueId* value = std::get_if<ValueId>(&output);
      if (value == nullptr) continue;
      const ValueId now(static_cast<int32_t>(renamed.size()));
      renamed[value->value] = now;
      *value = now;
    }
    if (samples) out.decisions.push_back(trace.decisions[decision]);
    out.instructions.push_back(std::move(step));
  }
  return out;
}

Result<Trace> transfer(const Trace& trace, const ir::Program& from, const ir::Program& to) {
  const Places old_places = places_of(from);
  const Places new_places = places_of(to);
  if (old_places.loops.size() != new_places.loops.size() ||
      old_places.blocks.size() != new_places.blocks.size()) {
    return error(Diag::kTraceMalformed, int64_t{0}, std::string("transfer"),
                 std::string("the programs have other loops or blocks"));
  }
  const Renaming<LoopId> loops(old_places.loops, new_places.loops, from.next_ids().loop,
                               to.next_ids().loop);
  const Renaming<BlockId> blocks(old_places.blocks, new_places.blocks, from.next_ids().block,
                                 to.next_ids().block);
  Trace out = trace;
  auto rename = [&](auto& slot) {
    if (LoopId* loop = std::get_if<LoopId>(&slot)) loops.apply(*loop);
    if (BlockId* block = std::get_if<BlockId>(&slot)) blocks.apply(*block);
  };
  for (Instruction& step : out.instructions) {
    for (Operand& operand : step.operands) {
      rename(operand);
      if (auto* many = std::get_if<std::vector<LoopId>>(&operand)) {
        for (LoopId& id : *many) loops.apply(id);
      }
    }
    for (Output& output : step.outputs) rename(output);
  }
  return out;
}

}  // namespace prunerc::schedule
