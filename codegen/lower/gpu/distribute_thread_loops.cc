// Loop distribution: each thread loop stands around one phase.
// Before: thread loops hold several statements, some of them thread loops of another axis. After:
// nothing is left in a thread loop between which threads meet. What the threads of one row share
// gets a copy for each row first.
//     for y in 4 bind(thread.y) { for x in 8 bind(thread.x) { T[x] = A[y, x] }
//                                 for x in 8 bind(thread.x) { B[y, x] = T[7 - x] } }
// ~>  for y in 4 bind(thread.y) { for x in 8 bind(thread.x) { T[y, x] = A[y, x] } }
//     for y in 4 bind(thread.y) { for x in 8 bind(thread.x) { B[y, x] = T[y, 7 - x] } }
#include "codegen/lower/analysis/alloc_points.h"
#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/thread_axis.h"

#include <utility>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

bool touches(Stmt s, BufferId id) {
  return stored_buffers(s).count(id) != 0 || loaded_buffers(s).count(id) != 0;
}

// Is the buffer touched in a thread loop inside of s?
bool touched_by_threads(Stmt s, BufferId id) {
  return any_loop(
      s, [&](const Loop& loop) { return is_lane_axis(loop.loop_kind) && touches(loop.body, id); });
}

// Array expansion: a buffer that the threads of a row share gets one copy per row, by leading
// dimensions for the thread loops around its Alloc.
class ArrayExpansion {
 public:
  ArrayExpansion(IrBuilder& b, BufferId id, std::vector<const Loop*> rows)
      : b_(b), id_(id), rows_(std::move(rows)) {
    std::vector<Expr> extents;
    for (const Loop* row : rows_) extents.push_back(row->extent);
    add_leading_dims(b_, id, extents);
    Buffer buffer = b_.buffer(id);
    if (buffer.scope != Scope::kLocal) buffer.scope = Scope::kShared;
    b_.set_buffer(buffer);
  }

  Stmt run(Stmt s) {
    if (!s.defined()) return s;
    const Block* block = s.as<Block>();
    if (block != nullptr && touches(s, id_)) return in_block(*block);
    return map_stmts(b_, s, [&](Stmt child) { return run(child); });
  }

 private:
  Stmt in_block(const Block& block) {
    Block changed = block;
    std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
    row_iters_.clear();
    for (const Loop* row : rows_) {
      const Var* iter = b_.fresh_var(row->var->name);
      iters.push_back({iter, row->extent, IterKind::kSpatial, Expr(row->var)});
      row_iters_.push_back(Expr(iter));
    }
    changed.iters = b_.copy(iters);
    changed.reads = regions(block.reads);
    changed.writes = regions(block.writes);
    changed.init = rewrite(block.init);
    changed.body = rewrite(block.body);
    return b_.block(changed);
  }

  std::span<const Access> regions(std::span<const Access> accesses) {
    std::vector<Access> out(accesses.begin(), accesses.end());
    for (Access& access : out) {
      if (access.buffer != id_) continue;
      std::vector<Range> region;
      for (Expr iter : row_iters_) region.push_back({iter, b_.int_imm(1)});
      region.insert(region.end(), access.region.begin(), access.region.end());
      access.region = b_.copy(region);
    }
    return b_.copy(out);
  }

  Stmt rewrite(Stmt s) { return add_leading_indices(b_, s, {id_}, row_iters_); }

  IrBuilder& b_;
  BufferId id_;
  std::vector<const Loop*> rows_;
  std::vector<Expr> row_iters_;  // of the block at hand
};

// The shared buffers whose Alloc belongs inside of thread loops, so that it can move out of these.
Program expand_arrays(const Program& program) {
  IrBuilder b(program);
  Stmt root = program.root();
  for (const auto& [id, loops] : find_alloc_points(program)) {
    std::vector<const Loop*> rows;
    for (const Loop* loop : loops) {
      if (is_lane_axis(loop->loop_kind)) rows.push_back(loop);
    }
    if (rows.empty() || !touched_by_threads(loops.back()->body, id)) continue;
    root = ArrayExpansion(b, id, std::move(rows)).run(root);
  }
  return root.is(program.root()) ? program : b.finish(root);
}

// Moves thread loops inwards until each stands around one phase or one piece of code without
// threads. Iterations of a thread loop have nothing to do with each other but what phases exchange,
// so they may all do one step before any does the next.
class Distribution {
 public:
  explicit Distribution(const Program& program) : b_(program) {}

  Result<Program> run(const Program& program) {
    Stmt root = go(program.root());
    if (stuck_.valid()) {
      return error(Diag::kThreadKernel, stuck_,
                   "its length depends on the thread, and threads meet inside of it");
    }
    return b_.finish(root);
  }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const Loop* loop = s.as<Loop>();
    if (loop == nullptr || !is_lane_axis(loop->loop_kind)) {
      return map_stmts(b_, s, [&](Stmt child) { return go(child); });
    }
    if (is_phase(*loop)) return s;
    return push(*loop, {}, go(loop->body));
  }

  // s in iterations of `row`, where the condition (may be null) holds.
  Stmt push(const Loop& row, Expr condition, Stmt s) {
    if (!s.defined()) return s;
    if (!has_thread_loop(s)) return around(row, condition, s);
    if (const Seq* seq = s.as<Seq>()) {
      std::vector<Stmt> all;
      for (Stmt child : seq->stmts) all.push_back(push(row, condition, child));
      return b_.seq(all);
    }
    if (const If* branch = s.as<If>()) return push_branch(row, condition, *branch);
    const Loop* loop = s.as<Loop>();
    PRUNERC_CHECK(loop != nullptr, "blocks hold no threads, Allocs come later");
    if (is_lane_axis(loop->loop_kind)) return around(row, condition, s);
    if (mentions(loop->extent, row.var->id)) stuck_ = loop->id;
    Loop changed = *loop;
    changed.body = push(row, condition, loop->body);
    return b_.loop(changed);
  }

  Stmt push_branch(const Loop& row, Expr condition, const If& branch) {
    const Expr otherwise = b_.logical_not(branch.condition);
    return b_.seq({push(row, conjunction(b_, condition, branch.condition), branch.then_body),
                   push(row, conjunction(b_, condition, otherwise), branch.else_body)});
  }

  Stmt around(const Loop& row, Expr condition, Stmt s) {
    Loop copy = row;
    copy.body = condition.defined() ? guard_phases(b_, condition, s) : s;
    return clone_with_fresh_ids(b_, b_.loop(copy));
  }

  IrBuilder b_;
  LoopId stuck_;
};

}  // namespace

Result<Program> distribute_thread_loops(const Program& program, const Target&) {
  const Program expanded = expand_arrays(program);
  return Distribution(expanded).run(expanded);
}

}  // namespace prunerc::codegen
