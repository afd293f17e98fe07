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

template <typename T>
std::vector<T> outputs_of(const std::vector<Output>& outputs) {
  std::vector<T> out;
  for (const Output& output : outputs) {
    if (const T* id = std::get_if<T>(&output)) out.push_back(*id);
  }
  return out;
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

Instruction instruction(PrimitiveKind kind, std::vector<Operand> operands) {
  return {kind, std::move(operands), {}};
}

std::vector<Int> literals(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
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

Result<std::vector<LoopId>> Schedule::split(LoopId loop, std::vector<Int> factors) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kSplit, {loop, std::move(factors)})));
  return outputs_of<LoopId>(outputs);
}

Result<LoopId> Schedule::fuse(std::vector<LoopId> loops) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kFuse, {std::move(loops)})));
  return std::get<LoopId>(outputs[0]);
}

Result<void> Schedule::reorder(std::vector<LoopId> loops) {
  PRUNERC_TRY_VOID(apply(instruction(PrimitiveKind::kReorder, {std::move(loops)})));
  return {};
}

Result<void> Schedule::parallel(LoopId loop) {
  PRUNERC_TRY_VOID(apply(instruction(PrimitiveKind::kParallel, {loop})));
  return {};
}

Result<void> Schedule::vectorize(LoopId loop) {
  PRUNERC_TRY_VOID(apply(instruction(PrimitiveKind::kVectorize, {loop})));
  return {};
}

Result<void> Schedule::unroll(LoopId loop) {
  PRUNERC_TRY_VOID(apply(instruction(PrimitiveKind::kUnroll, {loop})));
  return {};
}

Result<std::vector<LoopId>> Schedule::compute_at(BlockId block, LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kComputeAt, {block, loop})));
  return outputs_of<LoopId>(outputs);
}

Result<std::vector<LoopId>> Schedule::reverse_compute_at(BlockId block, LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kReverseComputeAt, {block, loop})));
  return outputs_of<LoopId>(outputs);
}

Result<void> Schedule::compute_inline(BlockId block) {
  PRUNERC_TRY_VOID(apply(instruction(PrimitiveKind::kComputeInline, {block})));
  return {};
}

Result<void> Schedule::reverse_compute_inline(BlockId block) {
  PRUNERC_TRY_VOID(apply(instruction(PrimitiveKind::kReverseComputeInline, {block})));
  return {};
}

Result<BlockId> Schedule::cache_read(BlockId block, int read_idx, ir::Scope scope) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kCacheRead,
                                {block, Int(read_idx), std::string(to_string(scope))})));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::cache_write(BlockId block, int write_idx, ir::Scope scope) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kCacheWrite,
                                {block, Int(write_idx), std::string(to_string(scope))})));
  return std::get<BlockId>(outputs[0]);
}

Result<void> Schedule::set_scope(BlockId block, int write_idx, ir::Scope scope) {
  PRUNERC_TRY_VOID(apply(instruction(PrimitiveKind::kSetScope,
                                     {block, Int(write_idx), std::string(to_string(scope))})));
  return {};
}

Result<BlockId> Schedule::decompose_reduction(BlockId block, LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kDecomposeReduction, {block, loop})));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::rfactor(LoopId loop, int factor_axis) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kRfactor, {loop, Int(factor_axis)})));
  return std::get<BlockId>(outputs[0]);
}

Result<std::vector<LoopId>> Schedule::transform_layout(BlockId block, int write_idx,
                                                       std::string_view map, std::vector<Int> pad) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kTransformLayout,
                                {block, Int(write_idx), std::string(map), std::move(pad)})));
  return outputs_of<LoopId>(outputs);
}

