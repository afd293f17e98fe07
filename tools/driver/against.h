// Do the values of two programs agree? Finite fields know no rounding: this asks numbers.
#ifndef PRUNERC_TOOLS_DRIVER_AGAINST_H_
#define PRUNERC_TOOLS_DRIVER_AGAINST_H_

#include "codegen/artifact.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "runtime/device.h"

#include <cstdint>
#include <string>

namespace prunerc {

struct ValueVerdict {
  bool ok = true;
  int64_t num_elems = 0;  ///< compared, over all families of inputs
  int64_t num_overflows =
      0;             ///< left out: the reference itself overflows or loses every digit there
  std::string what;  ///< the first difference with its inputs, or what was compared
};

/// Runs a kernel on several families of inputs, small, large and of mixed magnitudes among them, and
/// compares each output element with what `spec` gives in double: whole if `spec` takes at most a
/// few million steps, else at corners, edges and random places. Allowed is what rounding may do to
/// `spec` as it is written, four times over, and some units of the element: a kernel that is less
/// accurate than that is told apart, one that is more accurate is not.
/// Errors: Unsupported if `spec` is large and of a form that elements cannot be evaluated of alone;
/// WorkerStart; those of evaluation.
Result<ValueVerdict> compare_values(const ir::Program& spec, const codegen::Artifact& artifact,
                                    runtime::Device& device, uint64_t seed);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_AGAINST_H_
