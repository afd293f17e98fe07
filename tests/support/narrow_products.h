// Products and convolutions of bytes and of bf16, as text, for instructions of processors; and whether these are in
// a loop.
#ifndef PRUNERC_TESTS_SUPPORT_NARROW_PRODUCTS_H_
#define PRUNERC_TESTS_SUPPORT_NARROW_PRODUCTS_H_

#include "ir/interp/tensor.h"

#include <string>
#include <vector>

namespace prunerc::testing {

struct NarrowTypes {
  const char *a, *b, *c;
};
inline constexpr NarrowTypes kU8S8 = {"u8", "i8", "i32"}, kS8S8 = {"i8", "i8", "i32"},
                             kS8U8 = {"i8", "u8", "i32"}, kU8U8 = {"u8", "u8", "i32"},
                             kHalves = {"bf16", "bf16", "f32"};

struct NarrowShape {
  int m, n, k;
};

/// C[i,j] += A[i,k]*B[k,j]; how an operand lies as given, in M, N, K and vi, vj, vk.
std::string narrow_product(const NarrowTypes& types, const NarrowShape& shape,
                           const std::string& a = "M K | vi, vk",
                           const std::string& b = "K N | vk, vj", bool is_const = true);
/// The same for each of `batch` pairs of matrices.
std::string narrow_batch(const NarrowTypes& types, int batch, const NarrowShape& shape);

/// Of a square map, channels last, without a border; `width` is that of the result.
struct NarrowConvolution {
  int width, channels, filters;
  int window = 1, stride = 1;
};
std::string narrow_convolution(const NarrowTypes& types, const NarrowConvolution& shape);

/// Seven by seven pixels, each multiplied alone; the result is u8 of a scaled sum.
std::string requantized_pixels();

/// Sets some elements of A and B, the inputs of a narrow_product of bf16, to infinities and NaN: near the ends and in the middle.
void set_non_finite(std::vector<ir::Tensor>* inputs);
/// The same elements, any NaN being equal to any other.
bool has_same_values(const ir::Tensor& a, const ir::Tensor& b);

/// Most instructions whose names begin so between a label of the assembly and the next branch.
int most_in_a_loop(const std::string& assembly, const std::string& name);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_NARROW_PRODUCTS_H_
