// Products by wgmma on every layout of operands that TMA can make, as kernels of one warpgroup.
#ifndef PRUNERC_TESTS_RUNTIME_CUDA_HOST_PRODUCTS_H_
#define PRUNERC_TESTS_RUNTIME_CUDA_HOST_PRODUCTS_H_

#include "codegen/artifact.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::testing {

/// D[64, n] = A[64, k] * B[k, n] by one warpgroup. An operand is K-major (its k elements lie next
/// to each other) or not; boxes of TMA are one swizzle wide.
struct Product {
  ir::DType dtype = ir::DType::kF16;
  const char* type = "pr_f16";
  int64_t n = 64;
  int64_t k = 64;
  int64_t swizzle = 128;
  bool a_k_major = true;
  bool b_k_major = true;
};

/// rows x k, stored with k or with rows next to each other.
struct Operand {
  std::vector<int> values;
  std::string bytes;
};

Operand make_operand(const Product& p, int64_t rows, bool k_major, uint64_t seed);

/// kCudaSource for sm_90a: parameters A, B and C (i32 for i8, else f32).
codegen::Artifact make_product(const Product& p);

/// All that wgmma has: types, swizzles, orders, widths.
std::vector<Product> all_products();

/// C for these operands.
std::vector<int> multiply(const Product& p, const Operand& a, const Operand& b);
/// C as whole numbers.
std::vector<int> decode_result(const Product& p, const std::string& bytes);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_RUNTIME_CUDA_HOST_PRODUCTS_H_
