// Which block writes which elements of a buffer, for programs in the unscheduled form. Internal to
// element evaluation.
#ifndef PRUNERC_IR_INTERP_PRODUCERS_H_
#define PRUNERC_IR_INTERP_PRODUCERS_H_

#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <vector>

namespace prunerc::ir {

/// One index of a block's store: the iteration variable `iter` plus `offset`, or the constant
/// `offset` (iter -1).
struct StoreIndex {
  int iter = -1;
  int64_t offset = 0;
};

/// An iteration variable and the loop variable that it is bound to (-1: bound to 0).
struct ProducerIter {
  int32_t var = 0;
  int32_t loop_var = -1;
  int64_t extent = 1;
  bool is_reduce = false;
};

/// A block that is one store, with at most one store in its init, at points of its spatial
/// variables. Borrows from the program.
struct Producer {
  const Block* block = nullptr;
  const Store* body = nullptr;
  const Store* init = nullptr;  // null: none
  Expr term;  // the body adds this to the element; null: the body does something else
  std::vector<ProducerIter> iters;
  std::vector<StoreIndex> indices;
  int64_t num_reduce_points = 1;
  int order = 0;  // among all producers of the program
  std::vector<int32_t>
      loops;  // variables of the loops around it that run more than once, outermost first
};

/// The value that a body `x = x + value` adds; null if it is no such sum.
Expr added_term(const Store& body);

/// The producers of each buffer, in execution order, by BufferId. Errors: Unsupported.
Result<std::vector<std::vector<Producer>>> find_producers(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_PRODUCERS_H_
