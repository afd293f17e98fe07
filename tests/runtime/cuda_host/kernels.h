// Hand-written kernels of the kinds that code generation emits, as artifacts, with what they should
// compute.
#ifndef PRUNERC_TESTS_CUDA_HOST_KERNELS_H_
#define PRUNERC_TESTS_CUDA_HOST_KERNELS_H_

#include "codegen/artifact.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::testing {

/// A product of matrices: the text may be changed before it is compiled.
struct GemmCase {
  codegen::Artifact artifact;  ///< kCudaSource
  std::vector<std::string> inputs;
  std::vector<float> expected;
};

struct GemmShape {
  int64_t m, n, k;
};

GemmCase sgemm_tiled(GemmShape shape);
/// n is a multiple of 64, k of 32.
GemmCase hgemm_mma(GemmShape shape);
/// n and k are multiples of 8 and 4; `num_blocks` blocks share the tiles.
GemmCase hgemm_tma(GemmShape shape, int64_t num_blocks);

/// The product with a column of ones, by reductions over 1024 threads; shape.n is 1.
GemmCase row_sums(GemmShape shape);

/// The text of kernels/NAME.cu.
std::string kernel_text(std::string_view name);

/// Replaces the occurrence number `index` of `from`, which must exist.
std::string replace_nth(std::string text, std::string_view from, std::string_view to, int index);

/// The largest difference, in units of the size of a row's terms (sum of |a| |b|); infinite for
/// NaN.
double error_of(const GemmCase& gemm, const std::string& output);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_CUDA_HOST_KERNELS_H_
