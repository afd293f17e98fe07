#include "schedule/legality/block_state.h"

#include "ir/arith/loop_index.h"
#include "ir/support/check.h"
#include "ir/visit.h"
#include "schedule/rewrite/site.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;

uint64_t identity(const void* node) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(node));
}
uint64_t number(int64_t value) { return static_cast<uint64_t>(value); }

using Grounds = std::vector<uint64_t>;

void append(Grounds& grounds, std::initializer_list<uint64_t> more) {
  grounds.insert(grounds.end(), more);
}

void add_iters(Grounds& grounds, const Block& block) {
  for (const IterVar& iter : block.iters) {
    append(grounds, {number(iter.var->id.value), identity(iter.extent.node()),
                     static_cast<uint64_t>(iter.kind), identity(iter.binding.node())});
  }
}

void add_shapes(Grounds& grounds, const Program& program, std::span<const Access> accesses) {
  for (const Access& access : accesses) {
    for (Expr extent : program.buffer(access.buffer).shape) {
      grounds.push_back(identity(extent.node()));
    }
  }
}

// The grounds of each block's own facts, in the order of LoopIndex::blocks(): everything of the
// statements around it but what else these hold, the block itself, and its buffers' shapes.
class GroundsOfBlocks {
 public:
  explicit GroundsOfBlocks(const Program& program) : program_(program) { go(program.root()); }
  std::vector<Grounds> take() { return std::move(all_); }

 private:
  void go(Stmt s) {
    if (!s.defined()) return;
    const std::size_t outer = path_.size();
    if (const Loop* loop = s.as<Loop>()) {
      append(path_, {1, number(loop->id.value), number(loop->var->id.value),
                     identity(loop->extent.node()), static_cast<uint64_t>(loop->loop_kind)});
    } else if (const Block* block = s.as<Block>()) {
      Grounds own = path_;
      own.push_back(identity(block));
      add_shapes(own, program_, block->reads);
      add_shapes(own, program_, block->writes);
      all_.push_back(std::move(own));
      append(path_, {2, number(block->id.value), identity(block->guard.node())});
      add_iters(path_, *block);
    }
    uint64_t branch = 0;
    for_each_child(
        s,
        [&](Stmt child) {
          const std::size_t before = path_.size();
          if (const If* choice = s.as<If>()) {
            append(path_, {3, identity(choice->condition.node()), branch++});
          }
          go(child);
          path_.resize(before);
        },
        [](Expr) {});
    path_.resize(outer);
  }

  const Program& program_;
  Grounds path_;
  std::vector<Grounds> all_;
};

// Only loops, sequences and blocks between the scope and its blocks?
bool holds_only_blocks(Stmt s) {
  if (!s.defined() || s.as<Block>() != nullptr) return true;
  if (const Loop* loop = s.as<Loop>()) return check_holds_blocks(*loop).ok();
  const Seq* seq = s.as<Seq>();
  return seq != nullptr && std::all_of(seq->stmts.begin(), seq->stmts.end(), holds_only_blocks);
}

BlockFault pipeline_fault(const Program& program, const LoopIndex& index, const ScopeDeps& deps,
                          std::span<const BlockState> blocks) {
  for (const DepEdge& edge : deps.edges) {
    if (edge.kind == DepKind::kWriteAfterRead) return BlockFault::kWriteAfterRead;
  }
  const Block* const outer = index.block(deps.scope);
  if (!holds_only_blocks(outer == nullptr ? program.root() : outer->body)) {
    return BlockFault::kOpaqueStatement;
  }
  for (const BlockState& block : blocks) {
    if (block.scope == deps.scope && block.cover != BlockFault::kNone) return block.cover;
  }
  return BlockFault::kNone;
}

// A symbolic program's facts also depend on its tile parameters, which are not among the grounds.
bool may_take_over(const Program& before, const Program& after) {
  return before.domain().empty() && after.domain().empty();
}

}  // namespace

State::State(Program program) : State(std::move(program), nullptr) {}

