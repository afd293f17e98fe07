#include "ir/arith/loop_index.h"

#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

void set_at(std::vector<int32_t>& table, int32_t id, int32_t entry) {
  if (id < 0) return;
  const auto i = static_cast<std::size_t>(id);
  if (i >= table.size()) table.resize(i + 1, -1);
  table[i] = entry;
}

int32_t get_at(const std::vector<int32_t>& table, int32_t id) {
  const auto i = static_cast<std::size_t>(id);
  return id >= 0 && i < table.size() ? table[i] : -1;
}

// Adds what holds at `target`, which stands somewhere in s; false if it does not.
bool add_ranges(Stmt s, const StmtNode* target, VarRanges& ranges) {
  if (!s.defined()) return false;
  if (s.node() == target) return true;
  const VarRanges::Mark outside = ranges.mark();
  bool found = false;
  if (const Loop* loop = s.as<Loop>()) {
    ranges.bind(loop->var, loop->extent);
    found = add_ranges(loop->body, target, ranges);
  } else if (const Block* block = s.as<Block>()) {
    if (block->guard.defined()) ranges.assume(block->guard);
    bind_iters(ranges, *block);
    found = add_ranges(block->init, target, ranges) || add_ranges(block->body, target, ranges);
  } else if (const If* branch = s.as<If>()) {
    ranges.assume(branch->condition);
    found = add_ranges(branch->then_body, target, ranges);
    if (!found && branch->else_body.defined()) {
      ranges.rewind(outside);
      ranges.assume_not(branch->condition);
      found = add_ranges(branch->else_body, target, ranges);
    }
  } else if (const Seq* seq = s.as<Seq>()) {
    for (Stmt child : seq->stmts) found = found || add_ranges(child, target, ranges);
  } else if (const Alloc* alloc = s.as<Alloc>()) {
    found = add_ranges(alloc->body, target, ranges);
  }
  if (!found) ranges.rewind(outside);
  return found;
}

}  // namespace

LoopIndex::LoopIndex(const Program& program) : LoopIndex(program.root()) {}

LoopIndex::LoopIndex(Stmt root) {
  if (root.defined()) add(root, {}, -1, 0);
}

void LoopIndex::add(Stmt s, Stmt parent, int32_t outer, int32_t position) {
  int32_t own = outer;
  if (s.kind() == StmtKind::kLoop || s.kind() == StmtKind::kBlock) {
    own = static_cast<int32_t>(entries_.size());
    entries_.push_back({s, parent, outer, position, 0});
    if (const Loop* loop = s.as<Loop>()) {
      loops_.push_back(loop);
      set_at(loop_entries_, loop->id.value, own);
    } else {
      blocks_.push_back(s.as<Block>());
      set_at(block_entries_, s.as<Block>()->id.value, own);
    }
  }
  int32_t child_position = 0;
  const bool is_seq = s.kind() == StmtKind::kSeq;
  for_each_child(
      s, [&](Stmt child) { add(child, s, own, is_seq ? child_position++ : 0); }, [](Expr) {});
  if (own != outer) {
    entries_[static_cast<std::size_t>(own)].end = static_cast<int32_t>(entries_.size());
  }
}

int32_t LoopIndex::entry_of(LoopId id) const { return get_at(loop_entries_, id.value); }
int32_t LoopIndex::entry_of(BlockId id) const { return get_at(block_entries_, id.value); }

const LoopIndex::Entry* LoopIndex::find(LoopId id) const {
  const int32_t i = entry_of(id);
  return i < 0 ? nullptr : &entries_[static_cast<std::size_t>(i)];
}
const LoopIndex::Entry* LoopIndex::find(BlockId id) const {
  const int32_t i = entry_of(id);
  return i < 0 ? nullptr : &entries_[static_cast<std::size_t>(i)];
}

const Loop* LoopIndex::loop(LoopId id) const {
  const Entry* e = find(id);
  return e == nullptr ? nullptr : e->stmt.as<Loop>();
}
const Block* LoopIndex::block(BlockId id) const {
  const Entry* e = find(id);
  return e == nullptr ? nullptr : e->stmt.as<Block>();
}
const Block* LoopIndex::block(std::string_view name) const {
  for (const Block* b : blocks_) {
    if (b->name == name) return b;
  }
  return nullptr;
}

