#include "codegen/lower/gpu.h"
#include "codegen/lower/homes.h"
#include "codegen/lower/kernel.h"
#include "codegen/lower/util.h"
#include "ir/map.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>
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
  bool found = false;
  walk(
      s,
      [&](Stmt x) {
        const Loop* loop = x.as<Loop>();
        if (loop != nullptr && is_lane_axis(loop->loop_kind)) {
          found = found || touches(loop->body, id);
          return false;
        }
        return !found;
      },
      [](Expr) {});
  return found;
}

// Gives a buffer that the threads of a row share one copy per row: leading dimensions for the
// thread loops around its home.
//     for y bind(thread.y) { for x bind(thread.x) { T[x] = .. }  for x { .. T[0] } }  ~>  T[y, x]
class RowCopies {
 public:
  RowCopies(IrBuilder& b, BufferId id, std::vector<const Loop*> rows)
      : b_(b), id_(id), rows_(std::move(rows)) {
    Buffer buffer = b_.buffer(id);
    std::vector<Expr> shape;
    for (const Loop* row : rows_) shape.push_back(row->extent);
    shape.insert(shape.end(), buffer.shape.begin(), buffer.shape.end());
    buffer.shape = b_.copy(shape);
    if (buffer.scope != Scope::kLocal) buffer.scope = Scope::kShared;
    b_.set_buffer(buffer);
  }

  Stmt run(Stmt s) {
    if (!s.defined()) return s;
    const Block* block = s.as<Block>();
    if (block != nullptr && touches(s, id_)) return in_block(*block);
    return map_children(
        b_, s, [&](Stmt child) { return run(child); }, [](Expr e) { return e; });
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

  Stmt rewrite(Stmt s) {
    return map_indices(b_, s, {id_}, [&](std::span<const Expr> indices) {
      std::vector<Expr> out = row_iters_;
      out.insert(out.end(), indices.begin(), indices.end());
      return out;
    });
  }

  IrBuilder& b_;
  BufferId id_;
  std::vector<const Loop*> rows_;
  std::vector<Expr> row_iters_;  // of the block at hand
};

// The shared buffers whose home is inside of thread loops move out of these.
Program with_row_copies(const Program& program) {
  IrBuilder b(program);
  Stmt root = program.root();
  for (const auto& [id, loops] : find_homes(program)) {
    std::vector<const Loop*> rows;
    for (const Loop* loop : loops) {
      if (is_lane_axis(loop->loop_kind)) rows.push_back(loop);
    }
    if (rows.empty() || !touched_by_threads(loops.back()->body, id)) continue;
    root = RowCopies(b, id, std::move(rows)).run(root);
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
      return map_children(
          b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
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
    auto both = [&](Expr x) { return condition.defined() ? b_.logical_and(condition, x) : x; };
    return b_.seq({push(row, both(branch.condition), branch.then_body),
                   push(row, both(b_.logical_not(branch.condition)), branch.else_body)});
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

Result<Program> distribute_threads(const Program& program, const Target&) {
  const Program with_copies = with_row_copies(program);
  return Distribution(with_copies).run(with_copies);
}

}  // namespace prunerc::codegen
