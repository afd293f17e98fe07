// CpuLevels: a nest on a CPU in the three levels that GPUs have as registers, shared and global memory.
// Nothing is copied between them: they are found from the loops.
#ifndef PRUNERC_COSTMODEL_LATENCY_LEVELS_H_
#define PRUNERC_COSTMODEL_LATENCY_LEVELS_H_

#include "costmodel/latency/nest.h"
#include "costmodel/latency/tile.h"

#include <vector>

namespace prunerc::costmodel {

/// What one task touches of one buffer.
struct TaskTile {
  Sym bytes = 0;       // different ones
  Sym line_bytes = 0;  // of the lines that hold them
  Sym outside = 1;     // iterations around the task
};

/// L0 is the register tile and the loops around it that leave the result where it is: a visit. L1 is a
/// task, what the innermost parallel loop repeats, or all of the nest. L2 is all tasks. Borrows the table
/// and the nest.
class CpuLevels {
 public:
  /// `vector_bytes`, `line_bytes`: of a register and of what memory moves at once.
  CpuLevels(const NestTable& table, const Nest& nest, int64_t vector_bytes, double line_bytes);

  ir::BufferId result() const { return result_; }  // the buffer that is written
  /// In order of their first access.
  const std::vector<ir::BufferId>& buffers() const { return buffers_; }
  Sym iterations() const { return iterations_; }  // of the nest
  Sym tasks() const { return tasks_; }
  /// Extent of the vectorized loop; 1 without one.
  Sym lanes() const;

  /// Instances of a visit, all lanes of a vector being one.
  Sym visit_instances() const;
  /// Vectors or scalars of a buffer that a register tile holds, of loops that move the result.
  Sym held(ir::BufferId id) const;
  /// The same that a visit touches.
  Sym visited(ir::BufferId id) const;

  /// Elements as the program counts them.
  TaskTile task_tile(ir::BufferId id) const;
  /// Bytes that a task keeps at one time: an intermediate's memory is used again.
  Sym live_bytes(ir::BufferId id) const;
  /// Bytes of the whole nest, as TaskTile.
  TaskTile whole(ir::BufferId id) const { return tile_at(id, 0); }
  /// Truth: it comes from and goes to memory. What lives and dies within a task does not.
  Sym is_global(ir::BufferId id) const;

 private:
  bool has_lanes() const { return tile_.vector_loop >= 0; }
  std::size_t vector_loop() const { return static_cast<std::size_t>(tile_.vector_loop); }
  double element_bytes(ir::BufferId id) const;
  Sym moves(ir::BufferId id, std::size_t loop) const;
  void find_visit();
  Sym footprint(ir::BufferId id, const std::vector<Sym>& counts) const;
  TaskTile tile_at(ir::BufferId id, std::size_t depth) const;

  const NestTable& table_;
  const Nest& nest_;
  const double line_bytes_;
  Tile tile_;
  ir::BufferId result_;
  std::vector<ir::BufferId> buffers_;
  Sym iterations_ = 1, tasks_ = 1;
  std::vector<Sym> visit_;  // truth, by loop, the lanes aside
};

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_LEVELS_H_
