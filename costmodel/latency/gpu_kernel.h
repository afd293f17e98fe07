// What the kernels of a program, or of every candidate of a sketch, ask of a GPU: blocks, threads,
// shared memory, registers.
#ifndef PRUNERC_COSTMODEL_LATENCY_GPU_KERNEL_H_
#define PRUNERC_COSTMODEL_LATENCY_GPU_KERNEL_H_

#include "costmodel/latency/nest.h"
#include "costmodel/latency/symbols.h"
#include "ir/target.h"

#include <array>
#include <string>
#include <vector>

namespace prunerc::costmodel {

/// One kernel: the nests under one outermost loop with a thread axis.
struct GpuKernel {
  ir::LoopId loop;
  std::string name;  // of the last block in it
  std::vector<std::size_t> nests;
  std::array<Sym, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  Sym vthreads = 1;
  Sym cluster = 1;     // blocks that start together
  Sym smem_bytes = 0;  // of a block: the most that lives at one time
  Sym registers = 0;   // of a thread
  Sym blocks() const { return grid[0] * grid[1] * grid[2]; }
  Sym threads() const { return block[0] * block[1] * block[2]; }
};

/// Of a loop that stands for a tensor instruction: the threads that execute it together; 1 for
/// others.
double tensor_lanes(const ir::Loop& loop);
/// Lanes that hold a buffer between them, since a tensor instruction reads or makes it in registers; else 1.
double fragment_lanes(const NestTable& table, ir::BufferId buffer);
/// Of a tensor instruction's nest: two factors and sums, not a load, a store or zeros. Whole numbers count as well.
inline bool is_product(const Nest& nest) { return nest.accesses.size() >= 3; }
/// Does an instruction of one warp multiply bytes of this fragment that lie across K? A lane's four then come one by one.
bool packs_bytes(const NestTable& table, ir::BufferId fragment);
/// Depth of the outermost loop that is part of a tensor instruction; the number of loops if none.
std::size_t tensor_depth(const Nest& nest);

/// Elements that an access touches while the loops that are kept run: no more than the box of its
/// subscripts has, which may have gaps, and no more than there are iterations.
Sym distinct_elements(const NestTable& table, const Nest& nest, const NestAccess& a,
                      const std::vector<bool>& is_kept);

/// In execution order. Shared memory and registers are bounds from below: what schedule's check of
/// the instance finds is never less, so no candidate is refused that it would let pass.
std::vector<GpuKernel> gpu_kernels(const NestTable& table);

/// The limits that the instances of a sketch must meet on the target.
std::vector<LatencyLimit> gpu_limits(const std::vector<GpuKernel>& kernels,
                                     const ir::Target& target);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_GPU_KERNEL_H_
