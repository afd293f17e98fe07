// A sum of products in the shape of a matrix product with padded operands: what rules for tensor
// instructions start from.
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_MATRIX_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_MATRIX_H_

#include "ir/tensor/intrinsic.h"
#include "schedule/mapping/mapping.h"
#include "search/space/sketch_rule/rule.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::search {

/// A factor: [outside.., m, k] or [outside.., k, n], in the order in which its elements lie; but
/// bytes that are turned as rows along k.
struct MatrixOperand {
  ir::BlockId copy;    // writes it, padded; fused and inlined stages are in here
  bool k_last = true;  // rows run along k
  int rank = 2;
  int64_t widest = 1;  // elements that one vector of a fetch can have
  bool turns = false;  // bytes that lie across k: vectors of a fetch, too, and it turns them
};

/// C[outside.., m, n] += A[outside.., m, k]*B[outside.., k, n], a loop for each variable.
struct MatrixProduct {
  ir::BlockId block;
  const ir::TensorIntrinsic* tensor = nullptr;
  std::array<int64_t, 3> extents = {1, 1, 1};  // m, n, k as they are wanted, without padding
  std::vector<ir::LoopId> spatial, reduce;     // outside
  ir::LoopId m, n, k;
  MatrixOperand a, b;
  /// The elementwise block that takes results out: a consumer, or a copy; its variables along m and
  /// n.
  ir::BlockId out;
  std::size_t out_m = 0, out_n = 1;
  /// Where the result's variables are fused: the index map that does so, and their extents.
  std::string result_map;
  std::vector<int64_t> result_extents;
};

/// Mappings worth a sketch of their own, best first: at most `most`.
std::vector<schedule::TensorMapping> matrix_mappings(const schedule::Schedule& schedule,
                                                     ir::BlockId block, std::string_view intrinsic,
                                                     std::size_t most);

/// Gives the block one variable for each of m, n and k, and those of the mapping outside: where
/// variables are fused, operands are read and written through copies in that shape. Stages around
/// them stay blocks, for inlining. Errors: those of the primitives; the schedule may then be half
/// way.
Result<MatrixProduct> to_matrix_product(SketchContext& context, ir::BlockId block,
                                        const schedule::TensorMapping& mapping,
                                        bool turns_bytes = true);

/// Rounds m, n and k up to multiples: operands get copies that are padded with 0, into which the copies of before
/// are inlined. No multiple may be 1, unless those of m and k are: then A stays as it is. Results leave through the one elementwise
/// consumer if there is such. Errors: as above.
Result<void> pad_operands(SketchContext& context, const schedule::TensorMapping& mapping,
                          const std::array<schedule::Int, 3>& multiples, MatrixProduct* product);

/// The block's variable that is the buffer's subscript in that dimension, where it is read or written. Regions would not
/// do: a variable of extent 1 is 0 there.
std::optional<std::size_t> variable_at(const ir::Block& block, ir::BufferId buffer,
                                       std::size_t dim);

/// Where the block reads the operand that `copy` writes; -1 if it does not.
int read_index(const schedule::Schedule& schedule, ir::BlockId block, ir::BlockId copy);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_MATRIX_H_
