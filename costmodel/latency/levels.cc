#include "costmodel/latency/levels.h"

#include <algorithm>

namespace prunerc::costmodel {
namespace {

ir::Target registers_of(int64_t vector_bytes) {
  ir::Target out;
  out.vector_bytes = vector_bytes;
  return out;
}

}  // namespace

CpuLevels::CpuLevels(const NestTable& table, const Nest& nest, int64_t vector_bytes,
                     double line_bytes)
    : table_(table),
      nest_(nest),
      line_bytes_(line_bytes),
      tile_(find_tile(nest, registers_of(vector_bytes))) {
  for (const NestAccess& access : nest.accesses) {
    if (access.is_write) result_ = access.buffer;
    if (std::find(buffers_.begin(), buffers_.end(), access.buffer) == buffers_.end()) {
      buffers_.push_back(access.buffer);
    }
  }
  for (const NestLoop& loop : nest.loops) {
    iterations_ *= loop.extent;
    if (loop.kind == ir::LoopKind::kParallel) tasks_ *= loop.extent;
  }
  find_visit();
}

Sym CpuLevels::lanes() const { return has_lanes() ? nest_.loops[vector_loop()].extent : Sym(1); }

double CpuLevels::element_bytes(ir::BufferId id) const {
  return static_cast<double>(ir::byte_size(table_.program().buffer(id).dtype));
}

Sym CpuLevels::moves(ir::BufferId id, std::size_t loop) const {
  Sym out = 0;
  for (const NestAccess& access : nest_.accesses) {
    if (access.buffer == id) out = logical_or(out, access.moves[loop]);
  }
  return out;
}

void CpuLevels::find_visit() {
  visit_.assign(nest_.loops.size(), Sym(0));
  Sym is_open = 1;
  for (std::size_t i = nest_.loops.size(); i-- > 0;) {
    if (has_lanes() && i == vector_loop()) continue;
    const Sym is_still =
        logical_or(equal(nest_.loops[i].extent, 1), logical_not(moves(result_, i)));
    is_open = logical_and(is_open, logical_or(tile_.inside[i], is_still));
    visit_[i] = is_open;
  }
}

Sym CpuLevels::visit_instances() const {
  Sym out = tile_.vectors;
  for (std::size_t i = 0; i < visit_.size(); ++i) {
    out *= select(visit_[i], nest_.loops[i].extent, 1);
  }
  return out;
}

Sym CpuLevels::footprint(ir::BufferId id, const std::vector<Sym>& counts) const {
  Sym out = has_lanes() ? select(moves(id, vector_loop()), tile_.vectors, 1) : Sym(1);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    out *= select(logical_and(counts[i], moves(id, i)), nest_.loops[i].extent, 1);
  }
  return out;
}

Sym CpuLevels::held(ir::BufferId id) const {
  std::vector<Sym> counts;
  for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
    counts.push_back(logical_and(tile_.inside[i], moves(result_, i)));
  }
  return footprint(id, counts);
}

Sym CpuLevels::visited(ir::BufferId id) const { return footprint(id, visit_); }

TaskTile CpuLevels::tile_at(ir::BufferId id, std::size_t depth) const {
  const std::vector<Sym>& shape = table_.declared_shape(id);
  Sym rows = 1, run = element_bytes(id), span = run, is_run = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    Sym different = 1, reach = 1;
    for (const NestAccess& access : nest_.accesses) {
      if (access.buffer != id) continue;
      different = max(different, access.facts[d].distinct[depth]);
      reach = max(reach, access.facts[d].reach[depth]);
    }
    different = min(different, shape[d]);
    reach = min(reach, shape[d]);
    run *= select(is_run, different, 1);
    span *= select(is_run, reach, 1);
    rows *= select(is_run, 1, different);
    is_run = logical_and(is_run, less_equal(shape[d], different));
  }
  TaskTile out{rows * run, rows * ceil(span / line_bytes_) * line_bytes_, 1};
  for (std::size_t i = 0; i < depth; ++i) out.outside *= nest_.loops[i].extent;
  return out;
}

TaskTile CpuLevels::task_tile(ir::BufferId id) const {
  TaskTile out = tile_at(id, 0);
  for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
    if (nest_.loops[i].kind != ir::LoopKind::kParallel) continue;
    const Sym is_task = less(1, nest_.loops[i].extent);
    const TaskTile inside = tile_at(id, i + 1);
    out.bytes = select(is_task, inside.bytes, out.bytes);
    out.line_bytes = select(is_task, inside.line_bytes, out.line_bytes);
    out.outside = select(is_task, inside.outside, out.outside);
  }
  return out;
}

Sym CpuLevels::live_bytes(ir::BufferId id) const {
  Sym all = element_bytes(id);
  for (const Sym extent : table_.shape(id)) all *= extent;
  return min(all, task_tile(id).bytes);
}

Sym CpuLevels::is_global(ir::BufferId id) const {
  if (table_.program().buffer(id).role != ir::BufferRole::kIntermediate) return 1;
  const auto alloc_depth = static_cast<std::size_t>(table_.alloc_depth(id));
  Sym lives = 1, tasks_inside = 1;
  for (std::size_t i = 0; i < nest_.loops.size(); ++i) {
    const NestLoop& loop = nest_.loops[i];
    if (i < alloc_depth) lives *= loop.extent;
    if (i >= alloc_depth && loop.kind == ir::LoopKind::kParallel) tasks_inside *= loop.extent;
  }
  return logical_not(logical_and(less(1, lives), less_equal(tasks_inside, 1)));
}

}  // namespace prunerc::costmodel
