// Operators for tests of whole programs: all kinds that the language has, small and with odd
// shapes.
#ifndef PRUNERC_TESTS_SUPPORT_OPERATORS_H_
#define PRUNERC_TESTS_SUPPORT_OPERATORS_H_

#include "ir/program.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::testing {

struct NamedProgram {
  std::string name;
  ir::Program program;
};

/// At least 50: of the standard library nearly every operator but those of algebra.prn, with odd
/// extents, strides, dilations and groups, and operators of several results, fused epilogues and passes of
/// their own. Aborts if one does not compile.
std::vector<NamedProgram> operator_gallery();

/// Sums of products that tensor instructions can compute, each in f16, bf16, f32 or i8: several
/// tiles large, with ragged, prime and small extents, batches, any order of dimensions, padding,
/// strides, stages before and after.
std::vector<NamedProgram> tensor_operators();

/// Two products that tensor instructions can compute and rows between them, as attention: whole tiles and ragged,
/// masked, grouped, biased, of f16 and bf16.
std::vector<NamedProgram> chained_operators();

/// The same in f32, for CUDA cores.
std::vector<NamedProgram> single_chained_operators();

/// The same over keys in tiles, of f16, bf16 (masked) and f32 (`split_single_attention`): what tiles leave in memory is combined
/// behind.
std::vector<NamedProgram> split_chained_operators();
/// Of both kinds such as warpgroups multiply: rows in tiles of 64, keys that 16 divides.
std::vector<NamedProgram> group_chained_operators();
std::vector<NamedProgram> group_split_chained_operators();
/// The text of the latter two, `split_attention` first.
std::string_view split_chained_text();

/// Operators for the plain cores of a GPU at extents of some tiles each, odd ones and such that
/// tiles divide. The interpreter still takes less than a second for each.
std::vector<NamedProgram> large_operators();

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_OPERATORS_H_