State State::after(Program edited) const {
  State state(std::move(edited), this);
#ifndef NDEBUG
  PRUNERC_CHECK(state.same_facts(State(state.program_)),
                "facts taken over are those of an analysis");
#endif
  return state;
}

State::State(Program program, const State* before) : program_(std::move(program)) {
  if (before != nullptr && !may_take_over(before->program_, program_)) before = nullptr;
  const LoopIndex index(program_);
  std::vector<Grounds> own = GroundsOfBlocks(program_).take();
  PRUNERC_CHECK(own.size() == index.blocks().size(), "both walks find the same blocks");
  std::map<BlockId, std::size_t> place;
  for (std::size_t i = 0; i < own.size(); ++i) place[index.blocks()[i]->id] = i;

  std::map<BlockId, ScopeDeps> scopes;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Block& block = *index.blocks()[i];
    const Block* const outer = index.parent_block(block.id);
    const BlockId scope = outer == nullptr ? BlockId() : outer->id;
    if (scopes.count(scope) == 0) scopes[scope] = scope_dependences(index, scope);
    Kept grounds = {own[i], own[i]};
    for (BlockId producer : scopes[scope].producers(block.id)) {
      const Grounds& theirs = own[place.at(producer)];
      grounds.cover.insert(grounds.cover.end(), theirs.begin(), theirs.end());
    }
    const Kept* const old = before == nullptr ? nullptr : before->kept(block.id);
    const BlockState* const known = old == nullptr ? nullptr : before->block(block.id);
    const bool same_own = known != nullptr && old->own == grounds.own;
    const bool same_cover = known != nullptr && old->cover == grounds.cover;
    num_analyses_ += static_cast<int64_t>(!same_own) + static_cast<int64_t>(!same_cover);

    BlockState state;
    state.block = block.id;
    state.scope = scope;
    state.affine = same_own ? known->affine : check_affine(program_, index, block.id);
    state.cover = same_cover ? known->cover : check_region_cover(program_, index, block.id);
    state.dominant = check_dominant(index, block.id);
    state.complete = check_complete(index, block.id);
    state.reduction = same_own && known->dominant == state.dominant
                          ? known->reduction
                          : check_reduction(program_, index, block.id);
    state.output = check_output(program_, index, block.id);
    blocks_.push_back(state);
    kept_.push_back(std::move(grounds));
  }
  if (scopes.count(BlockId()) == 0) scopes[BlockId()] = scope_dependences(index, BlockId());
  // An invalid id is the least, so that the program's own scope comes first.
  for (const auto& [scope, deps] : scopes) {
    scopes_.push_back({scope, pipeline_fault(program_, index, deps, blocks_)});
  }
}

const BlockState* State::block(BlockId id) const {
  const auto at = std::find_if(blocks_.begin(), blocks_.end(),
                               [&](const BlockState& state) { return state.block == id; });
  return at == blocks_.end() ? nullptr : &*at;
}

const State::Kept* State::kept(BlockId id) const {
  const BlockState* const state = block(id);
  return state == nullptr ? nullptr : &kept_[static_cast<std::size_t>(state - blocks_.data())];
}

std::string print(const State& state) {
  const LoopIndex index(state.program());
  std::string out;
  const auto add = [&out](std::string_view name, BlockFault fault) {
    out += " " + std::string(name);
    out += fault == BlockFault::kNone ? " yes" : " no (" + std::string(to_string(fault)) + ")";
    out += ';';
  };
  for (const ScopeState& scope : state.scopes()) {
    out += scope.scope.valid() ? "scope @B" + std::to_string(scope.scope.value) : "program";
    out += ':';
    add("stage pipeline", scope.pipeline);
    out.back() = '\n';
  }
  for (const BlockState& block : state.blocks()) {
    out += std::string(index.block(block.block)->name) + " @B" + std::to_string(block.block.value);
    out += ':';
    add("affine", block.affine);
    add("covered", block.cover);
    add("dominant", block.dominant);
    add("complete", block.complete);
    add("reduction", block.reduction);
    add("output", block.output);
    out.back() = '\n';
  }
  return out;
}

}  // namespace prunerc::schedule
