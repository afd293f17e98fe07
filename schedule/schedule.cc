#include "schedule/schedule.h"

#include "ir/verify.h"
#include "ir/visit.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <algorithm>
#include <string>

namespace prunerc::schedule {

using ir::BlockId;
using ir::LoopId;

namespace {

constexpr Primitive kTable[] = {
#define PRUNERC_PRIMITIVE(Name, text, operands, outputs) \
  {text, operands, outputs, &run<PrimitiveKind::k##Name>},
#include "schedule/primitive.def"
#undef PRUNERC_PRIMITIVE
};

// Operand types by their letters: the index of the variant's alternative.
std::size_t alternative(char kind, bool many) {
  if (many) return kind == 'L' ? 4 : 5;
  return kind == 'L' ? 0 : kind == 'B' ? 1 : kind == 'I' ? 2 : 3;
}

// Sets the value of each reference; false if a reference points nowhere.
bool resolve(Int& item, std::span<const int64_t> values) {
  if (!item.ref.valid()) return true;
  const auto index = static_cast<std::size_t>(item.ref.value);
  if (index >= values.size()) return false;
  item.value = values[index];
  return true;
}

bool resolve(std::vector<Operand>& operands, std::span<const int64_t> values) {
  for (Operand& operand : operands) {
    if (Int* item = std::get_if<Int>(&operand); item != nullptr && !resolve(*item, values)) {
      return false;
    }
    if (auto* items = std::get_if<std::vector<Int>>(&operand)) {
      for (Int& item : *items) {
        if (!resolve(item, values)) return false;
      }
    }
  }
  return true;
}

// The recorded form: a reference holds no value.
void strip(std::vector<Operand>& operands) {
  auto clear = [](Int& item) {
    if (item.ref.valid()) item.value = 0;
  };
  for (Operand& operand : operands) {
    if (Int* item = std::get_if<Int>(&operand)) clear(*item);
    if (auto* items = std::get_if<std::vector<Int>>(&operand)) {
      for (Int& item : *items) clear(item);
    }
  }
}

}  // namespace

const Primitive& primitive(PrimitiveKind kind) { return kTable[static_cast<std::size_t>(kind)]; }

bool operands_fit(PrimitiveKind kind, std::span<const Operand> operands) {
  std::size_t next = 0;
  std::string_view signature = primitive(kind).operands;
  while (!signature.empty()) {
    const bool many = signature[0] == '*';
    if (next >= operands.size() ||
        operands[next].index() != alternative(signature[many ? 1 : 0], many)) {
      return false;
    }
    ++next;
    signature.remove_prefix(many ? 2 : 1);
  }
  return next == operands.size();
}

Result<std::vector<Output>> Schedule::apply(Instruction step, Decision decision) {
  const auto malformed = [&](const char* what) {
    return error(Diag::kTraceMalformed, static_cast<int64_t>(trace_.instructions.size()),
                 std::string(to_string(step.primitive)), std::string(what));
  };
  if (!operands_fit(step.primitive, step.operands)) return malformed("operands");
  if (!resolve(step.operands, values_)) return malformed("unknown value");
  // Nothing is legal for all values at once; see parametric.h.
  if (!program_.domain().empty()) return error(Diag::kParamBase, std::string(program_.name()));
  const Call call{step.operands, &decision};
  PRUNERC_TRY(Applied applied, primitive(step.primitive).apply(program_, call));
  if (verify_ == Verify::kEachStep) PRUNERC_TRY_VOID(ir::verify(applied.program));
  program_ = std::move(applied.program);
  for (const int64_t value : applied.values) {
    applied.outputs.push_back(ValueId(static_cast<int32_t>(values_.size())));
    values_.push_back(value);
  }
  strip(step.operands);
  if (step.is_sample()) trace_.decisions.push_back(std::move(decision));
  step.outputs = applied.outputs;
  trace_.instructions.push_back(std::move(step));
  return std::move(applied.outputs);
}

std::vector<LoopId> Schedule::loops_of(BlockId block) const {
  const Result<Site> site = find_block(program_, block);
  std::vector<LoopId> out;
  if (!site) return out;
  for (const ir::Loop* loop : site->outer_loops()) out.push_back(loop->id);
  return out;
}

std::vector<BlockId> Schedule::blocks() const {
  std::vector<BlockId> out;
  ir::walk(
      program_.root(),
      [&](ir::Stmt s) {
        if (const ir::Block* block = s.as<ir::Block>()) out.push_back(block->id);
        return true;
      },
      [](ir::Expr) {});
  return out;
}

namespace {

// Other blocks with an access among `theirs` to a buffer among `ours` of `block`.
std::vector<BlockId> related(const ir::Program& program, BlockId id,
                             std::span<const ir::Access> ir::Block::*ours,
                             std::span<const ir::Access> ir::Block::*theirs) {
  std::vector<BlockId> out;
  const Result<Site> site = find_block(program, id);
  if (!site) return out;
  const ir::Block* block = site->block();
  auto touches = [&](const ir::Access& access) {
    const auto& mine = block->*ours;
    return std::any_of(mine.begin(), mine.end(),
                       [&](const ir::Access& own) { return own.buffer == access.buffer; });
  };
  ir::walk(
      program.root(),
      [&](ir::Stmt s) {
        const ir::Block* other = s.as<ir::Block>();
        if (other == nullptr || other == block) return true;
        const auto& accesses = other->*theirs;
        if (std::any_of(accesses.begin(), accesses.end(), touches)) out.push_back(other->id);
        return true;
      },
      [](ir::Expr) {});
  return out;
}

}  // namespace

std::vector<BlockId> Schedule::producers(BlockId block) const {
  return related(program_, block, &ir::Block::reads, &ir::Block::writes);
}

std::vector<BlockId> Schedule::consumers(BlockId block) const {
  return related(program_, block, &ir::Block::writes, &ir::Block::reads);
}

Result<BlockId> Schedule::block_by_name(std::string_view name) const {
  BlockId found;
  int64_t count = 0;
  ir::walk(
      program_.root(),
      [&](ir::Stmt s) {
        const ir::Block* block = s.as<ir::Block>();
        if (block != nullptr && block->name == name && count++ == 0) found = block->id;
        return true;
      },
      [](ir::Expr) {});
  if (count == 0) return error(Diag::kBlockNameNotFound, std::string(name));
  if (count > 1) return error(Diag::kBlockNameAmbiguous, count, std::string(name));
  return found;
}

}  // namespace prunerc::schedule