Stmt LoopIndex::parent(LoopId id) const {
  const Entry* e = find(id);
  return e == nullptr ? Stmt() : e->parent;
}
Stmt LoopIndex::parent(BlockId id) const {
  const Entry* e = find(id);
  return e == nullptr ? Stmt() : e->parent;
}
int LoopIndex::position(LoopId id) const {
  const Entry* e = find(id);
  return e == nullptr ? -1 : e->position;
}
int LoopIndex::position(BlockId id) const {
  const Entry* e = find(id);
  return e == nullptr ? -1 : e->position;
}
int LoopIndex::order(LoopId id) const { return entry_of(id); }
int LoopIndex::order(BlockId id) const { return entry_of(id); }

std::vector<const Loop*> LoopIndex::loops_around(int32_t entry) const {
  std::vector<const Loop*> out;
  if (entry < 0) return out;
  for (int32_t i = entries_[static_cast<std::size_t>(entry)].outer; i >= 0;) {
    const Entry& e = entries_[static_cast<std::size_t>(i)];
    const Loop* loop = e.stmt.as<Loop>();
    if (loop == nullptr) break;
    out.push_back(loop);
    i = e.outer;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

const Block* LoopIndex::block_around(int32_t entry) const {
  if (entry < 0) return nullptr;
  for (int32_t i = entries_[static_cast<std::size_t>(entry)].outer; i >= 0;) {
    const Entry& e = entries_[static_cast<std::size_t>(i)];
    if (const Block* b = e.stmt.as<Block>()) return b;
    i = e.outer;
  }
  return nullptr;
}

std::vector<const Loop*> LoopIndex::enclosing_loops(BlockId id) const {
  return loops_around(entry_of(id));
}
std::vector<const Loop*> LoopIndex::enclosing_loops(LoopId id) const {
  return loops_around(entry_of(id));
}
const Block* LoopIndex::parent_block(BlockId id) const { return block_around(entry_of(id)); }
const Block* LoopIndex::parent_block(LoopId id) const { return block_around(entry_of(id)); }

std::vector<const Block*> LoopIndex::child_blocks(BlockId id) const {
  std::vector<const Block*> out;
  int32_t first = 0;
  auto last = static_cast<int32_t>(entries_.size());
  if (id.valid()) {
    const Entry* e = find(id);
    if (e == nullptr) return out;
    first = entry_of(id) + 1;
    last = e->end;
  }
  for (int32_t i = first; i < last;) {
    const Entry& e = entries_[static_cast<std::size_t>(i)];
    const Block* b = e.stmt.as<Block>();
    if (b != nullptr) out.push_back(b);
    i = b != nullptr ? e.end : i + 1;
  }
  return out;
}

std::vector<const Block*> LoopIndex::blocks_under(LoopId id) const {
  std::vector<const Block*> out;
  const Entry* loop = find(id);
  if (loop == nullptr) return out;
  for (int32_t i = entry_of(id) + 1; i < loop->end;) {
    const Entry& e = entries_[static_cast<std::size_t>(i)];
    const Block* b = e.stmt.as<Block>();
    if (b != nullptr) out.push_back(b);
    i = b != nullptr ? e.end : i + 1;
  }
  return out;
}

const Loop* LoopIndex::lowest_common_loop(BlockId a, BlockId b) const {
  const std::vector<const Loop*> x = enclosing_loops(a);
  const std::vector<const Loop*> y = enclosing_loops(b);
  const Loop* common = nullptr;
  for (std::size_t i = 0; i < x.size() && i < y.size() && x[i] == y[i]; ++i) common = x[i];
  return common;
}

VarRanges ranges_around(const Program& program, const LoopIndex& index, BlockId block) {
  VarRanges ranges(program.domain());
  const Block* target = index.block(block);
  if (target != nullptr) add_ranges(program.root(), target, ranges);
  return ranges;
}

VarRanges ranges_inside(const Program& program, const LoopIndex& index, LoopId loop) {
  VarRanges ranges(program.domain());
  const Loop* target = index.loop(loop);
  if (target == nullptr) return ranges;
  add_ranges(program.root(), target, ranges);
  ranges.bind(target->var, target->extent);
  return ranges;
}

void bind_iters(VarRanges& ranges, const Block& block) {
  for (const IterVar& iter : block.iters) ranges.bind(iter.var, iter.extent);
}

VarRanges ranges_of(const Block& block) {
  VarRanges ranges;
  bind_iters(ranges, block);
  return ranges;
}

}  // namespace prunerc::ir
