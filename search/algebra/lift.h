// lift: a program as terms; lower: terms as a program.
#ifndef PRUNERC_SEARCH_ALGEBRA_LIFT_H_
#define PRUNERC_SEARCH_ALGEBRA_LIFT_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "search/algebra/term.h"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace prunerc::search::algebra {

/// A buffer that terms define: an output, or an intermediate that somebody reads as a buffer.
struct Output {
  ir::BufferId buffer;
  std::vector<Subscript> index;  // one per dimension; together they reach each element once
  TermId value = 0;
};

/// A nest that is no term (a gather, a scan, a tuple): it stays as it is, between buffers.
struct Kept {
  ir::Stmt nest;  // of Spec::program
  std::vector<ir::BufferId> reads, writes;
};

/// A buffer that the program gave to a term, and the axis of each dimension.
struct Named {
  ir::BufferId buffer;
  std::vector<AxisId> dims;
};

/// Which loop runs over which axis.
using LoopAxes = std::unordered_map<ir::LoopId, AxisId>;

/// A buffer that a rule adds.
struct NewBuffer {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  std::vector<AxisId> dims;
};

/// A program over terms. Buffer ids are those of `program`, and after them those of `new_buffers`.
struct Spec {
  ir::Program program;  // owns what `kept` borrows
  std::vector<Axis> axes;
  TermGraph graph;
  std::vector<Output>
      outputs;  // in program order; a load of an intermediate is one of these or of a kept nest
  std::vector<Kept> kept;
  std::unordered_map<TermId, Named> names;
  std::unordered_map<TermId, std::string> labels;  // of terms that stand for named ones
  std::vector<NewBuffer> new_buffers;
  /// Some condition or digit is of a position that small programs do not have: what is equal at small
  /// extents need not be equal.
  bool names_positions = false;
  int num_lifted = 0;  // reductions and operations in terms
  LoopAxes loops;      // of lifted nests of `program`
};

/// A new intermediate that holds `value` at the axes `dims`; loads of it may have any subscripts.
ir::BufferId add_buffer(Spec& spec, std::string name, std::vector<AxisId> dims, TermId value);
AxisId add_axis(Spec& spec, std::string name, int64_t extent, int64_t twin);

/// `program`, which is unscheduled, as terms. What is no term is kept; if nothing is a term, `outputs`
/// is empty. Intermediates that are read at plain subscripts vanish into what reads them.
/// Errors: Unsupported: extents that are no constants, more than 64 axes.
Result<Spec> lift(const ir::Program& program);

struct Lowered {
  ir::Program program;
  LoopAxes loops;
};

/// The program that computes the outputs (of the spec's graph, any new terms included) block by
/// block: each reduction is a nest, and so is what several nests read or a nest would compute more
/// than once. Parameters are the spec's. The program is numbered in order and has passed verify.
Result<Lowered> lower(const Spec& spec);

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_LIFT_H_
