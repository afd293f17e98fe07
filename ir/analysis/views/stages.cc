#include "ir/analysis/views/stages.h"

#include "ir/analysis/prologue.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

// A plain nest: serial loops, one a variable and in their order, around a block without a guard.
std::optional<Stage> stage_of(Stmt stmt) {
  std::vector<const Loop*> loops;
  while (const Loop* loop = stmt.as<Loop>()) {
    if (loop->loop_kind != LoopKind::kSerial || !loop->attrs.empty()) return std::nullopt;
    loops.push_back(loop);
    stmt = loop->body;
  }
  const Block* block = stmt.as<Block>();
  if (block == nullptr || block->guard.defined() || block->iters.size() != loops.size())
    return std::nullopt;
  Stage stage;
  stage.block = *block;
  bool reduces = false;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const IterVar& iter = block->iters[i];
    const Var* bound = iter.binding.as<Var>();
    if (bound == nullptr || bound->id != loops[i]->var->id || !iter.extent.as<IntImm>())
      return std::nullopt;
    if (iter.kind == IterKind::kOpaque) return std::nullopt;
    if (reduces && iter.kind == IterKind::kSpatial) return std::nullopt;
    reduces = iter.kind == IterKind::kReduce;
    stage.iters.push_back(iter);
  }
  return stage;
}

class Mover {
 public:
  Mover(IrBuilder& b, const Stage& stage, BufferId buffer, const MoveFn& move)
      : b_(b), stage_(stage), buffer_(buffer), move_(move) {}

  Expr expr(Expr e) {
    const Expr inner = map_children(b_, e, [this](Expr part) { return expr(part); });
    const Load* load = inner.as<Load>();
    if (load == nullptr || load->buffer != buffer_) return inner;
    const Element moved = move_(load->indices, stage_);
    return b_.load(moved.buffer, moved.indices);
  }

  Stmt stmt(Stmt s) {
    if (!s.defined()) return s;
    const Stmt inner = map_children(
        b_, s, [this](Stmt part) { return stmt(part); }, [this](Expr part) { return expr(part); });
    const Store* store = inner.as<Store>();
    if (store == nullptr || store->buffer != buffer_) return inner;
    const Element moved = move_(store->indices, stage_);
    return b_.store(moved.buffer, moved.indices, store->value);
  }

 private:
  IrBuilder& b_;
  const Stage& stage_;
  BufferId buffer_;
  const MoveFn& move_;
};

}  // namespace

bool Stage::reduces() const { return !iters.empty() && iters.back().kind == IterKind::kReduce; }

std::optional<std::size_t> Stage::spatial_in(Expr e) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < iters.size(); ++i) {
    if (iters[i].kind != IterKind::kSpatial || !mentions(e, iters[i].var->id)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

std::size_t Stages::num_writers(BufferId buffer) const {
  std::size_t count = 0;
  for (const Stage& stage : list) {
    const std::vector<const Store*> stores = stores_of(stage.block.body);
    count += std::any_of(stores.begin(), stores.end(),
                         [&](const Store* store) { return store->buffer == buffer; });
  }
  return count;
}

std::size_t Stages::writer(BufferId buffer) const {
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const Store* store : stores_of(list[i].block.body)) {
      if (store->buffer == buffer) return i;
    }
  }
  return list.size();
}

bool Stages::reads(const Stage& stage, BufferId buffer) const {
  for (const Stmt part : {stage.block.init, stage.block.body}) {
    for (const Load* load : loads_of(part)) {
      if (load->buffer == buffer) return true;
    }
  }
  return false;
}

std::optional<Stages> stages_of(const Program& program) {
  Stages stages(program);
  for (Stmt stmt : root_stmts(program)) {
    std::optional<Stage> stage = stage_of(stmt);
    if (!stage) return std::nullopt;
    stages.list.push_back(std::move(*stage));
  }
  return stages;
}

void move_elements(Stages& stages, BufferId buffer, const MoveFn& move) {
  for (Stage& stage : stages.list) {
    Mover mover(stages.b, stage, buffer, move);
    const Stmt init = mover.stmt(stage.block.init), body = mover.stmt(stage.block.body);
    if (init.is(stage.block.init) && body.is(stage.block.body)) continue;
    stage.block.init = init;
    stage.block.body = body;
    stage.is_changed = stages.is_changed = true;
  }
}

std::vector<const Load*> loads_of(Stmt stmt) {
  std::vector<const Load*> out;
  if (!stmt.defined()) return out;
  walk(
      stmt, [](Stmt) { return true; },
      [&](Expr e) {
        walk(e, [&](Expr part) {
          if (const Load* load = part.as<Load>()) out.push_back(load);
          return true;
        });
      });
  return out;
}

std::vector<const Store*> stores_of(Stmt stmt) {
  std::vector<const Store*> out;
  if (!stmt.defined()) return out;
  walk(
      stmt,
      [&](Stmt part) {
        if (const Store* store = part.as<Store>()) out.push_back(store);
        return true;
      },
      [](Expr) {});
  return out;
}

}  // namespace prunerc::ir
