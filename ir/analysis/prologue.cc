#include "ir/analysis/prologue.h"

#include "ir/builder.h"
#include "ir/visit.h"

#include <algorithm>
#include <set>

namespace prunerc::ir {
namespace {

struct Touched {
  std::set<BufferId> reads, writes;
};

Touched touched_by(Stmt stmt) {
  Touched out;
  const auto in_expr = [&](Expr e) {
    walk(e, [&](Expr part) {
      if (const Load* load = part.as<Load>()) out.reads.insert(load->buffer);
      return true;
    });
  };
  walk(
      stmt,
      [&](Stmt part) {
        if (const Store* store = part.as<Store>()) out.writes.insert(store->buffer);
        return true;
      },
      in_expr);
  return out;
}

/// Members leave until what is left is closed.
class Search {
 public:
  explicit Search(const Program& program) : program_(program) {
    for (Stmt stmt : root_stmts(program)) stmts_.push_back(touched_by(stmt));
    is_member_.assign(stmts_.size(), true);
  }

  Prologue run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < stmts_.size(); ++i) {
        if (!is_member_[i] || may_stay(i)) continue;
        is_member_[i] = false;
        changed = true;
      }
    }
    Prologue out;
    std::set<BufferId> written, results;
    for (std::size_t i = 0; i < stmts_.size(); ++i) {
      if (!is_member_[i]) continue;
      out.stmts.push_back(i);
      written.insert(stmts_[i].writes.begin(), stmts_[i].writes.end());
    }
    for (std::size_t i = 0; i < stmts_.size(); ++i) {
      if (is_member_[i]) continue;
      for (BufferId id : stmts_[i].reads) {
        if (written.count(id) > 0) results.insert(id);
      }
    }
    out.results.assign(results.begin(), results.end());
    return out;
  }

 private:
  bool may_stay(std::size_t i) const {
    for (BufferId id : stmts_[i].reads) {
      const Buffer& buffer = program_.buffer(id);
      if (buffer.role == BufferRole::kOutput) return false;
      if (buffer.role == BufferRole::kInput && !buffer.is_const) return false;
    }
    for (BufferId id : stmts_[i].writes) {
      if (program_.buffer(id).role != BufferRole::kIntermediate) return false;
    }
    for (std::size_t other = 0; other < stmts_.size(); ++other) {
      if (is_member_[other]) continue;
      const Touched& repeated = stmts_[other];
      for (BufferId id : stmts_[i].reads) {
        if (repeated.writes.count(id) > 0) return false;
      }
      for (BufferId id : stmts_[i].writes) {
        if (repeated.writes.count(id) > 0) return false;
        // What stands before it reads an earlier value.
        if (other < i && repeated.reads.count(id) > 0) return false;
      }
    }
    return true;
  }

  const Program& program_;
  std::vector<Touched> stmts_;
  std::vector<bool> is_member_;
};

}  // namespace

std::vector<Stmt> root_stmts(const Program& program) {
  if (!program.root().defined()) return {};
  if (const Seq* seq = program.root().as<Seq>()) return {seq->stmts.begin(), seq->stmts.end()};
  return {program.root()};
}

Prologue find_prologue(const Program& program) {
  const bool has_const = std::any_of(program.params().begin(), program.params().end(),
                                     [&](BufferId id) { return program.buffer(id).is_const; });
  return has_const ? Search(program).run() : Prologue();
}

Program without_prologue(const Program& program) {
  const Prologue prologue = find_prologue(program);
  if (prologue.stmts.empty()) return program;
  const std::vector<Stmt> all = root_stmts(program);
  std::vector<Stmt> kept;
  std::set<BufferId> read;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::binary_search(prologue.stmts.begin(), prologue.stmts.end(), i)) continue;
    kept.push_back(all[i]);
    read.merge(touched_by(all[i]).reads);
  }
  IrBuilder b(program);
  const auto turn = [&](BufferId id, BufferRole role, bool is_const) {
    Buffer buffer = program.buffer(id);
    buffer.role = role;
    buffer.is_const = is_const;
    b.set_buffer(buffer);
  };
  std::vector<BufferId> inputs, outputs;
  for (BufferId id : program.params()) {
    const Buffer& buffer = program.buffer(id);
    if (buffer.is_const && read.count(id) == 0) {
      turn(id, BufferRole::kIntermediate, false);
      continue;
    }
    (buffer.role == BufferRole::kInput ? inputs : outputs).push_back(id);
  }
  for (BufferId id : prologue.results) {
    turn(id, BufferRole::kInput, true);
    inputs.push_back(id);
  }
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  b.set_params(inputs);
  return b.finish(b.seq(kept));
}

Program repeated_part(const Program& program, const Target& target) {
  return target.kind == TargetKind::kCpu ? without_prologue(program) : program;
}

}  // namespace prunerc::ir
