// Matrix products of f16, bf16 and f32 that are worth a warpgroup: several tiles of K, so that rings
// turn around; odd, ragged, thin, transposed, batched, with epilogues.
#ifndef PRUNERC_TESTS_SUPPORT_HALF_PRODUCTS_H_
#define PRUNERC_TESTS_SUPPORT_HALF_PRODUCTS_H_

#include "tests/support/operators.h"

#include <vector>

namespace prunerc::testing {

/// Names begin with the kind of product: "gemm_nt_bf16 M=64 ..". Aborts if one is no program.
std::vector<NamedProgram> half_products();
/// The same of f32, for targets that allow tf32.
std::vector<NamedProgram> single_products();

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_HALF_PRODUCTS_H_
