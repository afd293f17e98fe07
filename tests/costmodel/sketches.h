// Sketches over tile parameters as text, and their instances.
#ifndef PRUNERC_TESTS_COSTMODEL_SKETCHES_H_
#define PRUNERC_TESTS_COSTMODEL_SKETCHES_H_

#include "ir/program.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace prunerc::costmodel {

struct NamedSketch {
  std::string name;
  ir::Program program;
  std::string target;
};

/// An unscheduled product of n x n matrices.
ir::Program matmul(int64_t n);
/// A product on a CPU: tasks, a packed panel, a register tile; tiles that divide.
ir::Program cpu_gemm(int64_t m, int64_t n, int64_t k);
/// The same with tiles that cover, under guards, and a fused epilogue.
ir::Program cpu_gemm_covering(int64_t m, int64_t n, int64_t k);
/// A convolution with a padded input, in NCHW.
ir::Program cpu_conv2d(int64_t channels, int64_t size, int64_t outputs);
/// A product on a GPU: virtual threads, threads and registers; operands fetched by all threads into
/// shared memory.
ir::Program gpu_gemm(int64_t m, int64_t n, int64_t k);
/// A convolution on a GPU in the same structure.
ir::Program gpu_conv2d(int64_t channels, int64_t size, int64_t outputs);

std::vector<NamedSketch> all_sketches();

/// Numbers for the parameters, then simplified.
ir::Program instance(const ir::Program& sketch, std::span<const int64_t> values);

/// Whether some block of it has a guard.
bool is_guarded(const ir::Program& program);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_TESTS_COSTMODEL_SKETCHES_H_