Result<BlockId> Schedule::reindex(BlockId block, std::string_view side, int index) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kReindex, {block, std::string(side), Int(index)})));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::reindex_cache_read(BlockId block, int read_idx, ir::Scope scope,
                                             std::string_view map) {
  PRUNERC_TRY(
      const std::vector<Output> outputs,
      apply(instruction(PrimitiveKind::kReindexCacheRead,
                        {block, Int(read_idx), std::string(to_string(scope)), std::string(map)})));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::reindex_cache_write(BlockId block, int write_idx, ir::Scope scope,
                                              std::string_view map) {
  PRUNERC_TRY(
      const std::vector<Output> outputs,
      apply(instruction(PrimitiveKind::kReindexCacheWrite,
                        {block, Int(write_idx), std::string(to_string(scope)), std::string(map)})));
  return std::get<BlockId>(outputs[0]);
}

Result<std::vector<LoopId>> Schedule::transform_block_layout(BlockId block, std::string_view map) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kTransformBlockLayout, {block, std::string(map)})));
  return outputs_of<LoopId>(outputs);
}

Result<std::vector<BlockId>> Schedule::pad_einsum(BlockId block, std::vector<Int> multiples) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kPadEinsum, {block, std::move(multiples)})));
  return outputs_of<BlockId>(outputs);
}

Result<BlockId> Schedule::decompose_padding(BlockId block, LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kDecomposePadding, {block, loop})));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::blockize(LoopId loop) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kBlockize, {loop})));
  return std::get<BlockId>(outputs[0]);
}

Result<BlockId> Schedule::tensorize(LoopId loop, std::string_view intrinsic) {
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kTensorize, {loop, std::string(intrinsic)})));
  return std::get<BlockId>(outputs[0]);
}

Result<void> Schedule::annotate(LoopId loop, std::string_view key, Int value) {
  PRUNERC_TRY_VOID(
      apply(instruction(PrimitiveKind::kAnnotateLoop, {loop, std::string(key), value})));
  return {};
}

Result<void> Schedule::annotate(BlockId block, std::string_view key, Int value) {
  PRUNERC_TRY_VOID(
      apply(instruction(PrimitiveKind::kAnnotateBlock, {block, std::string(key), value})));
  return {};
}

Result<std::vector<Int>> Schedule::decide_perfect_tile(LoopId loop, int num_tiles,
                                                       int64_t max_innermost, Decision tiles) {
  const std::vector<int64_t> values = tiles;
  PRUNERC_TRY(const std::vector<Output> outputs,
              apply(instruction(PrimitiveKind::kSamplePerfectTile,
                                {loop, Int(num_tiles), Int(max_innermost)}),
                    std::move(tiles)));
  std::vector<Int> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.emplace_back(values[i], std::get<ValueId>(outputs[i]));
  }
  return out;
}

Result<Int> Schedule::decide_categorical(std::vector<int64_t> values, std::vector<int64_t> weights,
                                         int64_t index) {
  PRUNERC_TRY(
      const std::vector<Output> outputs,
      apply(instruction(PrimitiveKind::kSampleCategorical, {literals(values), literals(weights)}),
            {index}));
  return Int(values_.back(), std::get<ValueId>(outputs[0]));
}

Result<std::vector<Int>> Schedule::sample_perfect_tile(LoopId loop, int num_tiles,
                                                       int64_t max_innermost, Rng& rng) {
  const std::vector<Operand> operands = {loop, Int(num_tiles), Int(max_innermost)};
  PRUNERC_TRY(const DecisionSpace space,
              sample_space(program_, PrimitiveKind::kSamplePerfectTile, Call{operands}));
  return decide_perfect_tile(loop, num_tiles, max_innermost, random_decision(space, rng));
}

Result<Int> Schedule::sample_categorical(std::vector<int64_t> values, std::vector<int64_t> weights,
                                         Rng& rng) {
  const std::vector<Operand> operands = {literals(values), literals(weights)};
  PRUNERC_TRY(const DecisionSpace space,
              sample_space(program_, PrimitiveKind::kSampleCategorical, Call{operands}));
  return decide_categorical(std::move(values), std::move(weights), random_decision(space, rng)[0]);
}

}  // namespace prunerc::schedule
