// Program: the owning value. Everything reachable from root() lives in arenas that it keeps alive.
#ifndef PRUNERC_IR_PROGRAM_H_
#define PRUNERC_IR_PROGRAM_H_

#include "ir/buffer.h"
#include "ir/domain.h"
#include "ir/stmt.h"
#include "ir/support/arena.h"

#include <memory>
#include <span>
#include <string_view>

namespace prunerc::ir {

/// Next free id of each kind; ids are never reused within a program's history.
struct IdCounters {
  int32_t var = 0;
  int32_t loop = 0;
  int32_t block = 0;
};

struct ProgramNode {
  std::string_view name;
  std::span<const Buffer> buffers;   // by BufferId
  std::span<const BufferId> params;  // inputs in order, then outputs in order
  Domain domain;
  Stmt root;
  IdCounters next;
};

/// Owning, immutable; copying costs one reference count. Empty until assigned.
/// Threads: a Program may be read by any number of threads.
class Program {
 public:
  Program() = default;
  Program(const ProgramNode* node, std::shared_ptr<const Arena> arena)
      : node_(node), arena_(std::move(arena)) {}

  bool defined() const { return node_ != nullptr; }
  std::string_view name() const { return node_->name; }
  /// Null for a program that does nothing.
  Stmt root() const { return node_->root; }
  std::span<const BufferId> params() const { return node_->params; }
  std::span<const Buffer> buffers() const { return node_->buffers; }
  const Buffer& buffer(BufferId id) const {
    return node_->buffers[static_cast<std::size_t>(id.value)];
  }
  const Domain& domain() const { return node_->domain; }
  IdCounters next_ids() const { return node_->next; }
  const std::shared_ptr<const Arena>& arena() const { return arena_; }
  /// Same version of the same program (identity, O(1)).
  bool is(const Program& other) const { return node_ == other.node_; }

 private:
  const ProgramNode* node_ = nullptr;
  std::shared_ptr<const Arena> arena_;
};

/// Copies what is reachable into one fresh arena, so that a long chain of rewrites can be released.
/// Cost: O(size of the program).
Program compact(const Program& program);
/// The same without intermediate buffers that no statement touches; buffers are numbered anew.
Program compact_used(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_PROGRAM_H_
